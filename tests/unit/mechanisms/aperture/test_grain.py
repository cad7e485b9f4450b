"""How much of the public records themselves APERTURE takes, and what that costs."""

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
from sidelight.mechanisms.aperture.grain import judged
from sidelight.models.graphical import GraphicalModel
from sidelight.models.mixture import Blend
from sidelight.models.support import Support
from sidelight.privacy.budget import Rho
from sidelight.privacy.event import Exponential, Gaussian
from sidelight.privacy.unit import Unit
from sidelight.queries.workload import Workload
from sidelight.releases.release import Release
from sidelight.testing import SeededNoise
from sidelight.trees.triangulation import BYTES_PER_CELL

CLOSURE = WORKLOAD.closure(DOMAIN)
# Room for single attributes and two or three pairs, of ten; the choice comes last.
CRAMPED = Aperture(
    max_rounds=2,
    particle_share=0.0,
    max_model_mb=CELLS * BYTES_PER_CELL / 2**20,
)


@pytest.fixture(scope="module")
def prior():
    """Of the private law, and with records that are worth more than the model."""
    found = CRAMPED.prior(table_of(8000, seed=2), DOMAIN, CLOSURE)
    assert found.grain is not None
    assert found.others
    return found


def test_where_the_tree_has_no_room_for_it_the_blend_errs_less_than_the_tree(prior):
    gains = []
    for seed in range(3):
        release = CRAMPED.run(curator_of("1/100", seed=seed), WORKLOAD, public=prior)
        model = release.model
        assert isinstance(model, Blend)
        assert release.aperture.records_share == model.share
        gains.append(error(model) / error(model.model))

    assert max(gains) < 0.7


def test_records_that_do_not_hold_what_the_people_are_like_are_not_taken_where_there_is_budget(toy):
    domain, mechanism = toy.table.domain, Aperture(max_rounds=4, particle_share=0.0)
    # Nobody in public has a value other than 0 in a, whatever the answers say.
    codes = toy.table.codes().copy()
    codes[:, 0] = 0
    useless = replace(
        mechanism.prior(toy.table, domain, toy.workload.closure(domain)),
        grain=Support.of_table(Table.of_codes(domain, codes), total=1.0),
        grain_share=0.5,
        others=(),
    )
    for seed in range(3):
        curator, _ = toy.curator(rho="1000", noise=SeededNoise(seed))

        release = mechanism.run(curator, toy.workload, public=useless)

        assert curator.events[-1].what == "3 options, by 3 queries"
        assert isinstance(release.model, GraphicalModel)


@pytest.mark.parametrize("unit", [REPLACE, Unit("add-or-remove")], ids=lambda unit: unit.relation)
@pytest.mark.parametrize("has_grain", [True, False])
def test_all_of_the_budget_is_spent_with_records_to_choose_and_without(prior, unit, has_grain):
    curator = curator_of("1/2", unit=unit)
    public = prior if has_grain else replace(prior, grain=None, grain_share=0.0, others=())

    release = CRAMPED.run(curator, WORKLOAD, public=public)

    assert not curator.remaining
    assert sum(event.cost.value for event in curator.events) == Fraction(1, 2)
    last = release.events[-1]
    assert isinstance(last, Exponential if has_grain else Gaussian)
    if has_grain:
        assert last.cost.value == Fraction(1, 2) * Fraction(CRAMPED.grain_share)
        assert last.candidates == 9
        assert unit.l1 <= last.sensitivity < unit.l1 * (1 + Fraction(1, 10**6))


@pytest.mark.parametrize("one_way_share", [0.9699, 0.99])
def test_where_little_is_left_for_it_the_choice_takes_what_there_is(prior, one_way_share):
    curator = curator_of("1/2")

    replace(CRAMPED, one_way_share=one_way_share).run(curator, WORKLOAD, public=prior)

    assert not curator.remaining
    assert curator.events[-1].what == "9 options, by 10 queries"


def test_no_more_is_taken_than_what_public_data_alone_would_have(prior):
    timid = replace(prior, grain_share=0.2, others=())
    shares = set()
    for seed in range(12):
        model = CRAMPED.run(curator_of("1/100000", seed=seed), WORKLOAD, public=timid).model
        shares.add(model.share if isinstance(model, Blend) else 0.0)

    # With hardly any noisy answer worth following, the weights stay about as even as they were.
    assert max(shares) <= 0.21
    assert len(shares) > 1


class Interrupted(Exception):
    """The power went."""


class Fragile(Curator):
    """A curator that does not live to choose."""

    def choose(self, queries, judgement, cost):
        raise Interrupted


class Forgetful(Curator):
    """A curator that dies as soon as it has chosen."""

    def choose(self, queries, judgement, cost):
        super().choose(queries, judgement, cost)
        raise Interrupted


def same(first: Release, second: Release) -> bool:
    return (
        first.events == second.events
        and first.model.share == second.model.share
        and np.array_equal(first.count(DOMAIN.attrs), second.count(DOMAIN.attrs))
    )


@pytest.mark.parametrize("kind", [Fragile, Forgetful])
def test_a_run_that_was_interrupted_around_the_choice_resumes_to_the_same_release(prior, tmp_path, kind):
    ledger, noise = ledger_of(REPLACE), SeededNoise(5)
    run = ledger.begin(Rho(Fraction(1, 100)), label="interrupted")
    settings = {"ledger": ledger, "run": run, "noise": noise}
    with Journal.open(tmp_path, run=run, settings={}) as journal, pytest.raises(Interrupted):
        CRAMPED.run(curator_of("1/100", kind=kind, journal=journal, **settings), WORKLOAD, public=prior)

    with Journal.open(tmp_path, run=run, settings={}) as journal:
        # Noise goes on where it was: what is replayed draws none.
        curator = curator_of("1/100", journal=journal, **settings)
        resumed = CRAMPED.run(curator, WORKLOAD, public=prior)

    undisturbed = CRAMPED.run(curator_of("1/100", seed=5), WORKLOAD, public=prior)
    assert same(resumed, undisturbed)
    assert tuple(ledger.events(run)) == undisturbed.events


def test_a_blend_is_judged_by_the_largest_marginals_that_fit_the_model():
    domain = Domain.of({"a": 2, "b": 3, "c": 50, "d": 60})
    closure = Workload([("a", "b", "c"), ("c", "d"), ("d",)]).closure(domain)

    def asked(cells):
        return set(judged(domain, closure, limit_mb=cells * BYTES_PER_CELL / 2**20))

    assert asked(10_000) == {("a", "b", "c"), ("c", "d")}
    assert asked(1000) == {("a", "b", "c")}
    assert asked(100) == {("a",), ("b",), ("c",), ("d",)}


def test_of_very_many_marginals_a_part_is_judged_by():
    domain = Domain.of({f"a{i}": 2 for i in range(60)})
    closure = Workload.marginals(domain, degree=2).closure(domain)

    found = judged(domain, closure, limit_mb=1.0)

    assert 150 <= len(found) < 300
    assert all(len(attrs) == 2 for attrs in found)


@pytest.mark.parametrize("share", [1.0, -0.1])
def test_a_share_of_the_budget_outside_its_range_is_refused(share):
    with pytest.raises(SettingError, match="grain_share"):
        Aperture(grain_share=share)


def test_without_a_budget_for_the_choice_no_records_are_taken_and_all_is_measured(prior):
    curator = curator_of("1/10")

    release = replace(CRAMPED, grain_share=0.0).run(curator, WORKLOAD, public=prior)

    assert isinstance(release.model, GraphicalModel)
    assert not curator.remaining
    assert release.aperture.records_share is None
