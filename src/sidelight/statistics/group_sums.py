"""The noisy answers about private groups that a mean needs: released, so free to use from then on."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from sidelight.privacy.budget import Cost, Rho
from sidelight.privacy.event import Event
from sidelight.privacy.unit import Unit
from sidelight.statistics.curator import GroupCurator, GroupMeasurement, Members
from sidelight.statistics.error_law import ErrorLaw
from sidelight.statistics.grid import Array, Grid, Whole
from sidelight.statistics.mixing import Part
from sidelight.statistics.settings import MeanSettings, left_after
from sidelight.statistics.sides import Estimates
from sidelight.statistics.variance import KnownVariance
from sidelight.statistics.weights import inverse_variance, mean_variances, merged


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
    """Noisy sizes; None if sizes are public."""
    squares: GroupMeasurement | None
    """Noisy sums of squares; None if the variance was not asked for."""
    clipped: GroupMeasurement | None
    """Noisy numbers of clamped values; None if they were not counted."""
    is_proportional: bool
    """Whether weights are proportional to sizes, whatever the noise."""
    alike: int = 1
    """k, the most values of one person. They may be all alike: then n values tell no more than n/k people."""

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
        return self._gathered(self.sizes)

    @cached_property
    def means(self) -> Array:
        """x̄ − c of each set."""
        return np.asarray(self.sums.answer / self.people)

    @cached_property
    def size_variances(self) -> Array:
        """Variance of the noise on each set's size."""
        if self.size_noise is None:
            return np.zeros(len(self.members))
        return self._gathered(self.size_noise.stddev**2)

    @property
    def events(self) -> list[tuple[Event, ...]]:
        """The cost of each group."""
        beside = [found for found in (self.size_noise, self.clipped, self.squares) if found is not None]
        return [
            (*(found.events[place] for found in beside), self.sums.events[its_set])
            for place, its_set in enumerate(self.set_of)
        ]

    def variances(self, variance: float, offset: float) -> Array:
        """Variance of each set's mean; a noisy size moves the mean by its ``offset`` from the centre."""
        # The mean of n values, m of each person, has a variance of at most Σm²σ²/n² ≤ kσ²/n.
        noise = self.sums.stddev**2 + offset**2 * self.size_variances
        return mean_variances(self.people, self.alike * variance, noise)

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
        sampling = self.alike * known.likely * float((beta**2 / self.people).sum())
        laplace = np.zeros(0)
        if is_laplace:
            of_sizes = per_person * abs(offset) * np.sqrt(self.size_variances / 2)
            laplace = np.concatenate([per_person * self.sums.scale, of_sizes])
        deviations = np.sqrt(sampling + (0.0 if is_laplace else float(noise.sum())))
        estimate = self.grid.centre + float(beta @ self.means)
        if self.size_noise is not None:  # a ratio of noisy numbers: keep it where a mean can be
            estimate = max(self.grid.low, min(self.grid.high, estimate))
        return Part(estimate, ErrorLaw(deviations, laplace[laplace > 0]))

    def by_group(self, known: KnownVariance) -> Estimates:
        """Each group as a part of its set."""
        offset = self.offset(known.value)
        return Estimates(
            self.sizes,
            (self.weights(known.value, offset) / self.people)[self.set_of] * self.sizes,
            self.grid.centre + self.means[self.set_of],
            np.sqrt(self.variances(known.value, offset))[self.set_of],
            self.events,
        )

    def _gathered(self, values: Array) -> Array:
        """Sums of a per-group number over each set."""
        sums = np.bincount(self.set_of, weights=values, minlength=len(self.members))
        return np.asarray(sums, dtype=np.float64)


def _shares(asked: MeanSettings, unit: Unit) -> dict[str, float]:
    """The measurements beside the sums, as shares of each ε."""
    return {
        "size_share": 0.0 if unit.total_is_public else asked.size_share,
        "clipped_share": asked.clipped_share,
        "variance_share": asked.measured_share,
    }


def check_costs(grid: Grid, unit: Unit, costs: Sequence[Cost], asked: MeanSettings) -> None:
    """Refuse an ε too small for any part of what is asked for, before a run begins."""
    shares = _shares(asked, unit)
    least = min(share for share in (*shares.values(), left_after(**shares)) if share)
    for cost in costs:
        grid.finest(cost * Fraction(least), unit)


def measure_sums(
    curator: GroupCurator, costs: Sequence[Cost], asked: MeanSettings, *, variance: float
) -> GroupSums:
    """MEASURE what is asked for beside the sums, and then the sums with all that is left of each ε.

    ``variance`` is σ² as far as it is known beforehand; it decides which groups are merged.
    """
    size_share, clipped_share, squares_share = map(Fraction, _shares(asked, curator.unit).values())

    def part(share: Fraction) -> list[Cost]:
        return [cost * share for cost in costs]

    size_noise = curator.sizes(part(size_share)) if size_share else None
    sizes = curator.public_sizes() if size_noise is None else np.maximum(size_noise.answer, 1.0)
    clipped = curator.clipped(part(clipped_share)) if clipped_share else None
    squares = curator.squares(part(squares_share)) if squares_share else None

    left = part(1 - size_share - clipped_share - squares_share)
    members: list[Members] = [(place,) for place in range(len(costs))]
    if asked.merge:
        is_rho = isinstance(left[0], Rho)
        moved = float(curator.unit.scalar(Fraction(-1, 2), Fraction(1, 2))) * curator.grid.width
        members = merged(
            sizes.tolist(),
            [float(cost) for cost in left],
            variance=curator.unit.records * variance,
            unit_noise=moved**2 * (0.5 if is_rho else 2.0),
            power=1 if is_rho else 2,
        )
    least = [min((left[place] for place in who), key=lambda cost: cost.value) for who in members]
    return GroupSums(
        grid=curator.grid,
        members=tuple(members),
        sums=curator.sums(members, least),
        sizes=sizes,
        size_noise=size_noise,
        squares=squares,
        clipped=clipped,
        is_proportional=asked.weights == "proportional",
        alike=curator.unit.records,
    )
