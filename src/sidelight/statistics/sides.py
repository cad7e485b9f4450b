"""The groups of one mixed estimate: the private side, each with its ε, and the public side."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

import numpy as np

from sidelight.privacy.budget import Cost
from sidelight.privacy.event import Event
from sidelight.privacy.unit import Unit
from sidelight.statistics.answer import GroupShare, MixedAnswer
from sidelight.statistics.card import AnswerCard
from sidelight.statistics.curator import GroupCurator, check_groups_of
from sidelight.statistics.grid import Array, Grid
from sidelight.statistics.group import Group, check_bounds, check_groups, named
from sidelight.statistics.mixing import Mixed
from sidelight.statistics.terms import GroupTerms


@dataclass(frozen=True, eq=False)
class Estimates:
    """The estimates of one side's groups, each by itself."""

    sizes: Array
    weights: Array
    """Among the groups of this side; they add up to 1."""
    values: Array
    """NaN for a group that was not asked."""
    standard_errors: Array
    events: Sequence[tuple[Event, ...]] = ()
    """The cost of each group; none for the public side."""


@dataclass(frozen=True, eq=False)
class Sides:
    """Groups, checked and sorted."""

    groups: tuple[Group, ...]
    names: tuple[str, ...]
    grid: Grid

    @classmethod
    def of(cls, groups: Sequence[Group], bounds: tuple[float, float], *, alone: bool) -> "Sides":
        """Refuses what cannot be mixed; a single group only if it is meant to stand ``alone``."""
        check_groups(groups, alone=alone)
        return cls(tuple(groups), named(groups), Grid(*check_bounds(bounds, groups)))

    @property
    def private(self) -> list[int]:
        """The places of the private groups."""
        return [place for place, group in enumerate(self.groups) if not group.is_public]

    @property
    def public(self) -> list[int]:
        """The places of the public groups."""
        return [place for place, group in enumerate(self.groups) if group.is_public]

    @property
    def epsilons(self) -> list[float]:
        """ε of each private group."""
        return [group.epsilon for group in self.groups if group.epsilon is not None]

    @property
    def shown(self) -> list[Array]:
        """The values of each public group, clamped to the bounds."""
        grid = self.grid
        return [np.clip(group.public_values, grid.low, grid.high) for group in self.groups if group.is_public]

    def named(self, sets: Sequence[Sequence[int]]) -> tuple[tuple[str, ...], ...]:
        """The names of sets of private groups, which are given by their places among these."""
        return tuple(tuple(self.names[self.private[place]] for place in who) for who in sets)

    @contextmanager
    def ask(
        self,
        terms: GroupTerms,
        *,
        label: str,
        way: str,
        check: Callable[[Unit, list[Cost]], None] | None = None,
    ) -> Iterator[tuple[GroupCurator, list[Cost]]]:
        """A curator of the private groups, and what each of them may spend.

        A run holds what the group with the most to spend may spend. ``check`` refuses, before it begins, what
        does not go with the ledger's unit.
        """
        own = [self.groups[place] for place in self.private]
        costs = [terms.cost(epsilon) for epsilon in self.epsilons]
        most = max(self.epsilons)
        unit, book = terms.agreed(), terms.book(terms.budget(most), name="these groups")
        terms.require(most, way=way)
        check_groups_of(own, unit)
        if check is not None:
            check(unit, costs)
        door = partial(GroupCurator, own, self.grid)
        with terms.run(door, book, terms.cost(most), label=label, way=way, unit=unit) as curator:
            yield curator, costs

    def answer(
        self, mixed: Mixed, private: Estimates | None, public: Estimates | None, card: AnswerCard
    ) -> MixedAnswer:
        """The estimate, with each group's share of it in the order of the groups."""
        shares: dict[int, GroupShare] = {}
        for places, side, weight in (
            (self.private, private, 1 - mixed.weight),
            (self.public, public, mixed.weight),
        ):
            if side is None:
                continue
            for index, place in enumerate(places):
                shares[place] = GroupShare(
                    self.names[place],
                    self.groups[place].epsilon,
                    float(side.sizes[index]),
                    float(weight * side.weights[index]),
                    float(side.values[index]),
                    float(side.standard_errors[index]),
                    side.events[index] if side.events else (),
                )
        in_order = tuple(shares[place] for place in range(len(self.groups)))
        return MixedAnswer(mixed.estimate, mixed.standard_error, mixed.interval, in_order, card)
