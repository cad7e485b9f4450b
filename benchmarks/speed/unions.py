"""Counting all three-way marginals of 12 attributes in a Parquet file, one by one and by their unions.

The table is that of ``spark.py``. Both ways alternate in processes of their own, so that a busy machine hits
both alike; the least processor time of each is told, of reading and counting and of the kernel alone.

    python benchmarks/speed/unions.py [--records 10000000] [--repeats 2]
"""

import argparse
import itertools
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from spark import SIZES, write_table

from sidelight.data.engines import counting
from sidelight.data.schema import Schema
from sidelight.data.table import Table

RESULT = Path(__file__).resolve().parents[1] / "results" / "unions.json"


def measure(path: Path, way: str) -> dict[str, float]:
    """In a child process: nanoseconds of processor time a record."""
    if way == "one by one":
        counting._MANY = sys.maxsize
    schema = Schema.from_domain(SIZES)
    triples = list(itertools.combinations(schema.domain.attrs, 3))
    table = Table.read(path, schema, engine="duckdb")
    began = time.process_time()
    counts = table.count_many(triples)
    whole = time.process_time() - began
    assert all(int(c.sum()) == table.records for c in counts)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    batch = next(table._engine._batches(schema))
    began = time.process_time()
    counter = counting.MarginalCounter(schema.domain, triples, expected=table.records)
    for _ in range(8):
        counter.add(batch)
    kernel = time.process_time() - began
    return {
        "file_ns": 1e9 * whole / table.records,
        "kernel_ns": 1e9 * kernel / counter.records,
        "peak_mib": peak,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=10_000_000)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--folder", help="where the table is written meanwhile")
    parser.add_argument("--measure", nargs=2)
    asked = parser.parse_args()
    if asked.measure:
        print(json.dumps(measure(Path(asked.measure[0]), asked.measure[1])))
        return
    ways = ("one by one", "by unions")
    found: dict[str, list[dict[str, float]]] = {way: [] for way in ways}
    with tempfile.TemporaryDirectory(dir=asked.folder) as folder:
        path = Path(folder) / "people.parquet"
        write_table(path, asked.records)
        for _, way in itertools.product(range(asked.repeats), ways):
            command = [sys.executable, __file__, "--measure", str(path), way]
            done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
            found[way].append(json.loads(done.stdout))
            print(way, done.stdout.strip(), flush=True)
    least = {way: {what: round(min(run[what] for run in runs), 1) for what in runs[0]}
             for way, runs in found.items()}  # fmt: skip
    result = {
        "what": "processor nanoseconds a record, all 220 three-way marginals of 12 attributes",
        "machine": {"cpus": os.cpu_count(), "python": platform.python_version(), "numpy": np.__version__},
        "records": asked.records,
        "repeats": asked.repeats,
        "load": round(os.getloadavg()[0], 1),
        **least,
    }
    RESULT.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
