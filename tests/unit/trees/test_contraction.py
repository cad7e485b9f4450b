import itertools

import numpy as np
import pytest

from sidelight.data.domain import Domain
from sidelight.trees.arrays import arrays
from sidelight.trees.contraction import Contraction
from sidelight.trees.junction_tree import JunctionTree
from sidelight.trees.sum_product import Calibrator

SIZES = {"a": 2, "b": 3, "c": 4, "d": 5, "e": 1}


def summed(tables, values, keep):
    """The same by writing the whole product down."""
    letters = sorted({attr for attrs in tables for attr in attrs})
    spelled = ",".join("".join(attrs) for attrs in tables)
    kept = "".join(attr for attr in keep if attr in letters)
    return np.einsum(f"{spelled}->{kept}", *values)


@pytest.mark.parametrize(
    ("tables", "keep"),
    [
        ([("a", "b"), ("b", "c"), ("c", "a")], ("a", "b")),
        ([("a", "b"), ("b", "c"), ("c", "a")], ("c",)),
        ([("a", "b", "c"), ("b", "c", "d"), ("a", "d"), ("d", "e")], ("d", "a", "e")),
        ([("a",), ("b",)], ("b", "a")),  # they share nothing
        ([("a", "b"), ("a", "b")], ("a",)),  # they share everything
        ([("a", "b", "c")], ("c", "a")),  # one table alone
        ([("a", "b"), ("b", "c")], ()),
        ([("a", "b"), ("b", "c")], ("c", "d")),  # nothing is known about d
    ],
)
def test_a_contraction_is_the_sum_of_the_product(tables, keep):
    rng = np.random.default_rng(0)
    values = [rng.random([SIZES[attr] for attr in attrs]) for attrs in tables]

    contraction = Contraction(tables, keep, SIZES, arrays("numpy"))

    np.testing.assert_allclose(contraction(values), summed(tables, values, keep), rtol=1e-12)
    assert contraction.attrs == tuple(attr for attr in keep if any(attr in attrs for attrs in tables))


def test_the_tables_stay_as_they_are():
    tables = [("a", "b"), ("b", "c"), ("c", "a")]
    values = [np.ones([SIZES[attr] for attr in attrs]) for attrs in tables]

    Contraction(tables, ("b",), SIZES, arrays("numpy"))(values)

    assert all((value == 1.0).all() for value in values)


def test_a_clique_that_is_not_written_down_has_the_marginals_of_one_that_is():
    # Six pairs of attributes make one clique; every pair is a free table, or inside one.
    domain = Domain.of({"a": 9, "b": 8, "c": 7, "d": 6})
    pairs = list(itertools.combinations(domain.attrs, 2))
    rng = np.random.default_rng(1)
    potentials = {attrs: 3 * rng.normal(size=domain.project(attrs).shape) for attrs in pairs}
    exponent = sum(
        table.reshape([domain.sizes[a] if a in attrs else 1 for a in domain.attrs])
        for attrs, table in potentials.items()
    )
    p = np.exp(exponent - exponent.max())
    p /= p.sum()
    tree = JunctionTree.of(domain, pairs)
    calibrator = Calibrator(tree, [], library=arrays("numpy"), fixed=potentials.items())

    log_partition = calibrator.run([])

    exact = exponent.max() + np.log(np.exp(exponent - exponent.max()).sum())
    assert log_partition == pytest.approx(exact, rel=1e-12)
    (marginal,) = calibrator.clique_marginals()
    np.testing.assert_allclose(marginal.transpose(3, 2, 1, 0), p, rtol=1e-9)


def test_a_leap_of_potentials_does_not_change_what_comes_after_it():
    domain = Domain.of({"a": 2, "b": 3, "c": 4})
    sets = [("a", "b"), ("b", "c")]
    rng = np.random.default_rng(2)
    calm = [rng.normal(size=(2, 3)), rng.normal(size=(3, 4))]
    # Each insists on another value of b, far beyond what a float can tell apart.
    leap = [np.array([[0.0, -3000.0, -9000.0]] * 2), np.array([[-5000.0] * 4, [0.0] * 4, [0.0] * 4])]
    tree = JunctionTree.of(domain, sets)
    expected = Calibrator(tree, sets, library=arrays("numpy"))
    log_partition = expected.run(calm)

    calibrator = Calibrator(tree, sets, library=arrays("numpy"))

    for _ in range(5):
        assert calibrator.run(leap) == pytest.approx(-3000.0 + np.log(8.0))
        assert calibrator.run(calm) == pytest.approx(log_partition, rel=1e-12)
        for found, same in zip(calibrator.marginals(), expected.marginals(), strict=True):
            np.testing.assert_allclose(found, same, rtol=1e-12)
