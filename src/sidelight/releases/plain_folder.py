"""A folder of plain files that is written whole or not at all, and whose checksums show later edits.

One JSON file describes the others: a format number, and a checksum for each of them. Arrays
are columns of Parquet files; nothing is pickled.
"""

import glob
import hashlib
import json
import math
import os
import re
import shutil
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sidelight._check import brief
from sidelight._files import named
from sidelight._foreign import ForeignError, check_size, parse_json, read_text
from sidelight.errors import ReleaseError, SidelightError
from sidelight.models.model import ModelState

_PLAIN_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.]{0,99}")
"""Names that a file of the folder may have: no path, nothing hidden."""
_WIDTHS = {"BOOLEAN": 1, "INT32": 4, "INT64": 8, "FLOAT": 4, "DOUBLE": 8}
"""Parquet's types for numbers, and how many bytes a number takes."""


@dataclass(frozen=True)
class PlainFolder:
    """A kind of folder: what it is called, and what its description must contain."""

    noun: str
    """The word for it in messages: release, prior."""
    about: str
    """The name of the file that describes the folder."""
    format: int
    """The newest format that this sidelight reads, and the one that it writes."""
    fields: frozenset[str]
    """The fields that the description must have besides the format and the checksums."""
    remedy: str
    """The advice about a damaged folder, as a sentence."""

    def write(self, folder: Path, content: Callable[[Path], dict[str, Any]]) -> Path:
        """Build the folder beside its place, then move it there; ``content`` fills it and describes it."""
        named(folder, f"the {self.noun}")
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise ReleaseError(f"{folder} already exists and is not empty; name a new folder.")
        building = folder.with_name(f".{folder.name}.{os.getpid()}.part")
        try:
            _remove_abandoned(folder)
            building.mkdir(parents=True)
            described = content(building)
            checksums = {path.name: _checksum(path) for path in sorted(building.iterdir())}
            text = json.dumps(
                {"format": self.format, **described, "checksums": checksums}, ensure_ascii=False, indent=1
            )
            (building / self.about).write_text(text + "\n", encoding="utf-8")
            if folder.exists():
                folder.rmdir()
            building.rename(folder)
        except OSError as error:
            reason = error.strerror or "the disk refused"
            raise ReleaseError(f"the {self.noun} could not be written to {folder}: {reason}.") from error
        finally:
            shutil.rmtree(building, ignore_errors=True)
        return folder

    def read(self, folder: Path) -> dict[str, Any]:
        """The description of the folder, after checking that every file is there and unchanged."""
        path = folder / self.about
        if not folder.exists():
            raise ReleaseError(f"there is no folder {folder}; name one that holds a {self.noun}.")
        if not path.is_file():
            raise ReleaseError(f"{folder} is not a {self.noun}: it holds no {self.about}.")
        try:
            about = parse_json(read_text(path))
        except OSError as error:
            raise ReleaseError(f"{path} cannot be read: {error.strerror or 'the disk refused'}.") from error
        except ForeignError as error:
            raise ReleaseError(f"{path} cannot be read: {error}. {self.remedy}") from error
        if not isinstance(about, dict) or type(about.get("format")) is not int:
            raise ReleaseError(f"{path} does not describe a {self.noun}: it has no format number.")
        if about["format"] > self.format:
            raise ReleaseError(
                f"{folder} has format {about['format']}; this sidelight reads up to {self.format}. "
                "Update sidelight."
            )
        missing = (self.fields | {"checksums"}) - about.keys()
        if missing:
            raise ReleaseError(f"{path} is incomplete: {', '.join(sorted(missing))} missing. {self.remedy}")
        checksums = about["checksums"]
        if not isinstance(checksums, dict):
            raise ReleaseError(f"{path} was edited: its checksums cannot be read. {self.remedy}")
        for name, expected in checksums.items():
            if not _PLAIN_NAME.fullmatch(name):
                raise ReleaseError(f"{path} was edited: {brief(name)} is no file of a {self.noun}.")
            if not (folder / name).is_file():
                raise ReleaseError(f"{folder} is incomplete: {name} is missing. Copy the whole folder again.")
            try:
                found = _checksum(folder / name)
            except OSError as error:
                reason = error.strerror or "the disk refused"
                raise ReleaseError(f"{folder}/{name} cannot be read: {reason}.") from error
            if found != expected:
                raise ReleaseError(
                    f"{folder}/{name} was changed after the {self.noun} was written. {self.remedy}"
                )
        return about


def _remove_abandoned(folder: Path) -> None:
    """Remove unfinished folders of processes that died here."""
    for part in folder.parent.glob(f".{glob.escape(folder.name)}.*.part"):
        builder = part.name.split(".")[-2]
        if builder.isdecimal() and not _is_running(int(builder)):
            shutil.rmtree(part, ignore_errors=True)


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True  # another person's process
    return True


@contextmanager
def reading(path: Path, remedy: str) -> Iterator[None]:
    """Turn errors in a description that ``write`` cannot have written into the message that it was edited."""
    try:
        yield
    except SidelightError:
        raise
    except ForeignError as error:
        raise ReleaseError(f"{path} was edited: {error}. {remedy}") from error
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise ReleaseError(f"{path} was edited: what it holds does not fit together. {remedy}") from error


def write_model(state: ModelState, folder: Path, *, stem: str = "model") -> dict[str, Any]:
    """Write a model's arrays as files; return their description."""
    for name, array in state.arrays.items():
        write_columns(folder / f"{stem}.{name}.parquet", {"value": array.reshape(-1)})
    shapes = {name: list(array.shape) for name, array in state.arrays.items()}
    return {"kind": state.kind, "meta": state.meta, "shapes": shapes}


class Columns:
    """The Parquet files of a folder. The size of a file is checked before its numbers are read.

    All numbers read from one folder together stay below ``_foreign.most_bytes``.
    """

    def __init__(self, folder: Path, checksums: Collection[str]) -> None:
        self._folder = folder
        self._known = checksums
        self._bytes = 0

    def model(self, described: dict[str, Any], *, stem: str = "model") -> ModelState:
        """The state that ``write_model`` wrote."""
        shapes: dict[str, list[int]] = described["shapes"]
        arrays = {}
        for name, shape in shapes.items():
            if not all(type(size) is int and size >= 0 for size in shape):
                raise ForeignError(f"the shape of {brief(name)} is no list of sizes")
            arrays[name] = self.read(f"{stem}.{name}.parquet", rows=math.prod(shape)).reshape(shape)
        if not isinstance(described["kind"], str) or not isinstance(described["meta"], dict):
            raise ForeignError("its model has no kind or no settings")
        return ModelState(described["kind"], described["meta"], arrays)

    def read(self, name: str, column: str = "value", *, rows: int) -> NDArray[Any]:
        """One column of a file, which must hold ``rows`` finite numbers."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        if name not in self._known:
            raise ForeignError(f"{brief(name)} has no checksum")
        path = self._folder / name
        try:
            with path.open("rb") as file:
                # Not in threads of Arrow: one that lets go of the file while Python ends aborts the process.
                parquet = pq.ParquetFile(file, pre_buffer=False)
                self._check(parquet, name, column, rows)
                values = parquet.read(columns=[column], use_threads=False)[column]
                if len(values) != rows or values.null_count:
                    raise ForeignError(f"{name} holds missing values, or not as many as it says")
                array: NDArray[Any] = values.to_numpy()
        except (pa.ArrowException, LookupError, OSError) as error:
            raise ReleaseError(f"{path} is not the Parquet file that was written: it was cut off.") from error
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise ForeignError(f"{name} holds numbers that are not finite")
        return array

    def _check(self, parquet: Any, name: str, column: str, rows: int) -> None:
        """Refuse a file whose own metadata states another length, other types or too many bytes."""
        about = parquet.metadata
        if about.num_rows != rows:
            raise ForeignError(f"{name} does not hold as many numbers as its description says")
        place = [about.schema.column(i).path for i in range(about.num_columns)].index(column)
        width = _WIDTHS.get(about.schema.column(place).physical_type)
        if width is None or about.schema.column(place).max_repetition_level:
            raise ForeignError(f"{name} holds something else than numbers")
        packed = sum(
            about.row_group(group).column(place).total_uncompressed_size
            for group in range(about.num_row_groups)
        )
        self._bytes += max(width * rows, packed)
        check_size(self._bytes, "all that this folder holds")


def write_columns(path: Path, columns: dict[str, NDArray[Any]]) -> None:
    """Write arrays of equal length as a Parquet file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    # An open file, since Arrow accepts only paths in UTF-8.
    with path.open("wb") as file:
        pq.write_table(pa.table(columns), file, compression="zstd")


def _checksum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
