"""A public table in PostgreSQL or Spark is taken as a file is: mapped, weighted, with bins as text."""

import datetime as dt
import uuid

import numpy as np
import pyarrow as pa
import pytest

from sidelight.data.schema import Schema
from sidelight.errors import PublicDataWarning
from sidelight.releases.public_data import read_public

SCHEMA = Schema.from_toml("""
[columns.sex]
kind = "categorical"
labels = ["F", "M"]
missing = true

[columns.age]
kind = "integer"
low = 0
high = 99
bins = 5

[columns.cost]
kind = "real"
low = 0.0
high = 100.0
bins = 4
outside = "clamp"

[columns.seen]
kind = "date"
low = 2020-01-01
high = 2020-12-31
by = "quarter"
format = "dmy"

[columns.job]
kind = "categorical"
labels = ["a", "b"]

[public]
weight = "persons"

[public.map.sex]
female = "F"
male = "M"
""")
RECORDS = 60


def survey() -> pa.Table:
    draw = np.random.default_rng(3)
    days = [dt.date(2020, 1, 1) + dt.timedelta(days=int(d)) for d in draw.integers(0, 366, RECORDS)]
    return pa.table(
        {
            "sex": draw.choice(["female", "male", "F", "x'y", None], RECORDS),
            "age": draw.choice(["0-19", "20-59", "60", "99"], RECORDS),
            "cost": pa.array(draw.random(RECORDS).round(2) * 120).cast(pa.decimal128(8, 2), safe=False),
            "seen": days,
            "persons": draw.integers(1, 9, RECORDS),
            "note": ["free text"] * RECORDS,
        }
    )


SURVEY = survey()


@pytest.fixture(
    scope="module", params=["postgres", pytest.param("spark", marks=[pytest.mark.spark, pytest.mark.slow])]
)
def elsewhere(request):
    if request.param == "spark":
        yield request.getfixturevalue("spark").createDataFrame(SURVEY)
        return
    url = request.getfixturevalue("postgres").url
    psycopg = pytest.importorskip("psycopg")
    name = f"survey_{uuid.uuid4().hex}"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            f"CREATE TABLE {name} (sex text, age text, cost numeric, seen date, persons int4, note text)"
        )
        lines = list(zip(*SURVEY.to_pydict().values(), strict=True))
        connection.cursor().executemany(f"INSERT INTO {name} VALUES (%s, %s, %s, %s, %s, %s)", lines)
        yield f"{url}#{name}"
        connection.execute(f"DROP TABLE {name}")


def test_a_public_table_elsewhere_tells_what_it_tells_as_a_frame(elsewhere):
    marginals = [("sex",), ("age",), ("cost",), ("seen",), ("sex", "age"), ("cost", "seen")]
    with pytest.warns(PublicDataWarning) as here:
        frame = read_public(SURVEY, SCHEMA)
    with pytest.warns(PublicDataWarning) as there:
        found = read_public(elsewhere, SCHEMA)

    assert found.domain == frame.domain
    assert len(found.domain) == 4
    for attrs in marginals:
        # What stands for several bins is dealt out at random among the records, whose order may differ.
        assert found.count(attrs).sum() == pytest.approx(frame.count(attrs).sum())
    for attrs in (("sex",), ("cost",), ("seen",), ("cost", "seen")):
        assert found.count(attrs) == pytest.approx(frame.count(attrs))
    assert found.records == pytest.approx(frame.records)
    said = [[str(one.message).rpartition(": ")[2] for one in told] for told in (here, there)]
    assert said[0] == said[1]
    assert any('such as "x\'y"' in one for one in said[0])
    assert any("of the public values of 'cost' lie outside its bounds" in one for one in said[0])


def test_one_that_fits_is_counted_where_it_is(elsewhere):
    fitting = Schema.from_toml('[columns.note]\nkind = "categorical"\nlabels = ["free text", "none"]\n')

    found = read_public(elsewhere, fitting)

    assert not found.is_in_memory
    assert found.count(("note",)).tolist() == [RECORDS, 0]


def test_what_lies_outside_is_counted_where_it_is(elsewhere):
    schema = Schema.from_toml(
        '[columns.cost]\nkind = "real"\nlow = 0.0\nhigh = 100.0\nbins = 4\noutside = "clamp"\n'
        '[columns.seen]\nkind = "date"\nlow = 2024-01-01\nhigh = 2024-12-31\nby = "year"\noutside = "clamp"\n'
    )
    beyond = sum(float(cost) > 100 for cost in SURVEY["cost"].to_pylist())
    with pytest.warns(PublicDataWarning) as here:
        frame = read_public(SURVEY, schema)
    with pytest.warns(PublicDataWarning) as there:
        found = read_public(elsewhere, schema)

    assert not found.is_in_memory
    assert found.domain.attrs == ("cost",)
    assert found.count(("cost",)).tolist() == frame.count(("cost",)).tolist()
    said = [[str(one.message).rpartition(": ")[2] for one in told] for told in (here, there)]
    assert said[0] == said[1]
    assert said[0][0].startswith(
        f"{np.floor(1000 * beyond / RECORDS) / 10:g}% of the public values of 'cost' lie"
    )
    assert said[0][1].startswith("100% of the public values of 'seen' lie outside its bounds")
