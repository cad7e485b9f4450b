"""What people see while they wait: one bar per phase, and nothing private on it."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol


class Progress(Protocol):
    """A place that is told which phase runs and what has been done."""

    @contextmanager
    def phase(self, name: str, *, steps: int | None = None) -> Iterator[None]: ...
    def step(self, what: str, *, share: float | None = None) -> None: ...


class Silent:
    """Says nothing."""

    @contextmanager
    def phase(self, name: str, *, steps: int | None = None) -> Iterator[None]:
        yield

    def step(self, what: str, *, share: float | None = None) -> None:
        return


class Bars:
    """One rich bar per phase on standard error."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        self._bars = Progress(
            SpinnerColumn(),
            TextColumn("{task.description:<10}"),
            BarColumn(bar_width=24),
            TimeElapsedColumn(),
            TextColumn("{task.fields[what]}"),
            console=Console(stderr=True),
        )
        self._tasks: list[tuple[object, int | None]] = []

    @contextmanager
    def phase(self, name: str, *, steps: int | None = None) -> Iterator[None]:
        if not self._tasks:
            self._bars.start()
        task = self._bars.add_task(name, total=steps or 100, what="")
        self._tasks.append((task, steps))
        try:
            yield
            self._bars.update(task, completed=steps or 100, what="done")
        finally:
            self._tasks.pop()
            if not self._tasks:
                self._bars.stop()

    def step(self, what: str, *, share: float | None = None) -> None:
        if not self._tasks:
            return
        task, steps = self._tasks[-1]
        if share is not None:
            self._bars.update(task, completed=share * (steps or 100), what=what)  # type: ignore[arg-type]  # rich's TaskID
        else:
            self._bars.update(task, advance=1, what=what)  # type: ignore[arg-type]  # rich's TaskID


def progress_of(wanted: "bool | Progress") -> Progress:
    """Bars where a person watches, silence elsewhere."""
    if not isinstance(wanted, bool):
        return wanted
    return Bars() if wanted and sys.stderr.isatty() else Silent()
