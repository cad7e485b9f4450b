"""Where a ledger's lines are kept: in memory (here), or in a database (``sql_pages``).

The ledger (``chained_ledger``) decides which line comes next; its pages only store and find lines, and a
``Pen`` adds each line after the last.
"""

from bisect import bisect_right
from collections.abc import Iterator
from typing import Any, Protocol

from sidelight.privacy.chain import Kind, Line, Sums, clock
from sidelight.privacy.marks import new_key


class Pages(Protocol):
    """Where lines are kept, inside one transaction."""

    def first(self, run: str) -> Line | None:
        """The line with which a run begins."""
        ...

    def last(self) -> Line | None:
        """The last line of all."""
        ...

    def at_and_last(self, number: int) -> tuple[Line | None, Line | None]:
        """The line with this number, and the last line of all."""
        ...

    def at(self, number: int) -> Line | None:
        """The line with this number."""
        ...

    def lines(self, run: str | None = None, *, after: int = 0) -> Iterator[Line]:
        """All lines in order, or a run's; those with a larger number than ``after``."""
        ...

    def ends(self, run: str | None = None) -> Iterator[tuple[Line, Line]]:
        """The first and the last line of every run, in the order in which the runs began; or of one run."""
        ...

    def add(self, line: Line) -> None:
        """Keep one more line."""
        ...

    def now(self) -> str:
        """The time, by the clock of whatever keeps the lines."""
        ...

    def key(self) -> str:
        """The key of the marks; made on the first call."""
        ...


class MemoryPages:
    """Lines in memory."""

    def __init__(self, lines: list[Line]) -> None:
        self._lines = lines
        self._key = new_key()
        self._of_run: dict[str, list[Line]] = {"": list(lines)}

    def first(self, run: str) -> Line | None:
        return self._of_run[run][0] if run in self._of_run else None

    def last(self) -> Line | None:
        return self._lines[-1]

    def at_and_last(self, number: int) -> tuple[Line | None, Line | None]:
        return self.at(number), self.last()

    def at(self, number: int) -> Line | None:
        return self._lines[number - 1] if 0 < number <= len(self._lines) else None

    def lines(self, run: str | None = None, *, after: int = 0) -> Iterator[Line]:
        lines = self._lines if run is None else self._of_run.get(run, [])
        return iter(lines[bisect_right(lines, after, key=lambda line: line.number) :])

    def ends(self, run: str | None = None) -> Iterator[tuple[Line, Line]]:
        named = self._of_run if run is None else self._of_run.keys() & {run}
        return iter([(self._of_run[name][0], self._of_run[name][-1]) for name in named if name])

    def now(self) -> str:
        return clock()

    def key(self) -> str:
        return self._key

    def add(self, line: Line) -> None:
        self._lines.append(line)
        self._of_run.setdefault(line.run, []).append(line)


class Pen:
    """Adds lines to pages, inside one transaction: each after the last, with the sums that hold after it."""

    def __init__(self, pages: Pages, last: Line) -> None:
        self.pages = pages
        self.last = last
        self.has_written = False

    def write(
        self, kind: Kind, facts: dict[str, Any], *, total: Sums | None = None, run: str = "", of_run: Sums
    ) -> Line:
        """Add one line; the ledger's sums stay as they were unless ``total`` says."""
        total = self.last.total if total is None else total
        now = self.pages.now()
        self.last = Line.after(self.last, kind, facts, total=total, run=run, of_run=of_run, now=now)
        self.pages.add(self.last)
        self.has_written = True
        return self.last

    def is_kept(self, pages: Pages) -> bool:
        """Whether what this pen wrote last is there, in a later transaction."""
        kept = pages.at(self.last.number)
        return self.has_written and kept is not None and kept.hash == self.last.hash
