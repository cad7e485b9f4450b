"""DualQuery: its budget, its draws, and its oracle against exhaustive search (spec 7.4 and 10.7)."""

import itertools
from fractions import Fraction

import numpy as np
import pytest

import sidelight as sl
from sidelight.data.domain import Combination, Domain
from sidelight.data.impossible import is_possible
from sidelight.data.schema import Schema
from sidelight.data.table import Table
from sidelight.errors import SettingError, TooLargeError, WorkloadError
from sidelight.mechanisms import dualquery_oracle
from sidelight.mechanisms.dualquery import DualQuery, _clause
from sidelight.mechanisms.dualquery_oracle import Clause, best_record
from sidelight.privacy.budget import Budget, Epsilon, Rho
from sidelight.privacy.event import Exponentials, Gaussian
from sidelight.privacy.ledger import MemoryLedger
from sidelight.privacy.promise import Promise
from sidelight.privacy.unit import Unit
from sidelight.queries.query import Cell, Linear, Marginal, Range
from sidelight.queries.workload import Workload
from sidelight.select.score import SignedError

BINARY = Domain.of({f"x{place}": 2 for place in range(10)})
MIXED = Domain.of({"a": 2, "b": 3, "c": 4, "d": 5})


def drawn_clauses(domain, number, degree, rng):
    """Cells of random marginals, half of them negated, as DualQuery draws them."""
    clauses = []
    for _ in range(number):
        attrs = tuple(rng.choice(domain.attrs, degree, replace=False))
        values = [int(rng.integers(0, domain.sizes[attr])) for attr in attrs]
        allowed = tuple((attr, frozenset([value])) for attr, value in zip(attrs, values, strict=True))
        clauses.append(Clause(allowed, is_negated=bool(rng.integers(0, 2))))
    return clauses


def exhaustive(domain, clauses):
    """The most queries that any possible record satisfies."""
    everything = np.array(list(itertools.product(*(range(size) for size in domain.shape))))
    everything = everything[is_possible(domain, everything)]
    return int(sum(clause.satisfied(domain, everything).astype(int) for clause in clauses).max())


def satisfied(domain, clauses, record):
    return sum(int(clause.satisfied(domain, record[None, :])[0]) for clause in clauses)


@pytest.mark.parametrize("domain", [BINARY, MIXED], ids=["binary", "mixed"])
@pytest.mark.parametrize("seed", range(5))
def test_the_oracles_record_is_the_best_of_all(domain, seed):
    rng = np.random.default_rng(seed)
    clauses = drawn_clauses(domain, 40, 3, rng)

    found = best_record(domain, clauses, nodes=10_000, rng=rng)

    assert found.is_best
    assert satisfied(domain, clauses, found.record) == exhaustive(domain, clauses)


@pytest.mark.parametrize("seed", range(3))
def test_ranges_and_impossible_combinations_are_kept(seed):
    impossible = (Combination.of({"a": [0], "b": [2]}), Combination.of({"c": [0, 1], "d": [1, 2]}))
    domain = Domain(MIXED.attrs, MIXED.shape, impossible)
    rng = np.random.default_rng(seed)
    clauses = drawn_clauses(domain, 30, 2, rng)
    clauses += [Clause((("d", frozenset([1, 2, 3])), ("a", frozenset([0]))), is_negated=False)] * 4

    found = best_record(domain, clauses, nodes=10_000, rng=rng)

    assert is_possible(domain, found.record[None, :]).all()
    assert satisfied(domain, clauses, found.record) == exhaustive(domain, clauses)


@pytest.mark.parametrize("solution", [None, "wrong"])
def test_an_oracle_that_is_cut_off_gives_a_record_all_the_same(solution, monkeypatch):
    """Whether the solver came up with nothing or with something bad, a greedy ascent is there beside it."""
    rng = np.random.default_rng(0)
    clauses = drawn_clauses(MIXED, 40, 3, rng)

    class CutOff:
        status = 1
        x = None

    def milp(objective, **_):
        made = CutOff()
        made.x = None if solution is None else np.zeros(len(objective))
        return made

    monkeypatch.setattr(dualquery_oracle, "milp", milp)
    found = best_record(MIXED, clauses, nodes=1, rng=rng)

    assert not found.is_best
    assert satisfied(MIXED, clauses, found.record) >= 0.8 * exhaustive(MIXED, clauses)


def test_a_release_says_how_often_the_oracle_was_cut_off(toy, monkeypatch):
    class CutOff:
        status, x = 1, None

    monkeypatch.setattr(dualquery_oracle, "milp", lambda *_, **__: CutOff())
    curator, _ = toy.curator()

    outcome = DualQuery(max_rounds=5).run(curator, toy.workload)

    assert "5 rounds gave 5 records; in 5 of them the integer program was cut off" in outcome.notes[0]


@pytest.mark.parametrize(
    ("budget", "rounds"),
    [
        (Rho(Fraction(7125, 10**6)), 10),
        (Rho(Fraction(7124, 10**6)), 9),
        (Epsilon(Fraction(9, 2)), 10),
        (Epsilon(Fraction(449, 100)), 9),
        (Rho(Fraction(1, 10**12)), 1),
    ],
)
def test_the_budget_decides_how_many_rounds_there_are(budget, rounds):
    """Spec 10.7: n = 1000, η = 1, s = 50: ten rounds cost ε = 4.5, or ρ = 0.007125."""
    assert DualQuery(step=1.0).rounds(budget, 1000, Unit("replace")) == rounds


@pytest.mark.parametrize("unit", [Unit("replace"), Unit("add-or-remove"), Unit("replace", records=3)])
def test_what_is_spent_is_what_the_formula_says(toy, unit):
    curator, _ = toy.curator(unit=unit, rho="1/100")

    outcome = DualQuery(queries_per_round=7, step=0.5).run(curator, toy.workload)

    events = [event for event in curator.events if isinstance(event, Exponentials)]
    n, k, rounds = outcome.total, unit.records, len(events) + 1
    assert [float(e.epsilon) for e in events] == pytest.approx(
        [2 * 0.5 * t * k / n for t in range(1, rounds)]
    )
    rho = 7 * (0.5 * k) ** 2 * rounds * (rounds - 1) * (2 * rounds - 1) / (12 * n**2)
    assert sum(float(e.cost) for e in events) == pytest.approx(rho)
    assert {event.sensitivity for event in events} == {Fraction(k)}
    assert {event.draws for event in events} == {7}
    counted = [event for event in curator.events if isinstance(event, Gaussian)]
    assert len(counted) == (0 if unit.total_is_public else 1)
    # One round more would have been too much.
    another = DualQuery(queries_per_round=7, step=0.5)._round_cost(rounds + 1, n, unit, Rho)
    assert another.value > curator.remaining.value


def test_a_release_has_as_many_records_as_rounds(toy):
    curator, _ = toy.curator()

    outcome = DualQuery(max_rounds=12).run(curator, toy.workload)

    assert np.allclose(outcome.model.weights * 12 / 600, np.rint(outcome.model.weights * 12 / 600))
    assert outcome.measurements == ()
    assert len(curator.events) == 11


def test_a_signed_error_has_a_score_for_each_cell_and_for_its_negation():
    class Fixed:
        def count(self, attrs):
            return np.array([4.0, 6.0])

    score = SignedError(Fixed())
    ((_, score_of),) = score.each([Marginal(("a",))])

    assert score_of(np.array([5, 5])).tolist() == [1.0, -1.0, -1.0, 1.0]
    assert score.sensitivity(Unit("replace"), Marginal(("a",))) == 1
    assert score.sensitivity(Unit("add-or-remove", records=2), Marginal(("a",))) == 2


def test_a_drawn_place_becomes_the_query_of_that_cell():
    query = Marginal(("b", "c"))

    clause, negated = _clause(query, MIXED, 7), _clause(query, MIXED, 12 + 7)

    assert clause.allowed == (("b", frozenset([1])), ("c", frozenset([3])))
    assert (clause.is_negated, negated.is_negated) == (False, True)
    assert negated.allowed == clause.allowed
    assert _clause(Range((("d", 1, 3),)), MIXED, 1).allowed == (("d", frozenset([1, 2, 3])),)
    assert _clause(Cell(("a",), (1,)), MIXED, 0).allowed == (("a", frozenset([1])),)


def test_what_it_cannot_do_is_refused_before_anything_is_spent():
    wide = Domain.of(dict.fromkeys("abcde", 3000))

    def refused(error, match, *, epsilon=1.0, workload="2-way", domain=MIXED, **settings):
        schema = Schema.from_domain(domain)
        table = Table.of_codes(domain, np.zeros((50, len(domain)), dtype=int))
        ledger = MemoryLedger(Promise(Budget(epsilon=2.0, delta=1e-9), Unit("replace"), "toy"))
        with pytest.raises(error, match=match):
            sl.release(
                table, schema=schema, epsilon=epsilon, mechanism="dualquery", workload=workload,
                ledger=ledger, progress=False, **settings,
            )  # fmt: skip
        assert not ledger.runs()

    refused(WorkloadError, "satisfies or not", workload=Workload([Linear.of(("a",), [0.5, 1.0])]))
    refused(WorkloadError, "total alone", workload=[()])
    refused(TooLargeError, "fewer or smaller marginals .the widest, a × b × c", workload="3-way", domain=wide)
    refused(SettingError, "pays for no round that sees the data", epsilon=0.001, step=5.0)
    refused(SettingError, "oracle_nodes must be", oracle_nodes=0)
    refused(SettingError, "queries_per_round must be", queries_per_round=0)
    refused(SettingError, "accounting must be one of", accounting="x")
