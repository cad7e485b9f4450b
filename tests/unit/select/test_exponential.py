from fractions import Fraction

import numpy as np
import pytest

from sidelight.privacy.budget import Epsilon, Rho
from sidelight.privacy.coins import exp_bounds
from sidelight.privacy.event import Exponential, PermuteAndFlip
from sidelight.select.exponential import exponential
from sidelight.select.grid import Gaps
from sidelight.select.permute_and_flip import permute_and_flip
from sidelight.testing import SeededNoise

SELECTIONS = [(exponential, Exponential), (permute_and_flip, PermuteAndFlip)]


@pytest.fixture(params=SELECTIONS, ids=lambda pair: pair[0].__name__)
def select(request):
    draw, kind = request.param

    def selected(scores, *, epsilon=1, sensitivity=1, seed=7):
        scores = np.array(scores, dtype=np.float64)
        event = kind.at(
            Epsilon(Fraction(epsilon)),
            what="candidates",
            sensitivity=Fraction(sensitivity),
            candidates=scores.size,
        )
        return draw(SeededNoise(seed), scores, event)

    return selected


def test_the_only_candidate_is_chosen(select):
    assert select([-5.0]) == 0


def test_the_choice_is_a_plain_integer(select):
    assert type(select([0.0, 0.0])) is int


def test_much_the_best_is_chosen(select):
    assert {select([0.0, 1e9, 5.0], seed=seed) for seed in range(50)} == {1}


def test_equal_scores_are_all_chosen_at_times(select):
    assert {select([3.0] * 4, seed=seed) for seed in range(200)} == {0, 1, 2, 3}


def test_minus_infinity_is_never_chosen(select):
    chosen = {select([-np.inf, 0.0, -np.inf, 0.0], epsilon="1/1000", seed=seed) for seed in range(100)}

    assert chosen == {1, 3}


def test_enormous_exponents_do_not_overflow(select):
    assert select([1.7e308, -1.7e308, 0.0], epsilon=10**9, sensitivity=Fraction(1, 10**9)) == 0


def test_a_tiny_epsilon_ignores_the_scores(select):
    chosen = [select([0.0, 1e6], epsilon=Fraction(1, 10**12), seed=seed) for seed in range(400)]

    assert 140 < sum(chosen) < 260


def test_the_same_seed_chooses_alike(select):
    scores = np.random.default_rng(1).normal(size=500)

    assert select(scores, seed=3) == select(scores, seed=3)


def test_scores_are_left_as_they_were(select):
    scores = np.array([1.0, 2.0, -np.inf])

    select(scores)

    assert scores.tolist() == [1.0, 2.0, -np.inf]


def test_at_equal_rho_the_exponential_mechanism_is_twice_as_sharp():
    rho = Rho(Fraction(1, 50))
    settings = {"what": "candidates", "sensitivity": Fraction(1), "candidates": 2}

    assert Exponential.at(rho, **settings).epsilon == 2 * PermuteAndFlip.at(rho, **settings).epsilon


def paid_for_two(kind):
    return kind.at(Epsilon(Fraction(2)), what="candidates", sensitivity=Fraction(1), candidates=2)


def test_a_hopeless_candidate_that_is_proposed_is_not_accepted(scripted):
    """Weights are 2⁴⁰ + 2 and 2: the last place leads to the hopeless one, whose coin is tails."""
    last_place, tails, first_place, heads = (2**40 + 3) << 23, 2**63, 0, 0
    noise = scripted(last_place, tails, first_place, heads)

    chosen = exponential(noise, np.array([0.0, -1e9]), paid_for_two(Exponential))

    assert chosen == 0
    assert noise.script == []


@pytest.mark.parametrize("step", [-1, 1])
def test_a_flip_too_close_for_doubles_is_decided_as_rationals_decide(scripted, step):
    event = paid_for_two(PermuteAndFlip)
    scores = np.array([0.0, -1.0])
    grid = Gaps.of(scores, epsilon=event.epsilon, sensitivity=event.sensitivity)
    bound = exp_bounds(grid.exponent(1), 96)[0] + 2 * step
    both_first_bits, more_bits, last_of_the_heads = (bound >> 64) << 32, bound & (2**64 - 1), 2**64 - 1
    noise = scripted(both_first_bits, more_bits, last_of_the_heads)

    chosen = permute_and_flip(noise, scores, event)

    assert chosen == (1 if step < 0 else 0)
    assert noise.script == []


def test_the_best_candidate_s_coin_is_heads_even_if_all_its_bits_are_ones(scripted):
    noise = scripted(2**64 - 1, 0)

    assert permute_and_flip(noise, np.array([0.0, -1e9]), paid_for_two(PermuteAndFlip)) == 0


@pytest.mark.parametrize(("place", "chosen"), [(0, 0), (2**40 + 1, 0), (2**40 + 2, 1), (2**41 + 3, 1)])
def test_each_of_two_equals_has_its_own_half_of_the_places(scripted, place, chosen):
    noise = scripted(place << 22, 0)

    assert exponential(noise, np.array([5.0, 5.0]), paid_for_two(Exponential)) == chosen


@pytest.mark.parametrize("step", [-1, 1])
def test_what_a_weight_has_too_much_is_rejected_to_the_last_bit(scripted, step):
    """A weight of 2⁴⁰ + 2 is accepted with probability 2⁴⁰ / (2⁴⁰ + 2)."""
    bound = 2**64 * 2**40 // (2**40 + 2)
    noise = scripted(0, bound + 2 * step, (2**40 + 2) << 22, 0)

    assert exponential(noise, np.array([5.0, 5.0]), paid_for_two(Exponential)) == (0 if step < 0 else 1)
