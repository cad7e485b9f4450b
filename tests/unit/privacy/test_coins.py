from decimal import ROUND_FLOOR, Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest

from sidelight.privacy.coins import below, exp_bounds, flip, nearest, uniform

ALL_ONES = 2**64 - 1


def digits_of(factor: Fraction, exponent: Fraction, bits: int) -> int:
    """⌊2ᵇ·factor·e⁻ˣ⌋ by decimal arithmetic of 400 digits, which shares no code with ours."""
    with localcontext() as context:
        context.prec = 400
        x = Decimal(exponent.numerator) / Decimal(exponent.denominator)
        value = (-x).exp() * factor.numerator / factor.denominator * Decimal(2) ** bits
        return int(value.to_integral_value(rounding=ROUND_FLOOR))


EXPONENTS = [
    Fraction(1),
    Fraction(1, 3),
    Fraction(1, 10**30),
    Fraction(22, 7),
    Fraction(10**6 + 1, 10**4),
    Fraction(2**40 - 1, 2**41),
]


@pytest.mark.parametrize("bits", [1, 64, 300])
@pytest.mark.parametrize("exponent", EXPONENTS, ids=str)
def test_bounds_of_the_exponential_hold_it_and_are_tight(exponent, bits):
    low, high = exp_bounds(exponent, bits)

    floor = digits_of(Fraction(1), exponent, bits)
    assert low <= floor
    assert floor + 1 <= high
    assert high - low <= 2


def test_bounds_are_exact_for_zero_and_cheap_for_the_enormous():
    assert exp_bounds(Fraction(0), 10) == (1024, 1024)
    assert exp_bounds(Fraction(10**300), 64) == (0, 1)


def test_the_platform_keeps_what_the_proof_assumes_of_exp():
    """Relative error below 2⁻⁴² between −64 and 0, at most 2⁻⁸⁰ beyond."""
    x = np.concatenate([np.linspace(0, 64, 1500), np.geomspace(1e-12, 64, 500)])

    computed = np.exp(-x)

    for exponent, value in zip(x, computed, strict=True):
        exact = Fraction(exp_bounds(Fraction(float(exponent)), 200)[0], 2**200)
        assert abs(Fraction(float(value)) / exact - 1) < Fraction(1, 2**42)
    assert np.exp(np.array([-64.0, -100.0, -1e4, -1e300])).max() <= 2.0**-80
    assert np.exp(np.array([-1e4, -1e300])).min() >= 0


@pytest.mark.parametrize("factor", [Fraction(1), Fraction(3, 7), Fraction(2**50, 3)], ids=str)
@pytest.mark.parametrize("bits", [0, 20, 52])
def test_a_comparison_is_decided_on_the_right_side_however_close(bits, factor, scripted):
    """U agrees with the bound for bits + 64 or bits + 128 bits, then differs by the last one."""
    exponent = Fraction(40)
    for words in (1, 2):
        bound = digits_of(factor, exponent, bits + 64 * words)
        first = bound >> (64 * words)
        for step in (-1, 1):
            u = bound + step
            rest = [(u >> (64 * (words - 1 - i))) & ALL_ONES for i in range(words)]
            noise = scripted(*rest)

            decided = below(noise, first, bits, factor, exponent)

            assert decided == (step < 0)
            assert noise.script == []


def test_a_comparison_with_the_bound_itself_reads_on(scripted):
    bound = digits_of(Fraction(1), Fraction(1), 192)
    same = [(bound >> 128) & ALL_ONES, (bound >> 64) & ALL_ONES, bound & ALL_ONES]

    assert below(scripted(*same, 0), 0, 0, Fraction(1), Fraction(1))
    assert not below(scripted(*same, ALL_ONES), 0, 0, Fraction(1), Fraction(1))


def test_a_rational_coin_is_decided_at_its_very_edge(scripted):
    assert below(scripted(2**63 - 1), 0, 0, Fraction(1, 2), Fraction(0))
    assert not below(scripted(2**63), 0, 0, Fraction(1, 2), Fraction(0))
    assert below(scripted(ALL_ONES), 0, 0, Fraction(1), Fraction(0))


def test_flip_decides_nothing_that_rational_arithmetic_would_decide_otherwise():
    """First bits of a 10-bit U against bounds that fall on, just below and just above them."""
    bits = 10
    nudges = (Fraction(-1, 2**60), Fraction(0), Fraction(1, 2**60))
    bounds = [Fraction(eighths, 8) + nudge for eighths in range(1, 8 * 64, 37) for nudge in nudges]

    for bound in bounds:
        first = np.arange(64, dtype=np.float64)
        heads, undecided = flip(first, bits, np.full(64, float(bound)))

        surely_heads = np.array([a + 1 <= bound for a in range(64)])
        surely_tails = np.array([a >= bound for a in range(64)])
        tails = ~heads
        tails[undecided] = False
        assert not (heads & ~surely_heads).any()
        assert not (tails & ~surely_tails).any()
        assert undecided.size <= 3


def test_uniform_tries_again_when_the_bits_say_too_much(scripted):
    assert uniform(scripted(3 << 62, 1 << 62), 3) == 1


def test_uniform_among_one_is_zero(scripted):
    assert uniform(scripted(ALL_ONES), 1) == 0


def test_uniform_reaches_every_number_alike(scripted):
    drawn = [uniform(scripted(word << 61), 8) for word in range(8)]

    assert drawn == list(range(8))


def test_nearest_is_finite_for_any_fraction():
    assert nearest(Fraction(10) ** 5000) == 2.0**900
    assert nearest(Fraction(1, 3)) == 1 / 3
