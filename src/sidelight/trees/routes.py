"""Where the attributes of a marginal are brought together in a junction tree, and in which order.

The attributes asked for are brought together at one clique, the centre. Every branch of the tree that holds
some of them sends one message there: their distribution, given the separator between the branch and the
clique it arrives at. A route lists these messages in the order that multiplies them in with the least work.
The centre lies in the middle: messages about one attribute serve many questions, and those about several
are large.

Sets of attributes are whole numbers here: attribute i of the domain is bit i.
"""

import math
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import permutations
from typing import Any, NamedTuple

from sidelight.data.domain import Attrs
from sidelight.trees.junction_tree import JunctionTree
from sidelight.trees.nesting import inner_order

_PRODUCT = 0.25
"""Cost of one multiplication within a matrix product, in cells that are read or written."""
_WORTH = 1 << 17
"""A route of a higher price than this tries all orders of its messages, not only the greedy one."""
_FEW = 4
"""Most messages of which all orders are tried."""


class Branch(NamedTuple):
    """One message: from a clique far from the centre to its neighbour nearer to it."""

    far: int
    near: int
    about: int


class Route(NamedTuple):
    """How one clique's marginal and the messages to it become one table."""

    cost: float
    shared: int
    """The attributes of the clique's own marginal that it starts from."""
    steps: tuple[tuple[Branch, int], ...]
    """The messages in order, each with the attributes that are kept after it."""


class Routes:
    """The routes of one tree, made when they are asked for."""

    def __init__(self, tree: JunctionTree) -> None:
        self._sizes = tree.domain.shape
        self._bit = {attr: 1 << place for place, attr in enumerate(tree.domain.attrs)}
        self.cliques = [self.mask(clique) for clique in tree.cliques]
        """The attributes of each clique."""
        place = {attr: number for number, attr in enumerate(tree.domain.attrs)}
        self.axes = [tuple(place[a] for a in inner_order(tree.domain, clique)) for clique in tree.cliques]
        """The same by their place, in the order of inference."""
        self._neighbours: list[list[int]] = [list(children) for children in tree.children]
        for child, parent in enumerate(tree.parents):
            if parent >= 0:
                self._neighbours[child].append(parent)
        for near in self._neighbours:
            near.sort()
        self._cells: dict[int, int] = {}
        self._holding: dict[int, list[int]] = {}
        for number, axes in enumerate(self.axes):
            for axis in axes:
                self._holding.setdefault(axis, []).append(number)
        self._sides: dict[tuple[int, int], int] = {}
        self._ways: dict[int, dict[int, list[int]]] = {}
        self._shortcuts: dict[Branch, tuple[Branch, ...]] = {}
        self._centres: dict[int, int] = {}
        self._routes: dict[tuple[int, int, int], Route] = {}
        self._places: dict[Attrs, tuple[Any, ...]] = {}

    @staticmethod
    @lru_cache(maxsize=8)
    def of(tree: JunctionTree) -> "Routes":
        """The routes of this tree; models with the same tree share them."""
        return Routes(tree)

    def mask(self, attrs: Iterable[str]) -> int:
        """These attributes as one number."""
        return sum(self._bit[attr] for attr in attrs)

    def size(self, mask: int) -> int:
        """Cells of the table on these attributes."""
        if mask not in self._cells:
            self._cells[mask] = math.prod(self._sizes[axis] for axis in axes_of(mask))
        return self._cells[mask]

    def separator(self, branch: Branch) -> int:
        """The attributes that the two cliques of a message share."""
        return self.cliques[branch.far] & self.cliques[branch.near]

    def centre(self, wanted: int) -> int:
        """The smallest clique with all these attributes, or else the one where they meet most cheaply."""
        if wanted not in self._centres:
            self._centres[wanted] = self._middle(wanted)
        return self._centres[wanted]

    def _middle(self, wanted: int) -> int:
        first = self._holding[axes_of(wanted)[0]] if wanted else range(len(self.cliques))
        holding = [place for place in first if wanted & self.cliques[place] == wanted]
        if holding:
            return min(holding, key=lambda place: self.size(self.cliques[place]))
        return min(self._between(wanted), key=lambda place: self._crowd(place, wanted))

    def _between(self, wanted: int) -> list[int]:
        """The cliques that have not all wanted attributes beyond one neighbour, which would be better.

        They are one part of the tree, with every clique in it that holds one of the attributes: beyond a
        clique that has all of them on its other side there is none.
        """
        asked = axes_of(wanted)
        first = min(self._holding[axis][0] for axis in asked)
        found, waiting = {first}, [first]
        while waiting:
            ways = self._towards(waiting.pop())
            for far in {far for axis in asked for far in ways[axis]} - found:
                found.add(far)
                waiting.append(far)
        return sorted(found)

    def _towards(self, clique: int) -> dict[int, list[int]]:
        """For each attribute, the neighbours that hold it or lie on the way to it."""
        if clique not in self._ways:
            ways: dict[int, list[int]] = {axis: [] for axis in self._holding}
            for far in self._neighbours[clique]:
                for axis in axes_of(self._side(clique, far) | (self.cliques[far] & self.cliques[clique])):
                    ways[axis].append(far)
            self._ways[clique] = ways
        return self._ways[clique]

    def place(self, attrs: Attrs) -> tuple[Any, ...]:
        """A sorting key: marginals with neighbouring keys share the most work."""
        if attrs not in self._places:
            wanted = self.mask(attrs)
            centre = self.centre(wanted)
            # Marginals that need the same large message are neighbours: it is made once.
            messages = sorted(
                (-self.size(self.separator(branch) | branch.about), branch)
                for branch, _ in self.route(centre, wanted).steps
            )
            self._places[attrs] = centre, messages, -len(attrs), attrs
        return self._places[attrs]

    def route(self, clique: int, wanted: int, *, without: int = -1) -> Route:
        """The route that brings these attributes to this clique; no message comes from ``without``."""
        key = clique, wanted, without
        if key not in self._routes:
            self._routes[key] = self._cheapest(clique, wanted, self._branches(clique, wanted, without))
        return self._routes[key]

    def _crowd(self, clique: int, wanted: int) -> tuple[int, int]:
        """The most attributes in one message, and the cells of the table that the messages meet."""
        branches = self._branches(clique, wanted, -1)
        return max(b.about.bit_count() for b in branches), self.size(self._shared(clique, wanted, branches))

    def _shared(self, clique: int, wanted: int, branches: Sequence[Branch]) -> int:
        """The attributes of a clique that are wanted, or that a message to it is conditioned on."""
        shared = wanted & self.cliques[clique]
        for branch in branches:
            shared |= self.separator(branch)
        return shared

    def _side(self, near: int, far: int) -> int:
        """The attributes found beyond the edge from ``near`` to ``far``, those of ``near`` left out."""
        if (near, far) not in self._sides:
            beyond = self.cliques[far]
            for other in self._neighbours[far]:
                if other != near:
                    beyond |= self._side(far, other)
            self._sides[near, far] = beyond & ~self.cliques[near]
        return self._sides[near, far]

    def _branches(self, clique: int, wanted: int, without: int) -> list[Branch]:
        """The messages that this clique needs."""
        about: dict[int, int] = {}
        ways = self._towards(clique)
        for axis in axes_of(wanted & ~self.cliques[clique]):
            for far in ways[axis]:
                about[far] = about.get(far, 0) | 1 << axis
        found: list[Branch] = []
        for far in sorted(about):
            if far != without:
                found += self._shortcut(Branch(far, clique, about[far]))
        return found

    def _shortcut(self, branch: Branch) -> tuple[Branch, ...]:
        """Where a clique would only pass messages on, take them from the cliques behind it.

        Their separators lie within this branch's own, so their messages are no larger.
        """
        if branch not in self._shortcuts:
            found: tuple[Branch, ...] = (branch,)
            if not branch.about & self.cliques[branch.far]:
                beyond = self._branches(branch.far, branch.about, branch.near)
                if not any(self.separator(other) & ~self.separator(branch) for other in beyond):
                    found = tuple(beyond)
            self._shortcuts[branch] = found
        return self._shortcuts[branch]

    def _cheapest(self, clique: int, wanted: int, branches: Sequence[Branch]) -> Route:
        shared = self._shared(clique, wanted, branches)
        best = self._in_order(shared, wanted, self._greedy(shared, wanted, branches))
        if best.cost > _WORTH and 1 < len(branches) <= _FEW:
            best = min(
                (self._in_order(shared, wanted, order) for order in permutations(branches)),
                key=lambda route: route.cost,
            )
        return best

    def _greedy(self, shared: int, wanted: int, branches: Sequence[Branch]) -> list[Branch]:
        """The cheapest step first."""
        waiting, order, table = list(branches), [], shared
        while waiting:
            needed = [self._needed(wanted, waiting, without=branch) for branch in waiting]
            prices = [self._price(table, b, keep) for b, keep in zip(waiting, needed, strict=True)]
            best = prices.index(min(prices))
            table = (table | waiting[best].about) & needed[best]
            order.append(waiting.pop(best))
        return order

    def _in_order(self, shared: int, wanted: int, order: Sequence[Branch]) -> Route:
        cost, table = float(self.size(shared)), shared
        steps = []
        for number, branch in enumerate(order):
            keep = self._needed(wanted, order[number:], without=branch)
            cost += self._price(table, branch, keep)
            table = (table | branch.about) & keep
            steps.append((branch, keep))
        return Route(cost, shared, tuple(steps))

    def _needed(self, wanted: int, waiting: Sequence[Branch], *, without: Branch) -> int:
        """The wanted attributes, and those that later messages are conditioned on."""
        for branch in waiting:
            if branch is not without:
                wanted |= self.separator(branch)
        return wanted

    def _price(self, table: int, branch: Branch, keep: int) -> float:
        """About how many cells are read or written by multiplying in a message."""
        message = self.separator(branch) | branch.about
        work = self.size((table & keep) | message)
        after = self.size((table | branch.about) & keep)
        return _PRODUCT * work + self.size(table) + self.size(message) + after


def axes_of(mask: int) -> list[int]:
    """The attributes in a set, by their place in the domain."""
    found = []
    while mask:
        lowest = mask & -mask
        found.append(lowest.bit_length() - 1)
        mask ^= lowest
    return found
