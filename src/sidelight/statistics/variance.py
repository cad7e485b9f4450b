"""σ² of one person's value: given, bounded, from the public groups, or measured at a price (spec 8.3).

The private sample variance is never looked at. A wrong σ² makes the weights less good and the interval
wrong, but neither the estimate biased nor anyone less private.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from sidelight import _check
from sidelight.errors import SettingError
from sidelight.statistics.curator import GroupMeasurement
from sidelight.statistics.grid import Grid
from sidelight.statistics.group import Array

Variance = float | Literal["bound", "public", "private"]
_NODES = (np.arange(24) + 0.5) / 24


@dataclass(frozen=True, eq=False)
class KnownVariance:
    """σ² as far as it is known."""

    value: float
    """What weights are computed with."""
    likely: Array
    """Equally likely values, for the interval."""


def check_variance(variance: Variance, public: Sequence[Array]) -> None:
    """Refuse what is not an option, before anything is read."""
    if isinstance(variance, str):
        _check.one_of(("bound", "public", "private"), variance=variance)
        if variance == "public" and max((values.size for values in public), default=0) < 2:
            raise SettingError("variance='public' needs a public group of at least two values.")
    else:
        _check.positive(variance=variance)


def given_variance(variance: float, grid: Grid) -> KnownVariance:
    """σ² as said, or at most (R/2)² whatever the data (Popoviciu)."""
    value = max(variance, _least(grid))
    return KnownVariance(value, np.array([value]))


def public_variance(public: Sequence[Array], grid: Grid) -> KnownVariance:
    """The pooled variance within public groups; likely values from its χ² law."""
    from scipy.special import gammaincinv

    clamped = [np.clip(values, grid.low, grid.high) for values in public if values.size > 1]
    freedom = sum(values.size - 1 for values in clamped)
    pooled = sum(float(((values - values.mean()) ** 2).sum()) for values in clamped) / freedom
    likely = pooled * freedom / (2 * gammaincinv(freedom / 2, _NODES))
    most = grid.width**2 / 4
    return KnownVariance(max(pooled, _least(grid)), np.clip(likely, _least(grid), most))


def private_variance(
    squares: GroupMeasurement, sizes: Array, public: Sequence[Array], centre_offset: float, grid: Grid
) -> KnownVariance:
    """σ² = E(x − c)² − (μ − c)², from noisy sums of squares and a first estimate of μ − c.

    Likely values are those of a normal law around it, cut to what is possible.
    """
    from scipy.special import ndtr, ndtri

    half = grid.width / 2
    scale = half**2
    exact = [float(((np.clip(x, grid.low, grid.high) - grid.centre) ** 2).sum()) / scale for x in public]
    totals = np.append(squares.answer, exact)
    people = np.append(sizes, [values.size for values in public])
    noise = np.append(squares.stddev**2, np.zeros(len(exact)))
    worth = people / (people / 4 + noise)  # the variance of a number between 0 and 1 is at most 1/4
    second = float((worth * totals).sum() / (worth * people).sum())
    middle = (second - (centre_offset / half) ** 2) * scale
    # Squares vary about as those of a normal law do: with variance 2σ⁴.
    typical = 2 * min(max(second, 0.0), 1.0) ** 2
    spread = float(np.sqrt((worth**2 * (people * typical + noise)).sum()) / (worth * people).sum()) * scale
    low, high = ndtr((np.array([_least(grid), scale]) - middle) / spread)
    likely = middle + spread * ndtri(np.clip(low + (high - low) * _NODES, 1e-300, 1 - 1e-16))
    likely = np.clip(likely, _least(grid), scale)
    return KnownVariance(float(likely.mean()), likely)


def _least(grid: Grid) -> float:
    """Rounding to the grid alone leaves this much."""
    return (grid.width * 1e-9) ** 2
