"""Every engine gives the counts that the meaning of the schema, value by value, defines."""

import itertools
import math
import random
import uuid
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from encoding import encode_value
from sidelight.data.columns.column import CategoricalColumn, IntegerColumn, RealColumn
from sidelight.data.engines.duckdb import DuckDBEngine
from sidelight.data.engines.sql import SqlEngine
from sidelight.data.reading.read import open_source
from sidelight.data.schema import Schema
from sidelight.data.table import Table
from sidelight.errors import DataError, TooLargeError, WorkloadError

ODD = 'o\'dd "name"; -- DROP TABLE x\\'
SCHEMA = Schema(
    (
        CategoricalColumn(ODD, ("it's", 'a "b"', "back\\slash", "ünï", ""), missing=True, outside="other"),
        IntegerColumn("age", low=0, high=99, bins=7, missing=True, outside="clamp"),
        IntegerColumn("Age", low=-3, high=3, outside="other"),
        RealColumn("income", low=0.0, high=0.3, bins=3, missing=True, outside="other"),
        RealColumn("rate", edges=(-1.0, 0.1, 0.2, 7.5), outside="clamp"),
        CategoricalColumn("flag", (True, False), missing=True),
        CategoricalColumn("code", (10, 2, -7), missing=True, outside="other", other_label=99),
        CategoricalColumn("half", (0.5, 1.5)),
    )
)
OTHER_NAMES = [f"x{i}" for i in range(len(SCHEMA.columns))]
RENAMED = Schema(tuple(replace(c, name=f"x{i}") for i, c in enumerate(SCHEMA.columns)))
MARGINALS = [
    (),
    ("age",),
    ("Age", "age"),
    ("income", ODD),
    ("half", "flag", "code"),
    (ODD, "rate"),
    ("rate", ODD),
    SCHEMA.domain.attrs,
]


def odd_records(records: int) -> dict[str, list[object]]:
    draw = random.Random(3)
    nan, inf = math.nan, math.inf
    choices: dict[str, list[object]] = {
        ODD: ["it's", 'a "b"', "back\\slash", "ünï", "", "elsewhere", "It's", None],
        "age": [0, 1, 14, 15, 50, 99, 100, -5, 2**40, None],
        "Age": [-3, -2, 0, 3, 4, -4, 1000],
        "income": [0.0, 0.1, 0.2, 0.3, 0.30000000000000004, 0.1 + 0.2, -0.0, -1e-300, nan, None, inf, -inf],
        "rate": [-1.0, 0.1, 0.2, 7.5, 0.19999999999999998, 8.0, inf, -inf, -2.0, 3],
        "flag": [True, False, None],
        "code": [10, 2, -7, 3, None],
        "half": [0.5, 1.5],
    }
    return {name: [draw.choice(values) for _ in range(records)] for name, values in choices.items()}


RECORDS = odd_records(300)


def arrow() -> pa.Table:
    types = [
        pa.string(),
        pa.int64(),
        pa.int64(),
        pa.float64(),
        pa.float64(),
        pa.bool_(),
        pa.int64(),
        pa.float64(),
    ]
    arrays = [pa.array(values, type=t) for values, t in zip(RECORDS.values(), types, strict=True)]
    return pa.Table.from_arrays(arrays, names=list(RECORDS))


def expected_codes() -> np.ndarray:
    columns = [[encode_value(c, v) for v in RECORDS[c.name]] for c in SCHEMA.columns]
    return np.array(columns).T


def from_pandas(tmp_path):
    return Table.read(arrow().to_pandas(), SCHEMA)


def from_polars(tmp_path):
    polars = pytest.importorskip("polars")
    return Table.read(polars.from_arrow(arrow()), SCHEMA)


def from_lazy_polars(tmp_path):
    polars = pytest.importorskip("polars")
    return Table.read(polars.from_arrow(arrow()).lazy(), SCHEMA)


def from_pyarrow(tmp_path):
    return Table.read(arrow(), SCHEMA)


def from_parquet(tmp_path):
    half = arrow().num_rows // 2
    pyarrow.parquet.write_table(arrow().slice(0, half), tmp_path / "a'1.parquet")
    pyarrow.parquet.write_table(arrow().slice(half), tmp_path / "a'2.parquet")
    return Table.read(str(tmp_path / "a'*.parquet"), SCHEMA)


def from_csv(tmp_path):
    pyarrow.csv.write_csv(arrow(), tmp_path / "a.csv")
    return Table.read(tmp_path / "a.csv", SCHEMA)


def from_duckdb_relation(tmp_path):
    import duckdb

    # DuckDB itself renames a column whose name differs in case alone.
    relation = duckdb.from_arrow(arrow().rename_columns(OTHER_NAMES))
    return Renamed(Table.read(relation, RENAMED))


def from_duckdb_file(tmp_path):
    pyarrow.parquet.write_table(arrow(), tmp_path / "a.parquet", row_group_size=64)
    return Table.read(tmp_path / "a.parquet", SCHEMA, engine="duckdb")


def from_duckdb_csv(tmp_path):
    pyarrow.csv.write_csv(arrow(), tmp_path / "a.csv")
    return Table.read(tmp_path / "a.csv", SCHEMA, engine="duckdb")


def from_grouping_sets(tmp_path):
    return Table(SqlEngine(open_source(arrow(), SCHEMA), SCHEMA, records=arrow().num_rows), schema=SCHEMA)


def from_codes(tmp_path):
    return Table.of_codes(SCHEMA.domain, expected_codes(), schema=SCHEMA)


def from_spark(tmp_path, request):
    spark = request.getfixturevalue("spark")
    return Table.read(spark.createDataFrame(arrow()), SCHEMA)


def from_spark_table(tmp_path, request):
    spark = request.getfixturevalue("spark")
    # Spark has no table with names that differ in case alone.
    spark.createDataFrame(arrow().rename_columns(OTHER_NAMES)).createOrReplaceTempView("people")
    return Renamed(Table.read("people", RENAMED, engine="spark"))


def from_dask(tmp_path):
    dask = pytest.importorskip("dask.dataframe")
    return Table.read(dask.from_pandas(arrow().to_pandas(), npartitions=11), SCHEMA)


def from_postgres(tmp_path, request):
    url = request.getfixturevalue("postgres").url
    psycopg = pytest.importorskip("psycopg")
    types = ["text", "bigint", "integer", "float8", "float8", "boolean", "bigint", "float8"]
    table = f"sidelight_{uuid.uuid4().hex}"
    with psycopg.connect(url, autocommit=True) as connection:
        quoted = ['"' + name.replace('"', '""') + '"' for name in RECORDS]
        listed = ", ".join(f"{name} {kind}" for name, kind in zip(quoted, types, strict=True))
        connection.execute(f"CREATE TABLE {table} ({listed})")
        request.addfinalizer(lambda: _drop(psycopg, url, table))
        marks = ", ".join(["%s"] * len(types))
        lines = list(zip(*RECORDS.values(), strict=True))
        connection.cursor().executemany(f"INSERT INTO {table} VALUES ({marks})", lines)
    return Table.read(f"{url}#{table}", SCHEMA)


def _drop(psycopg, url, table):
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"DROP TABLE {table}")


class Renamed:
    """A table whose attributes carry other names, asked by the names of SCHEMA."""

    def __init__(self, table):
        self.domain = SCHEMA.domain
        self.records = table.records
        self.codes = table.codes
        self.distinct = table.distinct
        self._table = table

    def _own(self, attrs):
        return tuple(f"x{i}" for i in SCHEMA.domain.index(attrs))

    def count(self, attrs):
        return self._table.count(self._own(attrs))

    def count_many(self, marginals):
        SCHEMA.domain.require([attr for attrs in marginals for attr in attrs])
        return self._table.count_many([self._own(attrs) for attrs in marginals])


ENGINES = [
    from_codes,
    from_pandas,
    from_polars,
    from_lazy_polars,
    from_pyarrow,
    from_parquet,
    from_csv,
    from_duckdb_relation,
    from_duckdb_file,
    from_duckdb_csv,
    from_grouping_sets,
    from_dask,
    from_postgres,
    pytest.param(from_spark, marks=[pytest.mark.spark, pytest.mark.slow]),
    pytest.param(from_spark_table, marks=[pytest.mark.spark, pytest.mark.slow]),
]


@pytest.fixture(scope="module", params=ENGINES, ids=lambda make: make.__name__.removeprefix("from_"))
def table(request, tmp_path_factory):
    make, folder = request.param, tmp_path_factory.mktemp("engine")
    needs_request = make in (from_spark, from_spark_table, from_postgres)
    return make(folder, request) if needs_request else make(folder)


def test_counts_are_those_of_the_records_encoded_one_by_one(table):
    expected = Table.of_codes(SCHEMA.domain, expected_codes())

    counted = table.count_many(MARGINALS)

    for attrs, counts in zip(MARGINALS, counted, strict=True):
        assert counts.dtype == np.int64
        assert counts.shape == SCHEMA.domain.project(attrs).shape
        np.testing.assert_array_equal(counts, expected.count(attrs), err_msg=str(attrs))


def test_one_marginal_is_counted_as_among_many(table):
    (among,) = table.count_many([("Age", "income")])

    alone = table.count(("Age", "income"))

    np.testing.assert_array_equal(alone, among)


def test_no_attributes_give_the_total(table):
    assert table.count(()).shape == ()
    assert int(table.count(())) == table.records == 300


def test_axes_come_in_the_order_asked_and_a_marginal_may_be_asked_twice(table):
    one, two, again = table.count_many([("age", "code"), ("code", "age"), ("age", "code")])

    np.testing.assert_array_equal(one, two.T)
    np.testing.assert_array_equal(one, again)


def test_distinct_records_with_their_multiplicities_are_the_table(table):
    distinct, times = table.distinct()

    found = {tuple(map(int, line)): int(n) for line, n in zip(distinct, times, strict=True)}
    expected: dict[tuple[int, ...], int] = {}
    for line in expected_codes():
        key = tuple(map(int, line))
        expected[key] = expected.get(key, 0) + 1
    assert found == expected


def test_codes_are_the_records_in_some_order(table):
    codes = table.codes()

    assert codes.dtype.kind == "u"
    np.testing.assert_array_equal(
        codes[np.lexsort(codes.T)], expected_codes()[np.lexsort(expected_codes().T)]
    )


def test_a_file_of_no_records_has_no_codes(tmp_path):
    pa.parquet.write_table(arrow().slice(0, 0), tmp_path / "nobody.parquet")

    codes = Table.read(tmp_path / "nobody.parquet", SCHEMA, engine="duckdb", may_be_empty=True).codes()

    assert codes.shape == (0, len(SCHEMA.columns))


def test_an_unknown_attribute_is_refused_by_name(table):
    with pytest.raises(WorkloadError, match="'salary'"):
        table.count_many([("age", "salary")])


def test_frames_and_files_keep_the_order_of_their_records(tmp_path):
    for make in (from_pandas, from_parquet, from_csv):
        np.testing.assert_array_equal(make(tmp_path).codes(), expected_codes())


def test_many_marginals_beyond_one_query_are_all_counted(monkeypatch, tmp_path):
    monkeypatch.setattr("sidelight.data.engines.sql._MOST_MARGINALS", 3)
    pairs = list(itertools.combinations(SCHEMA.domain.attrs, 2))
    engine = from_grouping_sets(tmp_path)
    expected = from_codes(tmp_path)

    counted = engine.count_many(pairs)

    for one, other in zip(counted, expected.count_many(pairs), strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_table_that_changes_after_it_was_checked_is_refused_when_counted(tmp_path):
    path = tmp_path / "a.parquet"
    schema = Schema((CategoricalColumn("half", (0.5, 1.5)),))
    pyarrow.parquet.write_table(pa.table({"half": [0.5, 1.5]}), path)
    table = Table.read(path, schema, engine="duckdb")
    pyarrow.parquet.write_table(pa.table({"half": [0.5, 7.25]}), path)

    with pytest.raises(DataError) as caught:
        table.count(("half",))

    assert "7.25" not in str(caught.value)


def test_a_marginal_that_no_machine_should_hold_is_refused_with_its_size():
    table = Table.of_codes(SCHEMA.domain, expected_codes())
    wide = Schema.from_domain({f"a{i}": 100 for i in range(6)}).domain
    big = Table.of_codes(wide, np.zeros((2, 6), dtype=np.uint8))

    with pytest.raises(TooLargeError, match="1e\\+12 cells"):
        big.count(wide.attrs)

    assert table.count(("half",)).sum() == 300


def test_the_duckdb_engine_is_chosen_for_relations_and_on_request(tmp_path):
    assert isinstance(from_duckdb_relation(tmp_path)._table._engine, DuckDBEngine)
    assert isinstance(from_duckdb_file(tmp_path)._engine, DuckDBEngine)
