"""Marks tell one table from another, whatever it was read from, and tell nothing without their key."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sidelight.data.fingerprint import marks_of, marks_of_source
from sidelight.data.schema import Schema
from sidelight.data.table import Table
from sidelight.privacy.marks import new_key, same_table

KEY = "5a" * 32
SCHEMA = Schema.from_domain({"age": 300, "sex": 2})


@pytest.fixture
def frame():
    draw = np.random.default_rng(1)
    return pd.DataFrame({"age": draw.integers(0, 300, 1000), "sex": draw.integers(0, 2, 1000)})


def marks(source, key=KEY, schema=SCHEMA):
    return marks_of(Table.read(source, schema), source, key)


def test_the_same_records_have_the_same_marks_as_frame_csv_parquet_and_codes(frame, tmp_path):
    frame.to_csv(tmp_path / "people.csv", index=False)
    pq.write_table(pa.Table.from_pandas(frame), tmp_path / "people.parquet")
    sources = [
        frame,
        pa.Table.from_pandas(frame),
        str(tmp_path / "people.csv"),
        str(tmp_path / "people.parquet"),
        Table.of_codes(SCHEMA.domain, frame.to_numpy(), schema=SCHEMA),
    ]

    found = [marks(source) for source in sources]

    assert all(same_table(found[0], other) for other in found[1:])


def test_the_order_of_records_does_not_matter(frame):
    shuffled = frame.sample(frac=1, random_state=3)

    assert same_table(marks(frame), marks(shuffled)) is True


def coded(records):
    """The marks of records of two binary attributes."""
    schema = Schema.from_domain({"a": 2, "b": 2})
    return marks(Table.of_codes(schema.domain, np.array(records), schema=schema), schema=schema)


def test_values_that_change_places_between_records_make_another_table():
    assert same_table(coded([[0, 0], [1, 1]]), coded([[0, 1], [1, 0]])) is False


@pytest.mark.parametrize("place", [0, 500, 999])
def test_one_other_record_makes_another_table(frame, place, tmp_path):
    frame.to_csv(tmp_path / "people.csv", index=False)
    other = frame.copy()
    other.loc[place, "sex"] = 1 - other.loc[place, "sex"]
    other.to_csv(tmp_path / "others.csv", index=False)

    assert same_table(marks(frame), marks(other)) is False
    before, after = (marks(str(tmp_path / name)) for name in ("people.csv", "others.csv"))
    assert same_table(before, after) is False


def test_one_more_record_makes_another_table(frame):
    longer = pd.concat([frame, frame.iloc[:1]], ignore_index=True)

    assert same_table(marks(frame), marks(longer)) is False


def test_columns_that_change_places_make_another_table():
    assert same_table(coded([[0, 1], [0, 0]]), coded([[1, 0], [0, 0]])) is False


def test_another_key_gives_marks_that_say_nothing(frame):
    first, second = marks(frame, key=new_key()), marks(frame, key=new_key())

    assert first.keys() == second.keys()
    assert not set(first.values()) & set(second.values())


def test_tables_of_databases_and_clusters_are_known_by_name_and_without_their_password():
    one = marks_of_source("postgresql://bob:4711@host/office#people", KEY)
    same = marks_of_source("postgresql://eve:0815@host/office#people", KEY)
    other = marks_of_source("postgresql://bob:4711@host/office#patients", KEY)

    assert same_table(one, same) is True
    assert same_table(one, other) is False
    assert same_table(marks_of_source("spark:people", KEY), marks_of_source("spark:others", KEY)) is False
