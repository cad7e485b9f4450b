"""One record's change moves no other record's code, whatever holds the table, whichever engine reads it."""

import math
import sys
import uuid
from dataclasses import replace
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from encoding import encode_value

sys.path.insert(0, str(Path(__file__).resolve().parent))

import changes

from sidelight.data.columns.column import CategoricalColumn, Column, IntegerColumn, RealColumn
from sidelight.data.columns.constraints import Sum
from sidelight.data.columns.moment_columns import DateColumn, DatetimeColumn, TimeColumn
from sidelight.data.engines.sql import SqlEngine
from sidelight.data.reading.each import Each
from sidelight.data.reading.frames import columns_of
from sidelight.data.reading.read import open_source
from sidelight.data.schema import Schema
from sidelight.data.table import Table
from sidelight.errors import DataError


def labels(*labels: object) -> CategoricalColumn:
    is_text = isinstance(labels[0], str)
    return CategoricalColumn("x", labels, missing=True, outside="other", other_label="☒" if is_text else None)


KINDS: dict[str, tuple[Column, list[Any]]] = {
    "text": (labels("north", "south", ""), ["north", "south", "south", "north", "east", "south"]),
    "whole as text": (labels("1", "2", "01"), [1, 2, 2, 1, 3, 2, 1, 1]),
    "real as text": (labels("0.25", "0.5", "1"), [0.25, 0.5, 0.5, 0.25, 7.25, 0.5]),
    "whole and real as text": (labels("1", "0.5", "1e-07"), [1.0, 0.5, 0.5, 1e-07, 7.0, 0.5]),
    "boolean as text": (labels("true", "false"), [True, False, False, True, True, False]),
    "dates as text": (labels("2020-01-01", "2020-06-01"), [date(2020, 1, 1), date(2020, 6, 1)] * 3),
    "timestamps as text": (
        labels("2020-01-01", "2020-06-01T12:00:00.5"),
        [datetime(2020, 1, 1), datetime(2020, 6, 1, 12, 0, 0, 500_000)] * 3,
    ),
    "whole labels": (labels(1, 2), [1, 2, 2, 1, 3, 2, 1, 1]),
    "real labels": (labels(1.0, 0.5), [1.0, 0.5, 0.5, 1.0, 7.25, 0.5]),
    "boolean labels": (labels(*(True, False)), [True, False, False, True, True, False]),
    "whole": (IntegerColumn("x", low=0, high=9, missing=True, outside="other"), [1, 2, 3, 4, 5, 60]),
    "real": (RealColumn("x", low=0.0, high=1.0, bins=3, missing=True, outside="other"), [0.1, 0.4, 0.9] * 2),
    "dates": (
        DateColumn("x", "2019-12-30", "2020-07-01", "month", missing=True, outside="other"),
        [date(2020, 1, 1), date(2020, 6, 1), date(2019, 12, 31), date(2021, 1, 1)] * 2,
    ),
    "weekdays": (
        DateColumn("x", "2019-12-30", "2020-07-01", "weekday", missing=True, outside="other"),
        [date(2020, 1, 1), date(2020, 6, 1), date(1969, 12, 31), date(2021, 1, 1)] * 2,
    ),
    "dates as text, day first": (
        DateColumn("x", "1890-12-30", "2020-07-01", bins=100, format="dmy", missing=True, outside="other"),
        ["1.1.2020", "01/06/2020", "2020-01-01", "31.12.1899", "30.2.2020", "29-02-1900", "29.02.2000"],
    ),
    "moments": (
        DatetimeColumn("x", "2019-12-30", "2020-07-01T12:00:00", "week", missing=True, outside="other"),
        [datetime(2020, 1, 1), datetime(2020, 6, 1, 12, 0, 0, 500_000), datetime(2020, 7, 1, 12, 0, 1)] * 2,
    ),
    "hours": (
        DatetimeColumn("x", "1899-12-30", "2020-07-01", "hour", missing=True, outside="other"),
        [datetime(2020, 1, 1), datetime(2020, 6, 1, 12, 0, 0, 500_000), datetime(1900, 7, 1, 23, 59, 59)] * 2,
    ),
    "moments in a zone": (
        DatetimeColumn(
            "x", "1960-01-01", "2020-12-31", "hour", zone="Europe/Berlin", missing=True, outside="other"
        ),
        ["2020-06-01T12:00:00Z", "2020-01-01T12:00:00+00:00", "2020-01-01 12:00", "1969-12-31T23:30-0100"]
        * 2,
    ),
    "times": (
        TimeColumn("x", missing=True, outside="other"),
        ["10:30", "23:59:59.9", "24:00", "00:00:00", "7:00"] * 2,
    ),
    "prefixes": (
        CategoricalColumn(
            "x", ("1", "20", "ün"), prefix=2, missing=True, outside="other", missing_texts=("NA",)
        ),
        ["1", "20", "201", "2", "ünï", "NA", "NAN"],
    ),
    "prefixes of numbers": (
        CategoricalColumn("x", ("1", "20", "tr"), prefix=2, missing=True, outside="other"),
        [1, 20, 201, 2, 2045],
    ),
    "aliases": (
        CategoricalColumn(
            "x",
            ("F", "1"),
            aliases=(("F", ("f", "1.0")), ("1", ("2", "x"))),
            missing=True,
            outside="other",
            missing_texts=("", "-", "0.5"),
        ),
        ["F", "f", "1", "1.0", "-", "other", "x"],
    ),
    "truths": (
        CategoricalColumn(
            "x",
            (False, True),
            aliases=(("true", ("ja", "Ünï")), ("false", ("x",))),
            missing=True,
            outside="other",
            missing_texts=("-", "2"),
        ),
        ["yes", "NO", "ja", "JA", " ja ", "x", "-", "2", "t"],
    ),
    "numbers that are missing": (
        RealColumn("x", low=0.0, high=2.0, bins=4, missing=True, outside="other", missing_texts=("x", "1.5")),
        [0.1, 0.4, 1.5, 2.0] * 2,
    ),
}
NEWER = list(KINDS)[list(KINDS).index("dates") :]
FRAMES = ("pandas", "categories", "nullable", "polars", "arrow", "dictionaries")
FILES = ("parquet", "parquet by pandas", "relation", "csv")


def cases():
    found = []
    for kind in KINDS:
        for holder in (*FRAMES, *FILES):
            if (kind, holder) == ("whole and real as text", "polars"):
                continue  # polars itself makes the text "1.0" of 1.0 beside text
            slow = pytest.mark.slow
            if kind in NEWER:  # the readers beneath are the same: each kind once, in a few holders
                if holder in ("pandas", "polars", "csv", "parquet"):
                    marks = [] if (kind, holder) == ("dates", "pandas") else slow
                    found.append(pytest.param(kind, holder, False, id=f"{kind}, {holder}", marks=marks))
                continue
            found.append(pytest.param(kind, holder, True, id=f"{kind}, {holder}, everywhere", marks=slow))
            if holder == "pandas" or (holder in ("polars", "csv") and kind in ("whole as text", "real")):
                found.append(pytest.param(kind, holder, False, id=f"{kind}, {holder}"))
    return found


@pytest.mark.parametrize(("kind", "holder", "everywhere"), cases())
def test_one_record_changes_nobody_elses_code(kind, holder, everywhere, tmp_path):
    column, values = KINDS[kind]
    engines = [None, "duckdb"] if holder in FILES and everywhere else [None]

    for engine in engines:

        def read(table, engine=engine):
            return Table.read(table, Schema((column,)), engine=engine).codes().ravel().tolist()

        before = read(changes.HOLDERS[holder]({"x": values}, tmp_path))
        held = [str(value) if holder == "csv" else value for value in values]
        assert before == [encode_value(column, value) for value in held]
        found = changes.moved(
            read, changes.HOLDERS[holder], {"x": values}, "x", tmp_path, everywhere=everywhere
        )
        assert found == []


@pytest.mark.parametrize(
    "holder", ["pandas", *(pytest.param(h, marks=pytest.mark.slow) for h in ("nullable", "polars", "arrow"))]
)
@pytest.mark.parametrize(
    ("column", "values"),
    [
        (IntegerColumn("x", low=0, high=9, outside="clamp"), [1, 2, 3, 4, 5, 6]),
        (RealColumn("x", low=0.0, high=9.0, bins=3, missing=True, outside="clamp"), [0.5, 2.0, 3.25] * 2),
        (CategoricalColumn("x", ("1", "2"), missing=True), [1, 2] * 3),
        (CategoricalColumn("x", ("1", "2"), outside="other"), [1, 2] * 3),
    ],
    ids=["whole", "real", "no place for others", "no place for missing"],
)
def test_a_table_is_refused_where_the_changed_record_itself_does_not_fit_and_only_there(
    column, values, holder, tmp_path
):
    for name, place, neighbour in changes.neighbours({"x": values}, "x", everywhere=False):
        try:
            table = changes.HOLDERS[holder](neighbour, tmp_path)
        except changes.CannotHoldError:
            continue
        each = Each(columns_of(table)[1](0))
        own = each.values[each._distinct[1][place]]
        expected = [encode_value(column, value) for value in values]
        try:
            expected[place] = encode_value(column, own)
        except DataError:
            with pytest.raises(DataError, match="does not fit its schema: column 'x' has"):
                Table.read(table, Schema((column,)))
            continue
        assert Table.read(table, Schema((column,))).codes().ravel().tolist() == expected, name


def inferring(frame):
    """One Arrow type for the whole column, inferred from all of it."""
    return [str(value) for value in pa.Array.from_pandas(frame["x"]).to_pylist()]


def deciding_by_type(frame):
    """A reader that refuses a column by its type."""
    if pa.Array.from_pandas(frame["x"]).type == pa.float64():
        raise DataError("real numbers under labels of text")
    return frame["x"].tolist()


@pytest.mark.parametrize("reader", [inferring, deciding_by_type])
def test_readers_that_infer_or_refuse_by_the_columns_type_are_caught(reader, tmp_path):
    found = changes.moved(reader, changes.as_pandas, {"x": [1, 2, 2, 1, 3, 2]}, "x", tmp_path)

    assert any(line.startswith("missing") for line in found)


def test_files_of_other_types_are_each_read_by_their_own(tmp_path):
    """One missing or odd record changes the type of its own file alone, and nobody's code in another."""
    from sidelight.statistics.columns import Cells, read_columns

    schema = Schema((labels("1", "2"),))
    ways = [[1, 2], [1.0, None], [1.5, 2.0], ["x", "1"], [None, None]]

    for first in ways:
        for second in ways:
            for name, values in (("a", first), ("b", second)):
                pyarrow.parquet.write_table(pa.table({"x": pa.array(values)}), tmp_path / f"{name}.parquet")
            files = str(tmp_path / "*.parquet")
            expected = [encode_value(schema.columns[0], value) for value in (*first, *second)]

            assert Table.read(files, schema).codes().ravel().tolist() == expected
            assert (
                Table.read(files, schema, engine="duckdb").count(("x",)).tolist()
                == np.bincount(expected, minlength=4).tolist()
            )
            cells = Cells(["1", "2"]).codes(read_columns(files, ["x"])["x"])
            assert cells.tolist() == [min(code, 2) for code in expected]


# Every value that a database can hold in a column of one type, under every declaration.

MOMENTS = [datetime(2020, 1, 1), datetime(2020, 6, 1, 12, 0, 0, 500_000), datetime(1900, 1, 1, 1), None]
MOMENTS += [datetime(1969, 12, 31, 23, 59, 59, 999_999), datetime(2020, 3, 29, 0, 59, 59, 999_999)]
MOMENTS += [datetime(2020, 3, 29, 1), datetime(2020, 10, 25, 0, 59, 59), datetime(2020, 10, 25, 1)]
FINE = [np.datetime64(nanos, "ns") for nanos in (-1, 999_999_999, 10**18 - 1, 1_577_836_800 * 10**9)]
DAYS = ("2020-02-29", "2019-02-29", "1900-02-29", "2000-2-29", "2020/06/30", "2020.06.31", "0000-01-01")
DAYS += (
    "30.06.2020",
    "6/30/2020",
    "31-04-2020",
    "1.1.0001",
    "2020-00-10",
    "2020-13-01",
    "20200101",
    "1/1/20",
)
CLOCKS = ("", " 10:30", "T23:59:59", "T23:59:60", " 24:00", "T1:30", "T10:30:15.999999999", "T10:30:15.")
OFFSETS = ("", "Z", "+00:00", "-0100", "+14:00", "+15:00", "+2", "z")
TEXTS_OF_MOMENTS = [
    *(day + clock for day in DAYS for clock in CLOCKS[:3]),
    *("2020-06-30" + clock + offset for clock in CLOCKS for offset in OFFSETS),
    *(f"2020-{day}T0{hour}:59:59Z" for day in ("03-29", "10-25") for hour in range(4)),
    *(
        "10:30",
        "00:00",
        "23:59:59.999",
        "24:00:00",
        "10:60",
        "1:30",
        "10:30:15,5",
        "-",
        "ja",
        "JA",
        "Ünï",
        " x ",
    ),
    *(" 2020-06-01 ", "NA", "NAN", "20", "201", "ünï", "F", "f", "x", "yes", "No"),
]
TYPED: dict[str, tuple[Any, list[Any]]] = {
    "text": (
        pa.string(),
        [value for value in changes.ODD.values() if isinstance(value, str) and value.isprintable()]
        + [
            "1.7976931348623157e308",
            "1.8e308",
            "-1e400",
            "4.9e-324",
            "2e-324",
            "1e-99999999999",
            "0e99999999",
        ]
        + [
            ".5",
            "5.",
            "+7",
            "1e05",
            "1e+5",
            "-1e-5",
            "--1",
            "1e",
            "e5",
            ".",
            "１",
            "1" * 400,
            "0." + "0" * 400 + "1",
        ]
        + [
            "1\n",
            "\t1",
            "1\r",
            "0.5",
            "1",
            "2",
            "true",
            "T",
            "f",
            "north",
            "2020-01-01",
            None,
            " inf ",
            "NAN",
        ]
        + TEXTS_OF_MOMENTS,
    ),
    "whole": (pa.int64(), [0, 1, 2, -7, 2**53 + 1, 2**63 - 1, None]),
    "real": (
        pa.float64(),
        [0.0, -0.0, 0.1, 0.5, 1.0, 2.0, 1.5, 1e308, 5e-324, math.inf, -math.inf, math.nan, None, 1e22, 1e-07],
    ),
    "decimal": (
        pa.decimal128(38, 20),
        [Decimal("1"), Decimal("0.50"), Decimal("0.1"), Decimal("7.25"), None],
    ),
    "boolean": (pa.bool_(), [True, False, None]),
    "date": (pa.date32(), [date(2020, 1, 1), date(2020, 6, 1), date(1, 1, 1), date(9999, 12, 31), None]),
    "timestamp": (pa.timestamp("us"), MOMENTS),
    "nanoseconds": (pa.timestamp("ns"), [*MOMENTS, *FINE]),
    "nanoseconds with a zone": (pa.timestamp("ns", tz="UTC"), [*FINE, None]),
    "bytes": (
        pa.binary(),
        [
            b"1",
            b"north",
            b"",
            b"\xff",
            b"\xed\xa0\x80",
            b"1\x00",
            "ünï €𝄞".encode(),
            b"2020-06-01",
            b"10:30",
            b" yes",
            None,
            "Ünï".encode(),
            "ünï".encode(),
            b"0.25",
            b"31.12.1899",
            b"\xc0\xb1",
            b"\xf5\x80\x80\x80",
        ],
    ),
    "lists": (pa.list_(pa.int64()), [[1], None]),
    "times": (pa.time64("us"), [time(0), time(10, 30), time(23, 59, 59, 999_999), time(1, 2, 3), None]),
    "times with a zone": (pa.timestamp("us", tz="UTC"), [m and m.replace(tzinfo=UTC) for m in MOMENTS]),
}
SCHEMA = Schema(tuple(replace(column, name=f"x{i}") for i, (column, _) in enumerate(KINDS.values())))


def one_by_one(values: list[Any]) -> list[tuple[int, ...]]:
    return sorted(tuple(encode_value(column, value) for column in SCHEMA.columns) for value in values)


def with_zone(values: list[Any]) -> list[Any]:
    """Moments of NumPy's, which has no zones, as pandas holds instants."""
    import pandas

    return [value if value is None else pandas.Timestamp(value, tz="UTC") for value in values]


def in_arrow(kind: str) -> pa.Table:
    arrow_type, values = TYPED[kind]
    plain = pa.timestamp("ns") if kind == "nanoseconds with a zone" else arrow_type
    return pa.table({column.name: pa.array(values, plain).cast(arrow_type) for column in SCHEMA.columns})


def from_arrow(kind, tmp_path, request):
    return Table.read(in_arrow(kind), SCHEMA)


def from_parquet(kind, tmp_path, request):
    pyarrow.parquet.write_table(in_arrow(kind), tmp_path / "typed.parquet")
    return Table.read(tmp_path / "typed.parquet", SCHEMA)


def from_duckdb(kind, tmp_path, request):
    pyarrow.parquet.write_table(in_arrow(kind), tmp_path / "typed.parquet")
    return Table.read(tmp_path / "typed.parquet", SCHEMA, engine="duckdb")


def from_grouping_sets(kind, tmp_path, request):
    pyarrow.parquet.write_table(in_arrow(kind), tmp_path / "typed.parquet")
    source = open_source(tmp_path / "typed.parquet", SCHEMA)
    return Table(SqlEngine(source, SCHEMA, records=in_arrow(kind).num_rows), schema=SCHEMA)


def from_spark(kind, tmp_path, request):
    spark = request.getfixturevalue("spark")
    pyarrow.parquet.write_table(in_arrow(kind), tmp_path / "typed.parquet")
    if kind.startswith("nanoseconds"):
        pytest.skip("Spark has no nanoseconds")
    if kind == "times":
        pytest.skip("Spark has no times of day")
    return Table.read(spark.read.parquet(str(tmp_path / "typed.parquet")), SCHEMA)


POSTGRES = {
    "text": "text",
    "whole": "bigint",
    "real": "float8",
    "decimal": "numeric",
    "boolean": "boolean",
    "date": "date",
    "timestamp": "timestamp",
    "bytes": "bytea",
    "lists": "bigint[]",
    "times": "time",
    "times with a zone": "timestamptz",
}


def in_postgres(server, request, sql_type: str, values: list[Any]) -> Table:
    import psycopg

    name = f"typed_{uuid.uuid4().hex}"
    columns = ", ".join(f"{column.name} {sql_type}" for column in SCHEMA.columns)
    server.run(f"CREATE TABLE {name} ({columns})")
    request.addfinalizer(lambda: server.run(f"DROP TABLE {name}"))
    marks = ", ".join(["%s"] * len(SCHEMA.columns))
    with psycopg.connect(server.url, autocommit=True) as connection:
        lines = [[value] * len(SCHEMA.columns) for value in values]
        connection.cursor().executemany(f"INSERT INTO {name} VALUES ({marks})", lines)
    return Table.read(f"{server.url}#{name}", SCHEMA)


def from_postgres(kind, tmp_path, request):
    if kind not in POSTGRES:
        pytest.skip("PostgreSQL has no nanoseconds")
    return in_postgres(request.getfixturevalue("postgres"), request, POSTGRES[kind], TYPED[kind][1])


@pytest.mark.parametrize("kind", TYPED)
@pytest.mark.parametrize(
    "read",
    [
        from_arrow,
        from_parquet,
        from_duckdb,
        from_grouping_sets,
        from_postgres,
        pytest.param(from_spark, marks=[pytest.mark.spark, pytest.mark.slow]),
    ],
    ids=lambda read: read.__name__.removeprefix("from_"),
)
def test_every_value_of_a_type_is_read_as_it_is_by_itself_in_every_engine(read, kind, tmp_path, request):
    table = read(kind, tmp_path, request)

    values = with_zone(TYPED[kind][1]) if kind == "nanoseconds with a zone" else TYPED[kind][1]
    assert sorted(map(tuple, table.codes().tolist())) == one_by_one(values)


def test_numbers_beyond_a_double_do_not_stop_postgres(postgres, request):
    near = ["1e400", "-1e400", "1e-400", "1.7976931348623157e308", "1.8e308", "4.9e-324", "2e-324", "NaN"]
    values = [Decimal(text) for text in near]

    table = in_postgres(postgres, request, "numeric", values)

    assert sorted(map(tuple, table.codes().tolist())) == one_by_one(values)


def test_a_sum_beyond_a_double_does_not_stop_postgres(postgres):
    columns = [RealColumn(name, low=0.0, high=9.0, bins=3, missing=True, outside="clamp") for name in "xyz"]
    schema = Schema(tuple(columns), constraints=(Sum(parts=("x", "y"), total="z", violated="missing"),))
    name = f"t{uuid.uuid4().hex}"
    made = f"CREATE TABLE {name} (x float8, y float8, z float8)"
    rows = "(1, 2, 3), (1e308, 1e308, 9), ('-infinity', 'infinity', 5)"
    postgres.run(made, f"INSERT INTO {name} VALUES {rows}")
    try:
        found = Table.read(f"{postgres.url}#{name}", schema).count(("z",)).tolist()
    finally:
        postgres.run(f"DROP TABLE {name}")

    assert found == [0, 1, 0, 2]


@pytest.mark.parametrize("zone", [None, "UTC"])
@pytest.mark.parametrize("unit", ["us", "ns"])
def test_the_first_and_last_moments_that_a_type_has_do_not_stop_a_file(unit, zone, tmp_path):
    """pandas.Timestamp.min among them, which some take for a missing value."""
    ends = [-(2**63) + 3, -(2**63) + 10**10, 0, 2**63 - 3]
    kind = pa.timestamp(unit, tz=zone)
    pyarrow.parquet.write_table(pa.table({"x": pa.array(ends).cast(kind)}), tmp_path / "a.parquet")
    column = DatetimeColumn("x", "1960-01-01", "2020-12-31", "year", zone=zone, missing=True, outside="other")

    found = Table.read(tmp_path / "a.parquet", Schema((column,))).codes().ravel().tolist()

    assert found == [column.other_code, column.other_code, 10, column.other_code]


@pytest.mark.parametrize("scale", [2, 5, 20, 30])
def test_the_scale_of_a_column_of_decimals_changes_no_number(scale, tmp_path):
    """One more precise record makes a finer scale for all; 115/100 is not 115·10²⁸/10³⁰ in every engine."""
    values = [Decimal(f"{i}.{j:02d}") for i in range(3) for j in range(100)]
    edges = tuple(float(value) for value in values)
    schema = Schema((RealColumn("x", edges=edges, outside="clamp"),))
    pyarrow.parquet.write_table(
        pa.table({"x": pa.array(values, pa.decimal128(38, scale))}), tmp_path / "a.parquet"
    )

    codes = Table.read(tmp_path / "a.parquet", schema).codes().ravel().tolist()

    assert codes == [min(place, len(values) - 2) for place in range(len(values))]


@pytest.mark.parametrize(
    "content",
    [b"x\n1\n\xff\n", b"x\n1\n2,3\n", b'x\n1\n"2\n'],
    ids=["not UTF-8", "a field too many", "a quote left open"],
)
def test_a_file_that_is_no_table_is_refused(content, tmp_path):
    (tmp_path / "people.csv").write_bytes(content)

    with pytest.raises(DataError):
        Table.read(tmp_path / "people.csv", Schema((KINDS["whole as text"][0],)))
