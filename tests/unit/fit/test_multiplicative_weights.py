import itertools

import numpy as np
import pytest
from scipy.stats import entropy

from sidelight.data.domain import Domain, joined
from sidelight.errors import SettingError
from sidelight.fit.multiplicative_weights import MultiplicativeWeights
from sidelight.measurement import Measurement
from sidelight.models.components import Components
from sidelight.models.histogram import Histogram
from sidelight.queries.query import Cell, Fourier, Linear, Marginal, Range

DOMAIN = Domain.of({"a": 2, "b": 3, "c": 2, "d": 4})
N = 100.0


def made(query, answer, stddev=1e-9):
    return Measurement(query, np.atleast_1d(np.asarray(answer, dtype=float)), stddev)


def history():
    """Measurements that merge components step by step: marginals, a range, a cell, a Fourier sum."""
    rng = np.random.default_rng(5)
    return [
        made(Marginal(("b",)), [50, 20, 30], 2.0),
        made(Marginal(("d", "a")), rng.dirichlet(np.ones(8)) * N, 2.0),
        made(Range((("b", 0, 1), ("c", 1, 1))), 40, 1.0),
        made(Cell(("c", "a"), (1, 0)), 55, 1.0),
        made(Linear.of(("d",), [1.0, -1.0, 0.5, 0.0]), 20, 1.0),
        made(Fourier(("a", "c")), -30, 1.0),
    ]


def test_one_step_is_the_papers():
    domain = Domain.of({"x": 2})
    start = Histogram.uniform(domain, total=10.0)

    after = MultiplicativeWeights(passes=1).estimate(start, [made(Cell(("x",), (0,)), 8)])

    assert after.weights[0] == pytest.approx(5.37429845, abs=5e-9)
    exact = np.array([8, 2])
    drop = entropy(exact, start.weights) - entropy(exact, after.weights)
    assert entropy(exact, start.weights) == pytest.approx(0.19274476, abs=5e-9)
    assert entropy(exact, after.weights) == pytest.approx(0.15055462, abs=5e-9)
    assert 15 * 0.3**2 / 32 < drop < 0.3**2


@pytest.mark.parametrize("model", [Histogram, Components])
def test_the_total_stays_and_no_weight_is_negative(model):
    after = MultiplicativeWeights(passes=7).estimate(model.uniform(DOMAIN, total=N), history())

    everything = after.count(DOMAIN.attrs)
    assert everything.min() >= 0
    assert everything.sum() == pytest.approx(N, rel=1e-12)


@pytest.mark.parametrize("model", [Histogram, Components])
def test_a_measurement_the_model_already_meets_changes_nothing(model):
    start = MultiplicativeWeights(passes=5).estimate(model.uniform(DOMAIN, total=N), history()[:3])
    met = made(Marginal(("a", "c")), start.count(("a", "c")).reshape(-1))

    after = MultiplicativeWeights(passes=3).estimate(start, [met])

    np.testing.assert_allclose(after.count(DOMAIN.attrs), start.count(DOMAIN.attrs), rtol=1e-12)


def test_the_factored_and_the_explicit_model_agree_round_after_round():
    estimator = MultiplicativeWeights(passes=20)
    explicit = Histogram.uniform(DOMAIN, total=N)
    factored = Components.uniform(DOMAIN, total=N)

    for rounds in range(1, len(history()) + 1):
        explicit = estimator.estimate(explicit, history()[:rounds])
        factored = estimator.estimate(factored, history()[:rounds])
        gap = np.abs(explicit.count(DOMAIN.attrs) - factored.count(DOMAIN.attrs)).max()
        assert gap < 1e-10

    assert len(factored.components) == 1


def test_replaying_on_a_marginal_is_replaying_on_every_cell():
    """The reference updates all cells each time, as the paper writes it."""
    measurements = [made(Marginal(("b",)), [50, 20, 30]), made(Marginal(("b", "a")), [10, 40, 5, 15, 10, 20])]
    weights = np.full(DOMAIN.shape, N / DOMAIN.size())
    for _ in range(4):
        error = measurements[0].answer - weights.sum(axis=(0, 2, 3))
        weights = weights * np.exp(error / (2 * N))[None, :, None, None]
        weights *= N / weights.sum()
        error = measurements[1].answer.reshape(3, 2) - weights.sum(axis=(2, 3)).T
        weights = weights * np.exp(error.T / (2 * N))[:, :, None, None]
        weights *= N / weights.sum()

    after = MultiplicativeWeights(passes=4).estimate(Histogram.uniform(DOMAIN, total=N), measurements)

    np.testing.assert_allclose(after.weights, weights, rtol=1e-12)


def test_passes_stop_once_every_measurement_is_met_to_within_its_noise():
    wide = [made(Marginal(("b",)), [50, 20, 30], stddev=1000.0)]
    start = Histogram.uniform(DOMAIN, total=N)

    once = MultiplicativeWeights(passes=1).estimate(start, wide)
    many = MultiplicativeWeights(passes=50).estimate(start, wide)

    np.testing.assert_array_equal(once.weights, many.weights)


def misfit(model, measurement):
    """The root mean square of m − q(A), in σ."""
    error = measurement.answer - measurement.query.apply(model.count(measurement.query.attrs))
    return np.sqrt(np.mean(error**2)) / measurement.stddev


@pytest.mark.parametrize("tolerance", [1.0, 0.5, 0.1])
def test_each_measurement_is_met_to_within_the_tolerance_and_hardly_closer(tolerance):
    measurements = [made(Marginal(("b",)), [60, 30, 10], 2.0), made(Cell(("c", "a"), (1, 0)), 45, 2.0)]
    estimator = MultiplicativeWeights(passes=1000, tolerance=tolerance)

    after = estimator.estimate(Histogram.uniform(DOMAIN, total=N), measurements)

    assert 0.7 * tolerance < max(misfit(after, measurement) for measurement in measurements) <= tolerance


def test_answers_that_contradict_one_another_are_replayed_until_little_is_gained(monkeypatch):
    """Half of the people, and a tenth, by two answers to one question: no model is within σ/2 of both."""
    contrary = [made(Cell(("d",), (2,)), 50, 5.0), made(Cell(("d",), (2,)), 10, 5.0)]
    start, updates = Histogram.uniform(DOMAIN, total=N), []
    update = MultiplicativeWeights._update
    monkeypatch.setattr(
        MultiplicativeWeights, "_update", lambda self, *given: (updates.append(1), update(self, *given))
    )

    def played(most_left):
        updates.clear()
        estimator = MultiplicativeWeights(passes=100, tolerance=0.5, most_left=most_left)
        return estimator.estimate(start, contrary), len(updates)

    (stopped, few), (replayed, all_of_them) = played(0.999), played(np.inf)

    assert all_of_them == 200
    assert few < 60
    assert stopped.count(("d",))[2] == pytest.approx(replayed.count(("d",))[2], abs=1.0)


def test_repeating_one_exact_measurement_drives_its_error_to_zero_monotonically():
    measurement = made(Cell(("d",), (2,)), 70)
    model = Histogram.uniform(DOMAIN, total=N)
    errors = [70 - model.count(("d",))[2]]
    for _ in range(60):
        model = MultiplicativeWeights(passes=1).estimate(model, [measurement])
        errors.append(70 - model.count(("d",))[2])

    assert all(0 <= after < before for before, after in itertools.pairwise(errors))
    assert errors[-1] < 0.01 * errors[0]


def test_an_update_leaves_disjoint_marginals_of_a_product_alone():
    start = Histogram.uniform(DOMAIN, total=N)

    after = MultiplicativeWeights(passes=3).estimate(start, [made(Marginal(("a", "b")), [1, 2, 3, 4, 5, 85])])

    np.testing.assert_allclose(after.count(("c", "d")), start.count(("c", "d")))


def test_clipping_keeps_weight_on_cells_that_were_measured_below_zero():
    below = [made(Marginal(("a",)), [-60.0, 160.0], stddev=1.0)]
    start = Histogram.uniform(DOMAIN, total=N)

    clipped = MultiplicativeWeights(passes=400).estimate(start, below)
    as_printed = MultiplicativeWeights(passes=400, clip=False).estimate(start, below)

    assert clipped.count(("a",))[0] > 0.1
    assert as_printed.count(("a",))[0] < 1e-20


def test_each_exact_update_lowers_the_relative_entropy_by_the_square_of_its_error_over_four():
    rng = np.random.default_rng(8)
    exact = rng.multinomial(1000, rng.dirichlet(np.ones(DOMAIN.size()))).reshape(DOMAIN.shape)
    truth = Histogram.of_counts(DOMAIN, exact, total=1000.0)
    model = Histogram.uniform(DOMAIN, total=1000.0)
    queries = [Cell(("a", "b"), (0, 2)), Fourier(("a", "c")), Range((("d", 1, 3),)), Cell(("d",), (0,))]
    for query in queries:
        answer = query.apply(truth.count(query.attrs))
        error = float(answer[0] - query.apply(model.count(query.attrs))[0]) / 1000
        after = MultiplicativeWeights(passes=1).estimate(model, [made(query, answer)])
        drop = entropy(exact, model.weights, axis=None) - entropy(exact, after.weights, axis=None)
        assert drop >= error**2 / 4
        model = after


def test_attributes_are_grouped_by_what_joins_them():
    found = joined([("a",), ("b", "c"), ("d",), ("c", "d")])

    assert [(set(attrs), places) for attrs, places in found] == [({"a"}, [0]), ({"b", "c", "d"}, [1, 2, 3])]


def test_without_replay_the_newest_measurement_alone_is_used_once():
    measurements = [made(Marginal(("b",)), [50, 20, 30]), made(Marginal(("a",)), [80, 20])]
    start = Histogram.uniform(DOMAIN, total=N)

    after = MultiplicativeWeights(passes=0).estimate(start, measurements)

    np.testing.assert_array_equal(
        after.weights, MultiplicativeWeights(passes=1).estimate(start, measurements[1:]).weights
    )
    np.testing.assert_allclose(after.count(("b",)), start.count(("b",)))


def test_a_measurement_that_is_met_is_left_alone_unless_it_is_the_newest():
    far, near = made(Marginal(("b",)), [90, 5, 5], 1.0), made(Marginal(("b",)), [33, 33, 34], 20.0)
    start = Histogram.uniform(DOMAIN, total=N)
    estimator = MultiplicativeWeights(passes=1)

    np.testing.assert_array_equal(
        estimator.estimate(start, [near, far]).weights, estimator.estimate(start, [far]).weights
    )
    assert np.ptp(estimator.estimate(start, [near]).weights) > 0


@pytest.mark.parametrize("setting", [{"passes": -1}, {"step": 0.0}, {"tolerance": 0.0}])
def test_settings_outside_their_range_are_refused(setting):
    with pytest.raises(SettingError, match=f"{next(iter(setting))} must be"):
        MultiplicativeWeights(**setting)
