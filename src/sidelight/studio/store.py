"""The studio's own files: JSON that its owner alone can read, written whole or not at all.

Everything that the studio knows is in such files, so that two studios may serve one folder, and a restarted
one finds what it left. Whoever makes a file first with ``claim`` has it; a rename decides who takes a link.
What is looked at and then changed, is so ``alone``.
"""

import contextlib
import fcntl
import json
import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar

from sidelight._files import writing
from sidelight._foreign import ForeignError, parse_json, read_text
from sidelight.errors import InputError
from sidelight.releases.typed_json import from_json, to_json

Kept = TypeVar("Kept")


def private_folder(path: Path) -> Path:
    """The folder, made if need be; only its owner may enter one that is made here."""
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"the folder {path.name} cannot be made: {error.strerror}.") from error
    return path


def write(path: Path, value: Any) -> None:
    """Keep a value, as the dataclass or the plain value that it is."""
    with writing(path, "the studio's file", private=True) as file:
        file.write(text_of(value).encode("utf-8", errors="replace"))


def text_of(value: Any) -> str:
    """A value as ``write`` keeps it."""
    return json.dumps(to_json(value), ensure_ascii=False, indent=1, default=str) + "\n"


def read(kind: type[Kept], path: Path) -> Kept | None:
    """The value that ``write`` kept; None where there is none."""
    try:
        found: Kept = from_json(kind, parse_json(read_text(path)), path.name)
    except FileNotFoundError:
        return None
    except ForeignError as error:
        raise InputError(f"{path.name} was edited, and cannot be read: {error}.") from error
    except OSError as error:
        raise InputError(f"{path.name} cannot be read: {error.strerror}.") from error
    return found


def claim(path: Path, text: str = "") -> bool:
    """Make a file with this text; whether it was not there before. Of several at once, one is told yes."""
    building = path.with_name(f".{path.name}.{secrets.token_hex(8)}.part")
    try:
        with writing(building, "the studio's file", private=True) as file:
            file.write(text.encode("utf-8", errors="replace"))
        # A link is made whole or not at all, and never over a file that is there.
        os.link(building, path)
    except FileExistsError:
        return False
    except OSError as error:
        raise InputError(f"{path.name} cannot be made: {error.strerror}.") from error
    finally:
        building.unlink(missing_ok=True)
    return True


def take(path: Path, to: Path) -> bool:
    """Move a file away; whether it was still there. Of several who ask at once, one is told yes."""
    try:
        path.rename(to)
    except FileNotFoundError:
        return False
    return True


@contextlib.contextmanager
def alone(path: Path) -> Iterator[None]:
    """While nobody else is here who came by the same file; others wait, in this process and in others."""
    try:
        held = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise InputError(f"{path.name} cannot be opened: {error.strerror}.") from error
    try:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield
    finally:
        os.close(held)
