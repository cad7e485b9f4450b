"""A walk around a junction tree: one marginal at a time, and all cliques agree."""

import numpy as np
import pytest

from sidelight.data.domain import Combination, Domain
from sidelight.data.impossible import masks
from sidelight.models.graphical import forbidding
from sidelight.trees.junction_tree import JunctionTree
from sidelight.trees.walk import Walk

DOMAIN = Domain.of({"a": 2, "b": 3, "c": 4, "d": 2, "e": 3})
SETS = [("a", "b"), ("c", "b"), ("c", "d"), ("b", "e"), ("d", "a")]  # some against the order of the domain


def brute_force(domain, potentials):
    """P on all attributes, axes in the domain's order."""
    logs = np.zeros(domain.shape)
    for attrs, table in potentials:
        order = sorted(range(len(attrs)), key=lambda axis: domain.attrs.index(attrs[axis]))
        shape = [domain.sizes[name] if name in attrs else 1 for name in domain.attrs]
        logs = logs + np.transpose(table, order).reshape(shape)
    shares = np.exp(logs)
    return shares / shares.sum()


def marginal(domain, shares, attrs):
    """Of all attributes, onto some in this order."""
    kept = [domain.attrs.index(name) for name in attrs]
    summed = shares.sum(axis=tuple(k for k in range(len(domain)) if k not in kept))
    return np.transpose(summed, np.argsort(np.argsort(kept)))


def random_potentials(domain, seed):
    rng = np.random.default_rng(seed)
    return [(attrs, rng.normal(size=[domain.sizes[name] for name in attrs])) for attrs in SETS]


@pytest.mark.parametrize("seed", range(4))
def test_every_marginal_is_what_the_whole_distribution_says_after_each_change(seed):
    rng = np.random.default_rng(seed)
    potentials = random_potentials(DOMAIN, seed)
    tree = JunctionTree.of(DOMAIN, SETS)
    walk = Walk(tree, potentials, SETS)
    seen = []

    def step(attrs, share):
        assert share == pytest.approx(marginal(DOMAIN, brute_force(DOMAIN, potentials), attrs), rel=1e-9)
        seen.append(attrs)
        # Any change that keeps the total: whoever walks solves for one.
        change = rng.normal(size=share.shape)
        change -= np.log((share * np.exp(change)).sum())
        potentials.append((attrs, change))
        return change

    for _ in range(3):
        walk.sweep(step)

    assert sorted(seen) == sorted(3 * SETS)


def test_what_is_impossible_stays_so():
    domain = Domain(("a", "b", "c"), (2, 3, 2), (Combination.of({"a": [0], "b": [1]}),))
    sets = [("a", "b"), ("b", "c")]
    walk = Walk(JunctionTree.of(domain, sets), forbidding(masks(domain)), sets)
    found = {}

    def step(attrs, share):
        found[attrs] = share.copy()
        return np.log(np.full(share.shape, 1 / share.size) / np.where(share > 0, share, 1.0))

    for _ in range(2):
        walk.sweep(step)

    table = found["a", "b"]
    assert table[0, 1] == 0
    assert (np.delete(table.reshape(-1), 1) > 0).all()
