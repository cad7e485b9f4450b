"""No synthetic record violates a constraint, whatever codes were drawn; private ones are read as declared."""

import datetime as dt
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sidelight as sl
from sidelight.data.columns.column import IntegerColumn, RealColumn
from sidelight.data.columns.constraints import Order, Sum
from sidelight.data.columns.moment_columns import DateColumn, DatetimeColumn
from sidelight.data.decode import decode
from sidelight.data.schema import Schema
from sidelight.data.table import Table
from sidelight.errors import DataError, SchemaError

STAY = """
[columns.admitted]
kind = "datetime"
low = 2020-01-01
high = 2020-12-31
by = "month"

[columns.discharged]
kind = "date"
low = 2020-01-01
high = 2021-01-31
by = "month"
missing = true

[columns.ward]
kind = "categorical"
labels = ["A", "B", "C"]

[columns.clinic]
kind = "categorical"
labels = ["north", "south"]
missing = true

[columns.inpatient]
kind = "integer"
low = 0
high = 20
bins = 5

[columns.outpatient]
kind = "integer"
low = 0
high = 40
bins = 4

[columns.visits]
kind = "integer"
low = 0
high = 50
bins = 10
missing = true

[[constraint]]
order = ["admitted", "discharged"]
violated = "missing"

[[constraint]]
column = "ward"
determines = "clinic"
map = { A = "north", B = "north", C = "south" }
violated = "missing"

[[constraint]]
sum = ["inpatient", "outpatient"]
total = "visits"
violated = "missing"
"""


def holds(table: pa.Table) -> None:
    for record in table.to_pylist():
        if record["discharged"] is not None:
            assert record["discharged"] >= record["admitted"].date()
            assert record["discharged"] <= dt.date(2021, 1, 31)
        if record["clinic"] is not None:
            assert record["clinic"] == {"A": "north", "B": "north", "C": "south"}[record["ward"]]
        if record["visits"] is not None:
            assert record["visits"] == record["inpatient"] + record["outpatient"]
            assert record["visits"] <= 50
        assert 0 <= record["inpatient"] <= 20
        assert 0 <= record["outpatient"] <= 40


def test_a_record_of_any_codes_is_decoded_so_that_all_constraints_hold():
    schema = Schema.from_toml(STAY)
    draw = np.random.default_rng(5)
    codes = np.column_stack([draw.integers(0, size, 3000) for size in schema.domain.shape])

    holds(decode(schema, codes, seed=1))


def test_bins_that_fit_are_kept_and_only_others_are_left():
    schema = Schema.from_toml(STAY)
    draw = np.random.default_rng(6)
    codes = np.column_stack([draw.integers(0, size, 2000) for size in schema.domain.shape])
    # Visits of the right bin, and a later month.
    codes[:, 4], codes[:, 5], codes[:, 6] = 1, 1, np.where(draw.random(2000) < 0.5, 2, 3)
    codes[:, 1] = np.clip(codes[:, 0] + draw.integers(0, 2, 2000), 0, 12)
    codes[:, 3] = np.where(codes[:, 2] == 2, 1, 0)

    drawn = decode(schema, codes, seed=1)

    assert (Table.read(drawn, schema).codes() == codes).all()
    holds(drawn)


def test_what_cannot_go_together_is_impossible_to_models():
    schema = Schema.from_toml(STAY)
    records = [(a, d) for a in range(12) for d in range(13)]

    from sidelight.data.impossible import is_possible

    codes = np.zeros((len(records), 7), dtype=np.int64)
    codes[:, :2] = records
    possible = is_possible(schema.domain, codes)
    assert possible.tolist() == [a <= d for a, d in records]
    assert not is_possible(schema.domain, np.array([[0, 0, 2, 0, 0, 0, 0]])).any()
    assert not is_possible(schema.domain, np.array([[0, 0, 0, 0, 4, 0, 0]])).any()


@st.composite
def chains(draw):
    kinds = draw(st.sampled_from(["dates", "mixed", "integers", "reals", "decimals"]))
    start = draw(st.integers(0, 300))
    columns = []
    for place in range(draw(st.integers(2, 4))):
        low, width, bins = (
            start + place * draw(st.integers(0, 5)),
            draw(st.integers(20, 300)),
            draw(st.integers(1, 12)),
        )
        days = [dt.date(2020, 1, 1) + dt.timedelta(days=d) for d in (low, low + width)]
        if kinds in ("dates", "mixed"):
            kind = DatetimeColumn if kinds == "mixed" and place % 2 else DateColumn
            columns.append(kind(f"x{place}", *days, bins=bins, missing=draw(st.booleans())))
        elif kinds == "integers":
            columns.append(IntegerColumn(f"x{place}", low, low + width, bins, missing=draw(st.booleans())))
        else:
            decimals = 1 if kinds == "decimals" else None
            columns.append(RealColumn(f"x{place}", float(low), float(low + width), bins, decimals=decimals))
    orders = tuple(Order(a.name, b.name) for a, b in pairwise(columns))
    return Schema(tuple(columns), constraints=orders)


@settings(max_examples=40)
@given(chains(), st.integers(0, 2**31))
def test_chains_of_orders_hold_from_any_codes(schema, seed):
    draw = np.random.default_rng(seed)
    codes = np.column_stack([draw.integers(0, size, 60) for size in schema.domain.shape])

    table = decode(schema, codes, seed=seed)

    for order in schema.constraints:
        for a, b in zip(table[order.first].to_pylist(), table[order.second].to_pylist(), strict=True):
            if a is None or b is None:
                continue
            if type(a) is not type(b):
                a, b = (x.date() if isinstance(x, dt.datetime) else x for x in (a, b))
            assert a <= b
    for column in schema.columns:
        numbers = [column.number_of(value) for value in table[column.name].to_pylist() if value is not None]
        assert all(column.ends[0] <= number <= column.ends[1] for number in numbers)


@settings(max_examples=40)
@given(st.integers(0, 2**31), st.integers(2, 4), st.sampled_from([0, 1, 2, None]))
def test_sums_hold_from_any_codes(seed, number, decimals):
    draw = np.random.default_rng(seed)
    highs = draw.integers(10, 200, number)
    columns = [
        RealColumn(f"p{i}", 0.0, float(h), int(draw.integers(1, 6)), decimals=decimals)
        for i, h in enumerate(highs)
    ]
    columns.append(RealColumn("total", 0.0, float(draw.integers(5, highs.sum() + 50)), 5, decimals=decimals))
    schema = Schema(tuple(columns), constraints=(Sum(tuple(c.name for c in columns[:-1]), "total"),))
    codes = np.column_stack([draw.integers(0, size, 60) for size in schema.domain.shape])

    table = decode(schema, codes, seed=seed)

    parts = sum(np.array(table[c.name]) for c in columns[:-1])
    total = np.array(table["total"])
    assert np.abs(parts - total).max() <= (1e-6 if decimals is None else 1e-9)
    assert total.max() <= columns[-1].high + 1e-6
    for column in columns[:-1]:
        assert np.array(table[column.name]).min() >= 0
        assert np.array(table[column.name]).max() <= column.high


PEOPLE = {
    "admitted": [dt.datetime(2020, 5, 1, 10), dt.datetime(2020, 5, 1, 10), dt.datetime(2020, 5, 2, 10)],
    "discharged": [dt.date(2020, 5, 1), dt.date(2020, 4, 30), None],
    "ward": ["A", "B", "C"],
    "clinic": ["north", "south", "south"],
    "inpatient": [1, 2, 3],
    "outpatient": [4, 5, 6],
    "visits": [5, 7, 10],
}


def as_arrow(tmp_path, request):
    return pa.table(PEOPLE)


def as_parquet(tmp_path, request):
    pyarrow.parquet.write_table(pa.table(PEOPLE), tmp_path / "p.parquet")
    return tmp_path / "p.parquet"


def as_postgres(tmp_path, request):
    import uuid

    import psycopg

    server = request.getfixturevalue("postgres")
    name = f"rules_{uuid.uuid4().hex}"
    types = ["timestamp", "date", "text", "text", "int", "int", "int"]
    server.run(f"CREATE TABLE {name} ({', '.join(f'{n} {t}' for n, t in zip(PEOPLE, types, strict=True))})")
    request.addfinalizer(lambda: server.run(f"DROP TABLE {name}"))
    with psycopg.connect(server.url, autocommit=True) as connection:
        lines = list(zip(*PEOPLE.values(), strict=True))
        connection.cursor().executemany(f"INSERT INTO {name} VALUES ({', '.join(['%s'] * 7)})", lines)
    return f"{server.url}#{name}"


@pytest.mark.parametrize(
    ("hold", "engine"),
    [(as_arrow, None), (as_parquet, "duckdb"), (as_postgres, None)],
    ids=["numpy", "duckdb", "postgres"],
)
def test_a_private_record_that_violates_a_constraint_is_read_as_declared(hold, engine, tmp_path, request):
    schema = Schema.from_toml(STAY)

    table = Table.read(hold(tmp_path, request), schema, engine=engine)

    missing = {name: table.count((name,))[-1] for name in ("discharged", "clinic", "visits")}
    assert missing == {"discharged": 2, "clinic": 1, "visits": 1}
    assert table.count(("visits", "ward"))[-1].tolist() == [0, 0, 1]


def test_a_table_is_refused_or_kept_where_that_is_declared():
    text = STAY.replace('violated = "missing"', "")
    table = pa.table(PEOPLE)

    assert Table.read(table, Schema.from_toml(text)).count(("clinic",)).tolist() == [1, 2, 0]
    refusing = Schema.from_toml(STAY.replace('violated = "missing"', 'violated = "refuse"'))
    with pytest.raises(DataError, match="violate the constraint on 'ward' and 'clinic'"):
        Table.read(table, refusing)
    assert len(refusing.check(table)) == 3


def test_a_release_samples_only_records_that_keep_the_constraints():
    draw = np.random.default_rng(1)
    days = draw.integers(0, 365, 400)
    start = np.datetime64("2020-01-01")
    private = pa.table(
        {
            "admitted": (start + days).astype("datetime64[us]"),
            "discharged": pa.array((start + days + draw.integers(0, 20, 400)).tolist(), pa.date32()),
            "ward": draw.choice(["A", "B", "C"], 400),
            "clinic": ["north"] * 400,
            "inpatient": draw.integers(0, 20, 400),
            "outpatient": draw.integers(0, 20, 400),
            "visits": draw.integers(0, 40, 400),
        }
    )
    schema = Schema.from_toml(STAY)

    release = sl.release(
        private, schema=schema, epsilon=2, delta=1e-9, 
        workload=sl.Workload([("admitted", "discharged"), ("ward", "clinic")]),
        mechanism="mst", noise=sl.testing.SeededNoise(1), progress=False,
    )  # fmt: skip

    holds(release.sample(500, seed=3))


@pytest.mark.parametrize(
    ("constraint", "message"),
    [
        ('order = ["admitted", "born"]', "names the column 'born'"),
        ('order = ["admitted", "ward"]', "has no order"),
        ('order = ["admitted", "visits"]', "cannot be compared"),
        ('order = ["admitted"]', "two columns or more"),
        ('order = ["discharged", "admitted"]', "go round in a circle"),
        ('order = ["inpatient", "visits"]', "in a sum and in another"),
        ('sum = ["inpatient", "admitted"]\ntotal = "visits"', "cannot be added up"),
        ('column = "ward"\ndetermines = "clinic"\nmap = { A = "east" }', "no label of 'clinic'"),
        ('column = "ward"\ndetermines = "clinic"\nmap = { A = "south" }', "'A' has two labels of 'clinic'"),
        ('column = "clinic"\ndetermines = "ward"\nmap = { north = "A" }', "'B' has two labels of 'ward'"),
        (
            'column = "ward"\ndetermines = "clinic"\nmap = { A = "north" }\nviolated = "drop"',
            "violated must be",
        ),
        ('order = ["admitted", "discharged"]\nsum = ["a"]', "must have the keys"),
    ],
)
def test_constraints_that_cannot_be_are_refused(constraint, message):
    with pytest.raises(SchemaError, match=message):
        Schema.from_toml(f"{STAY}\n[[constraint]]\n{constraint}\n")


def test_what_is_written_is_read_back_equal():
    schema = Schema.from_toml(STAY)

    assert Schema.from_toml(schema.to_toml()) == schema
