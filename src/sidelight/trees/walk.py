"""A walk around a junction tree that changes one marginal at a time.

    p is kept as one table per clique; in each clique of the walk, for each of its marginals c:
        p ← p · exp(Δ_c),  where Δ_c is a function of p_c
    on the way to the next clique, its separator is rescaled to what the last clique has there

Coordinate ascent in the potentials; the caller solves each step exactly: proportional fitting
(fit/proportional_fitting.py), or noisy answers with a prior (fit/following.py). Calibrating after every step
would take a pass over the whole tree; a change that is carried along the walk takes a pass over its clique. A
sweep over all marginals takes every edge once down and once up, which is about two calibrations.

Jiroušek, Přeučil (1995), "On the effective implementation of the iterative proportional fitting procedure".
"""

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from sidelight.data.domain import Attrs
from sidelight.trees.arrays import arrays
from sidelight.trees.junction_tree import JunctionTree
from sidelight.trees.nesting import inner_order
from sidelight.trees.sum_product import Calibrator
from sidelight.trees.summing import Projection

Array = NDArray[np.float64]


class Walk:
    """p on every clique of a tree, changed one marginal at a time."""

    def __init__(
        self, tree: JunctionTree, potentials: Iterable[tuple[Attrs, Array]], marginals: Sequence[Attrs]
    ) -> None:
        calibrator = Calibrator(tree, [], library=arrays("numpy"), fixed=potentials)
        calibrator.run([])
        self._tree = tree
        self._cliques: list[Array] = list(calibrator.clique_marginals())
        self._homes: list[list[tuple[Attrs, Projection, list[int], list[int]]]] = [[] for _ in tree.cliques]
        """The marginals of each clique, each with its sum and its transpositions to and fro."""
        for attrs in marginals:
            home = tree.home(attrs)
            assert home is not None
            inner = inner_order(tree.domain, attrs)
            out, back = [inner.index(a) for a in attrs], [attrs.index(a) for a in inner]
            self._homes[home].append((attrs, self._onto(home, attrs), out, back))
        self._edges = {
            clique: (self._onto(clique, tree.separators[clique]), self._onto(parent, tree.separators[clique]))
            for clique, parent in enumerate(tree.parents)
            if parent >= 0
        }
        """The sums of a clique, and of its parent, onto their separator."""
        self._shared = {
            clique: below.sum(self._cliques[clique]) for clique, (below, _) in self._edges.items()
        }
        """The separator marginal that each clique and its parent last agreed on."""

    def sweep(self, step: Callable[[Attrs, Array], Array]) -> None:
        """Go around the tree once. ``step`` gets p on a marginal and returns what to add to its potential."""
        # An explicit path: a tree of 1,000 attributes is deeper than Python's own stack.
        root = self._tree.order[0]
        self._change(root, step)
        path: list[tuple[int, Iterator[int]]] = [(root, iter(self._tree.children[root]))]
        while path:
            clique, below = path[-1]
            child = next(below, None)
            if child is not None:
                self._carry(child, up=False)
                self._change(child, step)
                path.append((child, iter(self._tree.children[child])))
            else:
                path.pop()
                if path:
                    self._carry(clique, up=True)

    def _change(self, clique: int, step: Callable[[Attrs, Array], Array]) -> None:
        held = self._cliques[clique]
        for attrs, onto, out, back in self._homes[clique]:
            factor = np.exp(step(attrs, np.transpose(onto.sum(held), out)))
            np.multiply(held, np.transpose(factor, back).reshape(onto.wide), out=held)

    def _carry(self, clique: int, *, up: bool) -> None:
        """Rescale a clique to its parent's separator marginal; with ``up``, the parent to the clique's."""
        (below, above), parent = self._edges[clique], self._tree.parents[clique]
        source, target = (clique, parent) if up else (parent, clique)
        now = (below if up else above).sum(self._cliques[source])
        before = self._shared[clique]
        ratio = np.divide(now, before, out=np.ones(now.shape), where=before > 0)
        wide = (above if up else below).wide
        np.multiply(self._cliques[target], ratio.reshape(wide), out=self._cliques[target])
        self._shared[clique] = now

    def _onto(self, clique: int, attrs: Sequence[str]) -> Projection:
        domain = self._tree.domain
        inner = inner_order(domain, self._tree.cliques[clique])
        return Projection.onto(inner, attrs, domain.sizes, arrays("numpy"))
