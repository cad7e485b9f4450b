"""How large a graphical model is, before any of it is allocated.

Attributes that were measured together are joined by an edge. Eliminating the attributes one
by one, each time joining the neighbours of the one that leaves, makes the graph chordal; its
maximal cliques are the tables that inference works on, and the sum of their cells is the size
of the model.

The order of elimination decides that size. Two greedy orders are tried and the smaller model
is kept: the attribute whose clique has the fewest cells (min-weight), and the attribute that
adds the fewest edges (min-fill). Many graphs are eliminated side by side, as one stack of
adjacency matrices, so that the price of hundreds of candidates costs about as much as that of
one. Weights are whole numbers, so a graph gives the same cliques alone and in a stack.

Koller, Friedman (2009), section 9.4.3.2, for both orders.
"""

import math
from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from sidelight.data.domain import Attrs, Domain

BYTES_PER_CELL = 8
"""Tables hold float64."""

_STACK = 1 << 22
"""Most entries of one stack of adjacency matrices (4 MB of booleans at a time)."""

_WORD = np.dtype("<u8")
"""Sixty-four attributes, one bit each."""
_ONES = np.unpackbits(np.arange(2**16, dtype="<u2").view(np.uint8)).reshape(-1, 16).sum(1, dtype=np.uint8)
"""How many of sixteen bits are set."""
_FILL = 2**40
"""The cost of an added edge by min-fill: more than any clique's weight, which decides between equals."""
_NEVER = np.iinfo(np.int64).max

Booleans = NDArray[np.bool_]
Words = NDArray[np.uint64]
Edges = tuple[tuple[int, int], ...]
"""Pairs of attributes, by their places."""
Rule = Literal["weight", "fill"]
_RULES: tuple[Rule, ...] = ("weight", "fill")


class SizeOracle:
    """The size of the model with one more marginal, for hundreds of candidates a round.

    >>> oracle = SizeOracle(Domain.of({"a": 2, "b": 2, "c": 2}), [("a", "b"), ("b", "c")])
    >>> oracle.cells, oracle.cells_with(("a", "c")), oracle.cells_with(("c", "b"))
    (8, 8, 8)
    """

    def __init__(self, domain: Domain, attribute_sets: Iterable[Iterable[str]] = ()) -> None:
        self.domain = domain
        self._graph = interaction_graph(domain, attribute_sets)
        members, self.cells = smallest_triangulation(self._graph, domain.shape)
        self.cliques = tuple(_named(domain, clique) for clique in members)
        self._near = [_mask(np.flatnonzero(line).tolist()) for line in self._graph]
        self._holding: dict[int, list[int]] = {place: [] for place in range(len(domain))}
        """The cliques that hold each attribute, by its place, as masks."""
        for clique in members:
            index = np.flatnonzero(clique).tolist()
            for place in index:
                self._holding[place].append(_mask(index))
        self._known: dict[Rule, dict[Edges, int]] = {rule: {(): self.cells} for rule in _RULES}
        """The size with edges that were priced before, by each order of elimination."""

    def contains(self, candidate: Iterable[str]) -> bool:
        """Whether the candidate lies inside a clique already, and so costs nothing."""
        index = self.domain.index(candidate)
        wanted = _mask(index)
        return not index or any(wanted & clique == wanted for clique in self._holding[index[0]])

    def cells_with(self, candidate: Iterable[str]) -> int:
        """Cells of the model once the candidate is measured too."""
        return self.cells_with_each([tuple(candidate)])[0]

    def cells_with_each(self, candidates: Sequence[Attrs]) -> list[int]:
        """Cells of the model with each candidate in turn; the others left out."""
        added = [self._edges(candidate) for candidate in candidates]
        sizes = [self._priced(added, rule) for rule in _RULES]
        return [min(both) for both in zip(*sizes, strict=True)]

    def fits_each(self, candidates: Sequence[Attrs], *, most_cells: float) -> list[bool]:
        """Whether the model has at most so many cells with each candidate in turn.

        The second order is tried only for those that the first makes larger.
        """
        added = [self._edges(candidate) for candidate in candidates]
        fitting, left = set[Edges](), list(dict.fromkeys(added))
        for rule in _RULES:
            sizes = self._priced(left, rule)
            fitting |= {edges for edges, size in zip(left, sizes, strict=True) if size <= most_cells}
            left = [edges for edges in left if edges not in fitting]
        return [edges in fitting for edges in added]

    def _priced(self, added: Sequence[Edges], rule: Rule) -> list[int]:
        """Cells of the model with some edges more, by one order of elimination."""
        # Candidates that add the same edges make the same model: priced once.
        known = self._known[rule]
        for edges in added:
            places = {place for edge in edges for place in edge}
            if edges not in known and not any(self._near[place] for place in places):
                # All of them stood alone: they become one clique, and nothing else changes.
                sizes = [self.domain.shape[place] for place in places]
                known[edges] = self.cells - sum(sizes) + math.prod(sizes)
        waiting = [edges for edges in dict.fromkeys(added) if edges not in known]
        at_once = max(1, _STACK // max(1, len(self.domain) ** 2))
        for start in range(0, len(waiting), at_once):
            some = waiting[start : start + at_once]
            graphs = np.repeat(self._graph[None], len(some), axis=0)
            for graph, edges in zip(graphs, some, strict=True):
                for one, other in edges:
                    graph[one, other] = graph[other, one] = True
            known |= zip(some, _cells_of_each(graphs, self.domain.shape, rule), strict=True)
        return [known[edges] for edges in added]

    def _edges(self, candidate: Attrs) -> Edges:
        """The edges that a candidate adds to the graph; none where a clique holds it already."""
        if self.contains(candidate):
            return ()
        index = sorted(self.domain.index(candidate))
        return tuple(pair for pair in combinations(index, 2) if not self._near[pair[0]] >> pair[1] & 1)


def _mask(index: Iterable[int]) -> int:
    """Attributes as one number: attribute i is bit i."""
    return sum(1 << place for place in index)


def interaction_graph(domain: Domain, attribute_sets: Iterable[Iterable[str]]) -> Booleans:
    """Which attributes occur together in some set: a symmetric matrix, false on the diagonal.

    The attributes of an impossible combination count as a set too: some clique must hold its zeros.
    """
    graph = np.zeros((len(domain), len(domain)), dtype=np.bool_)
    for attrs in (*attribute_sets, *(combination.attrs for combination in domain.impossible)):
        _join(graph, domain.index(attrs))
    return graph


def smallest_triangulation(graph: Booleans, shape: tuple[int, ...]) -> tuple[Booleans, int]:
    """The maximal cliques, one boolean line each, and their cells in all."""
    best: tuple[Booleans, int] | None = None
    for rule in _RULES:
        cliques, maximal = _eliminate(graph[None], shape, rule)
        members = _unpacked(cliques[0][maximal[0]], len(shape))
        cells = sum(_cells(clique, shape) for clique in members)
        if best is None or cells < best[1]:
            best = members, cells
    assert best is not None
    return best


def _cells_of_each(graphs: Booleans, shape: tuple[int, ...], rule: Rule) -> list[int]:
    cliques, maximal = _eliminate(graphs, shape, rule)
    if not shape:
        return [0] * len(graphs)
    sets, sizes = cliques[maximal], np.array(shape, dtype=np.int64)
    # Lines of one graph stand together, and each graph has one at least; so do the members of a line.
    starts = np.concatenate([[0], np.cumsum(maximal.sum(axis=1))[:-1]])
    line, attr = _members(sets)
    first = np.flatnonzero(np.diff(line, prepend=-1))
    products = np.multiply.reduceat(sizes[attr], first)
    # Products that an int64 may be too short for, or a sum of them, are whole numbers of any length.
    is_long = np.add.reduceat(np.log2(sizes)[attr], first) > 62 - len(shape).bit_length()
    products[is_long] = 0
    totals: list[int] = np.add.reduceat(products, starts).tolist()
    for place in np.flatnonzero(is_long).tolist():
        members = _unpacked(sets[place], len(shape))
        totals[int(np.searchsorted(starts, place, side="right")) - 1] += _cells(members, shape)
    return totals


def _eliminate(graphs: Booleans, shape: tuple[int, ...], rule: Rule) -> tuple[Words, Booleans]:
    """Eliminate every graph of the stack greedily: its cliques in order, and which are maximal.

    Sets of attributes are bits of words. A step changes the prices of few attributes: of those around the one
    that leaves, and by min-fill, where it adds edges, of those with two neighbours among these.
    """
    stack, attributes, _ = graphs.shape
    near = _packed(graphs)
    bits = _packed(np.eye(attributes, dtype=np.bool_))
    every = np.arange(stack)
    prices = _Prices(near, shape, rule)
    price = prices.of_all().reshape(stack, attributes)
    cliques = np.zeros((stack, attributes, near.shape[2]), dtype=_WORD)
    when = np.empty((stack, attributes), dtype=np.int64)
    for step in range(attributes):
        chosen = price.argmin(axis=1)
        adds_edges = price[every, chosen] >= _FILL
        around = near[every, chosen]
        cliques[:, step] = around | bits[chosen]
        when[every, chosen] = step
        price[every, chosen] = _NEVER
        graph, attr = _members(around)
        gone, before = chosen[graph], near[graph, attr]
        near[graph, attr] = (before | around[graph]) & ~(bits[attr] | bits[gone])
        if rule == "weight":
            line, new = _members(around[graph] & ~(before | bits[attr]))
            price[graph, attr] += prices.summed(line, new, len(graph)) - prices.own[gone]
            continue
        # Where it adds no edge, those around it lose it, with the edges that were missing from it to others.
        stays = ~adds_edges[graph]
        one, other = graph[stays], attr[stays]
        lacked = _counted(before[stays]) - _counted(around)[one]
        price[one, other] -= 2 * lacked * _FILL + prices.own[gone[stays]]
        graph, attr = graph[~stays], attr[~stays]
        if graph.size:
            around[~adds_edges] = 0
            reached = around.copy()
            np.bitwise_or.at(reached, graph, near[graph, attr])
            graph, attr = _members(reached)
            changes = _counted((near[graph, attr] | bits[attr]) & around[graph]) > 1
            graph, attr = graph[changes], attr[changes]
            price[graph, attr] = prices.of(graph, attr)
    return cliques, _are_maximal(cliques, when)


class _Prices:
    """The cost of eliminating each attribute by one rule: whole numbers, the same in any stack."""

    def __init__(self, near: Words, shape: tuple[int, ...], rule: Rule) -> None:
        self._near, self._rule = near, rule
        # Whole-number logarithms: sums do not depend on the order in which they are added.
        self.own = np.rint(np.log2(np.array(shape, dtype=np.float64)) * 2**20).astype(np.int64)
        """The weight of each attribute alone."""

    def of_all(self) -> NDArray[np.int64]:
        """The price of every attribute of every graph, in one line."""
        stack, attributes, _ = self._near.shape
        return self.of(np.repeat(np.arange(stack), attributes), np.tile(np.arange(attributes), stack))

    def of(self, graph: NDArray[np.int64], attr: NDArray[np.int64]) -> NDArray[np.int64]:
        """The price of some attributes, each in its graph."""
        around = self._near[graph, attr]
        line, other = _members(around)
        weight: NDArray[np.int64] = self.own[attr] + self.summed(line, other, len(graph))
        if self._rule == "weight":
            return weight
        shared = _counted(self._near[graph[line], other] & around[line])
        joined = np.bincount(line, shared, len(graph)).astype(np.int64)
        degree = np.bincount(line, minlength=len(graph))
        return np.asarray((degree * (degree - 1) - joined) * _FILL + weight)

    def summed(self, line: NDArray[np.int64], attr: NDArray[np.int64], lines: int) -> NDArray[np.int64]:
        """The weights of the attributes of each line together: whole numbers far below 2⁵³."""
        return np.bincount(line, self.own[attr], lines).astype(np.int64)


def _are_maximal(cliques: Words, when: NDArray[np.int64]) -> Booleans:
    """Which cliques lie inside no other.

    What is left of a clique when its first attribute has gone lies inside the clique of whichever of the rest
    goes next, and is that whole clique if both have as many: no other clique can lie inside one.
    """
    stack, attributes, _ = cliques.shape
    sizes = _counted(cliques)
    maximal = np.ones((stack, attributes), dtype=np.bool_)
    line, attr = _members(cliques.reshape(stack * attributes, -1))
    graph, step = line // attributes, line % attributes
    later = when[graph, attr]
    rest = later > step
    line, graph, step, later = line[rest], graph[rest], step[rest], later[rest]
    if line.size:
        first = np.flatnonzero(np.concatenate([[True], line[1:] != line[:-1]]))
        graph, step, then = graph[first], step[first], np.minimum.reduceat(later, first)
        inside = sizes[graph, then] == sizes[graph, step] - 1
        maximal[graph[inside], then[inside]] = False
    return maximal


def _packed(members: Booleans) -> Words:
    """Sets of attributes, from one boolean for each to one bit for each."""
    *lines, attributes = members.shape
    padded = np.zeros((*lines, 64 * max(1, -(-attributes // 64))), dtype=np.bool_)
    padded[..., :attributes] = members
    return np.packbits(padded, axis=-1, bitorder="little").view(_WORD)


def _unpacked(words: Words, attributes: int) -> Booleans:
    """Sets of attributes, from one bit for each to one boolean for each."""
    bits = np.unpackbits(words.view(np.uint8), axis=-1, count=attributes, bitorder="little")
    return bits.view(np.bool_)


def _members(words: Words) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The line of every member of many sets, and the member, both in order. Most bytes have none."""
    octets = words.view(np.uint8).reshape(-1)
    held = np.flatnonzero(octets != 0)
    bits = np.flatnonzero(np.unpackbits(octets[held], bitorder="little"))
    line, member = np.divmod(8 * held[bits >> 3] + (bits & 7), 64 * words.shape[-1])
    return line, member


def _counted(words: Words) -> NDArray[np.int64]:
    """How many attributes each set has."""
    # Along the first axis, whole lines are added at once.
    return np.asarray(_ONES.take(words.view("<u2").T).sum(axis=0, dtype=np.int64).T)


def _join(graph: Booleans, index: tuple[int, ...]) -> None:
    graph[np.ix_(index, index)] = True
    graph[index, index] = False


def _cells(clique: NDArray[Any], shape: tuple[int, ...]) -> int:
    return math.prod(size for size, member in zip(shape, clique, strict=True) if member)


def _named(domain: Domain, clique: NDArray[Any]) -> Attrs:
    return tuple(attr for attr, member in zip(domain.attrs, clique, strict=True) if member)
