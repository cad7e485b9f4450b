"""The greedy triangulation on words of bits, beside one on plain sets that prices all at every step."""

import itertools
import math

import numpy as np
import pytest

from sidelight.data.domain import Domain
from sidelight.trees.junction_tree import JunctionTree
from sidelight.trees.triangulation import SizeOracle


def plainly(domain, sets, rule):
    """The maximal cliques by one rule."""
    near = {a: set() for a in range(len(domain))}
    for attrs in sets:
        for one, other in itertools.permutations(domain.index(attrs), 2):
            near[one].add(other)
    weights = [round(math.log2(size) * 2**20) for size in domain.shape]

    def price(attr):
        weight = weights[attr] + sum(weights[other] for other in near[attr])
        missing = sum(b not in near[a] for a, b in itertools.permutations(near[attr], 2))
        return (missing if rule == "fill" else 0, weight, attr)

    cliques = []
    while near:
        chosen = min(near, key=price)
        around = near.pop(chosen)
        cliques.append(frozenset({chosen, *around}))
        for attr in around:
            near[attr] = (near[attr] | around) - {attr, chosen}
    return {clique for clique in cliques if not any(clique < other for other in cliques)}


def cells(domain, cliques):
    return sum(math.prod(domain.shape[attr] for attr in clique) for clique in cliques)


@pytest.mark.parametrize("attributes", [1, 7, 30, 64, 70])
def test_words_of_bits_give_the_cliques_of_plain_sets(attributes):
    rng = np.random.default_rng(attributes)
    domain = Domain.of({f"x{i}": int(size) for i, size in enumerate(rng.integers(2, 20, attributes))})
    degree = min(3, attributes)
    sets = [tuple(rng.choice(domain.attrs, degree, replace=False)) for _ in range(attributes // 2)]

    tree, oracle = JunctionTree.of(domain, sets), SizeOracle(domain, sets)

    found = {frozenset(domain.index(clique)) for clique in tree.cliques}
    expected = [plainly(domain, sets, rule) for rule in ("weight", "fill")]
    assert found in expected
    assert oracle.cells == cells(domain, found) == min(cells(domain, cliques) for cliques in expected)


@pytest.mark.parametrize("held", [0, 9])
def test_a_candidate_is_priced_as_its_own_tree_whether_it_stood_alone_or_not(held):
    rng = np.random.default_rng(3)
    domain = Domain.of({f"x{i}": int(size) for i, size in enumerate(rng.integers(2, 12, 12))})
    sets = [tuple(rng.choice(domain.attrs[:8], 2, replace=False)) for _ in range(held)]
    candidates = list(itertools.combinations(domain.attrs, 3))[::7]

    found = SizeOracle(domain, sets).cells_with_each(candidates)

    assert found == [JunctionTree.of(domain, [*sets, candidate]).cells for candidate in candidates]
    assert len(set(found)) > 3


@pytest.mark.parametrize("share", [10, 50, 90])
def test_a_candidate_fits_where_either_order_makes_it_small_enough(share):
    rng = np.random.default_rng(share)
    domain = Domain.of({f"x{i}": int(size) for i, size in enumerate(rng.integers(2, 12, 24))})
    sets = [tuple(rng.choice(domain.attrs[:20], 2, replace=False)) for _ in range(24)]
    candidates = list(itertools.combinations(domain.attrs, 2))
    cells = SizeOracle(domain, sets).cells_with_each(candidates)
    most = float(np.percentile(cells, share))
    oracle = SizeOracle(domain, sets)

    found = oracle.fits_each(candidates, most_cells=most)

    assert found == [size <= most for size in cells]
    assert {True, False} == set(found)
    assert oracle.cells_with_each(candidates) == cells  # though some were tried by one order alone


def test_sizes_beyond_a_machine_word_are_exact_on_many_attributes():
    domain = Domain.of({f"x{place}": 3 for place in range(130)})
    oracle = SizeOracle(domain, [domain.attrs[:40], domain.attrs[40:60]])

    found = oracle.cells_with_each([domain.attrs[39:41], domain.attrs[20:41], domain.attrs[128:]])

    # 70 attributes stand alone; a pair across two cliques is a clique of its own.
    whole = 3**40 + 3**20 + 70 * 3
    assert oracle.cells == whole
    assert found[0] == whole + 9
    assert found[1] == whole + 3**21
    assert found[2] == whole - 6 + 9
