"""Hardt, Ligett, McSherry (2012): what the paper states, on the data it was stated for where we have it."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pyarrow.parquet as pq
import pytest
from scipy.stats import entropy

from sidelight.curator.curator import Curator
from sidelight.data.domain import Domain
from sidelight.data.table import Table
from sidelight.evaluation.workload_errors import Errors, max_error
from sidelight.mechanisms.barak import Barak
from sidelight.mechanisms.mwem import MWEM
from sidelight.models.histogram import Histogram
from sidelight.privacy.budget import Budget, Epsilon
from sidelight.privacy.ledger import MemoryLedger
from sidelight.privacy.promise import Promise
from sidelight.privacy.unit import Unit
from sidelight.queries.workload import Workload
from sidelight.testing import SeededNoise
from svd_bound import spectrum, squared_error_bound

pytestmark = [pytest.mark.paper, pytest.mark.slow]


def relative_entropy(table, model):
    """RE(D‖A) over all cells."""
    attrs = table.domain.attrs
    return entropy(table.count(attrs), model.count(attrs), axis=None)


def curator_of(table, cost, seed):
    ledger = MemoryLedger(Promise(Budget(epsilon=1e9, delta=1e-9), Unit("replace"), "paper"))
    return Curator(table, allotment=cost, unit=Unit("replace"), ledger=ledger, noise=SeededNoise(seed))


PRINTED = {"candidates": "queries", "accounting": "pure", "passes": 0, "clip": False}
"""The algorithm as it is printed: one query a round, one update, noise that ε pays for."""
NO_NOISE = Epsilon(Fraction(10**6))


@pytest.fixture(scope="module")
def skewed():
    """People of whom most are alike: far from the uniform table, where the algorithm starts."""
    domain = Domain.of({f"a{i}": 2 for i in range(6)})
    rng = np.random.default_rng(3)
    table = Table.of_codes(domain, (rng.random((2000, 6)) < 0.04).astype(np.uint8))
    return table, Workload.marginals(domain, degree=2)


@pytest.mark.parametrize("rounds", [60, 150])
def test_the_theorem_bounds_the_max_error_of_the_average(skewed, rounds):
    """Theorem 2.2 with ε → ∞: max error ≤ 2n √(log|X| / T), which the uniform table does not keep."""
    table, workload = skewed
    bound = 2 * math.sqrt(math.log(64) / rounds)
    mechanism = MWEM(rounds=rounds, output="average", **PRINTED)

    average = mechanism.run(curator_of(table, NO_NOISE, seed=1), workload)

    uniform = Histogram.uniform(table.domain, total=2000)
    assert max_error(table, average, workload, total=2000) <= bound
    assert max_error(table, uniform, workload, total=2000) > bound


def test_every_update_lowers_the_relative_entropy_by_what_the_proof_says(skewed):
    """Proof of theorem 2.2: a round whose query is off by e (a share of n) lowers RE by at least e²/4.

    A smaller step, or an update with the wrong sign, lowers it by less. The largest error is the query's
    own here, since without noise the worst query is selected.
    """
    table, workload = skewed
    models = [Histogram.uniform(table.domain, total=2000)]
    for rounds in range(1, 9):
        mechanism = MWEM(rounds=rounds, output="last", **PRINTED)
        models.append(mechanism.run(curator_of(table, NO_NOISE, seed=1), workload).model)

    for before, after in itertools.pairwise(models):
        off = max_error(table, before, workload, total=2000)
        drop = relative_entropy(table, before) - relative_entropy(table, after)
        assert drop >= off**2 / 4 - 1e-4


@pytest.mark.parametrize(
    ("name", "records", "attributes", "cells"),
    [("mildew", 70, 6, 22), ("czech_autoworkers", 1841, 6, 63), ("rochdale", 665, 8, 91)],
)
def test_the_contingency_tables_are_those_of_section_four(shared_data, name, records, attributes, cells):
    """People, binary attributes and cells that are not empty; exact."""
    file = pq.read_table(shared_data / f"{name}.parquet")
    codes = np.stack([file[column].to_numpy() for column in file.column_names], axis=1)

    assert codes.shape == (records, attributes)
    assert len(np.unique(codes, axis=0)) == cells


@pytest.mark.parametrize("epsilon", [0.5, 1.0])
def test_on_the_czech_table_mwem_is_closer_than_barak(shared_data, epsilon):
    """Section 4.2: lower relative entropy than Fourier measurements fitted by multiplicative weights."""
    file = pq.read_table(shared_data / "czech_autoworkers.parquet")
    domain = Domain.of(dict.fromkeys(file.column_names, 2))
    table = Table.of_codes(domain, np.stack([file[name].to_numpy() for name in file.column_names], axis=1))
    workload = Workload.marginals(domain, degree=3)

    def mean_entropy(mechanism):
        runs = [
            mechanism.run(curator_of(table, Epsilon(Fraction(epsilon)), seed), workload) for seed in range(10)
        ]
        return np.mean([relative_entropy(table, release.model) for release in runs])

    mwem = mean_entropy(MWEM(rounds=8, accounting="pure", passes=30))
    barak = mean_entropy(Barak(accounting="pure", passes=30))
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
