"""The theorem of docs/papers/aperture.md: what a contest chooses is hardly worse than the best candidate."""

import math
from fractions import Fraction

import numpy as np
import pytest

from sidelight.curator.curator import Curator
from sidelight.data.domain import Domain
from sidelight.data.table import Table
from sidelight.privacy.budget import Budget, Rho
from sidelight.privacy.ledger import MemoryLedger
from sidelight.privacy.promise import Promise
from sidelight.privacy.unit import Unit
from sidelight.queries.query import Marginal
from sidelight.select.judgement import LeastError, excess
from sidelight.testing import SeededNoise

DOMAIN = Domain.of({"a": 3, "b": 4, "c": 2})
SETS = [("a", "b"), ("b", "c"), ("c", "a")]
UNIT = Unit("replace")
CONTESTS, FAILURE = 1000, 0.05

pytestmark = pytest.mark.slow


class Answering:
    """A candidate: any counts at all, with the right total."""

    domain = DOMAIN

    def __init__(self, counts):
        self.counts = counts

    def count(self, attrs):
        return self.counts[attrs]

    def count_each(self, wanted):
        return [(place, self.counts[attrs]) for place, attrs in enumerate(wanted)]


class Blurred(LeastError):
    """The planted bug: options are told apart an eighth as well as is paid for."""

    def each(self, queries):
        for place, added in super().each(queries):
            yield place, lambda exact, added=added: added(exact) / 8


def contest(rng, kind=LeastError):
    """Whether a random contest keeps the bound: of candidates near and far, with any odds and budget."""
    n = int(rng.integers(50, 2000))
    codes = np.stack([rng.integers(0, size, n) for size in DOMAIN.shape], axis=1)
    table = Table.of_codes(DOMAIN, codes)
    number = int(rng.integers(2, 12))
    models = []
    for _ in range(number):
        far = rng.uniform(0, 1) ** 3
        models.append(
            Answering(
                {
                    c: (1 - far) * table.count(c) + far * n * rng.dirichlet(np.ones(DOMAIN.size(c))).reshape(
                        DOMAIN.project(c).shape
                    )
                    for c in SETS
                }
            )
        )  # fmt: skip
    log_odds = rng.normal(0, 2, number).tolist()
    rho = Rho(Fraction(10.0 ** rng.uniform(-5, 0)))
    judgement = kind(
        models, np.eye(number).tolist(), weights=dict.fromkeys(SETS, 1.0), total=float(n), log_odds=log_odds
    )
    curator = Curator(
        table, allotment=rho, unit=UNIT, noise=SeededNoise(int(rng.integers(2**31))),
        ledger=MemoryLedger(Promise(Budget(epsilon=1e6, delta=1e-9), UNIT, "contest")),
    )  # fmt: skip
    chosen = curator.choose([Marginal(c) for c in SETS], judgement, rho)
    errors = np.array([np.mean([np.abs(m.counts[c] - table.count(c)).sum() for c in SETS]) for m in models])
    allowed = excess(log_odds, epsilon=math.sqrt(8 * float(rho)), sensitivity=2.0, failure=FAILURE)
    return errors[chosen] <= (errors + allowed).min() + 1e-6


@pytest.mark.parametrize("seed", [0, 1])
def test_the_bound_holds_in_a_thousand_contests(seed):
    rng = np.random.default_rng(seed)

    kept = [contest(rng) for _ in range(CONTESTS)]

    # With probability 0.95 each, at least; four standard deviations below that are 922 of 1,000.
    assert sum(kept) >= CONTESTS * (1 - FAILURE) - 4 * math.sqrt(CONTESTS * FAILURE * (1 - FAILURE))


def test_a_contest_that_tells_candidates_apart_less_well_breaks_the_bound():
    rng = np.random.default_rng(0)

    kept = [contest(rng, Blurred) for _ in range(CONTESTS)]

    assert sum(kept) < CONTESTS * (1 - FAILURE) - 4 * math.sqrt(CONTESTS * FAILURE * (1 - FAILURE))


def test_with_endless_budget_the_best_candidate_wins():
    allowed = excess([0.0, -5.0], epsilon=1e9, sensitivity=2.0, failure=1e-6)

    assert allowed.max() < 1e-6
