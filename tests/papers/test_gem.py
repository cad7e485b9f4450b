"""Liu, Vietri, Wu (2021), arXiv:2106.07153: what a round costs; how errors go with ε, and beside others.

The paper prints errors in figures alone. In numbers it prints algorithm 3's budget, of which section 10.7 of
the specification has an example (tests/unit checks that one), and the workloads of figure 1: all 35 three-way
marginals of ADULT (reduced), all 286 of ADULT, at δ = 1/n² and ε from 0.1 to 1. Both tables are those of the
authors' library. What is compared is what the abstract claims and figure 1 shows: a largest error that falls
with ε, and is below that of MWEM and DualQuery; and, in figure 3, GEM-Pub below GEM where ε is small. The ACS
tables come from IPUMS and cannot be had.
"""

import json

import numpy as np
import pyarrow.parquet as pq
import pytest

from sidelight.curator.curator import Curator
from sidelight.data.domain import Domain
from sidelight.data.table import Table
from sidelight.mechanisms.dualquery import DualQuery
from sidelight.mechanisms.gem.gem import GEM
from sidelight.mechanisms.gem.gem_pub import GEMPub
from sidelight.mechanisms.mwem import MWEM
from sidelight.privacy.budget import Budget
from sidelight.privacy.ledger import MemoryLedger
from sidelight.privacy.promise import Promise
from sidelight.privacy.unit import Unit
from sidelight.queries.workload import Workload
from sidelight.testing import SeededNoise
from torched import NEEDS_TORCH

pytestmark = [pytest.mark.paper, *NEEDS_TORCH]

DOMAIN = Domain.of({"a": 3, "b": 4, "c": 5, "d": 2, "e": 3})
WORKLOAD = Workload.marginals(DOMAIN, degree=3)
SIZE = {"batch": 100, "latent": 16, "width": 32, "steps": 60, "rate": 5e-3, "rounds": 10, "form": "gem"}


def people(records, seed):
    """Every attribute tells of one thing that no column has."""
    rng = np.random.default_rng(seed)
    hidden = rng.beta(1, 2, records)
    columns = [
        (np.clip(hidden + rng.normal(0, 0.15, records), 0, 0.999) * size).astype(int) for size in DOMAIN.shape
    ]
    return Table.of_codes(DOMAIN, np.stack(columns, axis=1))


PRIVATE, PUBLIC = people(5000, 1), people(2000, 2)


def largest_error(mechanism, epsilon, *, private=PRIVATE, public=None, runs=2):
    """The largest error of a cell of all three-way marginals, as a share of the records; mean of the runs."""
    found, workload = [], Workload.marginals(private.domain, degree=3)
    for seed in range(runs):
        budget = Budget(epsilon=epsilon, delta=1 / private.records**2)
        ledger = MemoryLedger(Promise(budget, Unit("replace"), "paper"))
        curator = Curator(
            private, allotment=budget.rho(), unit=Unit("replace"), ledger=ledger, noise=SeededNoise(seed)
        )
        outcome = mechanism.run(curator, workload, public=public)
        gaps = [np.abs(outcome.count(q.attrs) - private.count(q.attrs)).max() for q in workload]
        found.append(max(gaps) / private.records)
    return float(np.mean(found))


def adult(folder, name):
    """A table of the authors' library."""
    sizes = json.loads((folder / f"{name}.domain.json").read_text(encoding="utf-8"))
    columns = pq.read_table(folder / f"{name}.parquet")
    return Table.of_codes(Domain.of(sizes), np.stack([columns[attr].to_numpy() for attr in sizes], axis=1))


@pytest.mark.parametrize(
    ("name", "workloads"), [("adult_gem_reduced_coded", 35), ("adult_gem_coded", 286)], ids=str
)
def test_the_workloads_are_those_of_figure_1(name, workloads, shared_data):
    """Caption of figure 1."""
    table = adult(shared_data, name)

    assert len(Workload.marginals(table.domain, degree=3)) == workloads
    assert table.records == 48_842


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_on_adult_reduced_gem_is_closer_than_mwem_and_dualquery(epsilon, shared_data):
    """Figure 1, at its ends; T = 30 is of the authors' grid, the network is smaller than theirs.

    Training tells rounding errors apart: at ε = 0.1 the same seed gives 0.046 with one thread and 0.066 with
    two. One run's ratio lies between 0.43 and 0.82; the mean of three is what is compared.
    """
    table = adult(shared_data, "adult_gem_reduced_coded")
    network = {"batch": 200, "latent": 64, "width": 128, "form": "gem", "rounds": 30}

    gem, mwem, dualquery = (
        largest_error(mechanism, epsilon, private=table, runs=3)
        for mechanism in (GEM(**network), MWEM(rounds=30, output="last"), DualQuery())
    )

    assert gem < 0.85 * min(mwem, dualquery)
    assert gem < {0.1: 0.065, 1.0: 0.02}[epsilon]


def test_the_largest_error_falls_with_epsilon():
    """Figure 1."""
    low, high = (largest_error(GEM(**SIZE), epsilon) for epsilon in (0.05, 2.0))

    assert high < 0.5 * low


def test_public_data_help_where_rounds_and_epsilon_are_few():
    """Figure 3, whose GEM-Pub has as few as two rounds."""
    few = SIZE | {"rounds": 2}

    alone = largest_error(GEM(**few), 0.3)
    with_public = largest_error(GEMPub(public_steps=300, public_rate=5e-3, **few), 0.3, public=PUBLIC)

    assert with_public < 0.6 * alone


@pytest.mark.parametrize("alpha", [0.5, 0.67])
def test_a_round_costs_what_algorithm_3_says(alpha):
    """ε₀ = √(2ρ/T(α² + (1 − α)²)): selection (αε₀)²/2, measurement ((1 − α)ε₀)²/2, and σ = √2/((1 − α)ε₀)."""
    rho = float(Budget(epsilon=1.0, delta=1e-9).rho())
    share = alpha**2 / (alpha**2 + (1 - alpha) ** 2)
    base = np.sqrt(2 * rho / (10 * (alpha**2 + (1 - alpha) ** 2)))
    mechanism = GEM(**(SIZE | {"select_share": share, "steps": 1, "batch": 4}))

    ledger = MemoryLedger(Promise(Budget(epsilon=1.0, delta=1e-9), Unit("replace"), "paper"))
    curator = Curator(
        PRIVATE, allotment=Budget(epsilon=1.0, delta=1e-9).rho(), unit=Unit("replace"), ledger=ledger,
        noise=SeededNoise(0),
    )  # fmt: skip
    outcome = mechanism.run(curator, WORKLOAD)

    costs = [float(event.cost.value) for event in outcome.events]
    assert costs[0::2] == pytest.approx([(alpha * base) ** 2 / 2] * 10)
    assert costs[1::2] == pytest.approx([((1 - alpha) * base) ** 2 / 2] * 10)
    # Theirs is in shares of n, ours in records.
    assert outcome.measurements[0].stddev == pytest.approx(np.sqrt(2) / ((1 - alpha) * base), rel=1e-6)
