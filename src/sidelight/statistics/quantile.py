"""The quantile by the exponential mechanism, drawn exactly (Smith 2011; spec 2.6).

    candidates  o_j = lo + (j + ½)γ,  j = 0, …, 2ᵇ − 1          a public grid
    score       s(o) = −|#{x ≤ o} − q·n|                         Δ = 1, or max(q, 1 − q) for add-or-remove
    Pr[o]       ∝ exp(ε s(o) / 2Δ)

**Why ε holds.** The candidates do not depend on data, values are rounded to the grid one by one, and a
candidate's rank moves by at most one person's records, so this is the exponential mechanism as it stands:
ε-DP, of bounded range, ε²/8-zCDP. No interval ends at a private value, so no floating-point output can
tell one: what comes out is j, a whole number.

**How it is drawn.** With sorted grid values v₍₁₎ ≤ … ≤ v₍ₙ₎, v₍₀₎ = 0, v₍ₙ₊₁₎ = 2ᵇ, the candidates
j = v₍ᵢ₎, …, v₍ᵢ₊₁₎ − 1 all have rank i. So a *stretch* i is drawn with probability ∝ Lᵢ exp(−xᵢ), where
Lᵢ = v₍ᵢ₊₁₎ − v₍ᵢ₎ and xᵢ = ε|i − qn|/2Δ, and then a place in it, uniformly. Ties make stretches of length 0.
`draw_stretch` proposes stretch i with probability mᵢ/Σm, for whole numbers mᵢ ≥ 2ˢLᵢe⁻ˣⁱ found in double
arithmetic, and keeps it with probability 2ˢLᵢe⁻ˣⁱ/mᵢ, decided exactly by `coins.below` from the fraction
xᵢ: so its law is exact however far the doubles are off, as long as they are not off by more than the
slack that mᵢ allows for.
"""

from collections.abc import Callable
from fractions import Fraction

import numpy as np

from sidelight import _check
from sidelight.errors import SettingError
from sidelight.privacy import event
from sidelight.privacy.coins import below, uniform
from sidelight.privacy.noise import NoiseSource
from sidelight.statistics.grid import Array, Whole

_SLACK = 2.0**-34
"""mᵢ is larger than its double by this share: xᵢ is right to 64·2⁻⁴⁴ or better, exp to 2⁻⁴²."""
_NO_MATTER = 96.0
"""Where xᵢ is above this, 2ˢLᵢe⁻ˣⁱ ≤ 2⁶¹e⁻⁹⁶ < 1 ≤ mᵢ whatever the double says."""


def exponential_quantile(
    noise: NoiseSource, places: Whole, quantile: Fraction, event: event.Exponential, *, bits: int
) -> int:
    """The j of one candidate o_j, given each value's place on a grid of 2ᵇ steps.

    >>> from sidelight.privacy.budget import Epsilon
    >>> from sidelight.testing import SeededNoise
    >>> paid = event.Exponential.at(
    ...     Epsilon(Fraction(50)), what="median", sensitivity=Fraction(1), candidates=2**10
    ... )
    >>> places = np.arange(0, 1000)
    >>> abs(exponential_quantile(SeededNoise(7), places, Fraction(1, 2), paid, bits=10) - 500) < 10
    True
    """
    edges, lengths = stretches(places, bits=bits)
    rate = event.epsilon / (2 * event.sensitivity)
    target = quantile * places.size
    ranks = np.arange(lengths.size, dtype=np.int64)
    best = _nearest_stretch(ranks[lengths > 0], target)
    # |i − qn| − |best − qn| is how far i lies outside the interval between best and its mirror image.
    left, right = sorted((Fraction(best), 2 * target - best))
    exponents = np.maximum(-_less(ranks, left), _less(ranks, right))
    exponents = np.maximum(exponents, 0.0) * float(rate)
    chosen = draw_stretch(noise, lengths, exponents, lambda i: rate * max(left - i, i - right, Fraction(0)))
    return int(edges[chosen]) + uniform(noise, int(lengths[chosen]))


def stretches(places: Whole, *, bits: int) -> tuple[Whole, Whole]:
    """Where each stretch of equal rank starts, and how many candidates it holds; stretch i has rank i."""
    edges = np.empty(places.size + 2, dtype=np.int64)
    edges[0], edges[-1] = 0, 2**bits
    edges[1:-1] = np.sort(places)
    return edges[:-1], np.diff(edges)


def draw_stretch(
    noise: NoiseSource, lengths: Whole, exponents: Array, exact: Callable[[int], Fraction]
) -> int:
    """A stretch i with probability ∝ Lᵢ·exp(−xᵢ), exactly.

    Args:
        noise: where the random words come from.
        lengths: Lᵢ ≥ 0, whole numbers that add up to at most 2³⁰; a stretch of length 0 is never drawn.
        exponents: xᵢ ≥ 0 in double arithmetic, right to 2⁻³⁵ where it is below 96; the least one
            among stretches of positive length is about 0.
        exact: xᵢ as a fraction, asked for the few stretches that are proposed.
    """
    shift = 31
    double = np.exp(-np.minimum(exponents, 2 * _NO_MATTER))
    double *= lengths
    double *= 2.0**shift * (1 + _SLACK)
    upto = double.astype(np.int64)  # towards 0, which is down
    upto += 2
    upto[lengths == 0] = 0
    np.cumsum(upto, out=upto)
    total = int(upto[-1])  # below 2⁶¹·(1 + slack) + 2·stretches < 2⁶³
    while True:
        i = int(np.searchsorted(upto, uniform(noise, total), side="right"))
        proposed = int(upto[i]) - (int(upto[i - 1]) if i else 0)
        if below(noise, 0, 0, Fraction(int(lengths[i]) << shift, proposed), exact(i)):
            return i


def as_fraction(number: float) -> Fraction:
    """The fraction that a person means by a number: 0.1 is 1/10.

    >>> as_fraction(0.1)
    Fraction(1, 10)
    """
    return Fraction(number).limit_denominator(10**9)


def asked_quantile(quantile: float) -> Fraction:
    """The q that somebody asks for, as a fraction strictly between 0 and 1."""
    _check.share(quantile=quantile)
    found = as_fraction(quantile)
    if not 0 < found < 1:
        raise SettingError(f"quantile must not be as near to 0 or 1 as {quantile:g}.")
    return found


def _less(ranks: Whole, number: Fraction) -> Array:
    """Each rank less a fraction, right to a relative 2⁻⁵²: whole numbers are subtracted first."""
    whole, part = divmod(number, 1)
    return np.asarray((ranks - int(whole)) - float(part), dtype=np.float64)


def _nearest_stretch(ranks: Whole, target: Fraction) -> int:
    """The rank closest to q·n among those that have candidates."""
    after = int(np.searchsorted(ranks, float(target)))
    nearby = ranks[max(0, after - 2) : after + 2]
    return min((int(rank) for rank in nearby), key=lambda rank: abs(rank - target))
