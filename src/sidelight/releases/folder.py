"""A release on disk: plain files, a version, and no pickle.

release.json            format, card, queries, shapes, and a checksum for each other file
schema.toml             the schema, by which codes become values again
workload.json           the workload, where it has no name; a file for --workload
measurements.parquet    noisy answers, with the number of the measurement
model.<name>.parquet    one column of numbers per array of the model
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from sidelight import _check
from sidelight._foreign import ForeignError
from sidelight.data.columns.column import MOST_CODES
from sidelight.data.domain import Domain
from sidelight.data.reading.frames import KINDS
from sidelight.data.schema import MOST_COLUMNS, Schema
from sidelight.measurement import Measurement
from sidelight.models.load import model_from_state
from sidelight.queries.query import query_from_json
from sidelight.releases.card import Card
from sidelight.releases.plain_folder import (
    Columns,
    PlainFolder,
    reading,
    write_columns,
    write_model,
)
from sidelight.releases.release import Release

_RELEASE = PlainFolder(
    noun="release",
    about="release.json",
    format=2,
    fields=frozenset({"domain", "model", "measurements", "card", "kind"}),
    remedy="Get the release again.",
)


def save(release: Release, folder: Path) -> Path:
    """Write the folder whole or not at all."""
    return _RELEASE.write(folder, lambda building: _write(release, building))


def load(folder: Path) -> Release:
    """Read a folder that ``save`` wrote."""
    about = _RELEASE.read(folder)
    with reading(folder / _RELEASE.about, _RELEASE.remedy):
        schema = Schema.read(folder / "schema.toml") if "schema.toml" in about["checksums"] else None
        domain = _domain(about["domain"], schema)
        columns = Columns(folder, about["checksums"])
        if about["kind"] not in KINDS and not re.fullmatch(r"[a-z.]{1,20}", about["kind"]):
            raise ForeignError("it names an unknown kind of frame")
        return Release(
            model=model_from_state(domain, columns.model(about["model"])),
            measurements=tuple(_measurements(about["measurements"], domain, columns)),
            card=Card.from_json(about["card"]),
            schema=schema,
            kind=about["kind"],
        )


def load_card(folder: Path) -> Card:
    """The card of a release alone, once every file of the folder was found unchanged."""
    about = _RELEASE.read(folder)
    with reading(folder / _RELEASE.about, _RELEASE.remedy):
        return Card.from_json(about["card"])


def _domain(described: dict[str, Any], schema: Schema | None) -> Domain:
    """The release's attributes; refused if they are more or larger than a schema allows."""
    attrs, shape = tuple(described["attrs"]), tuple(described["shape"])
    if len(attrs) > MOST_COLUMNS or not all(type(size) is int and 0 < size <= MOST_CODES for size in shape):
        raise ForeignError("its attributes are more, or larger, than a schema allows")
    domain = Domain(attrs, shape)
    if schema is not None and schema.domain != domain:
        raise ForeignError("its attributes are not those of its schema")
    return domain


def _measurements(described: list[Any], domain: Domain, columns: Columns) -> Iterator[Measurement]:
    """The measurements: each query with its noisy answers."""
    queries = []
    for plain in described:
        query, cells, stddev = query_from_json(plain["query"]), plain["cells"], plain["stddev"]
        query.check(domain)
        if type(cells) is not int or cells != query.cells(domain):
            raise ForeignError("a measurement does not have an answer for each cell of its query")
        _check.positive(stddev=stddev)
        queries.append((query, cells, float(stddev)))
    answers = columns.read("measurements.parquet", "answer", rows=sum(cells for _, cells, _ in queries))
    start = 0
    for query, cells, stddev in queries:
        yield Measurement(query, answers[start : start + cells], stddev)
        start += cells


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
    asked = release.card.workload.asked
    if isinstance(asked, tuple):
        text = json.dumps(asked, ensure_ascii=False, indent=1)
        (folder / "workload.json").write_text(text + "\n", encoding="utf-8")
    domain = release.model.domain
    return {
        "card": release.card.as_json(),
        "kind": release.kind,
        "domain": {"attrs": list(domain.attrs), "shape": list(domain.shape)},
        "model": write_model(release.model.state(), folder),
        "measurements": [
            {"query": m.query.as_json(), "stddev": m.stddev, "cells": m.answer.size}
            for m in release.measurements
        ],
    }
