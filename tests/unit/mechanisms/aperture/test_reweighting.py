"""Public records that follow noisy answers: what they minimise, their limits, and hostile answers."""

import numpy as np
import pytest
from scipy.optimize import minimize

from sidelight.data.domain import Domain
from sidelight.fit.balance import _solved
from sidelight.fit.following import Pulled
from sidelight.measurement import Measurement
from sidelight.mechanisms.aperture.evidence import Beliefs
from sidelight.mechanisms.aperture.reweighting import Reweighting, evenness, lowered
from sidelight.models.graphical import GraphicalModel
from sidelight.models.support import Support
from sidelight.public.prior import Prior
from sidelight.queries.query import Marginal

DOMAIN = Domain.of({"a": 2, "b": 3})
RECORDS = np.array([[0, 0], [0, 1], [1, 0], [1, 1], [1, 2]])
PUBLIC = Support(DOMAIN, RECORDS, np.array([0.3, 0.25, 0.05, 0.1, 0.3]), 1.0)
N = 80.0
A, AB = ("a",), ("a", "b")
ANSWERS = {A: np.array([20.0, 66.0]), ("b",): np.array([12.0, 40.0, 25.0])}


def weights_after(answers, precisions, *, passes, support=PUBLIC):
    records = Reweighting(support, N)
    for _ in range(passes):
        records._pass({c: Pulled(answers[c], pull) for c, pull in precisions.items()}, list(precisions))
    return records.support.weights


def beliefs(support=PUBLIC):
    domain = support.domain
    model = GraphicalModel.uniform(domain, total=1.0)
    prior = Prior(model, dict.fromkeys(domain.attrs, 500.0), 500.0, sample=support, sample_share=0.5)
    return Beliefs(prior, N)


def measured(attrs, answer, stddev=2.0):
    return Measurement(Marginal(attrs), np.asarray(answer, dtype=np.float64), stddev)


@pytest.mark.parametrize(("strength", "passes"), [(0.002, 100), (0.05, 200), (0.4, 600)])
def test_passes_minimise_divergence_from_the_records_and_distance_from_the_answers(strength, passes):
    rng = np.random.default_rng(5)
    precisions = {attrs: strength * rng.uniform(0.2, 2.0) for attrs in ANSWERS}

    def objective(log_weights):
        r = np.exp(log_weights - log_weights.max())
        r /= r.sum()
        found = N * float(r @ np.log(r / PUBLIC.weights))
        for attrs, y in ANSWERS.items():
            share = np.bincount(PUBLIC.cells(attrs), r, y.size)
            found += 0.5 * precisions[attrs] * float(((N * share - y) ** 2).sum())
        return found

    best = minimize(
        objective,
        np.log(PUBLIC.weights),
        method="Nelder-Mead",
        options={"xatol": 1e-10, "fatol": 1e-12, "maxiter": 20_000, "maxfev": 20_000},
    )
    ours = weights_after(ANSWERS, precisions, passes=passes) / N

    assert objective(np.log(ours)) <= best.fun + 1e-8 * (1 + abs(best.fun))
    assert objective(np.log(PUBLIC.weights)) > best.fun + 1e-3


def test_endless_precision_is_iterative_proportional_fitting():
    target = Support(DOMAIN, RECORDS, np.array([0.1, 0.2, 0.3, 0.15, 0.25]), 1.0).with_total(N)
    answers = {attrs: target.count(attrs) for attrs in (A, ("b",))}
    fitted = PUBLIC.weights
    for _ in range(400):
        for attrs, answer in answers.items():
            cells = PUBLIC.cells(attrs)
            fitted = fitted * (answer / np.bincount(cells, fitted))[cells]

    found = weights_after(answers, dict.fromkeys(answers, 1e9), passes=400)

    assert found == pytest.approx(fitted, rel=1e-6)
    for attrs, answer in answers.items():
        assert np.bincount(PUBLIC.cells(attrs), found) == pytest.approx(answer, rel=1e-6)


def test_no_precision_keeps_the_public_weights():
    found = weights_after(ANSWERS, {attrs: np.zeros(y.size) for attrs, y in ANSWERS.items()}, passes=5)

    assert found == pytest.approx(PUBLIC.weights * N, rel=1e-12)


def test_cells_that_no_record_is_in_stay_empty_and_do_no_harm_to_others():
    # The cell a = 0, b = 2 has no record, and yet half of the people are said to be in it.
    answers = {AB: np.array([20.0, 5.0, 40.0, 5.0, 5.0, 5.0])}

    found = weights_after(answers, {AB: 1e9}, passes=20)

    # All are trusted alike, so each of the five takes a fifth of what cannot be where it is said to be.
    assert found == pytest.approx(np.array([28, 13, 13, 13, 13]), rel=1e-6)
    records = Reweighting(PUBLIC, N).follow([measured(AB, answers[AB])], beliefs())
    assert records.count(AB)[0, 2] == 0
    assert records.weights.sum() == pytest.approx(N)


def test_a_value_that_no_record_has_is_no_division_by_nothing():
    one = Support(DOMAIN, np.array([[0, 0]]), np.ones(1), 1.0)

    records = Reweighting(one, N).follow(
        [measured(A, [10.0, 70.0]), measured(("b",), [1.0, 2.0, 77.0])], beliefs(one)
    )

    assert records.weights == pytest.approx([N])


@pytest.mark.parametrize("size", [1e3, 1e9, 1e15])
@pytest.mark.parametrize("stddev", [1e-3, 2.0, 1e6])
def test_extreme_answers_leave_weights_that_are_finite_and_sum_to_the_total(size, stddev):
    answers = [
        measured(A, [-size, size], stddev),
        measured(("b",), [size, -size, 0.0], stddev),
        measured(AB, [-size, -size, -size, -size, -size, -size], stddev),
        measured(A, [size, -size], stddev),
    ]

    records = Reweighting(PUBLIC, N).follow(answers, beliefs())

    assert np.isfinite(records.weights).all()
    assert (records.weights >= 0).all()
    assert records.weights.sum() == pytest.approx(N)
    assert 1 <= evenness(records) <= len(RECORDS)


def test_records_follow_what_is_told_with_little_noise_and_keep_their_own_ratios_elsewhere():
    records = Reweighting(PUBLIC, N).follow([measured(A, [16.0, 64.0], 0.05)], beliefs())

    assert records.count(A) == pytest.approx([16.0, 64.0], abs=0.5)
    kept, before = (support.count(AB) / support.count(A)[:, None] for support in (records, PUBLIC))
    assert kept == pytest.approx(before, rel=1e-9)


def test_following_leaves_the_public_records_as_they_were():
    before = PUBLIC.weights.copy()

    Reweighting(PUBLIC, N).follow([measured(A, [16.0, 64.0])], beliefs())

    assert np.array_equal(PUBLIC.weights, before)


def test_what_was_given_out_stays_as_it_was_when_more_is_followed():
    about, records = beliefs(), Reweighting(PUBLIC, N)
    first = records.follow([measured(A, [16.0, 64.0])], about)
    before = first.weights.copy()

    about.add(measured(AB, [30.0, 5.0, 0.0, 5.0, 20.0, 20.0]).against(records))
    records.settle(about, passes=2)

    assert np.array_equal(first.weights, before)
    assert not np.array_equal(records.support.weights, before)


def test_the_second_answer_to_a_marginal_joins_the_first():
    twice = Reweighting(PUBLIC, N).follow([measured(A, [30.0, 50.0]), measured(A, [20.0, 60.0])], beliefs())
    once = Reweighting(PUBLIC, N).follow([measured(A, [25.0, 55.0], 2.0 / np.sqrt(2))], beliefs())

    assert twice.weights == pytest.approx(once.weights, rel=1e-4)


def test_precisions_are_the_spreads_over_the_variance_of_the_noise():
    about = beliefs()
    about.add(measured(A, [30.0, 50.0], 4.0).against(PUBLIC.with_total(N)))
    evidence, spread = about.held[A].evidence, about.spreads()[A]

    found = about.pulled()[A].pull

    assert found == pytest.approx(spread * evidence.variance / evidence.mass / 16, rel=1e-9)


def test_an_answer_without_noise_is_met():
    follower = Reweighting(PUBLIC, N)

    found = follower.follow([measured(A, [1.0, 79.0], 1e-9)], beliefs())

    assert found.count(A) == pytest.approx([1.0, 79.0], rel=1e-4)


@pytest.mark.parametrize(("a", "b"), [(1e-300, -1e3), (1e12, 1e13), (1e12, -5.0), (0.0, 3.0), (1e-9, 150.0)])
def test_the_equation_of_a_cell_is_solved_over_all_scales(a, b):
    (u,) = _solved(a=a, b=np.array([b]))

    assert u + a * np.exp(u) == pytest.approx(b, rel=1e-6)


def test_evenness_counts_records_of_equal_weight():
    def with_weights(*weights):
        return Support(DOMAIN, RECORDS, np.array(weights, dtype=np.float64), float(sum(weights)))

    assert evenness(with_weights(2, 2, 2, 2, 2)) == pytest.approx(5)
    assert evenness(with_weights(0, 0, 7, 0, 0)) == 1
    assert evenness(with_weights(3, 3, 0, 0, 0)) == pytest.approx(2)
    assert evenness(PUBLIC) == pytest.approx(evenness(PUBLIC.with_total(N)))


def test_a_share_falls_with_its_odds_and_keeps_its_ends():
    assert [lowered(0.0, by) for by in (0.0, 0.3, 1.0)] == [0.0, 0.0, 0.0]
    assert [lowered(1.0, by) for by in (1e-20, 0.3, 1.0, 1.7)] == [1.0, 1.0, 1.0, 1.0]
    assert [lowered(0.6, by) for by in (0.0, 1.0)] == [0.0, 0.6]
    share = lowered(0.6, 0.2)
    assert share / (1 - share) == pytest.approx(0.2 * 0.6 / 0.4)


def test_a_share_never_leaves_its_range():
    rng = np.random.default_rng(1)
    shares = np.concatenate([np.linspace(0, 1, 21), 1 - rng.random(200) * 1e-9])

    found = [lowered(share, by) for share in shares for by in rng.lognormal(0, 3, 50)]

    assert 0 <= min(found) <= max(found) <= 1


def test_weights_at_rest_stay_where_they_are_and_go_on_from_there():
    """Records that came from a fit to the answers so far are not fitted to them a second time."""
    about, records = beliefs(), Reweighting(PUBLIC, N)
    records.follow([measured(A, ANSWERS[A], stddev=9.0), measured(("b",), ANSWERS["b",], stddev=9.0)], about)
    for _ in range(200):
        records.settle(about, passes=1)
    fitted = records.support.with_total(N)

    anew = Reweighting(fitted, N)
    anew.rest(about)
    anew.settle(about, passes=3)
    twice = Reweighting(fitted, N)
    twice.settle(about, passes=3)

    assert anew.support.weights == pytest.approx(fitted.weights, rel=1e-6)
    assert np.abs(twice.support.weights - fitted.weights).max() > 0.1
    # One more answer moves both to the same place.
    about.add(measured(AB, [30.0, 5.0, 0.0, 5.0, 20.0, 20.0], stddev=1.0).against(records))
    for both in (anew, records):
        both.settle(about, passes=300)
    assert anew.support.weights == pytest.approx(records.support.weights, rel=1e-6)
    assert np.abs(records.support.weights - fitted.weights).max() > 3
