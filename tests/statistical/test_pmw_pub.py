"""Attacks on PMW-Pub, MWEM+PUB and screening: the mechanisms hold, and planted bugs are caught."""

import math
from fractions import Fraction

import numpy as np
import pytest

from sidelight.audit import attack
from sidelight.curator.curator import Curator
from sidelight.data.domain import Domain
from sidelight.data.table import Table
from sidelight.evaluation.screening_curator import ScreeningCurator
from sidelight.measurement import Measurement
from sidelight.mechanisms.mwem_pub import MWEMPub
from sidelight.mechanisms.pmw_pub import PMWPub
from sidelight.models.support import Support
from sidelight.privacy.budget import Budget, Epsilon
from sidelight.privacy.ledger import MemoryLedger
from sidelight.privacy.promise import Promise
from sidelight.privacy.unit import Unit
from sidelight.queries.query import answer
from sidelight.queries.workload import Workload
from sidelight.testing import SeededNoise

pytestmark = [pytest.mark.statistical, pytest.mark.slow]

DOMAIN = Domain.of({"a": 2})
UNIT = Unit("replace")
BUDGET = Budget(epsilon=1.0, delta=0.01)
NEIGHBOURS = tuple(
    Table.of_codes(DOMAIN, np.array([[0]] * zeros + [[1]] * (40 - zeros))) for zeros in (20, 21)
)
PUBLIC = Table.of_codes(DOMAIN, np.array([[0]] * 200 + [[1]] * 200))
WORKLOAD = Workload.of("1-way", DOMAIN)


class NoiseForThePublicSize(Curator):
    """Planted: sensitivity 1/n of the public table, ten times larger, as a public library once had it."""

    def measure(self, query, cost, **settings):
        paid = super().measure(query, cost, **settings)
        exact = self._exact(query)
        return Measurement(query, exact + (paid.answer - exact) * 40 / 400, paid.stddev * 40 / 400)


class NoiseOfScaleHalfEpsilon(Curator):
    """Planted: Lap(ε₀/2), the rate that the paper prints, in place of the scale 2/ε₀."""

    def measure(self, query, cost, **settings):
        paid = super().measure(query, cost, **settings)
        exact = self._exact(query)
        scale = float(self.events[-1].scale)
        return Measurement(query, exact + (paid.answer - exact) / scale**2, paid.stddev / scale**2)


class NoiseDrawnOnce(Curator):
    """Planted: one draw for all measurements, so that differences are exact."""

    def measure(self, query, cost, **settings):
        paid = super().measure(query, cost, **settings)
        exact = self._exact(query)
        self.drawn = getattr(self, "drawn", paid.answer - exact)
        return Measurement(query, exact + self.drawn, paid.stddev)


def attacked(mechanism, curator_kind, *, runs=600):
    def statistic(table, seed):
        ledger = MemoryLedger(Promise(BUDGET, UNIT, "audit"))
        curator = curator_kind(
            table, allotment=mechanism.allotment(BUDGET), unit=UNIT, ledger=ledger, noise=SeededNoise(seed)
        )
        measurements = mechanism.run(curator, WORKLOAD, public=PUBLIC).measurements
        if curator_kind is NoiseDrawnOnce:
            by_query = {m.query: float(m.answer[0]) for m in measurements}
            sides = [by_query[q] for q in sorted(by_query, key=lambda q: q.values)]
            return sides[0] - sides[1] if len(sides) == 2 else 0.0
        ratio = 0.0
        for m in measurements:
            first, second = (answer(m.query, neighbour) for neighbour in NEIGHBOURS)
            ratio += float((((m.answer - first) ** 2 - (m.answer - second) ** 2) / (2 * m.stddev**2)).sum())
        return ratio

    return attack(statistic, NEIGHBOURS, delta=BUDGET.delta, runs=runs)


@pytest.mark.parametrize("mechanism", [PMWPub(rounds=4), MWEMPub(rounds=4)], ids=lambda m: m.name)
def test_an_attack_finds_nothing_wrong(mechanism):
    assert not attacked(mechanism, Curator).refutes(BUDGET)


@pytest.mark.parametrize(
    ("mechanism", "planted"),
    [
        (PMWPub(rounds=4), NoiseForThePublicSize),
        (MWEMPub(rounds=4), NoiseOfScaleHalfEpsilon),
        (PMWPub(rounds=8), NoiseDrawnOnce),
    ],
    ids=["public n in place of private n", "Lap(ε₀/2)", "a reused draw"],
)
def test_a_planted_bug_is_caught(mechanism, planted):
    assert attacked(mechanism, planted).refutes(BUDGET)


def test_the_screening_noise_has_the_scale_that_was_paid_for():
    """b = (1/n + 2τ + a grid step)/ε is accepted; ten per cent less or more is rejected."""
    private = NEIGHBOURS[0]
    public = Support.of_table(Table.of_codes(DOMAIN, np.array([[0]])), total=1.0)
    epsilon, n = 0.5, 40
    ledger = MemoryLedger(Promise(Budget(epsilon=1e6, delta=0.0), UNIT, "screening"))
    curator = ScreeningCurator(
        private, allotment=Epsilon(Fraction(10**6)), unit=UNIT, ledger=ledger, noise=SeededNoise(5)
    )

    noisy = [
        curator.best_mixture(public, WORKLOAD, Epsilon(Fraction(1, 2)), name="one").error for _ in range(6000)
    ]

    # The one public record has a = 0, so f = 20/40; E|noise| = b, and |noise| has standard deviation b.
    size = np.abs(np.array(noisy) - 0.5).mean()
    scale = (1 + 0.1 + 1 / 64) / n / epsilon
    off = {k: abs(size / (k * scale) - 1) * math.sqrt(len(noisy)) for k in (0.9, 1.0, 1.1)}
    assert off[1.0] < 4
    assert min(off[0.9], off[1.1]) > 6
    assert math.isclose(float(np.median(noisy)), 0.5, abs_tol=0.01)
