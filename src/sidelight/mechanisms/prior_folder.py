"""A fitted prior on disk: plain files, a version, and no pickle.

prior.json              format, records, α, attribute sets, shapes, and a checksum for each other file
schema.toml             the schema that it was fitted under
model.<name>.parquet    one column of numbers per potential of q
"""

import hashlib
import json
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sidelight.data.schema import Schema
from sidelight.data.table import Table
from sidelight.errors import ReleaseError, SchemaError
from sidelight.estimate.graphical import GraphicalModel
from sidelight.estimate.model import ModelState
from sidelight.estimate.public_model import Prior
from sidelight.mechanisms.release import Release

FORMAT = 1
_ABOUT = "prior.json"


def read_public(source: Any, schema: Schema) -> Any:
    """Public data of any accepted kind: a prior's folder, a release's folder, a table, or a list of them.

    What is fitted or encoded already (a Prior, a Release, a Table) is handed through.
    """
    if isinstance(source, list | tuple):
        return [read_public(one, schema) for one in source]
    if isinstance(source, str | Path) and (folder := Path(source)).is_dir():
        if (folder / _ABOUT).is_file():
            return load_prior(folder, schema)
        if (folder / "release.json").is_file():
            return _same_domain(Release.load(folder), folder, schema)
    if isinstance(source, Prior | Release | Table) or hasattr(source, "count_many"):
        return source
    return Table.read(source, schema)


def save_prior(prior: Prior, schema: Schema, folder: Path) -> Path:
    """Write the folder whole or not at all: it is built beside its place, then moved there."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ReleaseError(f"{folder} already exists and is not empty; name a new folder.")
    building = folder.with_name(f".{folder.name}.{os.getpid()}.part")
    try:
        building.mkdir(parents=True)
        _write(prior, schema, building)
        if folder.exists():
            folder.rmdir()
        building.rename(folder)
    except OSError as error:
        reason = error.strerror or "the disk refused"
        raise ReleaseError(f"the prior could not be written to {folder}: {reason}.") from error
    finally:
        shutil.rmtree(building, ignore_errors=True)
    return folder


def load_prior(folder: Path, schema: Schema | None = None) -> Prior:
    """Read what ``save_prior`` wrote; refuse it under another schema."""
    about = _about(folder)
    for name, expected in about["checksums"].items():
        path = folder / name
        if not path.is_file():
            raise ReleaseError(f"{folder} is incomplete: {name} is missing. Copy the whole folder again.")
        if _checksum(path) != expected:
            raise ReleaseError(f"{folder}/{name} was changed after the prior was written; fit it again.")
    fitted = Schema.read(folder / "schema.toml")
    if schema is not None and fitted.domain != schema.domain:
        differing = sorted(set(fitted.domain.sizes.items()) ^ set(schema.domain.sizes.items()))
        named = ", ".join(sorted({repr(attr) for attr, _ in differing})) or "the order of columns"
        raise SchemaError(
            f"the prior in {folder} was fitted under another schema; they differ in {named}. "
            "Fit it again with `sidelight prior fit` and this schema."
        )
    arrays = {
        name: _read_array(folder / f"model.{name}.parquet").reshape(shape)
        for name, shape in about["model"]["shapes"].items()
    }
    state = ModelState(about["model"]["kind"], about["model"]["meta"], arrays)
    return Prior(
        GraphicalModel.from_state(fitted.domain, state),
        {str(attr): float(m) for attr, m in about["records_by_attribute"].items()},
        float(about["records"]),
        float(about["alpha"]),
    )


def _same_domain(release: Release, folder: Path, schema: Schema) -> Release:
    if release.model.domain != schema.domain:
        raise SchemaError(
            f"the release in {folder} was made under another schema, so it cannot serve as public data here."
        )
    return release


def _about(folder: Path) -> dict[str, Any]:
    path = folder / _ABOUT
    if not path.is_file():
        raise ReleaseError(f"{folder} is not a prior: it holds no {_ABOUT}.")
    try:
        about = json.loads(path.read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ReleaseError(f"{path} is not JSON: it was cut off or edited. Fit the prior again.") from error
    if not isinstance(about, dict) or not isinstance(about.get("format"), int):
        raise ReleaseError(f"{path} does not describe a prior: it has no format number.")
    if about["format"] > FORMAT:
        raise ReleaseError(
            f"{folder} has format {about['format']}; this sidelight reads up to {FORMAT}. Update sidelight."
        )
    missing = {"model", "records", "records_by_attribute", "alpha", "checksums"} - about.keys()
    if missing:
        raise ReleaseError(
            f"{path} is incomplete: {', '.join(sorted(missing))} missing. Fit the prior again."
        )
    return about


def _write(prior: Prior, schema: Schema, folder: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    state = prior.model.state()
    for name, array in state.arrays.items():
        pq.write_table(pa.table({"value": array.reshape(-1)}), folder / f"model.{name}.parquet")
    schema.write(folder / "schema.toml")
    names = sorted(path.name for path in folder.iterdir())
    about = {
        "format": FORMAT,
        "records": prior.records,
        "records_by_attribute": dict(prior.records_by_attribute),
        "alpha": prior.alpha,
        "model": {
            "kind": state.kind,
            "meta": state.meta,
            "shapes": {name: list(array.shape) for name, array in state.arrays.items()},
        },
        "checksums": {name: _checksum(folder / name) for name in names},
    }
    text = json.dumps(about, ensure_ascii=False, indent=1)
    (folder / _ABOUT).write_text(text + "\n", encoding="utf-8")


def _read_array(path: Path) -> NDArray[np.float64]:
    import pyarrow.parquet as pq

    values: NDArray[np.float64] = pq.read_table(path, columns=["value"])["value"].to_numpy()
    return values


def _checksum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
