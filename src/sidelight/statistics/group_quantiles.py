"""What was measured of the private groups for a quantile: released, so free to use from then on."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from sidelight.privacy.budget import Cost
from sidelight.privacy.event import Event
from sidelight.statistics.bias import Part
from sidelight.statistics.curator import GroupCurator, GroupMeasurement, rank_scale
from sidelight.statistics.density import Slope, bandwidth, measured_slope, neighbours
from sidelight.statistics.group import Array
from sidelight.statistics.spread import Spread
from sidelight.statistics.terms import shares_of
from sidelight.statistics.weights import inverse_variance, mean_variances, quantile_variances


@dataclass(frozen=True, eq=False, kw_only=True)
class GroupQuantiles:
    """Noisy quantiles, one a group that was asked."""

    share: float
    """q."""
    sizes: Array
    """People in each group, not below 1."""
    estimates: Array
    """NaN for a group that was not asked."""
    rank_scales: Array
    """b of each group's rank noise, 2Δ/ε."""
    weights: Array
    """β among the private groups; 0 for one that was not asked."""
    density: float
    """fR, as far as it was known beforehand."""
    slope: Slope | None
    """1/f, where it was measured."""
    is_weak: bool
    """Whether even the best group's rank noise reaches to the ends."""
    events: tuple[tuple[Event, ...], ...]
    """What was paid for each group."""

    @property
    def variances(self) -> Array:
        """Of each group's quantile, in units of 1/f²."""
        return quantile_variances(self.sizes, self.share, self.rank_scales, density=self.density)

    def part(self, slope: Slope) -> Part:
        """The private estimate, and the law of its error."""
        asked = self.weights > 0
        per_person = self.weights[asked] / self.sizes[asked]
        # All but the Laplace noise of ranks: sampling, and draws from beyond the data.
        rest = self.variances - 2 * (self.rank_scales / self.sizes) ** 2
        # What is left after a subtraction may be a little below 0 where the noise is far above it.
        sampling = max(0.0, float((self.weights**2 * rest).sum()))
        estimate = float(self.weights[asked] @ self.estimates[asked])
        deviations = np.full(slope.likely.size, math.sqrt(sampling))
        return Part(estimate, Spread(deviations, per_person * self.rank_scales[asked], slope.likely))


def measure_quantiles(
    curator: GroupCurator,
    costs: Sequence[Cost],
    share: Fraction,
    *,
    mean_noise: Array | None,
    variance: float,
    density: float,
    density_share: float,
    size_share: float,
) -> GroupQuantiles:
    """MEASURE sizes and density where asked for, and then the quantiles with all that is left of each ε.

    ``mean_noise``, the variance that a noisy sum would have, asks for the paper's weights; ``density``
    is f·(hi − lo) as far as it is known.
    """
    events: list[list[Event]] = [[] for _ in costs]
    rest = Fraction(1)
    if curator.unit.total_is_public:
        sizes = curator.public_sizes()
    else:
        noisy = curator.sizes(shares_of(costs, size_share))
        _note(events, range(len(costs)), noisy)
        sizes = np.maximum(noisy.answer, 1.0)
        rest -= Fraction(size_share)
    if density_share:
        rest -= Fraction(density_share)

    q = float(share)
    left: list[Cost] = [cost * rest for cost in costs]
    scales = np.array([rank_scale(cost, share, curator.unit) for cost in left])
    reach = math.sqrt(2) * scales / sizes / min(q, 1 - q)
    is_weak = bool((reach > 1).all())
    if mean_noise is None:
        asked = [place for place in range(len(costs)) if is_weak or reach[place] <= 1]
        variances = quantile_variances(sizes, q, scales, density=density)
    else:
        asked = list(range(len(costs)))
        variances = mean_variances(sizes, variance, mean_noise)
    weights = np.zeros(len(costs))
    weights[asked] = inverse_variance(variances[asked])

    slope = None
    if density_share:
        # Two quantiles beside the wanted one, each at half of the density's share.
        parts = shares_of([costs[place] for place in asked], density_share / 2)
        noise = np.array([rank_scale(part, share, curator.unit) for part in parts]) / sizes[asked]
        rank_error = math.sqrt(2 * float(((weights[asked] * noise) ** 2).sum()))
        h = bandwidth(q, float(sizes[asked].sum()), rank_error)
        ends = []
        for beside in neighbours(share, h):
            drawn = curator.quantiles(beside, asked, parts)
            _note(events, asked, drawn)
            ends.append(float(weights[asked] @ drawn.answer))
        people = float(sizes[asked].sum())
        error = math.hypot(rank_error, math.sqrt(h / people))
        slope = measured_slope(ends[0], ends[1], h, error, curator.grid)

    drawn = curator.quantiles(share, asked, [left[place] for place in asked])
    _note(events, asked, drawn)
    estimates = np.full(len(costs), np.nan)
    estimates[asked] = drawn.answer
    return GroupQuantiles(
        share=q,
        sizes=sizes,
        estimates=estimates,
        rank_scales=scales,
        weights=weights,
        density=density,
        slope=slope,
        is_weak=is_weak,
        events=tuple(tuple(mine) for mine in events),
    )


def _note(events: list[list[Event]], places: Sequence[int], measurement: GroupMeasurement) -> None:
    for place, event in zip(places, measurement.events, strict=True):
        events[place].append(event)
