"""Coins whose bias is exactly what was asked for: heads with probability κ·e⁻ˣ, x and κ rational.

A coin lands heads when U < κ·e⁻ˣ, for U uniform on [0, 1). Nobody needs all the bits of U: its first
bits put it in an interval, and mostly that interval lies wholly on one side of the bound.

    1  the first k bits of U say a ≤ 2ᵏU < a + 1;
    2  double arithmetic says that 2ᵏκe⁻ˣ is P, give or take 2ᵏ⁻³⁶;
    3  a + 1 < P − 2ᵏ⁻³⁶ is heads, a > P + 2ᵏ⁻³⁶ is tails, and neither leaves the coin undecided;
    4  an undecided coin draws 64 more bits of the same U and is compared with rational bounds of
       κe⁻ˣ, finer each time, until it falls (`below`).

**Why this is exact.** Steps 1 and 4 are integer arithmetic. Step 3 decides only what step 2 makes
certain, so the outcome is that of comparing the real number U with the real number κe⁻ˣ. Nothing is
truncated, so nothing has to be charged to δ. Step 2 is the only appeal to floating point, and it
assumes this of the platform: `exp` is right to a relative 2⁻⁴² for arguments between −64 and 0 (IEEE
libraries give 2⁻⁵⁰ or better; the unit tests look), never negative and at most 2⁻⁸⁰ below −64; and
+, −, × and conversions are right to 2⁻⁵³. With x computed to a relative 2⁻⁵⁰, the product κe⁻ˣ ≤ 1
inherits at most x·2⁻⁵⁰ + 2⁻⁴² + 2⁻⁵¹ < 2⁻⁴¹ where x ≤ 64; where x > 64, both it and its
approximation are below 2⁻³⁹ as long as κ ≤ 2⁴⁰. Taking the difference P − a adds 2⁻⁵³, so 2⁻³⁶ has
room to spare. A coin is undecided with a probability of about 2⁻³⁵ + 2⁻ᵏ.

Brassard, Devroye and Gravel, "Exact classical simulation of the quantum-mechanical GHZ distribution"
(2016), compare lazily in the same way; Canonne, Kamath and Steinke (2020), arXiv:2004.00010, flip
e⁻ˣ coins with rational coins alone, which costs tens of words a coin.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:  # noise.py builds on coins, and defines where their bits come from
    from sidelight.privacy.noise import NoiseSource

WORD = 64
"""Bits in one random word."""

DOUBT_BITS = 36
"""A double is trusted with a probability to within 2⁻³⁶."""

_HUGE = 2.0**900
"""The largest rate in double arithmetic, so that 0 · rate is 0 and products are finite."""


def nearest(value: Fraction) -> float:
    """The double nearest to a positive fraction, cut off at 2⁹⁰⁰: e⁻ˣ is 0 to a double long before."""
    return float(value) if value < Fraction(_HUGE) else _HUGE


def flip(
    first: NDArray[np.float64], bits: int, scaled: NDArray[np.float64]
) -> tuple[NDArray[np.bool_], NDArray[np.intp]]:
    """Which coins are heads for certain, and which are undecided, from the first bits of each U.

    Args:
        first: the whole numbers a, with a ≤ 2ᵏU < a + 1.
        bits: how many bits that is, k; at most 52.
        scaled: 2ᵏ times each coin's probability, to within 2ᵏ⁻³⁶. Overwritten.

    >>> flip(np.array([0.0, 7.0, 12.0, 15.0]), 4, np.array([8.5, 8.5, 8.5, 15.5]))
    (array([ True,  True, False, False]), array([3]))
    """
    doubt = 2.0 ** (bits - DOUBT_BITS)
    scaled -= first
    heads = scaled > 1.0 + doubt
    undecided = scaled >= -doubt
    undecided ^= heads  # all that are not tails, less the heads
    return heads, np.flatnonzero(undecided)


def below(noise: NoiseSource, first: int, bits: int, factor: Fraction, exponent: Fraction) -> bool:
    """Whether U < factor · exp(−exponent), where U begins with the given bits; draws more if it must.

    With ``bits=0`` it is a whole coin: heads with probability factor · exp(−exponent), exactly.
    Where exponent is 0 the bounds are the fraction itself; elsewhere factor · exp(−exponent) is
    irrational (Lindemann); so U is told apart from it after finitely many words, with probability 1.
    """
    spare = WORD + max(0, factor.numerator.bit_length() - factor.denominator.bit_length() + 1)
    while True:
        if bits == 0:  # nothing can be decided yet
            first, bits = int(noise.words(1)[0]), WORD
        low, high = exp_bounds(exponent, bits + spare)
        # 2ᵏU lies in [first, first + 1); 2ᵏκe⁻ˣ lies in [low, high] · κ / 2^spare.
        if ((first + 1) << spare) * factor.denominator <= low * factor.numerator:
            return True
        if (first << spare) * factor.denominator >= high * factor.numerator:
            return False
        first = (first << WORD) | int(noise.words(1)[0])
        bits += WORD


def exp_bounds(exponent: Fraction, bits: int) -> tuple[int, int]:
    """Integers with low ≤ 2ᵇ·exp(−exponent) ≤ high, at most a few units apart, for exponent ≥ 0.

    e⁻ˣ = (1 / e^y)^(2^m), y = x/2ᵐ ≤ 2⁻⁸. The series of e^y has positive terms, so rounding each
    term down gives a lower bound; rounding each up, and closing with twice the last term for the
    remainder, gives an upper one. Each squaring again rounds one bound down and the other up.

    >>> low, high = exp_bounds(Fraction(1), 60)
    >>> low <= 2**60 * Fraction("0.36787944117144232159552377016146") <= high <= low + 2
    True
    """
    if exponent == 0:
        return 1 << bits, 1 << bits
    if exponent >= bits:  # e⁻ˣ < 2⁻ᵇ
        return 0, 1
    squarings = (exponent.numerator // exponent.denominator).bit_length() + 8
    work = bits + squarings + 16
    one = 1 << work
    top, bottom = exponent.numerator << work, exponent.denominator << squarings
    y_low, y_high = top // bottom, _up(top, bottom)

    low = high = term_low = term_high = one
    n = 0
    while term_high > 1:
        n += 1
        term_low = (term_low * y_low >> work) // n
        term_high = _up(_up(term_high * y_high, one), n)
        low += term_low
        high += term_high
    high += 2 * term_high

    low, high = (one << work) // high, _up(one << work, low)
    for _ in range(squarings):
        low, high = low * low >> work, _up(high * high, one)
    return low >> (work - bits), _up(high, 1 << (work - bits))


def _up(top: int, bottom: int) -> int:
    return -(-top // bottom)


def uniform(noise: NoiseSource, bound: int) -> int:
    """A whole number from 0 to bound − 1, each equally likely; bound is at most 2⁶⁴.

    Takes as many bits as bound − 1 has and tries again when they say bound or more.
    """
    shift = WORD - (bound - 1).bit_length()
    while True:
        number = int(noise.words(1)[0]) >> shift
        if number < bound:
            return number
