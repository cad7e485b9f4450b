"""A walk around a junction tree that changes one marginal at a time.

    p is kept as one table per clique; in each clique of the walk, for each of its marginals c:
        p ← p · exp(Δ_c),  where Δ_c is a function of p_c
    on the way to the next clique, what both share is brought to what the last one says of it

Coordinate ascent in potentials, where each step is solved for exactly by whoever walks: proportional fitting
(fit/proportional_fitting.py), and noisy answers with a prior (fit/following.py). A calibration for every step
would take as long as the whole tree; carried along the walk, a change takes as long as its clique. A sweep
over all marginals goes along every edge once down and once up, which is about two calibrations.

Jiroušek, Přeučil (1995), "On the effective implementation of the iterative proportional fitting procedure".
"""

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from sidelight.data.domain import Attrs
from sidelight.trees.arrays import arrays
from sidelight.trees.junction_tree import JunctionTree
from sidelight.trees.sum_product import Calibrator, inner_order
from sidelight.trees.summing import Projection

Array = NDArray[np.float64]


class Walk:
    """The distribution p on every clique of a tree; a table's axes are in the order of its set."""

    def __init__(
        self, tree: JunctionTree, potentials: Iterable[tuple[Attrs, Array]], marginals: Sequence[Attrs]
    ) -> None:
        calibrator = Calibrator(tree, [], library=arrays("numpy"), fixed=potentials)
        calibrator.run([])
        self._tree = tree
        self._cliques: list[Array] = list(calibrator.clique_marginals())
        self._homes: list[list[tuple[Attrs, Projection, list[int], list[int]]]] = [[] for _ in tree.cliques]
        """The marginals of each clique, with how their axes are turned out of the clique's order and back."""
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
        """From a clique, and from its parent, onto what they share."""
        self._shared = {
            clique: below.sum(self._cliques[clique]) for clique, (below, _) in self._edges.items()
        }
        """What each clique and its parent last agreed on."""

    def sweep(self, step: Callable[[Attrs, Array], Array]) -> None:
        """Go around the tree once; ``step`` tells, from p on a marginal, what is added to its potential."""
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
        """Bring a clique, or with ``up`` its parent, to what the other says of what they share."""
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
