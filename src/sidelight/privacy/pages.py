"""Where a ledger's lines are kept: in memory (here), or in a database (``sql_ledger``).

The ledger (``chained_ledger``) decides which line comes next; its pages only store and find lines.
"""

from bisect import bisect_right
from collections.abc import Iterator
from typing import Protocol

from sidelight.privacy.chain import Line
from sidelight.privacy.marks import new_key


class Pages(Protocol):
    """Where lines are kept, inside one transaction."""

    def first(self, run: str) -> Line | None:
        """The line with which a run begins."""
        ...

    def last(self, run: str | None = None) -> Line | None:
        """The last line of all, or of a run."""
        ...

    def at(self, number: int) -> Line | None:
        """The line with this number."""
        ...

    def lines(self, run: str | None = None, *, after: int = 0) -> Iterator[Line]:
        """All lines in order, or a run's; those with a larger number than ``after``."""
        ...

    def add(self, line: Line) -> None:
        """Keep one more line."""
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
        return self._of_run.get(run, [None])[0]

    def last(self, run: str | None = None) -> Line | None:
        return self._lines[-1] if run is None else self._of_run.get(run, [None])[-1]

    def at(self, number: int) -> Line | None:
        return self._lines[number - 1] if number <= len(self._lines) else None

    def lines(self, run: str | None = None, *, after: int = 0) -> Iterator[Line]:
        lines = self._lines if run is None else self._of_run.get(run, [])
        return iter(lines[bisect_right(lines, after, key=lambda line: line.number) :])

    def key(self) -> str:
        return self._key

    def add(self, line: Line) -> None:
        self._lines.append(line)
        self._of_run.setdefault(line.run, []).append(line)
