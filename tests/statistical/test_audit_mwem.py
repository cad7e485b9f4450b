"""MWEM one number at a time, and Barak: they withstand the attack; with a planted bug each does not."""

from fractions import Fraction

import numpy as np
import pytest

from sidelight.audit import attack, audit_mechanism
from sidelight.curator.curator import Curator
from sidelight.data.domain import Domain
from sidelight.data.table import Table
from sidelight.mechanisms.barak import Barak
from sidelight.mechanisms.mwem import MWEM
from sidelight.privacy.budget import Budget
from sidelight.privacy.ledger import MemoryLedger
from sidelight.privacy.promise import Promise
from sidelight.privacy.unit import Unit
from sidelight.queries.workload import Workload
from sidelight.testing import SeededNoise

pytestmark = pytest.mark.statistical

DOMAIN = Domain.of({"a": 2})
WORKLOAD = Workload.marginals(DOMAIN, degree=1)
PURE = Budget(epsilon=2.0, delta=0.0)
ZCDP = Budget(epsilon=2.0, delta=0.01)
# Most of the budget goes where the attacker looks: into one measurement that the neighbours differ in.
BY_NUMBER = {"rounds": 1, "candidates": "queries", "passes": 0, "select_share": 0.1}


class HalvedScalars(Unit):
    """The planted bug: a number between −1 and 1, or 0 and 1, is said to move half as far as it can."""

    def scalar(self, low, high):
        return super().scalar(low, high) / Fraction(2)


def neighbours():
    codes = np.array([[0]] * 14 + [[1]] * 10)
    other = codes.copy()
    other[0] = [1]
    return Table.of_codes(DOMAIN, codes), Table.of_codes(DOMAIN, other)


@pytest.mark.parametrize(
    ("mechanism", "budget"),
    [
        (MWEM(**BY_NUMBER), ZCDP),
        (MWEM(**BY_NUMBER, accounting="pure"), PURE),
        (Barak(passes=1), ZCDP),
        (Barak(passes=1, accounting="pure"), PURE),
    ],
    ids=["mwem-zcdp", "mwem-pure", "barak-zcdp", "barak-pure"],
)
def test_the_promise_withstands_the_attack_and_half_the_sensitivity_does_not(mechanism, budget):
    honest = audit_mechanism(
        mechanism, neighbours(), WORKLOAD, budget=budget, unit=Unit("replace"), runs=1000, confidence=0.99
    )
    broken = audit_mechanism(
        mechanism,
        neighbours(),
        WORKLOAD,
        budget=budget,
        unit=HalvedScalars("replace"),
        runs=1000,
        confidence=0.99,
    )

    assert not honest.refutes(budget)
    # The attack has teeth: it sees a part of what a correct run gives away. In zCDP that is little, since
    # ρ pays for ε at a far smaller δ than an audit can look at.
    assert honest.epsilon > 0.05 * budget.epsilon
    assert broken.epsilon > 1.4 * honest.epsilon
    assert broken.refutes(budget) or not budget.is_pure


def test_the_noisy_start_withstands_the_attack():
    mwem = MWEM(rounds=1, histogram_share=0.8, passes=0, accounting="pure")

    found = audit_mechanism(mwem, neighbours(), WORKLOAD, budget=PURE, unit=Unit("replace"), runs=1000)

    assert 0.05 * PURE.epsilon < found.epsilon <= PURE.epsilon


class StuckNoise(SeededNoise):
    """The planted bug: every draw of a run starts from the same words."""

    def __init__(self, seed):
        super().__init__(seed)
        self._seed = seed

    def words(self, count):
        return SeededNoise(self._seed).words(count)


@pytest.mark.parametrize(("noise", "is_caught"), [(SeededNoise, False), (StuckNoise, True)])
def test_a_reused_noise_draw_is_caught(noise, is_caught):
    """Two coefficients with the same noise have an exact difference."""
    pairs = Domain.of({"a": 2, "b": 2})

    def difference(table, seed):
        curator = Curator(
            table,
            allotment=PURE.pure(),
            unit=Unit("replace"),
            ledger=MemoryLedger(Promise(PURE, Unit("replace"), "audit")),
            noise=noise(seed),
        )
        release = Barak(accounting="pure", passes=1).run(curator, Workload.marginals(pairs, degree=2))
        of_a, of_b, _ = release.measurements
        return float(of_b.answer[0] - of_a.answer[0])

    codes = np.array([[0, 0]] * 8 + [[1, 0]] * 4)
    moved = codes.copy()
    moved[0] = [1, 0]
    tables = Table.of_codes(pairs, codes), Table.of_codes(pairs, moved)

    assert attack(difference, tables, delta=0.0, runs=800).refutes(PURE) is is_caught
