"""Counting on a Spark cluster, inside its executors.

    encode    Python workers beside the executors turn records into codes, many to a line
              (``spark_blocks.py``). Spark holds these lines: records are read and encoded once
    count     workers count the codes, with the kernel that counts files (``partial.py``)
    add       Spark adds up the counts of equal cells over all tasks
    return    the driver gets one number for each cell that is not empty

Every task sends at most one number a cell, and there are a few tasks for each core, whatever the number of
files: neither the shuffle of counts nor the driver's memory grows with records. A task that fails or is lost
is run again by Spark, which takes the result of one attempt alone; nothing is added outside of results.

Where a column says who records are about, workers split them into buckets of people, Spark brings each bucket
together, and a worker keeps k records of each person there: the one shuffle that grows with records.

Where executors may not run Python, or run another version of sidelight, Spark counts by grouping sets
(``sql.py``), which copy every record once a marginal. ``spark.sidelight.workers = false`` asks for that.
PRIVACY: which of the two it is depends on the cluster and its settings, and never on records.
"""

import contextlib
import os
import sys
import threading
import warnings
import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any
from weakref import WeakKeyDictionary

from sidelight._extras import need
from sidelight.data.domain import Attrs, Domain
from sidelight.data.engines import spark_blocks
from sidelight.data.engines.base import Counts, Engine
from sidelight.data.engines.kept_records import Word
from sidelight.data.engines.partial import PartialEngine, count_part, distinct_of_part
from sidelight.data.engines.spark import SparkSource, brought_here, columns_of, forget, silent_errors
from sidelight.data.engines.sql import SqlEngine
from sidelight.data.engines.sql_people import word_names
from sidelight.data.schema import Schema
from sidelight.privacy.unit import Unit

SETTING = "spark.sidelight.workers"
"""Spark's setting: ``false`` where executors may not run Python; by default it is tried out."""
BY_WORKERS = "in Spark, by Python workers in its executors"
BY_GROUPING_SETS = "in Spark, by SQL (grouping sets)"

_TASKS_A_CORE, _FEWEST_TASKS = 4, 64
"""At most so many tasks count: enough that no slow one holds all up, few enough to send little."""
_RECORDS_A_TASK = 1 << 21
"""Records that are worth a further task."""

_LINES_A_BATCH = "spark.sql.inMemoryColumnarStorage.batchSize"
"""Spark's setting: the lines that it holds together."""
_BYTES_A_BATCH = "spark.sql.execution.arrow.maxBytesPerBatch"
"""Spark's setting: the bytes that it hands to a worker together."""
_NARROW = ("integer", "real", "boolean", "date", "timestamp", "instant")
"""Types of columns whose values have few bytes."""

_changing_settings = threading.Lock()
"""Two threads that each put back what they found would leave the setting as the first had changed it."""

_can_run: "WeakKeyDictionary[Any, bool]" = WeakKeyDictionary()

Batches = Iterator[Any]


class SparkSqlEngine(SqlEngine):
    """Counts a Spark table by SQL, where workers may not run Python."""

    counting = BY_GROUPING_SETS


class Lines:
    """Lines that workers made, each of many records. Spark holds them until nobody asks any more.

    They must not lead back to the source that remembers them: Python would find out late that nobody asks.
    """

    def __init__(self, frame: Any, *, is_narrow: bool = False) -> None:
        self.session = frame.sparkSession
        self._is_narrow = is_narrow
        """Whether they are made of columns whose values have few bytes, so that no batch is large."""
        # Spark holds lines in batches, and remembers a hundred batches while it moves some to its disk. Those
        # of 4 MiB filled a heap of 1 GiB, at 10⁸ records; a line is large enough to be a batch.
        with _set(self.session, _LINES_A_BATCH, "1"):
            self.frame = frame.persist()
        weakref.finalize(self, forget, self.frame).atexit = False

    def survey(self) -> tuple[int, list[bool], list[bool]]:
        """How many records; whether each column has missing values to refuse, and values outside."""
        # Spark adds up the bytes of a batch anew with every record, unless there is no limit to them.
        unlimited = _set(self.session, _BYTES_A_BATCH, str(2**31 - 1))
        with silent_errors(), unlimited if self._is_narrow else contextlib.nullcontext():
            found = brought_here(self.frame.groupBy("flags").agg({"n": "sum"}))
        lines, many = (column.to_pylist() for column in found.columns)
        records = sum(map(int, many))
        flags = [bytes(line) for line in lines]
        columns = range(len(flags[0]) if flags else 0)
        missing = [any(line[c] & spark_blocks.MISSING for line in flags) for c in columns]
        outside = [any(line[c] & spark_blocks.OUTSIDE for line in flags) for c in columns]
        return records, missing, outside


class SparkEngine(PartialEngine):
    """Counts codes that Spark holds, in Python workers."""

    counting = BY_WORKERS

    def __init__(self, blocks: Lines, schema: Schema, *, records: int) -> None:
        super().__init__(schema.domain, records=records)
        self._blocks = blocks

    def _cells(
        self, places: Sequence[int], domain: Domain, marginals: Sequence[Attrs]
    ) -> tuple[Counts, Counts]:
        with silent_errors():
            tasks = _tasks(self._blocks.session, self.records)
            # PRIVACY: what is expected decides on speed alone; counts, and what is told, are the same.
            counting = _counting(domain, marginals, expected=-(-self.records // tasks))
            asked = self._blocks.frame.select("n", "flags", *(f"a{place}" for place in places))
            sent = mapped(asked.coalesce(tasks), counting, "cell bigint, n bigint")
            cells, counts = columns_of(sent.groupBy("cell").agg({"n": "sum"}))
        return cells, counts

    def _distinct_words(self) -> tuple[Sequence[Word], Counts]:
        words = word_names(self.domain.shape)
        columns = ", ".join(f"{name} bigint" for name in [*words, "n"])
        with silent_errors():
            sent = mapped(self._blocks.frame, _finding(self.domain), columns)
            *found, counts = columns_of(sent.groupBy(*words).agg({"n": "sum"}))
        return found, counts


@dataclass(frozen=True)
class SparkPeople:
    """Who records on a cluster are about, split into buckets of people there."""

    pieces: Lines
    schema: Schema
    person: str
    names: None = None

    def survey(self) -> tuple[int, bool, bool]:
        """How many records there are; whether some name nobody; whether something in them was refused."""
        records, missing, outside = self.pieces.survey()
        return records, any(missing[-1:]), any(missing[:-1] + outside)

    def keeping(self, engine: Engine, unit: Unit, key: str) -> SparkEngine:
        domain = self.schema.domain
        with silent_errors():
            tasks = _tasks(self.pieces.session, engine.records)
            together = self.pieces.frame.select("bucket", "flags", "held").repartition(tasks, "bucket")
            keeping = _keeping(domain, records=unit.records, key=key)
            columns = spark_blocks.columns_of_blocks(self.schema)
            kept = Lines(mapped(together.sortWithinPartitions("bucket"), keeping, columns))
        return SparkEngine(kept, self.schema, records=kept.survey()[0])


def blocks_of(source: SparkSource, schema: Schema) -> Lines:
    """The table's codes, which Spark holds; the same ones if they are asked for again."""
    if source.blocks is None or source.blocks[0] != schema:
        with silent_errors():
            names, frame = _raw(source, [column.name for column in schema.columns])
            sent = mapped(frame, _blocking(schema, names), spark_blocks.columns_of_blocks(schema))
            is_narrow = all(source.types[source.names.index(name)] in _NARROW for name in names)
            source.blocks = schema, Lines(sent, is_narrow=is_narrow)
    found: Lines = source.blocks[1]
    return found


def people_of(source: SparkSource, schema: Schema, person: str) -> SparkPeople:
    """The table's people, with the codes of their records."""
    with silent_errors():
        names, frame = _raw(source, [*(column.name for column in schema.columns), person])
        splitting = _splitting(schema, names, person, buckets=_tasks(source.session))
        sent = mapped(frame, splitting, spark_blocks.COLUMNS_OF_PIECES)
        return SparkPeople(Lines(sent), schema, person)


def _raw(source: SparkSource, names: Sequence[str]) -> tuple[list[str], Any]:
    """The columns of these names, each once, as workers are to get them."""
    wanted = list(dict.fromkeys(names))
    asked = []
    for name in wanted:
        place = source.names.index(name)
        # Of a type that no column can hold it only matters whether there is a value; Arrow may not know it.
        is_known = source.types[place] is not None
        asked.append(
            f"c{place}" if is_known else f"CASE WHEN c{place} IS NOT NULL THEN array(1) END AS c{place}"
        )
    frame = source.session.table(source.relation).selectExpr(*asked)
    return wanted, frame.coalesce(_tasks(source.session))


def has_workers(session: Any) -> bool:
    """Whether executors run this version of sidelight; found out once a session, on no data."""
    with silent_errors():
        is_allowed = session.conf.get(SETTING, "true").strip().lower() != "false"
    if not is_allowed:
        return False
    if session not in _can_run:
        _can_run[session] = _worker_version(session) == version("sidelight")
        if not _can_run[session]:
            warnings.warn(
                f"Spark's Python workers do not run sidelight {version('sidelight')}, so Spark counts by "
                "grouping sets, which may take many times as long. Install it where executors run, and let "
                f"PYSPARK_PYTHON name that Python; or set {SETTING} to false, and nothing is tried.",
                stacklevel=2,
            )
    return _can_run[session]


def _worker_version(session: Any) -> str | None:
    """The version of sidelight in Python workers; None where there are no workers, or it is not there."""
    errors = need("pyspark.errors", "to count a Spark table")
    java = need("py4j.protocol", "to count a Spark table")
    with silent_errors():
        try:
            told = brought_here(mapped(session.range(0, 1, 1, 1), _tell_version, "version string"))
        except (errors.PySparkException, java.Py4JJavaError):  # the latter where there is no such Python
            return None
    return str(told.column(0)[0].as_py())


def mapped(frame: Any, function: Callable[[Batches], Batches], columns: str) -> Any:
    """The frame of what workers make of the Arrow batches of their parts."""
    with warnings.catch_warnings(), _own_python(frame.sparkSession):
        # PySpark asks for pandas of a certain age, and uses none of it here.
        warnings.simplefilter("ignore", FutureWarning)
        return frame.mapInArrow(function, columns)


@contextlib.contextmanager
def _own_python(session: Any) -> Iterator[None]:
    """In local mode workers run on this machine, so with the Python that runs here; PySpark takes any."""
    try:
        context = session.sparkContext
        is_here = context.master.startswith("local") and "PYSPARK_PYTHON" not in os.environ
    except Exception:  # noqa: BLE001  Spark Connect has none, each version by another error
        is_here = False
    if not is_here:
        yield
        return
    before = context.pythonExec
    context.pythonExec = sys.executable
    try:
        yield
    finally:
        context.pythonExec = before


@contextlib.contextmanager
def _set(session: Any, name: str, value: str) -> Iterator[None]:
    """Spark's setting of this name, as long as it is needed."""
    with _changing_settings:
        before = session.conf.get(name, None)
        session.conf.set(name, value)
        try:
            yield
        finally:
            if before is None:
                session.conf.unset(name)
            else:
                session.conf.set(name, before)


def _tell_version(batches: Iterator[Any]) -> Iterator[Any]:
    """In a worker: which version of sidelight counts there."""
    import pyarrow as pa

    for _ in batches:
        yield pa.RecordBatch.from_pydict({"version": [version("sidelight")]})


def _blocking(schema: Schema, names: Sequence[str]) -> Callable[[Batches], Batches]:
    """What a worker does with raw batches."""

    def block(batches: Batches) -> Batches:
        yield from spark_blocks.blocks(batches, schema, names)

    return block


def _splitting(
    schema: Schema, names: Sequence[str], person: str, *, buckets: int
) -> Callable[[Batches], Batches]:
    """What a worker does with raw batches of people."""

    def split(batches: Batches) -> Batches:
        yield from spark_blocks.pieces(batches, schema, names, person, buckets=buckets)

    return split


def _keeping(domain: Domain, *, records: int, key: str) -> Callable[[Batches], Batches]:
    """What a worker does with whole buckets of people."""

    def keep(batches: Batches) -> Batches:
        yield from spark_blocks.kept_blocks(batches, domain, records=records, key=key)

    return keep


def _counting(domain: Domain, marginals: Sequence[Attrs], *, expected: int) -> Callable[[Batches], Batches]:
    """What a worker does with the blocks of its part."""

    def count(batches: Batches) -> Batches:
        import pyarrow as pa

        codes = spark_blocks.codes_of_blocks(batches, domain)
        cells, counts = count_part(codes, domain, marginals, expected=expected)
        yield pa.RecordBatch.from_pydict({"cell": cells, "n": counts})

    return count


def _finding(domain: Domain) -> Callable[[Batches], Batches]:
    """What a worker does with blocks whose distinct records are asked for."""

    def find(batches: Batches) -> Batches:
        import pyarrow as pa

        names = word_names(domain.shape)
        for codes in spark_blocks.codes_of_blocks(batches, domain):
            words, times = distinct_of_part(codes, domain)
            columns = dict(zip([*names, "n"], [*words, times], strict=True))
            yield pa.RecordBatch.from_pydict({name: pa.array(c) for name, c in columns.items()})

    return find


def _tasks(session: Any, records: int | None = None) -> int:
    """Most tasks that work at once; fewer where there are few records, since each sends counts of its own."""
    try:
        cores = int(session.sparkContext.defaultParallelism)
    except Exception:  # noqa: BLE001  Spark Connect does not tell, each version by another error
        cores = int(session.conf.get("spark.default.parallelism", "0") or 0)
    most = max(_TASKS_A_CORE * cores, _FEWEST_TASKS)
    # PRIVACY: a cluster's own figures tell its users how many records a task has; counts are the same.
    return most if records is None else min(most, max(cores, -(-records // _RECORDS_A_TASK), 1))
