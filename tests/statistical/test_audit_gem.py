"""GEM's selection and its measurements withstand attacks; with too small a sensitivity they do not.

Training sees noisy answers alone, so it is left out here: choices and answers are the prey. That a network
chosen by true errors is seen is tested in ``tests/unit/mechanisms/test_gem.py``.
"""

from fractions import Fraction
from typing import ClassVar

import numpy as np
import pytest

from sidelight.audit import attack, audit_mechanism
from sidelight.curator.curator import Curator
from sidelight.data.domain import Domain
from sidelight.data.table import Table
from sidelight.mechanisms.gem import rounds
from sidelight.mechanisms.gem.gem import GEM
from sidelight.privacy.budget import Budget
from sidelight.privacy.ledger import MemoryLedger
from sidelight.privacy.promise import Promise
from sidelight.privacy.unit import Unit
from sidelight.queries.query import Marginal
from sidelight.queries.workload import Workload
from sidelight.select.score import LargestError
from sidelight.testing import SeededNoise

pytestmark = pytest.mark.statistical

DOMAIN = Domain.of({"a": 2, "b": 2})
ONE_WAYS = Workload.marginals(DOMAIN, degree=1)
CHOICE = Budget(epsilon=0.5, delta=0.2)
NOISE = Budget(epsilon=1.5, delta=0.2)
ONE = {"form": "gem", "rounds": 1}


class Untrained:
    """In the place of a network: it answers as if all cells were alike, and stays as it is."""

    domain = DOMAIN
    weights: ClassVar[dict[str, np.ndarray]] = {}

    def answers(self, total):
        self.total = total
        return self

    def count(self, attrs):
        return np.full(DOMAIN.project(attrs).shape, self.total / DOMAIN.size(attrs))

    def count_each(self, wanted):
        return enumerate(map(self.count, wanted))

    def largest_error(self, targets):
        return 1.0

    def train(self, targets, how, *, floor, rng):
        return []

    def with_weights(self, weights):
        return self

    mixture = answers


@pytest.fixture(autouse=True)
def untrained(monkeypatch):
    monkeypatch.setattr(GEM, "_start", lambda *_: Untrained())


def table(ones_in_a, ones_in_b, records=24):
    codes = np.zeros((records, 2), dtype=np.uint8)
    codes[:ones_in_a, 0] = 1
    codes[ones_in_a : ones_in_a + ones_in_b, 1] = 1
    return Table.of_codes(DOMAIN, codes)


def choices_attacked():
    """A record (1, 0) becomes (0, 1): the largest error of a rises by 1, that of b falls by 1."""

    def one_run(private, seed):
        ledger = MemoryLedger(Promise(CHOICE, Unit("replace"), "audit"))
        curator = Curator(
            private, allotment=CHOICE.rho(), unit=Unit("replace"), ledger=ledger, noise=SeededNoise(seed)
        )
        made = GEM(select_share=0.999, **ONE).run(curator, ONE_WAYS).measurements
        return float(made[0].query.attrs == ("a",))

    return attack(one_run, (table(8, 7), table(7, 8)), delta=CHOICE.delta, runs=1500, confidence=0.99)


class HalfTheSensitivity(LargestError):
    """The planted bug."""

    def sensitivity(self, unit, query):
        return super().sensitivity(unit, query) / Fraction(2)


def test_choices_withstand_the_attack_and_half_the_sensitivity_does_not(monkeypatch):
    assert not choices_attacked().refutes(CHOICE)

    monkeypatch.setattr(rounds, "LargestError", HalfTheSensitivity)
    assert choices_attacked().refutes(CHOICE)


@pytest.mark.parametrize("relation", ["replace", "add-or-remove"])
def test_measurements_withstand_the_attack_and_a_quarter_of_the_variance_does_not(relation, monkeypatch):
    neighbours = table(8, 7), table(7, 8) if relation == "replace" else table(7, 7, records=23)

    def attacked():
        return audit_mechanism(
            GEM(select_share=0.001, total_share=0.001, **ONE), neighbours, Workload([("a", "b")]),
            budget=NOISE, unit=Unit(relation), runs=1500, confidence=0.99,
        )  # fmt: skip

    assert not attacked().refutes(NOISE)
    full = Marginal.l2_squared
    monkeypatch.setattr(Marginal, "l2_squared", lambda self, unit: full(self, unit) / 4)
    assert attacked().refutes(NOISE)
