"""A release of a Dask table is one of any other table, and nothing of its partitions is told."""

import warnings

import numpy as np
import pandas as pd
import pytest

import sidelight as sl
from sidelight.data.columns.column import CategoricalColumn, IntegerColumn
from sidelight.data.misfits import check
from sidelight.data.schema import Schema
from sidelight.data.table import Table
from sidelight.errors import DataError, MisfitError
from sidelight.privacy.unit import Unit
from sidelight.statistics.columns import read_columns
from sidelight.testing import SeededNoise

dask = pytest.importorskip("dask")
frames = pytest.importorskip("dask.dataframe")

SCHEMA = Schema(
    (CategoricalColumn("ward", ("a", "b", "c"), missing=True), IntegerColumn("age", low=0, high=99, bins=10))
)
SECRET = "quartz"


def people(records: int = 600) -> pd.DataFrame:
    rng = np.random.default_rng(5)
    return pd.DataFrame(
        {"ward": rng.choice(["a", "b", "c", None], records), "age": rng.integers(0, 100, records)}
    )


def released(private):
    return sl.release(
        private, schema=SCHEMA, epsilon=1, delta=1e-9, workload="2-way", mechanism="mst", noise=SeededNoise(3)
    )


def test_a_release_is_that_of_the_same_records_in_memory_and_its_sample_is_a_dask_frame():
    whole = people()

    there, here = released(frames.from_pandas(whole, npartitions=5)), released(whole)

    np.testing.assert_array_equal(there.count(["ward", "age"]), here.count(["ward", "age"]))
    assert there.card.counting == "in Dask, by its workers"
    sample = there.sample(50, seed=1)
    assert isinstance(sample, frames.DataFrame)
    assert list(sample.columns) == ["ward", "age"]
    assert len(sample) == 50


def test_partitions_that_are_empty_or_of_other_types_count_as_their_values_do():
    odd = pd.DataFrame({"ward": ["a", "b"], "age": ["7", 8.0]}, dtype=object)
    parts = [people(40), people(0), odd, people(40).astype({"age": float})]
    private = frames.from_delayed([dask.delayed(part) for part in parts], meta=people(0), verify_meta=False)

    table = Table.read(private, SCHEMA)

    expected = sum(Table.read(part, SCHEMA, may_be_empty=True).count(("ward", "age")) for part in parts)
    np.testing.assert_array_equal(table.count(("ward", "age")), expected)
    assert table.records == 82


def test_what_does_not_fit_is_said_without_a_value():
    whole = people()
    whole.loc[500, "ward"] = SECRET
    private = frames.from_pandas(whole, npartitions=5)

    (misfit,) = check(private, SCHEMA)
    assert (misfit.column, misfit.what) == ("ward", "outside")
    with pytest.raises(MisfitError) as caught:
        released(private)

    assert SECRET not in str(caught.value)


def test_a_partition_that_cannot_be_read_tells_nothing_of_it():
    @dask.delayed
    def failing():
        raise ValueError(f"cannot parse {SECRET}")

    private = frames.from_delayed([dask.delayed(people(40)), failing()], meta=people(0), verify_meta=False)

    with pytest.raises(DataError) as caught:
        released(private)

    assert str(caught.value) == "Dask could not read the table (ValueError)."
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


@pytest.mark.parametrize(
    "ask",
    [
        lambda private: Table.read(private.sort_values("age"), SCHEMA),
        lambda private: Schema.draft(private),
        lambda private: read_columns(private, ["age"]),
    ],
)
def test_no_way_to_read_a_partition_tells_of_it(ask):
    @dask.delayed
    def failing():
        raise ValueError(f"cannot parse {SECRET}")

    private = frames.from_delayed([dask.delayed(people(40)), failing()], meta=people(0), verify_meta=False)

    with pytest.raises(Exception) as caught:  # noqa: PT011  # whatever it is
        ask(private)

    assert SECRET not in str(caught.value)


def test_whoever_else_is_there_a_person_keeps_k_records():
    """Names of other lengths in one partition alone must not change the bucket of anybody."""
    unit = Unit("add-or-remove", records=1, person="who")
    names = [f"p{i}" for i in range(300)]

    def kept(*more):
        parts = [pd.DataFrame({"who": some, "ward": "a", "age": 5}) for some in (names, [*names, *more])]
        private = frames.from_delayed([dask.delayed(part) for part in parts], verify_meta=False)
        return Table.read(private, SCHEMA, unit=unit).keeping(unit, "5a" * 32).records

    assert kept() == 300
    assert kept("a_very_long_name_of_somebody_else") == 301


def test_a_table_that_fits_only_the_second_time_is_refused():
    looks = []

    @dask.delayed(pure=False)
    def changing():
        looks.append(1)
        return pd.DataFrame({"who": [1.5 if len(looks) == 1 else 1.0] * 20, "ward": "a", "age": 5})

    unit = Unit("add-or-remove", records=1, person="who")
    private = frames.from_delayed([changing()], meta=changing().compute(), verify_meta=False)
    looks.clear()

    with pytest.raises(DataError):
        Table.read(private, SCHEMA, unit=unit)
    assert len(looks) == 1


def test_records_of_people_are_read_once():
    looks = []

    @dask.delayed(pure=False)
    def counted():
        looks.append(1)
        return people(40).assign(who="p")

    unit = Unit("add-or-remove", records=3, person="who")
    private = frames.from_delayed([counted()], meta=people(0).assign(who="p"), verify_meta=False)

    assert Table.read(private, SCHEMA, unit=unit).keeping(unit, "5a" * 32).records == 3
    assert len(looks) == 1


def test_a_partition_that_warns_warns_nobody(recwarn):
    @dask.delayed
    def warning():
        warnings.warn(f"cannot parse {SECRET}", stacklevel=1)
        return people(40)

    private = frames.from_delayed([warning()], meta=people(0), verify_meta=False)

    assert Table.read(private, SCHEMA).count(()) == 40
    assert not recwarn.list


def test_public_tables_and_single_columns_are_brought_here():
    whole = people()
    public = frames.from_pandas(whole, npartitions=3)

    release = sl.release(
        whole, schema=SCHEMA, public=public, epsilon=1, delta=1e-9, workload="2-way", mechanism="jam",
        noise=SeededNoise(3),
    )  # fmt: skip
    drafted = Schema.draft(public)

    assert release.card.public is not None
    assert [column.name for column in drafted.columns] == ["ward", "age"]


@pytest.mark.slow
def test_other_processes_count_the_same():
    whole = people()
    private = frames.from_pandas(whole, npartitions=3)

    with dask.config.set(scheduler="processes"):
        table = Table.read(private, SCHEMA)
        counts = table.count(("ward", "age"))

    np.testing.assert_array_equal(counts, Table.read(whole, SCHEMA).count(("ward", "age")))
