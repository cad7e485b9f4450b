"""The worker: ``python -m sidelight.studio.worker FOLDER`` does what the job in that folder asks for.

It tells its progress in ``state.json``. SIGINT (and SIGTERM) stop it as Ctrl-C stops a command: a release
keeps what it paid for, and the same plan resumes.
"""

import contextlib
import signal
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import FrameType

from sidelight._faults import BAD_INPUT, BUG, INTERRUPTED, fault_of
from sidelight.errors import InputError, PrivacyWarning, PublicDataWarning, SidelightError
from sidelight.progress import one_line
from sidelight.studio import store
from sidelight.studio.jobs import Phase, Request, State, Status, is_late
from sidelight.studio.places import OWN, Place
from sidelight.studio.process import Process

_EVERY = 0.25
"""Seconds between two states on disk."""
_MOST_PHASES, _LONGEST = 40, 300
"""Phases that a state tells of, and characters of what one is doing."""
_STATUS: dict[int, Status] = {BUG: "failed", BAD_INPUT: "refused", 3: "refused", INTERRUPTED: "stopped"}
"""The status of a job, by the exit code of its worker."""


class Told:
    """Progress that is written into a file; that the disk is full does not stop the work."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "state.json"
        self._state = State(status="running", process=Process.own())
        self._open: list[int] = []
        self._began: list[float] = []
        self._last = 0.0
        self.write()

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        self._begin(name)
        try:
            yield
        finally:
            self._end()

    def step(self, what: str, *, share: float) -> None:
        if self._open:
            self._change(self._open[-1], what=one_line(what)[:_LONGEST], share=min(max(share, 0.0), 1.0))

    def turn(self, name: str) -> None:
        if self._open:
            self._end()
            self._begin(name)

    def ended(self, status: Status, message: str, remarks: list[str]) -> None:
        """The last state."""
        told = tuple(dict.fromkeys(remarks))[:20]
        self._state = replace(self._state, status=status, message=message, remarks=told)
        self.write()

    def write(self) -> None:
        """Put the state on disk."""
        self._last = time.monotonic()
        with contextlib.suppress(InputError):
            store.write(self._path, self._state)

    def _begin(self, name: str) -> None:
        phases = self._state.phases
        if len(phases) >= _MOST_PHASES:
            # The oldest that is over is forgotten; those that are open are still told of.
            gone = next(place for place in range(len(phases)) if place not in self._open)
            self._state = replace(self._state, phases=(*phases[:gone], *phases[gone + 1 :]))
            self._open = [place - (place > gone) for place in self._open]
            del self._began[gone]
        self._open.append(len(self._state.phases))
        self._began.append(time.monotonic())
        self._state = replace(self._state, phases=(*self._state.phases, Phase(name=one_line(name))))
        self._tell()

    def _end(self) -> None:
        place = self._open.pop()
        self._change(place, is_over=True, share=1.0)

    def _change(self, place: int, **facts: object) -> None:
        phases = list(self._state.phases)
        seconds = round(time.monotonic() - self._began[place], 1)
        phases[place] = replace(phases[place], seconds=seconds, **facts)  # type: ignore[arg-type]  # its fields
        self._state = replace(self._state, phases=tuple(phases))
        self._tell()

    def _tell(self) -> None:
        if time.monotonic() - self._last > _EVERY:
            self.write()


def main(folder: Path) -> int:
    """Do the job of a folder; the exit code is that of the command that would do the same."""
    _hear_interrupts()
    request = store.read(Request, folder / "request.json")
    if request is None or is_late(folder):
        return BAD_INPUT
    told = Told(folder)
    remarks: list[str] = []
    try:
        with warnings.catch_warnings():
            _keep_warnings(remarks)
            from sidelight.studio.tasks import TASKS

            place = Place(_project_of(folder))
            result = TASKS[request.kind](place, request, told)
            store.write(folder / "result.json", result)
        told.ended("done", "", remarks)
    except KeyboardInterrupt as stop:
        told.ended("cancelled", fault_of(stop).words, remarks)
        return INTERRUPTED
    except (SidelightError, MemoryError, OSError) as error:
        fault = fault_of(error)
        told.ended(_STATUS.get(fault.code, "refused"), fault.words, remarks)
        return fault.code
    except Exception as error:  # noqa: BLE001  # PRIVACY: its text may quote data, so its kind and place are told
        fault = fault_of(error)
        told.ended("failed", fault.words, remarks)
        return fault.code
    return 0


def _project_of(folder: Path) -> Path:
    """The project that a job's folder lies in."""
    home = folder.resolve().parents[1]
    assert home.name == OWN
    return home.parent


def _keep_warnings(remarks: list[str]) -> None:
    """Collect the two kinds of warnings that are for people; others may quote data."""
    warnings.simplefilter("ignore")
    warnings.simplefilter("always", PrivacyWarning)
    warnings.simplefilter("always", PublicDataWarning)
    warnings.showwarning = lambda message, *_: remarks.append(str(message))


def _hear_interrupts() -> None:
    """Ctrl-C works even if a shell started us deaf to it; being asked to terminate is the same."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        # By way of SIGINT, which is held back between a draw of noise and its line in the journal.
        signal.raise_signal(signal.SIGINT)

    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, interrupt)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
