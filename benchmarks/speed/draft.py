"""How long it takes to draft a schema from a table, and to check the table against it, in DuckDB.

    python benchmarks/speed/draft.py --records 1000000
    python benchmarks/speed/draft.py --records 10000000 --out benchmarks/results/draft.json

Thirty columns such as those of a health survey: labels, whole numbers, amounts, dates (typed, and as text),
codes, truths. The table is a Parquet file; with --csv also a CSV file. DuckDB makes it; it is never loaded.
"""

import argparse
import json
import os
import resource
import sys
import tempfile
import time
from pathlib import Path

import duckdb

from sidelight.data.schema import Schema

_KINDS = {
    "sex": "CASE WHEN random() < 0.5 THEN 'F' ELSE 'm' END",
    "region": "'region ' || CAST(floor(random() * 16) AS INTEGER)",
    "answer": "CASE WHEN random() < 0.05 THEN 'NA' WHEN random() < 0.5 THEN 'yes' ELSE 'no' END",
    "age": "CAST(floor(random() * 100) AS INTEGER)",
    "children": "CAST(floor(random() * 8) AS INTEGER)",
    "income": "round(random() * 90000, 2)",
    "admitted": "DATE '2018-01-01' + CAST(floor(random() * 2000) AS INTEGER)",
    "born": "CAST(DATE '1930-01-01' + CAST(floor(random() * 30000) AS INTEGER) AS VARCHAR)",
    "icd": "chr(CAST(65 + floor(random() * 4) AS INTEGER)) || CAST(floor(10 + random() * 20) AS INTEGER) "
    "|| '.' || CAST(floor(random() * 9) AS INTEGER)",
    "works": "random() < 0.5",
}


def make(folder: Path, records: int, *, ending: str) -> Path:
    """A file of thirty columns, made if it is not there."""
    path = folder / f"people_{records}.{ending}"
    if path.exists():
        return path
    listed = ", ".join(f"{sql} AS {name}_{turn}" for turn in range(3) for name, sql in _KINDS.items())
    with duckdb.connect() as connection:
        connection.execute("SELECT setseed(0.5)")
        connection.execute(f"COPY (SELECT {listed} FROM range({records})) TO '{path}'")
    return path


def measure(path: Path) -> dict[str, float]:
    """Seconds to draft, and to check: on the clock, and of the processor, whatever else the machine does."""
    begun, begun_cpu = time.perf_counter(), time.process_time()
    schema = Schema.draft(path)
    drafted, drafted_cpu = time.perf_counter(), time.process_time()
    misfits = schema.check(path)
    checked, checked_cpu = time.perf_counter(), time.process_time()
    if any(misfit.is_fatal for misfit in misfits):
        sys.exit(f"the table does not fit its own draft: {misfits[0]}")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {
        "columns": len(schema.columns),
        "draft_s": round(drafted - begun, 1),
        "check_s": round(checked - drafted, 1),
        "draft_cpu_s": round(drafted_cpu - begun_cpu, 1),
        "check_cpu_s": round(checked_cpu - drafted_cpu, 1),
        "file_mb": round(path.stat().st_size / 2**20),
        "peak_mb": round(peak),
    }


def main() -> None:
    """Make the table, measure, print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--csv", action="store_true", help="a CSV file, too")
    parser.add_argument("--tables", type=Path, help="a folder that keeps the table for the next run")
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    found: dict[str, object] = {
        "records": asked.records,
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 1),
        "duckdb": duckdb.__version__,
    }
    with tempfile.TemporaryDirectory() as folder:
        for ending in ("parquet", "csv")[: 1 + asked.csv]:
            found[ending] = measure(make(asked.tables or Path(folder), asked.records, ending=ending))
            sys.stdout.write(f"{asked.records:,} records, {ending}: {found[ending]}\n")
    if asked.out is not None:
        asked.out.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
