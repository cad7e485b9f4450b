"""Every paid output on disk before it is used, so that a crashed run resumes without paying twice.

A checkpoint folder holds ``journal.jsonl``: a first line that names the run and fingerprints
its settings, then one line per event with the noisy output and the ticket under which the ledger
knows of its draw. All of it is released output; until the release is published, it is its owner's
alone to read. The first line also holds marks of the private and the public tables (``privacy/marks.py``),
and ``key`` their key, so that no other table is taken for the run's own.

The first line is on disk before the run begins in its ledger, so no process can die in between
and leave an allotment set aside that no process can find again.

Resuming replays the mechanism from its start: the curator answers from the journal until
the journal ends, then goes on live. A journal proves nothing by itself: it can be copied, cut and put
back. What counts as paid is what the ledger says was drawn, ticket by ticket (see ``door``).
"""

import base64
import contextlib
import fcntl
import hashlib
import json
import os
import re
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from sidelight._files import named
from sidelight._foreign import ForeignError, most_bytes, parse_json
from sidelight.errors import CheckpointError, SidelightError
from sidelight.privacy.event import Event
from sidelight.privacy.marks import Marks, new_key, same_table

FORMAT = 2
_NAME = "journal.jsonl"
_FRAME = 1024
"""Bytes of a line beside its event and its output: more than there are."""
_BYTES_PER_NUMBER = 12
"""Most bytes that a number takes in a line: 8 that cannot be compressed, in base64."""
FILES = (_NAME, "key")
"""The files of a checkpoint folder."""

Tables = Mapping[str, Marks]
"""The marks of a run's tables, by their part in it: private, public, public 2, …"""


def fingerprint(settings: Any) -> str:
    """A short hash of settings: a run resumes only with the same settings."""
    text = json.dumps(settings, sort_keys=True, ensure_ascii=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


@dataclass(frozen=True, eq=False)
class Kept:
    """One output that was paid for and drawn."""

    event: Event
    output: NDArray[np.int64]
    ticket: str
    """The ticket under which the ledger knows the draw."""


@dataclass
class Journal:
    """The outputs of one run, in order."""

    run: str
    outputs: list[Kept] = field(default_factory=list)
    """The outputs it held when it was opened. Later ones are written, but not needed again."""
    key: str = field(default_factory=new_key, repr=False)
    """The key of this run's marks and choices: the folder's, or one that nobody else ever has."""
    _tables: Tables = field(default_factory=dict)
    _file: IO[bytes] | None = None
    _end: int = 0
    """Where the next line begins."""

    @classmethod
    def in_memory(cls, run: str = "") -> "Journal":
        """A journal that keeps nothing: for runs without a checkpoint."""
        return cls(run)

    @classmethod
    def read_run(cls, folder: Path, settings: Any) -> str | None:
        """The run that this folder belongs to, or None if it is new; other settings are refused."""
        path = folder / _NAME
        try:
            with path.open("rb") as lines:
                first = lines.readline()
        except FileNotFoundError:
            _check_is_ours(folder)
            return None
        except OSError as error:
            raise _unusable(folder, error) from error
        # A first line that was cut off by a crash names a run that never began.
        return _run_of(first, path, settings) if first.endswith(b"\n") else None

    @classmethod
    def remove(cls, folder: Path) -> None:
        """Remove the journal, and its folder if nothing else is in it."""
        with contextlib.suppress(OSError):
            for name in reversed(FILES):  # the journal last: it says whose folder this is
                (folder / name).unlink(missing_ok=True)
            folder.rmdir()

    @classmethod
    def run_in(cls, folder: Path) -> str | None:
        """The run that this folder belongs to, whatever its settings."""
        path = folder / _NAME
        if not path.is_file():
            return None
        with path.open("rb") as lines:
            run = _parse(lines.readline(), path).get("run")
        return run if isinstance(run, str) else None

    @classmethod
    def open(
        cls, folder: Path, *, run: str, settings: Any, tables: Callable[[str], Tables] | None = None
    ) -> "Journal":
        """Start the journal of ``run``, or continue the one that the folder holds.

        ``tables`` gives the marks of the run's tables under a key: a run with others is refused.
        """
        path = folder / _NAME
        journal = cls(run)
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            file = os.fdopen(_own(path), "r+b", buffering=0)
        except OSError as error:
            raise _unusable(folder, error) from error
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            file.close()
            raise CheckpointError(
                f"another process is running from {folder} right now. Wait for its end, or name a new folder."
            ) from error
        journal._file = file
        content = file.read()
        # After the last whole line stands one that a crash cut off, which nobody used, or empty room.
        keep = journal._end = content.rfind(b"\n") + 1
        if keep < len(content):
            file.truncate(keep)
        try:
            if tables is not None:
                journal.key = _key(folder, is_new=not keep)
                journal._tables = tables(journal.key)
            journal._read(content[:keep].splitlines(keepends=True), path, settings)
        except BaseException:
            journal.close()
            raise
        return journal

    def _read(self, lines: list[bytes], path: Path, settings: Any) -> None:
        if not lines:
            self.restart(self.run, settings)
            _sync_folder(path.parent)
            return
        self.run = _run_of(lines[0], path, settings)
        self._require_same_tables(_parse(lines[0], path), path)
        for line in lines[1:]:
            entry = _parse(line, path)
            try:
                kept = Kept(Event.from_json(entry["event"]), _unpack(entry["output"]), entry["ticket"])
            except (SidelightError, LookupError, TypeError, ValueError, zlib.error) as error:
                raise _edited(path) from error
            if not isinstance(kept.ticket, str) or not kept.ticket:
                raise _edited(path)
            self.outputs.append(kept)
        if len({kept.ticket for kept in self.outputs}) < len(self.outputs):
            raise _edited(path)

    def _require_same_tables(self, header: dict[str, Any], path: Path) -> None:
        kept = header.get("tables", {})
        if not isinstance(kept, dict) or not all(isinstance(marks, dict) for marks in kept.values()):
            raise _edited(path)
        for name in self._tables.keys() | kept.keys():
            ours, theirs = self._tables.get(name, {}), kept.get(name, {})
            if (name in self._tables) != (name in kept) or same_table(ours, theirs) is False:
                raise CheckpointError(
                    f"{path.parent} holds the checkpoint of a run on another {name} table, or that table has "
                    "changed since. Repeat that run's own command to resume it, or name a new folder."
                )

    def make_room(self, event: Event, numbers: int) -> None:
        """Take room on the disk for an output of so many numbers.

        Called before noise is drawn, so that a full disk loses nothing that was drawn: what is kept later
        needs no more room than this.
        """
        if self._file is not None:
            told = len(json.dumps(event.as_json(), ensure_ascii=False).encode())
            self._put(bytes(told + _FRAME + _BYTES_PER_NUMBER * numbers))

    def append(self, event: Event, output: NDArray[np.int64], ticket: str) -> None:
        """Keep one output that was drawn; returns once it is on disk."""
        if self._file is not None:
            self._write({"event": event.as_json(), "output": _pack(output), "ticket": ticket})

    def __enter__(self) -> "Journal":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Release the folder to other processes."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def discard(self) -> None:
        """Forget a run that paid for nothing."""
        if self._file is not None:
            self._file.truncate(0)
            self._end = 0

    def restart(self, run: str, settings: Any) -> None:
        """Begin the journal of another run, which has paid for nothing yet."""
        self.discard()
        self.run = run
        self.outputs.clear()
        header = {"format": FORMAT, "run": run, "fingerprint": fingerprint(settings), "tables": self._tables}
        self._write(header)

    def _write(self, entry: dict[str, Any]) -> None:
        assert self._file is not None
        line = json.dumps(entry, ensure_ascii=False).encode() + b"\n"
        self._put(line)
        self._end += len(line)
        self._file.truncate(self._end)  # room that was not needed
        os.fsync(self._file.fileno())

    def _put(self, content: bytes) -> None:
        """Write after the last line, over whatever stands there."""
        assert self._file is not None
        self._file.seek(self._end)
        left = memoryview(content)
        while left:  # a disk that is almost full takes a part
            left = left[self._file.write(left) :]


def _key(folder: Path, *, is_new: bool) -> str:
    """The key of the folder's marks; made with the folder.

    Half a key that a full disk left behind was never used, if the journal has no line yet: it is made anew.
    """
    path = folder / "key"
    try:
        with os.fdopen(_own(path), "r+", encoding="ascii") as file:
            key = file.read().strip()
            if not key or (is_new and len(key) < len(new_key())):
                key = new_key()
                file.seek(0)
                file.write(key)
                file.flush()
                os.fsync(file.fileno())
    except (OSError, UnicodeDecodeError) as error:
        raise CheckpointError(f"{path} cannot be read; name a new folder.") from error
    if not re.fullmatch("[0-9a-f]{64}", key):
        raise CheckpointError(f"{path} was edited. Put back what the run wrote, or name a new folder.")
    return key


def _pack(output: NDArray[np.int64]) -> str:
    return base64.b64encode(zlib.compress(output.astype("<i8").tobytes(), 1)).decode()


def _unpack(text: str) -> NDArray[np.int64]:
    unpacker = zlib.decompressobj()
    content = unpacker.decompress(base64.b64decode(text, validate=True), most_bytes())
    if not unpacker.eof:
        raise ValueError("an output is cut off, or larger than any run's")
    return np.frombuffer(content, dtype="<i8").astype(np.int64)


def _run_of(first: bytes, path: Path, settings: Any) -> str:
    header = _parse(first, path)
    if header.get("format") != FORMAT:
        raise CheckpointError(
            f"{path.parent} was written by another version of sidelight, which keeps other journals. Finish "
            "the run with that version; or close it (`sidelight ledger close`) and name a new folder."
        )
    if header.get("fingerprint") != fingerprint(settings):
        raise CheckpointError(
            f"{path.parent} holds the checkpoint of a run with another schema, workload, "
            "budget or other settings. Repeat that run's own command to resume it, or name a new folder."
        )
    if not isinstance(header.get("run"), str) or not header["run"]:
        raise _edited(path)
    return str(header["run"])


def _parse(line: bytes, path: Path) -> dict[str, Any]:
    try:
        entry = parse_json(line)
    except ForeignError as error:
        raise _edited(path) from error
    if not isinstance(entry, dict):
        raise _edited(path)
    return entry


def _edited(path: Path) -> CheckpointError:
    return CheckpointError(
        f"{path} is not a journal, or was edited. Put back the file that the run wrote, or name a new folder."
    )


def _check_is_ours(folder: Path) -> None:
    """Refuse a folder that holds other files, before anything is paid."""
    named(folder, "a checkpoint")
    if folder.is_dir() and {path.name for path in folder.iterdir()} - set(FILES):
        raise CheckpointError(
            f"{folder} holds files, but no journal of a run; a checkpoint needs a folder of its own. Name "
            "another one (checkpoint=…, --checkpoint). Nothing was charged."
        )


def _unusable(folder: Path, error: OSError) -> CheckpointError:
    return CheckpointError(
        f"{folder} cannot hold a checkpoint: {error.strerror or 'the disk refused'}. Name another folder "
        "(checkpoint=…, --checkpoint)."
    )


def _own(path: Path) -> int:
    """Open a file, or make it, and let only its owner read it, even if a copy had wider permissions."""
    file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    status = os.fstat(file)
    if status.st_mode & 0o077 and status.st_uid == os.geteuid():
        os.fchmod(file, 0o600)
    return file


def _sync_folder(folder: Path) -> None:
    """Make a new file's name survive a power cut, as its content does."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
