"""A release on disk: plain files, a version, and no pickle.

release.json            format, card, events, queries, shapes, and a checksum for each other file
schema.toml             how codes become values again
measurements.parquet    measurement, answer
model.<name>.parquet    one column of numbers per array of the model
"""

import hashlib
import json
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sidelight.data.domain import Domain
from sidelight.data.schema import Schema
from sidelight.errors import ReleaseError
from sidelight.estimate.load import model_from_state
from sidelight.estimate.model import ModelState
from sidelight.measure.measurement import Measurement
from sidelight.mechanisms.release import Release
from sidelight.privacy.event import Event
from sidelight.queries.query import query_from_json

FORMAT = 1


def save(release: Release, folder: Path) -> Path:
    """Write the folder whole or not at all: it is built beside its place, then moved there."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ReleaseError(f"{folder} already exists and is not empty; name a new folder.")
    building = folder.with_name(f".{folder.name}.{os.getpid()}.part")
    try:
        building.mkdir(parents=True)
        _write(release, building)
        if folder.exists():
            folder.rmdir()
        building.rename(folder)
    except OSError as error:
        reason = error.strerror or "the disk refused"
        raise ReleaseError(f"the release could not be written to {folder}: {reason}.") from error
    finally:
        shutil.rmtree(building, ignore_errors=True)
    return folder


def load(folder: Path) -> Release:
    """Read a folder that ``save`` wrote."""
    about = _about(folder)
    for name, expected in about["checksums"].items():
        path = folder / name
        if not path.is_file():
            raise ReleaseError(f"{folder} is incomplete: {name} is missing. Copy the whole folder again.")
        if _checksum(path) != expected:
            raise ReleaseError(f"{folder}/{name} was changed after the release was written; get it again.")
    schema = Schema.read(folder / "schema.toml") if "schema.toml" in about["checksums"] else None
    domain = Domain(tuple(about["domain"]["attrs"]), tuple(about["domain"]["shape"]))
    arrays = {
        name: _read_array(folder / f"model.{name}.parquet").reshape(shape)
        for name, shape in about["model"]["shapes"].items()
    }
    state = ModelState(about["model"]["kind"], about["model"]["meta"], arrays)
    answers = _read_array(folder / "measurements.parquet", "answer")
    measurements = []
    start = 0
    for plain in about["measurements"]:
        end = start + plain["cells"]
        measurements.append(
            Measurement(query_from_json(plain["query"]), answers[start:end], float(plain["stddev"]))
        )
        start = end
    return Release(
        model=model_from_state(domain, state),
        measurements=tuple(measurements),
        events=tuple(Event.from_json(plain) for plain in about["events"]),
        schema=schema,
        card=about["card"],
        kind=about["kind"],
    )


def _about(folder: Path) -> dict[str, Any]:
    path = folder / "release.json"
    if not path.is_file():
        raise ReleaseError(f"{folder} is not a release: it holds no release.json.")
    try:
        about = json.loads(path.read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ReleaseError(f"{path} is not JSON: it was cut off or edited. Get the release again.") from error
    if not isinstance(about, dict) or not isinstance(about.get("format"), int):
        raise ReleaseError(f"{path} does not describe a release: it has no format number.")
    if about["format"] > FORMAT:
        raise ReleaseError(
            f"{folder} has format {about['format']}; this sidelight reads up to {FORMAT}. Update sidelight."
        )
    missing = {"domain", "model", "measurements", "events", "card", "kind", "checksums"} - about.keys()
    if missing:
        raise ReleaseError(
            f"{path} is incomplete: {', '.join(sorted(missing))} missing. Get the release again."
        )
    return about


def _write(release: Release, folder: Path) -> None:
    state = release.model.state()
    names = []
    for name, array in state.arrays.items():
        names.append(f"model.{name}.parquet")
        _write_columns(folder / names[-1], {"value": array.reshape(-1)})
    names.append("measurements.parquet")
    sizes = [measurement.answer.size for measurement in release.measurements]
    _write_columns(
        folder / names[-1],
        {
            "measurement": np.repeat(np.arange(len(sizes)), sizes),
            "answer": np.concatenate([m.answer for m in release.measurements] or [np.zeros(0)]),
        },
    )
    if release.schema is not None:
        names.append("schema.toml")
        release.schema.write(folder / "schema.toml")
    domain = release.model.domain
    about = {
        "format": FORMAT,
        "card": release.card,
        "kind": release.kind,
        "domain": {"attrs": list(domain.attrs), "shape": list(domain.shape)},
        "model": {
            "kind": state.kind,
            "meta": state.meta,
            "shapes": {name: list(array.shape) for name, array in state.arrays.items()},
        },
        "measurements": [
            {"query": m.query.as_json(), "stddev": m.stddev, "cells": m.answer.size}
            for m in release.measurements
        ],
        "events": [event.as_json() for event in release.events],
        "checksums": {name: _checksum(folder / name) for name in names},
    }
    text = json.dumps(about, ensure_ascii=False, indent=1)
    (folder / "release.json").write_text(text + "\n", encoding="utf-8")


def _write_columns(path: Path, columns: dict[str, NDArray[Any]]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table(columns), path, compression="zstd")


def _read_array(path: Path, column: str = "value") -> NDArray[Any]:
    import pyarrow.parquet as pq

    values: NDArray[Any] = pq.read_table(path, columns=[column])[column].to_numpy()
    return values


def _checksum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
