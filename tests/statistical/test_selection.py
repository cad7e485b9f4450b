"""Both selections have the exact law they claim, and ε ten per cent off either way is told apart."""

import math
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import chisquare

from sidelight.privacy.budget import Epsilon
from sidelight.privacy.event import Exponential, PermuteAndFlip
from sidelight.select.exponential import exponential
from sidelight.select.permute_and_flip import permute_and_flip
from sidelight.testing import SeededNoise

pytestmark = pytest.mark.statistical

ACCEPTED, REJECTED = 1e-4, 1e-9


def exponential_law(scores: NDArray[np.float64], epsilon: float) -> NDArray[np.float64]:
    weights = np.exp(epsilon * (scores - scores.max()) / 2)
    return weights / weights.sum()


def permute_and_flip_law(scores: NDArray[np.float64], epsilon: float) -> NDArray[np.float64]:
    """Σ over sets S of the others of (−1)^|S| / (|S| + 1) · Π p, times p_r (spec 2.5)."""
    p = np.exp(epsilon * (scores - scores.max()) / 2)
    law = []
    for r in range(p.size):
        others = np.delete(p, r)
        terms = [
            (-1) ** k / (k + 1) * math.prod(chosen)
            for k in range(others.size + 1)
            for chosen in combinations(others.tolist(), k)
        ]
        law.append(p[r] * math.fsum(terms))
    return np.array(law)


KINDS = {
    "exponential": (exponential, Exponential, exponential_law),
    "permute-and-flip": (permute_and_flip, PermuteAndFlip, permute_and_flip_law),
}


def draws(kind: str, scores: NDArray[np.float64], epsilon: Fraction, *, size: int, seed: int = 5):
    select, event, _ = KINDS[kind]
    paid = event.at(Epsilon(epsilon), what="candidates", sensitivity=Fraction(1), candidates=scores.size)
    noise = SeededNoise(seed)
    return np.bincount([select(noise, scores, paid) for _ in range(size)], minlength=scores.size)


@pytest.mark.parametrize(
    ("kind", "scores", "epsilon", "expected"),
    [
        ("permute-and-flip", (0, -1, -2), 1, (0.58717167, 0.26607697, 0.14675136)),
        ("exponential", (0, -1, -2), 1, (0.50648039, 0.30719589, 0.18632372)),
        ("permute-and-flip", (0, -1, -2), 2, (0.76498833, 0.17564188, 0.05936980)),
        ("exponential", (0, -1, -2), 2, (0.66524096, 0.24472847, 0.09003057)),
        ("permute-and-flip", (3, 3, 0), 1, (0.46281164, 0.46281164, 0.07437672)),
    ],
)
def test_the_laws_of_these_tests_are_those_of_the_specification(kind, scores, epsilon, expected):
    _, _, law = KINDS[kind]

    assert law(np.array(scores, dtype=float), epsilon) == pytest.approx(expected, abs=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("scores", "epsilon"), [((0, -1, -2), 2), ((0, -1.5, -4), 1), ((3, 3, 0), 2)])
def test_choices_follow_the_exact_law_and_no_other_epsilon(kind, scores, epsilon):
    _, _, law = KINDS[kind]
    scores = np.array(scores, dtype=float)
    size = 40_000

    chosen = draws(kind, scores, Fraction(epsilon), size=size)

    p = {k: chisquare(chosen, size * law(scores, k * epsilon)).pvalue for k in (0.9, 1.0, 1.1)}
    assert p[1.0] > ACCEPTED
    assert max(p[0.9], p[1.1]) < REJECTED


@pytest.mark.parametrize("kind", KINDS)
def test_a_selection_of_twice_the_epsilon_is_found_out(kind):
    _, _, law = KINDS[kind]
    scores = np.array([0.0, -1.0, -2.0])

    planted = draws(kind, scores, Fraction(2), size=3000)

    assert chisquare(planted, 3000 * law(scores, 1.0)).pvalue < REJECTED


@pytest.mark.parametrize("kind", KINDS)
def test_many_candidates_and_unequal_scores_follow_the_law(kind):
    _, _, law = KINDS[kind]
    scores = np.random.default_rng(2).normal(size=10) * 2

    chosen = draws(kind, scores, Fraction(3, 2), size=15_000)

    assert chisquare(chosen, 15_000 * law(scores, 1.5)).pvalue > ACCEPTED


def test_permute_and_flip_is_the_best_of_scores_with_exponential_noise():
    """Report noisy max with exponential noise of mean 2Δ/ε has the same law (spec 2.5)."""
    scores, epsilon, size = np.array([0.0, -1.0, -2.0]), 1.0, 400_000
    noise = np.random.default_rng(8).exponential(2 / epsilon, size=(size, 3))

    noisy_best = np.bincount((scores + noise).argmax(axis=1), minlength=3)

    p = {k: chisquare(noisy_best, size * permute_and_flip_law(scores, k)).pvalue for k in (0.9, 1.0, 1.1)}
    assert p[1.0] > ACCEPTED
    assert max(p[0.9], p[1.1]) < REJECTED


def test_permute_and_flip_expects_at_least_the_score_of_the_exponential_mechanism():
    rng = np.random.default_rng(9)

    for _ in range(200):
        scores = rng.normal(size=rng.integers(1, 8)) * rng.choice([0.1, 1.0, 5.0])
        by_flip = permute_and_flip_law(scores, 1.0) @ scores
        assert by_flip >= exponential_law(scores, 1.0) @ scores - 1e-9


@pytest.mark.parametrize("kind", KINDS)
def test_a_million_equal_candidates_are_equally_likely(kind):
    select, event, _ = KINDS[kind]
    scores = np.zeros(1_000_000)
    paid = event.at(Epsilon(Fraction(1)), what="candidates", sensitivity=Fraction(1), candidates=scores.size)
    noise = SeededNoise(3)

    tenths = np.bincount([select(noise, scores, paid) // 100_000 for _ in range(60)], minlength=10)

    assert chisquare(tenths).pvalue > ACCEPTED
