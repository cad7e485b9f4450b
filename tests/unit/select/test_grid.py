import math
from fractions import Fraction

import numpy as np
import pytest

from sidelight.errors import InputError
from sidelight.select.grid import Gaps

EPSILON = Fraction(1)


@pytest.mark.parametrize(
    "sensitivity", [Fraction(1), Fraction(2), Fraction(1, 3), Fraction(4001, 7)], ids=str
)
def test_a_change_of_the_sensitivity_moves_the_grid_by_no_more_than_the_rate_pays_for(sensitivity):
    """η·2·|k − k'| ≤ ε even when a score moves by Δ and is computed 2⁻¹⁷ Δ off on either side."""
    rng = np.random.default_rng(3)
    worst = float(sensitivity) * (1 + 2 * 2.0**-17)
    scores = rng.uniform(-1e6, 1e6, 20_000) * float(sensitivity)
    anchor = [0.0]

    before = Gaps.of(np.concatenate([scores, anchor]), epsilon=EPSILON, sensitivity=sensitivity)
    after = Gaps.of(np.concatenate([scores + worst, anchor]), epsilon=EPSILON, sensitivity=sensitivity)

    def moved(gaps):
        return gaps.gaps[-1] - gaps.gaps[:-1]

    change = int(np.abs(moved(after) - moved(before)).max())
    assert 2 * before.rate * change <= EPSILON
    assert float(2 * before.rate * change) > 1 - 2e-4


def test_the_price_of_the_grid_is_small():
    gaps = Gaps.of(np.array([1.0, 0.0]), epsilon=EPSILON, sensitivity=Fraction(3))

    exact = 1.0 / (2 * 3)

    assert exact * (1 - 2.0**-14) < float(gaps.exponent(1)) <= exact * (1 + 1e-4)


@pytest.mark.parametrize(
    "scores",
    [[math.nan], [1.0, math.nan, -math.inf], [-math.inf, -math.inf], [math.inf, 0.0], []],
    ids=str,
)
def test_scores_that_cannot_be_ranked_are_refused(scores):
    with pytest.raises(InputError, match="scores must"):
        Gaps.of(np.array(scores), epsilon=EPSILON, sensitivity=Fraction(1))


def test_no_score_is_ever_in_a_message():
    with pytest.raises(InputError) as refusal:
        Gaps.of(np.array([123456.0, math.nan]), epsilon=EPSILON, sensitivity=Fraction(1))

    assert "123456" not in str(refusal.value)


@pytest.mark.parametrize(("epsilon", "sensitivity"), [(0, 1), (-1, 1), (1, 0), (1, -2)])
def test_a_selection_without_a_price_is_refused(epsilon, sensitivity):
    with pytest.raises(InputError, match="must be a fraction above 0"):
        Gaps.of(np.zeros(2), epsilon=Fraction(epsilon), sensitivity=Fraction(sensitivity))


def test_scores_of_any_size_fit_the_grid():
    scores = np.array([1.7e308, -1.7e308, 0.0])

    gaps = Gaps.of(scores, epsilon=EPSILON, sensitivity=Fraction(1, 10**9))

    assert gaps.gaps[0] == 0
    assert gaps.gaps[1] == 2 * gaps.gaps[2]
    assert gaps.chances().tolist() == [1.0, 0.0, 0.0]


def test_candidates_keep_their_place_when_others_drop_out():
    gaps = Gaps.of(np.array([-np.inf, 2.0, -np.inf, 3.0]), epsilon=EPSILON, sensitivity=Fraction(1))

    assert [gaps.candidate(i) for i in range(2)] == [1, 3]
    assert gaps.gaps.tolist() == [2**16, 0]
