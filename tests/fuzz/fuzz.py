"""Many random commands, in several processes: what ended wrongly, and how to repeat it.

    python tests/fuzz/fuzz.py --cases 50000 --seed 1

Each case has a number, and depends on the seed and that number alone.
"""

import argparse
import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import material  # noqa: E402  # this folder is no package

_PATIENCE = 180.0
"""Seconds without a line after which a process is taken for stuck, and its case for the reason."""
_AT_ONCE = 250
"""Cases that a process is given: what one leaves behind in memory does not pile up for thousands."""


@dataclass
class Findings:
    """What came of all cases."""

    cases: int = 0
    codes: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)
    """One line a fault, with the command that repeats it."""
    tell: Callable[[str], None] = lambda _: None
    """Hears of each fault when it is found, and of every thousandth case."""

    def add(self, seed: int, line: dict[str, Any]) -> None:
        """Count one case in."""
        self.cases += 1
        self.codes[line["code"][:60]] += 1
        for fault in line.get("faults", []):
            repeat = f"python tests/fuzz/worker.py --show {seed} {line['number']}"
            self.faults.append(f"{fault} | {line.get('argv')} | repeat: {repeat}")
            self.tell(self.faults[-1])
        if self.cases % 1000 == 0:
            self.tell(f"{self.cases:,} cases, {len(self.faults)} faults")


def fuzz(
    cases: int, seed: int, *, processes: int = 2, first: int = 0, tell: Callable[[str], None] = lambda _: None
) -> Findings:
    """Run so many cases; the same seed gives the same ones."""
    findings = Findings(tell=tell)
    todo: queue.SimpleQueue[tuple[int, int]] = queue.SimpleQueue()
    for start in range(first, first + cases, _AT_ONCE):
        todo.put((start, min(start + _AT_ONCE, first + cases)))
    lock = threading.Lock()
    with tempfile.TemporaryDirectory() as folder:
        material.make(Path(folder))

        def work() -> None:
            while True:
                try:
                    start, stop = todo.get_nowait()
                except queue.Empty:
                    return
                for line in _lines(Path(folder), seed, start, stop):
                    with lock:
                        findings.add(seed, line)

        threads = [threading.Thread(target=work) for _ in range(processes)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    return findings


def _lines(folder: Path, seed: int, start: int, stop: int) -> Iterator[dict[str, Any]]:
    """What a process says of these cases; one that it dies or stops on is a fault, and the rest goes on."""
    while start < stop:
        command = [sys.executable, str(HERE / "worker.py"), str(folder), str(seed), str(start), str(stop)]
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env={**os.environ, "COLUMNS": "200"}
        ) as process:
            assert process.stdout is not None
            watch = _Watch(process)
            for text in process.stdout:
                watch.restart()
                line = json.loads(text)
                start = line["number"] + 1
                yield line
            watch.stop()
        if start < stop:
            fault = f"its process ended with {process.returncode}"
            yield {"number": start, "code": "dead", "faults": [fault]}
            start += 1


class _Watch:
    """Ends a process that says nothing for long."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self._timer = self._started()

    def _started(self) -> threading.Timer:
        timer = threading.Timer(_PATIENCE, self._process.kill)
        timer.daemon = True
        timer.start()
        return timer

    def restart(self) -> None:
        """It spoke."""
        self._timer.cancel()
        self._timer = self._started()

    def stop(self) -> None:
        """It is done."""
        self._timer.cancel()


def main() -> None:
    """Print what was found; exit code 1 where anything was."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--cases", type=int, default=5000)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--first", type=int, default=0)
    options.add_argument("--processes", type=int, default=2)
    given = options.parse_args()

    def tell(text: str) -> None:
        sys.stdout.write(text + "\n")
        sys.stdout.flush()

    findings = fuzz(given.cases, given.seed, processes=given.processes, first=given.first, tell=tell)
    codes = ", ".join(f"{code}: {number:,}" for code, number in sorted(findings.codes.items()))
    tell(f"{findings.cases:,} cases; exit codes {codes}")
    sys.exit(1 if findings.faults else 0)


if __name__ == "__main__":
    main()
