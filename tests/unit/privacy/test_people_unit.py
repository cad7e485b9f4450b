"""Replacing a person whose records are bounded: sensitivities against all neighbours of a small domain."""

import itertools
from fractions import Fraction

import numpy as np
import pytest

from sidelight.data.domain import Domain
from sidelight.errors import SettingError
from sidelight.privacy.budget import Budget
from sidelight.privacy.promise import Promise, agreed_unit
from sidelight.privacy.unit import Unit
from sidelight.queries.numbers import Batch
from sidelight.queries.query import Cell, Linear, Marginal
from sidelight.queries.residual import Residual
from sidelight.queries.strategy import Closure, Strategy

DOMAIN = Domain.of({"a": 2, "b": 3})
CELLS = list(itertools.product(range(2), range(3)))
K = 2
PERSON = Unit("replace", K, "who")
ONE = 2**20


def histogram(records):
    counts = np.zeros(DOMAIN.shape, dtype=np.int64)
    for cell in records:
        counts[cell] += 1
    return counts


PEOPLE = [
    histogram(records)
    for size in range(K + 1)
    for records in itertools.combinations_with_replacement(CELLS, size)
]
MOVES = [after - before for before, after in itertools.product(PEOPLE, PEOPLE)]


def answers(query):
    aside = tuple(axis for axis, attr in enumerate(DOMAIN.attrs) if attr not in query.attrs)
    return [np.asarray(query.apply(move.sum(axis=aside))) for move in MOVES]


@pytest.mark.parametrize(
    "query",
    [
        Marginal(("a", "b")),
        Marginal(("b",)),
        Cell(("a",), (1,)),
        Linear(("a",), (2,), (ONE, ONE // 2)),
        Linear(("a",), (2,), (-ONE, ONE // 4)),
        Residual(("a", "b"), (2, 3)),
        Residual(("b",), (3,)),
        Residual((), ()),
    ],
    ids=str,
)
def test_no_neighbour_moves_an_answer_further_and_one_moves_it_as_far(query):
    moved = answers(query)

    furthest = max(Fraction(int((np.abs(move) / float(query.resolution)).sum())) for move in moved)
    squared = max(Fraction(int(((move / float(query.resolution)) ** 2).sum())) for move in moved)

    assert furthest <= query.l1(PERSON) / query.resolution
    assert squared == query.l2_squared(PERSON) / query.resolution**2


def test_the_total_moves_by_at_most_k_and_is_private():
    assert max(abs(int(move.sum())) for move in MOVES) == K
    assert not PERSON.total_is_public
    assert Unit("replace", K).total_is_public


def test_the_loss_of_queries_measured_together_holds_for_every_neighbour():
    closure = Closure.of(DOMAIN, [("a", "b")])
    shapes = {attrs: tuple(DOMAIN.sizes[attr] for attr in attrs) for attrs in closure.members}
    # Most precise about the total: then a person who comes with k records is worst, else one who changes.
    for variances in ((1, 50, 50, 500), (50, 1, 1, 5)):
        queries = tuple(Residual(attrs, shapes[attrs]) for attrs in closure.members)
        strategy = Strategy(closure, queries, tuple(map(Fraction, variances)))
        losses = sum(
            np.array([float((move**2).sum()) for move in answers(query)]) / variance
            for query, variance in zip(queries, variances, strict=True)
        )

        assert max(losses) == pytest.approx(float(strategy.loss(PERSON)), rel=1e-9)


def test_a_batch_is_as_wide_as_the_wider_of_two_relations():
    batch = Batch(("a",), (Linear(("a",), (2,), (ONE, ONE // 2)),))

    assert batch.widest(PERSON) == K


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        ({"person": ["a", "b"]}, "one column"),
        ({"person": ""}, "one column"),
        ({"person": "who", "records": 0}, "at least 1"),
        ({"person": "who", "records": "many"}, "at least 1"),
        ({"records": "auto"}, "needs person"),
        ({"missing_person": "own"}, "needs person"),
        ({"person": "who", "missing_person": "guess"}, "'refuse', 'own'"),
    ],
)
def test_a_unit_that_makes_no_sense_is_refused(facts, said):
    with pytest.raises(SettingError, match=said):
        Unit.said(**facts)


def test_a_ledger_promises_the_same_however_many_records_are_used():
    promise = Promise(Budget(epsilon=1.0, delta=1e-9), Unit("replace", 7, "who"), "people")
    kept = Promise.from_json(promise.as_json())
    three = Unit("replace", 3, "who", "own")

    assert agreed_unit(asked=three, promise=kept) == three
    assert agreed_unit(declared=three, promise=kept) == three
    assert agreed_unit(promise=kept).records == 1
    for other in (Unit("replace", 3), Unit("add-or-remove", 3, "who"), Unit("replace", 3, "whom")):
        with pytest.raises(SettingError):
            agreed_unit(asked=other, promise=kept)
    with pytest.raises(SettingError, match="the schema declares"):
        agreed_unit(asked=three, declared=three.with_records(5), promise=kept)


def test_a_promise_without_people_is_written_as_it_always_was():
    promise = Promise(Budget(epsilon=1.0, delta=1e-9), Unit("replace", 7), "people")

    assert promise.as_json()["unit"] == {"relation": "replace", "records": 7}
