"""How reading and counting grow on each engine: with records, and with attributes.

    python benchmarks/speed/engines.py                       everything that is not in the results yet
    python benchmarks/speed/engines.py --tables FOLDER       keeps the tables for the next run
    python benchmarks/speed/engines.py --show                only the table and the plots, from what is kept

A Parquet file is opened, checked and counted by NumPy (loaded), DuckDB (a batch at a time), Spark (local
mode, two cores) and Dask (threads). Records vary with all 220 triples of 12 attributes (``spark.py``),
attributes with all pairs of a made-up table (``wide_tables.py``) of 100,000 records. Every cell is a process
of its own; processor seconds and memory are those of all processes that belong to it, Java and Python workers
too, and memory is the most that they held together above what they held before the table was opened.
"""

import argparse
import itertools
import json
import math
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
from spark import SIZES, processor_seconds, session, write_table

from experiment import FIGURES, RESULTS
from plot import line_plot
from resumable import read, run_cells
from sidelight.data.schema import Schema
from sidelight.data.table import Table
from wide_tables import wide

PATH = RESULTS / "engines.csv"
RECORDS = {
    "numpy": (100_000, 1_000_000, 10_000_000),
    "duckdb": (100_000, 1_000_000, 10_000_000, 200_000_000),
    "spark": (100_000, 1_000_000, 10_000_000, 100_000_000),
    "dask": (100_000, 1_000_000, 10_000_000),
}
ATTRIBUTES = (10, 50, 100, 200)
WIDE_RECORDS = 100_000
WHAT = {"seconds_of_processor": "processor seconds", "peak_mib": "MiB"}


def cells() -> Iterator[dict[str, Any]]:
    """The growth with records, then that with attributes."""
    for records in sorted({many for some in RECORDS.values() for many in some}):
        for engine, some in RECORDS.items():
            if records in some:
                yield {"engine": engine, "records": records, "attributes": len(SIZES)}
    for attributes in ATTRIBUTES:
        for engine in RECORDS:
            yield {"engine": engine, "records": WIDE_RECORDS, "attributes": attributes}


class Peak:
    """The most memory that this process and those it started hold together, while it is watched."""

    def __enter__(self) -> "Peak":
        self._is_over = threading.Event()
        self.before = self.most = held()
        self._watch = threading.Thread(target=self._look, daemon=True)
        self._watch.start()
        return self

    def __exit__(self, *about: object) -> None:
        self._is_over.set()
        self._watch.join()

    def _look(self) -> None:
        while not self._is_over.wait(0.05):
            self.most = max(self.most, held())


def held() -> float:
    """Resident MiB of all processes; what they share is counted once for each."""
    own, total = psutil.Process(), 0
    for process in (own, *own.children(recursive=True)):
        try:
            total += process.memory_info().rss
        except psutil.NoSuchProcess:
            continue
    return total / 2**20


def schema_of(path: Path) -> Schema:
    return Schema.from_domain(json.loads(path.with_suffix(".json").read_text()))


def opened(path: Path, engine: str) -> tuple[Any, str]:
    """What is given to the engine, after what it starts but once was started on a few records."""
    if engine == "spark":
        source = session(grouping_sets=False).read.parquet(str(path))
        Table.read(source.limit(1000), schema_of(path)).count(schema_of(path).domain.attrs[:2])
        return source, engine
    if engine == "dask":
        import dask.dataframe as dd

        return dd.read_parquet(str(path), split_row_groups=4), engine
    return path, engine


def warm_up() -> None:
    """Load what is loaded on first use."""
    toy = pa.table({"a": [0, 1], "b": [1, 0]})
    Table.read(toy, Schema.from_domain({"a": 2, "b": 2})).count(("a", "b"))


def measure(path: Path, engine: str) -> dict[str, float]:
    """In a child process: open, check and count."""
    schema = schema_of(path)
    warm_up()
    source, engine = opened(path, engine)
    degree = 3 if len(schema.columns) == len(SIZES) else 2
    marginals = list(itertools.combinations(schema.domain.attrs, degree))
    with Peak() as peak:
        start, began = time.perf_counter(), processor_seconds()
        table = Table.read(source, schema, engine=engine)
        counts = table.count_many(marginals)
        found = {"wall": time.perf_counter() - start, "seconds_of_processor": processor_seconds() - began}
    assert all(int(count.sum()) == table.records for count in counts)
    return found | {"peak_mib": peak.most - peak.before, "before_mib": peak.before}


def table_of(folder: Path, records: int, attributes: int) -> Path:
    path = folder / f"engines_{records}_{attributes}.parquet"
    if path.exists():
        return path
    if attributes == len(SIZES):
        write_table(path, records)
        sizes = SIZES
    else:
        drawn = wide(attributes, records=records).private
        columns = zip(drawn.domain.attrs, drawn.codes().T, strict=True)
        pq.write_table(pa.table({name: codes.astype(np.int32) for name, codes in columns}), path)
        sizes = dict(zip(drawn.domain.attrs, drawn.domain.shape, strict=True))
    path.with_suffix(".json").write_text(json.dumps(sizes))
    return path


def exponent(points: list[tuple[float, float]]) -> float:
    """The slope of the line through the last two points, on logarithmic scales."""
    (x1, y1), (x2, y2) = points[-2:]
    return math.log(y2 / y1) / math.log(x2 / x1)


def show() -> None:
    """Tables, and the power of records and attributes with which each engine's last step grew."""
    lines = read(PATH)
    varied = {
        "records": [line for line in lines if int(line["attributes"]) == len(SIZES)],
        "attributes": [line for line in lines if int(line["attributes"]) != len(SIZES)],
    }
    for x, own in varied.items():
        for y, unit in WHAT.items():
            series = {
                engine: sorted(
                    (float(line[x]), float(line[y]), 0.0) for line in own if line["engine"] == engine
                )
                for engine in RECORDS
            }
            series = {name: points for name, points in series.items() if points}
            columns = sorted({at for points in series.values() for at, _, _ in points})
            print(f"\n| {unit} | " + " | ".join(f"{at:,.0f} {x}" for at in columns) + " | power |")
            print("|---" * (len(columns) + 2) + "|")
            for name, points in series.items():
                told = {at: value for at, value, _ in points}
                power = f"{exponent([p[:2] for p in points]):.2f}" if len(points) > 1 else ""
                shown = [f"{told[at]:.3g}" if at in told else "" for at in columns]
                print(f"| {name} | " + " | ".join(shown) + f" | {power} |")
            name = f"engines_{x}_{'seconds' if y != 'peak_mib' else 'memory'}.svg"
            title = f"Reading and counting, {unit} against {x}"
            line_plot(FIGURES / name, series, title, x, unit, log_x=True, log_y=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--show", action="store_true")
    parser.add_argument("--tables", type=Path)
    parser.add_argument("--engines", nargs="+", default=list(RECORDS), choices=list(RECORDS))
    parser.add_argument("--most", type=int, default=10_000_000, help="most records")
    parser.add_argument("--measure", nargs=2)
    asked = parser.parse_args()
    if asked.measure:
        print(json.dumps(measure(Path(asked.measure[0]), asked.measure[1])))
        return
    if not asked.show:
        with tempfile.TemporaryDirectory() as folder:

            def in_child(engine: str, records: int, attributes: int) -> dict[str, float]:
                path = table_of(asked.tables or Path(folder), records, attributes)
                command = [sys.executable, __file__, "--measure", str(path), engine]
                done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
                made: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
                return made

            wanted = (c for c in cells() if c["engine"] in asked.engines and c["records"] <= asked.most)
            run_cells(PATH, wanted, in_child)
    show()


if __name__ == "__main__":
    main()
