"""What was measured of the private groups for a mean: released, so free to use from then on."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from sidelight.privacy.budget import Cost, Rho
from sidelight.privacy.event import Event
from sidelight.privacy.unit import Unit
from sidelight.statistics.bias import Part
from sidelight.statistics.curator import GroupCurator, GroupMeasurement, Members
from sidelight.statistics.grid import Grid, Whole
from sidelight.statistics.group import Array
from sidelight.statistics.spread import Spread
from sidelight.statistics.terms import check_shares, shares_of
from sidelight.statistics.variance import KnownVariance
from sidelight.statistics.weights import inverse_variance, mean_variances, merged


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What to measure beside the sums, and with which share of each ε."""

    variance_share: float = 0.0
    size_share: float = 0.0
    clipped_share: float = 0.0
    merge: bool = False
    is_proportional: bool = False
    """Weights ∝ sizes, whatever the noise."""


@dataclass(frozen=True, eq=False, kw_only=True)
class GroupSums:
    """Noisy sums of x − c over sets of groups, with noisy or public sizes."""

    grid: Grid
    members: tuple[Members, ...]
    """Which groups each sum is over; every group is in one."""
    sums: GroupMeasurement
    sizes: Array
    """People in each group, not below 1."""
    size_noise: GroupMeasurement | None
    """Where sizes were measured."""
    squares: GroupMeasurement | None
    """Where the variance was asked for."""
    clipped: GroupMeasurement | None
    """Where clamped values were counted."""
    is_proportional: bool
    events: tuple[tuple[Event, ...], ...]
    """What was paid for each group."""

    def gathered(self, values: Array) -> Array:
        """Sums of a per-group number over each set."""
        return np.asarray(
            np.bincount(self.set_of, weights=values, minlength=len(self.members)), dtype=np.float64
        )

    @cached_property
    def set_of(self) -> Whole:
        """For each group, the place of its set."""
        places = np.empty(self.sizes.size, dtype=np.int64)
        for place, who in enumerate(self.members):
            places[list(who)] = place
        return places

    @cached_property
    def people(self) -> Array:
        """How many people each set has."""
        return self.gathered(self.sizes)

    @cached_property
    def means(self) -> Array:
        """x̄ − c of each set."""
        return np.asarray(self.sums.answer / self.people)

    @cached_property
    def size_variances(self) -> Array:
        """Of the noise on each set's size."""
        if self.size_noise is None:
            return np.zeros(len(self.members))
        return self.gathered(self.size_noise.stddev**2)

    def variances(self, variance: float, offset: float) -> Array:
        """Of each set's mean; a noisy size moves it in proportion to the mean's offset from the centre."""
        return mean_variances(self.people, variance, self.sums.stddev**2 + offset**2 * self.size_variances)

    def weights(self, variance: float, offset: float) -> Array:
        """β of each set, among the private ones."""
        if self.is_proportional:
            return np.asarray(self.people / self.people.sum())
        return inverse_variance(self.variances(variance, offset))

    def offset(self, variance: float) -> float:
        """μ − c by a first mix, clamped to what is possible; weights need it where sizes are noisy."""
        first = float(self.weights(variance, self.grid.width / 4) @ self.means)
        return max(-self.grid.width / 2, min(self.grid.width / 2, first))

    def part(self, known: KnownVariance) -> Part:
        """The private estimate μ̃ = c + Σ βᵢ S̃ᵢ/nᵢ, and the law of its error."""
        offset = self.offset(known.value)
        beta = self.weights(known.value, offset)
        per_person = beta / self.people
        is_laplace = bool(self.sums.scale.any())
        noise = per_person**2 * (self.sums.stddev**2 + offset**2 * self.size_variances)
        sampling = known.likely * float((beta**2 / self.people).sum())
        laplace = np.zeros(0)
        if is_laplace:
            of_sizes = per_person * abs(offset) * np.sqrt(self.size_variances / 2)
            laplace = np.concatenate([per_person * self.sums.scale, of_sizes])
        deviations = np.sqrt(sampling + (0.0 if is_laplace else float(noise.sum())))
        estimate = self.grid.centre + float(beta @ self.means)
        if self.size_noise is not None:  # a ratio of noisy numbers: keep it where a mean can be
            estimate = max(self.grid.low, min(self.grid.high, estimate))
        return Part(estimate, Spread(deviations, laplace[laplace > 0]))

    def by_group(self, known: KnownVariance) -> tuple[Array, Array, Array]:
        """Weight among the private ones, estimate and standard error of each group, as part of its set."""
        offset = self.offset(known.value)
        weights = (self.weights(known.value, offset) / self.people)[self.set_of] * self.sizes
        errors = np.sqrt(self.variances(known.value, offset))
        return weights, self.grid.centre + self.means[self.set_of], errors[self.set_of]


def check_costs(grid: Grid, unit: Unit, costs: Sequence[Cost], asked: Asked) -> None:
    """Refuse an ε too small for any part of what is asked for, before a run begins."""
    shares = {"variance_share": asked.variance_share, "clipped_share": asked.clipped_share}
    if not unit.total_is_public:
        shares["size_share"] = asked.size_share
    left_share = check_shares(**shares)
    least = min(share for share in (*shares.values(), left_share) if share)
    for cost in shares_of(costs, least):
        grid.finest(cost, unit)


def measure_sums(curator: GroupCurator, costs: Sequence[Cost], asked: Asked, *, variance: float) -> GroupSums:
    """MEASURE what is asked for beside the sums, and then the sums with all that is left of each ε."""
    events: list[list[Event]] = [[] for _ in costs]
    rest = Fraction(1)

    def paid(measurement: GroupMeasurement, share: float) -> GroupMeasurement:
        nonlocal rest
        rest -= Fraction(share)
        for mine, event in zip(events, measurement.events, strict=True):
            mine.append(event)
        return measurement

    size_noise = clipped = squares = None
    if curator.unit.total_is_public:
        sizes = curator.public_sizes()
    else:
        size_noise = paid(curator.sizes(shares_of(costs, asked.size_share)), asked.size_share)
        sizes = np.maximum(size_noise.answer, 1.0)
    if asked.clipped_share:
        clipped = paid(curator.clipped(shares_of(costs, asked.clipped_share)), asked.clipped_share)
    if asked.variance_share:
        squares = paid(curator.squares(shares_of(costs, asked.variance_share)), asked.variance_share)

    left: list[Cost] = [cost * rest for cost in costs]
    members: list[Members] = [(place,) for place in range(len(costs))]
    if asked.merge:
        is_rho = isinstance(left[0], Rho)
        moved = float(curator.unit.scalar(Fraction(-1, 2), Fraction(1, 2))) * curator.grid.width
        members = merged(
            sizes.tolist(),
            [float(cost) for cost in left],
            variance=variance,
            unit_noise=moved**2 * (0.5 if is_rho else 2.0),
            power=1 if is_rho else 2,
        )
    sums = curator.sums(
        members, [min((left[i] for i in who), key=lambda cost: cost.value) for who in members]
    )
    for who, event in zip(members, sums.events, strict=True):
        for place in who:
            events[place].append(event)
    return GroupSums(
        grid=curator.grid,
        members=tuple(members),
        sums=sums,
        sizes=sizes,
        size_noise=size_noise,
        squares=squares,
        clipped=clipped,
        is_proportional=asked.is_proportional,
        events=tuple(tuple(mine) for mine in events),
    )
