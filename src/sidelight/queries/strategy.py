"""Residuals measured together: their closure, and what they move together.

For residuals measured with variances s_S², what telling two neighbours apart costs is Σ_S ‖δ_S‖²/s_S²
(Canonne, Kamath, Steinke 2020, theorem 14, which has a variance for each coordinate).

One record there or not: every column of C_S has the same length (residual.py), so the sum is Σ_S ℓ_S/s_S²
with ℓ_S = Π n_i (n_i − 1), whatever the record is. One record replaced: with w_S = 2 ℓ_S/s_S², u_i = 1 where
the two records agree, −1/(n_i − 1) where they do not,

    Σ_S w_S (1 − Π_{i∈S} u_i)

Up to 20 attributes, all 2^d ways to disagree are tried. Beyond, the largest value is bounded by sharing
each w_S out among the maximal sets that hold S, and adding up the largest value of each of these: a maximal
set has few attributes. That is attained where one way to disagree is the worst for all of them. k records
of one person move answers k times as far.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sidelight.data.count_source import margin
from sidelight.data.domain import Attrs, Domain
from sidelight.errors import WorkloadError
from sidelight.privacy.unit import Unit
from sidelight.queries.query import Query
from sidelight.queries.residual import Residual

Array = NDArray[np.float64]

_MOST_ATTRIBUTES = 20
"""A megabyte for each bit above 17, and a fraction of a second."""


@dataclass(frozen=True, eq=False)
class Closure:
    """Attribute sets and all that lie within them, numbered, so that sums over all of them are array sums.

    >>> closure = Closure.of(Domain.of({"a": 2, "b": 3, "c": 1}), [("b", "a"), ("c",)])
    >>> closure.members
    ((), ('a',), ('b',), ('a', 'b'))
    >>> closure.cells.tolist(), closure.contrasts.tolist()
    ([1.0, 2.0, 3.0, 6.0], [1.0, 1.0, 2.0, 2.0])
    """

    domain: Domain
    members: tuple[Attrs, ...]
    """All subsets of the sets given, the empty one first; attributes of one value are left out."""
    within: tuple[NDArray[np.intp], ...]
    """For the maximal sets of each size k, one a line: which member each of their 2^k subsets is. Bit i of a
    subset's number says whether it holds the ith attribute."""

    @classmethod
    def of(cls, domain: Domain, sets: Iterable[Attrs]) -> "Closure":
        """The closure of these sets."""
        order = {attr: place for place, attr in enumerate(domain.attrs)}
        given = sorted(
            {domain.varying(attrs) for attrs in sets},
            key=lambda attrs: (-len(attrs), [order[attr] for attr in attrs]),
        )
        number: dict[Attrs, int] = {}
        maximal: dict[int, list[Attrs]] = {}
        for attrs in given:
            if attrs not in number:
                maximal.setdefault(len(attrs), []).append(attrs)
                for below in subsets(attrs):
                    number.setdefault(below, -1)
        members = sorted(number, key=lambda attrs: (len(attrs), [order[attr] for attr in attrs]))
        number = {attrs: place for place, attrs in enumerate(members)}
        within = [
            np.array([[number[below] for below in subsets(attrs)] for attrs in of_size], dtype=np.intp)
            for of_size in maximal.values()
        ]
        return cls(domain, tuple(members), tuple(within))

    @cached_property
    def number(self) -> dict[Attrs, int]:
        """The number of each member."""
        return {attrs: place for place, attrs in enumerate(self.members)}

    @property
    def maximal(self) -> list[Attrs]:
        """The members that lie within no other."""
        return [self.members[line[-1]] for lines in self.within for line in lines]

    @cached_property
    def cells(self) -> Array:
        """n_S: how many cells each member's marginal has."""
        sizes = self.domain.sizes
        return np.array([math.prod(sizes[attr] for attr in attrs) for attrs in self.members], dtype=float)

    @property
    def size(self) -> int:
        """How many cells all members have together."""
        return int(self.cells.sum())

    @cached_property
    def contrasts(self) -> Array:
        """μ_S = Π (n_i − 1): in how many dimensions each member's residual lies."""
        sizes = self.domain.sizes
        return np.array([math.prod(sizes[attr] - 1 for attr in attrs) for attrs in self.members], dtype=float)

    def joint_loss(self, precisions: Array, unit: Unit) -> Fraction:
        """At least max Σ_S ‖δ_S‖²/s_S² over neighbours; precisions are 1/s_S², 0 where nothing is measured.

        >>> closure = Closure.of(Domain.of({"a": 2, "b": 2}), [("a", "b")])
        >>> precisions = np.array([0.0, 1.0, 1.0, 1.0])
        >>> [round(float(closure.joint_loss(precisions, Unit(u))), 6) for u in ("add-or-remove", "replace")]
        [8.0, 24.0]
        """
        lengths = precisions * self.cells * self.contrasts
        losses = []
        if "add-or-remove" in unit.relations:
            losses.append(math.fsum(lengths))
        if "replace" in unit.relations:
            lengths[0] = 0.0  # as many records leave as enter
            losses.append(self._worst_replacement(2.0 * lengths))
        # PRIVACY: each term was rounded a few dozen times, by 2⁻⁵³ of itself or of the weights that it is at
        # least as large as: the mean of Σ w_S (1 − Π u_i) over all other records is Σ w_S.
        return unit.records**2 * Fraction(max(losses)) * (1 + Fraction(1, 2**40))

    def _worst_replacement(self, weights: Array) -> float:
        """At least the largest Σ_S w_S (1 − Π u_i): exact for few attributes, else set by set."""
        attrs = sorted({attr for member in self.members for attr in member})
        if len(attrs) <= _MOST_ATTRIBUTES:
            bit = {attr: 1 << place for place, attr in enumerate(attrs)}
            whole = np.zeros((1, 1 << len(attrs)))
            for member, weight in zip(self.members, weights, strict=True):
                whole[0, sum(bit[attr] for attr in member)] = weight
            return float(_worst(whole, np.array([[self.domain.sizes[attr] for attr in attrs]]))[0])
        holders = np.bincount(np.concatenate([lines.reshape(-1) for lines in self.within]))
        shared = weights / holders
        worst: list[float] = []
        for lines in self.within:
            size = int(math.log2(lines.shape[1]))
            singles = [[self.members[line[1 << bit]][0] for bit in range(size)] for line in lines]
            sizes = np.array([[self.domain.sizes[attr] for attr in of_set] for of_set in singles])
            worst += _worst(shared[lines], sizes).tolist()
        return math.fsum(worst)


def _worst(weights: Array, sizes: NDArray[np.int64]) -> Array:
    """For each line, of weights by subset number, the largest Σ_S w_S (1 − Π u_i) over ways to disagree."""
    values = weights.copy()
    for bit in range(sizes.shape[1] if weights.shape[1] > 1 else 0):
        # Of two subsets, without an attribute and with it: their sum where it agrees, and where not.
        pairs = values.reshape(len(values), -1, 2, 1 << bit)
        without, with_it = pairs[:, :, 0].copy(), pairs[:, :, 1].copy()
        pairs[:, :, 0] = without + with_it
        pairs[:, :, 1] = without - with_it / (sizes[:, bit] - 1.0)[:, None, None]
    return np.asarray(weights.sum(axis=1) - values.min(axis=1))


@dataclass(frozen=True, eq=False)
class Strategy:
    """Queries to be measured together, each with noise of its own, at the price of what all of them move."""

    closure: Closure
    """The closure of the residuals among them, and of all that is counted."""
    queries: tuple[Query, ...]
    variances: tuple[Fraction, ...]
    """σ² of each query's numbers, up to a common factor."""

    def __post_init__(self) -> None:
        # PRIVACY: noise of these variances is added to whole numbers. A query that is counted in finer steps
        # moves by that many more of them, which no sum below would see.
        if any(query.resolution != 1 for query in self.queries):
            raise WorkloadError("queries that are measured together must have whole numbers as answers.")

    def loss(self, unit: Unit) -> Fraction:
        """At least max Σ ‖δ‖²/σ² over neighbours: of residuals together, of other queries one by one."""
        precisions = np.zeros(len(self.closure.members))
        rest = Fraction(0)
        for query, variance in zip(self.queries, self.variances, strict=True):
            if isinstance(query, Residual):
                precisions[self.closure.number[query.attrs]] += float(1 / variance)
            else:
                rest += query.l2_squared(unit) / variance
        return self.closure.joint_loss(precisions, unit) + rest

    def counted(self) -> dict[Attrs, list[int]]:
        """For each marginal to be counted, the places of the queries that are answered from it."""
        holder: dict[Attrs, Attrs] = {}
        for attrs in self.closure.maximal:
            for below in subsets(attrs):
                holder.setdefault(below, attrs)
        found: dict[Attrs, list[int]] = {}
        for place, query in enumerate(self.queries):
            found.setdefault(holder[query.attrs], []).append(place)
        return found

    def exact(self, place: int, held: Attrs, counts: NDArray[Any]) -> NDArray[Any]:
        """The answer of a query, from the counts of a marginal that holds its attributes."""
        query = self.queries[place]
        return query.apply(margin(counts, held, query.attrs))


def subsets(attrs: Attrs) -> list[Attrs]:
    """All subsets, the empty one first; bit i of a subset's number says whether it holds the ith attribute.

    >>> subsets(("a", "b"))
    [(), ('a',), ('b',), ('a', 'b')]
    """
    found: list[Attrs] = [()]
    for attr in attrs:
        found += [(*below, attr) for below in found]
    return found
