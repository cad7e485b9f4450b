"""The public support and its multiplicative updates."""

import itertools
import math

import numpy as np
import pytest

from sidelight.data.domain import Domain
from sidelight.data.table import Table
from sidelight.errors import DataError
from sidelight.models.load import model_from_state
from sidelight.models.support import Support, missing_values
from sidelight.models.support_weights import SupportWeights
from sidelight.queries.query import Cell, Linear, Range

COIN = Domain.of({"x": 2})


def table_of(sizes, number, seed):
    rng = np.random.default_rng(seed)
    domain = Domain.of({f"a{i}": size for i, size in enumerate(sizes)})
    return Table.of_codes(domain, np.stack([rng.integers(0, size, number) for size in sizes], axis=1))


def fit_of(sizes=(5, 4, 3, 2), number=300, seed=0, degree=2):
    table = table_of(sizes, number, seed)
    marginals = list(itertools.combinations(table.domain.attrs, degree))
    return SupportWeights(Support.of_table(table, total=100.0), marginals), marginals


@pytest.mark.parametrize(("step", "expected"), [(0.5, 0.53742985), (1.0, 0.57444252)])
def test_one_step_from_a_fair_coin_is_the_papers(step, expected):
    """Spec 10.3: from (0.5, 0.5) towards a = 0.8, η = ½ in PMW-Pub and 1 in MWEM+PUB."""
    fit = SupportWeights(Support(COIN, np.array([[0], [1]]), np.array([0.5, 0.5]), 1.0), [("x",)])
    asked = fit.asked(Cell(("x",), (0,)))

    fit.update(asked, step * (0.8 - fit.answer(asked)))
    fit.settle()

    assert fit.count(("x",))[0] == pytest.approx(expected, abs=5e-9)


def test_a_measurement_that_is_met_changes_nothing():
    fit, _ = fit_of()
    asked = fit.asked(Cell(("a0", "a1"), (1, 2)))
    before = fit.weights

    fit.update(asked, 0.0)
    fit.settle()

    np.testing.assert_array_equal(fit.weights, before)


def test_repeating_an_exact_measurement_drives_its_error_to_zero():
    fit, _ = fit_of()
    asked = fit.asked(Cell(("a0", "a1"), (1, 2)))
    errors = []
    for _ in range(60):
        errors.append(abs(40.0 - fit.answer(asked)))
        fit.update(asked, (40.0 - fit.answer(asked)) / 100.0)
        fit.settle()

    assert all(later < earlier for earlier, later in itertools.pairwise(errors))
    assert errors[-1] < 1e-3 * errors[0]


@pytest.mark.parametrize(
    "query",
    [
        Cell(("a0", "a1"), (1, 2)),
        Range((("a0", 0, 3),)),  # most records: the others are what is recounted
        Linear.of(("a1",), [-1.0, 0.5, 0.25, 1.0]),
    ],
    ids=["cell", "wide range", "linear"],
)
def test_an_update_is_the_formula(query):
    fit, marginals = fit_of()
    records = fit.start.records
    phi = query.transpose(np.ones(1), fit.domain.project(query.attrs).shape)
    values = phi[tuple(records[:, fit.domain.index([a])[0]] for a in query.attrs)]
    expected = fit.weights * np.exp(values * 0.3)
    expected *= 100.0 / expected.sum()

    fit.update(fit.asked(query), 0.3)
    fit.settle()

    np.testing.assert_allclose(fit.weights, expected, rtol=1e-12)
    model = fit.start.with_weights(expected)
    for attrs in marginals:
        np.testing.assert_allclose(fit.count(attrs), model.count(attrs), atol=1e-10)


def test_answers_stay_equal_to_a_recount_over_many_rounds():
    fit, marginals = fit_of(number=800, degree=3)
    rng = np.random.default_rng(1)
    for _ in range(260):
        for _ in range(rng.integers(1, 4)):
            attrs = marginals[rng.integers(len(marginals))]
            shape = fit.domain.project(attrs).shape
            asked = fit.asked(Cell(attrs, tuple(int(rng.integers(size)) for size in shape)))
            fit.update(asked, rng.normal(scale=0.2))
        fit.settle()

    model = fit.model()
    worst = max(np.abs(fit.count(attrs) - model.count(attrs)).max() for attrs in marginals)
    assert worst / fit.total < 1e-12
    assert fit.weights.sum() == pytest.approx(100.0)


def test_updates_within_a_round_see_each_other():
    fit, _ = fit_of()
    first, second = fit.asked(Cell(("a0", "a1"), (1, 2))), fit.asked(Cell(("a0", "a1"), (1, 1)))
    before = fit.answer(second)

    fit.update(first, 0.5)

    assert fit.answer(second) < before


def test_an_answer_is_the_same_read_or_counted():
    fit, _ = fit_of()
    asked = fit.asked(Cell(("a0", "a1"), (1, 2)))

    read = fit.answer(asked)
    fit.update(fit.asked(Cell(("a2",), (0,))), 0.0)  # from now on it is counted

    assert fit.answer(asked) == pytest.approx(read, rel=1e-12)


def test_a_marginal_outside_the_workload_is_counted_too():
    fit, _ = fit_of()

    assert fit.count(("a0", "a1", "a2")).sum() == pytest.approx(100.0)


def test_a_support_of_one_record_never_changes():
    fit = SupportWeights(Support(COIN, np.array([[1]]), np.array([7.0]), 7.0), [("x",)])

    fit.update(fit.asked(Cell(("x",), (1,))), 1.0)
    fit.settle()

    assert fit.count(("x",)).tolist() == [0.0, 7.0]


def test_weights_are_the_public_frequencies_scaled_to_the_total():
    public = Table.of_codes(COIN, np.array([[0], [1], [1], [1]]))

    model = Support.of_table(public, total=100.0)

    assert model.count(("x",)).tolist() == [25.0, 75.0]
    assert model.uniform.count(("x",)).tolist() == [50.0, 50.0]


def test_a_share_of_the_public_records_is_a_sample_of_them():
    public = table_of((5, 4), 500, 3)
    whole = Support.of_table(public, total=500.0)

    part = Support.of_table(public, total=50.0, share=0.1, seed=1)

    assert part.weights.sum() == pytest.approx(50.0)
    assert set(map(tuple, part.records.tolist())) <= set(map(tuple, whole.records.tolist()))
    assert (part.count(("a0", "a1")) <= whole.count(("a0", "a1")) + 1e-9).all()


def test_an_empty_public_table_is_refused():
    with pytest.raises(DataError, match="holds no records"):
        Support.of_table(Table.of_codes(COIN, np.zeros((0, 1), dtype=np.int64)), total=10.0)


def test_sampling_follows_the_weights_and_stays_on_the_support():
    model = Support(COIN, np.array([[0], [1]]), np.array([30.0, 10.0]), 40.0)

    drawn = model.sample(1000, seed=1)

    assert drawn.count(("x",)).tolist() == [750, 250]


def test_a_saved_support_is_the_same_model():
    model = Support.of_table(table_of((5, 4, 3), 50, 4), total=10.0)

    again = model_from_state(model.domain, model.state())

    np.testing.assert_array_equal(again.count(("a0", "a2")), model.count(("a0", "a2")))
    assert again.total == model.total


def test_a_random_support_knows_nothing_but_the_domain():
    model = Support.random(Domain.of({"a": 3, "b": 4}), records=200, seed=1, total=12.0)

    assert len(np.unique(model.records, axis=0)) == len(model.records) == 12
    assert math.isclose(model.weights.sum(), 12.0)


def test_values_that_no_public_record_has_are_named():
    model = Support(Domain.of({"a": 3, "b": 2}), np.array([[0, 0], [2, 1]]), np.ones(2), 2.0)

    assert missing_values(model, ("a", "b")) == {"a": 1}


def test_cells_say_where_each_record_is_counted():
    table = table_of((5, 4, 3), 60, seed=2)
    support = Support.of_table(table, total=60.0)

    for attrs in [(), ("a1",), ("a2", "a0"), ("a0", "a1", "a2")]:
        columns = [support.records[:, table.domain.index([attr])[0]] for attr in attrs]
        expected = np.ravel_multi_index(columns, table.domain.project(attrs).shape) if attrs else 0
        assert (support.cells(attrs) == expected).all()


def test_marginals_one_at_a_time_are_those_asked_for():
    support = Support.of_table(table_of((5, 4, 3), 60, seed=2), total=60.0)
    wanted = [("a1",), ("a2", "a0"), (), ("a1",), ("a2", "a1"), ("a2", "a0", "a1"), ("a0", "a2", "a1")]

    found = list(support.count_each(wanted))

    assert sorted(place for place, _ in found) == list(range(len(wanted)))
    for place, counts in found:
        np.testing.assert_allclose(counts, support.count(wanted[place]), rtol=1e-12)


def test_marginals_of_more_records_than_are_looked_at_at_once_are_whole():
    table = table_of((40, 30, 3), 100_000, seed=3)
    support = Support.of_table(table, total=100_000.0).with_weights(np.linspace(1, 2, 3600))
    wide = Support(
        support.domain,
        np.repeat(support.records, 30, axis=0),
        np.repeat(support.weights / 30, 30),
        support.total,
    )

    for attrs in [("a0",), ("a0", "a1", "a2"), ("a2", "a1")]:
        np.testing.assert_allclose(wide.count(attrs), support.count(attrs), rtol=1e-12)
    for place, counts in wide.count_each([("a1",), ("a0", "a1")]):
        np.testing.assert_allclose(counts, support.count([("a1",), ("a0", "a1")][place]), rtol=1e-12)


def test_cells_of_a_huge_marginal_are_told_apart():
    domain = Domain.of({"a": 2, "b": 2**16, "c": 2**16})
    model = Support(domain, np.array([[0, 1, 2], [1, 2**16 - 1, 2**16 - 1]]), np.ones(2), 2.0)

    assert model.cells(("a", "b", "c")).tolist() == [2**16 + 2, 2**33 - 1]
    assert model.cells(("b", "a")).tolist() == [2, 2**17 - 1]
