"""Every engine keeps the same records of each person: those that a few lines of Python choose."""

import hashlib
import random
import uuid
from collections import Counter, defaultdict

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sidelight.data.columns.column import CategoricalColumn, IntegerColumn
from sidelight.data.schema import Schema
from sidelight.data.table import Table
from sidelight.privacy.unit import Unit

KEY = "5a" * 32
UNIT = Unit("add-or-remove", 3, "who", "own")
SCHEMA = Schema(
    (
        CategoricalColumn("ward", ("a", "b'", "ü"), missing=True),
        IntegerColumn("age", low=0, high=99, bins=5),
        IntegerColumn("wide", low=0, high=2**20 - 1),
        IntegerColumn("wider", low=0, high=2**20 - 1),
        IntegerColumn("widest", low=0, high=2**20 - 1),
    )
)
NAMES = ["p1", "p2", "O'Neil", "ünï", "p/1", " p1", "007", "7", "nobody's"]


def odd_records() -> list[tuple[object, ...]]:
    """Of people with one record, with ten, with one that comes a thousand times, and of nobody."""
    draw = random.Random(5)

    def one(who: str | None) -> tuple[object, ...]:
        wards, ages = ["a", "b'", "ü", None], [0, 19, 20, 60, 99]
        wide = [draw.choice([0, 5, 2**20 - 1]), draw.choice([1, 2]), draw.choice([0, 2**20 - 1])]
        return (who, draw.choice(wards), draw.choice(ages), *wide)

    often = one("p2")
    lines = [one(draw.choice([*NAMES, None, ""])) for _ in range(120)] + [often] * 1000
    draw.shuffle(lines)
    return lines


RECORDS = odd_records()
COLUMNS = ("who", "ward", "age", "wide", "wider", "widest")


def arrow(lines: list[tuple[object, ...]] = RECORDS) -> pa.Table:
    types = [pa.string(), pa.string(), *[pa.int64()] * 4]
    columns = list(zip(*lines, strict=True)) or [()] * 6
    arrays = [pa.array(values, type=t) for values, t in zip(columns, types, strict=True)]
    return pa.Table.from_arrays(arrays, names=list(COLUMNS))


def codes_of(line: tuple[object, ...]) -> tuple[int, ...]:
    _, ward, age, *wide = line
    wards = {"a": 0, "b'": 1, "ü": 2, None: 3}
    return wards[ward], age // 20, *wide


def kept_in_python(lines, *, records: int, key: str = KEY) -> Counter:
    """The definition: of each person, the records with the smallest keyed hashes, each with its own."""
    people, kept = defaultdict(Counter), Counter()
    for line in lines:
        if line[0] in (None, ""):
            kept[codes_of(line)] += 1
        else:
            people[line[0]][codes_of(line)] += 1
    prime = 2**31 - 1
    for who, codes in people.items():
        digits = hashlib.sha256(f"{key[:20]}/{who}".encode()).hexdigest()
        a, b = int(digits[:8], 16) % prime, int(digits[8:16], 16) % prime
        ranked = []
        for code, times in codes.items():
            # 4 · 5 · 2⁴⁰ is below 2⁶², and another 2²⁰ above: the last code is a word of its own.
            first = ((code[0] * 5 + code[1]) * 2**20 + code[2]) * 2**20 + code[3]
            for number in range(1, times + 1):
                parts = [first % prime, first // prime, code[4] % prime, code[4] // prime, number + b]
                z = sum(part * a**power for power, part in enumerate(reversed(parts)))
                ranked.append((pow(z, 5, prime), first, code[4], number, code))
        kept.update(code for *_, code in sorted(ranked)[:records])
    return kept


def found(table: Table) -> Counter:
    codes, times = table.distinct()
    return Counter({tuple(map(int, line)): int(n) for line, n in zip(codes, times, strict=True)})


def from_pandas(tmp_path):
    return Table.read(arrow().to_pandas(), SCHEMA, unit=UNIT)


def from_polars(tmp_path):
    polars = pytest.importorskip("polars")
    return Table.read(polars.from_arrow(arrow()), SCHEMA, unit=UNIT)


def from_pyarrow(tmp_path):
    return Table.read(arrow(), SCHEMA, unit=UNIT)


def from_csv(tmp_path):
    pyarrow.csv.write_csv(arrow(), tmp_path / "a.csv")
    return Table.read(tmp_path / "a.csv", SCHEMA, unit=UNIT)


def from_duckdb_csv(tmp_path):
    pyarrow.csv.write_csv(arrow(), tmp_path / "a.csv")
    return Table.read(tmp_path / "a.csv", SCHEMA, engine="duckdb", unit=UNIT)


def from_duckdb_file(tmp_path):
    half = len(RECORDS) // 2
    pyarrow.parquet.write_table(arrow(RECORDS[half:]), tmp_path / "a.parquet", row_group_size=64)
    pyarrow.parquet.write_table(arrow(RECORDS[:half]), tmp_path / "b.parquet", row_group_size=64)
    return Table.read(str(tmp_path / "*.parquet"), SCHEMA, engine="duckdb", unit=UNIT)


def from_duckdb_relation(tmp_path):
    import duckdb

    return Table.read(duckdb.from_arrow(arrow()), SCHEMA, unit=UNIT)


def from_dask(tmp_path):
    dask = pytest.importorskip("dask.dataframe")
    return Table.read(dask.from_pandas(arrow().to_pandas(), npartitions=7), SCHEMA, unit=UNIT)


def from_postgres(tmp_path, request):
    url = request.getfixturevalue("postgres").url
    psycopg = pytest.importorskip("psycopg")
    table = f"sidelight_{uuid.uuid4().hex}"

    def drop() -> None:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(f"DROP TABLE {table}")

    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            f"CREATE TABLE {table} (who text, ward text, age int, wide bigint, wider bigint, widest bigint)"
        )
        request.addfinalizer(drop)
        connection.cursor().executemany(f"INSERT INTO {table} VALUES (%s, %s, %s, %s, %s, %s)", RECORDS)
    return Table.read(f"{url}#{table}", SCHEMA, unit=UNIT)


def from_spark(tmp_path, request):
    spark = request.getfixturevalue("spark")
    return Table.read(spark.createDataFrame(arrow()), SCHEMA, unit=UNIT)


ENGINES = [
    from_pandas,
    from_polars,
    from_pyarrow,
    from_csv,
    from_duckdb_csv,
    from_duckdb_file,
    from_duckdb_relation,
    from_dask,
    from_postgres,
    pytest.param(from_spark, marks=[pytest.mark.spark, pytest.mark.slow]),
]


@pytest.fixture(scope="module", params=ENGINES, ids=lambda make: make.__name__.removeprefix("from_"))
def table(request, tmp_path_factory):
    make, folder = request.param, tmp_path_factory.mktemp("people")
    return make(folder, request) if make in (from_spark, from_postgres) else make(folder)


@pytest.mark.parametrize("records", [1, 3, 40])
def test_the_records_kept_are_those_of_the_definition(table, records):
    unit = UNIT.with_records(records)

    kept = table.keeping(unit, KEY)

    expected = kept_in_python(RECORDS, records=records)
    assert found(kept) == expected
    assert kept.records == expected.total() == int(kept.count(()))
    assert kept.count(("age",)).sum() == kept.records


def test_another_key_keeps_other_records(table):
    assert found(table.keeping(UNIT, "00" * 32)) == kept_in_python(RECORDS, records=3, key="00" * 32)
    assert found(table.keeping(UNIT, "00" * 32)) != found(table.keeping(UNIT, KEY))


def test_a_table_before_bounding_holds_everything(table):
    assert table.records == len(RECORDS)
    assert table.kept is None


LINES = st.lists(
    st.tuples(
        st.sampled_from(["p1", "p2", "p3", None]),
        st.sampled_from(["a", "ü"]),
        st.integers(0, 99),
        st.just(1),
        st.just(1),
        st.integers(0, 2),
    ),
    max_size=25,
)


def kept_of(lines, *, records=2) -> Counter:
    unit = UNIT.with_records(records)
    return found(Table.read(arrow(lines), SCHEMA, unit=unit, may_be_empty=True).keeping(unit, KEY))


def test_one_person_changes_nothing_about_the_others():
    others = [line for line in RECORDS if line[0] != "p1"]

    with_p1, without = kept_of(RECORDS, records=3), kept_of(others[::-1], records=3)

    assert not without - with_p1
    assert (with_p1 - without).total() == 3


@pytest.mark.slow
@settings(max_examples=15)
@given(lines=LINES, order=st.randoms())
def test_the_order_of_a_table_makes_no_difference(lines, order):
    shuffled = list(lines)
    order.shuffle(shuffled)

    assert kept_of(shuffled) == kept_of(lines) == kept_in_python(lines, records=2)


@pytest.mark.slow
@settings(max_examples=15)
@given(others=LINES, one=LINES, another=LINES)
def test_people_but_the_one_who_differs_keep_the_same_records(others, one, another):
    """Neighbouring tables differ by at most k records of that person on either side, and by nothing else."""
    first, second = ([(who, *line[1:]) for line in lines] for who, lines in (("x", one), ("x", another)))

    without, with_one, with_other = (kept_of([*more, *others]) for more in ([], first, second))

    assert with_one - without == kept_of(first)
    assert not without - with_one
    assert with_other - without == kept_of(second)
    moved = Counter(with_one)
    moved.subtract(with_other)
    unit = Unit("replace", 2, "who")
    assert sum(map(abs, moved.values())) <= unit.l1
    assert sum(times**2 for times in moved.values()) <= unit.l2_squared
    assert abs(with_one.total() - with_other.total()) <= unit.records


@pytest.mark.parametrize("records", [1, 4])
@pytest.mark.parametrize("step", [0, 1, 1000])
def test_a_sample_favours_no_record(step, records):
    """Of ten records a person, equal but for one or all different, every one is kept as often as another."""
    lines = [(f"p{i}", "a", 5, 7 + step * j, 1, 0 if j else 1) for i in range(4000) for j in range(10)]

    kept = kept_of(lines, records=records)

    share = records / 10
    assert kept.total() == 4000 * records
    for j in range(10) if step else [0]:
        times = kept[0, 0, 7 + step * j, 1, 0 if j else 1]
        assert abs(times - 4000 * share) < 5 * np.sqrt(4000 * share * (1 - share))


@pytest.mark.parametrize(
    ("ids", "expected"),
    [
        (pa.array([7, 7, 7, 8], pa.int32()), 3),
        (pa.array([7.0, 7.0, 7.0, None], pa.float64()), 3),
        (pa.array(["7", "7", "7", "07"]), 3),
        (pa.array(["7", "", " ", None]), 4),
    ],
)
def test_a_person_is_the_same_in_every_type_that_can_hold_the_name(ids, expected):
    unit = Unit("add-or-remove", 2, "who", "own")
    schema = Schema.from_domain({"sex": 2})

    for source in (frame := pa.table({"who": ids, "sex": [0, 1, 0, 1]}), frame.to_pandas()):
        kept = Table.read(source, schema, unit=unit).keeping(unit, KEY)

        assert kept.records == expected
