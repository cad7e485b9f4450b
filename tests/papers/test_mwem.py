"""Hardt, Ligett, McSherry (2012): what the paper states, on the data it was stated for where we have it."""

import math
from fractions import Fraction

import numpy as np
import pyarrow.parquet as pq
import pytest

from sidelight.curator.curator import Curator
from sidelight.data.domain import Domain
from sidelight.data.table import Table
from sidelight.evaluation.marginals import Errors, max_error, relative_entropy
from sidelight.evaluation.svd_bound import spectrum, squared_error_bound
from sidelight.mechanisms.barak import Barak
from sidelight.mechanisms.mwem import MWEM
from sidelight.privacy.budget import Budget, Epsilon
from sidelight.privacy.ledger import MemoryLedger
from sidelight.privacy.promise import Promise
from sidelight.privacy.unit import Unit
from sidelight.queries.workload import Workload
from sidelight.testing import SeededNoise

pytestmark = [pytest.mark.paper, pytest.mark.slow]


def curator_of(table, cost, seed):
    ledger = MemoryLedger(Promise(Budget(epsilon=1e9, delta=1e-9), Unit("replace"), "paper"))
    return Curator(table, allotment=cost, unit=Unit("replace"), ledger=ledger, noise=SeededNoise(seed))


@pytest.mark.parametrize("rounds", [5, 20, 60])
def test_the_theorem_bounds_the_max_error_of_the_average(rounds):
    """Theorem 2.2 with ε → ∞: max error ≤ 2n √(log|X| / T)."""
    domain = Domain.of({f"a{i}": 2 for i in range(6)})
    rng = np.random.default_rng(3)
    codes = (rng.random((2000, 6)) < rng.random(6)).astype(np.uint8)
    codes[:, 1] = codes[:, 0]
    table = Table.of_codes(domain, codes)
    workload = Workload.marginals(domain, degree=2)
    printed = MWEM(
        rounds=rounds, candidates="queries", accounting="pure", output="average", passes=0, clip=False
    )

    release = printed.run(curator_of(table, Epsilon(Fraction(10**6)), seed=1), workload)

    assert max_error(table, release, workload, total=2000) <= 2 * math.sqrt(math.log(64) / rounds)


@pytest.mark.parametrize("epsilon", [0.5, 1.0])
def test_on_the_czech_table_mwem_is_closer_than_barak(shared_data, epsilon):
    """Section 4.2: lower relative entropy than Fourier measurements fitted by multiplicative weights."""
    file = pq.read_table(shared_data / "czech_autoworkers.parquet")
    domain = Domain.of(dict.fromkeys(file.column_names, 2))
    table = Table.of_codes(domain, np.stack([file[name].to_numpy() for name in file.column_names], axis=1))
    workload = Workload.marginals(domain, degree=3)

    def entropy(mechanism):
        runs = [
            mechanism.run(curator_of(table, Epsilon(Fraction(epsilon)), seed), workload) for seed in range(10)
        ]
        return np.mean([relative_entropy(table, release, domain) for release in runs])

    mwem = entropy(MWEM(rounds=8, accounting="pure", passes=30))
    barak = entropy(Barak(accounting="pure", passes=30))
    assert mwem < barak


def test_on_ranges_over_capital_loss_gaussian_mwem_beats_every_matrix_mechanism(shared_data):
    """Section 4.1: squared error below the SVD bound; with zCDP at (ε, 1/n), as the bound is stated."""
    values = pq.read_table(shared_data / "adult.parquet", columns=["capital-loss"])["capital-loss"].to_numpy()
    domain = Domain.of({"capital-loss": 4357})
    table = Table.of_codes(domain, values[:, None])
    workload = Workload.ranges(domain, ["capital-loss"], number=500, seed=0)
    budget = Budget(epsilon=0.05, delta=1 / len(values))
    bound = squared_error_bound(
        spectrum(workload, domain), cells=4357, queries=500, epsilon=0.05, delta=1 / len(values)
    )

    errors = []
    for seed in range(3):
        mwem = MWEM(rounds=20, candidates="queries", passes=50)
        release = mwem.run(curator_of(table, mwem.allotment(budget), seed), workload)
        errors.append(Errors.of(table, release, workload, total=len(values)).squared_error_per_query)

    assert np.mean(errors) < bound
