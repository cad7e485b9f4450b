"""What the PMW-Pub paper claims, on one state over four years (spec 5.4)."""

import json

import numpy as np
import pyarrow.parquet as pq
import pytest

from sidelight.curator.curator import Curator
from sidelight.data.domain import Domain
from sidelight.data.table import Table
from sidelight.evaluation.screening import best_mixture_error
from sidelight.mechanisms.mwem_pub import MWEMPub
from sidelight.mechanisms.pmw_pub import PMWPub
from sidelight.models.support import Support
from sidelight.privacy.budget import Budget
from sidelight.privacy.event import Gaussian
from sidelight.privacy.ledger import MemoryLedger
from sidelight.privacy.promise import Promise
from sidelight.privacy.unit import Unit
from sidelight.queries.workload import Workload
from sidelight.testing import SeededNoise

pytestmark = [pytest.mark.paper, pytest.mark.slow]
ATTRS = ("SCHL", "MAR", "RELP", "ESP", "CIT", "ANC", "SEX", "RAC1P", "EMPLOYED")
UNIT = Unit("replace")


def test_adult_has_the_papers_domain(shared_data):
    """The table of data sets (spec 5.4): 13 attributes, 146 values in all, 731,566,080,000 cells; exact.

    The workloads are 286 three-way marginals there, 3,003 five-way ones of the reduced ACS.
    """
    described = json.loads((shared_data / "adult_pmwpub_coded.domain.json").read_text(encoding="utf-8"))
    # Age by tens and the years of education stand for age and education.
    sizes = {attr: size for attr, size in described.items() if attr not in ("age", "education")}
    domain = Domain.of(sizes)

    assert len(domain) == 13
    assert sum(domain.shape) == 146
    assert domain.size(domain.attrs) == 731_566_080_000
    assert len(Workload.marginals(domain, degree=3)) == 286


def test_a_hundred_rounds_at_the_papers_promise_cost_what_its_formulas_say(massachusetts):
    """Section 5.1 with T = 100, ε = 1, δ = 1e-10: ε₀ = √(ρ/T) = 0.01150764, so σ = 1/ε₀ = 86.898771."""
    _, public, workload = massachusetts
    budget = Budget(epsilon=1.0, delta=1e-10)
    mechanism = PMWPub(rounds=100)
    curator = Curator(
        public, allotment=mechanism.allotment(budget), unit=UNIT,
        ledger=MemoryLedger(Promise(budget, UNIT, "paper")), noise=SeededNoise(0),
    )  # fmt: skip

    mechanism.run(curator, Workload(list(workload)[:3]), public=public)

    measured = [event for event in curator.events if isinstance(event, Gaussian)]
    assert len(measured) == 100
    assert {round(event.stddev, 5) for event in measured} == {86.89877}


@pytest.fixture(scope="module")
def massachusetts(shared_data):
    name = "acs_employment_ma_2015_2018"
    specs = json.loads((shared_data / f"{name}.domain.json").read_text(encoding="utf-8"))
    columns = pq.read_table(shared_data / f"{name}.parquet", columns=[*ATTRS, "YEAR"])
    domain = Domain.of({attr: specs[attr]["size"] for attr in ATTRS})
    codes = np.stack([np.searchsorted(specs[a]["values"], columns[a].to_numpy()) for a in ATTRS], axis=1)
    years = columns["YEAR"].to_numpy()
    private, public = (Table.of_codes(domain, codes[years == year]) for year in (2018, 2015))
    return private, public, Workload.of("3-way", domain)


def largest_error(model, private, workload):
    exact = private.count_many(list(workload.attribute_sets))
    gaps = [
        np.abs(model.count(attrs) - count).max()
        for attrs, count in zip(workload.attribute_sets, exact, strict=True)
    ]
    return max(gaps) / private.records


def mean_error(mechanism, massachusetts, epsilon, seeds=3):
    private, public, workload = massachusetts
    budget = Budget(epsilon=epsilon, delta=1 / private.records**2)
    errors = []
    for seed in range(seeds):
        ledger = MemoryLedger(Promise(budget, UNIT, "paper"))
        allotment = mechanism.allotment(budget)
        curator = Curator(private, allotment=allotment, unit=UNIT, ledger=ledger, noise=SeededNoise(seed))
        errors.append(largest_error(mechanism.run(curator, workload, public=public).model, private, workload))
    return float(np.mean(errors))


def test_private_rounds_improve_on_the_public_table_and_more_budget_improves_more(massachusetts):
    private, public, workload = massachusetts
    alone = largest_error(Support.of_table(public, total=private.records), private, workload)

    little, much = (mean_error(PMWPub(), massachusetts, epsilon) for epsilon in (0.25, 1.0))

    assert much < little < alone
    assert much < alone / 2


def test_pmw_pub_beats_mwem_pub_at_the_same_promise(massachusetts):
    assert mean_error(PMWPub(), massachusetts, 0.5) < mean_error(MWEMPub(), massachusetts, 0.5)


def test_no_budget_beats_the_best_mixture(massachusetts):
    private, public, workload = massachusetts
    floor = best_mixture_error(private, public, workload=workload)

    reached = mean_error(PMWPub(rounds=200, output="last"), massachusetts, 1e6, seeds=1)

    assert floor.low <= reached


def test_a_random_support_fails_badly(massachusetts):
    random = PMWPub(support="random", prior="uniform", support_records=10_000)

    assert mean_error(random, massachusetts, 1.0, seeds=1) > 5 * mean_error(
        PMWPub(), massachusetts, 1.0, seeds=1
    )
