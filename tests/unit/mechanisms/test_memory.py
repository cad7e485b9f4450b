"""A run holds the model a few times over, the exact answers once and compactly, and nothing else large."""

import tracemalloc

import numpy as np
import pytest
import scipy.special  # noqa: F401  # loaded on first use, which is no part of what a run takes

from sidelight.curator import Curator
from sidelight.data.domain import Domain
from sidelight.data.table import Table
from sidelight.mechanisms.aim import AIM
from sidelight.mechanisms.jam import JAM
from sidelight.privacy.budget import Budget
from sidelight.privacy.ledger import MemoryLedger
from sidelight.privacy.promise import Promise
from sidelight.privacy.unit import Unit
from sidelight.queries.workload import Workload
from sidelight.testing import SeededNoise

DOMAIN = Domain(tuple("abcdefghij"), (20,) * 10)
WORKLOAD = Workload.marginals(DOMAIN, degree=3)
BUDGET = Budget(epsilon=2.0, delta=1e-9)
LIMIT_MB = 2.0
COMPACT = 2 * sum(DOMAIN.size(attrs) for attrs in WORKLOAD.closure(DOMAIN))
"""Bytes of all exact answers at two a cell: 1.9 MB, where 64 bits would take 7.5."""


def table_of(records, seed):
    rng = np.random.default_rng(seed)
    shared = rng.integers(0, 20, (records, 1))
    codes = np.where(rng.random((records, 10)) < 0.5, shared, rng.integers(0, 20, (records, 10)))
    return Table.of_codes(DOMAIN, codes.astype(np.uint8))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mechanism", "tables"),
    [
        (AIM(max_model_mb=LIMIT_MB, rounds_per_attribute=2), 1),
        (JAM(max_model_mb=LIMIT_MB, rounds=5), 2),
    ],
    ids=["aim", "jam"],
)
def test_a_run_stays_within_four_times_the_limit_and_the_compact_answers(mechanism, tables):
    private, public = table_of(5000, seed=0), table_of(3000, seed=1)
    unit = Unit("replace")
    ledger = MemoryLedger(Promise(BUDGET, unit, "memory"))
    curator = Curator(private, allotment=BUDGET.rho(), unit=unit, ledger=ledger, noise=SeededNoise(1))

    tracemalloc.start()
    mechanism.run(curator, WORKLOAD, public=public if tables == 2 else None)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert peak < 4 * LIMIT_MB * 2**20 + tables * COMPACT
