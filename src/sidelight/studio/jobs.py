"""Long work, in a process of its own that survives the page and the server.

    jobs/ID/request.json   what is to be done, and who asked; written before the worker starts
    jobs/ID/state.json     how far it is: written by the worker alone, whole or not at all
    jobs/ID/result.json    what came of it

A state that says "running" while its process is gone means that the worker was killed. Nothing else is needed
to find a worker again after the studio was restarted, or from a second studio.
"""

import os
import secrets
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from sidelight._foreign import parse_json, read_text
from sidelight.errors import InputError
from sidelight.studio import store
from sidelight.studio.places import Place
from sidelight.studio.process import Process

Kind = Literal["draft", "check", "rehearse", "plan", "release", "sample"]
Status = Literal["starting", "running", "done", "refused", "cancelled", "stopped", "failed", "died"]
"""``refused``: nothing was spent. ``cancelled``, ``stopped`` (by memory or disk), ``died``: a release can be
resumed. ``failed``: a bug."""
STARTS_WITHIN = 60.0
"""Seconds after which a worker that has written no state is taken for dead."""
_GIVES_UP_BEFORE = 10.0
"""A worker that comes late gives up by itself so many seconds sooner."""
_KEPT = 40
"""Finished jobs that are kept."""
_MOST_AT_ONCE = 4
"""Most workers of a project; releases are always let in."""
_MOST_REQUESTS = 2000
_requests: "dict[Path, Request]" = {}
_children: "list[subprocess.Popen[bytes]]" = []


@dataclass(frozen=True, kw_only=True)
class Request:
    """The task of a worker."""

    kind: Kind
    asked_by: str
    when: str
    args: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Phase:
    """One phase of the work, as a progress bar would show it."""

    name: str
    share: float | None = None
    """How much of it is over; None where nobody knows."""
    what: str = ""
    seconds: float = 0.0
    is_over: bool = False


@dataclass(frozen=True, kw_only=True)
class State:
    """How far a worker is."""

    status: Status
    process: Process | None = None
    phases: tuple[Phase, ...] = ()
    message: str = ""
    """How it ended, in a sentence."""
    remarks: tuple[str, ...] = ()
    """Warnings on the way: nothing of them is private."""


class Job:
    """One piece of work, by its folder."""

    def __init__(self, folder: Path, request: Request) -> None:
        self.folder, self.request = folder, request

    @property
    def id(self) -> str:
        """The job's name in addresses."""
        return self.folder.name

    def state(self) -> State:
        """How far it is; a worker that is gone without having ended has died."""
        found = store.read(State, self.folder / "state.json")
        if found is None:
            return State(status="starting" if _age(self.folder) < STARTS_WITHIN else "died")
        if found.status == "running" and found.process is not None and not found.process.is_alive:
            # It may have written its last words since.
            again = store.read(State, self.folder / "state.json")
            if again is not None and again.status == "running":
                return State(status="died", process=found.process, phases=found.phases, remarks=found.remarks)
            return again or found
        return found

    @property
    def is_over(self) -> bool:
        """Whether nothing more will come of it."""
        return self.state().status not in ("starting", "running")

    def result(self) -> Any:
        """The result, in plain values; None before it is done."""
        path = self.folder / "result.json"
        return parse_json(read_text(path)) if path.is_file() else None

    def cancel(self) -> bool:
        """Ask the worker to stop, as Ctrl-C does; whether there was one to ask."""
        process = self.state().process
        if process is None or not process.is_here or not process.is_alive:
            return False
        try:
            os.kill(process.pid, signal.SIGINT)
        except ProcessLookupError:
            return False
        return True


class Jobs:
    """The jobs of a project."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._folder = store.private_folder(place.own / "jobs")

    def start(self, kind: Kind, asked_by: str, **args: Any) -> Job:
        """Begin a piece of work in a worker of its own."""
        _reap()
        if kind != "release" and sum(not job.is_over for job in self.all()) >= _MOST_AT_ONCE:
            raise InputError(
                f"{_MOST_AT_ONCE} pieces of work are under way in this project. Wait until one of them ends."
            )
        self._tidy()
        when = datetime.now(UTC)
        folder = self._folder / f"{when:%Y%m%d-%H%M%S-%f}-{secrets.token_hex(2)}"
        store.private_folder(folder)
        request = Request(kind=kind, asked_by=asked_by, when=when.isoformat(timespec="seconds"), args=args)
        store.write(folder / "request.json", request)
        spawn(folder, self._place.path)
        return Job(folder, request)

    def get(self, name: str) -> Job | None:
        """The job of this name; None where there is none."""
        if not name.replace("-", "").isalnum():
            return None
        folder = self._folder / name
        request = _request(folder / "request.json")
        return None if request is None else Job(folder, request)

    def all(self, kind: Kind | None = None) -> Iterator[Job]:
        """The jobs of a kind, the latest first."""
        for folder in sorted(self._folder.iterdir(), reverse=True):
            job = self.get(folder.name)
            if job is not None and kind in (None, job.request.kind):
                yield job

    def latest(self, kind: Kind) -> Job | None:
        """The latest job of a kind; None where there is none."""
        return next(self.all(kind), None)

    def _tidy(self) -> None:
        """Remove the folders of old jobs that are over; what releases did is in plans and ledger."""
        for job in list(self.all())[_KEPT:]:
            if job.is_over:
                shutil.rmtree(job.folder, ignore_errors=True)


def _request(path: Path) -> Request | None:
    """The task of a job. It is written once, and pages look at all of them, so it is read once."""
    found = _requests.get(path)
    if found is None:
        found = store.read(Request, path)
        if found is not None:
            if len(_requests) >= _MOST_REQUESTS:
                _requests.clear()
            _requests[path] = found
    return found if path.parent.is_dir() else None


def is_late(folder: Path) -> bool:
    """Whether a worker comes too late: the studio may take it for dead by now, and let another begin."""
    return _age(folder) > STARTS_WITHIN - _GIVES_UP_BEFORE


def _age(folder: Path) -> float:
    """Seconds since a job was asked for, as long as its worker has written nothing."""
    return time.time() - folder.stat().st_mtime


def spawn(folder: Path, home: Path) -> None:
    """Start the worker of a job: in a session of its own, so that no Ctrl-C of the studio's reaches it.

    PRIVACY: it has no output. Whatever a library prints may hold data; the worker writes its own sentences.
    """
    # -P: nothing in the project's folder is taken for a module.
    command = [sys.executable, "-P", "-m", "sidelight.studio.worker", str(folder)]
    nowhere = subprocess.DEVNULL
    _children.append(
        subprocess.Popen(
            command, cwd=home, stdin=nowhere, stdout=nowhere, stderr=nowhere, start_new_session=True
        )
    )


def _reap() -> None:
    """Ask after workers that have ended, so that the system forgets them."""
    _children[:] = [child for child in _children if child.poll() is None]
