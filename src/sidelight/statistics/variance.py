"""σ² of one person's value: given, bounded, from the public groups, or measured at a price (spec 8.3).

The private sample variance is never looked at. A wrong σ² makes the weights less good and the interval
wrong, but neither the estimate biased nor anyone less private.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sidelight.errors import SettingError
from sidelight.statistics.card import KnownValue
from sidelight.statistics.curator import GroupMeasurement
from sidelight.statistics.error_law import LIKELY
from sidelight.statistics.grid import Array, Grid
from sidelight.statistics.settings import Variance


@dataclass(frozen=True, eq=False)
class KnownVariance:
    """σ² as far as it is known."""

    value: float
    """The σ² that weights are computed with."""
    likely: Array
    """Equally likely values, for the interval."""

    def on_card(self, asked: Variance) -> KnownValue:
        """Its words on the card."""
        return KnownValue(source=asked if isinstance(asked, str) else "given", value=self.value)


def known_beforehand(variance: Variance, shown: Sequence[Array], grid: Grid) -> KnownVariance:
    """σ² as far as it is known before anything private is measured; ``shown`` is clamped to the bounds."""
    has_two = max((values.size for values in shown), default=0) > 1
    if variance == "public" and not has_two:
        raise SettingError("variance='public' needs a public group of at least two values.")
    if variance == "public" or (variance == "private" and has_two):
        return public_variance(shown, grid)
    return given_variance(grid.width**2 / 4 if isinstance(variance, str) else variance, grid)


def given_variance(variance: float, grid: Grid) -> KnownVariance:
    """σ² as said, or at most (R/2)² whatever the data (Popoviciu)."""
    value = max(variance, _least(grid))
    return KnownVariance(value, np.array([value]))


def public_variance(shown: Sequence[Array], grid: Grid) -> KnownVariance:
    """The pooled variance within public groups; likely values from its χ² law."""
    from scipy.special import gammaincinv

    several = [values for values in shown if values.size > 1]
    freedom = sum(values.size - 1 for values in several)
    pooled = sum(float(((values - values.mean()) ** 2).sum()) for values in several) / freedom
    likely = pooled * freedom / (2 * gammaincinv(freedom / 2, LIKELY))
    most = grid.width**2 / 4
    return KnownVariance(max(pooled, _least(grid)), np.clip(likely, _least(grid), most))


def private_variance(
    squares: GroupMeasurement, sizes: Array, shown: Sequence[Array], centre_offset: float, grid: Grid
) -> KnownVariance:
    """σ² = E(x − c)² − (μ − c)², from noisy sums of squares and a first estimate of μ − c.

    Likely values are those of a normal law around it, cut to what is possible.
    """
    from scipy.special import ndtr, ndtri

    half = grid.width / 2
    scale = half**2
    exact = [float(((values - grid.centre) ** 2).sum()) / scale for values in shown]
    totals = np.append(squares.answer, exact)
    people = np.append(sizes, [values.size for values in shown])
    noise = np.append(squares.stddev**2, np.zeros(len(exact)))
    worth = people / (people / 4 + noise)  # the variance of a number between 0 and 1 is at most 1/4
    second = float((worth * totals).sum() / (worth * people).sum())
    middle = (second - (centre_offset / half) ** 2) * scale
    # Squares vary about as those of a normal law do: with variance 2σ⁴.
    typical = 2 * min(max(second, 0.0), 1.0) ** 2
    error = float(np.sqrt((worth**2 * (people * typical + noise)).sum()) / (worth * people).sum()) * scale
    low, high = ndtr((np.array([_least(grid), scale]) - middle) / error)
    likely = middle + error * ndtri(np.clip(low + (high - low) * LIKELY, 1e-300, 1 - 1e-16))
    likely = np.clip(likely, _least(grid), scale)
    return KnownVariance(float(likely.mean()), likely)


def _least(grid: Grid) -> float:
    """The least σ²: rounding to the grid alone leaves this much."""
    return (grid.width * 1e-9) ** 2
