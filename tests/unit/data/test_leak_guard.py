"""The guard against public data that are the private table."""

import os
import shutil

import numpy as np
import pyarrow as pa
import pytest

import sidelight as sl
from sidelight.data.domain import Domain
from sidelight.data.leak_guard import refuse_same
from sidelight.errors import SettingError
from sidelight.privacy.budget import Budget
from sidelight.privacy.ledger import MemoryLedger
from sidelight.privacy.promise import Promise
from sidelight.privacy.unit import Unit

DATABASE = "postgresql://ann:secret@host/survey#people"


@pytest.fixture
def private(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text("sex\nf\nm\n", encoding="utf-8")
    return path


def test_the_private_file_under_any_name_is_not_public_data(private, tmp_path, monkeypatch):
    os.link(private, tmp_path / "hard.csv")
    os.symlink(private, tmp_path / "soft.csv")
    monkeypatch.chdir(tmp_path)
    names = [str(private), private, "people.csv", "./people.csv", "hard.csv", "soft.csv", "peop*.csv"]
    for name in names:
        with pytest.raises(SettingError, match="given as public data, too"):
            refuse_same(private, ["other.csv", name])
        with pytest.raises(SettingError, match="given as public data, too"):
            refuse_same(name, str(private))


def test_a_file_of_the_same_contents_passes_since_nobody_paid_for_comparing(private, tmp_path):
    copy = tmp_path / "public.csv"
    shutil.copy(private, copy)
    refuse_same(private, copy)
    refuse_same(str(private), [copy, tmp_path, None, "none.csv", DATABASE])
    refuse_same(private, None)


def test_the_same_object_is_not_public_data():
    frame = object()
    with pytest.raises(SettingError, match="given as public data, too"):
        refuse_same(frame, [object(), frame])
    table = sl.Table.of_codes(Domain.of({"a": 2}), np.zeros((3, 1), dtype=np.uint8))
    again = sl.Table.read(table, sl.Schema.from_domain({"a": 2}).with_impossible({"a": [1]}))
    with pytest.raises(SettingError, match="given as public data, too"):
        refuse_same(table, again)


@pytest.mark.parametrize(
    "again",
    [
        DATABASE,
        "postgres://host:5432/survey#people",
        "postgresql://bob:other@HOST/survey?sslmode=require#public.people",
        "postgresql:///survey?host=host&user=bob&password=x#people",
        "postgresql://host/?dbname=survey#people",
    ],
)
def test_one_table_of_a_database_is_one_whoever_logs_in(again):
    with pytest.raises(SettingError, match="given as public data, too") as refused:
        refuse_same(DATABASE, again)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    "other",
    [
        "postgresql://host/survey#others",
        "postgresql://host/other#people",
        "postgresql://host:5433/survey#people",
        "postgresql://elsewhere/survey#people",
        "postgresql://host/survey#private.people",
        "spark:people",
    ],
)
def test_another_table_is_another(other):
    refuse_same(DATABASE, other)


def test_a_release_from_its_own_table_is_refused_before_anything_is_charged():
    draw = np.random.default_rng(1)
    people = pa.table({name: draw.integers(0, 2, 300) for name in "ab"})
    schema = sl.Schema.from_domain({"a": 2, "b": 2})
    book = MemoryLedger(Promise(Budget(epsilon=1.0, delta=1e-9), Unit(), "people"))
    with pytest.raises(SettingError, match="given as public data, too"):
        sl.release(people, schema=schema, public=people, epsilon=0.5, workload="2-way", ledger=book)
    assert not list(book.runs())
