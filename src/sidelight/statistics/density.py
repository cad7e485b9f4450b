"""How dense values lie around a quantile: what turns an error in ranks into an error in values.

    1/f(x_q) ≈ (Q(q + h) − Q(q − h)) / 2h                      Siddiqui's estimate

Q is read off the public groups for nothing, or off the private ones at a price. h is wide enough for the
noise in either: Hall and Sheather's width, and at least four standard deviations of the rank noise.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from statistics import NormalDist

import numpy as np

from sidelight.errors import SettingError
from sidelight.statistics.error_law import LIKELY
from sidelight.statistics.grid import Array, Grid
from sidelight.statistics.quantile import as_fraction
from sidelight.statistics.settings import Density

ENOUGH = 100
"""From this many public people on, the density is taken from them unless something else is asked for."""


@dataclass(frozen=True, eq=False)
class Slope:
    """dx/dq = 1/f at the quantile, as far as it is known."""

    value: float
    likely: Array
    """Equally likely values, for the interval."""
    source: str


def known_slope(
    density: Density, shown: Sequence[Array], quantile: float, grid: Grid, *, has_private: bool
) -> Slope | None:
    """1/f where it is given, or known from the public groups; None where it is to be measured."""
    people = sum(values.size for values in shown)
    if density == "public" and people < 2:
        raise SettingError("density='public' needs public groups of at least two values.")
    if density == "private" and not has_private:
        raise SettingError("density='private' needs a private group to measure it in; leave it out.")
    if density is None:
        density = "public" if people >= ENOUGH or not has_private else "private"
    if density == "private":
        return None
    if density == "public":
        return public_slope(shown, quantile, grid)
    return Slope(1 / density, np.array([1 / density]), "given")


def bandwidth(quantile: float, people: float, rank_error: float = 0.0) -> float:
    """The bandwidth h of Hall and Sheather (1988), or four rank errors; at most halfway to the ends.

    >>> round(bandwidth(0.5, 1000), 3)
    0.097
    """
    normal = NormalDist()
    z = normal.inv_cdf(quantile)
    best: float = (
        people ** (-1 / 3) * 1.96 ** (2 / 3) * (1.5 * normal.pdf(z) ** 2 / (2 * z * z + 1)) ** (1 / 3)
    )
    return min(max(best, 4 * rank_error), min(quantile, 1 - quantile) / 2)


def either_side(quantile: Fraction, h: float) -> tuple[Fraction, Fraction]:
    """q − h and q + h, as short fractions."""
    step = as_fraction(round(h, 4))
    return quantile - step, quantile + step


def public_slope(shown: Sequence[Array], quantile: float, grid: Grid) -> Slope:
    """From the public groups together; its relative error is about 1/√(2hn)."""
    pooled = np.concatenate(list(shown))
    h = bandwidth(quantile, pooled.size)
    low, high = np.quantile(pooled, [quantile - h, quantile + h])
    return _slope(float(high - low), h, 1 / math.sqrt(2 * h * pooled.size), grid, "public")


def measured_slope(low: float, high: float, h: float, rank_error: float, grid: Grid) -> Slope:
    """From two noisy quantiles, q − h and q + h, with the rank error of each."""
    return _slope(high - low, h, math.sqrt(2) * rank_error / (2 * h), grid, "private")


def _slope(gap: float, h: float, relative_error: float, grid: Grid, source: str) -> Slope:
    from scipy.special import ndtri

    value = max(gap, grid.step) / (2 * h)
    likely = value * np.maximum(1 + min(relative_error, 1.0) * ndtri(LIKELY), 0.1)
    return Slope(value, likely, source)
