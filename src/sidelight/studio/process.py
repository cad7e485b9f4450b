"""Whether a process still runs: by its number and the moment it started, since numbers are used again."""

import os
import socket
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class Process:
    """A process, as a file can name it."""

    host: str
    pid: int
    started: str
    """When it started, as the system says it: another process of this number started at another moment."""

    @classmethod
    def own(cls) -> "Process":
        """The process that runs this."""
        return cls(host=socket.gethostname(), pid=os.getpid(), started=_started(os.getpid()) or "")

    @property
    def is_here(self) -> bool:
        """Whether it runs on this machine, or did."""
        return self.host == socket.gethostname()

    @property
    def is_alive(self) -> bool:
        """Whether it still runs. Of a process on another machine that is taken for granted."""
        return not self.is_here or _started(self.pid) == self.started


def _started(pid: int) -> str | None:
    """When a process started; None if there is none, or if it has ended and nobody has asked why yet."""
    try:
        # Behind the name in brackets, which may hold anything: the state, and 19 fields later the start.
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except FileNotFoundError:
        return None if Path("/proc/self/stat").exists() else _started_by_ps(pid)
    except (OSError, ValueError):
        return None
    return None if fields[0] in (b"Z", b"X") else f"{_boot()} {fields[19].decode()}"


@cache
def _boot() -> str:
    """The id of the machine's last start, from which the moments in /proc count."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()[:8]
    except OSError:
        return ""


def _started_by_ps(pid: int) -> str | None:
    """When a process started, as ``ps`` tells it: for systems without /proc."""
    told = subprocess.run(
        ["ps", "-o", "stat=,lstart=", "-p", str(pid)], capture_output=True, text=True, check=False
    ).stdout.strip()
    state, _, when = told.partition(" ")
    return None if not told or state.startswith("Z") else when.strip()
