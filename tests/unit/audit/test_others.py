"""The attack on floating point, and canaries in a whole release."""

import numpy as np
import pytest

from sidelight.audit.canaries import PLANTED_RECORDS, audit_release, epsilon_of_guesses
from sidelight.audit.floating import attack_naive_noise, attack_our_noise, can_come_of, naive_laplace
from sidelight.testing import SeededNoise


def test_an_answer_of_the_textbooks_noise_can_come_of_its_own_value():
    for seed in range(300):
        for value in (0.0, 1.0):
            assert can_come_of(naive_laplace(value, 2.0, seed), value, 2.0)


def test_the_digits_of_the_textbooks_noise_give_the_value_away_and_those_of_ours_do_not():
    naive = attack_naive_noise(epsilon=1.0, runs=400)
    ours = attack_our_noise(epsilon=1.0, runs=400)

    assert naive.epsilon > 2.0
    assert naive.statistic == 0  # by its digits
    assert 0.3 < ours.epsilon <= 1.0


@pytest.mark.parametrize("mechanism", ["hdmm", "mwem", "aim"])
def test_a_whole_release_keeps_its_promise_to_canaries_and_a_planted_bug_does_not(mechanism):
    honest, broken = (
        audit_release(mechanism, records=records, noise=SeededNoise(7), seed=7, canaries=10_000)
        for records in (1, PLANTED_RECORDS)
    )

    assert 0.1 < honest.epsilon <= 2.0
    assert broken.epsilon > 2.0


def test_guesses_about_randomised_response_show_its_epsilon():
    """Each of a thousand people's answers is right with probability e^ε/(1 + e^ε)."""
    rng = np.random.default_rng(1)
    right = int((rng.random(1000) < np.e / (1 + np.e)).sum())

    found = epsilon_of_guesses(right, 1000, canaries=1000, delta=0.0, confidence=0.99)

    assert 0.75 < found <= 1.0
    # A failure of the promise with a probability of δ must be allowed for.
    assert epsilon_of_guesses(right, 1000, canaries=1000, delta=1e-5, confidence=0.99) < found
    assert epsilon_of_guesses(500, 1000, canaries=1000, delta=0.0, confidence=0.99) == 0.0
