import numpy as np
import pytest

from sidelight.data.domain import Combination, Domain
from sidelight.errors import WorkloadError
from sidelight.trees.junction_tree import JunctionTree
from sidelight.trees.triangulation import SizeOracle

BINARY = Domain.of({"a": 2, "b": 2, "c": 2})


def test_a_triangle_is_one_clique_of_eight_cells():
    tree = JunctionTree.of(BINARY, [("a", "b"), ("b", "c"), ("c", "a")])

    assert tree.cliques == (("a", "b", "c"),)
    assert (tree.cells, tree.bytes) == (8, 64)


def test_a_chain_is_two_cliques_of_four_cells():
    tree = JunctionTree.of(BINARY, [("a", "b"), ("b", "c")])

    assert tree.cliques == (("a", "b"), ("b", "c"))
    assert sorted(tree.separators) == [(), ("b",)]
    assert tree.cells == 8


def test_a_forest_hangs_together_by_empty_separators():
    domain = Domain.of({"a": 2, "b": 3, "c": 4, "d": 5})

    tree = JunctionTree.of(domain, [("a", "b"), ("c", "d")])

    assert tree.cliques == (("a", "b"), ("c", "d"))
    assert tree.separators == ((), ())
    assert sum(parent < 0 for parent in tree.parents) == 1
    assert tree.cells == 26


def test_attributes_that_nobody_measured_are_cliques_of_their_own():
    assert JunctionTree.of(BINARY, []).cliques == (("a",), ("b",), ("c",))


def test_the_order_of_elimination_minds_the_sizes():
    # A cycle of four: a chord between the small attributes costs 2·2·100 twice, the other 2·100·100 twice.
    domain = Domain.of({"a": 2, "b": 100, "c": 2, "d": 100})

    tree = JunctionTree.of(domain, [("a", "b"), ("b", "c"), ("c", "d"), ("d", "a")])

    assert tree.cliques == (("a", "b", "c"), ("a", "c", "d"))
    assert tree.cells == 800


def test_home_is_the_smallest_clique_that_holds_all():
    domain = Domain.of({"a": 2, "b": 3, "c": 4, "d": 50})
    tree = JunctionTree.of(domain, [("a", "b", "d"), ("b", "c")])

    assert tree.cliques[tree.home(("b",))] == ("b", "c")
    assert tree.home(("a", "c")) is None


def test_sizes_are_exact_far_beyond_what_a_float_can_count():
    domain = Domain.of({f"x{i}": 1001 for i in range(12)})

    tree = JunctionTree.of(domain, [domain.attrs])

    assert tree.cells == 1001**12
    assert SizeOracle(domain).cells_with(domain.attrs) == 1001**12


def test_a_candidate_inside_a_clique_costs_nothing():
    oracle = SizeOracle(BINARY, [("a", "b"), ("b", "c"), ("c", "a")])

    assert oracle.contains(("c", "a"))
    assert oracle.cells_with(("c", "a")) == oracle.cells == 8


def test_candidates_are_priced_together_as_they_are_alone():
    rng = np.random.default_rng(5)
    domain = Domain.of({f"x{i}": int(size) for i, size in enumerate(rng.integers(2, 40, size=14))})
    sets = [tuple(rng.choice(domain.attrs, size=3, replace=False)) for _ in range(60)]
    oracle = SizeOracle(domain, sets[:8])

    together = oracle.cells_with_each(sets)

    assert together == [JunctionTree.of(domain, [*sets[:8], candidate]).cells for candidate in sets]
    assert len(set(together)) > 10


def test_an_unknown_attribute_is_named():
    with pytest.raises(WorkloadError, match="unknown attribute 'z'"):
        JunctionTree.of(BINARY, [("a", "z")])
    with pytest.raises(WorkloadError, match="unknown attribute 'z'"):
        SizeOracle(BINARY).cells_with(("z",))
    with pytest.raises(WorkloadError, match="unknown attribute 'z'"):
        JunctionTree.of(BINARY, []).home(("z",))


def test_what_is_impossible_has_a_part_in_the_tree_though_domains_are_equal_without_it():
    declared = Domain(("a", "b", "c"), (2, 2, 2), (Combination(("a", "c"), ((0,), (1,))),))
    assert declared == BINARY

    plain, tied = (JunctionTree.of(domain, [("a", "b")]) for domain in (BINARY, declared))

    assert plain.home(("a", "c")) is None
    assert tied.home(("a", "c")) is not None
