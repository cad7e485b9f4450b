"""The heads that this machine has seen: by them, an older copy of a ledger is known to be old.

Each user of a ledger keeps the number and the hash of its newest line, in a small file outside the ledger, as
ssh keeps the keys of hosts. A ledger that lacks that line was restored from a backup, cut off or copied, and
what was spent since would be forgotten: it is refused until somebody says what became of the lines
(``sidelight ledger restore``). Every colleague who uses a ledger is such a witness.

The files hold nothing but hashes and numbers. They are kept in ``$SIDELIGHT_STATE``, by default in the user's
own folder for such things; an empty ``SIDELIGHT_STATE`` keeps none.
"""

import json
import os
import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from sidelight._files import writing
from sidelight._foreign import ForeignError, parse_json
from sidelight.errors import InputError, LedgerError
from sidelight.privacy.chain import Line
from sidelight.privacy.pages import Pages

_HASH = re.compile("[0-9a-f]{64}")


@dataclass(frozen=True)
class Head:
    """A line of a ledger that somebody has seen."""

    line: int
    hash: str
    when: str


def remember(first: Line, last: Line) -> None:
    """Remember the newest line of the ledger that begins with ``first``, where anything can be kept."""
    path = _path(first.hash)
    if path is None:
        return
    known = newest(first)
    if known is not None and known.line >= last.number:
        return
    told = {"line": last.number, "hash": last.hash, "when": last.when}
    with suppress(OSError, InputError):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with writing(path, "the ledger's head", private=True) as file:
            file.write(json.dumps(told).encode())


def newest(first: Line) -> Head | None:
    """The newest line that was seen here of the ledger that begins with ``first``."""
    path = _path(first.hash)
    try:
        told = None if path is None else parse_json(path.read_bytes())
    except (OSError, ForeignError):
        return None
    if not isinstance(told, dict):
        return None
    line, digest, when = told.get("line"), told.get("hash"), told.get("when")
    is_fine = (
        type(line) is int and isinstance(digest, str) and _HASH.fullmatch(digest) and isinstance(when, str)
    )
    return Head(line, digest, when) if is_fine else None  # type: ignore[arg-type]  # checked


def forget(first: Line) -> None:
    """Forget what was seen of a ledger: its lost lines were dealt with."""
    path = _path(first.hash)
    if path is not None:
        with suppress(OSError):
            path.unlink(missing_ok=True)


def require(first: Line, pages: Pages, *, where: str) -> None:
    """Refuse a ledger that lacks a line which was seen here."""
    head = newest(first)
    if head is not None and not holds(pages, head):
        raise LedgerError(
            f"{where} lacks line {head.line}, which this machine saw on {head.when[:10]}: it is an older "
            "copy, or lines were cut off. What was spent since would be forgotten. Use the newest copy. If "
            "there is none, `sidelight ledger restore` puts a backup in its place, and charges it for the "
            "releases that it lacks. Nothing was charged."
        )


def holds(pages: Pages, head: Head) -> bool:
    """Whether the ledger still has that line."""
    line = pages.at(head.line)
    return line is not None and line.hash == head.hash


def _path(first_hash: str) -> Path | None:
    """The file that keeps the head of the ledger whose first line has this hash."""
    folder = _folder()
    return None if folder is None else folder / "heads" / f"{first_hash}.json"


def _folder() -> Path | None:
    named = os.environ.get("SIDELIGHT_STATE")
    if named is not None:
        return Path(named) if named else None
    if os.name == "nt":
        local = os.environ.get("LOCALAPPDATA")
        return Path(local) / "sidelight" if local else None
    state = os.environ.get("XDG_STATE_HOME")
    if state:
        return Path(state) / "sidelight"
    try:
        return Path.home() / ".local" / "state" / "sidelight"
    except RuntimeError:  # a user without a home
        return None
