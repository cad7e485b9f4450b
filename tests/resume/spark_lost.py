"""Takes Spark away under a release: its Java process, a worker or an executor.

    python tests/resume/spark_lost.py FOLDER java | workers

Prints how each run ended, as JSON: whether it stopped, and whether in the end there was the same release,
paid for once. Where Spark is gone, a new session goes on; Spark replaces workers and executors by itself.
"""

import contextlib
import json
import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
import faults

SIZES = {"a": 4, "b": 2, "c": 3}
MASTERS = {"worker": "local[1,4]", "executor": "local-cluster[2,1,512]"}
"""With four attempts a task, or with executors in Java processes of their own."""
CLEAR = ("no whole result came back from Spark", "Spark could not read the table")
"""What a user must be told: one of the two."""


def session(master: str = "local[1]") -> Any:
    """A new session, with a Java process of its own."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    SparkContext._gateway = SparkContext._jvm = None
    SparkContext._active_spark_context = None
    SparkSession._instantiatedSession = None
    with contextlib.suppress(AttributeError):
        SparkSession._activeSession = None
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master(master)
    for name, value in {
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "1",
        "spark.executor.memory": "512m",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "100",
    }.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def released(folder: Path, spark: Any, begin: Callable[[], None] = lambda: None) -> Any:
    """A release, and ``begin`` just before it."""
    import sidelight as sl

    rows = spark.range(0, 600, 1, 1)
    frame = rows.selectExpr(*(f"CAST(id % {size} AS INT) AS {name}" for name, size in SIZES.items()))
    begin()
    return sl.release(
        frame, schema=sl.Schema.from_domain(SIZES), epsilon=0.9, workload="2-way",
        mechanism="mwem", rounds=2, ledger=folder / "l.ledger", checkpoint=folder / "run", progress=False,
    )  # fmt: skip


def end(spark: Any) -> None:
    """End the Java process of a session."""
    with contextlib.suppress(Exception):
        spark.sparkContext._gateway.proc.kill()


@contextlib.contextmanager
def losing(lose: Callable[[], None], place: int) -> Iterator[list[int]]:
    """Lose something the moment before Spark is asked for the so manieth time; tells when it was."""
    from sidelight.data.engines import spark, spark_counting

    silent, asked, lost = spark.silent_errors, count(), []

    @contextlib.contextmanager
    def silent_errors() -> Iterator[None]:
        with silent():
            if next(asked) == place:
                lost.append(place)
                lose()
            yield

    spark.silent_errors = spark_counting.silent_errors = silent_errors
    try:
        yield lost
    finally:
        spark.silent_errors = spark_counting.silent_errors = silent


def run(
    folder: Path,
    spark: Any,
    *,
    again: Callable[[], None] | None = None,
    begin: Callable[[], None] = lambda: None,
) -> tuple[dict[str, Any], Any]:
    """A release; where it stops, once more in another session. Also the session that is there afterwards.

    With ``again`` it is the same session, after that was called. ``begin`` is called before the first one.
    """
    import sidelight as sl

    folder.mkdir()
    sl.Ledger.open(folder / "l.ledger", epsilon=1, delta=1e-9)
    said, is_clear = None, True
    try:
        release = released(folder, spark, begin)
    except Exception as error:  # noqa: BLE001  # whatever else it is, nobody has explained it
        is_clear = isinstance(error, sl.SidelightError)
        said = str(error) if is_clear else "".join(traceback.format_exception(error))[-1500:]
        if again is None:
            end(spark)
            spark = session()
        else:
            again()
        release = released(folder, spark)
    (found,) = sl.Ledger.open(folder / "l.ledger").runs()
    answers = [measured.answer.tolist() for measured in release.measurements]
    return {
        "said": said,
        "clear": is_clear,
        "again": found.repeats,
        "open": found.is_open,
        "answers": answers,
    }, spark


def told(at: Any, found: dict[str, Any], calm: dict[str, Any], *, stops: bool | None) -> dict[str, Any]:
    """How a run ended; ``stops`` says whether it had to stop, None that it might."""
    same = found["answers"] == calm["answers"] and found["again"] == 0 and not found["open"]
    stopped = found["said"] is not None
    same = same and (not stopped or (found["clear"] and found["said"].startswith(CLEAR)))
    return {
        "at": at,
        "stopped": stopped,
        "again": found["again"],
        "said": found["said"],
        "same": same and stops in (stopped, None),
    }


def spark_gone(folder: Path) -> list[dict[str, Any]]:
    """Gone each time that it is asked something, until a run asks no more."""
    calm, spark = run(folder / "calm", session())
    found = []
    for place in count():

        def lose(spark: Any = spark) -> None:
            os.kill(spark.sparkContext._gateway.proc.pid, signal.SIGKILL)

        with losing(lose, place) as lost:
            ended, spark = run(folder / f"gone{place}", spark)
        if not lost:
            break
        found.append(told(place, ended, calm, stops=True))
    end(spark)
    return found


def workers_gone(folder: Path) -> list[dict[str, Any]]:
    """Killed once: a worker or an executor, after the first batch that it encodes or counts."""
    from sidelight.data.engines import spark_counting

    spark = session(MASTERS["worker"])
    calm, _ = run(folder / "calm", spark)
    found = []
    for who in MASTERS:
        if who == "executor":
            end(spark)
            spark = session(MASTERS[who])
        for step in ("_blocking", "_counting"):
            mark, make = str(folder / f"{who}{step}.mark"), getattr(spark_counting, step)

            def made(*asked: Any, make: Any = make, mark: str = mark, who: str = who, **more: Any) -> Any:
                return dying(make(*asked, **more), mark, who)

            setattr(spark_counting, step, made)
            try:
                ended, spark = run(folder / f"{who}{step}", spark)
            finally:
                setattr(spark_counting, step, make)
            one = told([who, step], ended, calm, stops=False)
            found.append(one | {"same": one["same"] and os.path.exists(mark)})
    end(spark)
    return found


def dying(function: Any, mark: str, who: str) -> Any:
    """The same function of a worker, which is killed the first time that it has taken a batch."""

    def parent(process: int) -> int:
        with open(f"/proc/{process}/stat", encoding="utf-8") as file:
            return int(file.read().rpartition(")")[2].split()[1])

    def taken(batches: Any) -> Any:
        for batch in batches:
            yield batch
            with contextlib.suppress(FileExistsError):
                open(mark, "x").close()
                own = os.getpid()
                os.kill(parent(parent(own)) if who == "executor" else own, signal.SIGKILL)

    def dies(batches: Any) -> Any:
        yield from function(taken(batches))

    return dies


def main() -> None:
    folder, fault = Path(sys.argv[1]), sys.argv[2]
    os.chdir(folder)
    faults.steady_noise()
    found = workers_gone(folder) if fault == "workers" else spark_gone(folder)
    sys.stdout.write(json.dumps(found) + "\n")
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
