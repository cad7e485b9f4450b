"""Writing files: each is written whole or not at all, and a private one only its owner can read.

>>> named("out/report.html", "the report").name
'report.html'
>>> named("", "the report")
Traceback (most recent call last):
sidelight.errors.InputError: the report needs a name; got ''.
"""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from sidelight._check import brief
from sidelight.errors import InputError
from sidelight.sources import scheme_of, source_name

_DEEPEST = 200
"""Most folders within each other: Python makes and walks them recursively."""


def named(path: str | Path, what: str) -> Path:
    """The path, checked: an empty one, a root or one with a null character cannot name a file."""
    given = Path(path)
    if scheme_of(str(path)) is not None:
        raise InputError(f"{what} is kept in a file or folder; got the address {source_name(str(path))}.")
    if not given.name or given.name == ".." or "\0" in str(path):
        raise InputError(f"{what} needs a name; got {brief(str(path) if str(given) != '.' else '')}.")
    if len(given.parts) > _DEEPEST:
        raise InputError(
            f"{what} would lie in more than {_DEEPEST} folders within each other; name another place."
        )
    return given


@contextmanager
def writing(path: str | Path, what: str, *, private: bool = False) -> Iterator[BinaryIO]:
    """A new file to write to, moved to ``path`` once it is complete; only its owner reads a ``private`` one.

    Half a file would mislead whoever finds it after a crash or on a full disk.
    """
    target = named(path, what)
    if target.exists() and not target.is_file():
        raise InputError(f"{what} could not be written to {target}: that is no file. Name another one.")
    building = target.with_name(f".{target.name}.{os.getpid()}-{threading.get_ident()}.part")
    try:
        building.unlink(missing_ok=True)
        # PRIVACY: private from its first byte on; rights taken away later come too late.
        rights = 0o600 if private else 0o666
        handle = os.open(building, os.O_WRONLY | os.O_CREAT | os.O_EXCL, rights)
        try:
            with os.fdopen(handle, "wb") as file:
                yield file
            building.replace(target)
        except BaseException:
            building.unlink(missing_ok=True)
            raise
    except OSError as error:
        reason = error.strerror or "the disk refused"
        raise InputError(f"{what} could not be written to {target}: {reason}. Name another file.") from error


def write_text(path: str | Path, text: str, what: str, *, private: bool = False) -> None:
    """Write a text file, whole or not at all; what UTF-8 cannot encode becomes a question mark."""
    with writing(path, what, private=private) as file:
        file.write(text.encode("utf-8", errors="replace"))


def check_file(path: str | Path, what: str) -> None:
    """Refuse a path that cannot be written, before anything is paid for the file's content."""
    target = named(path, what)
    if target.exists() and not target.is_file():
        raise InputError(f"{what} cannot be made at {target}: that is no file. Name another place.")
    check_room_for(target, what, parents=False)


def check_room_for(folder: Path, what: str, *, parents: bool = True) -> None:
    """Refuse a folder that cannot be made, before anything is paid for its content."""
    named(folder, what)
    trial = folder.with_name(f".{folder.name}.{os.getpid()}.part")
    try:
        trial.mkdir(parents=parents)
        trial.rmdir()
    except OSError as error:
        reason = error.strerror or "the disk refused"
        raise InputError(f"{what} cannot be made at {folder}: {reason}. Name another place.") from error
