"""Residuals as whole numbers, and what a neighbour moves in all of them together."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from sidelight.data.domain import Domain
from sidelight.errors import WorkloadError
from sidelight.privacy.unit import Unit
from sidelight.queries import strategy
from sidelight.queries.query import Linear, query_from_json
from sidelight.queries.residual import Residual
from sidelight.queries.strategy import Closure, Strategy

UNITS = [Unit("add-or-remove"), Unit("replace"), Unit("replace", records=3)]
DOMAINS = [(2, 3, 4), (2, 2, 2, 2), (3, 3, 5)]


def domain_of(sizes):
    return Domain.of({f"x{place}": size for place, size in enumerate(sizes)})


def matrix(attrs, domain):
    """C_S as a matrix over all cells of the domain."""
    found = np.ones((1, 1))
    for attr, size in domain.sizes.items():
        part = size * np.eye(size) - np.ones((size, size)) if attr in attrs else np.ones((1, size))
        found = np.kron(found, part)
    return found


def exhaustive(parts, unit):
    """max Σ ‖δ‖²/s² over all neighbours; ``parts`` are matrices and variances."""
    stacked = np.concatenate([part / math.sqrt(variance) for part, variance in parts])
    gram = stacked.T @ stacked
    length = np.diag(gram)
    if unit.relation == "add-or-remove":
        return unit.records**2 * length.max()
    return unit.records**2 * (length[:, None] + length[None, :] - 2 * gram).max()


@pytest.mark.parametrize("attrs", [(), ("x0",), ("x1", "x2"), ("x0", "x1", "x2")])
def test_a_residual_is_whole_and_its_sensitivity_is_that_of_the_worst_neighbours(attrs):
    domain = domain_of((2, 3, 4))
    query = Residual(attrs, domain.project(attrs).shape)
    counts = np.random.default_rng(0).integers(0, 30, domain.shape)
    aside = tuple(axis for axis, attr in enumerate(domain.attrs) if attr not in attrs)

    answer = query.apply(counts.sum(axis=aside))

    assert answer.dtype == np.int64
    assert np.allclose(answer, matrix(attrs, domain) @ counts.reshape(-1))
    for unit in UNITS:
        worst = exhaustive([(matrix(attrs, domain), 1.0)], unit)
        assert float(query.l2_squared(unit)) == pytest.approx(worst)
        columns = matrix(attrs, domain)
        apart = columns if unit.relation == "add-or-remove" else columns[:, :, None] - columns[:, None, :]
        assert float(query.l1(unit)) >= unit.records * np.abs(apart).sum(axis=0).max() - 1e-9


def test_the_transpose_is_the_transpose():
    query, rng = Residual(("x1", "x2"), (3, 4)), np.random.default_rng(1)
    counts, answer = rng.normal(size=(3, 4)), rng.normal(size=12)

    assert query.apply(counts) @ answer == pytest.approx((counts * query.transpose(answer, (3, 4))).sum())


def test_a_residual_comes_back_from_its_plain_form_and_fits_its_domain():
    query = Residual(("x1",), (3,))

    assert query_from_json(query.as_json()) == query
    query.check(domain_of((2, 3)))
    with pytest.raises(WorkloadError, match="must have the shape"):
        query.check(domain_of((2, 4)))


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: f"{unit.relation}-{unit.records}")
@pytest.mark.parametrize("sizes", DOMAINS)
@pytest.mark.parametrize("seed", range(4))
def test_the_joint_loss_is_that_of_the_worst_neighbours(sizes, unit, seed):
    """Exact where all ways to disagree are tried; the bound for many attributes is never below."""
    domain = domain_of(sizes)
    closure = Closure.of(domain, itertools.combinations(domain.attrs, 2))
    variances = np.exp(np.random.default_rng(seed).normal(0, 2, len(closure.members)))
    parts = [(matrix(attrs, domain), v) for attrs, v in zip(closure.members, variances, strict=True)]

    exact = exhaustive(parts, unit)
    found = float(closure.joint_loss(1 / variances, unit))

    assert found >= exact * (1 - 1e-12)
    assert found == pytest.approx(exact, rel=1e-9)


@pytest.mark.parametrize("sizes", DOMAINS)
@pytest.mark.parametrize("seed", range(4))
def test_the_bound_for_many_attributes_is_above_the_worst_and_not_far(sizes, seed, monkeypatch):
    monkeypatch.setattr(strategy, "_MOST_ATTRIBUTES", 0)
    domain = domain_of(sizes)
    closure = Closure.of(domain, itertools.combinations(domain.attrs, 2))
    variances = np.exp(np.random.default_rng(seed).normal(0, 1, len(closure.members)))
    parts = [(matrix(attrs, domain), v) for attrs, v in zip(closure.members, variances, strict=True)]

    exact = exhaustive(parts, UNITS[1])
    found = float(closure.joint_loss(1 / variances, UNITS[1]))

    assert exact * (1 - 1e-12) <= found <= 1.35 * exact


@pytest.mark.parametrize(("relation", "loss"), [("add-or-remove", 1.45559869), ("replace", 3.14668323)])
def test_the_sensitivity_of_the_specifications_strategy(relation, loss):
    """Spec 10.4: sizes 2, 3, 4, all pairs, λ_S = √ω_S."""
    domain = domain_of((2, 3, 4))
    closure = Closure.of(domain, itertools.combinations(domain.attrs, 2))
    whole = domain.size()
    omega = {
        attrs: sum(
            whole / domain.size(pair)
            for pair in itertools.combinations(domain.attrs, 2)
            if set(attrs) <= set(pair)
        )
        for attrs in closure.members
    }
    # Noise of covariance v_S R_S on a residual is a strategy with λ_S = N/(n_S v_S).
    variances = [
        cells**2 * whole / (cells * math.sqrt(omega[a]))
        for a, cells in zip(closure.members, closure.cells, strict=True)
    ]

    found = closure.joint_loss(1 / np.array(variances), Unit(relation))

    assert float(found) == pytest.approx(loss, abs=1e-8)


def test_a_closure_numbers_its_members_and_their_subsets():
    domain = Domain.of({"a": 2, "b": 1, "c": 3, "d": 2})

    closure = Closure.of(domain, [("c", "a"), ("a", "b"), ("d",)])

    assert closure.members == ((), ("a",), ("c",), ("d",), ("a", "c"))
    assert closure.maximal == [("a", "c"), ("d",)]
    assert [line.tolist() for line in closure.within] == [[[0, 1, 2, 4]], [[0, 3]]]


def test_every_query_is_counted_from_a_marginal_that_holds_it():
    domain = domain_of((2, 3, 4))
    closure = Closure.of(domain, [("x0", "x1"), ("x1", "x2")])
    queries = tuple(Residual(a, domain.project(a).shape) for a in closure.members)
    made = Strategy(closure, queries, tuple(Fraction(1) for _ in queries))
    counts = np.random.default_rng(0).integers(0, 9, domain.shape)

    counted = made.counted()

    assert sorted(place for places in counted.values() for place in places) == list(range(len(queries)))
    for held, places in counted.items():
        aside = tuple(axis for axis, attr in enumerate(domain.attrs) if attr not in held)
        for place in places:
            found = made.exact(place, held, counts.sum(axis=aside))
            assert np.array_equal(found, matrix(queries[place].attrs, domain) @ counts.reshape(-1))


@pytest.mark.parametrize("unit", UNITS, ids=str)
def test_a_residual_that_is_measured_twice_is_paid_for_twice(unit):
    domain = domain_of((2, 3))
    closure = Closure.of(domain, [("x0", "x1")])
    query = Residual(("x0",), (2,))
    once = Strategy(closure, (query,), (Fraction(1),)).loss(unit)

    twice = Strategy(closure, (query, query), (Fraction(1), Fraction(1, 2))).loss(unit)

    assert once >= exhaustive([(matrix(("x0",), domain), 1.0)], unit) * (1 - 1e-12)
    assert twice == 3 * once


def test_queries_with_finer_answers_than_whole_numbers_are_not_measured_together():
    """Noise is drawn in whole numbers; a step of 2⁻²⁰ would be hidden a million times too little."""
    closure = Closure.of(domain_of((2,)), [("x0",)])

    with pytest.raises(WorkloadError, match="whole numbers"):
        Strategy(closure, (Linear.of(("x0",), [0.5, -1.0]),), (Fraction(1),))
