"""McKenna, Mullins, Sheldon, Miklau (2022), arXiv:2201.12677: the numbers that its algorithm prints.

The paper prints errors in figures alone; its text prints T = 16 d and α = 0.9 (Algorithm 4), from which
the first noise, the first selection and the cost of the one-way marginals follow to any digit.
"""

import json

import numpy as np
import pyarrow.parquet as pq
import pytest

from sidelight.curator.curator import Curator
from sidelight.data.domain import Domain
from sidelight.data.table import Table
from sidelight.evaluation.workload_errors import workload_error
from sidelight.mechanisms.aim import AIM
from sidelight.privacy.budget import Budget
from sidelight.privacy.event import Exponential, Gaussian
from sidelight.privacy.ledger import MemoryLedger
from sidelight.privacy.promise import Promise
from sidelight.privacy.unit import Unit
from sidelight.queries.workload import Workload
from sidelight.testing import SeededNoise

pytestmark = [pytest.mark.paper, pytest.mark.slow]
# The paper's neighbours differ in one record that is there or not.
UNIT = Unit("add-or-remove")
BUDGET = Budget(epsilon=1.0, delta=1e-9)


@pytest.fixture(scope="module")
def adult(shared_data):
    sizes = json.loads((shared_data / "adult_aim_coded.domain.json").read_text(encoding="utf-8"))
    columns = pq.read_table(shared_data / "adult_aim_coded.parquet")
    return Table.of_codes(Domain.of(sizes), np.stack([columns[attr].to_numpy() for attr in sizes], axis=1))


@pytest.fixture(scope="module")
def released(adult):
    """AIM on ADULT at ε = 1, with a model of 1 MB."""
    ledger = MemoryLedger(Promise(BUDGET, UNIT, "paper"))
    curator = Curator(adult, allotment=BUDGET.rho(), unit=UNIT, ledger=ledger, noise=SeededNoise(0))
    workload = Workload.marginals(adult.domain, degree=3)
    outcome = AIM(max_model_mb=1.0, oversized="skip", estimator="tree").run(curator, workload)
    return outcome, curator, workload


def test_adult_is_the_papers(adult):
    """The table of data sets: 48,842 records, 15 attributes, 4·10¹⁶ cells; all 455 three-way marginals."""
    assert (adult.records, len(adult.domain)) == (48_842, 15)
    assert adult.domain.size(adult.domain.attrs) == pytest.approx(4e16, rel=0.05)
    assert len(Workload.marginals(adult.domain, degree=3)) == 455


def test_the_first_noise_and_the_first_selection_are_those_of_sixteen_d_rounds(released):
    """Algorithm 4, lines 3 to 8: T = 240, σ₀ = √(T/2αρ) = 94.37, ε₀ = √(8(1−α)ρ/T) = 0.007065."""
    _, curator, _ = released
    one_ways = [event for event in curator.events if isinstance(event, Gaussian)][:15]
    selection = next(event for event in curator.events if isinstance(event, Exponential))

    assert [event.stddev for event in one_ways] == pytest.approx([94.36569] * 15, abs=1e-5)
    assert float(selection.epsilon) == pytest.approx(0.00706471, abs=1e-8)
    share = sum(float(event.cost) for event in one_ways) / float(BUDGET.rho())
    assert share == pytest.approx(0.05625)


def test_all_of_the_budget_is_spent_at_the_end(released):
    """Budget annealing, section 5.3: the last round takes what is left."""
    _, curator, _ = released

    assert not curator.remaining


def test_what_aim_selects_leaves_independence_far_behind(adult, released):
    """The figures of ADULT: AIM at ε = 1 is well below a model of independent attributes with no noise."""
    outcome, _, workload = released
    one_way = {attr: adult.count((attr,)) / adult.records for attr in adult.domain.attrs}

    class Independent:
        def count(self, attrs):
            return adult.records * np.einsum("i,j,k->ijk", *(one_way[attr] for attr in attrs))

    ours, theirs = (
        workload_error(adult, found, workload, total=adult.records) for found in (outcome, Independent())
    )
    assert ours < 0.6 * theirs
