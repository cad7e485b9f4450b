"""Which values are grouped, by what, and what becomes of the single values."""

import numpy as np
import pyarrow as pa
import pytest

import sidelight as sl
from sidelight.data.columns.column import CategoricalColumn, IntegerColumn
from sidelight.data.grouping import sum_by_groups
from sidelight.errors import SettingError
from sidelight.measurement import Measurement
from sidelight.mechanisms.aim import AIM
from sidelight.mechanisms.bins import Bins, join, within
from sidelight.mechanisms.hdmm.hdmm import HDMM
from sidelight.privacy.budget import Budget
from sidelight.privacy.unit import Unit
from sidelight.queries.query import Marginal, Range
from sidelight.queries.workload import Workload
from sidelight.testing import SeededNoise

AGE = IntegerColumn("age", low=0, high=59, missing=True)
SEX = CategoricalColumn("sex", ("f", "m"))
TOWN = CategoricalColumn("town", tuple(f"town {i}" for i in range(40)))
SCHEMA = sl.Schema((AGE, SEX, TOWN))


def bins_of(schema=SCHEMA, workload="2-way", mechanism=AIM(), choice="auto", public=None):  # noqa: B008  # frozen
    return Bins.of(choice, schema, Workload.of(workload, schema.domain), mechanism, public)


def people(records=3000, seed=0):
    """Women are younger; ages heap at every tenth year."""
    rng = np.random.default_rng(seed)
    sex = rng.integers(0, 2, records)
    age = np.minimum(rng.gamma(3.0, 6.0 + 4.0 * sex), 59).astype(int)
    age = np.where(rng.random(records) < 0.2, age // 10 * 10, age)
    codes = np.stack([age, sex, rng.integers(0, 40, records)], axis=1)
    return sl.Table.of_codes(SCHEMA.domain, codes)


def test_only_ordered_columns_are_grouped():
    assert set(bins_of().joinable) == {"age"}


def test_a_missing_value_is_nobodys_neighbour():
    joinable = bins_of().joinable["age"]

    assert joinable == (True,) * 59 + (False,)


def test_values_that_an_impossible_combination_tells_apart_are_not_joined():
    schema = SCHEMA.with_impossible({"age": [0, 1, 2], "town": ["town 1"]})

    joinable = bins_of(schema).joinable["age"]

    assert joinable[:5] == (True, True, False, True, True)


def test_an_attribute_that_a_range_is_about_keeps_its_values():
    asked = Workload([Marginal(("age", "sex")), Range((("age", 3, 9),))])

    assert bins_of(workload=asked) is None


def test_a_mechanism_that_measures_other_queries_keeps_all_values():
    assert bins_of(mechanism=HDMM()) is None


def test_with_public_data_values_stay_as_they_are():
    assert bins_of(public=people()) is None


def test_as_declared_switches_it_off_and_another_word_is_refused():
    assert bins_of(choice="as declared") is None
    with pytest.raises(SettingError, match="bins must be one of"):
        bins_of(choice="coarse")


def test_more_records_and_more_budget_bear_more_groups():
    bins, unit = bins_of(), Unit("replace")
    at = {
        (n, epsilon): bins.number(n, Budget(epsilon=epsilon, delta=1e-9).rho(), unit)
        for n in (10_000, 1_000_000)
        for epsilon in (0.1, 10.0)
    }

    assert at[10_000, 0.1] == 8
    assert at[10_000, 0.1] < at[10_000, 10.0] < at[1_000_000, 10.0]


def test_joining_stops_where_nothing_may_be_joined():
    assert join(np.array([1.0, 1.0, 1.0]), [False, True], groups=1) == (0, 1, 1)


@pytest.mark.parametrize("stddev", [0.01, 20.0, 1e6])
def test_shares_add_up_and_none_is_zero(stddev):
    groups = (0, 0, 0, 1, 2, 2)
    shares = within(Measurement(Marginal(("a",)), np.array([90.0, -5, 10, 4, -3, -8]), stddev), groups)

    np.testing.assert_allclose(sum_by_groups(shares, [groups]), 1.0)
    assert shares.min() > 0


def test_noise_decides_how_far_shares_are_from_equal():
    groups, answer = (0, 0), np.array([90.0, 10.0])
    clear, lost = (within(Measurement(Marginal(("a",)), answer, s), groups) for s in (0.01, 1e4))

    np.testing.assert_allclose(clear, [0.9, 0.1], atol=1e-3)
    np.testing.assert_allclose(lost, [0.5, 0.5], atol=1e-3)


@pytest.mark.parametrize("unit", ["replace", "add-or-remove"])
def test_a_release_in_groups_counts_and_draws_single_values(unit):
    table = people()
    released = sl.release(
        table, schema=SCHEMA, epsilon=1.0, delta=1e-9, unit=unit, mechanism="mst", workload="2-way",
        noise=SeededNoise(1), progress=False,
    )  # fmt: skip

    (grouped,) = released.card.groups
    assert (grouped.attr, grouped.values) == ("age", 61)
    assert 8 <= len(grouped.starts) <= 20
    assert grouped.starts[-1] == 60  # missing
    assert released.count(("age", "sex")).shape == (61, 2)
    assert released.measurements[0].query == Marginal(("age",))
    drawn = released.sample(2000, seed=1)
    assert len(set(drawn["age"].to_pylist())) > 30
    assert released.card.spent == sum(event.cost.value for event in released.events)


def test_groups_lower_the_error_of_many_values_and_little_budget():
    table = people()
    error = {
        bins: np.mean(
            [
                sl.evaluate(
                    sl.release(
                        table, schema=SCHEMA, epsilon=0.3, delta=1e-9, mechanism="mst", workload="2-way",
                        bins=bins, noise=SeededNoise(seed), progress=False, quality_share=0,
                    ),
                    table, workload=[("age", "sex")],
                ).workload_error
                for seed in range(3)
            ]
        )
        for bins in ("auto", "as declared")
    }  # fmt: skip

    assert error["auto"] < 0.9 * error["as declared"]


def test_what_is_impossible_stays_impossible():
    schema = SCHEMA.with_impossible({"age": [0, 1, 2], "sex": ["m"]})
    codes = people().codes().astype(int)
    codes[codes[:, 0] < 3, 1] = 0
    released = sl.release(
        sl.Table.of_codes(schema.domain, codes, schema=schema), schema=schema, epsilon=1.0, delta=1e-9,
        mechanism="aim", workload="2-way", noise=SeededNoise(1), progress=False,
    )  # fmt: skip

    assert released.card.groups
    assert released.count(("age", "sex"))[:3, 1].max() == 0


def test_the_plan_says_what_may_be_grouped_and_leaves_room_for_it():
    planned, declared = (
        sl.Plan.of(schema=SCHEMA, epsilon=1.0, delta=1e-9, mechanism="aim", bins=bins)
        for bins in ("auto", "as declared")
    )

    (said,) = (note for note in planned.notes if "groups" in note)
    assert "age (61 values)" in said
    assert not any("groups" in note for note in declared.notes)
    assert planned.for_mechanism.value < declared.for_mechanism.value
    assert planned.outlook.stddev > declared.outlook.stddev


def test_without_records_to_spare_nothing_is_paid_for_groups():
    """Where so many groups are affordable that values stay as they are, a public n costs nothing."""
    released = sl.release(
        people(), schema=SCHEMA, epsilon=500.0, delta=1e-9, mechanism="mst", workload="2-way",
        noise=SeededNoise(1), progress=False, quality_share=0,
    )  # fmt: skip

    assert released.card.groups == ()
    assert len(released.measurements) == 3 + 2


def test_a_plan_with_public_data_says_that_values_stay_apart_and_why():
    columns = {"age": list(range(18, 90)), "sex": ["f", "m"] * 36}
    schema = sl.Schema.draft(pa.table(columns), bins=36)
    asked = {"schema": schema, "epsilon": 1.0, "delta": 1e-9, "workload": "2-way", "mechanism": "aperture"}

    alone, helped = (sl.Plan.of(**asked, public=public) for public in (None, pa.table(columns)))
    declared = sl.Plan.of(**asked, public=pa.table(columns), bins="as declared")

    assert any("modelled in groups" in note for note in alone.notes)
    assert [note for note in helped.notes if "those of age too" in note]
    assert not [note for note in declared.notes if "those of age too" in note]
