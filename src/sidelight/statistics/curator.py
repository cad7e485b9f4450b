"""The one door to private groups: pay, write, look, draw.

Exact private values are seen in this file and nowhere else under ``statistics``. Each public method
makes one event for each group, puts them side by side (``Parallel``: the groups are disjoint, so the
dearest counts) and hands them to ``Door``, which charges and writes before a value is looked at.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sidelight.curator.door import Door
from sidelight.errors import DataError, SettingError
from sidelight.measurement import gaussian, laplace
from sidelight.privacy import event as events
from sidelight.privacy.budget import Budget, Cost, Epsilon, Rho
from sidelight.privacy.ledger import Ledger, MemoryLedger
from sidelight.privacy.noise import NoiseSource
from sidelight.privacy.promise import Promise, agreed_unit
from sidelight.privacy.unit import Unit
from sidelight.statistics.grid import Grid, Whole
from sidelight.statistics.group import Array, Group
from sidelight.statistics.personal_quantile import check_work, personalised_quantile_place
from sidelight.statistics.quantile import exponential_quantile

Members = tuple[int, ...]
"""Which groups are summed together, by their places."""


@dataclass(frozen=True, eq=False)
class GroupMeasurement:
    """Noisy answers, one for each set of groups that was asked; public once it exists."""

    answer: Array
    stddev: Array
    """σ of each answer's noise."""
    scale: Array
    """b of each answer's noise where it is Laplace, else 0."""
    events: tuple[events.Event, ...]
    """What was paid, side by side."""


class GroupCurator(Door):
    """Holds private groups; answers only with noise that was paid for.

    ``sizes`` is free where the unit keeps n fixed. Everything else takes one cost a set of groups.
    """

    def __init__(self, groups: Sequence[Group], grid: Grid, **settings: Any) -> None:
        super().__init__(**settings)
        self.grid = grid
        self._groups = tuple(groups)

    def public_sizes(self) -> Array:
        """How many people each group has; refused where one person can change that."""
        if not self.unit.total_is_public:
            raise SettingError("group sizes are private under add-or-remove; they are measured, at a cost.")
        # PRIVACY: neighbouring groups have the same n under replacement, so n is public (spec 9.2, N9).
        return np.array([group._values.size for group in self._groups], dtype=np.float64)

    def sizes(self, costs: Sequence[Cost]) -> GroupMeasurement:
        """How many people each group has, where that is private."""
        return self._noisy(
            "size", self._each(), costs, bound=1, coarsest=True, exact=lambda grid, values: values.size
        )

    def clipped(self, costs: Sequence[Cost]) -> GroupMeasurement:
        """How many values of each group the bounds clamp."""
        return self._noisy(
            "clamped values",
            self._each(),
            costs,
            bound=1,
            coarsest=True,
            exact=lambda grid, x: grid.outside(x),
        )

    def sums(self, members: Sequence[Members], costs: Sequence[Cost]) -> GroupMeasurement:
        """Σ(x − c) over each set of groups, c between the bounds."""
        # PRIVACY: |y| ≤ 2ᵇ⁻¹, so a person moves the sum by 2ᵇ under replacement, 2ᵇ⁻¹ otherwise (spec 1.5).
        return self._noisy(
            "sum", members, costs, bound=Fraction(1, 2), signed=True,
            exact=lambda grid, values: int(grid.centred(values).sum()),
        )  # fmt: skip

    def squares(self, costs: Sequence[Cost]) -> GroupMeasurement:
        """Σ((x − c)/(R/2))² of each group: terms between 0 and 1, so a person moves it by 1."""
        return self._noisy(
            "sum of squares", self._each(), costs, bound=1,
            exact=lambda grid, values: int(grid.squares(values).sum()),
        )  # fmt: skip

    def quantiles(self, quantile: Fraction, places: Sequence[int], costs: Sequence[Cost]) -> GroupMeasurement:
        """The q-quantile of each of these groups, by the exponential mechanism."""
        rank = rank_sensitivity(quantile, self.unit)
        parts = [
            events.Exponential.at(
                cost,
                what=f"quantile {float(quantile):g} of {self._name((place,))}",
                sensitivity=rank,
                candidates=2**self.grid.bits,
            )
            for place, cost in zip(places, costs, strict=True)
        ]

        def draw(exact: list[Whole]) -> NDArray[np.int64]:
            return np.array(
                [
                    exponential_quantile(self._noise, values, quantile, part, bits=self.grid.bits)
                    for values, part in zip(exact, parts, strict=True)
                ],
                dtype=np.int64,
            )

        drawn = self._pay_then(
            _side_by_side(parts, "quantiles"), lambda: [self._places(place) for place in places], draw
        )
        answer = np.asarray(self.grid.low + (drawn + 0.5) * self.grid.step)
        # The rank of what comes out is off by about Lap(2Δ/ε); see mixed_quantile.
        scale = np.array([float(2 * part.sensitivity / part.epsilon) for part in parts])
        return GroupMeasurement(answer, math.sqrt(2) * scale, scale, tuple(parts))

    def sampled_sum(self, keep: Sequence[int], threshold: Epsilon) -> GroupMeasurement:
        """Σ(x − c) over a random sample of all groups, for the Sample mechanism (personalised.py).

        ``keep`` says of each group in how many of 2⁵³ cases a person is kept, by a coin of their own.
        """
        self._require_one_record()
        grid = self.grid.finest(threshold, self.unit)
        width = self.unit.scalar(-(2 ** (grid.bits - 1)), 2 ** (grid.bits - 1))
        event = events.Laplace.at(threshold, what=f"sum of a sample of {len(keep)} groups", l1=width)

        def draw(exact: list[Whole]) -> NDArray[np.int64]:
            total = 0
            for values, chance in zip(exact, keep, strict=True):
                # PRIVACY: the coins come from the noise source and do not look at values.
                coins = self._noise.words(values.size) >> np.uint64(11)
                total += int(values[coins < np.uint64(chance)].sum())
            return laplace(self._noise, np.array([total], dtype=np.int64), event)

        drawn = self._pay_then(event, lambda: [grid.centred(group._values) for group in self._groups], draw)
        return GroupMeasurement(
            np.asarray(drawn * grid.step),
            np.array([event.stddev * grid.step]),
            np.array([float(event.scale) * grid.step]),
            (event,),
        )

    def personalised_quantile(
        self, quantile: Fraction, public: Sequence[Array]
    ) -> tuple[float, events.Event]:
        """The q-quantile of all people together, each with their own ε (personal_quantile.py)."""
        self._require_one_record()
        epsilons = [group.cost(delta=None).value for group in self._groups]
        check_work(int(self.public_sizes().sum()) + sum(values.size for values in public), epsilons)
        # PRIVACY: the score −h moves by at most ε_i when person i changes; Pr ∝ exp(−h/2) (spec 8.5).
        event = events.Exponential.at(
            Epsilon(max(epsilons)), what=f"quantile {float(quantile):g} of {len(epsilons)} groups together",
            sensitivity=max(epsilons), candidates=2**self.grid.bits,
        )  # fmt: skip

        known = [self.grid.places(values) for values in public]

        def draw(private: list[Whole]) -> NDArray[np.int64]:
            place = personalised_quantile_place(
                self._noise, private, epsilons, known, quantile, bits=self.grid.bits
            )
            return np.array([place], dtype=np.int64)

        drawn = self._pay_then(
            event, lambda: [self._places(place) for place in range(len(self._groups))], draw
        )
        return self.grid.low + (float(drawn[0]) + 0.5) * self.grid.step, event

    def _require_one_record(self) -> None:
        if self.unit != Unit("replace"):
            raise SettingError(
                "personalised mechanisms are for replacing one record of a group of public size; "
                f"got a unit of {self.unit.describe()}."
            )

    def _each(self) -> tuple[Members, ...]:
        return tuple((place,) for place in range(len(self._groups)))

    def _name(self, members: Members) -> str:
        names = [self._groups[place].name or f"private group {place + 1}" for place in members]
        return f"'{names[0]}'" if len(names) == 1 else f"'{names[0]}' and {len(names) - 1} more"

    def _noisy(
        self,
        what: str,
        members: Sequence[Members],
        costs: Sequence[Cost],
        *,
        bound: int | Fraction,
        exact: Callable[[Grid, Array], int],
        signed: bool = False,
        coarsest: bool = False,
    ) -> GroupMeasurement:
        """A sum over people of whole numbers within ±bound·2ᵇ, or from 0 to bound·2ᵇ, with exact noise.

        ``exact`` gives a group's sum; ``coarsest`` says that it is a count, not in steps of a grid.
        """
        # A grid is asked for even where none is used: it refuses noise that cannot be drawn, before payment.
        finest = [self.grid.finest(cost, self.unit) for cost in costs]
        grids = [self.grid] * len(finest) if coarsest else finest
        parts: list[events.Gaussian | events.Laplace] = []
        for cost, grid, who in zip(costs, grids, members, strict=True):
            most = Fraction(bound) * (1 if coarsest else 2**grid.bits)
            moved = self.unit.scalar(-most if signed else 0, most)
            named = f"{what} of {self._name(who)}"
            if isinstance(cost, Rho):
                parts.append(events.Gaussian.at(cost, what=named, l2_squared=moved**2))
            else:
                parts.append(events.Laplace.at(cost, what=named, l1=moved))

        def look() -> Whole:
            sums = [
                sum(exact(grid, self._groups[place]._values) for place in who)
                for grid, who in zip(grids, members, strict=True)
            ]
            return np.array(sums, dtype=np.int64)

        drawn = self._pay_then(
            _side_by_side(parts, what), look, lambda exact_sums: self._noised(exact_sums, parts)
        )
        step = np.array([1.0 if coarsest else _unit_step(grid, signed=signed) for grid in grids])
        scale = [float(part.scale) if isinstance(part, events.Laplace) else 0.0 for part in parts]
        return GroupMeasurement(
            drawn * step,
            np.array([part.stddev for part in parts]) * step,
            np.array(scale) * step,
            tuple(parts),
        )

    def _noised(self, exact: Whole, parts: Sequence[events.Gaussian | events.Laplace]) -> NDArray[np.int64]:
        """Add to each exact sum the noise of its event; events of one scale are drawn together."""
        alike: dict[Fraction, list[int]] = {}
        for place, part in enumerate(parts):
            key = part.scale if isinstance(part, events.Laplace) else part.variance
            alike.setdefault(key, []).append(place)
        noisy = np.empty_like(exact)
        for places in alike.values():
            part = parts[places[0]]
            if isinstance(part, events.Laplace):
                noisy[places] = laplace(self._noise, exact[places], part)
            else:
                noisy[places] = gaussian(self._noise, exact[places], part)
        return noisy

    # PRIVACY: returns exact private values; called only inside a look, after payment.
    def _places(self, place: int) -> Whole:
        return self.grid.places(self._groups[place]._values)


class CellCurator(Door):
    """Holds one private table of values and cells, where the cell is as private as the value.

    A replaced record may leave one cell and enter another, so cells are measured as one vector.
    """

    def __init__(self, values: Array, codes: Whole, cells: int, grid: Grid, **settings: Any) -> None:
        super().__init__(**settings)
        self.grid = grid
        self.cells = cells
        self._values, self._codes = values, codes

    def sizes(self, cost: Cost) -> GroupMeasurement:
        """How many records each cell has."""
        return self._noisy(
            "sizes", cost, l1=Fraction(self.unit.l1), l2_squared=Fraction(self.unit.l2_squared), step=1.0,
            exact=lambda: np.bincount(self._codes, minlength=self.cells + 1)[: self.cells],
        )  # fmt: skip

    def sums(self, cost: Cost) -> GroupMeasurement:
        """Σ(x − c) over each cell."""
        grid = self.grid.finest(cost, self.unit)
        half = 2 ** (grid.bits - 1)
        # PRIVACY: a record that moves from one cell to another changes two sums by at most half the width
        # each; one that stays changes one by the width. So Δ₁ is the width either way, and Δ₂ ≤ Δ₁.
        moved = self.unit.scalar(-half, half)

        def exact() -> Whole:
            sums = np.zeros(self.cells + 1, dtype=np.int64)
            np.add.at(sums, self._codes, grid.centred(self._values))
            return sums[: self.cells]

        return self._noisy("sums", cost, l1=moved, l2_squared=moved**2, step=grid.step, exact=exact)

    def squares(self, cost: Cost) -> GroupMeasurement:
        """Σ((x − c)/(R/2))² over all cells together."""
        grid = self.grid.finest(cost, self.unit)
        moved = self.unit.scalar(0, 2**grid.bits)
        return self._noisy(
            "sum of squares", cost, l1=moved, l2_squared=moved**2, step=2.0**-grid.bits,
            exact=lambda: np.array([grid.squares(self._values[self._codes < self.cells]).sum()]),
        )  # fmt: skip

    def _noisy(
        self,
        what: str,
        cost: Cost,
        *,
        l1: Fraction,
        l2_squared: Fraction,
        step: float,
        exact: Callable[[], Whole],
    ) -> GroupMeasurement:
        named = f"{what} over {self.cells} cells"
        event: events.Gaussian | events.Laplace
        if isinstance(cost, Rho):
            event = events.Gaussian.at(cost, what=named, l2_squared=l2_squared)
        else:
            event = events.Laplace.at(cost, what=named, l1=l1)

        def draw(values: Whole) -> NDArray[np.int64]:
            if isinstance(event, events.Gaussian):
                return gaussian(self._noise, values, event)
            return laplace(self._noise, values, event)

        noisy = self._pay_then(event, exact, draw)
        scale = float(event.scale) * step if isinstance(event, events.Laplace) else 0.0
        return GroupMeasurement(
            np.asarray(noisy * step),
            np.full(noisy.size, event.stddev * step),
            np.full(noisy.size, scale),
            (event,),
        )


def _unit_step(grid: Grid, *, signed: bool) -> float:
    """What one step of the whole numbers means: γ for values, 2⁻ᵇ for squares in units of (R/2)²."""
    return grid.step if signed else 2.0**-grid.bits


def rank_sensitivity(quantile: Fraction, unit: Unit) -> Fraction:
    """How far |#{x ≤ o} − qn| can move: 1 under replacement, max(q, 1 − q) otherwise (spec 1.5)."""
    one = Fraction(1) if unit.total_is_public else max(quantile, 1 - quantile)
    return unit.records * one


def rank_scale(cost: Cost, quantile: Fraction, unit: Unit) -> float:
    """The scale b of the rank noise of an exponential-mechanism quantile, 2Δ/ε, before it is paid for."""
    moved = rank_sensitivity(quantile, unit)
    event = events.Exponential.at(cost, what="a quantile", sensitivity=moved, candidates=1)
    return float(2 * event.sensitivity / event.epsilon)


def _side_by_side(parts: Sequence[events.Event], what: str) -> events.Event:
    return parts[0] if len(parts) == 1 else events.Parallel.of(parts, what=f"{what} of {len(parts)} groups")


@contextmanager
def open_groups(
    groups: Sequence[Group],
    grid: Grid,
    *,
    unit: Unit | str | None,
    delta: float | None,
    ledger: Ledger | str | Path | None,
    noise: NoiseSource | None,
    label: str,
    check_unit: Callable[[Unit], None] = lambda _: None,
) -> Iterator[GroupCurator]:
    """A curator over private groups, whose allotment is that of the group with the most to spend.

    ``check_unit`` refuses what does not go with the ledger's unit, before a run begins.
    """
    most = max(groups, key=lambda group: group.epsilon or 0.0)
    assert most.epsilon is not None

    def check(who: Unit, _: Cost) -> None:
        if not who.total_is_public:
            if any(group.declared_size is not None for group in groups):
                raise SettingError("a group's size cannot be declared under add-or-remove: it is private.")
        elif any(group._values.size == 0 for group in groups):
            # PRIVACY: sizes are public here. Where they are not, an empty group is a group like any other.
            raise DataError("a group is empty; leave it out, or give it at least one value.")
        check_unit(who)

    with open_run(most.epsilon, unit=unit, delta=delta, ledger=ledger, label=label, check=check) as run:
        yield GroupCurator(groups, grid, noise=noise, **run)


@contextmanager
def open_run(
    epsilon: float,
    *,
    unit: Unit | str | None,
    delta: float | None,
    ledger: Ledger | str | Path | None,
    label: str,
    check: Callable[[Unit, Cost], None],
) -> Iterator[dict[str, Any]]:
    """What a curator needs of its ledger: allotment, unit, ledger and run.

    The unit is the ledger's, where there is one; ``check`` refuses what does not go with it, or with the
    allotment, before a run begins. What is not spent goes back when the run ends.
    """
    budget = Budget(epsilon=epsilon, delta=0.0 if delta is None else delta)
    allotment: Cost = budget.pure() if delta is None else budget.rho()
    if ledger is None:
        book: Ledger = MemoryLedger(Promise(budget, agreed_unit(asked=unit), "these groups"))
    else:
        from sidelight.privacy.sql_ledger import open_ledger

        book = open_ledger(ledger)
        agreed_unit(asked=unit, promise=book.promise)
    check(book.promise.unit, allotment)
    run = book.begin(allotment, label=label)
    try:
        yield {"allotment": allotment, "unit": book.promise.unit, "ledger": book, "run": run}
    finally:
        book.close(run)
