"""Scores on a grid: what makes a selection's ε hold although scores are floating point.

Both selections look at scores only through exp(ε s / 2Δ), and their proofs need |s − s'| ≤ Δ between
neighbours. The formula of a score keeps that bound; its floating-point value need not, and draws by a
computed exp have no exact law. So the draws never see a score, only a whole number k:

    γ = 2⁻¹⁶ Δ, rounded down to a power of two           the grid
    k = round(s̃ / γ)                                     s̃ is the computed score
    η = ε / 2(Δ/γ + 3)                                   a fraction
    exp(ε s / 2Δ) becomes exp(η k)

**Why ε holds.** Every score is either its formula but for two roundings of the score itself, that is
|s̃ − s| ≤ 2·2⁻⁵³ |s| (``score`` says how: its sums are exact), or its Δ has room for all of its rounding
(``improvement``, ``judgement``). Both s̃ and s are clipped to ±B, where B is 2³⁵ Δ, rounded down to a power
of two; clipping brings scores no further apart. If |s| ≤ B, they differ by 2⁻⁵² B at most. If |s| > B, then
|s̃| ≥ (1 − 2⁻⁵²) B, and again they do. And 2⁻⁵² B ≤ 2⁻¹⁷ Δ < γ. So between neighbours

    |k − k'|  ≤  |s̃ − s̃'|/γ + 1  ≤  (Δ + 2γ)/γ + 1  =  Δ/γ + 3,

since rounding moves a difference by at most 1. So k is a score of sensitivity Δ/γ + 3, exactly, and η is
the exponent that the exponential mechanism and permute-and-flip call for at ε: what is proved of them at
ε holds of exp(η k). The price is 3γ/Δ < 2⁻¹⁴ of sharpness.

Dividing by a power of two is exact, and so are clipping at one and rounding to a whole number. No error of up
to 10¹⁰ records is clipped: B is more than 1.7·10¹⁰ Δ. A score of −∞ is never chosen; which ones are −∞
must be decided without private data, like any filter of candidates.
"""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from sidelight.errors import SettingError
from sidelight.privacy.coins import nearest

_GRID_BITS = 16
_CLIP_BITS = 35
"""Scores are clipped at 2³⁵ Δ. With 16 bits below Δ that is two bits fewer than a double holds."""


@dataclass(frozen=True, eq=False)
class Gaps:
    """How far each candidate that may be chosen is from the best, on the grid."""

    gaps: NDArray[np.int64]
    """k* − k ≥ 0, and 0 for the best."""
    rate: Fraction
    """η: a gap of 1 divides a candidate's chances by e^η."""
    candidates: NDArray[np.int64] | None
    """The candidates with these gaps; None if all take part, that is, if no score is −∞."""

    @classmethod
    def of(cls, scores: NDArray[np.float64], *, epsilon: Fraction, sensitivity: Fraction) -> "Gaps":
        """Put scores on the grid that belongs to their sensitivity."""
        _check_event(epsilon, sensitivity)
        scores = np.asarray(scores, dtype=np.float64)
        if scores.ndim != 1 or scores.size == 0:
            raise SettingError(f"scores must be a list of at least one score; got shape {scores.shape}.")
        candidates = None
        lowest = scores.min()
        if not lowest > -np.inf:  # −∞ or NaN
            candidates = np.flatnonzero(scores != -np.inf)
            scores = scores[candidates]
        if scores.size == 0:
            raise SettingError("scores must leave a candidate to choose; all of them are −∞.")
        if not scores.max() < np.inf:
            raise SettingError("scores must be finite numbers or −∞; some are NaN or +∞.")

        exponent = _floor_log2(sensitivity) - _GRID_BITS
        bound = 2.0 ** (_CLIP_BITS + _GRID_BITS)
        # PRIVACY: scaling by a power of two, clipping and rounding are exact, as the proof above needs.
        with np.errstate(over="ignore"):  # beyond the clip
            on_grid = np.ldexp(scores, -exponent)
        np.clip(on_grid, -bound, bound, out=on_grid)
        np.rint(on_grid, out=on_grid)
        k = on_grid.astype(np.int64)
        np.subtract(k.max(), k, out=k)
        rate = epsilon / (2 * (sensitivity / Fraction(2) ** exponent + 3))
        return cls(k, rate, candidates)

    def chances(self) -> NDArray[np.float64]:
        """exp(−η·gap) in double arithmetic: right to 2⁻⁴¹, as `coins` explains."""
        chances = self.gaps.astype(np.float64)
        chances *= -nearest(self.rate)
        np.exp(chances, out=chances)
        return chances

    def exponent(self, i: int) -> Fraction:
        """η·gap, exactly."""
        return self.rate * int(self.gaps[i])

    def candidate(self, i: int) -> int:
        """The candidate's index among all scores."""
        return i if self.candidates is None else int(self.candidates[i])


def _check_event(epsilon: Fraction, sensitivity: Fraction) -> None:
    if not epsilon > 0:
        raise SettingError(f"epsilon must be a fraction above 0; got {epsilon}.")
    if not 2.0**-900 < sensitivity < 2.0**900:
        raise SettingError(
            f"sensitivity must be a fraction above 0 that a double can hold; got {sensitivity}."
        )


def _floor_log2(value: Fraction) -> int:
    exponent = value.numerator.bit_length() - value.denominator.bit_length()
    return exponent if value >= Fraction(2) ** exponent else exponent - 1
