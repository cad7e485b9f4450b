"""Gaboardi, Gallego Arias, Hsu, Roth, Wu (2014), arXiv:1402.1526: its budget, and an error that falls with ε.

The paper prints errors in figures alone. It prints what T rounds cost, η T(T − 1) s/n in ε; section 10.7 of
the specification has the numbers of a small example, which tests/unit checks.
"""

import numpy as np
import pytest

from sidelight.curator.curator import Curator
from sidelight.data.domain import Domain
from sidelight.data.table import Table
from sidelight.evaluation.workload_errors import workload_error
from sidelight.mechanisms.dualquery import DualQuery
from sidelight.models.histogram import Histogram
from sidelight.privacy.budget import Budget
from sidelight.privacy.ledger import MemoryLedger
from sidelight.privacy.promise import Promise
from sidelight.privacy.unit import Unit
from sidelight.queries.workload import Workload
from sidelight.testing import SeededNoise

pytestmark = [pytest.mark.paper, pytest.mark.slow]
DOMAIN = Domain.of({f"x{place}": 2 for place in range(8)})
UNIT = Unit("replace")


def skewed(records, seed=0):
    """Each attribute follows the one before it in four of five records; the first is seldom 1."""
    rng = np.random.default_rng(seed)
    codes = np.zeros((records, 8), dtype=int)
    codes[:, 0] = rng.random(records) < 0.2
    for place in range(1, 8):
        same = rng.random(records) < 0.8
        codes[:, place] = np.where(same, codes[:, place - 1], rng.random(records) < 0.5)
    return Table.of_codes(DOMAIN, codes)


def released(table, epsilon, **settings):
    budget = Budget(epsilon=epsilon, delta=1e-9)
    ledger = MemoryLedger(Promise(budget, UNIT, "paper"))
    curator = Curator(table, allotment=budget.rho(), unit=UNIT, ledger=ledger, noise=SeededNoise(1))
    return DualQuery(**settings).run(curator, Workload.marginals(DOMAIN, degree=3)), curator


def test_error_falls_with_epsilon_and_leaves_the_uniform_table_behind():
    table = skewed(20_000)
    workload = Workload.marginals(DOMAIN, degree=3)

    errors = [
        workload_error(table, released(table, epsilon, step=2.0)[0], workload, total=table.records)
        for epsilon in (0.1, 0.5, 2.0)
    ]

    uniform = workload_error(
        table, Histogram.uniform(DOMAIN, total=table.records), workload, total=table.records
    )
    assert errors[0] > errors[1] > errors[2]
    assert errors[2] < 0.25 * uniform


@pytest.mark.parametrize("step", [1.0, 2.0, 3.0, 4.0, 5.0])
@pytest.mark.parametrize("queries", [25, 50, 100, 250, 500])
def test_the_grid_of_the_papers_settings_stays_within_the_budget(step, queries):
    """ε = 1, n = 100,000 (spec 7.4): s η² T(T − 1)(2T − 1)/12n² ≤ ρ, and not for T + 1."""
    rho, n = Budget(epsilon=1.0, delta=1e-9).rho(), 100_000
    mechanism = DualQuery(step=step, queries_per_round=queries, max_rounds=10_000)

    rounds = mechanism.rounds(rho, n, UNIT)

    def cost(t):
        return queries * step**2 * t * (t - 1) * (2 * t - 1) / (12 * n**2)

    assert cost(rounds) <= float(rho) < cost(rounds + 1)
    assert 20 < rounds < 1000
