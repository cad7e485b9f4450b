"""Order, ties and bounds: what holds of every group's quantile, whatever the values."""

from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from personal_quantile import personalised_stretches
from sidelight.privacy.budget import Epsilon
from sidelight.privacy.event import Exponential
from sidelight.statistics.grid import Grid
from sidelight.statistics.group import Group
from sidelight.statistics.mixed_mean import mixed_mean
from sidelight.statistics.mixed_quantile import mixed_quantile
from sidelight.statistics.quantile import exponential_quantile, stretches
from sidelight.testing import SeededNoise
from stretch_law import chances

BITS = 10
values = st.lists(st.floats(-2, 3, allow_nan=False), min_size=1, max_size=40)
places = st.lists(st.integers(0, 2**BITS), min_size=1, max_size=40)
shares = st.fractions(Fraction(1, 50), Fraction(49, 50), max_denominator=100)
epsilons = st.fractions(Fraction(1, 20), Fraction(20), max_denominator=40)


def paid(epsilon: Fraction) -> Exponential:
    return Exponential.at(Epsilon(epsilon), what="quantile", sensitivity=Fraction(1), candidates=2**BITS)


@given(places, shares, epsilons, st.integers(0, 2**32))
def test_a_drawn_place_is_on_the_grid_and_order_does_not_matter(found, share, epsilon, seed):
    one = exponential_quantile(SeededNoise(seed), np.array(found), share, paid(epsilon), bits=BITS)
    other = exponential_quantile(SeededNoise(seed), np.array(found[::-1]), share, paid(epsilon), bits=BITS)

    assert 0 <= one < 2**BITS
    assert one == other


@given(places)
def test_stretches_cover_the_grid_once_and_ties_have_none(found):
    edges, lengths = stretches(np.array(found), bits=BITS)

    assert lengths.sum() == 2**BITS
    assert (lengths >= 0).all()
    assert edges[0] == 0
    assert (lengths[1:-1] > 0).sum() == len(set(found)) - 1
    for place in (0, 511, 2**BITS - 1):
        rank = int(np.searchsorted(edges[1:], place, side="right"))
        assert rank == sum(value <= place for value in found)


@given(places, st.integers(0, 39), st.integers(0, 2**BITS), shares, epsilons)
def test_replacing_one_record_changes_no_probability_by_more_than_epsilon(found, who, other, share, epsilon):
    """The law of every output, before and after: an audit of 1,024 candidates."""
    changed = list(found)
    changed[who % len(found)] = other

    def log_law(at: list[int]) -> np.ndarray:
        edges, _ = stretches(np.array(at), bits=BITS)
        rank = np.searchsorted(edges[1:], np.arange(2**BITS), side="right")
        score = -np.abs(rank - float(share) * len(at)) * float(epsilon) / 2
        return score - np.log(np.exp(score - score.max()).sum()) - score.max()

    loss = log_law(found) - log_law(changed)
    assert np.abs(loss).max() <= float(epsilon) + 1e-9
    assert np.ptp(loss) <= float(epsilon) + 1e-9  # bounded range, which is what ε²/8 needs


@given(st.lists(places, min_size=1, max_size=3), st.lists(epsilons, min_size=3, max_size=3), places, shares)
def test_the_personalised_law_is_a_law_whatever_the_public_values(private, prices, public, share):
    groups = [np.array(found) for found in private]

    _, lengths, steps = personalised_stretches(
        groups, prices[: len(groups)], [np.array(public)], share, bits=BITS
    )

    assert (steps >= 0).all()
    assert (
        chances(lengths, steps / 2**31).sum() == 1.0 or abs(chances(lengths, steps / 2**31).sum() - 1) < 1e-9
    )


@given(values)
def test_the_grid_clamps_and_rounds_by_at_most_half_a_step(found):
    grid = Grid(0.0, 1.0, BITS)

    back = grid.low + grid.places(np.array(found)) * grid.step

    assert np.abs(back - np.clip(found, 0, 1)).max() <= grid.step / 2 + 1e-12
    assert (np.abs(grid.centred(np.array(found))) <= 2 ** (BITS - 1)).all()


@given(values, values, st.integers(0, 2**32))
def test_a_mixed_quantile_lies_within_the_bounds_and_weights_add_up(one, two, seed):
    groups = [Group(one, epsilon=1.0), Group(two, public=True)]

    quantile = mixed_quantile(groups, 0.3, bounds=(0, 1), density=1.0, noise=SeededNoise(seed))
    mean = mixed_mean(groups, bounds=(0, 1), noise=SeededNoise(seed))

    assert 0 <= quantile.estimate <= 1
    assert quantile.interval[0] <= quantile.interval[1]
    assert abs(sum(quantile.weights) - 1) < 1e-9
    assert abs(sum(mean.weights) - 1) < 1e-9
    assert min(*quantile.weights, *mean.weights) >= 0
