"""The arbiter: what public relations lead, how much stands beside the tree, and what that costs."""

import sys
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from entangled import CELLS, DOMAIN, PRIVATE, REPLACE, WORKLOAD, curator_of, error, ledger_of, table_of

from sidelight.curator.curator import Curator
from sidelight.curator.journal import Journal
from sidelight.data.domain import Domain
from sidelight.data.table import Table
from sidelight.errors import SettingError
from sidelight.mechanisms.aperture.aperture import Aperture
from sidelight.mechanisms.aperture.arbiter import (
    _MOST_SETS,
    FOR_RELATIONS,
    Arbiter,
    handicaps_of_cuts,
    odds_of_cuts,
    sets_to_cut,
)
from sidelight.models.graphical import GraphicalModel
from sidelight.models.support import Support
from sidelight.privacy.budget import Rho
from sidelight.privacy.event import Exponential
from sidelight.privacy.unit import Unit
from sidelight.queries.workload import Workload
from sidelight.releases.release import Release
from sidelight.select.judgement import OPTIONS
from sidelight.testing import SeededNoise
from sidelight.trees.triangulation import BYTES_PER_CELL

CLOSURE = WORKLOAD.closure(DOMAIN)
# Room for single attributes and two or three pairs, of ten; the choice comes last.
CRAMPED = Aperture(
    max_rounds=2,
    max_asked_again=0,
    particle_share=0.0,
    max_model_mb=CELLS * BYTES_PER_CELL / 2**20,
)


@pytest.fixture(scope="module")
def prior():
    """Of the private law, and with records that are worth more than the model."""
    found = CRAMPED.prior(table_of(8000, seed=2), DOMAIN, CLOSURE)
    assert found.sample is not None
    assert found.others
    return found


def test_where_the_tree_has_no_room_for_it_the_mixture_errs_less_than_the_tree(prior):
    gains = []
    for seed in range(3):
        mixed, tree = (
            replace(CRAMPED, mixture_share=share).run(curator_of("1/100", seed=seed), WORKLOAD, public=prior)
            for share in (CRAMPED.mixture_share, 0.0)
        )
        assert isinstance(mixed.model, Support)
        assert 0 < mixed.aperture.records_share < 1
        gains.append(error(mixed.model) / error(tree.model))

    assert max(gains) < 0.7


def test_records_that_do_not_hold_what_the_people_are_like_are_not_taken_where_there_is_budget(toy):
    domain, mechanism = toy.table.domain, Aperture(max_rounds=4, particle_share=0.0)
    # Nobody in public has a value other than 0 in a, whatever the answers say.
    codes = toy.table.codes().copy()
    codes[:, 0] = 0
    useless = replace(
        mechanism.prior(toy.table, domain, toy.workload.closure(domain)),
        sample=Support.of_table(Table.of_codes(domain, codes), total=1.0),
        sample_share=0.5,
        others=(),
    )
    for seed in range(3):
        curator, _ = toy.curator(rho="1000", noise=SeededNoise(seed))

        release = mechanism.run(curator, toy.workload, public=useless)

        assert curator.events[-1].what == "4 options, by 3 queries"
        assert isinstance(release.model, GraphicalModel)


@pytest.mark.parametrize("unit", [REPLACE, Unit("add-or-remove")], ids=lambda unit: unit.relation)
@pytest.mark.parametrize(("is_much", "options"), [(True, 10), (False, 2)])
def test_all_of_the_budget_is_spent_with_something_beside_the_tree_and_without(prior, unit, is_much, options):
    curator = curator_of("1/2", unit=unit)
    public = prior if is_much else replace(prior, sample=None, sample_share=0.0, others=())

    release = CRAMPED.run(curator, WORKLOAD, public=public)

    assert not curator.remaining
    assert sum(event.cost.value for event in curator.events) == Fraction(1, 2)
    last = release.events[-1]
    assert isinstance(last, Exponential)
    assert last.cost.value == Fraction(1, 2) * Fraction(CRAMPED.mixture_share)
    assert last.candidates == options
    assert unit.l1 <= last.sensitivity < unit.l1 * (1 + Fraction(1, 10**6))


def test_no_more_is_taken_than_what_public_data_alone_would_have(prior):
    timid = replace(prior, sample_share=0.2, others=())
    shares = set()
    for seed in range(12):
        release = CRAMPED.run(curator_of("1/100000", seed=seed), WORKLOAD, public=timid)
        shares.add(release.aperture.records_share)

    assert max(shares) <= 0.2
    assert len(shares) > 1


def test_where_the_arbiter_could_not_tell_all_that_stands_beside_the_tree_is_taken_unasked(prior):
    """Chance would take the answers alone, which know next to nothing, in one run of several."""
    for seed in range(6):
        curator = curator_of("1/10000000", seed=seed)

        release = CRAMPED.run(curator, WORKLOAD, public=prior)

        assert not curator.remaining
        assert not any("options" in event.what for event in curator.events)
        assert release.aperture.records_share > 0.9
        assert not release.aperture.is_bare


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
        and first.aperture == second.aperture
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


def arbiter_of(domain, workload, cells):
    curator = SimpleNamespace(domain=domain)
    closure = workload.closure(domain)
    return Arbiter.of(curator, closure, total=1.0, limit_mb=cells * BYTES_PER_CELL / 2**20)


@pytest.mark.parametrize(
    ("cells", "judged"),
    [
        (10_000, {("a", "b", "c"), ("c", "d")}),
        (1000, {("a", "b", "c")}),
        (100, {("a",), ("b",), ("c",), ("d",)}),
    ],
)
def test_candidates_are_judged_by_the_largest_marginals_that_fit_the_model(cells, judged):
    domain = Domain.of({"a": 2, "b": 3, "c": 50, "d": 60})

    found = arbiter_of(domain, Workload([("a", "b", "c"), ("c", "d"), ("d",)]), cells)

    assert set(found.judged) == judged


def test_of_very_many_marginals_a_part_is_judged_by():
    domain = Domain.of({f"a{i}": 2 for i in range(60)})

    found = arbiter_of(domain, Workload.marginals(domain, degree=2), 10_000).judged

    assert 64 <= len(found) < 130
    assert all(len(attrs) == 2 for attrs in found)


@pytest.mark.parametrize("setting", ["contest_share", "mixture_share"])
@pytest.mark.parametrize("share", [1.0, -0.1])
def test_a_share_of_the_budget_outside_its_range_is_refused(setting, share):
    with pytest.raises(SettingError, match=setting):
        Aperture(**{setting: share})


def test_without_a_budget_for_the_mixture_no_records_are_taken_and_all_is_measured(prior):
    curator = curator_of("1/10")

    release = replace(CRAMPED, mixture_share=0.0).run(curator, WORKLOAD, public=prior)

    assert isinstance(release.model, GraphicalModel)
    assert not curator.remaining
    assert release.aperture.records_share is None


# Public data that lie: the relations of one attribute, or of all.


def lying(*attrs):
    """The private law, with the codes of some attributes turned round."""
    codes = table_of(8000, seed=2).codes().copy()
    for attr in attrs:
        place = DOMAIN.attrs.index(attr)
        codes[:, place] = (codes[:, place] + 1 + place % 2) % 3
    return Table.of_codes(DOMAIN, codes)


ROOMY = Aperture(max_rounds=2, particle_share=0.0, max_asked_again=0)


@pytest.mark.parametrize("off", ["", "b", "bd", "abcd"])
def test_with_budget_enough_what_lies_is_cut_off_and_nothing_else(off):
    """Where four lie, those that lie alike go with each other as they should, and with nothing else."""
    for seed in range(3):
        release = ROOMY.run(curator_of("10", seed=seed), WORKLOAD, public=lying(*off))

        assert "".join(release.aperture.cut) in (("ace", "bde") if off == "abcd" else (off,))


def test_without_a_contest_every_public_relation_leads():
    release = replace(ROOMY, contest_share=0.0).run(curator_of("10"), WORKLOAD, public=lying(*"abcd"))

    assert release.aperture.cut == ()


def test_where_the_budget_tells_nothing_the_arbiter_is_not_asked_and_public_relations_lead():
    for rho, is_asked in (("1/10", True), ("1/10000000", False)):
        release = ROOMY.run(curator_of(rho), WORKLOAD, public=lying("b"))

        choices = [event for event in release.events if isinstance(event, Exponential)]
        # Every set of up to three attributes, all five, and at least no public data.
        assert (choices[0].candidates >= 1 + 5 + 10 + 10 + 1 + 1) == is_asked
        assert is_asked or release.aperture.cut == ()


def model_of(table):
    prior = ROOMY.prior(table, DOMAIN, CLOSURE)
    return GraphicalModel(DOMAIN, float(PRIVATE.records), prior.model.potentials)


def test_the_best_of_several_models_leads_and_the_first_is_cut_where_that_is_better():
    truth, false, off = (model_of(table) for table in (table_of(8000, seed=2), lying(*"abcd"), lying("b")))
    cases = {
        "truth": ([truth, false], 0, []),
        "other": ([false, truth], 1, []),
        "cut": ([off, false], 0, ["b"]),
    }
    for models, place, cut in cases.values():
        curator = curator_of("1")
        arbiter = Arbiter.of(curator, CLOSURE, total=float(PRIVATE.records), limit_mb=1.0)

        assert arbiter.to_cut(models, DOMAIN.attrs, curator.remaining) == (place, cut)


@pytest.mark.parametrize("attributes", [2, 3, 5, 15, 60])
def test_sets_to_cut_off_are_all_or_as_many_as_there_is_room_for_and_small_ones_come_first(attributes):
    sets = sets_to_cut(attributes)

    assert not sets[0].any()
    assert sets[-1].all()
    assert len(np.unique(sets, axis=0)) == len(sets)
    assert sets.any(axis=1).sum() <= _MOST_SETS == 2**14
    sizes = sets.sum(axis=1)
    assert (np.diff(sizes) >= 0).all()
    assert attributes not in (3, 5) or len(sets) == 2**attributes - attributes
    # All of a size are there, or none; a single attribute that stays has nothing to go with.
    assert set(range(1 if attributes > 2 else 0, min(attributes - 1, 3))) <= set(sizes.tolist())


@pytest.mark.parametrize("others", [1, 4])
def test_all_public_relations_are_likelier_beforehand_than_all_else_together(others):
    chances = np.exp(odds_of_cuts(sets_to_cut(9), others))

    assert len(chances) == len(sets_to_cut(9)) + others
    some, all_of_them, left_out, nothing = np.split(chances[1:], [-others - 1, -others, -1])
    assert chances[0] == 1 > chances[1:].sum()
    for doubts in (some, all_of_them, nothing, *([left_out] if others > 1 else [])):
        assert doubts.sum() == pytest.approx(np.exp(-2.0))


@pytest.mark.parametrize("off", ["", "b"])
def test_it_is_asked_once_at_the_start_whether_or_not_relations_hold(off):
    release = ROOMY.run(curator_of("10"), WORKLOAD, public=lying(*off))

    asked = [event for event in release.events if OPTIONS in event.what][:-1]  # the last is about mixtures
    # With so much budget less than its share tells finely enough.
    assert [float(4 / event.epsilon) / PRIVATE.records for event in asked] == [pytest.approx(FOR_RELATIONS)]
    assert float(asked[0].cost.value) < 10 * ROOMY.contest_share


@pytest.mark.parametrize("records", [50.0, 500.0, 5e4, 5e6])
def test_a_question_costs_as_little_as_tells_finely_and_nothing_where_it_cannot_tell(records):
    rho, share, finely = 0.01, 0.04, 0.005
    curator = curator_of(str(Fraction(rho)))
    most = 4 / np.sqrt(8 * share * rho) / records  # what all of the share tells, as a part of n

    cost = float(Arbiter(curator, {}, records).price(share, finely=finely))

    if most >= 0.1:
        assert cost == 0
    else:
        told = 4 / np.sqrt(8 * cost) / records
        assert told == pytest.approx(np.clip(finely, most, most * np.sqrt(10)))
    assert {50.0: cost == 0, 500.0: cost == 0, 5e4: cost < share * rho, 5e6: cost < share * rho}[records]


def test_a_question_that_the_whole_share_does_not_tell_finely_costs_all_of_it():
    cost = Arbiter(curator_of("1/100"), {}, 5000.0).price(0.04, finely=0.005)

    assert cost == Rho(Fraction(1, 100)).split(0.04)[0]


def test_cutting_off_has_to_save_a_part_of_n_and_more_where_relations_are_left():
    """Beyond its odds."""
    seen, n = [], 1000.0
    curator = SimpleNamespace(domain=DOMAIN, choose=lambda _, contest, cost: seen.append(contest) or 0)
    arbiter = Arbiter(curator, {("a", "b"): 1.0}, n)

    arbiter.to_cut([GraphicalModel.uniform(DOMAIN, total=n)], DOMAIN.attrs, None)

    starts = seen[0].start(10.0)
    assert starts[0] == 0
    # One of five attributes, where one, two or three may be cut off; and all of them.
    assert starts[1] == pytest.approx(-40 - 10 * (2 + np.log(3) + np.log(5)))
    assert starts[-1] == pytest.approx(-10 - 10 * 2)


def test_shares_that_could_not_pay_for_both_questions_are_refused():
    greedy = Aperture(contest_share=0.48)
    with pytest.raises(SettingError, match="twice contest_share"):
        list(greedy.noisiest(DOMAIN, WORKLOAD, allotment=Rho(Fraction(1)), unit=REPLACE))


def test_at_the_end_answers_without_public_relations_win_where_public_data_spoil_them():
    lies, truth = model_of(lying(*"abcd")), model_of(table_of(8000, seed=2))
    records = Support.of_table(lying(*"abcd"), total=float(PRIVATE.records))
    for bare, model in ((truth, lies), (lies, truth)):
        curator = curator_of("1")
        arbiter = Arbiter.of(curator, CLOSURE, total=float(PRIVATE.records), limit_mb=1.0)

        taken = arbiter.shares(model, [(records, 0.5)], bare, curator.remaining)

        assert taken == (None if bare is truth else [0.0])


def test_of_two_public_tables_the_one_that_lies_is_left_out():
    """Their single attributes are alike, so that nothing but relations can tell them apart."""
    for seed in range(3):
        release = ROOMY.run(
            curator_of("10", seed=seed), WORKLOAD, public=[lying(*"abcd"), table_of(8000, seed=3)]
        )

        assert release.aperture.public_records == 8000
        assert release.aperture.cut == ()


def test_endless_budget_finds_the_best_candidate():
    """Each of the tables errs less than the one before it."""
    tables = [lying(*"abcd"[:k]) for k in (4, 2, 1, 0)]
    models = [model_of(table) for table in tables]
    for order in ([0, 1, 2, 3], [3, 1, 0, 2]):
        curator = curator_of("1000000")
        arbiter = Arbiter.of(curator, CLOSURE, total=float(PRIVATE.records), limit_mb=1.0)

        assert order[arbiter.best([models[k] for k in order], curator.remaining)] == 3


@pytest.mark.parametrize("off", ["", "b", "abcd"])
def test_a_run_is_the_same_beside_an_unrelated_table_with_the_same_answers(tmp_path, off):
    """Candidates of the arbiter come from public data and paid answers: an unpaid look would show here."""
    public, noise = lying(*off), SeededNoise(5)
    ledger = ledger_of(REPLACE)
    run = ledger.begin(Rho(Fraction(1)), label="first")
    settings = {"ledger": ledger, "run": run, "noise": noise}
    with Journal.open(tmp_path, run=run, settings={}) as journal:
        first = ROOMY.run(curator_of("1", journal=journal, **settings), WORKLOAD, public=public)

    unrelated = Table.of_codes(DOMAIN, np.zeros((PRIVATE.records, 5), dtype=np.int64))
    with Journal.open(tmp_path, run=run, settings={}) as journal:
        curator = Curator(
            unrelated, allotment=Rho(Fraction(1)), unit=REPLACE, ledger=ledger, run=run, noise=noise,
            journal=journal,
        )  # fmt: skip
        replayed = ROOMY.run(curator, WORKLOAD, public=public)

    assert replayed.aperture.cut == first.aperture.cut
    assert np.array_equal(replayed.count(DOMAIN.attrs), first.count(DOMAIN.attrs))


class Peeking(Arbiter):
    """The planted bug: a candidate is built from a second look that nobody paid for."""

    def best(self, models, cost):
        exact = self.curator._table.count(("a", "b"))
        spoilt = GraphicalModel(DOMAIN, self.total, {("a", "b"): np.log(exact + 1.0)})
        return super().best([*models, spoilt], cost) % len(models)


def test_a_candidate_from_an_unpaid_look_is_seen_in_the_chances():
    """One record moves the candidate too, so its error moves by more than the sensitivity says."""
    private = PRIVATE.codes()
    other = private.copy()
    other[:50] = private[50]
    moves = {}
    for kind in (Arbiter, Peeking):
        scores = []
        for codes in (private, other):
            table = Table.of_codes(DOMAIN, codes)
            seen = []
            curator = SimpleNamespace(
                domain=DOMAIN,
                _table=table,
                choose=lambda queries, judgement, cost, seen=seen, table=table: (
                    seen.append(
                        sum(
                            added(table.count(queries[k].attrs).reshape(-1))
                            for k, added in judgement.each(queries)
                        )
                    )
                    or 0
                ),
            )
            found = kind(curator, {("a", "b"): 1.0}, float(PRIVATE.records))
            found.best([GraphicalModel.uniform(DOMAIN, total=float(PRIVATE.records))], None)
            scores.append(seen[0])
        moves[kind] = np.abs(scores[0] - scores[1])

    # The honest candidate moves by what 50 replaced records can: 2 each.
    assert moves[Arbiter].max() <= 100
    # The spoilt one hardly errs on either table: it moved with the data, which its sensitivity does not know.
    assert moves[Peeking][-1] < 1


def test_relations_that_are_kept_beside_false_ones_have_to_save_more_than_none():
    sets = sets_to_cut(4)
    everything, *some, nothing_related, fewer, nothing = handicaps_of_cuts(sets, 2)

    assert len(sets) == 1 + len(some) + 1
    assert everything == 0.0
    assert nothing_related == nothing > 0.0
    assert min(*some, fewer) > nothing
    assert handicaps_of_cuts(sets, 0) == [everything, *some, nothing_related]
