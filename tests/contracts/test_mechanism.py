"""What every mechanism keeps. Adding one to the list is how it joins."""

from fractions import Fraction

import numpy as np
import pytest

from sidelight.curator.journal import Journal
from sidelight.data.table import Table
from sidelight.errors import BudgetExhausted, SettingError
from sidelight.mechanisms.aim import AIM
from sidelight.mechanisms.aperture.aperture import Aperture
from sidelight.mechanisms.base import Mechanism
from sidelight.mechanisms.jam import JAM
from sidelight.mechanisms.mwem import MWEM
from sidelight.mechanisms.mwem_pub import MWEMPub
from sidelight.mechanisms.pmw_pub import PMWPub
from sidelight.privacy.unit import Unit
from sidelight.releases.release import Release
from sidelight.testing import SeededNoise

MECHANISMS: list[Mechanism] = [
    MWEM(rounds=3),
    MWEM(rounds=2, accounting="pure"),
    MWEM(rounds=3, candidates="queries", selection="permute-and-flip"),
    MWEM(rounds=3, model="components"),
    MWEM(rounds=3, histogram_share=0.3, output="average"),
    MWEMPub(rounds=4),
    MWEMPub(rounds=3, accounting="pure"),
    PMWPub(rounds=4),
    PMWPub(rounds=4, selection="permute-and-flip", output="last", prior="uniform"),
    AIM(rounds_per_attribute=4),
    Aperture(max_rounds=4),
    JAM(rounds=5),
    JAM(rounds=4, weighting="public-error", last_round="private", repeat_public=False),
]
UNITS = [Unit("replace"), Unit("add-or-remove"), Unit("replace", records=2)]


def ids(value):
    if isinstance(value, Unit):
        return f"{value.relation}-{value.records}"
    return f"{value.name}-{getattr(value, 'accounting', '')}"


def currency(mechanism):
    return {"epsilon": "3/2"} if getattr(mechanism, "accounting", "zcdp") == "pure" else {"rho": "1/20"}


def public_for(mechanism, toy):
    if mechanism.public_data == "unused":
        return None
    rng = np.random.default_rng(2)
    return Table.of_codes(
        toy.table.domain, np.stack([rng.integers(0, k, 300) for k in toy.table.domain.shape], axis=1)
    )


def run(mechanism, toy, **settings):
    curator, ledger = toy.curator(**currency(mechanism), **settings)
    return mechanism.run(curator, toy.workload, public=public_for(mechanism, toy)), curator, ledger


@pytest.mark.parametrize("unit", UNITS, ids=ids)
@pytest.mark.parametrize("mechanism", MECHANISMS, ids=ids)
def test_all_that_was_spent_is_in_the_release_and_in_the_ledger(mechanism, unit, toy):
    release, curator, ledger = run(mechanism, toy, unit=unit)

    allotted = curator.allotment.value
    spent = sum((event.cost.value for event in release.events), Fraction(0))
    assert spent == allotted - curator.remaining.value
    assert 0 < spent <= allotted
    assert release.events == tuple(ledger.events())


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=ids)
def test_the_model_is_a_distribution_with_the_right_total(mechanism, toy):
    release, _, _ = run(mechanism, toy)

    for query in toy.workload:
        counts = release.count(query.attrs)
        assert counts.shape == toy.table.domain.project(query.attrs).shape
        assert counts.min() >= 0
        assert counts.sum() == pytest.approx(toy.table.records)


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=ids)
def test_the_same_noise_gives_the_same_release(mechanism, toy):
    first, _, _ = run(mechanism, toy, noise=SeededNoise(5))
    again, _, _ = run(mechanism, toy, noise=SeededNoise(5))
    other, _, _ = run(mechanism, toy, noise=SeededNoise(6))

    assert np.array_equal(first.count(("a", "b", "c")), again.count(("a", "b", "c")))
    assert not np.array_equal(first.count(("a", "b", "c")), other.count(("a", "b", "c")))


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=ids)
def test_a_release_is_a_function_of_the_noisy_outputs_alone(mechanism, toy, tmp_path):
    """Taint test: replayed against an unrelated table, the journal gives the identical release."""
    journal = Journal.open(tmp_path / "run", run="r", settings={})
    release, _, _ = run(mechanism, toy, journal=journal)
    journal.close()
    empty = Table.of_codes(toy.table.domain, np.zeros((toy.table.records, 3), dtype=np.uint8))
    elsewhere = type(toy)(empty, toy.workload)

    with Journal.open(tmp_path / "run", run="r", settings={}) as replayed:
        again, _, _ = run(mechanism, elsewhere, journal=replayed)

    assert np.array_equal(release.count(("a", "b", "c")), again.count(("a", "b", "c")))
    assert release.events == again.events


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=ids)
def test_much_budget_gives_small_error(mechanism, toy):
    cost = {"epsilon": "50000"} if "epsilon" in currency(mechanism) else {"rho": "100000"}
    loose, _ = toy.curator(**cost)

    release = mechanism.run(loose, toy.workload, public=public_for(mechanism, toy))

    error = max(np.abs(release.count(q.attrs) - toy.table.count(q.attrs)).max() for q in toy.workload)
    assert error < 0.25 * toy.table.records


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=ids)
def test_a_saved_release_comes_back_the_same(mechanism, toy, tmp_path):
    release, _, _ = run(mechanism, toy)

    Release.of(release).save(tmp_path / "out")
    loaded = Release.load(tmp_path / "out")

    assert np.allclose(loaded.count(("c", "a")), release.count(("c", "a")), rtol=0, atol=1e-9)
    assert loaded.events == release.events
    assert [m.query for m in loaded.measurements] == [m.query for m in release.measurements]
    for ours, theirs in zip(loaded.measurements, release.measurements, strict=True):
        assert np.array_equal(ours.answer, theirs.answer)
        assert ours.stddev == theirs.stddev


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=ids)
def test_samples_have_the_number_asked_for_and_follow_the_model(mechanism, toy):
    release, _, _ = run(mechanism, toy)

    table = release.model.sample(5000, seed=3)

    assert table.records == 5000
    expected = release.count(("a",)) * 5000 / release.total
    assert np.abs(table.count(("a",)) - expected).max() < 250


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=ids)
def test_public_data_is_refused_or_demanded_as_the_mechanism_says(mechanism, toy):
    public = public_for(MECHANISMS[0], toy) or toy.table
    if mechanism.public_data == "unused":
        with pytest.raises(SettingError, match="does not use public data"):
            mechanism.check(toy.table.domain, toy.workload, public)
    if mechanism.public_data == "needed":
        with pytest.raises(SettingError, match="starts from public data"):
            mechanism.check(toy.table.domain, toy.workload, None)


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=ids)
def test_a_curator_without_budget_refuses_to_look(mechanism, toy):
    curator, _ = toy.curator(**currency(mechanism))
    mechanism.run(curator, toy.workload, public=public_for(mechanism, toy))
    spent = curator.events

    with pytest.raises(BudgetExhausted):
        curator.measure(toy.workload[0], curator.allotment)

    assert curator.events == spent
