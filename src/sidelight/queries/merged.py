"""Marginals whose rare values are counted together."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sidelight.data.domain import Attrs, Domain
from sidelight.data.grouping import sum_by_groups
from sidelight.errors import WorkloadError
from sidelight.privacy.unit import Unit

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Merged:
    """All counts over some attributes, where some of their values are taken for one.

    >>> query = Merged(("job",), ((0, 1, 1),))
    >>> query.apply(np.array([5, 2, 3])), query.l2_squared(Unit("replace"))
    (array([5, 5]), Fraction(2, 1))
    """

    attrs: Attrs
    groups: tuple[tuple[int, ...], ...]
    """For each attribute, the group that each of its codes belongs to: 0, 1 and so on, none left out."""

    @property
    def shape(self) -> tuple[int, ...]:
        """How many groups each attribute has."""
        return tuple(max(groups) + 1 for groups in self.groups)

    @property
    def alone(self) -> NDArray[np.bool_]:
        """True at each cell of the whole marginal that is counted by itself."""
        alone = np.ones((), dtype=np.bool_)
        for groups in self.groups:
            alone = np.logical_and.outer(alone, np.bincount(groups)[list(groups)] == 1)
        return alone

    @property
    def resolution(self) -> Fraction:
        return Fraction(1)

    def cells(self, domain: Domain) -> int:
        return int(np.prod(self.shape))

    def apply(self, counts: NDArray[Any]) -> NDArray[Any]:
        return sum_by_groups(counts, self.groups).reshape(-1)

    def transpose(self, answer: NDArray[Any], shape: tuple[int, ...]) -> Array:
        merged = np.asarray(answer, dtype=np.float64).reshape(self.shape)
        return merged[np.ix_(*(list(groups) for groups in self.groups))].reshape(shape)

    def l1(self, unit: Unit) -> Fraction:
        # PRIVACY: each record stands in one group of each attribute, so in one cell, as in a marginal.
        return Fraction(unit.l1)

    def l2_squared(self, unit: Unit) -> Fraction:
        return Fraction(unit.l2_squared)

    def check(self, domain: Domain) -> None:
        domain.require(self.attrs)
        sizes = tuple(len(groups) for groups in self.groups)
        if len(set(self.attrs)) < len(self.attrs) or sizes != domain.project(self.attrs).shape:
            raise WorkloadError(
                f"the merged marginal {self.describe()} must give a group to every value of each attribute, "
                "once each."
            )
        if any(set(groups) != set(range(max(groups) + 1)) for groups in self.groups):
            raise WorkloadError(
                f"the groups of {self.describe()} must be numbered from 0 on, and none left out."
            )

    def describe(self) -> str:
        return " × ".join(self.attrs) + ", rare values merged"

    def as_json(self) -> dict[str, Any]:
        return {"query": "merged", "attrs": list(self.attrs), "groups": [list(g) for g in self.groups]}
