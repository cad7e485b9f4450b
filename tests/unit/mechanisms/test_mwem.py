from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import entropy

from sidelight.data.domain import Domain
from sidelight.data.table import Table
from sidelight.errors import SettingError, TooLargeError, WorkloadError
from sidelight.evaluation.workload_errors import max_error
from sidelight.mechanisms.mwem import MWEM
from sidelight.mechanisms.registry import mechanism_of
from sidelight.models.components import Components
from sidelight.models.histogram import Histogram
from sidelight.privacy.budget import Epsilon, Rho
from sidelight.privacy.event import Exponential, Gaussian, Laplace, PermuteAndFlip
from sidelight.privacy.unit import Unit
from sidelight.queries.query import Cell, Linear, Marginal, Range
from sidelight.queries.workload import Workload


def test_averaging_over_one_round_returns_the_uniform_start_exactly(toy):
    curator, _ = toy.curator(rho="1/2")

    release = MWEM(rounds=1, output="average").run(curator, toy.workload)

    assert np.ptp(release.count(toy.table.domain.attrs)) == 0.0


def test_the_average_is_the_mean_of_the_models_that_were_played(toy):
    """Runs of 1 and 2 rounds at the same cost a round play the same models under the same noise."""
    first, _ = toy.curator(rho="1/10")
    second, _ = toy.curator(rho="2/10")
    after_one = MWEM(rounds=1).run(first, toy.workload).count(toy.table.domain.attrs)
    uniform = np.full(toy.table.domain.shape, toy.table.records / toy.table.domain.size())

    release = MWEM(rounds=2, output="average").run(second, toy.workload)

    np.testing.assert_allclose(release.count(toy.table.domain.attrs), (uniform + after_one) / 2, rtol=1e-12)


def test_in_pure_accounting_two_calls_a_round_cost_half_of_a_rounds_epsilon_each(toy):
    curator, _ = toy.curator(epsilon="3/2")

    release = MWEM(rounds=3, accounting="pure").run(curator, toy.workload)

    assert [event.cost for event in release.events] == [Epsilon(Fraction(1, 4))] * 6
    assert [type(event) for event in release.events] == [Exponential, Laplace] * 3


def test_in_zcdp_the_rounds_add_up_to_the_allotment(toy):
    curator, _ = toy.curator(rho="1/20")

    release = MWEM(rounds=7, select_share=0.25).run(curator, toy.workload)

    assert sum(event.cost.value for event in release.events) == Fraction(1, 20)
    assert {type(event) for event in release.events} == {Exponential, Gaussian}
    assert not curator.remaining


def test_permute_and_flip_pays_for_itself(toy):
    curator, _ = toy.curator(rho="1/20")

    release = MWEM(rounds=2, selection="permute-and-flip").run(curator, toy.workload)

    selected = [event for event in release.events if isinstance(event, PermuteAndFlip)]
    assert len(selected) == 2
    assert all(event.epsilon**2 / 2 <= event.cost.value for event in selected)


def test_one_number_at_a_time_measures_cells_at_the_sensitivity_of_one(toy):
    curator, _ = toy.curator(rho="1/2")

    release = MWEM(rounds=4, candidates="queries").run(curator, toy.workload)

    assert all(isinstance(made.query, Cell) for made in release.measurements)
    assert all(event.l2_squared == 1 for event in release.events if isinstance(event, Gaussian))
    assert all(event.sensitivity == 1 for event in release.events if isinstance(event, Exponential))


def test_ranges_and_linear_queries_in_minus_one_to_one_are_selected_one_by_one(toy):
    domain = toy.table.domain
    attr, size = domain.attrs[0], domain.shape[0]
    signs = Linear.of((attr,), np.linspace(-1, 1, size))
    workload = Workload([*Workload.ranges(domain, [attr]), signs, Marginal(domain.attrs[:2])])
    curator, _ = toy.curator(rho="50")

    release = MWEM(rounds=6, candidates="queries").run(curator, workload)

    # PRIVACY: one Δ for all candidates: that of the query which can flip from −1 to +1.
    assert all(event.sensitivity == 2 for event in release.events if isinstance(event, Exponential))
    assert all(isinstance(made.query, (Range, Cell, Linear)) for made in release.measurements)


def test_much_budget_recovers_the_answers(toy):
    curator, _ = toy.curator(rho="100000")
    exact = toy.table

    release = MWEM(rounds=8, passes=150).run(curator, toy.workload)

    assert max_error(exact, release, toy.workload, total=exact.records) < 0.01


def test_exact_measurements_never_raise_the_relative_entropy(toy):
    attrs, entropies = toy.table.domain.attrs, []
    for rounds in range(1, 6):
        curator, _ = toy.curator(rho=str(10_000 * rounds))
        release = MWEM(rounds=rounds, passes=1).run(curator, toy.workload)
        entropies.append(entropy(toy.table.count(attrs), release.count(attrs), axis=None))

    assert entropies == sorted(entropies, reverse=True)


def test_the_noisy_start_is_paid_for_first_and_keeps_every_cell_above_its_floor(toy):
    curator, _ = toy.curator(rho="1/2")
    domain = toy.table.domain

    release = MWEM(rounds=1, histogram_share=0.5, output="average").run(curator, toy.workload)

    assert release.events[0].what == Marginal(domain.attrs).describe()
    assert release.events[0].cost == Rho(Fraction(1, 4))
    assert release.measurements[0].query == Marginal(domain.attrs)
    assert release.count(domain.attrs).min() > 0
    assert np.ptp(release.count(domain.attrs)) > 0


@pytest.mark.parametrize(("start", "closest", "farthest"), [(0.0, 0.5, 0.7), (0.3, 0.7, 1.0)])
def test_answers_are_met_more_closely_from_the_uniform_start_than_from_a_noisy_one(
    toy, start, closest, farthest
):
    curator, _ = toy.curator(rho="1/2")
    alone = Workload.marginals(toy.table.domain, degree=1)

    release = MWEM(rounds=1, histogram_share=start, histogram_floor=1e6).run(curator, alone)

    made = release.measurements[-1]
    off = np.sqrt(np.mean((made.answer - release.count(made.query.attrs)) ** 2)) / made.stddev
    assert closest < off <= farthest


def test_the_factored_run_is_the_explicit_run(toy):
    explicit, _ = toy.curator(rho="1/5")
    factored, _ = toy.curator(rho="1/5")

    one = MWEM(rounds=5, model="histogram").run(explicit, toy.workload)
    other = MWEM(rounds=5, model="components").run(factored, toy.workload)

    attrs = toy.table.domain.attrs
    assert np.abs(one.count(attrs) - other.count(attrs)).max() < 1e-10
    assert isinstance(one.model, Histogram)
    assert isinstance(other.model, Components)


def test_a_domain_too_large_for_a_histogram_takes_components_by_itself(toy):
    wide = Domain.of({f"a{i}": 4 for i in range(40)})
    table = Table.of_codes(wide, np.random.default_rng(1).integers(0, 2, (500, 40)))
    curator, _ = type(toy)(table, toy.workload).curator(rho="1")
    workload = Workload([(f"a{i}", f"a{i + 1}") for i in range(39)])
    mwem = MWEM(rounds=3)
    mwem.check(wide, workload, None)

    release = mwem.run(curator, workload)

    assert isinstance(release.model, Components)
    assert release.count(("a39", "a0")).sum() == pytest.approx(500)


def test_components_never_outgrow_their_limit(toy):
    wide = Domain.of({f"a{i}": 4 for i in range(8)})
    alike = np.random.default_rng(1).integers(0, 4, (500, 1)).repeat(8, axis=1)
    curator, _ = type(toy)(Table.of_codes(wide, alike), toy.workload).curator(rho="100")
    workload = Workload.marginals(wide, degree=2)

    release = MWEM(rounds=8, passes=5, model="components", max_component_cells=64).run(curator, workload)

    assert max(component.size for component in release.model.components) == 64


def test_no_rounds_are_refused():
    with pytest.raises(SettingError, match="rounds must be a whole number of at least 1; got 0"):
        MWEM(rounds=0)


@pytest.mark.parametrize("settings", [{"output": "average"}, {"histogram_share": 0.5}])
def test_components_refuse_what_needs_a_histogram(settings):
    with pytest.raises(SettingError, match="model='components' is a product"):
        MWEM(model="components", **settings)


def test_a_histogram_that_does_not_fit_names_the_factored_model(toy):
    wide = Domain.of({f"a{i}": 4 for i in range(40)})

    with pytest.raises(TooLargeError, match="model='components'"):
        MWEM(model="histogram").check(wide, Workload([("a1",)]), None)


def test_a_workload_whose_every_query_is_too_large_is_refused():
    wide = Domain.of({f"a{i}": 40 for i in range(10)})

    with pytest.raises(TooLargeError, match="max_component_cells=1000"):
        MWEM(max_component_cells=1000).check(wide, Workload([("a1", "a2")]), None)


def test_unknown_attributes_and_the_total_alone_are_refused(toy):
    with pytest.raises(WorkloadError, match="unknown attribute 'shoe size'"):
        MWEM().check(toy.table.domain, Workload([("shoe size",)]), None)
    with pytest.raises(WorkloadError, match="the total alone"):
        MWEM().check(toy.table.domain, Workload([()]), None)


def test_a_query_outside_minus_one_to_one_is_refused():
    with pytest.raises(WorkloadError, match="must have values between -1 and 1"):
        Linear.of(("a",), [0.0, 1.5])


@pytest.mark.parametrize(
    ("accounting", "budget"), [("zcdp", {"rho": "1/100000"}), ("pure", {"epsilon": "1/100"})]
)
def test_a_budget_too_small_for_the_rounds_says_how_many_are_sensible(toy, accounting, budget):
    curator, _ = toy.curator(**budget)
    asked = {"allotment": curator.allotment, "unit": curator.unit}

    with pytest.raises(SettingError, match=r"more than the .* records") as refused:
        MWEM(rounds=100, accounting=accounting).check_total(toy.table.records, **asked)

    text = str(refused.value)
    if "Ask for rounds=" in text:
        sensible = int(text.split("Ask for rounds=")[1].split(" ")[0])
        MWEM(rounds=sensible, accounting=accounting).check_total(toy.table.records, **asked)


def test_the_outlook_tells_noise_and_memory_from_public_facts(toy):
    domain = toy.table.domain
    mwem = MWEM(rounds=4, select_share=0.5)

    outlook = mwem.outlook(domain, toy.workload, allotment=Rho(Fraction(1, 8)), unit=Unit("replace"))

    assert outlook.measurements == 4
    assert outlook.stddev == pytest.approx(8.0)  # ρ = 1/64 a measurement, σ² = 1/ρ
    assert outlook.model_bytes == 8 * domain.size()


def test_the_outlook_of_a_factored_run_says_what_will_not_be_measured():
    wide = Domain.of({f"a{i}": 10 for i in range(12)})
    workload = Workload([("a0", "a1"), ("a0", "a1", "a2", "a3")], weights=[1, 2])

    outlook = MWEM(max_component_cells=1000).outlook(
        wide, workload, allotment=Rho(Fraction(1, 8)), unit=Unit("replace")
    )

    assert outlook.counting_bytes == 800
    assert outlook.oversized == (("a0", "a1", "a2", "a3"),)
    assert any("weights are not used" in note for note in outlook.notes)


def test_mwem_is_found_by_its_name_with_its_settings():
    mechanism = mechanism_of("mwem", {"rounds": 3, "passes": 5, "candidates": "queries"})

    assert isinstance(mechanism, MWEM)
    assert mechanism.settings()["passes"] == 5
