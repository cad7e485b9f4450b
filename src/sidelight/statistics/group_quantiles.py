"""The noisy answers about private groups that a quantile needs: released, so free to use from then on."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from sidelight.privacy.budget import Cost
from sidelight.privacy.event import Event
from sidelight.statistics.curator import GroupCurator, rank_scale
from sidelight.statistics.density import Slope, bandwidth, either_side, measured_slope
from sidelight.statistics.error_law import ErrorLaw
from sidelight.statistics.grid import Array, Grid
from sidelight.statistics.mixing import Part
from sidelight.statistics.settings import QuantileSettings
from sidelight.statistics.sides import Estimates
from sidelight.statistics.weights import (
    TYPICAL_DENSITY,
    inverse_variance,
    laplace_variances,
    mean_variances,
    quantile_variances,
)


@dataclass(frozen=True, eq=False, kw_only=True)
class GroupQuantiles:
    """Noisy quantiles, one for each group that was asked."""

    sizes: Array
    """People in each group, not below 1."""
    estimates: Array
    """NaN for a group that was not asked."""
    rank_scales: Array
    """b of each group's rank noise, 2Δ/ε."""
    variances: Array
    """Variance of each group's quantile, in units of 1/f²."""
    worth: Array
    """The variances that the weights are the inverses of."""
    weights: Array
    """β among the private groups; 0 for one that was not asked."""
    slope: Slope
    """1/f, as it was known beforehand or measured."""
    is_weak: bool
    """Whether even the best group's rank noise spans the whole group."""
    events: list[tuple[Event, ...]]
    """The cost of each group."""

    @property
    def part(self) -> Part:
        """The private estimate, and the law of its error."""
        asked = self.weights > 0
        per_person = self.weights[asked] / self.sizes[asked]
        # All but the Laplace noise of ranks: sampling, and draws from beyond the data.
        rest = self.variances - 2 * (self.rank_scales / self.sizes) ** 2
        # What is left after a subtraction may be a little below 0 where the noise is far above it.
        sampling = max(0.0, float((self.weights**2 * rest).sum()))
        estimate = float(self.weights[asked] @ self.estimates[asked])
        likely = self.slope.likely
        deviations = np.full(likely.size, math.sqrt(sampling))
        return Part(estimate, ErrorLaw(deviations, per_person * self.rank_scales[asked], likely))

    @property
    def by_group(self) -> Estimates:
        """Each group by itself."""
        errors = self.slope.value * np.sqrt(self.variances)
        return Estimates(self.sizes, self.weights, self.estimates, errors, self.events)


def measure_quantiles(
    curator: GroupCurator,
    costs: Sequence[Cost],
    quantile: Fraction,
    asked: QuantileSettings,
    *,
    slope: Slope | None,
    epsilons: Sequence[float],
) -> GroupQuantiles:
    """MEASURE sizes and density where asked for, and then the quantiles with all that is left of each ε.

    ``slope`` is 1/f as far as it is known beforehand; where it is None, it is measured.
    """
    unit, width, q = curator.unit, curator.grid.width, float(quantile)
    sizes, events, rest = _sizes(curator, costs, Fraction(asked.size_share))
    if slope is None:
        rest -= Fraction(asked.density_share)
    left: list[Cost] = [cost * rest for cost in costs]
    scales = np.array([rank_scale(cost, quantile, unit) for cost in left])
    density = TYPICAL_DENSITY if slope is None else width / slope.value
    variances = quantile_variances(sizes, q, scales, density=density, alike=unit.records)
    is_lost = _is_lost(sizes, scales, q)
    is_weak = bool(is_lost.all())
    worth = variances
    if asked.weights == "mean":
        sigma2 = unit.records * asked.sigma2(width)
        worth = mean_variances(sizes, sigma2, laplace_variances(epsilons, width))
    asks_all = asked.weights == "mean" or is_weak
    places = [place for place in range(len(costs)) if asks_all or not is_lost[place]]
    weights = np.zeros(len(costs))
    weights[places] = inverse_variance(worth[places])

    def draw(at: Fraction, parts: Sequence[Cost]) -> Array:
        drawn = curator.quantiles(at, places, parts)
        for place, event in zip(places, drawn.events, strict=True):
            events[place] += (event,)
        return drawn.answer

    if slope is None:
        # Two quantiles beside the wanted one, each at half of the density's share.
        parts = [costs[place] * Fraction(asked.density_share / 2) for place in places]
        noise = np.array([rank_scale(part, quantile, unit) for part in parts]) / sizes[places]
        slope = _slope_between(
            quantile,
            lambda at: float(weights[places] @ draw(at, parts)),
            rank_error=math.sqrt(2 * float(((weights[places] * noise) ** 2).sum())),
            people=float(sizes[places].sum()) / unit.records,
            grid=curator.grid,
        )

    estimates = np.full(len(costs), np.nan)
    estimates[places] = draw(quantile, [left[place] for place in places])
    return GroupQuantiles(
        sizes=sizes, estimates=estimates, rank_scales=scales, variances=variances, worth=worth,
        weights=weights, slope=slope, is_weak=is_weak, events=events,
    )  # fmt: skip


def _sizes(
    curator: GroupCurator, costs: Sequence[Cost], share: Fraction
) -> tuple[Array, list[tuple[Event, ...]], Fraction]:
    """How many people each group has, public or measured; what was paid; and the share of each ε left."""
    if curator.unit.total_is_public:
        return curator.public_sizes(), [()] * len(costs), Fraction(1)
    noisy = curator.sizes([cost * share for cost in costs])
    return np.maximum(noisy.answer, 1.0), [(event,) for event in noisy.events], 1 - share


def _is_lost(sizes: Array, scales: Array, q: float) -> NDArray[np.bool_]:
    """Which groups would draw from all over the bounds: their rank noise exceeds the distance to the ends."""
    return np.asarray(math.sqrt(2) * scales / sizes / min(q, 1 - q) > 1)


def _slope_between(
    quantile: Fraction, drawn_at: Callable[[Fraction], float], *, rank_error: float, people: float, grid: Grid
) -> Slope:
    """1/f, from noisy quantiles on either side of the wanted one."""
    h = bandwidth(float(quantile), people, rank_error)
    low, high = (drawn_at(beside) for beside in either_side(quantile, h))
    return measured_slope(low, high, h, math.hypot(rank_error, math.sqrt(h / people)), grid)
