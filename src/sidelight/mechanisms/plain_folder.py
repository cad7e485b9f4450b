"""A folder of plain files that is written whole or not at all, and that shows later edits.

One JSON file describes the others: a format number, and a checksum for each of them. Arrays
are Parquet files of one column each; nothing is pickled.
"""

import glob
import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from sidelight.errors import ReleaseError, SidelightError
from sidelight.estimate.model import ModelState


@dataclass(frozen=True)
class PlainFolder:
    """What such a folder is called, and what its description must hold."""

    noun: str
    """What people call it: release, prior."""
    about: str
    """The name of the file that describes it."""
    format: int
    """The newest format that this sidelight reads, and the one that it writes."""
    fields: frozenset[str]
    """What the description must hold beside the format and the checksums."""
    remedy: str
    """What to do about a broken one."""

    def write(self, folder: Path, content: Callable[[Path], dict[str, Any]]) -> Path:
        """Build the folder beside its place, then move it there; ``content`` fills it and describes it."""
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
        """The description, once every file is there and unchanged."""
        path = folder / self.about
        if not path.is_file():
            raise ReleaseError(f"{folder} is not a {self.noun}: it holds no {self.about}.")
        try:
            about = json.loads(path.read_text(encoding="utf-8"))
        except (json.JSONDecodeError, UnicodeDecodeError) as error:
            raise ReleaseError(f"{path} is not JSON: it was cut off or edited. {self.remedy}") from error
        if not isinstance(about, dict) or not isinstance(about.get("format"), int):
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
            if not (folder / name).is_file():
                raise ReleaseError(f"{folder} is incomplete: {name} is missing. Copy the whole folder again.")
            if _checksum(folder / name) != expected:
                raise ReleaseError(
                    f"{folder}/{name} was changed after the {self.noun} was written. {self.remedy}"
                )
        return about


def _remove_abandoned(folder: Path) -> None:
    """Take away what processes that died here had begun to build."""
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
    """Say that a description was edited, where what it holds is not what ``write`` would have put there."""
    try:
        yield
    except SidelightError:
        raise
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise ReleaseError(f"{path} was edited: what it holds does not fit together. {remedy}") from error


def write_model(state: ModelState, folder: Path, *, stem: str = "model") -> dict[str, Any]:
    """A model's arrays as files; gives what describes them."""
    for name, array in state.arrays.items():
        write_columns(folder / f"{stem}.{name}.parquet", {"value": array.reshape(-1)})
    shapes = {name: list(array.shape) for name, array in state.arrays.items()}
    return {"kind": state.kind, "meta": state.meta, "shapes": shapes}


def read_model(described: dict[str, Any], folder: Path, *, stem: str = "model") -> ModelState:
    """The state that ``write_model`` wrote."""
    arrays = {
        name: read_column(folder / f"{stem}.{name}.parquet").reshape(shape)
        for name, shape in described["shapes"].items()
    }
    return ModelState(described["kind"], described["meta"], arrays)


def write_columns(path: Path, columns: dict[str, NDArray[Any]]) -> None:
    """Arrays of one length as a Parquet file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    # An open file, since Arrow knows no path that is not UTF-8.
    with path.open("wb") as file:
        pq.write_table(pa.table(columns), file, compression="zstd")


def read_column(path: Path, column: str = "value") -> NDArray[Any]:
    """One column of a Parquet file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with path.open("rb") as file:
            values: NDArray[Any] = pq.read_table(file, columns=[column])[column].to_numpy()
    except (pa.ArrowException, LookupError, OSError) as error:
        raise ReleaseError(
            f"{path} is not the Parquet file that was written: it was cut off or edited."
        ) from error
    return values


def _checksum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
