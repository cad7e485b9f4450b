"""The bounding of people's records under attack, on every counting engine.

    python benchmarks/audit_people.py            all; some minutes of processor time
    python benchmarks/audit_people.py --show     only the table, from what is kept

`sidelight audit people` attacks the engines that need no server; here are PostgreSQL, Dask and Spark too, the
last with Python workers and by SQL alone. Each cell of benchmarks/results/audit_people.csv is one attack: an
engine, a relation, and a way to keep records, of which all but the first are planted bugs
(`src/sidelight/audit/people.py`). Engines that keep the same records share one attack. The exit code is 1
if correct bounding was refuted or a planted bug was not found.
"""

import argparse
import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from experiment import RESULTS
from resumable import read, run_cells
from sidelight.audit.people import AS_IT_IS, SCHEMA, WAYS, Read, audited_bounding, by, kept_counts
from sidelight.data.engines.spark_counting import SETTING
from sidelight.data.table import Table

CELLS = RESULTS / "audit_people.csv"
RELATIONS = ("replace", "add-or-remove")
RUNS = {AS_IT_IS: 1000, "one record more": 2000}
"""Runs on each table: half as much again of what is claimed shows late. 600 of all others."""
PARTS = 5
"""Parts of a table on Dask and Spark: one person's records lie in several of them."""


@contextlib.contextmanager
def in_memory(engine: str) -> Iterator[Read]:
    yield by(engine)


@contextlib.contextmanager
def on_postgres() -> Iterator[Read]:
    import postgres_server

    with postgres_server.running() as server:

        def read_there(frame: Any, unit: Any) -> Table:
            values = ", ".join(
                f"('{who}', {ward})" for who, ward in zip(*frame.to_pydict().values(), strict=True)
            )
            server.run(
                "DROP TABLE IF EXISTS people",
                "CREATE TABLE people (who text, ward integer)",
                f"INSERT INTO people VALUES {values}",
            )
            return Table.read(f"{server.url}#people", SCHEMA, unit=unit)

        yield read_there


@contextlib.contextmanager
def on_dask() -> Iterator[Read]:
    import dask.dataframe

    yield lambda frame, unit: Table.read(
        dask.dataframe.from_pandas(frame.to_pandas(), npartitions=PARTS), SCHEMA, unit=unit
    )


@contextlib.contextmanager
def on_spark(workers: str) -> Iterator[Read]:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    spark = builder.config("spark.sql.shuffle.partitions", "4").getOrCreate()
    spark.conf.set(SETTING, workers)
    yield lambda frame, unit: Table.read(
        spark.createDataFrame(frame.to_pandas()).repartition(PARTS), SCHEMA, unit=unit
    )
    spark.stop()


ENGINES = {
    "numpy": lambda: in_memory("numpy"),
    "duckdb": lambda: in_memory("duckdb"),
    "postgres": on_postgres,
    "dask": on_dask,
    "spark": lambda: on_spark("true"),
    "spark, by SQL": lambda: on_spark("false"),
}


def attack_all(engine: str) -> None:
    """All cells of an engine that are not there yet."""
    cells = [{"engine": engine, "relation": relation, "way": way} for relation in RELATIONS for way in WAYS]
    if all(any(cell.items() <= line.items() for line in read(CELLS)) for cell in cells):
        return
    with ENGINES[engine]() as reader:

        def cell(*, engine: str, relation: Any, way: str) -> dict[str, float | str]:
            kept = kept_counts(reader, relation, way)
            told = " ".join(map(str, kept))
            for line in read(CELLS):  # noise is seeded: what another engine kept was attacked already
                if (line["kept"], line["relation"]) == (told, relation):
                    return {name: line[name] for name in ("epsilon", "found", "runs", "chosen_on", "kept")}
            row = audited_bounding(engine, kept, relation, way, runs=RUNS.get(way, 600))
            numbers = {"epsilon": row.epsilon, "found": row.found}
            return numbers | {"runs": row.runs, "chosen_on": row.chosen_on, "kept": told}

        run_cells(CELLS, cells, cell)


def table(lines: list[dict[str, str]]) -> str:
    """Lower bounds on ε, claimed 1, under both relations; the planted bugs in columns."""
    found = {(line["engine"], line["way"], line["relation"]): float(line["found"]) for line in lines}
    out = ["| engine | " + " | ".join(WAYS) + " |", "|---|" + "---|" * len(WAYS)]
    for engine in ENGINES:
        told = []
        for way in WAYS:
            both = [found.get((engine, way, relation)) for relation in RELATIONS]
            told.append(", ".join("" if bound is None else f"{bound:.2f}" for bound in both))
        out.append(f"| {engine} | " + " | ".join(told) + " |")
    return "\n".join(out)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--show", action="store_true", help="run nothing")
    parser.add_argument("--only", action="append", choices=list(ENGINES), help="these engines alone")
    given = parser.parse_args()
    for engine in () if given.show else given.only or ENGINES:
        attack_all(engine)
    lines = read(CELLS)
    print(table(lines))
    wrong = [
        line for line in lines if (float(line["found"]) > float(line["epsilon"])) == (line["way"] == AS_IT_IS)
    ]
    print("\n".join(map(str, wrong)) or "every bounding held, and every planted bug was found")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
