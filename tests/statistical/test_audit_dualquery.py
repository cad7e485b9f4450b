"""DualQuery's draws withstand an attack; with half the sensitivity, or unpaid draws, they do not."""

import math
from fractions import Fraction

import numpy as np
import pytest

from sidelight.audit import attack
from sidelight.curator.curator import Curator
from sidelight.data.domain import Domain
from sidelight.data.table import Table
from sidelight.mechanisms import dualquery
from sidelight.mechanisms.dualquery import DualQuery
from sidelight.mechanisms.dualquery_oracle import Answer
from sidelight.privacy import event
from sidelight.privacy.budget import Budget
from sidelight.privacy.ledger import MemoryLedger
from sidelight.privacy.promise import Promise
from sidelight.privacy.unit import Unit
from sidelight.queries.workload import Workload
from sidelight.select.score import SignedError
from sidelight.testing import SeededNoise

pytestmark = pytest.mark.statistical

DOMAIN = Domain.of({"a": 2})
ALONE = Workload([("a",)])
BUDGET = Budget(epsilon=2.0, delta=0.2)
N, DRAWS = 24, 12


class Told(Curator):
    """Keeps what was drawn: it is published with the journal of a run, and decides the records."""

    def draw_cells(self, candidates, score, cost, *, number):
        self.drawn = super().draw_cells(candidates, score, cost, number=number)
        return self.drawn


@pytest.fixture(autouse=True)
def idle(monkeypatch):
    """An oracle that always gives the same record: it sees drawn queries alone, and they are the prey."""
    answer = Answer(np.zeros(1, dtype=np.int64), is_best=True)
    monkeypatch.setattr(dualquery, "best_record", lambda *_, **__: answer)


def neighbours(relation):
    """Everybody is like the first round's record, so that no score is far from 0."""
    codes = np.zeros((N, 1), dtype=np.int64)
    other = codes.copy()
    other[0] = 1
    changed = other if relation == "replace" else codes[1:]
    return Table.of_codes(DOMAIN, codes), Table.of_codes(DOMAIN, changed)


def attacked(relation):
    """One round that sees the data, with as large a step as the budget pays for; by its draws."""
    unit = Unit(relation)
    # ρ = s (2η/n)²/8, so that the second round takes all there is.
    share = 1.0 if unit.total_is_public else 0.9
    step = math.sqrt(2 * share * float(BUDGET.rho()) / DRAWS) * N * 0.9
    mechanism = DualQuery(step=step, queries_per_round=DRAWS, max_rounds=2, total_share=0.1)
    # Cells 0 and 1 are the values, 2 and 3 say that it is not so: a = 1, and not a = 0.
    fewer = {1, 2}

    def one_run(table, seed):
        ledger = MemoryLedger(Promise(BUDGET, unit, "audit"))
        curator = Told(table, allotment=BUDGET.rho(), unit=unit, ledger=ledger, noise=SeededNoise(seed))
        curator.drawn = []
        mechanism.run(curator, ALONE)
        return float(sum(cell in fewer for _, cell in curator.drawn))

    return attack(one_run, neighbours(relation), delta=BUDGET.delta, runs=1500, confidence=0.99)


class HalfTheSensitivity(SignedError):
    """The planted bug."""

    def sensitivity(self, unit, query):
        return super().sensitivity(unit, query) / Fraction(2)


@pytest.mark.parametrize("relation", ["replace", "add-or-remove"])
def test_draws_withstand_the_attack(relation):
    assert not attacked(relation).refutes(BUDGET)


@pytest.mark.parametrize("relation", ["replace"])
def test_half_the_sensitivity_and_draws_that_nobody_paid_for_are_refuted(relation, monkeypatch):
    with monkeypatch.context() as planted:
        planted.setattr(dualquery, "SignedError", HalfTheSensitivity)
        assert attacked(relation).refutes(BUDGET)

    # The planted bug: all draws of a round at the price of one.
    together = event.Exponentials.together.__func__

    def unpaid(cls, cost, *, draws, **facts):
        made = together(cls, cost, draws=1, **facts)
        object.__setattr__(made, "draws", draws)
        return made

    monkeypatch.setattr(event.Exponentials, "together", classmethod(unpaid))
    assert attacked(relation).refutes(BUDGET)


def test_the_worst_neighbours_lose_what_was_paid_for():
    """Exactly, by the chances of one draw: |log Pr/Pr'| ≤ ε_t, and the worst comes near."""
    first, second = neighbours("replace")
    epsilon, model = 0.7, first
    score = SignedError(model)
    query = ALONE[0]

    def chances(table, sensitivity):
        scores = score.score(query, table.count(("a",)))
        weights = np.exp(epsilon * (scores - scores.max()) / (2 * sensitivity))
        return weights / weights.sum()

    def loss(sensitivity):
        return np.abs(np.log(chances(first, sensitivity) / chances(second, sensitivity))).max()

    declared = float(score.sensitivity(Unit("replace"), query))
    assert 0.5 * epsilon < loss(declared) <= epsilon
    assert loss(declared / 4) > epsilon
