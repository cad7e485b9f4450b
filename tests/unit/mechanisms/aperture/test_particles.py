"""APERTURE beyond its tree: more marginals than a tree has room for, all of them paid for."""

import sys
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from entangled import CELLS, DOMAIN, REPLACE, WORKLOAD, curator_of, error, ledger_of, table_of

from sidelight.curator.curator import Curator
from sidelight.curator.journal import Journal
from sidelight.data.domain import Domain
from sidelight.data.table import Table
from sidelight.errors import SettingError
from sidelight.mechanisms.aperture.aperture import Aperture
from sidelight.models.support import Support
from sidelight.privacy.budget import Rho
from sidelight.privacy.event import Exponential, Gaussian
from sidelight.privacy.unit import Unit
from sidelight.queries.workload import Workload
from sidelight.testing import SeededNoise
from sidelight.trees.triangulation import BYTES_PER_CELL, SizeOracle

LIMIT = CELLS * BYTES_PER_CELL / 2**20
# Room in the tree for single attributes and two or three pairs, of ten; a rough fit is enough.
CRAMPED = Aperture(
    max_rounds=2,
    max_particle_rounds=8,
    max_model_mb=LIMIT,
)


@pytest.mark.parametrize("public", [None, table_of(50, seed=2)], ids=["alone", "with public records"])
def test_where_the_tree_has_no_room_particles_go_far_below_its_error(public):
    for seed in range(3):
        beyond, tree = (
            error(
                replace(CRAMPED, particle_share=share).run(
                    curator_of("1", seed=seed), WORKLOAD, public=public
                )
            )
            for share in (0.5, 0.0)
        )
        assert beyond < 0.5 * tree


def test_marginals_are_measured_that_no_tree_of_that_size_could_hold():
    release = CRAMPED.run(curator_of("1"), WORKLOAD)

    measured = [made.query.attrs for made in release.measurements]
    assert SizeOracle(DOMAIN, measured).cells > CELLS
    assert isinstance(release.model, Support)
    assert release.aperture.particle_rounds == 8
    assert release.aperture.particles == 3**5
    assert len(release.measurements) == 5 + len(release.aperture.asked_again) + release.aperture.rounds + 8


@pytest.mark.parametrize("unit", [REPLACE, Unit("add-or-remove"), Unit("replace", 3)], ids=str)
@pytest.mark.parametrize("public", [None, table_of(3000, seed=2)], ids=["alone", "with public records"])
def test_every_bit_of_the_budget_is_spent_and_as_much_beyond_the_tree_as_is_said(unit, public):
    curator = curator_of("1/2", unit=unit)

    release = replace(CRAMPED, particle_share=0.25).run(curator, WORKLOAD, public=public)

    assert not curator.remaining
    spent = {place: event.cost.value for place, event in enumerate(curator.events)}
    assert sum(spent.values()) == Fraction(1, 2)
    opened = release.aperture
    late = curator.events[-2 * opened.particle_rounds :]
    early = next(k for k, event in enumerate(curator.events) if isinstance(event, Exponential))
    choice = [event.cost.value for event in curator.events if "options" in event.what]
    rounds = sum(event.cost.value for event in curator.events[early:]) - sum(choice)
    assert sum(event.cost.value for event in late) == rounds / 4
    selected = [event for event in late if isinstance(event, Exponential)]
    assert len(selected) == sum(isinstance(event, Gaussian) for event in late) == 8
    for event in selected:
        assert unit.l1 <= event.sensitivity < unit.l1 * (1 + Fraction(1, 10**6))


def test_nothing_goes_beyond_the_tree_where_noise_would_swamp_it():
    shares = [
        CRAMPED.run(curator_of(rho), WORKLOAD, public=table_of(300, seed=2)).aperture.particle_share
        for rho in ("1/10000000", "100")
    ]

    assert shares == [0.0, 0.5]


def test_no_more_is_measured_than_there_are_candidates():
    release = replace(CRAMPED, max_particle_rounds=10_000).run(curator_of("1"), WORKLOAD)

    late = [made.query.attrs for made in release.measurements[-release.aperture.particle_rounds :]]
    assert 8 < len(late) <= 15


def test_what_is_measured_beyond_the_tree_has_at_most_twice_as_many_cells_as_a_tree():
    release = replace(CRAMPED, max_particle_rounds=10_000).run(curator_of("1"), WORKLOAD)

    late = release.aperture.particle_rounds
    before = {made.query.attrs for made in release.measurements[:-late]}
    new = {made.query.attrs for made in release.measurements[-late:]} - before
    assert len(new) > 2
    assert sum(DOMAIN.size(attrs) for attrs in new) <= 2 * CELLS


class Interrupted(Exception):
    """The power went."""


class Mortal(Curator):
    """A curator that dies after so many events."""

    lives = 0

    def _pay_then(self, event, look, draw, **more):
        output = super()._pay_then(event, look, draw, **more)
        if len(self.events) == self.lives:
            raise Interrupted
        return output


@pytest.mark.parametrize("lives", [11, 12, 15, 24])
def test_a_run_that_was_interrupted_within_a_batch_resumes_to_the_same_release(tmp_path, lives):
    ledger, noise = ledger_of(REPLACE), SeededNoise(5)
    run = ledger.begin(Rho(Fraction(1, 100)), label="interrupted")
    settings = {"ledger": ledger, "run": run, "noise": noise}
    Mortal.lives = lives
    with Journal.open(tmp_path, run=run, settings={}) as journal, pytest.raises(Interrupted):
        CRAMPED.run(curator_of("1/100", kind=Mortal, journal=journal, **settings), WORKLOAD)

    with Journal.open(tmp_path, run=run, settings={}) as journal:
        resumed = CRAMPED.run(curator_of("1/100", journal=journal, **settings), WORKLOAD)

    undisturbed = CRAMPED.run(curator_of("1/100", seed=5), WORKLOAD)
    assert resumed.events == undisturbed.events
    assert np.array_equal(resumed.count(DOMAIN.attrs), undisturbed.count(DOMAIN.attrs))


def test_a_wide_marginal_that_the_model_may_not_hold_is_no_candidate():
    domain = Domain.of({"a": 2, "b": 2, "c": 40})
    table = Table.of_codes(domain, np.zeros((50, 3), dtype=np.int64))
    curator = Curator(table, allotment=Rho(1), unit=REPLACE, ledger=ledger_of(REPLACE), noise=SeededNoise(0))
    mechanism = Aperture(max_rounds=1, max_model_mb=60 * BYTES_PER_CELL / 2**20, oversized="skip")

    release = mechanism.run(curator, Workload.marginals(domain, degree=2))

    assert {made.query.attrs for made in release.measurements} <= {("a",), ("b",), ("c",), ("a", "b")}


@pytest.mark.parametrize(
    "setting", [{"particle_share": 1.0}, {"particle_share": -0.1}, {"max_particle_rounds": 0}]
)
def test_settings_outside_their_range_are_refused(setting):
    with pytest.raises(SettingError, match=next(iter(setting))):
        Aperture(**setting)


def binary(attributes):
    return Domain.of({f"x{place:02d}": 2 for place in range(attributes)})


@pytest.mark.parametrize(
    ("attributes", "degree", "most"), [(22, 2, 64), (24, 2, 128), (41, 2, 384), (24, 3, 64)]
)
def test_more_is_planned_beyond_the_tree_where_there_are_many_pairs_and_nothing_larger(
    attributes, degree, most
):
    domain = binary(attributes)
    workload = Workload.marginals(domain, degree=degree)

    outlook = Aperture().outlook(domain, workload, allotment=Rho(1), unit=REPLACE)

    in_the_tree = 36 if degree == 2 else 12
    assert outlook.measurements == attributes + 12 + in_the_tree + most


@pytest.mark.parametrize(
    ("rho", "has_public", "rounds"),
    [("1", False, 32), ("1/20000", True, 16), ("1/20000", False, 0)],
    ids=["heard clearly", "heard, and public relations lead", "heard, but not clearly"],
)
def test_of_many_pairs_no_more_are_measured_than_could_be_heard(rho, has_public, rounds):
    domain = binary(24)
    pairwise = np.random.default_rng(0).integers(0, 2, (500, 12)).repeat(2, axis=1)
    table = Table.of_codes(domain, pairwise)
    curator = Curator(
        table, allotment=Rho(Fraction(rho)), unit=REPLACE, ledger=ledger_of(REPLACE), noise=SeededNoise(0)
    )
    small = Aperture(max_rounds=1, max_particle_rounds=16, max_asked_again=0, max_model_mb=0.002)

    outcome = small.run(curator, Workload.marginals(domain, degree=2), public=table if has_public else None)

    assert outcome.aperture.particle_rounds == rounds
    assert not curator.remaining
    noisiest = small.noisiest(
        domain, Workload.marginals(domain, degree=2), allotment=curator.allotment, unit=REPLACE
    )
    assert max(made.stddev for made in outcome.measurements) <= max(event.stddev for event in noisiest)


@pytest.mark.parametrize(("share", "rounds"), [(0.5, 4), (0.9, 4), (0.25, 2)])
def test_where_triples_are_heard_but_not_clearly_the_tree_gets_more_rounds(share, rounds):
    domain = binary(12)
    table = Table.of_codes(domain, np.random.default_rng(0).integers(0, 2, (500, 12)))
    curator = Curator(
        table, allotment=Rho(Fraction(1, 200)), unit=REPLACE, ledger=ledger_of(REPLACE), noise=SeededNoise(0)
    )
    triples = Workload.marginals(domain, degree=3)
    small = Aperture(
        max_rounds=2, max_particle_rounds=16, max_asked_again=0, max_model_mb=0.001, particle_share=share
    )

    outcome = small.run(curator, triples)

    assert (outcome.aperture.rounds, outcome.aperture.particle_rounds) == (rounds, 0)
    assert not curator.remaining
    noisiest = small.noisiest(domain, triples, allotment=curator.allotment, unit=REPLACE)
    assert max(made.stddev for made in outcome.measurements) <= max(event.stddev for event in noisiest)


def test_one_answer_that_may_be_asked_again_hides_no_noise_of_the_rounds():
    """Such an answer takes all that is left; where none is asked for, the rounds have it."""
    asked_once = Aperture(max_asked_again=1, one_way_share=0.8)

    noisiest = asked_once.noisiest(DOMAIN, WORKLOAD, allotment=Rho(1), unit=REPLACE)
    outcome = asked_once.run(curator_of("1"), WORKLOAD)

    assert not outcome.aperture.asked_again
    assert max(made.stddev for made in outcome.measurements) <= max(event.stddev for event in noisiest)
