"""Expected improvement: its closed form, and that it never moves faster than the error."""

import math
from fractions import Fraction

import numpy as np
import pytest

from sidelight.privacy.unit import Unit
from sidelight.queries.query import Marginal
from sidelight.select.improvement import ExpectedImprovement, Profile, Prospect

C1 = math.sqrt(2 / math.pi)


class Answering:
    """A model that knows some marginals."""

    def __init__(self, counts):
        self.counts = counts

    def count_each(self, wanted):
        return [(place, self.counts[attrs]) for place, attrs in enumerate(wanted)]


def score_of(counts, *, variance, stddev, total):
    prospect = Prospect(Profile.of(variance), 0.0, 1.0)
    return ExpectedImprovement(Answering(counts), lambda attrs, answer: prospect, stddev=stddev, total=total)


def improvement(profile, error, precision, stddev):
    return profile.improvement(error, precision=precision, stddev=stddev)


def test_cells_of_like_variance_are_counted_together_and_none_is_lost():
    variance = np.random.default_rng(1).lognormal(2.0, 3.0, 5000)

    profile = Profile.of(variance)

    assert len(profile.cells) < 400
    assert profile.cells.sum() == 5000
    assert profile.cells @ profile.roots == pytest.approx(np.sqrt(variance).sum())
    exact = C1 * (1 / np.sqrt(1 / (0.3**2 * variance) + 0.02)).sum()
    assert profile.expected_error(0.3, 0.02) == pytest.approx(exact, rel=1e-3)


def test_without_earlier_precision_the_reach_is_proportional_to_the_error():
    profile = Profile.of(np.full(10, 4.0))

    gain = improvement(profile, 30.0, 0.0, 5.0)

    each = 30.0 / 10 / C1
    assert gain == pytest.approx(30.0 - C1 * 10 / math.sqrt(1 / each**2 + 1 / 25))


def test_a_marginal_that_noise_would_swamp_gains_about_nothing_and_is_not_punished():
    swamped = improvement(Profile.of(np.full(10_000, 0.01)), 200.0, 0.0, 1000.0)

    assert 0 <= swamped < 0.1


def test_all_of_the_error_is_gained_where_there_is_no_noise():
    assert improvement(Profile.of(np.full(8, 3.0)), 50.0, 0.0, 1e-6) == pytest.approx(50.0, abs=1e-4)


@pytest.mark.parametrize("precision", [0.0, 1e-8, 1e-3, 1.0, 1e4])
def test_the_gain_grows_with_the_error_and_never_faster(precision):
    profile = Profile.of(np.geomspace(1e-6, 1e6, 200))
    errors = np.geomspace(1e-6, 1e6, 400)

    gains = np.array([improvement(profile, error, precision, 3.0) for error in errors])

    assert gains[0] >= 0
    assert np.diff(gains).min() >= -1e-9
    assert (np.diff(gains) / np.diff(errors)).max() <= 1 + 1e-9


def test_what_is_known_well_gains_about_nothing():
    profile = Profile.of(np.full(8, 3.0))

    known, unknown = (improvement(profile, 50.0, precision, 3.0) for precision in (1e6, 0.0))

    assert unknown > 10
    assert 0 <= known < 1e-6


@pytest.mark.parametrize(("unit", "least"), [(Unit("replace"), 2), (Unit("add-or-remove"), 1)])
def test_the_sensitivity_is_that_of_the_error_and_a_sliver_for_rounding(unit, least):
    score = score_of({("a",): np.zeros(2)}, variance=np.ones(2), stddev=1.0, total=50_000.0)

    found = score.sensitivity(unit, Marginal(("a",)))

    assert least < found < least + Fraction(1, 10**6)


def test_the_bound_is_attained_where_nothing_is_known_and_noise_is_nothing():
    score = score_of({("a",): np.full(2, 10.0)}, variance=np.full(2, 10.0), stddev=1e-3, total=20.0)
    query = Marginal(("a",))
    ((_, score_of_query),) = score.each([query])

    moved = score_of_query(np.array([14, 6])) - score_of_query(np.array([13, 7]))

    assert moved == pytest.approx(2.0, abs=1e-3)


def test_a_weight_above_one_is_refused():
    with pytest.raises(AssertionError):
        Prospect(Profile.of(np.ones(2)), 0.0, 1.1)


def test_each_candidate_is_scored_against_the_model_s_own_answer_to_it_whenever_it_is_asked():
    score = score_of(
        {("a",): np.array([5.0, 5.0]), ("b",): np.array([9.0, 1.0])},
        variance=np.ones(2),
        stddev=1e-6,
        total=10.0,
    )
    exact = {("a",): np.array([5, 5]), ("b",): np.array([5, 5])}
    queries = [Marginal(("a",)), Marginal(("b",)), Marginal(("a",))]

    later = dict(score.each(queries))
    found = {place: one(exact[queries[place].attrs]) for place, one in later.items()}

    assert [round(found[place], 3) for place in range(3)] == [0.0, 8.0, 0.0]


def test_counts_below_nothing_are_taken_for_none():
    score = score_of({("a",): np.array([-1.0, 3.0])}, variance=np.ones(2), stddev=1e-6, total=3.0)
    query = Marginal(("a",))
    ((_, score_of_query),) = score.each([query])

    assert score_of_query(np.array([0, 3])) == 0.0
