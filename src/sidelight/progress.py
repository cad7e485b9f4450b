"""Progress bars: one for each phase, with nothing private on them.

The phases of a run are plan, read, the rounds of the mechanism, and fit; the first counting of the
table has a bar inside the rounds. A step tells outputs that were paid for, such as a selected
marginal, and how much of the budget is left; counting tells which share of it is done, in whole per cent.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol
from unicodedata import category

if TYPE_CHECKING:
    from rich.progress import TaskID

_REFRESHES = 2
"""How often a second the bars are redrawn."""


class Progress(Protocol):
    """Is told which phase runs and what has been done."""

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """A phase that lasts as long as the block; it may lie inside another."""
        ...

    def step(self, what: str, *, share: float) -> None:
        """Something was done; ``share`` of the phase is over."""
        ...

    def turn(self, name: str) -> None:
        """End the innermost phase early; the rest of its block is a phase of this name."""
        ...


class Silent:
    """Says nothing."""

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        yield

    def step(self, what: str, *, share: float) -> None:
        return

    def turn(self, name: str) -> None:
        return


class Bars:
    """One rich bar per phase on standard error."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
        from rich.table import Column

        # Names of attributes are other people's text: they are no markup, and fill no second line.
        one_line = Column(no_wrap=True, overflow="ellipsis")
        self._bars = Progress(
            SpinnerColumn(),
            TextColumn("{task.description:<10}", markup=False),
            BarColumn(bar_width=24),
            TimeElapsedColumn(),
            TextColumn("{task.fields[what]}", markup=False, table_column=one_line),
            console=Console(stderr=True),
            refresh_per_second=_REFRESHES,
        )
        self._open: list[TaskID] = []

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        if not self._open:
            self._bars.start()
        self._open.append(self._begin(name))
        try:
            yield
            self._finish(self._open[-1])
        except BaseException:
            self._bars.update(self._open[-1], what="stopped")
            raise
        finally:
            self._bars.stop_task(self._open.pop())
            if not self._open:
                self._bars.stop()
                for task in self._bars.task_ids:  # they stay on the screen; none is drawn a second time
                    self._bars.remove_task(task)

    def step(self, what: str, *, share: float) -> None:
        if self._open:
            self._bars.update(self._open[-1], total=1.0, completed=share, what=one_line(what))

    def turn(self, name: str) -> None:
        if self._open:
            self._finish(self._open[-1])
            self._bars.stop_task(self._open[-1])
            self._open[-1] = self._begin(name)

    def _begin(self, name: str) -> "TaskID":
        return self._bars.add_task(one_line(name), total=None, what="")

    def _finish(self, task: "TaskID") -> None:
        self._bars.update(task, total=1.0, completed=1.0, what="done")


def in_percent(tell: Callable[[float], None]) -> Callable[[float], None]:
    """Tells every whole per cent once, and in order, however often it is itself told.

    PRIVACY: in how many parts a table is counted follows from its number of records, and must not be seen.

    >>> shares = []
    >>> hear = in_percent(shares.append)
    >>> hear(0.021), hear(0.022), hear(1.0)
    (None, None, None)
    >>> shares[:4], len(shares)
    ([0.01, 0.02, 0.03, 0.04], 100)
    """
    told = 0

    def hear(share: float) -> None:
        nonlocal told
        while told < min(int(100 * share), 100):
            told += 1
            tell(told / 100)

    return hear


def progress_of(wanted: "bool | Progress") -> Progress:
    """Bars where a person watches, silence elsewhere."""
    if not isinstance(wanted, bool):
        return wanted
    return Bars() if wanted and sys.stderr.isatty() else Silent()


def plain(text: str) -> str:
    """Text without the control characters that would move a terminal's cursor; lines stay lines.

    >>> plain("age" + chr(27) + "[2J, sex")
    'age�[2J, sex'
    """
    return "".join(letter if _is_plain(letter) else "�" for letter in text)


def _is_plain(letter: str) -> bool:
    """Whether a character is only displayed: no terminal command, no change of the text's direction."""
    # Several scripts need two joiners within words, and spaces of other widths.
    return letter in "\n\t\u200c\u200d" or letter.isprintable() or category(letter) == "Zs"


def one_line(text: str) -> str:
    """The text on one line, so that a label cannot look like another row.

    >>> one_line("age" + chr(10) + "sex")
    'age�sex'
    """
    return plain(text).translate({ord(letter): "�" for letter in "\n\t"})
