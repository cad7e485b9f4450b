"""Discovery counts the same in memory, in PostgreSQL and in Spark: labels, places and records of people."""

import uuid

import numpy as np
import pyarrow as pa
import pytest

import sidelight as sl
from sidelight.data.columns.column import CategoricalColumn
from sidelight.data.reading.file_format import FileFormat
from sidelight.data.schema import Schema
from sidelight.errors import DataError
from sidelight.privacy.unit import Unit
from sidelight.statistics.grid import Grid
from sidelight.statistics.searched import SearchedHere, SearchedThere, searched
from sidelight.testing import SeededNoise

PEOPLE = Unit("add-or-remove", 2, "who", "own")
RECORDS = 400


def visits() -> pa.Table:
    """People with one label or with many, odd texts, and one person with half of the records."""
    draw = np.random.default_rng(5)
    who = [f"p{i}" for i in draw.integers(0, 60, RECORDS // 2)] + ["O'Neil"] * (RECORDS // 2)
    drugs = draw.choice(["A01", "A02", "B'2", "ü", "other", " ", "NA", "a01", "x" * 300], RECORDS).tolist()
    cost = draw.exponential(50, RECORDS).round(2)
    cost[:3] = [np.nan, 1e6, -5.0]
    for place in (0, 7):
        who[place] = [None, " "][place // 7]
    drugs[9] = None
    days = draw.integers(0, 30, RECORDS)
    return pa.table({"who": who, "drug": drugs, "cost": cost, "days": days, "stay": days.astype(str)})


VISITS = visits()


@pytest.fixture(scope="module")
def in_postgres(postgres):
    psycopg = pytest.importorskip("psycopg")
    name = f"visits_{uuid.uuid4().hex}"
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        connection.execute(f"CREATE TABLE {name} (who text, drug text, cost float8, days int8, stay text)")
        lines = list(zip(*VISITS.to_pydict().values(), strict=True))
        connection.cursor().executemany(f"INSERT INTO {name} VALUES (%s, %s, %s, %s, %s)", lines)
        yield f"{postgres.url}#{name}"
        connection.execute(f"DROP TABLE {name}")


@pytest.fixture(
    scope="module", params=["postgres", pytest.param("spark", marks=[pytest.mark.spark, pytest.mark.slow])]
)
def elsewhere(request):
    if request.param == "postgres":
        return request.getfixturevalue("in_postgres")
    return request.getfixturevalue("spark").createDataFrame(VISITS)


@pytest.fixture(autouse=True)
def _one_key(monkeypatch):
    """Both are asked under one key, as two runs never are."""
    monkeypatch.setattr("sidelight.statistics.searched.new_key", lambda: "5a" * 32)


def both(elsewhere, column: str | None, unit: Unit = PEOPLE):
    here, there = (
        searched(VISITS, column, unit, FileFormat()),
        searched(elsewhere, column, unit, FileFormat()),
    )
    assert isinstance(here, SearchedHere)
    assert isinstance(there, SearchedThere)
    return here, there


DECLARED = {
    "nothing": None,
    "aliases": CategoricalColumn("drug", ("A01",), aliases=(("A01", ("a01", "ü")),), outside="other"),
    "tokens": CategoricalColumn(
        "drug", ("A01",), missing=True, missing_texts=("NA", "B'2"), outside="refuse"
    ),
    "prefix": CategoricalColumn("drug", ("A0",), prefix=2, outside="other", other_label="rest"),
}


@pytest.mark.parametrize("unit", [PEOPLE, Unit("replace", 3)], ids=["people", "records"])
@pytest.mark.parametrize("declared", DECLARED.values(), ids=list(DECLARED))
def test_labels_of_people_are_the_same(elsewhere, declared, unit):
    here, there = both(elsewhere, "drug", unit)

    there.require_texts()

    found = here.labels(declared, more_than=0)
    assert there.labels(declared, more_than=0) == found
    assert len(found) >= 3
    few = {label: number for label, number in found.items() if number > 20}
    assert here.labels(declared, more_than=20) == there.labels(declared, more_than=20) == few


def test_whole_numbers_are_labels_by_their_digits(elsewhere):
    here, there = both(elsewhere, "days")

    assert there.labels(None, more_than=0) == here.labels(None, more_than=0)


@pytest.mark.parametrize("column", ["cost", "days", "stay"])
@pytest.mark.parametrize("unit", [PEOPLE, Unit("replace", 3)], ids=["people", "records"])
def test_places_on_a_grid_are_the_same(elsewhere, column, unit):
    here, there = both(elsewhere, column, unit)

    counts = [one.places(Grid(0.0, 32.0, 6), ("7",)).count((column,)) for one in (here, there)]

    assert counts[0].sum() == (counts[1].sum() if unit.person else RECORDS)
    if unit.person is None:
        # A value halfway between two places may go to either.
        assert np.abs(np.cumsum(counts[0]) - np.cumsum(counts[1])).max() <= 2
    if column != "cost":
        assert counts[1][-1] > 0
        assert counts[0].tolist() == counts[1].tolist()


def test_records_of_people_are_the_same(elsewhere):
    here, there = both(elsewhere, None)

    assert there.records_a_person() == here.records_a_person()


def test_a_discovery_elsewhere_is_that_of_the_same_table_here(elsewhere):
    schema = Schema.from_domain({"sex": 2}, unit=PEOPLE)
    terms = {"schema": schema, "epsilon": 3.0, "delta": 1e-9}

    labels = [
        sl.discover(table, "drug", at_least=2, noise=SeededNoise(7), **terms).labels
        for table in (VISITS, elsewhere)
    ]
    edges = [
        sl.discover(table, "stay", bounds=(0, 30), bins=3, noise=SeededNoise(7), **terms).edges
        for table in (VISITS, elsewhere)
    ]
    records = [
        sl.discover_records(table, noise=SeededNoise(7), **terms).records for table in (VISITS, elsewhere)
    ]

    assert labels[0] == labels[1]
    assert edges[0] == edges[1]
    assert records[0] == records[1]


def test_what_cannot_be_searched_elsewhere_is_refused_before_anything_is_paid(elsewhere):
    unit = Unit("add-or-remove", 2, "who")
    schema = Schema.from_domain({"sex": 2}, unit=unit)
    terms = {"epsilon": 1.0, "delta": 1e-9}

    with pytest.raises(DataError, match="without 'who'"):
        sl.discover(elsewhere, "drug", schema=schema, **terms)
    own = Schema.from_domain({"sex": 2}, unit=PEOPLE)
    with pytest.raises(DataError, match="neither text nor whole numbers where it is"):
        sl.discover(elsewhere, "cost", schema=own, **terms)
    with pytest.raises(DataError, match="column 'dose' is not there"):
        sl.discover(elsewhere, "dose", schema=own, **terms)
