"""Queries taken one number at a time: the cells of marginals, and long lists of scalar queries.

Selection among 10⁵ ranges asks for 10⁵ answers a round. Scalar queries about the same attributes are
therefore asked together, as one ``Batch``: ranges and cells by differences of cumulated counts, other
queries by their weights.
"""

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sidelight.data.domain import Attrs, Domain
from sidelight.privacy.unit import Unit
from sidelight.queries.query import Array, Cell, Marginal, Query, Range

_MATRIX_CELLS = 2**24
"""Largest matrix of weights that a batch keeps (128 MiB); the queries of a larger batch are asked singly."""


@dataclass(frozen=True)
class Batch:
    """Scalar queries about the same attributes, answered together: one number each.

    >>> batch = Batch(("age",), (Range((("age", 0, 1),)), Range((("age", 1, 2),))))
    >>> batch.apply(np.array([1, 2, 4]))
    array([3, 6])
    """

    attrs: Attrs
    members: tuple[Query, ...]

    @property
    def resolution(self) -> Fraction:
        return min(member.resolution for member in self.members)

    def cells(self, domain: Domain) -> int:
        return len(self.members)

    @cached_property
    def _corners(self) -> tuple[NDArray[np.intp], NDArray[np.intp]] | None:
        """For each box and attribute, its first code and that after its last; None unless all are boxes."""
        boxes = [_box(member) for member in self.members]
        if any(box is None for box in boxes):
            return None
        ends = np.array(boxes, dtype=np.intp).reshape(len(boxes), len(self.attrs), 2)
        return ends[:, :, 0], ends[:, :, 1] + 1

    def apply(self, counts: NDArray[Any]) -> NDArray[Any]:
        if self._corners is None:
            return self._weigh(counts)
        low, high = self._corners
        upto = np.zeros([size + 1 for size in counts.shape], dtype=counts.dtype)
        upto[(slice(1, None),) * counts.ndim] = counts
        for axis in range(counts.ndim):
            np.cumsum(upto, axis=axis, out=upto)
        # A box is the signed sum of the cumulated counts at its 2^d corners.
        answers = np.zeros(len(self.members), dtype=counts.dtype)
        for corner in itertools.product((False, True), repeat=counts.ndim):
            index = tuple(low[:, i] if at_low else high[:, i] for i, at_low in enumerate(corner))
            answers += upto[index] * (-1) ** sum(corner)
        return answers

    def _weigh(self, counts: NDArray[Any]) -> NDArray[Any]:
        # PRIVACY: weights are multiples of 2⁻²⁰, so doubles add them exactly for less than 2³³ records.
        is_exact = counts.dtype.kind not in "iu" or counts.sum() < 2**33
        if len(self.members) * counts.size > _MATRIX_CELLS or not is_exact:
            return np.concatenate([member.apply(counts) for member in self.members])
        if "_matrix" not in self.__dict__:  # a cache beside the frozen fields; it depends on them alone
            rows = [member.transpose(np.ones(1), counts.shape).reshape(-1) for member in self.members]
            self.__dict__["_matrix"] = np.stack(rows)
        matrix: Array = self.__dict__["_matrix"]
        weighed: Array = matrix @ counts.reshape(-1)
        return weighed

    def transpose(self, answer: NDArray[Any], shape: tuple[int, ...]) -> Array:
        parts = [
            member.transpose(np.atleast_1d(a), shape) for member, a in zip(self.members, answer, strict=True)
        ]
        together: Array = np.sum(parts, axis=0, dtype=np.float64)
        return together

    def l1(self, unit: Unit) -> Fraction:
        # PRIVACY: every member may move at once, so measuring all of them costs the sum.
        return sum((member.l1(unit) for member in self.members), Fraction(0))

    def l2_squared(self, unit: Unit) -> Fraction:
        return sum((member.l2_squared(unit) for member in self.members), Fraction(0))

    def widest(self, unit: Unit) -> Fraction:
        """How far any single member's answer can move."""
        return max(self._widest[relation] for relation in unit.relations) * unit.records

    @cached_property
    def _widest(self) -> dict[str, Fraction]:
        # Sensitivities grow with the number of records a person has, so one record says it all.
        units = (Unit("replace"), Unit("add-or-remove"))
        return {unit.relation: max(member.l1(unit) for member in self.members) for unit in units}

    def check(self, domain: Domain) -> None:
        for member in self.members:
            member.check(domain)

    def describe(self) -> str:
        return f"{len(self.members)} queries on {' × '.join(self.attrs)}"

    def as_json(self) -> dict[str, Any]:
        return {"query": "batch", "members": [member.as_json() for member in self.members]}


def by_attributes(queries: Iterable[Query]) -> tuple[Query, ...]:
    """Marginals as they are; scalar queries about the same attributes as one batch."""
    marginals: list[Query] = []
    scalars: dict[Attrs, list[Query]] = {}
    for query in queries:
        if isinstance(query, Marginal):
            marginals.append(query)
        else:
            scalars.setdefault(query.attrs, []).append(query)
    return (*marginals, *(Batch(attrs, tuple(members)) for attrs, members in scalars.items()))


def part(query: Query, index: int, domain: Domain) -> Query:
    """The scalar query that is one number of a marginal or a batch.

    >>> part(Marginal(("a", "b")), 4, Domain.of({"a": 2, "b": 3})).describe()
    'a = #1, b = #1'
    """
    if isinstance(query, Batch):
        return query.members[index]
    cell = np.unravel_index(index, domain.project(query.attrs).shape)
    return Cell(query.attrs, tuple(int(value) for value in cell))


def numbers(queries: Sequence[Query], domain: Domain) -> int:
    """How many numbers the queries ask for."""
    return sum(query.cells(domain) for query in queries)


def _box(query: Query) -> list[tuple[int, int]] | None:
    if isinstance(query, Range):
        return [(low, high) for _, low, high in query.bounds]
    if isinstance(query, Cell):
        return [(value, value) for value in query.values]
    return None
