"""The one door to private groups and cells: pay, write, look, draw.

Exact private values are seen in this file and nowhere else under ``statistics``. Each public method makes
its events, and hands them to ``Door``, which charges and writes before a value is looked at. Groups are
disjoint, so their events stand side by side (``Parallel``), and the dearest counts.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sidelight.curator.door import Door
from sidelight.data.people import people_key
from sidelight.errors import DataError, SettingError
from sidelight.measurement import gaussian, laplace
from sidelight.privacy import event as events
from sidelight.privacy.budget import Cost, Rho
from sidelight.privacy.marks import new_key
from sidelight.privacy.unit import Unit
from sidelight.statistics.grid import Array, Grid, Whole
from sidelight.statistics.group import Group
from sidelight.statistics.people import kept_values, require_named, words_of_numbers
from sidelight.statistics.quantile import exponential_quantile

Members = tuple[int, ...]
"""Which groups are summed together, by their places."""
Additive = events.Gaussian | events.Laplace


@dataclass(frozen=True, eq=False)
class GroupMeasurement:
    """Noisy answers, one for each set of groups that was asked; public once it exists."""

    answer: Array
    stddev: Array
    """σ of each answer's noise."""
    scale: Array
    """b of each answer's noise where it is Laplace, else 0."""
    events: tuple[events.Event, ...]
    """The cost."""


class _SumCurator(Door):
    """Draws sums of whole numbers with exact noise."""

    def _noisy(
        self, paid: events.Event, look: Callable[[], Whole], each: Sequence[Additive], steps: Array
    ) -> GroupMeasurement:
        """Pay for all answers at once, and add to each the noise of its own event.

        An answer is a whole number of its own ``steps``.
        """
        drawn = self._pay_then(paid, look, lambda exact: self._noised(exact, each))
        scale = [float(part.scale) if isinstance(part, events.Laplace) else 0.0 for part in each]
        return GroupMeasurement(
            drawn * steps,
            np.array([part.stddev for part in each]) * steps,
            np.array(scale) * steps,
            paid.parts if isinstance(paid, events.Parallel) else (paid,),
        )

    def _noised(self, exact: Whole, each: Sequence[Additive]) -> NDArray[np.int64]:
        """Events of one scale are drawn together: a thousand groups in one draw."""
        alike: dict[Fraction, list[int]] = {}
        for place, part in enumerate(each):
            key = part.scale if isinstance(part, events.Laplace) else part.variance
            alike.setdefault(key, []).append(place)
        noisy = np.empty_like(exact)
        for places in alike.values():
            part = each[places[0]]
            if isinstance(part, events.Laplace):
                noisy[places] = laplace(self._noise, exact[places], part)
            else:
                noisy[places] = gaussian(self._noise, exact[places], part)
        return noisy


class GroupCurator(_SumCurator):
    """Holds private groups; answers only with noise that was paid for.

    Each answer takes one cost for each set of groups it is about.
    """

    def __init__(self, groups: Sequence[Group], grid: Grid, **settings: Any) -> None:
        super().__init__(**settings)
        self.grid = grid
        self._names = tuple(group.name for group in groups)
        # PRIVACY: from here on nothing but the kept values of each person is there to be looked at.
        self._values = _kept_of_groups(groups, self.unit)

    def public_sizes(self) -> Array:
        """How many values each group has; refused where one person can change that."""
        if not self.unit.total_is_public:
            raise SettingError("group sizes are private under this unit; they are measured, at a cost.")
        # PRIVACY: neighbouring groups have the same n under replacement, so n is public (spec 9.2, N9).
        return np.array([values.size for values in self._values], dtype=np.float64)

    def sizes(self, costs: Sequence[Cost]) -> GroupMeasurement:
        """How many values each group has, where that is private."""
        return self._sums("size", self._each(), costs, lambda _, values: values.size, high=1, are_counts=True)

    def clipped(self, costs: Sequence[Cost]) -> GroupMeasurement:
        """How many values of each group the bounds clamp."""
        return self._sums("clamped values", self._each(), costs, Grid.outside, high=1, are_counts=True)

    def sums(self, members: Sequence[Members], costs: Sequence[Cost]) -> GroupMeasurement:
        """Σ(x − c) over each set of groups, c halfway between the bounds."""
        half = Fraction(1, 2)
        # PRIVACY: |y| ≤ 2ᵇ⁻¹, so a value moves the sum by 2ᵇ under replacement, 2ᵇ⁻¹ otherwise (spec 1.5);
        # a person has up to k of them.
        return self._sums(
            "sum", members, costs, lambda grid, values: int(grid.centred(values).sum()), low=-half, high=half
        )

    def squares(self, costs: Sequence[Cost]) -> GroupMeasurement:
        """Σ((x − c)/(R/2))² of each group: terms between 0 and 1, so a value moves it by 1."""
        return self._sums(
            "sum of squares", self._each(), costs, lambda grid, x: int(grid.squares(x).sum()), high=1
        )

    def quantiles(self, quantile: Fraction, places: Sequence[int], costs: Sequence[Cost]) -> GroupMeasurement:
        """The q-quantile of each of these groups, by the exponential mechanism."""
        parts = tuple(
            events.Exponential.at(
                cost,
                what=f"quantile {float(quantile):g} of {self._name((place,))}",
                sensitivity=rank_sensitivity(quantile, self.unit),
                candidates=2**self.grid.bits,
            )
            for place, cost in zip(places, costs, strict=True)
        )

        def draw(exact: list[Whole]) -> NDArray[np.int64]:
            drawn = [
                exponential_quantile(self._noise, values, quantile, part, bits=self.grid.bits)
                for values, part in zip(exact, parts, strict=True)
            ]
            return np.array(drawn, dtype=np.int64)

        drawn = self._pay_then(
            _side_by_side(parts, "quantiles"), lambda: [self._places(place) for place in places], draw
        )
        answer = np.asarray(self.grid.low + (drawn + 0.5) * self.grid.step)
        # The rank of what comes out is off by about Lap(2Δ/ε); see mixed_quantile.
        scale = np.array([float(2 * part.sensitivity / part.epsilon) for part in parts])
        return GroupMeasurement(answer, math.sqrt(2) * scale, scale, parts)

    def _sums(
        self,
        what: str,
        members: Sequence[Members],
        costs: Sequence[Cost],
        exact: Callable[[Grid, Array], int],
        *,
        high: int | Fraction,
        low: int | Fraction = 0,
        are_counts: bool = False,
    ) -> GroupMeasurement:
        """Sums over each set of groups; a person's term lies between low·2ᵇ and high·2ᵇ, a whole number.

        ``exact`` gives a group's sum on a grid of 2ᵇ steps. For counts b is 0.
        """
        # Asked for counts, too: it refuses, before payment, noise that cannot be drawn.
        grids = [self.grid.finest(cost, self.unit) for cost in costs]
        if are_counts:
            grids = [replace(grid, bits=0) for grid in grids]
        parts = []
        for who, cost, grid in zip(members, costs, grids, strict=True):
            moved = self.unit.scalar(low * 2**grid.bits, high * 2**grid.bits)
            parts.append(_additive(cost, f"{what} of {self._name(who)}", l1=moved, l2_squared=moved**2))

        def look() -> Whole:
            sums = [
                sum(exact(grid, self._values[place]) for place in who)
                for grid, who in zip(grids, members, strict=True)
            ]
            return np.array(sums, dtype=np.int64)

        # A step of x − c is γ; one of a square or of a count is 2⁻ᵇ.
        steps = np.array([grid.step if low else 2.0**-grid.bits for grid in grids])
        return self._noisy(_side_by_side(parts, what), look, parts, steps)

    def _each(self) -> tuple[Members, ...]:
        return tuple((place,) for place in range(len(self._names)))

    def _name(self, members: Members) -> str:
        names = [self._names[place] or f"private group {place + 1}" for place in members]
        return f"'{names[0]}'" if len(names) == 1 else f"'{names[0]}' and {len(names) - 1} more"

    # PRIVACY: returns exact private values; called only inside a look, after payment.
    def _places(self, place: int) -> Whole:
        return self.grid.places(self._values[place])


class CellCurator(_SumCurator):
    """Holds one private table of values and cells, where the cell is as private as the value.

    A replaced record may leave one cell and enter another, so cells are measured as one vector.
    """

    def __init__(
        self, values: Array, codes: Whole, cells: int, grid: Grid, people: Any = None, **settings: Any
    ) -> None:
        super().__init__(**settings)
        self.grid = grid
        self.cells = cells
        if self.unit.person is not None:
            # PRIVACY: from here on nothing but the kept records of each person is there to be looked at.
            kept = kept_values(people, [codes, *words_of_numbers(values)], self.unit, people_key(new_key()))
            values, codes = values[kept], codes[kept]
        self._values, self._codes = values, codes

    def sizes(self, cost: Cost) -> GroupMeasurement:
        """How many records each cell has."""
        unit = self.unit
        event = self._event(cost, "sizes", l1=Fraction(unit.l1), l2_squared=Fraction(unit.l2_squared))

        def look() -> Whole:
            return np.bincount(self._codes, minlength=self.cells + 1)[: self.cells]

        return self._vector(event, look, self.cells, step=1.0)

    def sums(self, cost: Cost) -> GroupMeasurement:
        """Σ(x − c) over each cell."""
        grid = self.grid.finest(cost, self.unit)
        half = 2 ** (grid.bits - 1)
        # PRIVACY: a record that moves from one cell to another changes two sums by at most half the width
        # each; one that stays changes one by the width. So Δ₁ is the width either way, and Δ₂ ≤ Δ₁. Of up to
        # k records a person Δ₁ is k times that.
        moved = self.unit.scalar(-half, half)
        event = self._event(cost, "sums", l1=moved, l2_squared=moved**2)

        def look() -> Whole:
            sums = np.zeros(self.cells + 1, dtype=np.int64)
            np.add.at(sums, self._codes, grid.centred(self._values))
            return sums[: self.cells]

        return self._vector(event, look, self.cells, step=grid.step)

    def squares(self, cost: Cost) -> GroupMeasurement:
        """Σ((x − c)/(R/2))² over all cells together."""
        grid = self.grid.finest(cost, self.unit)
        moved = self.unit.scalar(0, 2**grid.bits)
        event = self._event(cost, "sum of squares", l1=moved, l2_squared=moved**2)

        def look() -> Whole:
            return np.array([grid.squares(self._values[self._codes < self.cells]).sum()])

        return self._vector(event, look, 1, step=2.0**-grid.bits)

    def _event(self, cost: Cost, what: str, *, l1: Fraction, l2_squared: Fraction) -> Additive:
        return _additive(cost, f"{what} over {self.cells} cells", l1=l1, l2_squared=l2_squared)

    def _vector(
        self, event: Additive, look: Callable[[], Whole], length: int, *, step: float
    ) -> GroupMeasurement:
        return self._noisy(event, look, [event] * length, np.full(length, step))


def check_groups_of(groups: Sequence[Group], unit: Unit) -> None:
    """Refuse private groups that do not go with the unit, before anything is paid."""
    _check_people(groups, unit)
    if not unit.total_is_public:
        if any(group.declared_records is not None for group in groups):
            why = "under add-or-remove" if unit.person is None else f"where {unit.person!r} says who is who"
            raise SettingError(f"a group's number of records cannot be declared {why}: it is private.")
    elif any(group._values.size == 0 for group in groups):
        # PRIVACY: sizes are public here. Where they are not, an empty group is a group like any other.
        raise DataError("a group is empty; leave it out, or give it at least one value.")


def _check_people(groups: Sequence[Group], unit: Unit) -> None:
    """Refuse groups that share people, or do not say who each value is about where the unit needs it."""
    if unit.person is None:
        if any(group._people is not None for group in groups):
            raise SettingError(
                "people say who each value is about, but the unit names no column of people. Give such a "
                'unit: unit=sl.Unit("replace", records=3, person="patient_id").'
            )
        return
    seen: set[str] = set()
    for group in groups:
        if group._people is None:
            raise SettingError(
                f"the unit is {unit.spelled()}, so every private group must say who its values are about: "
                "sl.Group(values, people=…). Nothing was read and nothing was charged."
            )
        require_named(group._people, unit, f"group {group.name!r}")
        own = {name for name in group._people.unique().to_pylist() if name is not None}
        if own & seen:
            # PRIVACY: each group has its own ε, which holds for people who are in no other group.
            raise DataError(
                f"somebody has values in two private groups, by {unit.person!r}. Each person must be in one "
                "group, which is protected with its own ε: put all values of a person into one. Nothing was "
                "charged."
            )
        seen |= own


def _kept_of_groups(groups: Sequence[Group], unit: Unit) -> tuple[Array, ...]:
    """The values of each group, at most k of each person."""
    if unit.person is None:
        return tuple(group._values for group in groups)
    key = people_key(new_key())
    return tuple(
        group._values[kept_values(group._people, words_of_numbers(group._values), unit, key)]
        for group in groups
    )


def rank_sensitivity(quantile: Fraction, unit: Unit) -> Fraction:
    """How far |#{x ≤ o} − qn| can move: 1 under replacement, max(q, 1 − q) otherwise (spec 1.5).

    A record adds 1 − q or −q to what is inside, and a person has up to k of them. Where one person takes the
    place of another, up to k are taken away and up to k added: that moves it by k(1 − q) + kq at most.
    """
    one = Fraction(1) if "replace" in unit.relations else max(quantile, 1 - quantile)
    return unit.records * one


def rank_scale(cost: Cost, quantile: Fraction, unit: Unit) -> float:
    """The scale b of the rank noise of an exponential-mechanism quantile, 2Δ/ε, before it is paid for."""
    moved = rank_sensitivity(quantile, unit)
    event = events.Exponential.at(cost, what="a quantile", sensitivity=moved, candidates=1)
    return float(2 * event.sensitivity / event.epsilon)


def _additive(cost: Cost, what: str, *, l1: Fraction, l2_squared: Fraction) -> Additive:
    """The event that adds as little noise as the cost pays for: Gaussian for ρ, Laplace for ε."""
    if isinstance(cost, Rho):
        return events.Gaussian.at(cost, what=what, l2_squared=l2_squared)
    return events.Laplace.at(cost, what=what, l1=l1)


def _side_by_side(parts: Sequence[events.Event], what: str) -> events.Event:
    return parts[0] if len(parts) == 1 else events.Parallel.of(parts, what=f"{what} of {len(parts)} groups")
