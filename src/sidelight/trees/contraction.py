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
"""What one pair costs beside its work, in cells of a table that is read or written once."""
_PRODUCT = 0.25
"""What one multiplication within a matrix product costs, in the same unit."""


@dataclass(frozen=True)
class _Pair:
    """Two tables, by number, become one: turned, multiplied, and summed over what both have to lose."""

    left: int
    right: int
    before: tuple[Projection | None, Projection | None]
    """Sums over what one of them alone has to lose."""
    turns: tuple[tuple[int, ...] | None, tuple[int, ...] | None]
    """Their axes in the order of the product; None where they are."""
    shapes: tuple[tuple[int, int, int], tuple[int, int, int]]
    shape: tuple[int, ...]


class Contraction:
    """Planned once for tables on these attributes; the answer's axes are in the order of ``keep``."""

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
        self._turn = _turn(rest, [attr for attr in keep if attr in rest])
        self.attrs = tuple(attr for attr in keep if attr in rest)
        """What the tables together know of ``keep``."""

    def __call__(self, tables: Sequence[Any]) -> Any:
        left = dict(enumerate(tables))
        for number, pair in enumerate(self._pairs, start=len(tables)):
            a = self._side(left.pop(pair.left), pair.before[0], pair.turns[0], pair.shapes[0])
            b = self._side(left.pop(pair.right), pair.before[1], pair.turns[1], pair.shapes[1])
            if a.shape[2] == 1:
                product = a * b
            elif a.shape[1] == 1 and b.shape[2] == 1:
                product = self._library.sum(a[:, 0] * b[:, :, 0], 1)
            else:
                product = a @ b
            left[number] = product.reshape(pair.shape)
        return self._side(left[self._last], self._rest, self._turn, None)

    def _side(
        self,
        table: Any,
        before: Projection | None,
        turn: tuple[int, ...] | None,
        shape: tuple[int, ...] | None,
    ) -> Any:
        table = table if before is None else before.sum(table)
        table = table if turn is None else self._library.turn(table, turn)
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
        turns = (
            _turn(one, [*batch, *own, *summed]),
            _turn(other, [*batch, *summed, *others_own]),
        )
        sizes = [self._size(group) for group in (batch, own, summed, others_own)]
        shapes = (sizes[0], sizes[1], sizes[2]), (sizes[0], sizes[2], sizes[3])
        shape = tuple(self._sizes[attr] for attr in attrs)
        return _Pair(left, right, before, turns, shapes, shape), attrs


def _turn(have: Sequence[str], wanted: Sequence[str]) -> tuple[int, ...] | None:
    """How axes are turned from one order into another; None where nothing is to be done."""
    turn = tuple(have.index(attr) for attr in wanted)
    return None if turn == tuple(range(len(turn))) else turn
