"""Kills the Java process under a release from Spark, the nth time it counts; a new session goes on.

Prints how each run ended, as JSON: whether it stopped, and whether its repetition gave the same release.
"""

import contextlib
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
import faults

PLACES = (0, 1, 2)


def session() -> Any:
    """A new session, with a Java process of its own."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    SparkContext._gateway = SparkContext._jvm = None
    SparkContext._active_spark_context = None
    SparkSession._instantiatedSession = None
    with contextlib.suppress(AttributeError):
        SparkSession._activeSession = None
    return (
        SparkSession.builder.master("local[1]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .getOrCreate()
    )


def released(folder: Path, spark: Any) -> Any:
    import sidelight as sl

    rows = [(place % 4, place % 2, place % 3) for place in range(600)]
    frame = spark.createDataFrame(rows, "a int, b int, c int")
    return sl.release(
        frame, schema=sl.Schema.from_domain({"a": 4, "b": 2, "c": 3}), epsilon=0.9, workload="2-way",
        mechanism="mwem", rounds=2, ledger=folder / "l.ledger", checkpoint=folder / "run", progress=False,
    )  # fmt: skip


def attempt(folder: Path, spark: Any, kill_at: int | None) -> dict[str, Any]:
    import sidelight as sl
    from sidelight.data.engines.spark import SparkSource

    folder.mkdir()
    sl.Ledger.open(folder / "l.ledger", epsilon=1, delta=1e-9)
    fetch, seen = SparkSource.fetch, 0

    def fetched(source: Any, sql: str) -> Any:
        nonlocal seen
        if seen == kill_at:
            os.kill(spark.sparkContext._gateway.proc.pid, signal.SIGKILL)
        seen += 1
        return fetch(source, sql)

    SparkSource.fetch = fetched
    stopped, note = False, False
    try:
        release = released(folder, spark)
    except (sl.SidelightError, OSError) as error:
        stopped, note = True, bool(getattr(error, "__notes__", []))
        release = None
    finally:
        SparkSource.fetch = fetch
    if release is None:
        release = released(folder, session())
    ledger = sl.Ledger.open(folder / "l.ledger")
    (run,) = ledger.runs()
    answers = [measured.answer.tolist() for measured in release.measurements]
    return {
        "stopped": stopped,
        "said how to go on": note,
        "again": run.repeats,
        "open": run.is_open,
        "answers": answers,
    }


def main() -> None:
    folder = Path(sys.argv[1])
    os.chdir(folder)
    faults.steady_noise()
    calm = attempt(folder / "calm", session(), None)
    told = []
    for place in PLACES:
        found = attempt(folder / f"killed{place}", session(), place)
        same = found["answers"] == calm["answers"] and found["again"] == 0 and not found["open"]
        told.append({**found, "same": same and found["stopped"], "answers": None})
    sys.stdout.write(json.dumps(told) + "\n")
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
