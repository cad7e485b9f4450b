"""Mean errors against every kind of change that one person can make: all means together."""

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sidelight.data.domain import Domain
from sidelight.data.table import Table
from sidelight.mean_errors import MeanErrors, Subgroup, Tables
from sidelight.privacy.budget import Epsilon, Rho
from sidelight.privacy.unit import Unit
from sidelight.queries.workload import Workload

DOMAIN = Domain.of({"a": 2, "b": 3, "c": 2, "d": 2})
WORKLOADS = [
    Workload.marginals(DOMAIN, degree=1),
    Workload.marginals(DOMAIN, degree=2),
    Workload.marginals(DOMAIN, degree=3),
    Workload.cuboids(DOMAIN),
    Workload([("a", "b", "c"), ("d",)]),
]
SUBGROUPS = {f"b = {code}": Tables((("a", "b"), ("b", "c", "d")), Subgroup("b", code)) for code in range(3)}
UNITS = [Unit(relation, records) for relation in ("replace", "add-or-remove") for records in (1, 2, 5)]


class Model:
    """A table of weights that need not be whole."""

    def __init__(self, weights):
        self.weights = weights

    def count(self, attrs):
        places = [DOMAIN.attrs.index(attr) for attr in attrs]
        others = tuple(axis for axis in range(len(DOMAIN)) if axis not in places)
        return self.weights.sum(axis=others).transpose(np.argsort(np.argsort(places)))


def counted(asked, model, codes):
    """k(D), as the curator makes it."""
    table = Table.of_codes(DOMAIN, codes)
    exact = {
        place: error(table.count(asked.marginals[place]).reshape(-1)) for place, error in asked.each(model)
    }
    return asked.counted(exact)


def move(asked, model, first, second):
    """How far all means together move, in L2 squared and in L1."""
    gap = [int(x) for x in counted(asked, model, first) - counted(asked, model, second)]
    return sum(x * x for x in gap), sum(map(abs, gap))


def changed(codes, unit, records, others):
    """A neighbour: these records take other values, or are left out."""
    if unit.relation == "add-or-remove":
        return np.delete(codes, records, axis=0)
    neighbour = codes.copy()
    neighbour[records] = others[: len(records)]
    return neighbour


@settings(max_examples=150, deadline=None)
@given(
    st.integers(0, 2**32),
    st.sampled_from(WORKLOADS),
    st.sampled_from(UNITS),
    st.sampled_from([Rho, Epsilon]),
    st.floats(0.0, 60.0),
)
def test_no_neighbour_moves_all_means_further_than_their_joint_sensitivity(
    seed, workload, unit, currency, spread
):
    rng = np.random.default_rng(seed)
    asked = MeanErrors.of(workload.attribute_sets, DOMAIN, currency)
    if seed % 2:
        asked = asked.also(SUBGROUPS, DOMAIN, currency)
    codes = rng.integers(0, DOMAIN.shape, (rng.integers(unit.records, 40), len(DOMAIN)))
    model = Model(rng.random(DOMAIN.shape) * spread)
    records = rng.choice(len(codes), unit.records, replace=False)
    others = rng.integers(0, DOMAIN.shape, (unit.records, len(DOMAIN)))

    squared, absolute = move(asked, model, codes, changed(codes, unit, records, others))

    assert squared <= asked.l2_squared(unit)
    assert absolute <= asked.l1(unit)


@pytest.mark.parametrize("unit", UNITS, ids=str)
@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda w: str(w.attribute_sets[0]))
def test_the_joint_sensitivity_is_attained(workload, unit):
    """Everybody is alike, the model is right, and one person leaves: every mean moves by all that it can."""
    asked = MeanErrors.of(workload.attribute_sets, DOMAIN, Rho)
    codes = np.zeros((9, len(DOMAIN)), dtype=int)
    weights = np.zeros(DOMAIN.shape)
    weights[0, 0, 0, 0] = 9
    gone = changed(codes, unit, np.arange(unit.records), np.ones((9, len(DOMAIN)), dtype=int))

    squared, absolute = move(asked, Model(weights), codes, gone)

    assert squared == asked.l2_squared(unit)
    assert absolute == asked.l1(unit)


def test_no_change_of_one_record_in_a_small_table_goes_beyond_the_bound():
    """All neighbours of one table, with models that pull in every direction."""
    asked = MeanErrors.of(WORKLOADS[2].attribute_sets, DOMAIN, Rho)
    rng = np.random.default_rng(3)
    codes = rng.integers(0, DOMAIN.shape, (6, len(DOMAIN)))
    unit = Unit("replace")
    wants_it_back = np.zeros(DOMAIN.shape)
    wants_it_back[tuple(codes[0])] = 6
    models = [
        Model(wants_it_back),
        *(Model(rng.random(DOMAIN.shape) * scale) for scale in (0.0, 0.3, 1.0, 4.0)),
    ]

    largest = max(
        move(asked, model, codes, changed(codes, unit, [0], np.array([other])))[0]
        for model in models
        for other in product(*map(range, DOMAIN.shape))
    )

    assert largest == asked.l2_squared(unit)


@settings(max_examples=80, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from(WORKLOADS))
def test_a_mean_is_the_mean_of_the_errors_to_a_step(seed, workload):
    rng = np.random.default_rng(seed)
    asked = MeanErrors.of(workload.attribute_sets, DOMAIN, Rho)
    codes = rng.integers(0, DOMAIN.shape, (50, len(DOMAIN)))
    model, table = Model(rng.random(DOMAIN.shape) * 4), Table.of_codes(DOMAIN, codes)

    steps = counted(asked, model, codes)

    for k, part in zip(steps, asked.sets, strict=True):
        wanted = [asked.marginals[place] for place in part.places]
        truth = math.fsum(np.abs(table.count(r) - model.count(r)).sum() for r in wanted) / len(wanted)
        assert abs(k / part.steps - truth) <= 1 / part.steps + 1e-4  # cells are rounded to 2⁻¹⁸


@pytest.mark.parametrize("unit", UNITS, ids=str)
def test_a_subgroup_alone_can_move_by_all_that_a_whole_table_can(unit):
    """Everybody has b = 1; one person's records differ in all else. So no smaller noise would do."""
    asked = MeanErrors((), ()).also({"b = 1": SUBGROUPS["b = 1"]}, DOMAIN, Rho)
    codes = np.tile([0, 1, 0, 0], (9, 1))
    weights = np.zeros(DOMAIN.shape)
    weights[0, 1, 0, 0] = 9
    gone = changed(codes, unit, np.arange(unit.records), np.tile([1, 1, 1, 1], (9, 1)))

    assert move(asked, Model(weights), codes, gone)[0] == asked.l2_squared(unit)


def test_what_a_subgroup_is_judged_by_are_its_own_cells():
    rng = np.random.default_rng(1)
    codes = rng.integers(0, DOMAIN.shape, (50, len(DOMAIN)))
    model, table = Model(rng.random(DOMAIN.shape) * 4), Table.of_codes(DOMAIN, codes)
    asked = MeanErrors.of([("a", "b")], DOMAIN, Rho).also(SUBGROUPS, DOMAIN, Rho)

    found = dict(zip([part.name for part in asked.sets], counted(asked, model, codes), strict=True))

    for code in range(3):
        pair = np.abs(table.count(("a", "b")) - model.count(("a", "b")))[:, code].sum()
        triple = np.abs(table.count(("b", "c", "d")) - model.count(("b", "c", "d")))[code].sum()
        assert found[f"b = {code}"] / 16 == pytest.approx((pair + triple) / 2, abs=0.07)


def test_a_mean_that_is_there_already_is_not_measured_again():
    plain = MeanErrors.of([("a", "b"), ("b", "c")], DOMAIN, Rho)

    asked = plain.also(
        {"pairs": Tables((("a", "b"), ("b", "c"))), "of a": Tables((("a", "b"),))}, DOMAIN, Rho
    )

    assert [part.name for part in asked.sets] == [part.name for part in plain.sets]
    assert {part.name: part.criteria for part in asked.sets if part.criteria} == {
        "2": ("pairs",),
        "a": ("of a",),
    }
    assert next(part for part in asked.sets if part.name == "a").steps == 16
