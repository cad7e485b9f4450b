"""Spark beside files: reading, checking and counting all three-way marginals of 12 attributes.

A Parquet file of coded records, some attributes skewed and some not, is counted by DuckDB and our kernel
("files"), by Spark with Python workers in its executors ("spark"), and by Spark's grouping sets
("grouping sets", up to 10⁶ records). Three things show what is Spark's own: it adds up the columns in Java
("java alone"); it hands one column to Python workers, which do nothing with it ("one column"); and so all
columns ("transfer"). Spark runs in local mode on two cores. Every
measurement is a process of its own. Processor seconds are those of all processes that belong to it (Java and
Python workers too); wall seconds depend on what else the machine does. Shuffled bytes are Spark's own figure;
the driver's heap is what Java holds after the run. What starting Spark takes is not counted.

    python benchmarks/speed/spark.py                         10⁶ and 10⁷ records
    python benchmarks/speed/spark.py --records 100000000 --engines spark
    python benchmarks/speed/spark.py --cluster               the arithmetic of a cluster, from the results
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
import urllib.request
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from sidelight.data.engines.spark_counting import _BYTES_A_BATCH
from sidelight.data.schema import Schema
from sidelight.data.table import Table

RESULT = Path(__file__).resolve().parents[1] / "results" / "spark.json"
SIZES = {f"a{i}": size for i, size in enumerate((16, 7, 16, 16, 7, 15, 6, 5, 2, 11, 8, 2))}
SKEWED = ("a1", "a4", "a7", "a9")
"""Attributes of which three records in four hold the first value."""
AT_ONCE = 1_000_000
CORES = 2
ALONE = ("java alone", "one column", "transfer")


def write_table(path: Path, records: int) -> None:
    rng = np.random.default_rng(1)
    names = pa.schema([(name, pa.int32()) for name in SIZES])
    with pq.ParquetWriter(path, names, compression="zstd") as writer:
        for start in range(0, records, AT_ONCE):
            size = min(AT_ONCE, records - start)
            columns = {name: rng.integers(0, many, size, dtype=np.int32) for name, many in SIZES.items()}
            for name in SKEWED:
                columns[name] *= rng.random(size) < 0.25
            writer.write_table(pa.table(columns, schema=names), row_group_size=AT_ONCE // 4)


def processor_seconds() -> float:
    """Of this process and everything it started, as far as it still runs or was waited for."""
    parents, spent = {}, {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        parents[int(folder.name)] = int(fields[1])
        spent[int(folder.name)] = sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    own, more = {os.getpid()}, True
    while more:
        more = [pid for pid, parent in parents.items() if parent in own and pid not in own]
        own.update(more)
    return sum(spent[pid] for pid in own)


def session(*, grouping_sets: bool, memory: str = "1g") -> Any:
    from pyspark.sql import SparkSession

    settings = {
        "spark.driver.memory": memory,
        "spark.sql.shuffle.partitions": str(2 * CORES),
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.sidelight.workers": str(not grouping_sets).lower(),
        "spark.ui.showConsoleProgress": "false",
    }
    os.environ["PYSPARK_PYTHON"] = sys.executable  # workers, too, need sidelight
    builder = SparkSession.builder.master(f"local[{CORES}]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    started = builder.getOrCreate()
    started.sparkContext.setLogLevel("ERROR")
    return started


def shuffled(spark: Any) -> int:
    """Bytes that all stages so far have written for others to read."""
    context = spark.sparkContext
    address = f"{context.uiWebUrl}/api/v1/applications/{context.applicationId}/stages"
    with urllib.request.urlopen(address) as answer:
        return sum(stage["shuffleWriteBytes"] for stage in json.load(answer))


def heap_mib(spark: Any) -> int:
    runtime = spark._jvm.java.lang.Runtime.getRuntime()
    spark._jvm.java.lang.System.gc()
    return round((runtime.totalMemory() - runtime.freeMemory()) / 2**20)


def measure(path: Path, engine: str) -> dict[str, float]:
    """In a child process: read and check, then count."""
    schema = Schema.from_domain(SIZES)
    source: Any = path
    if engine != "files":
        spark = session(grouping_sets=engine == "grouping sets")
        source = spark.read.parquet(str(path))
        Table.read(source.limit(1000), schema).count(schema.domain.attrs[:3])  # starts what is started once
        before_shuffle = shuffled(spark)
    start, began = time.perf_counter(), processor_seconds()
    table = Table.read(source, schema, engine="duckdb" if engine == "files" else "spark")
    opened, spent_opening = time.perf_counter(), processor_seconds()
    triples = list(itertools.combinations(schema.domain.attrs, 3))
    counts = table.count_many(triples)
    end, spent = time.perf_counter(), processor_seconds()
    assert all(int(c.sum()) == table.records for c in counts)
    found = {
        "read_wall": opened - start,
        "read_processor": spent_opening - began,
        "count_wall": end - opened,
        "count_processor": spent - spent_opening,
        "count_nanoseconds_a_record": 1e9 * (spent - spent_opening) / table.records,
    }
    if engine != "files":
        found |= {"shuffled_mib": (shuffled(spark) - before_shuffle) / 2**20, "driver_mib": heap_mib(spark)}
    return {name: round(value, 3) for name, value in found.items()}


def spark_alone(path: Path, engine: str) -> dict[str, float]:
    """In a child process: what Spark takes for its own part of reading; workers only count batches."""
    started = session(grouping_sets=False)
    started.conf.set(_BYTES_A_BATCH, str(2**31 - 1))  # as the engine does for columns of numbers
    frame = started.read.parquet(str(path))

    def nothing(batches: Any) -> Any:
        yield pa.RecordBatch.from_pydict({"n": [sum(batch.num_rows for batch in batches)]})

    frame.limit(1000).mapInArrow(nothing, "n bigint").collect()
    if engine == "java alone":
        asked = frame.selectExpr(*(f"sum({name})" for name in SIZES))
    else:
        asked = (frame.select("a0") if engine == "one column" else frame).mapInArrow(nothing, "n bigint")
    start, began = time.perf_counter(), processor_seconds()
    asked.collect()
    found = {"read_wall": time.perf_counter() - start, "read_processor": processor_seconds() - began}
    return {name: round(value, 3) for name, value in found.items()}


def in_child(path: Path, engine: str) -> dict[str, float]:
    command = [sys.executable, __file__, "--measure", str(path), engine]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def cluster(records: float = 1e10, executors: int = 50, cores: int = 4) -> None:
    """Executor hours for many records, extrapolated from the largest run of Spark."""
    kept = json.loads(RESULT.read_text())["measured"]
    largest = max(int(key.split()[0]) for key in kept if key.endswith(" spark"))
    run = kept[f"{largest} spark"]
    print(f"measured on {largest:.3g} records: {run}")
    for what in ("read", "count"):
        each = run[f"{what}_processor"] / largest
        core_hours = each * records / 3600
        print(
            f"{what}: {run[f'{what}_processor']:.1f} s of processor time / {largest:.3g} records = "
            f"{1e9 * each:.0f} ns a record; × {records:.3g} records / 3600 = {core_hours:.1f} core hours; "
            f"/ {cores} cores = {core_hours / cores:.1f} executor hours; "
            f"/ {executors} executors = {60 * core_hours / cores / executors:.1f} minutes"
        )
    tasks, held = 4 * executors * cores, sum(np.prod(c) for c in itertools.combinations(SIZES.values(), 3))
    print(
        f"shuffle: at most {tasks} tasks × {held} cells × 16 bytes = {tasks * held * 16 / 2**20:.0f} MiB, "
        f"whatever the number of records; driver: {held} cells × 16 bytes = {held * 16 / 2**20:.1f} MiB"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, nargs="+", default=[1_000_000, 10_000_000])
    parser.add_argument("--engines", nargs="+", default=["files", "spark", *ALONE, "grouping sets"])
    parser.add_argument("--folder", help="where the table is written meanwhile")
    parser.add_argument("--measure", nargs=2)
    parser.add_argument("--cluster", action="store_true")
    asked = parser.parse_args()
    if asked.measure:
        path, engine = Path(asked.measure[0]), asked.measure[1]
        print(json.dumps((spark_alone if engine in ALONE else measure)(path, engine)))
        return
    if asked.cluster:
        cluster()
        return
    result = json.loads(RESULT.read_text()) if RESULT.exists() else {"measured": {}}
    result = {
        "what": "all 220 three-way marginals of 12 attributes; seconds, Spark in local mode on two cores",
        "machine": {"cpus": os.cpu_count(), "python": platform.python_version(), "numpy": np.__version__},
        "measured": result["measured"],
    }
    with tempfile.TemporaryDirectory(dir=asked.folder) as folder:
        for records in asked.records:
            path = Path(folder) / "people.parquet"
            write_table(path, records)
            for engine in asked.engines:
                if engine == "grouping sets" and records > 1_000_000:
                    continue
                found = in_child(path, engine) | {"load": round(os.getloadavg()[0], 1)}
                result["measured"][f"{records} {engine}"] = found
                print(records, engine, json.dumps(found), flush=True)
                RESULT.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
