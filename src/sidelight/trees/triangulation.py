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

Booleans = NDArray[np.bool_]


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
        self._masks = [_mask(np.flatnonzero(clique).tolist()) for clique in members]
        self._known: dict[tuple[tuple[int, int], ...], int] = {(): self.cells}

    def contains(self, candidate: Iterable[str]) -> bool:
        """Whether the candidate lies inside a clique already, and so costs nothing."""
        wanted = _mask(self.domain.index(candidate))
        return any(wanted & clique == wanted for clique in self._masks)

    def cells_with(self, candidate: Iterable[str]) -> int:
        """Cells of the model once the candidate is measured too."""
        return self.cells_with_each([tuple(candidate)])[0]

    def cells_with_each(self, candidates: Sequence[Attrs]) -> list[int]:
        """Cells of the model with each candidate in turn; the others left out."""
        # Candidates that add the same edges make the same model: priced once.
        added = [self._edges(candidate) for candidate in candidates]
        waiting = [edges for edges in dict.fromkeys(added) if edges not in self._known]
        at_once = max(1, _STACK // max(1, len(self.domain) ** 2))
        for start in range(0, len(waiting), at_once):
            some = waiting[start : start + at_once]
            graphs = np.repeat(self._graph[None], len(some), axis=0)
            for graph, edges in zip(graphs, some, strict=True):
                for one, other in edges:
                    graph[one, other] = graph[other, one] = True
            self._known |= zip(some, _sizes_of_stack(graphs, self.domain.shape), strict=True)
        return [self._known[edges] for edges in added]

    def _edges(self, candidate: Attrs) -> tuple[tuple[int, int], ...]:
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
        members = cliques[0][maximal[0]]
        cells = sum(_cells(clique, shape) for clique in members)
        if best is None or cells < best[1]:
            best = members, cells
    assert best is not None
    return best


Rule = Literal["weight", "fill"]
_RULES: tuple[Rule, ...] = ("weight", "fill")


def _sizes_of_stack(graphs: Booleans, shape: tuple[int, ...]) -> list[int]:
    """Cells of the smaller triangulation of each graph."""
    return [min(pair) for pair in zip(*(_cells_of_each(graphs, shape, rule) for rule in _RULES), strict=True)]


def _cells_of_each(graphs: Booleans, shape: tuple[int, ...], rule: Rule) -> list[int]:
    cliques, maximal = _eliminate(graphs, shape, rule)
    logs = np.where(cliques, np.log2(np.array(shape, dtype=np.float64)), 0.0).sum(axis=2)
    if logs.max(initial=0.0) > 45 or len(shape) > 128:
        # A sum of such products may be too long for an int64: whole numbers of any length instead.
        return [
            sum(_cells(clique, shape) for clique in lines[kept])
            for lines, kept in zip(cliques, maximal, strict=True)
        ]
    products = np.where(cliques, np.array(shape, dtype=np.int64), 1).prod(axis=2)
    return [int(total) for total in np.where(maximal, products, 0).sum(axis=1)]


def _eliminate(graphs: Booleans, shape: tuple[int, ...], rule: Rule) -> tuple[Booleans, Booleans]:
    """Eliminate every graph of the stack greedily: its cliques in order, and which are maximal."""
    stack, attributes, _ = graphs.shape
    graphs = graphs.copy()
    every = np.arange(stack)
    # Whole-number logarithms: sums do not depend on the order in which they are added.
    weights = np.rint(np.log2(np.array(shape, dtype=np.float64)) * 2**20)
    never = np.iinfo(np.int64).max
    left = np.ones((stack, attributes), dtype=np.bool_)
    cliques = np.zeros((stack, attributes, attributes), dtype=np.bool_)
    for step in range(attributes):
        weight = (graphs.astype(np.float64) @ weights + weights).astype(np.int64)
        if rule == "weight":
            price = weight
        else:
            wide = graphs.astype(np.float32)
            degree = graphs.sum(axis=2)
            joined = np.rint((np.matmul(wide, wide) * wide).sum(axis=2)).astype(np.int64)
            price = (degree * (degree - 1) - joined) * 2**40 + weight
        chosen = np.where(left, price, never).argmin(axis=1)
        around = graphs[every, chosen]
        cliques[:, step] = around
        cliques[every, step, chosen] = True
        graphs |= around[:, :, None] & around[:, None, :]
        graphs[every, chosen] = False
        graphs[every, :, chosen] = False
        graphs[:, np.arange(attributes), np.arange(attributes)] = False
        left[every, chosen] = False
    # A clique can only lie inside one that was eliminated before it.
    counts = cliques.astype(np.float32)
    shared = np.matmul(counts, counts.transpose(0, 2, 1))
    inside = shared >= counts.sum(axis=2)[:, :, None]
    earlier = np.tri(attributes, k=-1, dtype=np.bool_)
    return cliques, ~(inside & earlier).any(axis=2)


def _join(graph: Booleans, index: tuple[int, ...]) -> None:
    graph[np.ix_(index, index)] = True
    graph[index, index] = False


def _cells(clique: NDArray[Any], shape: tuple[int, ...]) -> int:
    return math.prod(size for size, member in zip(shape, clique, strict=True) if member)


def _named(domain: Domain, clique: NDArray[Any]) -> Attrs:
    return tuple(attr for attr, member in zip(domain.attrs, clique, strict=True) if member)
