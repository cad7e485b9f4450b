"""Every paid output on disk before it is used, so that a crashed run resumes without paying twice.

A checkpoint folder holds ``journal.jsonl``: a first line that names the run and fingerprints
its settings, then one line per event with the noisy output. All of it is released output,
as public as the release itself.

Resuming replays the mechanism from its start: the curator answers from the journal until
the journal ends, then goes on live. A process that died between paying and journalling has
paid for one output that nobody ever saw; that one output, and no other, is drawn anew.
"""

import base64
import fcntl
import hashlib
import json
import os
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from sidelight.errors import CheckpointError
from sidelight.privacy.event import Event

FORMAT = 1


def fingerprint(settings: Any) -> str:
    """A short hash of JSON-able settings: the same settings, the same run."""
    text = json.dumps(settings, sort_keys=True, ensure_ascii=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


@dataclass
class Journal:
    """The outputs of one run, in order."""

    run: str
    outputs: list[tuple[Event, NDArray[np.int64]]] = field(default_factory=list)
    _file: IO[bytes] | None = None

    @classmethod
    def in_memory(cls, run: str = "") -> "Journal":
        """A journal that keeps nothing: for runs without a checkpoint."""
        return cls(run)

    @classmethod
    def read_run(cls, folder: Path, settings: Any) -> str | None:
        """Which run this folder belongs to, or None if it is new; another run's settings are refused."""
        path = folder / "journal.jsonl"
        if not path.exists() or not path.stat().st_size:
            return None
        with path.open("rb") as lines:
            header = _parse(lines.readline(), path)
        if header.get("format") != FORMAT:
            raise CheckpointError(f"{folder} was written by another version of sidelight; use a new folder.")
        if header.get("fingerprint") != fingerprint(settings):
            raise CheckpointError(
                f"{folder} holds the checkpoint of a run with other data, settings or budget. "
                "Repeat that run's own command to resume it, or name a new folder."
            )
        return str(header["run"])

    @classmethod
    def open(cls, folder: Path, *, run: str, settings: Any) -> "Journal":
        """Start a journal, or take one up where it ended."""
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / "journal.jsonl"
        journal = cls(run)
        file = path.open("a+b")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            file.close()
            raise CheckpointError(f"another process is running from {folder} right now.") from error
        journal._file = file
        file.seek(0)
        content = file.read()
        # A line that was cut off by a crash was never used: forget it.
        keep = content.rfind(b"\n") + 1
        if keep < len(content):
            file.truncate(keep)
        lines = content[:keep].splitlines()
        if not lines:
            journal._write({"format": FORMAT, "run": run, "fingerprint": fingerprint(settings)})
        for line in lines[1:]:
            entry = _parse(line, path)
            journal.outputs.append((Event.from_json(entry["event"]), _unpack(entry["output"])))
        return journal

    def append(self, event: Event, output: NDArray[np.int64]) -> None:
        """Keep one paid output; returns once it is on disk."""
        self.outputs.append((event, output))
        if self._file is not None:
            self._write({"event": event.as_json(), "output": _pack(output)})

    def __enter__(self) -> "Journal":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let another process have the folder."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def discard(self) -> None:
        """Forget a run that paid for nothing."""
        if self._file is not None:
            self._file.truncate(0)

    def _write(self, entry: dict[str, Any]) -> None:
        assert self._file is not None
        self._file.write(json.dumps(entry, ensure_ascii=False).encode() + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())


def _pack(output: NDArray[np.int64]) -> str:
    return base64.b64encode(zlib.compress(output.astype("<i8").tobytes(), 1)).decode()


def _unpack(text: str) -> NDArray[np.int64]:
    return np.frombuffer(zlib.decompress(base64.b64decode(text)), dtype="<i8").astype(np.int64)


def _parse(line: bytes, path: Path) -> dict[str, Any]:
    try:
        entry = json.loads(line)
    except json.JSONDecodeError as error:
        raise CheckpointError(f"{path} is not a journal, or was edited.") from error
    if not isinstance(entry, dict):
        raise CheckpointError(f"{path} is not a journal, or was edited.")
    return entry
