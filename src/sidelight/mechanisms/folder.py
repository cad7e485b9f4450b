"""A release on disk: plain files, a version, and no pickle.

release.json            format, card, events, queries, shapes, and a checksum for each other file
schema.toml             how codes become values again
measurements.parquet    measurement, answer
model.<name>.parquet    one column of numbers per array of the model
"""

from pathlib import Path
from typing import Any

import numpy as np

from sidelight.data.domain import Domain
from sidelight.data.schema import Schema
from sidelight.estimate.load import model_from_state
from sidelight.measure.measurement import Measurement
from sidelight.mechanisms.plain_folder import PlainFolder, read_column, read_model, write_columns, write_model
from sidelight.mechanisms.release import Release
from sidelight.privacy.event import Event
from sidelight.queries.query import query_from_json

_RELEASE = PlainFolder(
    noun="release",
    about="release.json",
    format=1,
    fields=frozenset({"domain", "model", "measurements", "events", "card", "kind"}),
    remedy="Get the release again.",
)


def save(release: Release, folder: Path) -> Path:
    """Write the folder whole or not at all."""
    return _RELEASE.write(folder, lambda building: _write(release, building))


def load(folder: Path) -> Release:
    """Read a folder that ``save`` wrote."""
    about = _RELEASE.read(folder)
    schema = Schema.read(folder / "schema.toml") if "schema.toml" in about["checksums"] else None
    domain = Domain(tuple(about["domain"]["attrs"]), tuple(about["domain"]["shape"]))
    answers = read_column(folder / "measurements.parquet", "answer")
    measurements = []
    start = 0
    for plain in about["measurements"]:
        end = start + plain["cells"]
        measurements.append(
            Measurement(query_from_json(plain["query"]), answers[start:end], float(plain["stddev"]))
        )
        start = end
    return Release(
        model=model_from_state(domain, read_model(about["model"], folder)),
        measurements=tuple(measurements),
        events=tuple(Event.from_json(plain) for plain in about["events"]),
        schema=schema,
        card=about["card"],
        kind=about["kind"],
    )


def _write(release: Release, folder: Path) -> dict[str, Any]:
    sizes = [measurement.answer.size for measurement in release.measurements]
    write_columns(
        folder / "measurements.parquet",
        {
            "measurement": np.repeat(np.arange(len(sizes)), sizes),
            "answer": np.concatenate([m.answer for m in release.measurements] or [np.zeros(0)]),
        },
    )
    if release.schema is not None:
        release.schema.write(folder / "schema.toml")
    domain = release.model.domain
    return {
        "card": release.card,
        "kind": release.kind,
        "domain": {"attrs": list(domain.attrs), "shape": list(domain.shape)},
        "model": write_model(release.model.state(), folder),
        "measurements": [
            {"query": m.query.as_json(), "stddev": m.stddev, "cells": m.answer.size}
            for m in release.measurements
        ],
        "events": [event.as_json() for event in release.events],
    }
