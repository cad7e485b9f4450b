"""SELECT by the exponential mechanism: Pr[r] ∝ exp(ε s_r / 2Δ).

McSherry and Talwar (2007); ε²/8-zCDP because its range is bounded (Cesar and Rogers 2021, spec 2.5).

On the grid of `grid`, Pr[r] ∝ w_r = exp(−η·gap_r), drawn exactly by proposing and accepting:

    m_r ← ⌊2⁴⁰ ŵ_r⌋ + 2                    ŵ_r is w_r in double arithmetic
    repeat:
        propose r with probability m_r / Σm     a uniform whole number below Σm, looked up
        accept it with probability 2⁴⁰ w_r / m_r

An attempt gives r with probability m_r/Σm · 2⁴⁰w_r/m_r ∝ w_r. Integers are summed without rounding, the
uniform number is exact, and `coins.below` accepts with the real number as its probability, so the law is
exact however far ŵ_r is off, as long as m_r ≥ 2⁴⁰ w_r. That holds: where η·gap ≤ 64, ŵ_r is right to
2⁻⁴¹ and 2⁴⁰ŵ_r ≥ 2⁴⁰w_r − 1; elsewhere 2⁴⁰w_r < 1. Hardly an attempt is ever rejected: the 2 added to
each m_r is small against Σm ≥ 2⁴⁰.
"""

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from sidelight.privacy import event
from sidelight.privacy.coins import below, uniform
from sidelight.privacy.noise import NoiseSource
from sidelight.select.grid import Gaps


def exponential(noise: NoiseSource, scores: NDArray[np.float64], event: event.Exponential) -> int:
    """The index of one candidate; the higher its score, the likelier. −∞ is never chosen.

    >>> from sidelight.privacy.budget import Epsilon
    >>> from sidelight.testing import SeededNoise
    >>> paid = event.Exponential.at(
    ...     Epsilon(Fraction(20)), what="3 candidates", sensitivity=Fraction(1), candidates=3
    ... )
    >>> exponential(SeededNoise(7), np.array([0.0, 50.0, -np.inf]), paid)
    1
    """
    return exponentials(noise, scores, event, draws=1)[0]


def exponentials(
    noise: NoiseSource, scores: NDArray[np.float64], event: event.Selection, *, draws: int
) -> list[int]:
    """Independent draws of the same law, with replacement."""
    grid = Gaps.of(scores, epsilon=event.epsilon, sensitivity=event.sensitivity)
    bits = min(40, 62 - grid.gaps.size.bit_length())  # Σm < 2⁶³
    weights = grid.chances()
    weights *= 2.0**bits
    upto = weights.astype(np.int64)  # towards 0, which is down
    upto += 2
    np.cumsum(upto, out=upto)
    total = int(upto[-1])
    drawn: list[int] = []
    while len(drawn) < draws:
        place = uniform(noise, total)
        i = int(np.searchsorted(upto, place, side="right"))
        weight = int(upto[i]) - (int(upto[i - 1]) if i else 0)
        if below(noise, 0, 0, Fraction(2**bits, weight), grid.exponent(i)):
            drawn.append(grid.candidate(i))
    return drawn
