"""Spark's Python workers count what DuckDB and NumPy count, once each, and send counts alone."""

import datetime
import gc
import itertools
import subprocess
import sys
import textwrap
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import sidelight as sl
from sidelight.data.columns.column import CategoricalColumn, IntegerColumn, RealColumn
from sidelight.data.columns.moment_columns import DateColumn
from sidelight.data.domain import Domain
from sidelight.data.engines import spark as spark_engine
from sidelight.data.engines import spark_blocks, spark_counting
from sidelight.data.engines.partial import count_part, marginals_of, passes
from sidelight.data.engines.spark_blocks import bucket_of
from sidelight.data.engines.spark_counting import BY_GROUPING_SETS, BY_WORKERS, SETTING
from sidelight.data.schema import Schema
from sidelight.data.table import Table
from sidelight.errors import DataError
from sidelight.privacy.unit import Unit
from sidelight.testing import SeededNoise

SCHEMA = Schema(
    (
        CategoricalColumn("ward", ("a", "b", "c"), missing=True, outside="other"),
        IntegerColumn("age", low=0, high=99, bins=10, missing=True, outside="clamp"),
        RealColumn("dose", low=0.0, high=1.0, bins=4, missing=True),
        DateColumn("seen", low="2020-01-01", high="2023-12-31", by="year", missing=True),
        IntegerColumn("wide", low=0, high=299),
        *(IntegerColumn(f"x{i}", low=0, high=2) for i in range(4)),
    )
)
TRIPLES = list(itertools.combinations(SCHEMA.domain.attrs, 3))


def skewed_records(records: int = 4000) -> pa.Table:
    """Most records are alike; every column but the last ones also has missing values."""
    rng = np.random.default_rng(2)
    is_rare = rng.random(records) < 0.05
    days = [datetime.date(2020, 1, 1) + datetime.timedelta(int(d)) for d in rng.integers(0, 1400, records)]
    columns = {
        "who": [f"p{int(p)}" for p in rng.geometric(0.01, records)],
        "ward": np.where(is_rare, rng.choice(["b", "c", "elsewhere"], records), "a").tolist(),
        "age": np.where(is_rare, rng.integers(-5, 130, records), 40).tolist(),
        "dose": rng.random(records).tolist(),
        "seen": days,
        "wide": rng.integers(0, 300, records).tolist(),
        **{f"x{i}": (is_rare * rng.integers(0, 3, records)).tolist() for i in range(4)},
    }
    for name in ("ward", "age", "dose", "seen"):
        columns[name] = [
            None if lost else v for v, lost in zip(columns[name], rng.random(records) < 0.1, strict=True)
        ]
    return pa.table(columns)


RECORDS = skewed_records()


def assert_same(table: Table, other: Table, marginals=TRIPLES) -> None:
    both = table.count_many(marginals), other.count_many(marginals)
    for attrs, one, two in zip(marginals, *both, strict=True):
        np.testing.assert_array_equal(one, two, err_msg=str(attrs))


def test_parts_add_up_to_the_counts_of_the_whole():
    domain = Domain.of({"a": 3, "b": 200, "c": 2})
    rng = np.random.default_rng(1)
    codes = [rng.integers(0, size, 5000).astype(np.int16) for size in domain.shape]
    marginals = [("a", "b"), ("c",), ("a", "b", "c")]
    table = Table.of_codes(domain, codes)

    sums: dict[int, int] = {}
    for part in (slice(0, 10), slice(10, 10), slice(10, 4000), slice(4000, 5000)):
        batches = [[column[part][some::3] for column in codes] for some in range(3)]
        cells, counts = count_part(batches, domain, marginals, expected=1000)
        assert (counts > 0).all()
        for cell, n in zip(cells.tolist(), counts.tolist(), strict=True):
            sums[cell] = sums.get(cell, 0) + n
    found = marginals_of(np.array(list(sums)), np.array(list(sums.values())), domain, marginals)

    for attrs in marginals:
        np.testing.assert_array_equal(found[attrs], table.count(attrs))


def test_a_part_with_a_refused_value_says_so_and_nothing_else():
    cells, counts = count_part([[np.array([0, 1])], None], Domain.of({"a": 2}), [("a",)], expected=3)

    assert cells.tolist() == [-1]
    assert counts.tolist() == [1]


def test_marginals_that_fill_a_workers_memory_take_further_passes(monkeypatch):
    monkeypatch.setattr("sidelight.data.engines.partial._MOST_CELLS", 10)
    domain = Domain.of({"a": 5, "b": 4, "c": 3})

    found = list(passes(domain, [("a",), ("b",), ("a", "b"), ("c",)]))

    assert found == [[("a",), ("b",)], [("a", "b")], [("c",)]]


@pytest.fixture(scope="module")
def frame(request, tmp_path_factory):
    """Files of very different sizes, one of them empty, in more partitions than are counted at a time."""
    spark, folder = request.getfixturevalue("spark"), tmp_path_factory.mktemp("partitioned")
    ends = [0, 1, 1, 3500, 3600, RECORDS.num_rows]
    for i, (start, end) in enumerate(itertools.pairwise(ends)):
        pa.parquet.write_table(RECORDS.slice(start, end - start), folder / f"{i}.parquet")
    return spark.read.parquet(str(folder)).repartition(7, "wide")


@pytest.mark.spark
@pytest.mark.slow
def test_skewed_wide_and_partitioned_data_give_the_counts_of_numpy_and_duckdb(frame, monkeypatch, tmp_path):
    monkeypatch.setattr(spark_counting, "_TASKS_A_CORE", 1)
    monkeypatch.setattr(spark_counting, "_FEWEST_TASKS", 3)
    pa.parquet.write_table(RECORDS, tmp_path / "all.parquet")

    table = Table.read(frame, SCHEMA)

    assert table.counting == BY_WORKERS
    assert_same(table, Table.read(RECORDS, SCHEMA))
    assert_same(table, Table.read(tmp_path / "all.parquet", SCHEMA, engine="duckdb"))


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize(("attr", "is_limited"), [("wide", False), ("dose", False), ("ward", True)])
def test_batches_of_small_values_have_no_limit_in_bytes_and_the_setting_is_put_back(
    frame, spark, monkeypatch, attr, is_limited
):
    name, seen = spark_counting._BYTES_A_BATCH, []
    read = spark_counting.brought_here
    monkeypatch.setattr(
        spark_counting,
        "brought_here",
        lambda lines: (seen.append(spark.conf.get(name, None)), read(lines))[1],
    )
    before = spark.conf.get(name, None)

    Table.read(frame, SCHEMA.only([attr]))

    assert (seen[-1] == before) == is_limited
    assert spark.conf.get(name, None) == before


@pytest.mark.spark
@pytest.mark.slow
def test_without_python_workers_grouping_sets_give_the_same_and_the_card_says_which_ran(frame, spark):
    asked = {
        "schema": SCHEMA, "epsilon": 1.0, "delta": 1e-9, "workload": [("ward", "x0")], "mechanism": "mst",
        "noise": SeededNoise(3), "progress": False, "quality_share": 0.0,
    }  # fmt: skip
    by_workers = sl.release(frame, **asked)
    spark.conf.set(SETTING, "false")
    try:
        by_sql = sl.release(frame, **{**asked, "noise": SeededNoise(3)})
    finally:
        spark.conf.unset(SETTING)

    assert by_workers.card.counting == BY_WORKERS
    assert by_sql.card.counting == BY_GROUPING_SETS
    np.testing.assert_array_equal(by_workers.count(("ward", "x0")), by_sql.count(("ward", "x0")))


@pytest.mark.spark
@pytest.mark.slow
def test_workers_of_another_version_do_not_count(spark, monkeypatch):
    monkeypatch.setattr(spark_counting, "_can_run", {})
    monkeypatch.setattr(spark_counting, "version", lambda name: "0.0.0 of the driver")

    with pytest.warns(UserWarning, match="PYSPARK_PYTHON"):
        assert not spark_counting.has_workers(spark)


@pytest.mark.spark
@pytest.mark.slow
def test_in_local_mode_workers_run_with_the_python_that_runs_here_unless_another_is_named(spark, monkeypatch):
    context = spark.sparkContext
    monkeypatch.setattr(context, "pythonExec", "a-python-without-sidelight")
    monkeypatch.setattr(spark_counting, "_can_run", {})
    monkeypatch.delenv("PYSPARK_PYTHON")

    assert spark_counting.has_workers(spark)
    assert context.pythonExec == "a-python-without-sidelight"

    monkeypatch.setattr(spark_counting, "_can_run", {})
    monkeypatch.setenv("PYSPARK_PYTHON", "a-python-without-sidelight")
    with pytest.warns(UserWarning, match="PYSPARK_PYTHON"):
        assert not spark_counting.has_workers(spark)


@pytest.mark.spark
@pytest.mark.slow
def test_workers_count_the_records_of_people_that_are_kept(frame):
    unit = Unit("add-or-remove", 2, "who", "own")

    kept = Table.read(frame, SCHEMA, unit=unit).keeping(unit, "5a" * 32)

    assert kept.counting == BY_WORKERS
    assert_same(kept, Table.read(RECORDS, SCHEMA, unit=unit).keeping(unit, "5a" * 32))


@pytest.mark.spark
@pytest.mark.slow
def test_only_counts_come_back(frame, monkeypatch):
    table, fetched = Table.read(frame, SCHEMA), []
    columns_of = spark_counting.columns_of

    def watched(lines):
        found = columns_of(lines)
        fetched.append((lines.columns, found))
        return found

    monkeypatch.setattr(spark_counting, "columns_of", watched)
    table.count_many(TRIPLES)

    ((names, (cells, counts)),) = fetched
    assert names == ["cell", "sum(n)"]
    assert len(np.unique(cells)) == len(cells) <= sum(map(SCHEMA.domain.size, TRIPLES))
    assert counts.sum() == RECORDS.num_rows * len(TRIPLES)


class WithoutArrow:
    """A frame as older versions of PySpark have it."""

    def __init__(self, frame):
        self._frame = frame

    def __getattr__(self, name):
        if name == "toArrow":
            raise AttributeError(name)
        return getattr(self._frame, name)


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("found", ["a = 1", "a > 9"])
def test_an_older_pyspark_brings_the_same_lines_in_one(spark, found):
    frame = spark.createDataFrame([(1, "x"), (2, None), (3, "z")], "a bigint, b string").where(found)

    here, older = spark_engine.brought_here(frame), spark_engine.brought_here(WithoutArrow(frame))

    assert [list(line.values()) for line in older.to_pylist()] == [
        list(one.values()) for one in here.to_pylist()
    ]


def test_lines_of_an_older_pyspark_that_a_lost_connection_swallowed_are_missed(monkeypatch):
    class Swallowed:
        """A frame whose lines never arrive: ``collect`` takes the end of the connection for the last line."""

        columns = ("a",)

        def select(self, *asked):
            return self

        def collect(self):
            return []

    functions = pytest.importorskip("pyspark.sql.functions")
    monkeypatch.setattr(functions, "struct", lambda *asked: None)
    monkeypatch.setattr(functions, "collect_list", lambda *asked: None)

    with pytest.raises(DataError, match="no whole result came back from Spark"), spark_engine.silent_errors():
        spark_engine.brought_here(Swallowed())


def test_a_connection_lost_before_tasks_are_planned_is_said():
    error = pytest.importorskip("py4j.protocol").Py4JNetworkError

    class Lost:
        """A session that nobody reaches."""

        def __getattr__(self, name):
            raise error

    domain = Domain.of({"a": 2})
    blocks = SimpleNamespace(session=Lost())
    engine = spark_counting.SparkEngine(blocks, sl.Schema.from_domain({"a": 2}), records=9)
    people = spark_counting.SparkPeople(blocks, sl.Schema.from_domain({"a": 2}), "who")

    with pytest.raises(DataError, match="no whole result came back from Spark"):
        engine._cells([0], domain, [("a",)])
    with pytest.raises(DataError, match="no whole result came back from Spark"):
        people.keeping(engine, sl.Unit("replace", 2, "who"), "00")


@pytest.mark.spark
@pytest.mark.slow
def test_what_was_checked_is_counted_and_what_is_read_again_is_checked_again(spark, tmp_path):
    path, schema = tmp_path / "a.parquet", Schema((CategoricalColumn("half", (0.5, 1.5)),))
    pa.parquet.write_table(pa.table({"half": [0.5, 1.5]}), path)
    table = Table.read(spark.read.parquet(str(path)), schema)
    pa.parquet.write_table(pa.table({"half": [0.5, 7.25]}), path)

    assert table.count(("half",)).tolist() == [1, 1]
    table._engine._blocks.frame.unpersist()  # as if the executors that held the codes were lost
    for look in (lambda: table.count(("half",)), table.distinct):
        with pytest.raises(DataError) as caught:
            look()
        assert "7.25" not in str(caught.value)


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("unit", [Unit(), Unit("add-or-remove", 2, "who", "own")])
def test_what_spark_holds_is_given_back_at_once_when_a_release_is_done(frame, spark, unit):
    held = spark.sparkContext._jsc.sc()
    asked = {
        "schema": SCHEMA, "epsilon": 1.0, "delta": 1e-9, "workload": [("ward", "x0")], "mechanism": "mst",
        "noise": SeededNoise(3), "progress": False, "unit": unit,
    }  # fmt: skip
    gc.collect()
    before = held.getPersistentRDDs().size()
    gc.disable()
    try:
        release = sl.release(frame, **asked)
        after = held.getPersistentRDDs().size()
    finally:
        gc.enable()

    assert release.card.counting == BY_WORKERS
    assert after == before


@pytest.mark.spark
@pytest.mark.slow
def test_lines_are_held_one_by_one_and_the_setting_is_given_back(spark):
    """Spark remembers a hundred of the batches that it moves to disk: together, lines would fill its heap."""
    setting, held = spark.conf.get(spark_counting._LINES_A_BATCH), spark.sparkContext._jsc.getPersistentRDDs
    before, schema = set(held()), Schema.from_domain({"a": 7, "b": 5})
    private = spark.range(800_000, numPartitions=1).selectExpr("id % 7 AS a", "id % 5 AS b")

    table = Table.read(private, schema, engine="spark")

    (batches,) = (batches for number, batches in held().items() if number not in before)
    assert table.records == 800_000
    assert batches.count() == -(-800_000 // (spark_blocks._BYTES_OF_BLOCK // 2))
    assert spark.conf.get(spark_counting._LINES_A_BATCH) == setting


@pytest.mark.spark
@pytest.mark.slow
def test_distinct_records_and_their_numbers_are_those_of_numpy(frame):
    unit = Unit("add-or-remove", 2, "who", "own")

    for here, there in (
        (Table.read(RECORDS, SCHEMA), Table.read(frame, SCHEMA)),
        (
            Table.read(RECORDS, SCHEMA, unit=unit).keeping(unit, "5a" * 32),
            Table.read(frame, SCHEMA, unit=unit).keeping(unit, "5a" * 32),
        ),
    ):
        for one, other in zip(here.distinct(), there.distinct(), strict=True):
            np.testing.assert_array_equal(one, other)
        assert len(there.codes()) == here.records


@pytest.mark.spark
@pytest.mark.slow
def test_text_that_is_no_utf_8_is_outside_the_schema_and_stops_nobody(spark):
    schema = Schema((CategoricalColumn("word", ("ü", "a"), missing=True, outside="other"),))
    frame = spark.sql(
        "SELECT CAST(x AS STRING) AS word FROM VALUES (X'61'), (X'C3BC'), (X'FF'), (NULL) AS t(x)"
    )

    table = Table.read(frame, schema)

    assert table.counting == BY_WORKERS
    assert table.count(("word",)).tolist() == [1, 1, 1, 1]


@pytest.mark.spark
@pytest.mark.slow
def test_a_value_of_a_type_that_no_column_holds_is_refused(spark):
    schema = Schema((IntegerColumn("span", low=0, high=1, missing=True),))
    frame = spark.sql("SELECT CASE WHEN id > 2 THEN make_interval(id) END AS span FROM range(5)")

    with pytest.raises(DataError, match="outside"):
        Table.read(frame, schema)


def test_all_records_of_a_person_are_in_one_bucket_and_people_in_many():
    names = [f"patient-{i % 3000}" for i in range(9000)] + ["", "ü", "12", "1234567890", None, None]
    words = [np.arange(len(names))]

    found = bucket_of(pa.array(names), words, 64)
    again = bucket_of(pa.array(["other", *names]).slice(1), [np.arange(len(names))[::-1].copy()], 64)

    np.testing.assert_array_equal(found[:-2], again[:-2])
    for other in ("", "p", "x" * 17, "x" * 40, "x" * 1000):
        beside = bucket_of(pa.array([*names, other]), [np.arange(len(names) + 1)], 64)
        np.testing.assert_array_equal(found[:-2], beside[:-3])
    assert np.bincount(found[:3000], minlength=64).max() < 3 * 3000 / 64


LOST = """
    import os, signal, sys
    from pyspark import TaskContext
    from pyspark.sql import SparkSession
    from sidelight.data.schema import Schema
    from sidelight.data.table import Table

    master, fault, folder = sys.argv[1:]
    builder = SparkSession.builder.master(master)
    for name, value in {
        "spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "2", "spark.executor.memory": "512m",
        "spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "100",
    }.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()

    def parent(process):
        return int(open(f"/proc/{process}/stat").read().rpartition(")")[2].split()[1])

    def dies_once(batches):
        # A process is killed that has handed over a part of its records: this one, or Java's above it.
        mark = os.path.join(folder, f"part{TaskContext.get().partitionId()}")
        for number, batch in enumerate(batches):
            if number == 3 and os.path.exists(os.path.join(folder, "armed")) and not os.path.exists(mark):
                open(mark, "w").close()
                own = os.getpid()
                os.kill(parent(parent(own)) if fault == "executor" else own, signal.SIGKILL)
            yield batch

    rows = session.range(0, 2000, 1, 2).selectExpr("CAST(id % 3 AS INT) AS a", "CAST(id % 2 AS INT) AS b")
    open(os.path.join(folder, "armed"), "w").close()
    table = Table.read(rows.mapInArrow(dies_once, "a int, b int"), Schema.from_domain({"a": 3, "b": 2}))
    print("COUNTED", table.counting, table.count(("a", "b")).tolist(), len(os.listdir(folder)) - 1)
    session.stop()
"""


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.usefixtures("spark")  # which says why where there is no Java
@pytest.mark.parametrize(
    ("master", "fault"), [("local[1,4]", "worker"), ("local-cluster[2,1,512]", "executor")]
)
def test_a_part_whose_process_is_killed_is_counted_again_and_not_twice(tmp_path, master, fault):
    command = [sys.executable, "-W", "ignore", "-c", textwrap.dedent(LOST), master, fault, str(tmp_path)]

    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert "COUNTED" in done.stdout, done.stderr[-2000:]
    said = done.stdout.partition("COUNTED ")[2].strip()
    assert said == f"{BY_WORKERS} [[334, 333], [333, 334], [333, 333]] 2"
