"""Values counted in groups: a coarser domain over the same attributes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sidelight.data.domain import Attrs, Combination, Domain

Groups = tuple[int, ...]
"""The group of each code of an attribute: 0, 1 and so on, none left out."""


@dataclass(frozen=True)
class Grouping:
    """Which values of a domain's attributes are counted together.

    Values that an impossible combination tells apart must be in different groups: then what is impossible is
    the same in both domains.

    >>> grouping = Grouping(Domain.of({"age": 4, "sex": 2}), {"age": (0, 0, 1, 1)})
    >>> grouping.domain.shape, grouping.of("sex")
    ((2, 2), (0, 1))
    >>> grouping.summed(("age",), np.array([1, 2, 3, 4]))
    array([3, 7])
    """

    whole: Domain
    """The domain of all values."""
    groups: Mapping[str, Groups]
    """The groups of each attribute whose values are grouped; any other has a group for each value."""

    @cached_property
    def domain(self) -> Domain:
        """The domain of the groups."""
        return Domain(
            self.whole.attrs,
            tuple(max(self.of(attr)) + 1 for attr in self.whole.attrs),
            tuple(
                Combination(one.attrs, tuple(map(self._among, one.attrs, one.values)))
                for one in self.whole.impossible
            ),
        )

    def of(self, attr: str) -> Groups:
        """The group of each code of an attribute."""
        return self.groups.get(attr) or tuple(range(self.whole.sizes[attr]))

    def touches(self, attrs: Attrs) -> bool:
        """Whether values of one of these attributes are grouped."""
        return not self.groups.keys().isdisjoint(attrs)

    def summed(self, attrs: Attrs, counts: NDArray[Any]) -> NDArray[Any]:
        """Counts of all values of these attributes as counts of their groups."""
        return sum_by_groups(counts, [self.of(attr) for attr in attrs]) if self.touches(attrs) else counts

    def spread(self, attrs: Attrs, counts: NDArray[Any]) -> NDArray[Any]:
        """Counts of groups, each repeated for every value of its group."""
        return counts[np.ix_(*(self.of(attr) for attr in attrs))] if self.touches(attrs) else counts

    def _among(self, attr: str, codes: tuple[object, ...]) -> Groups:
        groups = self.of(attr)
        return tuple(dict.fromkeys(groups[int(str(code))] for code in codes))


def sum_by_groups(counts: NDArray[Any], groups: Sequence[Groups]) -> NDArray[Any]:
    """Counts summed along each axis by the groups of its codes.

    >>> sum_by_groups(np.array([5, 2, 3]), [(0, 1, 1)])
    array([5, 5])
    """
    for axis, of_code in enumerate(groups):
        order = np.argsort(of_code, kind="stable")
        starts = np.searchsorted(np.asarray(of_code)[order], np.arange(max(of_code) + 1))
        counts = np.add.reduceat(np.take(counts, order, axis=axis), starts, axis=axis)
    return counts


def apart(domain: Domain, attr: str) -> list[frozenset[int]]:
    """For each code of an attribute, which impossible combinations name it: groups may not mix these."""
    named: list[set[int]] = [set() for _ in range(domain.sizes[attr])]
    for number, combination in enumerate(domain.impossible):
        for name, codes in zip(combination.attrs, combination.values, strict=True):
            if name == attr:
                for code in codes:
                    named[int(str(code))].add(number)
    return [frozenset(one) for one in named]
