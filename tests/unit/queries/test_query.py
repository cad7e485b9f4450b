"""Queries: their answers, and sensitivities checked against every possible change of one record."""

import itertools
from fractions import Fraction

import numpy as np
import pytest

from sidelight.data.domain import Domain
from sidelight.errors import WorkloadError
from sidelight.privacy.unit import Unit
from sidelight.queries.query import (
    Cell,
    Fourier,
    Linear,
    Marginal,
    Prefix,
    Query,
    Range,
    query_from_json,
    whole,
)

DOMAIN = Domain.of({"a": 2, "b": 3, "c": 2})
QUERIES: list[Query] = [
    Marginal(("a", "b")),
    Marginal(("b",)),
    Cell(("b", "a"), (2, 1)),
    Range((("b", 1, 2),)),
    Range((("a", 0, 0), ("b", 0, 1))),
    Prefix("b", 1),
    Linear.of(("b",), [0.25, -0.5, 1.0]),
    Linear.of(("a", "b"), [[1.0, 0.5, 0.5], [0.75, 0.5, 1.0]]),
    Fourier(("a", "c")),
]


def one_record(query: Query, record: tuple[int, ...]) -> np.ndarray:
    projected = DOMAIN.project(query.attrs)
    counts = np.zeros(projected.shape, dtype=np.int64)
    counts[tuple(record[DOMAIN.attrs.index(attr)] for attr in query.attrs)] = 1
    return query.apply(counts)


@pytest.mark.parametrize("records", [1, 2])
@pytest.mark.parametrize("relation", ["replace", "add-or-remove"])
@pytest.mark.parametrize("query", QUERIES, ids=lambda query: query.describe())
def test_the_sensitivity_is_the_largest_change_that_one_person_can_make(query, relation, records):
    contributions = [one_record(query, r) for r in itertools.product(*map(range, DOMAIN.shape))]
    # All of a person's records may be alike, and that is the worst case for a linear query.
    if relation == "replace":
        changes = [records * (x - y) for x, y in itertools.product(contributions, repeat=2)]
    else:
        changes = [records * x for x in contributions]
    worst_l1 = max(np.abs(change).sum() for change in changes)
    worst_l2_squared = max((np.asarray(change, dtype=float) ** 2).sum() for change in changes)

    unit = Unit(relation, records)

    assert float(query.l1(unit)) == pytest.approx(worst_l1)
    assert float(query.l2_squared(unit)) == pytest.approx(worst_l2_squared)


@pytest.mark.parametrize("query", QUERIES, ids=lambda query: query.describe())
def test_transpose_is_the_adjoint_of_apply(query):
    rng = np.random.default_rng(3)
    shape = DOMAIN.project(query.attrs).shape
    counts = rng.integers(0, 9, shape)
    vector = rng.normal(size=query.cells(DOMAIN))

    forward = float(query.apply(counts) @ vector)
    backward = float((counts * query.transpose(vector, shape)).sum())

    assert forward == pytest.approx(backward)


@pytest.mark.parametrize("query", QUERIES, ids=lambda query: query.describe())
def test_a_query_comes_back_from_json(query):
    assert query_from_json(query.as_json()) == query


def test_exact_answers_are_whole_multiples_of_the_resolution():
    query = Linear.of(("b",), [0.1, -0.7, 0.3333])
    counts = np.array([1_000_003, 999_999, 17])

    steps = whole(query, query.apply(counts))

    assert Fraction(int(steps[0])) == sum(
        Fraction(int(n) * int(w)) for n, w in zip(counts, query.numerators, strict=True)
    )


def test_a_linear_query_outside_minus_one_to_one_is_refused():
    with pytest.raises(WorkloadError, match="between -1 and 1"):
        Linear.of(("b",), [0.0, 1.5, 0.0])


@pytest.mark.parametrize(
    ("query", "says"),
    [
        (Marginal(("a", "nowhere")), "unknown attribute 'nowhere'"),
        (Marginal(("a", "a")), "names an attribute twice"),
        (Range((("b", 1, 3),)), "codes 0 to 2"),
        (Range((("b", 2, 1),)), "codes 0 to 2"),
        (Cell(("b",), (3,)), "codes 0 to 2"),
        (Linear.of(("b",), [1.0, 0.0]), "has shape"),
        (Fourier(("b",)), "binary"),
    ],
)
def test_a_query_that_does_not_fit_the_domain_is_refused(query, says):
    with pytest.raises(WorkloadError, match=says):
        query.check(DOMAIN)
