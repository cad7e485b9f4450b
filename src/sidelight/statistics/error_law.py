"""The law of an estimate's error: a sum of Gaussian and Laplace errors, with its exact interval.

    error = m·(s·Z + Σⱼ bⱼ·Lⱼ),     Z ~ 𝒩(0, 1),  Lⱼ ~ Lap(1)

A normal interval is wrong where one Laplace draw dominates: ±1.96 standard deviations then cover 93.7%
and not 95%. So the tail is found from the characteristic function, E cos(t·error), by Gil-Pelaez:

    Pr[error ≤ x] = ½ + (1/π) ∫₀^∞ sin(tx)/t · exp(−m²s²t²/2) ∏ⱼ 1/(1 + m²bⱼ²t²) dt

Where σ² or a density was estimated itself, s and m are uncertain: they are lists of equally likely
values, and the characteristic function is averaged over them.
"""

import math
from dataclasses import dataclass, field
from statistics import NormalDist

import numpy as np

from sidelight.statistics.grid import Array

LIKELY = (np.arange(24) + 0.5) / 24
"""The probabilities at which a law's quantiles are taken where a few equally likely values stand for it."""
_LARGEST = 32
"""Laplace errors kept as such; by the central limit theorem the smaller rest is Gaussian."""
_NODES = 1 << 12
_LONGEST = 80.0
"""The integral runs to 80 inverse standard deviations; what lies beyond is below 1/(π·80²) = 5·10⁻⁵."""


def _none() -> Array:
    return np.zeros(0)


def _one() -> Array:
    return np.ones(1)


@dataclass(frozen=True, eq=False)
class ErrorLaw:
    """How an estimate's error is distributed: symmetrically around 0."""

    gaussian: Array
    """s: equally likely standard deviations of the Gaussian part."""
    laplace: Array = field(default_factory=_none)
    """bⱼ: scales of the Laplace part."""
    multiplier: Array = field(default_factory=_one)
    """m: equally likely common factors; one for each s, or one for all."""

    @property
    def variance(self) -> float:
        """The mean squared error."""
        square = self.multiplier**2 * (self.gaussian**2 + 2 * float((self.laplace**2).sum()))
        return float(square.mean())

    @property
    def stddev(self) -> float:
        """The standard error."""
        return math.sqrt(self.variance)

    def times(self, factor: float) -> "ErrorLaw":
        """The law of factor · error."""
        return ErrorLaw(self.gaussian * factor, self.laplace * factor, self.multiplier)

    def plus(self, other: "ErrorLaw") -> "ErrorLaw":
        """The law of the sum of two independent errors; their lists stand for the same unknowns."""
        m = max(self.multiplier, other.multiplier, key=len)
        return ErrorLaw(np.hypot(self.gaussian, other.gaussian), np.append(self.laplace, other.laplace), m)

    def half_width(self, confidence: float, *, offset: float = 0.0) -> float:
        """The least h such that |error + offset| ≤ h with this probability.

        >>> round(ErrorLaw(np.array([1.0])).half_width(0.95), 3)
        1.96
        >>> round(ErrorLaw(np.array([0.0]), np.array([1.0])).half_width(0.95), 3)  # −log 0.05
        2.996
        """
        scale = self.stddev
        if scale == 0:
            return abs(offset)
        if self.laplace.size == 0 and self.gaussian.size == 1 and self.multiplier.size == 1 and not offset:
            return scale * NormalDist().inv_cdf(0.5 + confidence / 2)
        t = np.asarray((np.arange(_NODES) + 0.5) * (_LONGEST / _NODES))
        shift = abs(offset) / scale
        # Pr[|error + offset| ≤ h] = (1/π) ∫ (sin(t(h − o)) + sin(t(h + o)))/t · φ(t) dt
        weight = (
            self._characteristic(np.asarray(t / scale))
            * (2 * _LONGEST / _NODES / math.pi)
            * np.cos(t * shift)
            / t
        )
        upto = int(np.flatnonzero(np.abs(weight) > 1e-12)[-1]) + 1
        t, weight = t[:upto], weight[:upto]
        low, high = 0.0, shift + 60.0
        # Halving, and not brentq: for a confidence of nearly 1 the truncated integral may never reach it.
        for _ in range(32):
            middle = (low + high) / 2
            covered = float(np.sin(t * middle) @ weight)
            low, high = (middle, high) if covered < confidence else (low, middle)
        return high * scale

    def _characteristic(self, t: Array) -> Array:
        """E cos(t·error), averaged over the likely values of s and m."""
        largest = np.sort(np.abs(self.laplace))[::-1]
        kept, rest = largest[:_LARGEST], largest[_LARGEST:]
        s, m = np.broadcast_arrays(
            np.hypot(self.gaussian, math.sqrt(2 * float((rest**2).sum()))), self.multiplier
        )
        total = np.zeros_like(t)
        for deviation, factor in zip(s.tolist(), m.tolist(), strict=True):
            scaled = (factor * t) ** 2
            of_laplace = 1 / np.prod(1 + np.outer(kept**2, scaled), axis=0)
            total += np.exp(-0.5 * deviation**2 * scaled) * of_laplace
        return np.asarray(total / s.size, dtype=np.float64)
