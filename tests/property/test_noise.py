"""What holds of every fraction, every score and every seed."""

from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from sidelight.privacy.coins import below, exp_bounds
from sidelight.privacy.noise import _Histogram, discrete_gaussian, discrete_laplace
from sidelight.select.grid import Gaps
from sidelight.testing import SeededNoise

short = st.builds(
    lambda numerator, shift: Fraction(numerator) * Fraction(2) ** shift,
    st.integers(1, 2**40),
    st.integers(-60, 0),
)
awkward = st.fractions(Fraction(1, 10**6), 10**9, max_denominator=10**12)
seeds = st.integers(0, 2**32)


@given(scale=short | awkward, seed=seeds, size=st.integers(0, 50))
def test_every_scale_draws_integers_of_its_size(scale, seed, size):
    gaussian = discrete_gaussian(SeededNoise(seed), scale, size)
    laplace = discrete_laplace(SeededNoise(seed), scale, size)

    assert gaussian.shape == laplace.shape == (size,)
    # each draw fails this with probability e⁻⁵⁰
    assert all(int(z) ** 2 <= 100 * scale + 1 for z in gaussian)
    assert all(abs(int(z)) <= 50 * scale + 1 for z in laplace)


@given(rate=short | awkward.map(lambda scale: 1 / scale), power=st.sampled_from([1, 2]))
@settings(max_examples=40)
def test_every_histogram_lies_above_the_law(rate, power):
    if rate < Fraction(1, 2**40):
        rate = Fraction(1, 2**40)

    histogram = _Histogram.above(rate, power)

    assert histogram.slots.sum() == 4095
    assert histogram.blocks <= 129
    assert 0 <= histogram.block_bits <= 40
    for i in range(0, 2 * histogram.blocks, 7):
        first = (i - histogram.blocks) << histogram.block_bits
        z = first if first >= 0 else first + (1 << histogram.block_bits) - 1
        _, high = exp_bounds(histogram.energy(z), 100)
        assert histogram.height * high <= int(histogram.slots[i]) << 100


@given(exponent=st.fractions(0, 60, max_denominator=10**9), bits=st.integers(1, 200))
def test_bounds_hold_the_exponential(exponent, bits):
    low, high = exp_bounds(exponent, bits)

    with localcontext() as context:
        context.prec = 200
        scaled = (-Decimal(exponent.numerator) / Decimal(exponent.denominator)).exp() * 2**bits
        assert low <= scaled <= high
    assert high - low <= 2


@given(exponent=st.fractions(0, 30, max_denominator=10**6), seed=seeds)
def test_a_coin_is_the_comparison_of_its_bits(exponent, seed):
    """What `below` says is what its own words, read afterwards as one long number, say."""
    heads = below(SeededNoise(seed), 0, 0, Fraction(1), exponent)

    u = 0
    for word in SeededNoise(seed).words(4).tolist():
        u = u << 64 | word
    low, high = exp_bounds(exponent, 256)
    assert heads == (u < low)
    assert not low <= u < high


scores = st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=20)


@given(scores=scores, moves=st.lists(st.floats(-1, 1), min_size=20, max_size=20), sensitivity=awkward)
def test_neighbouring_scores_stay_neighbours_on_the_grid(scores, moves, sensitivity):
    """For each pair of candidates, the log-ratio of their chances moves by at most ε."""
    before = np.array(scores)
    after = before + np.array(moves[: before.size]) * float(sensitivity)
    if float(np.abs(before).max()) > 2.0**34 * float(sensitivity):
        return  # adding the move would itself round by more than a score may

    gaps = [Gaps.of(s, epsilon=Fraction(1), sensitivity=sensitivity) for s in (before, after)]

    change = gaps[1].gaps - gaps[0].gaps
    assert gaps[0].rate == gaps[1].rate
    assert gaps[0].rate * int(change.max() - change.min()) <= 1
