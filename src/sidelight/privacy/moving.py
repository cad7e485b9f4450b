"""A ledger in another place: moved to another database, backed up into a file, put back, compared.

Lines are copied as they are, hashes included, so a copy proves by itself that nothing was changed;
``compare`` proves that nothing was lost. What must never happen is that two copies go on from one promise,
because together they could spend it twice:

    move      the last line of the old ledger says that it was moved, and where; from then on it refuses to
              spend. The new one goes on after that line, and one more line of the old ledger says that it has
              arrived. If the process dies in between, neither can spend: the same call goes on, and no other.
    back up   a file of lines, which no command spends from.
    restore   a new ledger out of such a file. A line says so, and whoever saw a later line will refuse it
              (``seen.py``) until the loss is dealt with.
"""

import json
import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from hashlib import sha256
from itertools import zip_longest
from pathlib import Path
from typing import Any

from sidelight._files import writing
from sidelight._foreign import ForeignError, parse_json
from sidelight.errors import LedgerError
from sidelight.privacy import seen
from sidelight.privacy.chain import Line, Sums
from sidelight.privacy.ledger import MemoryLedger
from sidelight.privacy.pages import Pages, Pen
from sidelight.privacy.replay import replayed
from sidelight.privacy.sql_ledger import SqlLedger
from sidelight.privacy.sql_location import Location
from sidelight.privacy.sql_pages import SqlPages
from sidelight.sources import source_name

_FORMAT = 1
Place = str | os.PathLike[str]


@dataclass(frozen=True)
class Comparison:
    """How far two ledgers are the same, line by line."""

    same: int
    """How many lines they share, from the first on."""
    first: int
    """How many lines the first one has."""
    second: int
    """How many lines the second one has."""

    @property
    def is_whole(self) -> bool:
        """Whether the second holds every line of the first."""
        return self.same == self.first

    @property
    def sentence(self) -> str:
        """The gap, in words."""
        if not self.is_whole:
            return (
                f"line {self.same + 1} of the first is missing in the second, or is another line: the "
                f"second holds {self.same:,} of its {self.first:,} lines."
            )
        more = self.second - self.first
        return f"the second holds all {self.first:,} lines of the first, unchanged, and {more:,} more."


def compare(first: Place, second: Place) -> Comparison:
    """Read both ledgers, verify each, and compare every line by its text and its hash."""
    with _reading(first) as one, _reading(second) as other:
        same, lengths, differ = 0, [0, 0], False
        for pair in zip_longest(_lines_but_end(one), _lines_but_end(other)):
            for place, line in enumerate(pair):
                lengths[place] += line is not None
            left, right = pair
            differ = (
                differ or left is None or right is None or (left.text, left.hash) != (right.text, right.hash)
            )
            same += not differ
    for ledger in (first, second):
        with _reading(ledger) as pages:
            replayed(pages.lines(), where=source_name(ledger))
    return Comparison(same, *lengths)


def _lines_but_end(pages: Pages) -> Iterator[Line]:
    """All lines but the one that says that a move is over: the old ledger alone has it."""
    return (line for line in pages.lines() if not line.is_end)


def move(source: Place, target: Place) -> Comparison:
    """Let a ledger go on in another file or database; the old one spends no more. Returns what was compared.

    If it is interrupted, the same call goes on. Runs that are open stay open, and are resumed with the new
    ledger.
    """
    old, new = SqlLedger.open(source), Location(target)
    begun = old._look(lambda pages: _begun(pages, new))
    if begun is None or not _has_arrived(new, begun):
        _fill(old, new, has_begun=begun is not None)
    found = compare(source, target)
    if not found.is_whole:
        raise LedgerError(f"{new.name} is not a copy of {old.where}: {found.sentence}")
    with old._transaction(to_write=True) as pages:
        last = _begun(pages, new)
        if last is not None:
            facts = {name: last.body[name] for name in ("to", "place", "token")}
            Pen(pages, last).write("moved", {**facts, "arrived": True}, of_run=Sums())
    SqlLedger.open(target)  # which remembers its head
    return found


def _fill(old: SqlLedger, new: Location, *, has_begun: bool) -> None:
    """Copy every line, and let the new ledger come to life."""

    def check(pages: Pages) -> None:
        if not has_begun:
            old._pen(pages)  # refuses a ledger that was moved elsewhere, before anything is created
        # PRIVACY: a ledger whose later lines were seen here went on, whatever its own last line says.
        seen.require(old._first, pages, where=old.where)

    old._look(check)
    if has_begun and new.path is not None and new.path.is_file() and new.path.stat().st_size == 0:
        new.path.unlink()  # what an interrupted move left behind

    def fill(pages: SqlPages) -> None:
        with old._transaction(to_write=True) as before:
            last = _marked_as_moved(before, old, new)
            pages.keep_key(before.key())
            for line in before.lines():
                pages.add(line)
            Pen(pages, last).write("arrived", {"token": last.body["token"]}, of_run=Sums())
        # The old ledger is closed on disk by now; the new one comes to life when this transaction ends.

    new.create(fill)


def _begun(pages: Pages, new: Location) -> Line | None:
    """The last line, if a move to this very place has begun, and is not known to have ended."""
    last = pages.last()
    if last is None or last.kind != "moved" or last.is_end or last.body.get("place") != new.identity:
        return None
    return last


def _has_arrived(new: Location, moved: Line) -> bool:
    """Whether the new ledger has come to life, though the old one does not say so."""
    try:
        new.inspect()
    except LedgerError:
        return False
    with new.transaction(to_write=False) as pages:
        return pages.exists() and any(
            line.kind == "arrived" and line.body.get("token") == moved.body["token"]
            for line in pages.lines("")
        )


def _marked_as_moved(pages: Pages, old: SqlLedger, new: Location) -> Line:
    """The line that says where the ledger goes on: written now, or by a call that was interrupted."""
    last = _begun(pages, new)
    if last is not None:
        return last
    facts = {"to": new.name, "place": new.identity, "token": secrets.token_hex(16)}
    return old._pen(pages).write("moved", facts, of_run=Sums())


def back_up(source: Place, path: str | Path) -> int:
    """Write every line of a ledger into a file that its owner alone may read; gives their number.

    The lines are verified before they take the place of an older backup, and read again from the disk
    afterwards.
    """
    ledger = SqlLedger.open(source)
    with ledger._transaction(to_write=True) as pages:
        lines = list(pages.lines())
        header = {"sidelight ledger backup": _FORMAT, "head": lines[-1].hash, "key": pages.key()}
    replayed(lines, where=ledger.where)
    with writing(path, "the backup", private=True) as file:
        file.writelines(
            text.encode() + b"\n" for text in (json.dumps(header), *(line.text for line in lines))
        )
        file.flush()
        os.fsync(file.fileno())
    if read_backup(path) != (header["key"], lines):
        raise LedgerError(f"{path} does not hold what was written: the disk failed. Back up elsewhere.")
    return len(lines)


def read_backup(path: str | os.PathLike[str]) -> tuple[str, list[Line]]:
    """The key and the lines of a backup, each with the hash that its text has."""
    try:
        header, *texts = Path(path).read_text(encoding="utf-8").splitlines()
        told: Any = parse_json(header)
        if not isinstance(told, dict) or told.get("sidelight ledger backup") != _FORMAT:
            raise LedgerError(f"{path} is no backup of a ledger, or one of a newer version.")
        lines = list(_lines(texts))
        if not lines or lines[-1].hash != told["head"]:
            raise LedgerError(f"the backup {path} is cut off, or its last line was edited.")
        return str(told["key"]), lines
    except (OSError, UnicodeDecodeError, ValueError, LookupError, ForeignError) as error:
        raise LedgerError(f"the backup {path} cannot be read: it is missing, cut off or damaged.") from error


def _lines(texts: list[str]) -> Iterator[Line]:
    for number, text in enumerate(texts, start=1):
        body = parse_json(text)
        run = body.get("run") if isinstance(body, dict) else None
        if not isinstance(run, str):
            raise LedgerError(f"line {number} of the backup cannot be read.")
        yield Line.read(number, run, text, sha256(text.encode()).hexdigest())


@dataclass(frozen=True)
class Gap:
    """The lines of a ledger that a backup lacks, as far as this machine knows."""

    held: int
    """The number of the backup's last line."""
    until: str
    """When that line was written."""
    seen: seen.Head | None
    """A later line that was seen here, if there is one."""

    @property
    def sentence(self) -> str:
        """The lines that are known to be lost, in words."""
        ends = f"the backup ends with line {self.held:,} of {self.until[:16]}"
        if self.seen is None:
            return f"{ends}; no later line was seen on this machine."
        return (
            f"{ends}, but this machine saw line {self.seen.line:,} of {self.seen.when[:16]}: what was spent "
            "in between is lost."
        )


def gap(path: str | Path) -> Gap:
    """The lines that a backup lacks; a backup that does not verify is refused."""
    _, lines = read_backup(path)
    _, last = replayed(lines, where=str(path))
    head = seen.newest(lines[0])
    is_held = head is None or (head.line <= last.number and lines[head.line - 1].hash == head.hash)
    return Gap(last.number, last.when, None if is_held else head)


def restore(
    path: str | Path,
    target: Place,
    *,
    is_confirmed: bool = False,
    then: Callable[[MemoryLedger], None] | None = None,
) -> SqlLedger:
    """Make a new ledger out of a backup; ``is_confirmed``: later lines, seen here, are known to be lost.

    ``then`` adds what is known to have been spent since (``releases/recovering.py``). The new ledger is
    written whole or not at all.
    """
    known = gap(path)
    if known.seen is not None and not is_confirmed:
        raise LedgerError(
            f"{known.sentence} Look for a newer backup first. If there is none, name every release that was "
            "made since (--release FOLDER), so that the ledger is charged for them, and confirm with --yes. "
            "Nothing was written."
        )
    key, lines = read_backup(path)
    if lines[-1].kind == "moved":
        raise LedgerError(
            f"this backup was made after its ledger was moved to {lines[-1].body.get('to')}, and goes on "
            "there. Restore a backup of that one. Nothing was written."
        )
    ledger = MemoryLedger.of_lines(lines)
    ledger._change(lambda pen: pen.write("restored", {"after": known.held}, of_run=Sums()))
    if then is not None:
        then(ledger)

    def fill(pages: SqlPages) -> None:
        pages.keep_key(key)
        for line in ledger._look(lambda kept: list(kept.lines())):
            pages.add(line)

    Location(target).create(fill)
    seen.forget(lines[0])
    return SqlLedger.open(target)


def _reading(place: Place) -> AbstractContextManager[Pages]:
    location = Location(place)
    location.inspect()
    return location.transaction(to_write=False)
