"""Runs cases one after another in one process, under limits of memory and time; one JSON line a case.

    python tests/fuzz/worker.py MATERIAL SEED FIRST STOP

Repeats one case and shows all of it: python tests/fuzz/worker.py --show SEED NUMBER
"""

import contextlib
import json
import os
import resource
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path
from types import FrameType

sys.path.insert(0, str(Path(__file__).resolve().parent))
import material
import verdict
from cases import Maker

SECONDS = 20
"""Processor seconds after which a case hangs: a busy machine does not change them. One that waits for
ever takes none, and `fuzz.py` ends its process."""
MEMORY = 4 << 30


class HangError(BaseException):
    """A case took too long; no handler of exceptions catches this."""


def _ring(_: int, __: FrameType | None) -> None:
    raise HangError


def run(seed: int, number: int, templates: Path, root: Path) -> verdict.Outcome:
    """One case in a fresh folder."""
    folder = root / f"{number}" / "work"
    folder.mkdir(parents=True)
    try:
        argv = Maker(seed, number, templates, folder).argv()
        there = _files(folder)
        before = verdict.ledgers(folder)
        code: object
        out = err = ""
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        try:
            code, out, err = material.run_here(argv, folder)
        except HangError:
            code = f"no end after {SECONDS} processor seconds"
        except BaseException as error:  # noqa: BLE001  # whatever escapes is what the fuzzer looks for
            code = f"an escaped {type(error).__name__}: {error}"
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
        written = {
            str(path): path.read_bytes() for path in _files(folder) - there if "PRIVATE" not in path.name
        }
        return verdict.Outcome(argv, code, out, err, before, verdict.ledgers(folder), written)
    finally:
        shutil.rmtree(root / f"{number}", ignore_errors=True)


def _files(folder: Path) -> set[Path]:
    return {path for path in folder.rglob("*") if path.is_file()}


def main() -> None:
    signal.signal(signal.SIGPROF, _ring)
    show = sys.argv[1] == "--show"
    with tempfile.TemporaryDirectory() as root:
        if show:
            seed, first = int(sys.argv[2]), int(sys.argv[3])
            templates, stop = Path(root) / "material", first + 1
            templates.mkdir()
            material.make(templates)
        else:
            templates, (seed, first, stop) = Path(sys.argv[1]), map(int, sys.argv[2:5])
        _warm_up(templates)
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        for number in range(first, stop):
            start = time.perf_counter()
            outcome = run(seed, number, templates, Path(root))
            line = {
                "number": number,
                "code": str(outcome.code),
                "seconds": round(time.perf_counter() - start, 3),
            }
            if found := verdict.faults(outcome):
                line |= {"faults": found, "argv": [arg[:200] for arg in outcome.argv]}
            if show:
                line |= {"argv": outcome.argv, "out": outcome.out, "err": outcome.err}
            sys.stdout.write(json.dumps(line) + "\n")
            sys.stdout.flush()


def _warm_up(templates: Path) -> None:
    """Import what commands import when they are called, before memory is limited."""
    import duckdb

    import sidelight.mechanisms.aperture.aperture
    import sidelight.reports.report  # noqa: F401

    os.environ.pop("SIDELIGHT_DEBUG", None)
    with contextlib.suppress(OSError):
        duckdb.connect().execute("SELECT 1")


if __name__ == "__main__":
    main()
