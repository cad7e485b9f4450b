import itertools
from dataclasses import fields

import numpy as np
import pytest

from sidelight.data.domain import Domain
from sidelight.errors import WorkloadError
from sidelight.evaluation.downstream import Downstream
from sidelight.evaluation.metric import METRICS
from sidelight.evaluation.workload_errors import (
    Errors,
    max_error,
    workload_error,
)
from sidelight.models.histogram import Histogram
from sidelight.queries.query import Marginal, Range
from sidelight.queries.workload import Workload

DOMAIN = Domain.of({"a": 2, "b": 2})


def table(*counts):
    counts = np.array(counts, dtype=float).reshape(2, 2)
    return Histogram(DOMAIN, counts, float(counts.sum()))


def test_equal_tables_have_no_error():
    errors = Errors.of(table(1, 2, 3, 4), table(1, 2, 3, 4), Workload.cuboids(DOMAIN), total=10)

    assert set(vars(errors).values()) == {0.0}


def test_disjoint_tables_have_workload_error_two_and_max_error_one():
    workload = Workload([("a",), ("a", "b")])

    assert workload_error(table(10, 0, 0, 0), table(0, 0, 0, 10), workload, total=10) == 2.0
    assert max_error(table(10, 0, 0, 0), table(0, 0, 0, 10), workload, total=10) == 1.0


def test_weights_weigh_the_workload_error_alone():
    exact, released = table(10, 0, 0, 0), table(5, 5, 0, 0)  # b is wrong, a is right
    weighted = Workload([("a",), ("b",)], weights=[3, 1])

    errors = Errors.of(exact, released, weighted, total=10)

    assert errors.workload_error == pytest.approx((3 * 0 + 1 * 10) / (10 * 4))
    assert errors.mean_error == pytest.approx(10 / (4 * 10))
    assert errors.squared_error_per_query == pytest.approx(50 / 4)
    assert errors.mean_squared_error == pytest.approx(50 / 4 / 100)


def test_a_cuboids_error_is_the_mean_of_its_cells_and_the_empty_one_is_the_totals():
    errors = Errors.of(table(1, 2, 3, 4), table(1, 2, 3, 8), Workload.cuboids(DOMAIN), total=10)

    assert errors.cuboid_max == 4.0  # the total: one cell, off by 4
    assert errors.cuboid_mean == pytest.approx((4 + 2 + 2 + 1) / 4)


def test_all_cuboids_are_two_to_the_number_of_attributes():
    assert len(Workload.cuboids(DOMAIN)) == 4


def test_ranges_are_compared_one_by_one():
    workload = Workload([Range((("a", 0, 0),)), Range((("a", 0, 1),))])

    errors = Errors.of(table(4, 4, 1, 1), table(2, 4, 3, 1), workload, total=10)

    assert errors.squared_error_per_query == pytest.approx((4 + 0) / 2)
    assert errors.max_error == pytest.approx(0.2)


def test_a_table_without_records_is_refused():
    with pytest.raises(WorkloadError, match="the table has none"):
        Errors.of(table(0, 0, 0, 0), table(1, 1, 1, 1), Workload([Marginal(("a",))]), total=0)


def test_every_metric_states_its_range_and_goal():
    metrics = METRICS.values()

    assert METRICS.keys() == {field.name for kind in (Errors, Downstream) for field in fields(kind)}
    assert all(one.low == 0 for one in metrics)
    assert {one.name for one in metrics if one.goal == "high"} == {
        "accuracy, trained on A",
        "accuracy, trained on D",
        "accuracy, commonest class",
    }
    assert METRICS["workload_error"].range == "0 to 2"
    assert METRICS["squared_error_per_query"].range == "0 and above"
    assert all(one.name != other.name for one, other in itertools.combinations(metrics, 2))
