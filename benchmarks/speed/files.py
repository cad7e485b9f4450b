"""A whole release of a file that is not loaded: time, peak memory, passes, bytes beside the disk's limit.

A Parquet file of 12 coded attributes (those of ``spark.py``) is released by a mechanism over all three-way
marginals, in a process of its own. Reading and counting, which grow with records, are told apart from the
rest, which does not. Bytes are those that the process asked the system for. The disk's limit is the speed at
which the same file is read plainly, after the system was asked to forget it; it often remembers.

    python benchmarks/speed/files.py [--records 10000000] [--mechanism aim] [--tables FOLDER]

The table is made once, into the folder of ``--tables``, or into one that is removed afterwards.
"""

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from spark import SIZES, write_table

import sidelight as sl
from sidelight.data.engines.duckdb import DuckDBSource
from sidelight.data.schema import Schema
from sidelight.releases.plan import Plan
from sidelight.testing import SeededNoise

RESULT = Path(__file__).resolve().parents[1] / "results" / "files.json"
BLOCK = 1 << 22


def forget(path: Path) -> None:
    """Ask the system to drop what it remembers of the file."""
    with path.open("rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def plain_read(path: Path) -> float:
    """Bytes a second."""
    forget(path)
    start = time.perf_counter()
    with path.open("rb", buffering=0) as file:
        while file.read(BLOCK):
            pass
    return path.stat().st_size / (time.perf_counter() - start)


def bytes_asked_for() -> int:
    fields = dict(line.split(": ") for line in Path("/proc/self/io").read_text().splitlines())
    return int(fields["rchar"])


class Watch:
    """A progress that takes the time of reading and of counting."""

    def __init__(self) -> None:
        self.spent: dict[str, float] = {}

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        start = time.perf_counter(), time.process_time()
        yield
        took = time.perf_counter() - start[0], time.process_time() - start[1]
        for what, seconds in zip(("wall", "processor"), took, strict=True):
            key = f"{name}_{what}"
            self.spent[key] = self.spent.get(key, 0.0) + seconds

    def step(self, what: str, *, share: float) -> None:
        pass

    def turn(self, name: str) -> None:
        pass


def measure(path: Path, mechanism: str) -> dict[str, float]:
    """In a child process: one release."""
    reads = 0
    for name in ("fetch", "stream"):
        whole = getattr(DuckDBSource, name)

        def noted(self, sql, whole=whole):
            nonlocal reads
            reads += 1
            return whole(self, sql)

        setattr(DuckDBSource, name, noted)
    asked = {
        "schema": Schema.from_domain(SIZES), "epsilon": 1.0, "delta": 1e-9, "workload": "3-way",
        "mechanism": mechanism, "bins": "as declared",
    }  # fmt: skip
    small = {"max_model_mb": 1}  # the fit is not what is measured here
    planned, watch = Plan.of(**asked, settings=small).passes, Watch()
    forget(path)
    start, spent, before = time.perf_counter(), time.process_time(), bytes_asked_for()
    sl.release(path, **asked, **small, noise=SeededNoise(1), progress=watch)
    seconds, asked_for = time.perf_counter() - start, bytes_asked_for() - before
    return {
        "wall": seconds,
        "processor": time.process_time() - spent,
        **{name: spent for name, spent in watch.spent.items() if name.startswith(("read_", "count_"))},
        "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10,
        "passes": reads,
        "passes_planned": planned,
        "read_mib": asked_for / 2**20,
        "read_mib_a_second": asked_for / 2**20 / (watch.spent["read_wall"] + watch.spent["count_wall"]),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=10_000_000)
    parser.add_argument("--mechanism", default="aim")
    parser.add_argument("--tables", type=Path, help="a folder that keeps the table for the next run")
    parser.add_argument("--measure", nargs=2)
    asked = parser.parse_args()
    if asked.measure:
        print(json.dumps(measure(Path(asked.measure[0]), asked.measure[1])))
        return
    result = json.loads(RESULT.read_text()) if RESULT.exists() else {"what": __doc__.splitlines()[0]}
    result["machine"] = {"cpus": os.cpu_count(), "python": platform.python_version(), "numpy": np.__version__}
    with tempfile.TemporaryDirectory() as folder:
        path = (asked.tables or Path(folder)) / f"coded_{asked.records}.parquet"
        if not path.exists():
            write_table(path, asked.records)
        command = [sys.executable, __file__, "--measure", str(path), asked.mechanism]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        found = json.loads(done.stdout.splitlines()[-1])
        found |= {
            "nanoseconds_a_record": 1e9
            * (found["read_processor"] + found["count_processor"])
            / asked.records,
            "file_mib": path.stat().st_size / 2**20,
            "plain_read_mib_a_second": plain_read(path) / 2**20,
            "load": os.getloadavg()[0],
        }
        name = f"{asked.records} records, {asked.mechanism}"
        result[name] = {key: round(value, 1) for key, value in found.items()}
        RESULT.write_text(json.dumps(result, indent=2) + "\n")
        print(name, json.dumps(result[name], indent=2))


if __name__ == "__main__":
    main()
