"""APERTURE: its budget, how far it opens, and public data of every kind."""

from fractions import Fraction

import numpy as np
import pytest

from sidelight.data.domain import Domain
from sidelight.data.table import Table
from sidelight.errors import DataError, SchemaError, SettingError, TooLargeError, WorkloadError
from sidelight.fit.following import Pulled
from sidelight.measurement import Measurement
from sidelight.mechanisms.aim import AIM
from sidelight.mechanisms.aperture.aperture import Aperture
from sidelight.mechanisms.aperture.arbiter import Arbiter
from sidelight.mechanisms.aperture.evidence import Beliefs
from sidelight.models.graphical import GraphicalModel
from sidelight.privacy.event import Exponential, Gaussian
from sidelight.privacy.unit import Unit
from sidelight.public.prior import Prior, fit_prior
from sidelight.public.source import PublicRecords, WeightedRecords
from sidelight.queries.query import Marginal, Range
from sidelight.queries.workload import Workload
from sidelight.testing import SeededNoise

REPLACE = Unit("replace")


def table_like(toy, records, seed, *, flip=False):
    """Records of the toy's own law, or of another one."""
    rng = np.random.default_rng(seed)
    a = rng.integers(0, 2, records)
    b = np.minimum(a + rng.integers(0, 2, records), 2)
    codes = np.stack([1 - a if flip else a, b, rng.integers(0, 4, records)], axis=1)
    return Table.of_codes(toy.table.domain, codes)


def error(release, table, workload):
    n = table.records
    return np.mean([np.abs(release.count(q.attrs) - table.count(q.attrs)).sum() / n for q in workload])


def test_every_bit_of_the_budget_is_spent_as_the_recipe_says(toy):
    curator, _ = toy.curator(rho="1/2")

    Aperture(max_rounds=4, max_asked_again=0, particle_share=0.0).run(
        curator, toy.workload, public=table_like(toy, 200, 3)
    )

    assert not curator.remaining
    ones, (contest, *rest, mixture) = curator.events[:3], curator.events[3:]
    assert all(isinstance(event, Gaussian) for event in ones)
    assert sum(event.cost.value for event in ones) == Fraction(1, 2) * Fraction(0.05)
    assert contest.what == "3 options, by 3 queries"
    assert contest.cost.value == Fraction(1, 2) * Fraction(0.04)
    assert mixture.cost.value == Fraction(1, 2) * Fraction(0.03)
    assert len(rest) == 2 * 6  # every set of the closure once: pairs alone would get 3 · 4 rounds
    for select, measure in zip(rest[::2], rest[1::2], strict=True):
        assert isinstance(select, Exponential)
        assert isinstance(measure, Gaussian)
        assert select.cost.value / (select.cost.value + measure.cost.value) == Fraction(0.1)


@pytest.mark.parametrize(("unit", "l1"), [(REPLACE, 2), (Unit("add-or-remove"), 1), (Unit("replace", 3), 6)])
def test_selection_is_as_sensitive_as_the_unit_says_and_not_twice(toy, unit, l1):
    curator, _ = toy.curator(unit=unit)

    Aperture(max_rounds=2).run(curator, toy.workload, public=table_like(toy, 200, 3))

    for event in curator.events:
        if isinstance(event, Exponential):
            assert l1 <= event.sensitivity < l1 * (1 + Fraction(1, 10**6))


def test_where_n_is_private_it_is_measured_first(toy):
    curator, _ = toy.curator(unit=Unit("add-or-remove"))

    Aperture(max_rounds=2).run(curator, toy.workload)

    assert curator.events[0].what == "total"
    assert curator.events[0].cost.value == Fraction(1, 2) * Fraction(0.02)


def test_with_much_budget_the_workload_is_recovered_whatever_the_public_table_says(toy):
    curator, _ = toy.curator(rho="100000")

    release = Aperture().run(curator, toy.workload, public=table_like(toy, 500, 3, flip=True))

    assert error(release, toy.table, toy.workload) < 0.02


def test_with_little_budget_a_public_table_of_the_same_law_is_kept(toy):
    public = table_like(toy, 20_000, 3)
    curator, _ = toy.curator(rho="1/100000")

    release = Aperture().run(curator, toy.workload, public=public)

    alone = np.mean(
        [
            np.abs(public.count(q.attrs) * 600 / 20_000 - toy.table.count(q.attrs)).sum() / 600
            for q in toy.workload
        ]
    )
    assert error(release, toy.table, toy.workload) < 1.1 * alone + 0.01


@pytest.mark.slow
def test_a_useless_public_table_costs_little_where_there_is_budget(toy):
    ours, theirs = [], []
    useless = table_like(toy, 5000, 3, flip=True)
    for seed in range(5):
        for errors, mechanism, public in ((ours, Aperture(), useless), (theirs, AIM(), None)):
            curator, _ = toy.curator(rho="1/4", noise=SeededNoise(seed))
            errors.append(error(mechanism.run(curator, toy.workload, public=public), toy.table, toy.workload))

    assert np.mean(ours) < 1.15 * np.mean(theirs)


@pytest.mark.slow
def test_without_public_data_it_is_no_worse_than_aim(toy):
    ours, theirs = [], []
    for seed in range(5):
        for errors, mechanism in ((ours, Aperture()), (theirs, AIM())):
            curator, _ = toy.curator(rho="1/20", noise=SeededNoise(seed))
            errors.append(error(mechanism.run(curator, toy.workload), toy.table, toy.workload))

    assert np.mean(ours) < 1.1 * np.mean(theirs)


class FixedSpread(Beliefs):
    """Beliefs that are not learned but given."""

    spread = 1.0

    def spreads(self):
        return dict.fromkeys(self.held, self.spread)

    def pulled(self):
        return {one.query.attrs: Pulled(one.answer, self.spread * one.precision) for one in self.answers}


@pytest.mark.parametrize(("spread", "keeps_public"), [(1e-9, True), (1e7, False)])
def test_no_spread_keeps_the_public_model_and_endless_spread_is_the_plain_projection(
    toy, spread, keeps_public
):
    workload = toy.workload.closure(toy.table.domain)
    prior = fit_prior(PublicRecords.of(toy.table.domain, [table_like(toy, 900, 3)]), workload)
    start = GraphicalModel(toy.table.domain, 600.0, prior.model.potentials)
    answer = Measurement(Marginal(("a", "c")), np.array([150.0, 90, 60, 20, 10, 60, 90, 120]), 5.0)
    beliefs = FixedSpread(prior, 600.0)
    beliefs.spread = spread
    beliefs.add(answer.against(start))

    model = beliefs.estimate(start)

    expected = start.count(("a", "c")).reshape(-1) if keeps_public else answer.answer
    assert model.count(("a", "c")).reshape(-1) == pytest.approx(expected, abs=0.05)
    # What was not measured keeps the public conditionals.
    kept = model.count(("a", "b")) / model.count(("a",))[:, None]
    public = start.count(("a", "b")) / start.count(("a",))[:, None]
    assert kept == pytest.approx(public, abs=2e-3)


def test_a_repeat_is_compared_with_what_was_believed_before_the_first():
    domain = Domain.of({"a": 2, "b": 2})
    start = GraphicalModel.uniform(domain, total=100.0)
    beliefs = Beliefs(Prior.nothing(domain), 100.0)
    beliefs.add(Measurement(Marginal(("a",)), np.array([80.0, 20.0]), 2.0).against(start))
    agreeing = GraphicalModel(domain, 100.0, {("a",): np.log([0.8, 0.2])})

    beliefs.add(Measurement(Marginal(("a",)), np.array([82.0, 22.0]), 2.0).against(agreeing))

    held = beliefs.held["a",]
    assert held.answers.answer == pytest.approx([81.0, 21.0])
    assert held.answers.stddev == pytest.approx(2 / np.sqrt(2))
    assert held.evidence.gap == pytest.approx([31.0, -29.0])


def test_a_marginal_with_an_attribute_that_no_public_record_tells_of_is_trusted_less():
    domain = Domain.of({"a": 2, "b": 2})
    prior = Prior(GraphicalModel.uniform(domain, total=1.0), {"a": 500.0, "b": 0.0}, 500.0)
    beliefs = Beliefs(prior, 1000.0)

    assert beliefs.sampling(("a",)) == pytest.approx(3.0)
    # Each of two values, and of four, may be off by as much as it holds: 1 + n/2 and 1 + n/4.
    assert beliefs.sampling(("b",)) == pytest.approx(501.0)
    assert beliefs.sampling(("a", "b")) == pytest.approx(251.0)


def test_what_is_learned_of_an_absent_attribute_is_not_held_against_the_others():
    """Relations of b, which public data lack, are far off; those of a and c are as in public."""
    domain = Domain.of({"a": 2, "b": 2, "c": 2})
    related = GraphicalModel(domain, 1.0, {("a", "c"): np.zeros((2, 2))})
    prior = Prior(related, {"a": 500.0, "b": 0.0, "c": 500.0}, 500.0)
    start = GraphicalModel.uniform(domain, total=10_000.0)
    close = Measurement(Marginal(("a", "c")), np.full(4, 2500.0), 20.0).against(start)
    far = Measurement(Marginal(("a", "b")), np.array([4900.0, 100, 100, 4900]), 20.0).against(start)
    spreads = []
    for answers in ([close], [close, far]):
        beliefs = Beliefs(prior, 10_000.0)
        for answer in answers:
            beliefs.add(answer)
        spreads.append(beliefs.spreads()["a", "c"])

    assert spreads[0] == spreads[1]


def test_without_public_data_single_attributes_get_more_of_the_budget(toy):
    spent = {}
    for public in (table_like(toy, 3000, 3), None):
        curator, _ = toy.curator(rho="1/10000")

        release = Aperture(max_rounds=2).run(curator, toy.workload, public=public)

        ones = [event for event in curator.events if isinstance(event, Gaussian)][
            : 3 + len(release.aperture.asked_again)
        ]
        spent[public is None] = float(sum(event.cost.value for event in ones) * 10_000)

    assert spent[True] > 0.2
    assert spent[False] < spent[True]


def test_the_card_says_how_far_the_aperture_opened(toy):
    curator, _ = toy.curator(rho="2")

    made = Aperture(max_rounds=4, contest_share=0.0).run(
        curator, toy.workload, public=table_like(toy, 300, 3, flip=True)
    )

    opened = {one.attrs: one for one in made.aperture.marginals}
    assert made.aperture.public_records == 300
    assert {("a",), ("b",), ("c",)} <= opened.keys()
    assert all(0 <= one.trust <= 1 and one.spread > 0 for one in opened.values())
    assert max(one.moved for one in opened.values()) > 0.2


def test_moving_is_counted_from_public_data_as_they_were_before_anything_was_cut_off(toy, monkeypatch):
    curator, _ = toy.curator(rho="2")
    public = table_like(toy, 300, 3)
    monkeypatch.setattr(Arbiter, "to_cut", lambda *_, **__: (0, ["b"]))

    made = Aperture(max_rounds=4).run(curator, toy.workload, public=public)

    (moved,) = (one.moved for one in made.aperture.marginals if one.attrs == ("b",))
    now, before = made.model.count(("b",)) / made.model.total, public.count(("b",)) / public.records
    assert "b" in made.aperture.cut
    assert moved == pytest.approx(abs(now - before).sum(), abs=0.02)


def test_without_public_data_the_card_tells_of_no_public_records(toy):
    curator, _ = toy.curator()

    assert Aperture(max_rounds=2).run(curator, toy.workload).aperture.public_records == 0


def kinds_of_public(toy):
    table = table_like(toy, 300, 3)
    curator, _ = toy.curator()
    return {
        "weighted": WeightedRecords(table.domain, table.codes(), np.linspace(0.5, 2, 300)),
        "release": AIM(rounds_per_attribute=4).run(curator, toy.workload).model,
        "prior": Aperture().prior(table, table.domain, toy.workload.closure(table.domain)),
        "several": [table, table_like(toy, 900, 4, flip=True)],
        "part": Table.of_codes(table.domain.project(("a", "b")), table.codes()[:, :2]),
    }


@pytest.mark.parametrize("kind", ["weighted", "release", "prior", "several", "part"])
@pytest.mark.parametrize("unit", [REPLACE, Unit("add-or-remove")], ids=lambda u: u.relation)
def test_public_data_of_every_kind_is_taken(toy, kind, unit):
    public = kinds_of_public(toy)[kind]
    mechanism = Aperture(max_rounds=3)
    mechanism.check(toy.table.domain, toy.workload, public)
    curator, _ = toy.curator(unit=unit, rho="5")

    release = mechanism.run(curator, toy.workload, public=public)

    assert not curator.remaining
    assert error(release, toy.table, toy.workload) < 0.25


def test_what_cannot_run_is_refused_before_anything_is_spent(toy):
    domain, workload = toy.table.domain, toy.workload
    foreign = Prior.nothing(Domain.of({"a": 2, "b": 3, "z": 4}))
    empty = Table.of_codes(domain, np.zeros((0, 3), dtype=np.uint8))

    with pytest.raises(SchemaError, match="another schema"):
        Aperture().check(domain, workload, foreign)
    with pytest.raises(DataError, match="no records"):
        Aperture().check(domain, workload, empty)
    with pytest.raises(SettingError, match="stands alone"):
        Aperture().check(domain, workload, [toy.table, Prior.nothing(domain)])
    with pytest.raises(WorkloadError, match="whole marginals"):
        Aperture().check(domain, Workload([Range((("c", 0, 1),))]), None)
    with pytest.raises(TooLargeError):
        Aperture(max_model_mb=1e-6).check(domain, workload, None)


def test_a_workload_of_one_way_marginals_runs(toy):
    curator, _ = toy.curator()

    release = Aperture(max_rounds=3).run(curator, Workload([("a",), ("b",)]), public=table_like(toy, 90, 3))

    assert {m.query.attrs for m in release.measurements} == {("a",), ("b",)}


@pytest.mark.parametrize(
    "setting",
    [{"max_rounds": 0}, {"one_way_share": 1.0}, {"contest_share": 1.5}, {"seed": -1}, {"max_model_mb": 0}],
)
def test_settings_outside_their_range_are_refused(setting):
    with pytest.raises(SettingError, match=next(iter(setting))):
        Aperture(**setting)


def test_of_several_public_tables_the_one_that_leads_is_what_the_model_rests_on(toy):
    good = table_like(toy, 300, 3)
    false = Table.of_codes(toy.table.domain, np.zeros((900, 3), dtype=np.uint8))

    shares = []
    for public in (good, [good, false]):
        curator, _ = toy.curator(rho="10", noise=SeededNoise(0))
        shares.append(Aperture(max_rounds=2).run(curator, toy.workload, public=public).public_share)

    assert shares == [1.0, 0.25]
