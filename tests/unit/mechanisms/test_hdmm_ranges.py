"""HDMM for ranges: strategies, products, exact errors."""

import math

import numpy as np
import pytest
from scipy.optimize import check_grad

import sidelight as sl
from sidelight.data.domain import Combination, Domain
from sidelight.data.schema import Schema
from sidelight.data.table import Table
from sidelight.errors import TooLargeError, WorkloadError
from sidelight.fit.products import non_negative, on_simplex
from sidelight.measurement import Measurement
from sidelight.mechanisms.hdmm.hdmm import HDMM
from sidelight.mechanisms.hdmm.ranges import Boxes, ProductPlan, _objective, covariances_of, p_identity
from sidelight.models.products import ProductEstimate, Products
from sidelight.privacy.budget import Rho
from sidelight.privacy.unit import Unit
from sidelight.queries.product import Product
from sidelight.queries.query import Cell, Marginal, Prefix, Range, query_from_json
from sidelight.queries.workload import Workload

DOMAIN = Domain.of({"age": 6, "one": 1, "sex": 2, "hours": 5})
QUERY = Product(
    ("age", "hours"), (((1, 2, 0, 0, 3, 1), (4, 0, 1, 1, 0, 2)), ((1, 0, 2, 0, 5), (0, 1, 1, 1, 0)))
)
MIXED = Workload(
    [
        *(Prefix("age", high) for high in range(6)),
        *Workload.ranges(DOMAIN, ["age", "hours"], number=20, seed=1),
        Marginal(("sex", "age")),
        Cell(("hours",), (2,)),
        Range((("one", 0, 0), ("sex", 1, 1))),
    ]
)


def dense(query):
    return np.kron(query.matrices[0], query.matrices[1])


def test_a_products_answers_and_sensitivities_are_those_of_its_matrix():
    counts = np.random.default_rng(0).integers(0, 20, (6, 5))
    columns = dense(QUERY)

    assert np.array_equal(QUERY.apply(counts), columns @ counts.reshape(-1))
    assert QUERY.apply(counts).dtype == np.int64
    longest = (columns**2).sum(axis=0).max()
    apart = ((columns[:, :, None] - columns[:, None, :]) ** 2).sum(axis=0).max()
    assert QUERY.l2_squared(Unit("add-or-remove")) == longest
    assert apart <= QUERY.l2_squared(Unit("replace")) == 2 * longest
    assert QUERY.l1(Unit("add-or-remove", records=2)) == 2 * columns.sum(axis=0).max()
    answer = np.random.default_rng(1).normal(size=4)
    assert np.allclose(QUERY.transpose(answer, (6, 5)).reshape(-1), columns.T @ answer)


def test_a_product_comes_back_from_its_plain_form_and_must_fit():
    assert query_from_json(QUERY.as_json()) == QUERY
    QUERY.check(DOMAIN)
    with pytest.raises(WorkloadError, match="a number for each value"):
        Product(("sex",), (((1, 2, 3),),)).check(DOMAIN)
    with pytest.raises(WorkloadError, match="below 0"):
        Product(("sex",), (((1, -2),),)).check(DOMAIN)


def test_the_slope_is_that_of_the_objective():
    gram = Boxes.all_of(DOMAIN, Workload.ranges(DOMAIN, ["age"]))[0].gram(DOMAIN, 0)
    theta = np.random.default_rng(0).uniform(0.1, 1, 18)

    off = check_grad(lambda t: _objective(t, gram)[0], lambda t: _objective(t, gram)[1], theta)

    assert off < 1e-4


def test_the_gram_matrix_and_the_variances_are_those_of_the_queries_one_by_one():
    queries = Workload.ranges(DOMAIN, ["age", "hours"], number=30, seed=2)
    (boxes,) = Boxes.all_of(DOMAIN, queries)
    rng = np.random.default_rng(0)
    roots = [rng.normal(size=(size, size)) for size in (6, 5)]
    covariances = [root @ root.T for root in roots]
    on_age = [query.weights((6, 5)).max(axis=1).astype(float) for query in queries]

    gram = sum(np.outer(vector, vector) for vector in on_age)

    assert np.allclose(boxes.gram(DOMAIN, 0), gram)
    for query, found in zip(queries, boxes.variances(covariances), strict=True):
        weights = query.weights((6, 5)).astype(float).reshape(-1)
        assert found == pytest.approx(weights @ np.kron(*covariances) @ weights)


def test_single_values_are_measured_by_the_identity():
    assert np.array_equal(p_identity(3 * np.eye(5)), np.eye(5))
    plan = ProductPlan.of(DOMAIN, Workload([Marginal(("sex", "hours"))]), objective="mean")
    assert [matrix.tolist() for matrix in plan.queries[0].matrices] == [
        np.eye(2).tolist(),
        np.eye(5).tolist(),
    ]


def test_estimates_are_least_squares_with_their_exact_covariance():
    rng = np.random.default_rng(0)
    plan = ProductPlan.of(
        DOMAIN, Workload.ranges(DOMAIN, ["age", "hours"], number=40, seed=0), objective="mean"
    )
    (query,) = plan.queries
    matrix = dense(query).astype(float)
    answer = matrix @ rng.uniform(0, 9, 30) + rng.normal(0, 3, len(matrix))

    known = Products(DOMAIN, (ProductEstimate.of(Measurement(query, answer, 3.0)),))

    solution, covariance = np.linalg.pinv(matrix) @ answer, 9 * np.linalg.inv(matrix.T @ matrix)
    assert np.allclose(known.count(("age", "hours")).reshape(-1), solution)
    assert np.allclose(known.count(("hours", "one", "age"))[:, 0].T.reshape(-1), solution)
    assert np.allclose(known.variance(("age", "hours")).reshape(-1), np.diag(covariance))
    summed = np.kron(np.eye(6), np.ones((1, 5)))
    assert np.allclose(known.count(("age",)), summed @ solution)
    assert np.allclose(known.variance(("age",)), np.diag(summed @ covariance @ summed.T))
    weights = rng.normal(size=(5, 6))
    flat = weights.T.reshape(-1)
    assert known.variance_of_sum(("hours", "age"), weights) == pytest.approx(flat @ covariance @ flat)


@pytest.mark.parametrize("objective", ["mean", "maximum"])
@pytest.mark.parametrize("unit", [Unit("replace"), Unit("add-or-remove")], ids=lambda unit: unit.relation)
def test_the_plan_foretells_the_errors_of_ranges_and_marginals(toy, unit, objective):
    rng = np.random.default_rng(0)
    table = Table.of_codes(DOMAIN, np.stack([rng.integers(0, k, 900) for k in DOMAIN.shape], axis=1))
    curator, _ = type(toy)(table, MIXED).curator(unit=unit, rho="1/20")
    mechanism = HDMM(objective=objective, reconstruction="least-squares")

    outlook = mechanism.outlook(DOMAIN, MIXED, allotment=Rho(1) / 20, unit=unit)
    outcome = mechanism.run(curator, MIXED)

    assert not curator.remaining
    known = outcome.model.known
    expected = []
    for query in MIXED:
        if isinstance(query, Marginal):
            expected.append(math.sqrt(known.variance(query.attrs).mean()))
        else:
            weights = query.weights(DOMAIN.project(query.attrs).shape)
            expected.append(math.sqrt(known.variance_of_sum(query.attrs, weights)))
    assert len(outlook.notes) == 5
    assert outlook.stddev == pytest.approx(np.mean(expected), rel=0.02)


def test_ranges_go_through_the_front_door_and_come_back(tmp_path):
    rng = np.random.default_rng(0)
    table = Table.of_codes(DOMAIN, np.stack([rng.integers(0, k, 900) for k in DOMAIN.shape], axis=1))

    made = sl.release(
        table, schema=Schema.from_domain(DOMAIN), epsilon=5, delta=1e-9, mechanism="hdmm", workload=MIXED,
        progress=False, noise=sl.testing.SeededNoise(1),
    )  # fmt: skip
    loaded = sl.Release.load(made.save(tmp_path / "out"))

    for attrs in (("age",), ("hours", "age"), ("sex",), ("age", "sex", "hours")):
        assert np.allclose(made.count(attrs), loaded.count(attrs))
        assert made.count(attrs).min() >= 0
        assert made.count(attrs).sum() == pytest.approx(900)
    mask = np.arange(6) < 4
    ours, theirs = (one.error_bars(("age",)).sum(mask) for one in (made, loaded))
    assert float(ours.standard_error) == pytest.approx(float(theirs.standard_error))
    assert abs(float(ours.estimate) - table.count(("age",))[mask].sum()) < 5 * float(ours.standard_error) + 5
    assert made.sample(100, seed=1).num_rows == 100


def sparse_table():
    """300 records in a corner of 30 × 20 values."""
    rng = np.random.default_rng(0)
    codes = np.stack([rng.geometric(0.3, 300) - 1, rng.geometric(0.4, 300) - 1], axis=1)
    return Table.of_codes(Domain.of({"a": 30, "b": 20}), np.minimum(codes, [29, 19]))


@pytest.mark.parametrize("unit", [Unit("replace"), Unit("add-or-remove")], ids=lambda unit: unit.relation)
def test_counts_of_at_least_0_are_no_worse_than_least_squares_on_a_sparse_table(toy, unit):
    table = sparse_table()
    workload = Workload.ranges(table.domain, ["a", "b"], number=200, seed=1)
    weights = np.stack([query.weights((30, 20)).reshape(-1) for query in workload]).astype(float)
    errors = {}
    for reconstruction in ("least-squares", "non-negative"):
        for rho in ("1/100", "1", "100"):
            curator, _ = type(toy)(table, workload).curator(unit=unit, rho=rho)
            model = HDMM(reconstruction=reconstruction).run(curator, workload).model
            off = (model.count(("a", "b")) - table.count(("a", "b"))).reshape(-1)
            errors[reconstruction, rho] = math.sqrt(np.mean((weights @ off) ** 2)) / 300

    for rho in ("1/100", "1", "100"):
        assert errors["non-negative", rho] < 1.05 * errors["least-squares", rho]
    assert errors["non-negative", "1"] < 0.03
    assert errors["non-negative", "100"] < 0.003


def test_counts_of_at_least_0_are_the_nearest_in_the_norm_of_the_strategy():
    domain = Domain(("age", "hours"), (6, 5), (Combination(("age", "hours"), ((0,), (1, 2))),))
    plan = ProductPlan.of(
        domain, Workload.ranges(domain, ["age", "hours"], number=40, seed=0), objective="mean"
    )
    (query,) = plan.queries
    matrix, rng = dense(query).astype(float), np.random.default_rng(3)
    truth = np.where(rng.uniform(size=30) < 0.3, 10.0, 0.0)
    answer = matrix @ truth + rng.normal(0, 3000, len(matrix))
    known = Products(domain, (ProductEstimate.of(Measurement(query, answer, 3000.0)),), known_total=90.0)

    found = non_negative(known).estimates[0].values

    assert found.sum() == pytest.approx(90)
    assert found.min() == 0
    assert not found[0, 1:3].any()
    slope = (matrix.T @ (matrix @ found.reshape(-1) - answer)).reshape(6, 5)
    slope[0, 1:3] = np.inf
    # At the best point all counts above 0 have the same slope, and no other has a smaller one.
    level, steepest = slope[found > 0].mean(), np.linalg.eigvalsh(matrix.T @ matrix)[-1]
    assert np.abs(slope[found > 0] - level).max() < 0.01 * steepest
    assert slope.min() > level - 0.01 * steepest


def test_no_total_at_all_is_shared_by_nobody():
    everywhere = np.ones(3, dtype=bool)
    assert on_simplex(np.array([3.0, 1.0, -2.0]), 0.0, everywhere).tolist() == [0, 0, 0]


def test_a_run_refuses_attributes_too_wide_for_a_strategy_before_it_plans(toy):
    domain = Domain.of({"pay": 5000, "sex": 2})
    table = Table.of_codes(domain, np.zeros((4, 2), dtype=int))
    workload = Workload([Range((("pay", 0, 2000),))])
    curator, _ = type(toy)(table, workload).curator(unit=Unit("replace"), rho="1")

    with pytest.raises(TooLargeError, match="5,000 values"):
        HDMM().run(curator, workload)

    assert curator.remaining == curator.allotment


def test_p_identity_beats_the_identity_where_ranges_are_asked():
    plan = ProductPlan.of(DOMAIN, Workload.ranges(DOMAIN, ["age"]), objective="mean")
    (boxes,), (query,) = plan.sets, plan.queries

    price = float(query.l2_squared(Unit("add-or-remove")))

    assert price * boxes.squared_error(covariances_of(query)) < 0.9 * np.trace(boxes.gram(DOMAIN, 0))
