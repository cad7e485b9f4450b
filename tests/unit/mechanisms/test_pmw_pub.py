"""PMW-Pub and MWEM+PUB: prices, rounds and releases on small tables."""

import math
from fractions import Fraction

import numpy as np
import pytest

import cards
from sidelight.curator.curator import Curator
from sidelight.data.domain import Domain
from sidelight.data.table import Table
from sidelight.errors import DataError, SchemaError, SettingError, WorkloadError
from sidelight.mechanisms.mwem_pub import MWEMPub
from sidelight.mechanisms.pmw_pub import PMWPub
from sidelight.mechanisms.registry import mechanism_of
from sidelight.models.support import Support
from sidelight.privacy.budget import Budget, Epsilon, Rho
from sidelight.privacy.convert import advanced
from sidelight.privacy.event import Exponential, Gaussian, Laplace, PermuteAndFlip
from sidelight.privacy.ledger import MemoryLedger
from sidelight.privacy.promise import Promise
from sidelight.privacy.unit import Unit
from sidelight.queries.query import Cell
from sidelight.queries.workload import Workload
from sidelight.releases.release import Release
from sidelight.testing import SeededNoise

DOMAIN = Domain.of({"a": 3, "b": 2, "c": 4})
REPLACE, ADD_OR_REMOVE = Unit("replace"), Unit("add-or-remove")
BOTH = pytest.mark.parametrize("mechanism", [PMWPub, MWEMPub], ids=["pmw-pub", "mwem-pub"])


def some_table(records=600, seed=0, tilt=1.0):
    rng = np.random.default_rng(seed)
    shares = np.array([1.0, tilt, tilt**2])
    a = rng.choice(3, records, p=shares / shares.sum())
    return Table.of_codes(
        DOMAIN, np.stack([a, rng.integers(0, 2, records), rng.integers(0, 4, records)], axis=1)
    )


def run(
    mechanism, *, private=None, public=None, epsilon=5.0, delta=1e-6, unit=REPLACE, seed=1, workload="2-way"
):
    private = some_table(tilt=2.0) if private is None else private
    budget = Budget(epsilon=epsilon, delta=delta)
    allotment = mechanism.allotment(budget)
    ledger = MemoryLedger(Promise(budget, unit, "toy"))
    curator = Curator(private, allotment=allotment, unit=unit, ledger=ledger, noise=SeededNoise(seed))
    asked = Workload.of(workload, DOMAIN)
    mechanism.check(DOMAIN, asked, public if public is not None else some_table(seed=9))
    release = mechanism.run(curator, asked, public=public if public is not None else some_table(seed=9))
    return release, curator


def largest_error(model, table):
    return (
        max(
            np.abs(model.count(query.attrs) - table.count(query.attrs)).max()
            for query in Workload.of("2-way", DOMAIN)
        )
        / table.records
    )


@BOTH
@pytest.mark.parametrize("seed", range(3))
def test_one_round_averaged_releases_the_public_table_itself(mechanism, seed):
    """Spec 10.3: the average of A₀ alone does not depend on the private table."""
    public = some_table(seed=9)

    release, _ = run(mechanism(rounds=1), public=public, seed=seed)

    start = Support.of_table(public, total=600.0)
    np.testing.assert_allclose(release.model.weights, start.weights, rtol=1e-12)


@BOTH
def test_the_average_is_the_mean_of_what_was_played(mechanism):
    """Runs of 1, 2, … rounds at the same costs end in A₁, A₂, …; the average of T rounds is their mean."""
    public = some_table(seed=9)

    def last_after(rounds):
        made = mechanism(rounds=rounds, output="last")
        price = mechanism(rounds=4).allotment(Budget(epsilon=5.0, delta=1e-6)) / 4
        ledger = MemoryLedger(Promise(Budget(epsilon=50.0, delta=1e-6), REPLACE, "toy"))
        curator = Curator(
            some_table(tilt=2.0), allotment=price * rounds, unit=REPLACE, ledger=ledger, noise=SeededNoise(1)
        )
        return made.run(curator, Workload.of("2-way", DOMAIN), public=public).model.weights

    averaged, _ = run(mechanism(rounds=4), public=public)

    played = [Support.of_table(public, total=600.0).weights, *(last_after(rounds) for rounds in (1, 2, 3))]
    np.testing.assert_allclose(averaged.model.weights, np.mean(played, axis=0), rtol=1e-9)


@BOTH
@pytest.mark.parametrize("unit", [REPLACE, ADD_OR_REMOVE], ids=lambda unit: unit.relation)
def test_all_of_the_allotment_is_spent_and_no_more(mechanism, unit):
    release, curator = run(mechanism(rounds=7), unit=unit)

    spent = sum((event.cost.value for event in release.events), Fraction(0))
    measured_total = 0 if unit is REPLACE else 1
    assert spent == curator.allotment.value
    assert len(release.events) == 14 + measured_total
    assert len(release.measurements) == 7


def test_under_add_or_remove_the_total_is_measured_and_not_read():
    private = some_table(records=601, tilt=2.0)

    release, _ = run(PMWPub(rounds=5), private=private, unit=ADD_OR_REMOVE)

    assert release.events[0].what == "total"
    assert release.total != 601


def test_the_papers_numbers():
    """Spec 10.3: n = 1e5, ε = 1, δ = 1e-10, T = 100 gives ε₀ = 0.01150764 and σ = 8.6898771e-4."""
    mechanism = PMWPub(rounds=100)
    rho = mechanism.allotment(Budget(epsilon=1.0, delta=1e-10))

    outlook = mechanism.outlook(DOMAIN, Workload.of("2-way", DOMAIN), allotment=rho, unit=REPLACE)

    assert math.sqrt(float(rho) / 100) == pytest.approx(0.01150764, abs=5e-9)
    assert outlook.stddev / 1e5 == pytest.approx(8.6898771e-4, rel=1e-7)


def test_the_exponential_mechanism_runs_at_twice_the_epsilon_of_permute_and_flip():
    by_em, _ = run(PMWPub(rounds=3))
    by_pf, _ = run(PMWPub(rounds=3, selection="permute-and-flip"))

    em, pf = by_em.events[0], by_pf.events[0]
    assert isinstance(em, Exponential)
    assert isinstance(pf, PermuteAndFlip)
    assert em.cost == pf.cost
    assert float(em.epsilon / pf.epsilon) == pytest.approx(2.0)
    assert em.sensitivity == pf.sensitivity == 1


def test_the_noise_belongs_to_the_private_table_however_large_the_public_one_is():
    small, _ = run(PMWPub(rounds=3), public=some_table(records=50, seed=9))
    large, _ = run(PMWPub(rounds=3), public=some_table(records=5000, seed=9))

    assert small.measurements[0].stddev == large.measurements[0].stddev
    assert isinstance(large.events[1], Gaussian)
    assert large.events[1].l2_squared == 1


def test_a_public_table_equal_to_the_private_one_is_kept():
    private = some_table(tilt=2.0)

    release, _ = run(PMWPub(rounds=10), private=private, public=private, epsilon=1e6)

    assert largest_error(release.model, private) < 1e-3


def test_much_budget_recovers_the_answers():
    private, public = some_table(tilt=2.0), some_table(seed=9)

    release, _ = run(PMWPub(rounds=200, output="last"), private=private, public=public, epsilon=1e7)

    before = largest_error(Support.of_table(public, total=600.0), private)
    assert largest_error(release.model, private) < before / 20


def test_replay_helps_where_budget_is_plenty():
    private = some_table(tilt=2.0)

    with_replay, _ = run(PMWPub(rounds=40, output="last"), private=private, epsilon=1e6)
    without, _ = run(PMWPub(rounds=40, output="last", replay=False), private=private, epsilon=1e6)

    assert largest_error(with_replay.model, private) < largest_error(without.model, private)


def test_in_the_first_round_replay_is_the_plain_update():
    with_replay, _ = run(PMWPub(rounds=1, output="last"))
    without, _ = run(PMWPub(rounds=1, output="last", replay=False))

    np.testing.assert_array_equal(with_replay.model.weights, without.model.weights)


def test_a_number_measured_twice_keeps_both_answers():
    release, _ = run(PMWPub(rounds=12), workload=[("b",)])

    queries = [measurement.query for measurement in release.measurements]
    assert len(queries) == 12 > len(set(queries))


@pytest.mark.parametrize("seed", range(40))
def test_an_answer_beyond_all_records_is_clipped(seed):
    """One round changes a weight by at most exp(½ (1 − 0)): noise of σ ≈ n would often exceed that."""
    private = some_table(records=12, tilt=2.0)
    release, _ = run(
        PMWPub(rounds=1, output="last"),
        private=private,
        epsilon=0.35,
        delta=1e-3,
        seed=seed,
        workload=[("b",)],
    )

    start = Support.of_table(some_table(seed=9), total=12.0)
    ratio = release.model.weights / start.weights
    assert math.log(ratio.max() / ratio.min()) <= 0.5


@BOTH
def test_the_same_noise_gives_the_same_release(mechanism):
    first, _ = run(mechanism(rounds=8), seed=4)
    second, _ = run(mechanism(rounds=8), seed=4)

    np.testing.assert_array_equal(first.model.weights, second.model.weights)


def test_the_uniform_prior_keeps_the_support_and_forgets_the_weights():
    public = Table.of_codes(DOMAIN, np.array([[0, 0, 0]] * 9 + [[1, 1, 1]]))

    release, _ = run(PMWPub(rounds=1, prior="uniform"), public=public)

    assert release.model.weights.tolist() == [300.0, 300.0]


def test_a_random_support_does_not_touch_the_public_table():
    release, _ = run(PMWPub(rounds=1, support="random", support_records=10))

    assert len(release.model.records) <= 10


def test_values_missing_from_the_public_table_are_noted_on_the_card():
    public = Table.of_codes(DOMAIN, np.array([[0, 0, 0], [1, 1, 3]]))

    release, _ = run(PMWPub(rounds=2), public=public)

    assert [note.split(":")[0] for note in release.notes] == ["a", "c"]
    assert "1 of 3 values" in release.notes[0]


@BOTH
def test_a_workload_of_ranges_and_linear_queries_works_too(mechanism):
    workload = Workload.ranges(DOMAIN, ["c"])

    release, _ = run(mechanism(rounds=5), workload=workload)

    assert all(measurement.answer.size == 1 for measurement in release.measurements)


@BOTH
def test_an_empty_public_table_is_refused_before_anything_is_charged(mechanism):
    empty = Table.of_codes(DOMAIN, np.zeros((0, 3), dtype=np.int64))

    with pytest.raises(DataError, match="has no records"):
        mechanism().check(DOMAIN, Workload.of("2-way", DOMAIN), empty)


@BOTH
def test_a_missing_public_table_is_refused_with_advice(mechanism):
    with pytest.raises(SettingError, match="starts from public data"):
        mechanism().check(DOMAIN, Workload.of("2-way", DOMAIN), None)


@BOTH
def test_a_public_table_without_all_attributes_is_refused_with_the_alternative(mechanism):
    first = DOMAIN.attrs[0]
    part = Table.of_codes(DOMAIN.project([first]), np.zeros((4, 1), dtype=np.int64))

    with pytest.raises(SettingError, match=r"tell nothing of .*'aperture' or 'jam'"):
        mechanism().check(DOMAIN, Workload.of("2-way", DOMAIN), part)


@BOTH
def test_a_public_table_over_other_attributes_is_refused(mechanism):
    other = Table.of_codes(Domain.of({"hat": 3}), np.zeros((4, 1), dtype=np.int64))

    with pytest.raises(SchemaError, match="the private schema does not have"):
        mechanism().check(DOMAIN, Workload.of("2-way", DOMAIN), other)


def test_unknown_attributes_are_refused():
    with pytest.raises(WorkloadError, match="unknown attribute"):
        Workload.of([("a", "z")], DOMAIN)


@BOTH
@pytest.mark.parametrize(
    "setting",
    [{"rounds": 0}, {"public_share": 0.0}, {"public_share": 1.5}, {"output": "best"}, {"step": 0.0}],
)
def test_bad_settings_are_refused(mechanism, setting):
    with pytest.raises(SettingError, match=next(iter(setting))):
        mechanism(**setting)


@BOTH
def test_a_budget_too_small_for_its_rounds_is_refused_and_a_number_of_rounds_is_named(mechanism):
    many, budget = mechanism(rounds=5000), Budget(epsilon=0.5, delta=1e-9)
    with pytest.raises(SettingError, match=r"use at most \d+ rounds"):
        many.check_total(600, allotment=many.allotment(budget), unit=Unit("replace"))


def test_mechanisms_are_found_by_name():
    assert mechanism_of("pmw-pub", {"rounds": 7}) == PMWPub(rounds=7)
    assert mechanism_of("mwem-pub") == MWEMPub()


def test_mwem_pub_charges_what_its_rounds_are_in_zcdp():
    """ε₀ = 0.045607343 for (ε, T, δ) = (1, 10, 1e-10) (spec 10.1), half of it for each step."""
    budget = Budget(epsilon=1.0, delta=1e-10)
    mechanism = MWEMPub(rounds=10)
    half = advanced(1.0, 1e-10, 10) / 2

    allotment = mechanism.allotment(budget)

    assert half == pytest.approx(0.045607343 / 2, rel=1e-7)
    assert isinstance(allotment, Rho)
    assert float(allotment) == pytest.approx(10 * (half**2 / 8 + half**2 / 2))
    assert allotment <= budget.rho()


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 10.0])
@pytest.mark.parametrize("rounds", [1, 10, 1000])
@pytest.mark.parametrize("selection", ["exponential", "permute-and-flip"])
def test_advanced_composition_always_fits_its_promise(epsilon, rounds, selection):
    budget = Budget(epsilon=epsilon, delta=1e-9)

    assert MWEMPub(rounds=rounds, selection=selection).allotment(budget) <= budget.rho()


def test_mwem_pub_draws_laplace_noise_of_scale_two_over_epsilon():
    release, _ = run(MWEMPub(rounds=10), epsilon=1.0, delta=1e-10, private=some_table(6000, tilt=2.0))

    selected, measured = release.events[0], release.events[1]
    assert isinstance(measured, Laplace)
    assert float(measured.scale) == pytest.approx(2 / 0.045607343, rel=1e-6)
    assert float(selected.epsilon) == pytest.approx(0.045607343 / 2, rel=1e-6)


def test_mwem_pub_with_pure_accounting_needs_no_delta():
    mechanism = MWEMPub(rounds=4, accounting="pure")

    release, _ = run(mechanism, epsilon=2.0, delta=0.0)

    assert sum(event.cost.value for event in release.events) == 2
    assert all(isinstance(event.cost, Epsilon) for event in release.events)


def test_mwem_pub_without_delta_names_the_accounting_that_needs_none():
    with pytest.raises(SettingError, match="accounting='pure'"):
        MWEMPub().allotment(Budget(epsilon=1.0, delta=0.0))


def test_a_release_is_saved_and_loaded(tmp_path):
    release, _ = run(PMWPub(rounds=3))

    cards.released(release).save(tmp_path / "out")
    again = Release.load(tmp_path / "out")

    np.testing.assert_array_equal(again.count(["a", "b"]), release.count(["a", "b"]))
    assert isinstance(again.measurements[0].query, Cell)
