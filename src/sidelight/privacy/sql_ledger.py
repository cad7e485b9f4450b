"""A ledger on disk: an SQLite file, or a database that a team shares.

Spending is one transaction that looks, decides and writes. SQLite takes the write lock when
the transaction begins (``BEGIN IMMEDIATE``); PostgreSQL takes a lock of the ledger's own. So
processes that race for the last of a budget are served one after the other, and together
they can never overspend. A commit survives a power cut (``synchronous=EXTRA``, ``synchronous_commit = on``).

A connection may be lost in the middle of a transaction. Whether that transaction was kept is looked up once
the database is back, under the same lock, by the hash of the line: so nothing is written twice, and nothing
is lost.

What this keeps out: crashes, races, mistakes and quiet edits, by triggers that refuse to
change a line and by the chain of hashes, verified on opening. What it cannot: someone with
the right to write the file who computes every hash anew, or who cuts lines off the end.
Against those, keep the ledger where only the data's owner writes. Whoever has opened a ledger once remembers
its head (``seen.py``), each release carries it, and ``verify(head=…)`` compares.
"""

import os
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from sidelight.errors import LedgerError, PrivacyWarning, SettingError
from sidelight.privacy import seen, sql_location
from sidelight.privacy.budget import Budget
from sidelight.privacy.chain import Line, Sums, promise_line
from sidelight.privacy.chained_ledger import Ledger
from sidelight.privacy.marks import new_key
from sidelight.privacy.pages import Pages, Pen
from sidelight.privacy.policy import Policy, check_limits
from sidelight.privacy.promise import Promise
from sidelight.privacy.replay import replayed
from sidelight.privacy.sql_location import Location, LostConnectionError
from sidelight.privacy.sql_pages import SqlPages
from sidelight.privacy.unit import Unit
from sidelight.sources import ledger_name

T = TypeVar("T")


class SqlLedger(Ledger):
    """A ledger in an SQLite file, or behind a database URL.

    ``people.ledger`` is a file. ``postgresql://user@host/database#people`` is the ledger
    *people* of a PostgreSQL database, which may hold many.
    """

    def __init__(self, location: Location, promise: Promise, known: Line, first: Line) -> None:
        self.where = location.name
        self.promise = promise
        self._location = location
        self._known = known
        self._first = first
        self._remember()

    @classmethod
    def create(
        cls,
        path_or_url: str | os.PathLike[str],
        promise: Promise,
        *,
        policy: Policy | Mapping[str, Any] | str | Path | None = None,
    ) -> "SqlLedger":
        """Make a new ledger that holds this promise, and a policy if one is given."""
        if promise.shown != promise.name:
            raise LedgerError(
                "the ledger's name looks like the address of a database, and would stand in every release. "
                "Name the table in plain words."
            )
        rules = None if policy is None else Policy.of(policy)
        if rules is not None:
            check_limits(rules, promise)
        for doubt in promise.doubts:
            warnings.warn(doubt, PrivacyWarning, stacklevel=2)
        first = promise_line(promise)

        def fill(pages: SqlPages) -> Line:
            pages.keep_key(new_key())  # now, so that whoever spends need not have the right to make it
            pages.add(first)
            pen = Pen(pages, first)
            if rules is not None:
                pen.write("policy", {"policy": rules.as_json()}, of_run=Sums())
            return pen.last

        location = Location(path_or_url)
        return cls(location, promise, location.create(fill), first)

    @classmethod
    def open(
        cls,
        path_or_url: str | os.PathLike[str],
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        unit: Unit | str = "replace",
        person: str | None = None,
        name: str | None = None,
        policy: Policy | Mapping[str, Any] | str | Path | None = None,
    ) -> "SqlLedger":
        """Open a ledger, after verifying every line of it; with ``epsilon`` and ``delta``, make a new one.

        Args:
            path_or_url: a file such as ``people.ledger``, or a database URL.
            epsilon: ε promised for all releases from this table together; for a new ledger alone.
            delta: δ promised, well below 1/n.
            unit: what one person can change: ``replace``, ``add-or-remove``, or a ``Unit``.
            person: the column that says who each record is about. Each release then uses as many records of a
                person as its schema says.
            name: the table's name; by default the file's, or the text after # in an address.
            policy: which runs a new ledger allows: the path of a TOML file, what such a file holds, or a
                ``Policy``. ``set_policy`` changes it later.
        """
        if epsilon is not None or delta is not None:
            if epsilon is None or delta is None:
                raise SettingError("a new ledger promises both epsilon and delta; give both, or neither.")
            called = ledger_name(str(path_or_url)) if name is None else name
            who = Unit.of(unit) if person is None else replace(Unit.of(unit), person=person)
            promise = Promise(Budget(epsilon=epsilon, delta=delta), who, called)
            return cls.create(path_or_url, promise, policy=policy)
        if policy is not None:
            raise SettingError("policy is for a new ledger; change another one's with set_policy.")
        if person is not None:
            raise SettingError("person is for a new ledger, whose promise is made with it and cannot change.")
        location = Location(path_or_url)
        location.inspect()
        with location.transaction(to_write=False) as pages:
            if not pages.exists():
                raise LedgerError(f"{location.name} is a database, but holds no ledger; create one first.")
            if not pages.is_sound():
                raise LedgerError(f"{location.name}: it is damaged: its pages do not fit together.")
            promise, known = replayed(pages.lines(), where=location.name)
            first = pages.at(1)
            assert first is not None  # or it had been refused
            if known.kind != "moved":
                seen.require(first, pages, where=location.name)
        return cls(location, promise, known, first)

    @contextmanager
    def _transaction(self, *, to_write: bool) -> Iterator[Pages]:
        with self._location.transaction(to_write=to_write) as pages:
            yield pages

    def _change(self, decide: Callable[[Pen], T]) -> T:
        """Look, decide and write in one transaction; again, where the database was lost meanwhile."""
        begun: list[tuple[Pen, T]] = []

        def attempt() -> T:
            with self._transaction(to_write=True) as pages:
                pen = self._pen(pages)
                if begun and begun[-1][0].is_kept(pages):
                    return begun[-1][1]  # the commit was heard, and only its answer was lost
                decided = decide(pen)
                begun[:] = [(pen, decided)] if pen.has_written else []
            return decided

        decided = _patiently(attempt)
        if begun:
            self._known = begun[-1][0].last
            if self._known.kind not in ("event", "draw"):  # a run's own head is kept with its release
                self._remember()
        return decided

    def _look(self, read: Callable[[Pages], T]) -> T:
        return _patiently(lambda: super(SqlLedger, self)._look(read))

    def _remember(self) -> None:
        if not self._known.is_end:  # where the ledger went to, that line's number is another line's
            seen.remember(self._first, self._known)


def _patiently(attempt: Callable[[], T]) -> T:
    """Try again where the database was lost, until it is back or patience ends."""
    until, pause = time.monotonic() + sql_location.PATIENCE, 0.0
    while True:
        try:
            return attempt()
        except LostConnectionError:
            if time.monotonic() + pause > until:
                raise
        time.sleep(pause)
        pause = min(2.0, 2 * pause + 0.05)


def open_ledger(where: Ledger | str | os.PathLike[str]) -> Ledger:
    """The ledger at a path or database URL, verified line by line; a ledger object is returned as it is."""
    return SqlLedger.open(where) if isinstance(where, (str, os.PathLike)) else where
