"""The DuckDB engine on a Parquet file of 20 million records: seconds and peak resident memory.

All 105 two-way marginals of 15 attributes. The file is made by resampling ADULT, and deleted
afterwards. Each measurement is a process of its own, so that its peak is its own. Streaming codes
into the NumPy kernel is compared with DuckDB's grouping sets on a tenth of the records.

    python benchmarks/speed/duckdb_memory.py [--records 20000000]
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
import pyarrow as pa
import pyarrow.parquet as pq

from sidelight.data.schema import Schema
from sidelight.data.table import Table

ROOT = Path(__file__).resolve().parents[2]
DATA = Path(os.environ.get("SIDELIGHT_DATA", ROOT.parent / "shared" / "data"))
RESULT = ROOT / "benchmarks" / "results" / "duckdb_memory.json"


def read_schema() -> Schema:
    return Schema.from_domain(json.loads((DATA / "jam_adult.domain.json").read_text()))


def write_table(path: Path, records: int) -> None:
    table = pq.read_table(DATA / "jam_adult.priv.parquet")
    rng = np.random.default_rng(1)
    with pq.ParquetWriter(path, table.schema, compression="zstd") as writer:
        for start in range(0, records, 1_000_000):
            size = min(1_000_000, records - start)
            writer.write_table(table.take(pa.array(rng.integers(0, table.num_rows, size))))


def measure(path: Path, method: str) -> dict[str, float]:
    """In a child process: read, check and count; say how long it took and how large it grew."""
    import duckdb

    from sidelight.data.engines.sql import SqlEngine

    schema = read_schema()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.perf_counter()
    table = Table.read(path, schema, engine="duckdb")
    opened = time.perf_counter()
    pairs = list(itertools.combinations(schema.domain.attrs, 2))
    engine = table._engine
    counts = SqlEngine.count_many(engine, pairs) if method == "grouping sets" else engine.count_many(pairs)
    end = time.perf_counter()
    assert all(int(c.sum()) == table.records for c in counts)
    return {
        "read_and_check_seconds": round(opened - start, 2),
        "count_seconds": round(end - opened, 2),
        "peak_rss_mib": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
        "rss_before_mib": round(before / 1024),
        "duckdb": duckdb.__version__,
    }


def in_child(path: Path, method: str) -> dict[str, float]:
    command = [sys.executable, __file__, "--measure", str(path), "--method", method]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=20_000_000)
    parser.add_argument("--measure", type=Path)
    parser.add_argument("--method", default="streamed codes")
    asked = parser.parse_args()
    if asked.measure:
        print(json.dumps(measure(asked.measure, asked.method)))
        return
    with tempfile.TemporaryDirectory() as folder:
        small, large = Path(folder) / "small.parquet", Path(folder) / "large.parquet"
        write_table(small, asked.records // 10)
        compared = {method: in_child(small, method) for method in ("streamed codes", "grouping sets")}
        small.unlink()
        write_table(large, asked.records)
        size = large.stat().st_size
        measured = in_child(large, "streamed codes")
    result = {
        "what": "all 105 two-way marginals of 15 attributes, DuckDB engine, Parquet file",
        "machine": {"cpus": os.cpu_count(), "python": platform.python_version(), "numpy": np.__version__},
        "records": asked.records,
        "file_mib": round(size / 2**20),
        "target": "under 2048 MiB of resident memory",
        "full": measured,
        "a tenth of the records": compared,
    }
    RESULT.parent.mkdir(parents=True, exist_ok=True)
    RESULT.write_text(json.dumps(result, indent=2) + "\n")
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
