"""What keeping k records of each person adds to the time of counting, in DuckDB and in Spark.

A Parquet file of 15 attributes, ten records a person on average (their numbers are geometric), each record's
codes drawn by itself. A cell reads and checks the file and counts all marginals of a workload, once as it is
and once with ``person`` in the unit; every measurement is a process of its own. CPU seconds count all threads
(Spark's Java process and Python workers too) and hardly depend on other work; wall seconds do.

    python benchmarks/speed/people.py [--records 1000000] [--engine duckdb] [--repeats 3] [--tables FOLDER]

The table is made once, into the folder of ``--tables``, or into one that is removed afterwards.
"""

import argparse
import itertools
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from spark import processor_seconds, session

from sidelight.data.schema import Schema
from sidelight.data.table import Table
from sidelight.privacy.unit import Unit

RESULT = Path(__file__).resolve().parents[1] / "results" / "people.json"
SIZES = {f"a{i}": size for i, size in enumerate((16, 7, 16, 16, 7, 15, 6, 5, 2, 11, 11, 16, 42, 2, 8))}
RECORDS_A_PERSON = 10
KEPT = (3, 10, 1000)
"""k: most records are left out, or half of them, or none."""


def write_table(path: Path, records: int) -> None:
    rng = np.random.default_rng(1)
    people = records // RECORDS_A_PERSON
    weights = rng.geometric(1 / RECORDS_A_PERSON, people).astype(float)
    who = rng.choice(people, records, p=weights / weights.sum())
    columns = {"who": pa.array(who).cast(pa.string())}
    columns |= {name: rng.integers(0, size, records).astype(np.int32) for name, size in SIZES.items()}
    pq.write_table(pa.table(columns), path, compression="zstd", row_group_size=1 << 18)


def measure(path: Path, engine: str, degree: int, kept: int) -> dict[str, float]:
    """In a child process: read, check, keep and count; 0 keeps everything and knows nobody."""
    schema = Schema.from_domain(SIZES)
    source: Any = path
    if engine == "spark":
        source = session(grouping_sets=False, memory="2g").read.parquet(str(path))
        # What is started once is not counted.
        Table.read(source.limit(1000), schema).count(schema.domain.attrs[:3])
    unit = Unit("add-or-remove", kept, "who") if kept else Unit("add-or-remove")
    marginals = list(itertools.combinations(schema.domain.attrs, degree))
    start, before = time.perf_counter(), processor_seconds()
    table = Table.read(source, schema, engine=engine, unit=unit)
    if kept:
        table = table.keeping(unit, "5a" * 32)
    counts = table.count_many(marginals)
    seconds, spent = time.perf_counter() - start, processor_seconds() - before
    assert all(int(c.sum()) == table.records for c in counts)
    return {"wall": seconds, "cpu": spent, "records": table.records}


def table_in(folder: Path, records: int) -> Path:
    """The table of so many records, made if it is not there."""
    path = folder / f"visits_{records}.parquet"
    if not path.exists():
        write_table(path, records)
    return path


def in_child(*asked: object) -> dict[str, float]:
    command = [sys.executable, __file__, "--measure", *map(str, asked)]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def cell(path: Path, engine: str, degree: int, asked: argparse.Namespace) -> dict[str, object]:
    found: dict[int, list[dict[str, float]]] = {kept: [] for kept in (0, *asked.kept)}
    for _ in range(asked.repeats):
        for kept, runs in found.items():
            runs.append(in_child(path, engine, degree, kept))
    least = {kept: {what: min(run[what] for run in runs) for what in runs[0]} for kept, runs in found.items()}
    told: dict[str, object] = {"everything": least[0]}
    for kept in asked.kept:
        added = {
            f"{what}_added": round(least[kept][what] / least[0][what] - 1, 3) for what in ("cpu", "wall")
        }
        told[f"records = {kept}"] = least[kept] | added
    return told


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--engine", default="duckdb", choices=("duckdb", "spark"))
    parser.add_argument("--degrees", type=int, nargs="+", default=[2, 3])
    parser.add_argument("--kept", type=int, nargs="+", default=list(KEPT), help="k, for each cell")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--tables", type=Path, help="a folder that keeps the table for the next run")
    parser.add_argument("--measure", nargs=4)
    asked = parser.parse_args()
    if asked.measure:
        path, engine, degree, kept = asked.measure
        print(json.dumps(measure(Path(path), engine, int(degree), int(kept))))
        return
    result = json.loads(RESULT.read_text()) if RESULT.exists() else {"what": __doc__.splitlines()[0]}
    result["machine"] = {"cpus": os.cpu_count(), "python": platform.python_version(), "numpy": np.__version__}
    with tempfile.TemporaryDirectory() as folder:
        path = table_in(asked.tables or Path(folder), asked.records)
        for degree in asked.degrees:
            name = f"{asked.engine}, {asked.records:,} records, {degree}-way"
            load = round(os.getloadavg()[0], 1)
            result[name] = cell(path, asked.engine, degree, asked) | {"repeats": asked.repeats, "load": load}
            RESULT.write_text(json.dumps(result, indent=2) + "\n")
            print(name, json.dumps(result[name], indent=2), flush=True)


if __name__ == "__main__":
    main()
