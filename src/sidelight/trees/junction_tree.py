"""The tree of cliques along which a graphical model is summed.

The maximal cliques of the triangulated graph are joined by a spanning tree of the largest
separators, which then has the running-intersection property: the cliques that hold an
attribute are connected. Parts without shared attributes are joined by empty separators, so a forest
is treated as a tree.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, lru_cache

from sidelight.data.domain import Attrs, Combination, Domain
from sidelight.trees.triangulation import BYTES_PER_CELL, interaction_graph, smallest_triangulation


@dataclass(frozen=True)
class JunctionTree:
    """Maximal cliques in canonical order, and the tree between them.

    >>> tree = JunctionTree.of(Domain.of({"a": 2, "b": 2, "c": 2}), [("a", "b"), ("b", "c")])
    >>> tree.cliques, tree.separators, tree.cells, tree.bytes
    ((('a', 'b'), ('b', 'c')), ((), ('b',)), 8, 64)
    """

    domain: Domain
    cliques: tuple[Attrs, ...]
    parents: tuple[int, ...]
    """Each clique's neighbour towards the root; −1 at the root, the largest clique."""
    order: tuple[int, ...]
    """Every clique, parents before children."""

    @classmethod
    def of(cls, domain: Domain, attribute_sets: Iterable[Iterable[str]]) -> "JunctionTree":
        """The tree in which each of these sets, and each attribute, lies inside a clique."""
        return _tree(domain, domain.impossible, frozenset(frozenset(attrs) for attrs in attribute_sets))

    @cached_property
    def cells(self) -> int:
        """Cells of all cliques together."""
        return sum(self.domain.size(clique) for clique in self.cliques)

    @property
    def bytes(self) -> int:
        """Memory of one table for each clique."""
        return BYTES_PER_CELL * self.cells

    @cached_property
    def separators(self) -> tuple[Attrs, ...]:
        """The attributes that each clique shares with its parent; none at the root."""
        return tuple(
            () if parent < 0 else tuple(a for a in clique if a in self._sets[parent])
            for clique, parent in zip(self.cliques, self.parents, strict=True)
        )

    @cached_property
    def children(self) -> tuple[tuple[int, ...], ...]:
        """The cliques that hang below each clique."""
        below: list[list[int]] = [[] for _ in self.cliques]
        for index in self.order:
            if self.parents[index] >= 0:
                below[self.parents[index]].append(index)
        return tuple(map(tuple, below))

    @cached_property
    def _sets(self) -> tuple[frozenset[str], ...]:
        return tuple(map(frozenset, self.cliques))

    def home(self, attrs: Iterable[str]) -> int | None:
        """The smallest clique that holds all of these attributes; None where no clique does."""
        wanted = frozenset(attrs)
        self.domain.require(sorted(wanted))
        holding = [index for index, clique in enumerate(self._sets) if wanted <= clique]
        return min(holding, key=lambda index: self.domain.size(self.cliques[index]), default=None)


@lru_cache(maxsize=8)
def _tree(domain: Domain, _key: tuple[Combination, ...], sets: frozenset[frozenset[str]]) -> JunctionTree:
    """Cached: a model, its fit and the next round's model mostly have the same tree.

    Impossible combinations are part of the key, since domains compare equal without them.
    """
    members, _ = smallest_triangulation(interaction_graph(domain, sets), domain.shape)
    lines = sorted(tuple(int(i) for i in line.nonzero()[0]) for line in members) or [()]
    cliques = tuple(tuple(domain.attrs[i] for i in line) for line in lines)
    parents, order = _spanning_tree(domain, cliques)
    return JunctionTree(domain, cliques, parents, order)


def _spanning_tree(domain: Domain, cliques: tuple[Attrs, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Prim's algorithm from the largest clique, always along the largest separator."""
    sets = [frozenset(clique) for clique in cliques]
    root = max(range(len(cliques)), key=lambda i: (domain.size(cliques[i]), -i))
    parents = [-1] * len(cliques)
    order = [root]
    nothing = frozenset[str]()
    logs = {nothing: 0.0}

    def pull(i: int, j: int) -> tuple[int, float]:
        shared = sets[i] & sets[j]
        if shared not in logs:
            logs[shared] = math.log2(domain.size(shared))
        return len(shared), logs[shared]

    nearest = {i: (pull(i, root), root) for i in range(len(cliques)) if i != root}
    while nearest:
        chosen = max(nearest, key=lambda i: (nearest[i][0], -i))
        parents[chosen] = nearest.pop(chosen)[1]
        order.append(chosen)
        for i, (best, _) in nearest.items():
            if (now := pull(i, chosen)) > best:
                nearest[i] = now, chosen
    return tuple(parents), tuple(order)
