"""Public data that lies must not hurt: APERTURE beside itself without public data, on a small table."""

from functools import cache
from statistics import fmean

import pytest
from hostile_tables import hostile
from small_town import DOMAIN, OTHER, PRIVATE, PUBLIC

from sidelight.curator.curator import Curator
from sidelight.evaluation.workload_errors import workload_error
from sidelight.mechanisms.aperture.aperture import Aperture
from sidelight.privacy.budget import Budget
from sidelight.privacy.ledger import MemoryLedger
from sidelight.privacy.promise import Promise
from sidelight.privacy.unit import Unit
from sidelight.queries.workload import Workload
from sidelight.testing import SeededNoise

pytestmark = pytest.mark.slow

WORKLOAD = Workload.marginals(DOMAIN, degree=3)
SEEDS = {0.1: range(16), 1.0: range(2)}
"""Of each ε. At 0.1 one release strays some 7% from the mean of its like, so that the ratio of two means over
16 seeds is off by 2.5%; with two seeds it would be off by 7%, and tell nothing about a tenth."""


def error(public, epsilon, seed):
    budget, unit = Budget(epsilon=epsilon, delta=1e-9), Unit("replace")
    ledger = MemoryLedger(Promise(budget, unit, "test"))
    curator = Curator(PRIVATE, allotment=budget.rho(), unit=unit, ledger=ledger, noise=SeededNoise(seed))
    release = Aperture(max_model_mb=1.0, oversized="skip").run(curator, WORKLOAD, public=public)
    return workload_error(PRIVATE, release.model, WORKLOAD, total=PRIVATE.records)


@cache
def error_without(epsilon):
    return fmean(error(None, epsilon, seed) for seed in SEEDS[epsilon])


@pytest.mark.parametrize(
    ("lie", "epsilon"),
    [
        ("locked", 1.0),
        ("one record", 1.0),
        ("bait", 1.0),
        ("pairs reversed", 0.1),
        ("locked", 0.1),
        ("labels permuted in all", 0.1),
        ("another table", 0.1),
    ],
)
def test_a_lie_hardly_costs_more_than_no_public_data(lie, epsilon):
    lies = {seed: hostile(lie, PRIVATE, PUBLIC, other=OTHER, seed=seed) for seed in SEEDS[epsilon]}

    misled = fmean(error(lies[seed], epsilon, seed) for seed in SEEDS[epsilon])

    assert misled <= 1.1 * error_without(epsilon)


@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_good_public_data_help(epsilon):
    helped = fmean(error(PUBLIC, epsilon, seed) for seed in SEEDS[epsilon][:2])

    assert helped <= 0.8 * error_without(epsilon)
