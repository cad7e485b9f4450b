"""What a test that is right so often says about ε and ρ, at least."""

import math

import numpy as np
import pytest
from scipy.stats import norm

from sidelight.audit.bounds import at_least, at_most, epsilon_bound, rho_bound


def test_randomised_response_has_the_epsilon_that_its_rates_show():
    for epsilon in (0.1, 1.0, 3.0):
        keep = math.exp(epsilon) / (1 + math.exp(epsilon))

        assert epsilon_bound(keep, 1 - keep, 0.0) == pytest.approx(epsilon)


def test_delta_is_taken_off_and_both_errors_count():
    assert epsilon_bound(0.5, 0.1, 0.1) == pytest.approx(math.log(4))
    assert epsilon_bound(0.99, 0.5, 0.0) == pytest.approx(math.log(50))  # what is wrongly left out
    assert epsilon_bound(0.3, 0.5, 0.0) == 0.0
    assert epsilon_bound(0.5, 0.0, 0.0) == math.inf


@pytest.mark.parametrize("rho", [0.01, 0.5, 2.0, 8.0])
def test_no_test_of_a_gaussian_shows_more_than_its_rho_and_the_best_shows_half_of_it(rho):
    """𝒩(0, 1) and 𝒩(μ, 1) are ρ = μ²/2 apart in zCDP, exactly."""
    mu = math.sqrt(2 * rho)
    cuts = np.linspace(-3, mu + 3, 101)
    found = [rho_bound(float(norm.sf(cut - mu)), float(norm.sf(cut))) for cut in cuts]

    assert max(found) <= rho
    assert max(found) > 0.5 * rho


def test_a_laplace_answer_shows_no_more_than_half_the_square_of_its_epsilon():
    """ε-DP is ε²/2-zCDP; with the best cut, half of Lap is beyond it."""
    for epsilon in (0.5, 1.0, 2.0):
        found = rho_bound(0.5, 0.5 * math.exp(-epsilon))

        assert 0.2 * epsilon**2 / 2 < found <= epsilon**2 / 2


def test_rates_hold_with_the_confidence_that_was_asked_for():
    rng = np.random.default_rng(1)
    level, number, true = 0.05, 60, 0.3
    hits = rng.binomial(number, true, 4000)

    below, above = at_least(hits, number, level), at_most(hits, number, level)

    assert np.mean(below > true) <= level * 1.1
    assert np.mean(above < true) <= level * 1.1
    assert at_least(0, 10, 0.01) == 0.0
    assert at_most(10, 10, 0.01) == 1.0
