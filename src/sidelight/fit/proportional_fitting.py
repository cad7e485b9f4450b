"""The graphical model of maximum likelihood for given marginals, by proportional fitting on its tree.

    walk around the tree of cliques; in each clique, for each of its marginals c:   θ_c ← θ_c + ln(t_c/p_c)

Iterative proportional fitting corrects rare and common cells alike. Gradient descent would not: a cell's
gradient is as small as its probability, so a value that one public record in 10,000 has would keep the
conditional distribution it started with. That hurts once private data give this value half of all records.

Where the targets t are marginals of one distribution the model comes to have them; where they contradict each
other it ends between them.

What the domain declares impossible gets no mass, and is taken out of the targets that would give it some.

Deming, Stephan (1940); Csiszár (1975).
"""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from sidelight.data.domain import Attrs, Domain
from sidelight.data.impossible import masks, possible_cells
from sidelight.models.graphical import GraphicalModel, Potentials, forbidding
from sidelight.trees.junction_tree import JunctionTree
from sidelight.trees.walk import Walk

Array = NDArray[np.float64]

_SWEEPS, _CLOSE = 40, 0.02
"""Most sweeps; fewer once every cell is within this of its target, as a ratio."""
_LEAST = 1e-12
"""Probability in place of a target of 0, so that potentials stay finite."""


def most_likely(
    domain: Domain, targets: Mapping[Attrs, Array], *, start: Potentials | None = None, sweeps: int = _SWEEPS
) -> GraphicalModel:
    """The model with these marginals, each a table of probabilities that sums to 1; its total is 1.

    It starts from the potentials of an earlier fit where these are given, else from independence.

    >>> model = most_likely(Domain.of({"a": 2, "b": 2}), {("a",): np.array([0.75, 0.25])})
    >>> model.count(("b", "a")).round(3).tolist()
    [[0.375, 0.125], [0.375, 0.125]]
    """
    if not targets:
        return GraphicalModel.uniform(domain, total=1.0)
    wanted = {attrs: _possible(domain, attrs, target) for attrs, target in targets.items()}
    fitted = {attrs: _first(attrs, target, start or {}) for attrs, target in wanted.items()}
    # A marginal inside another is right when that one is.
    largest = [c for c in wanted if not any(set(c) < set(other) for other in wanted)]
    walk = Walk(JunctionTree.of(domain, wanted), [*fitted.items(), *forbidding(masks(domain))], largest)
    off = dict.fromkeys(largest, 0.0)

    def step(attrs: Attrs, p: Array) -> Array:
        target = np.maximum(wanted[attrs], _LEAST)
        moved = np.log(np.divide(target, p, out=np.ones(p.shape), where=p > 0))
        fitted[attrs] = fitted[attrs] + moved
        off[attrs] = float(np.abs(moved).max())
        return moved

    for _ in range(sweeps):
        walk.sweep(step)
        if max(off.values()) < _CLOSE:
            break
    found = {}
    for attrs, table in fitted.items():
        canonical = domain.canonical(attrs)
        back = np.transpose(table, [attrs.index(a) for a in canonical])
        found[canonical] = np.ascontiguousarray(back - back.max())
    return GraphicalModel(domain, 1.0, found)


def _possible(domain: Domain, attrs: Attrs, target: Array) -> Array:
    """The target without impossible cells, rescaled; uniform where no mass is left."""
    possible = possible_cells(domain, attrs)
    if possible.all():
        return target
    kept = np.where(possible, target, 0.0)
    kept = kept if kept.sum() > 0 else possible.astype(np.float64)
    return np.asarray(kept / kept.sum())


def _first(attrs: Attrs, target: Array, start: Potentials) -> Array:
    """The starting potential: an earlier fit, else the logarithm of a one-way target, else 0."""
    if attrs in start:
        return start[attrs]
    if len(attrs) == 1 and not start:
        return np.log(np.maximum(target, 1e-9))
    return np.zeros(target.shape)
