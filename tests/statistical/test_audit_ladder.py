"""LADDER withstands attacks in both its accountings and under both units; with planted bugs it does not.

The planted bugs: half the noise on residuals, half the noise on views, and a plan that looks at the table.
"""

import itertools

import numpy as np
import pytest

from sidelight.audit import audit_mechanism
from sidelight.curator.curator import Curator
from sidelight.data.domain import Domain
from sidelight.data.table import Table
from sidelight.mechanisms.ladder import ladder
from sidelight.mechanisms.ladder.ladder import Ladder
from sidelight.privacy.budget import Budget
from sidelight.privacy.ledger import MemoryLedger
from sidelight.privacy.promise import Promise
from sidelight.privacy.unit import Unit
from sidelight.queries.query import Marginal, answer
from sidelight.queries.strategy import Closure
from sidelight.queries.workload import Workload
from sidelight.testing import SeededNoise

pytestmark = pytest.mark.statistical

DOMAIN = Domain.of({"a": 2, "b": 2, "c": 3})
PAIRS = Workload.marginals(DOMAIN, degree=2)
BUDGETS = {"zcdp": Budget(epsilon=2.0, delta=0.2), "pure": Budget(epsilon=2.0, delta=0.0)}
UNITS = ["replace", "add-or-remove"]


def table(codes):
    return Table.of_codes(DOMAIN, np.array(codes))


def neighbours(relation):
    codes = [[0, 0, 0]] * 25 + [[1, 1, 2]] * 15
    if relation == "replace":
        return table(codes), table([[1, 1, 1], *codes[1:]])  # no attribute stays as it was
    return table(codes), table(codes[1:])


def rough_sizes(domain, told, members, **others):
    """How large relations are, by noisy answers alone: the second plan follows from these."""
    pairs = [attrs for attrs in members if len(attrs) == 2 and attrs in told]
    return None, {attrs: float((told[attrs].values ** 2).mean()) for attrs in pairs}


@pytest.fixture(autouse=True)
def _estimates_stay_out(monkeypatch):
    """What is attacked are the noisy answers; the estimate sees nothing else, and takes most of the time."""
    monkeypatch.setattr(ladder, "faded", rough_sizes)
    nothing = Table.of_codes(DOMAIN, np.zeros((0, 3), dtype=int))
    monkeypatch.setattr(ladder._ESTIMATOR.__class__, "of", lambda *args, **kwargs: nothing)


def attacked(accounting, relation):
    # The count of records takes little, so that nearly all of the budget is where the attacker looks.
    return audit_mechanism(
        Ladder(accounting=accounting, total_share=1e-4), neighbours(relation), PAIRS,
        budget=BUDGETS[accounting], unit=Unit(relation), runs=400,
        confidence=0.99,
    )  # fmt: skip


@pytest.mark.parametrize("relation", UNITS)
@pytest.mark.parametrize("accounting", BUDGETS)
def test_it_withstands_the_attack_and_half_the_noise_does_not(accounting, relation, monkeypatch):
    honest = attacked(accounting, relation)
    loss, l1 = Closure.joint_loss, Marginal.l1
    monkeypatch.setattr(Closure, "joint_loss", lambda self, p, unit: loss(self, p, unit) / 4)
    monkeypatch.setattr(Marginal, "l1", lambda self, unit: l1(self, unit) / 2)
    broken = attacked(accounting, relation)

    claim = Ladder(accounting=accounting).allotment(BUDGETS[accounting])
    assert not honest.contradicts(claim)
    assert honest.found(claim) > 0.1 * float(claim)
    assert broken.contradicts(claim)


def opened(accounting, relation, private, seed=0):
    """A curator of the table, and its allotment."""
    unit, budget = Unit(relation), BUDGETS[accounting]
    allotment = Ladder(accounting=accounting).allotment(budget)
    ledger = MemoryLedger(Promise(budget, unit, "audit"))
    noise = SeededNoise(seed)
    return Curator(private, allotment=allotment, unit=unit, ledger=ledger, noise=noise), allotment


def measured(accounting, relation, private, seed=0):
    """All that one run measured, on the given table."""
    curator, allotment = opened(accounting, relation, private, seed)
    return Ladder(accounting=accounting).run(curator, PAIRS).measurements, allotment


def rate(variance):
    """1/b of the discrete Laplace noise that has this variance, 2p/(1 − p)² with p = exp(−1/b)."""
    return -np.log((variance + 1 - np.sqrt(2 * variance + 1)) / variance)


@pytest.mark.parametrize("relation", UNITS)
@pytest.mark.parametrize("accounting", BUDGETS)
def test_the_worst_of_all_neighbours_costs_what_was_paid_and_never_more(accounting, relation):
    made, paid = measured(accounting, relation, neighbours(relation)[0])
    empty = table(np.empty((0, 3), dtype=int))
    people = [table([list(cell)]) for cell in itertools.product(*map(range, DOMAIN.shape))]
    pairs = (
        itertools.combinations(people, 2) if relation == "replace" else ((empty, person) for person in people)
    )

    def cost(first, second):
        moved = [answer(one.query, first) - answer(one.query, second) for one in made]
        if accounting == "zcdp":
            return sum((by**2).sum() / (2 * one.stddev**2) for by, one in zip(moved, made, strict=True))
        return sum(np.abs(by).sum() * rate(one.stddev**2) for by, one in zip(moved, made, strict=True))

    worst = max(cost(*pair) for pair in pairs) / float(paid)

    # Where n is private, the answer that counted the records is among those made.
    assert 0.99 < worst <= 1 + 1e-6


def test_plans_follow_from_n_and_answers_alone_and_one_that_looks_at_the_table_is_told(monkeypatch):
    first, second = neighbours("replace")
    measure = Curator.measure_together

    def planned(private):
        """Both plans of a run on this table, whose answers are those of the first table."""
        plans, (told, _) = [], opened("zcdp", "replace", first)

        def answered(self, strategy, cost):
            plans.append((strategy.queries, strategy.variances))
            return measure(told, strategy, cost)

        monkeypatch.setattr(Curator, "measure_together", answered)
        measured("zcdp", "replace", private)
        return plans

    assert len(planned(first)) == 2
    assert planned(first) == planned(second)

    honest = Curator.total
    monkeypatch.setattr(
        Curator, "total", lambda self, cost: honest(self, cost) + 1e4 * (self._table.count(("a",))[0] < 25)
    )
    assert planned(first) != planned(second)
