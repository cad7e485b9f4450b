"""The sum of a product of small tables, without the large table that their product would be.

    Σ_{x ∉ keep} Π_i T_i(x_i)

Tables are brought together two at a time, the cheapest pair first, and what no other table needs is
summed at once: each pair is one batch of matrix products. For the tables of one clique this takes as many
multiplications as the clique has cells, and no memory of that size.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from sidelight.data.domain import Attrs
from sidelight.trees.arrays import Arrays
from sidelight.trees.summing import Projection

CALL = 15000
"""Overhead of one pair, in the time of reading or writing one cell of a table."""
_PRODUCT = 0.25
"""Cost of one multiplication within a matrix product, in the same unit."""


@dataclass(frozen=True)
class _Pair:
    """Two tables, by number, become one: transposed, multiplied, and summed over shared axes not needed."""

    left: int
    right: int
    before: tuple[Projection | None, Projection | None]
    """For each table: the sum over axes that it alone has and nobody needs."""
    orders: tuple[tuple[int, ...] | None, tuple[int, ...] | None]
    """How their axes are transposed for the product; None where they need not be."""
    shapes: tuple[tuple[int, int, int], tuple[int, int, int]]
    shape: tuple[int, ...]


class Contraction:
    """The order of pairs, worked out once for tables on these attributes; a call computes the sum.

    The answer's axes are in the order of ``keep``.
    """

    def __init__(
        self, tables: Sequence[Attrs], keep: Attrs, sizes: Mapping[str, int], library: Arrays
    ) -> None:
        self._library = library
        self._sizes = sizes
        self._pairs: list[_Pair] = []
        self.cost = 0.0
        """About how many cells are read or written."""
        kept = frozenset(keep)
        left = dict(enumerate(tables))
        while len(left) > 1:
            first, second = min(combinations(left, 2), key=lambda pair: self._price(pair, left, kept))
            others = (left[i] for i in left if i not in (first, second))
            needed = kept.union(*others)
            self.cost += self._price((first, second), left, kept)[0]
            pair, attrs = self._pair(first, second, left.pop(first), left.pop(second), needed)
            self._pairs.append(pair)
            left[len(tables) + len(self._pairs) - 1] = attrs
        ((self._last, attrs),) = left.items()
        self._rest = self._onto(attrs, kept)
        rest = [attr for attr in attrs if attr in kept]
        self._order = _order(rest, [attr for attr in keep if attr in rest])
        self.attrs = tuple(attr for attr in keep if attr in rest)
        """The attributes of ``keep`` that some table has."""

    def __call__(self, tables: Sequence[Any]) -> Any:
        left = dict(enumerate(tables))
        for number, pair in enumerate(self._pairs, start=len(tables)):
            a = self._side(left.pop(pair.left), pair.before[0], pair.orders[0], pair.shapes[0])
            b = self._side(left.pop(pair.right), pair.before[1], pair.orders[1], pair.shapes[1])
            if a.shape[2] == 1:
                product = a * b
            elif a.shape[1] == 1 and b.shape[2] == 1:
                product = self._library.sum(a[:, 0] * b[:, :, 0], 1)
            else:
                product = a @ b
            left[number] = product.reshape(pair.shape)
        return self._side(left[self._last], self._rest, self._order, None)

    def _side(
        self,
        table: Any,
        before: Projection | None,
        order: tuple[int, ...] | None,
        shape: tuple[int, ...] | None,
    ) -> Any:
        table = table if before is None else before.sum(table)
        table = table if order is None else self._library.transpose(table, order)
        return table if shape is None else table.reshape(shape)

    def _size(self, attrs: Iterable[str]) -> int:
        return math.prod(self._sizes[attr] for attr in attrs)

    def _price(
        self, pair: tuple[int, int], left: Mapping[int, Attrs], kept: frozenset[str]
    ) -> tuple[float, int, int]:
        first, second = (frozenset(left[i]) for i in pair)
        needed = kept.union(*(left[i] for i in left if i not in pair))
        alone = (first ^ second) - needed
        work = _PRODUCT * self._size((first | second) - alone)
        tables = self._size(first) + self._size(second) + self._size((first | second) & needed)
        return work + tables + CALL, *pair

    def _onto(self, attrs: Attrs, kept: frozenset[str]) -> Projection | None:
        if kept.issuperset(attrs):
            return None
        return Projection.onto(attrs, kept, self._sizes, self._library)

    def _pair(
        self, left: int, right: int, first: Attrs, second: Attrs, needed: frozenset[str]
    ) -> tuple[_Pair, Attrs]:
        before = self._onto(first, needed.union(second)), self._onto(second, needed.union(first))
        one = [attr for attr in first if attr in needed or attr in second]
        other = [attr for attr in second if attr in needed or attr in first]
        batch = [attr for attr in one if attr in other and attr in needed]
        summed = [attr for attr in one if attr in other and attr not in needed]
        own = [attr for attr in one if attr not in other]
        others_own = [attr for attr in other if attr not in one]
        attrs = (*batch, *own, *others_own)
        orders = (
            _order(one, [*batch, *own, *summed]),
            _order(other, [*batch, *summed, *others_own]),
        )
        sizes = [self._size(group) for group in (batch, own, summed, others_own)]
        shapes = (sizes[0], sizes[1], sizes[2]), (sizes[0], sizes[2], sizes[3])
        shape = tuple(self._sizes[attr] for attr in attrs)
        return _Pair(left, right, before, orders, shapes, shape), attrs


def _order(have: Sequence[str], wanted: Sequence[str]) -> tuple[int, ...] | None:
    """The transposition from one order of axes to another; None if they are the same."""
    order = tuple(have.index(attr) for attr in wanted)
    return None if order == tuple(range(len(order))) else order
