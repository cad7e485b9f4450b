"""MST: its budget, its tree and its rare values (spec 7.6)."""

import itertools
from fractions import Fraction

import numpy as np
import pytest

import cards
import sidelight as sl
from sidelight.data.domain import Domain
from sidelight.data.table import Table
from sidelight.errors import SettingError, TooLargeError
from sidelight.mechanisms.mst import MST, joining, within
from sidelight.privacy.budget import Rho
from sidelight.privacy.event import Exponential, Gaussian
from sidelight.privacy.unit import Unit
from sidelight.queries.query import Prefix
from sidelight.queries.workload import Workload
from sidelight.releases.release import Release

UNITS = [Unit("replace"), Unit("add-or-remove")]


def tree(outcome):
    """The pairs that were measured."""
    return {frozenset(made.query.attrs) for made in outcome.measurements if len(made.query.attrs) == 2}


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.relation)
def test_a_third_of_the_budget_each_measures_attributes_selects_and_measures_pairs(toy, unit):
    curator, _ = toy.curator(unit=unit, rho="3/100")

    MST().run(curator, toy.workload)

    kinds = [type(event) for event in curator.events]
    assert kinds == [Gaussian] * 3 + [Exponential] * 2 + [Gaussian] * 2
    thirds = [
        sum(float(event.cost) for event in curator.events[part])
        for part in (slice(3), slice(3, 5), slice(5, 7))
    ]
    assert thirds == pytest.approx([0.01] * 3)
    assert not curator.remaining
    # Each of d one-way marginals has noise of σ √d, σ² = 3 Δ₂² / 2ρ.
    assert curator.events[0].stddev == pytest.approx((3 * 3 * unit.l2_squared / (2 * 0.03)) ** 0.5)
    assert curator.events[-1].stddev == pytest.approx((2 * 3 * unit.l2_squared / (2 * 0.03)) ** 0.5)


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.relation)
def test_an_edges_score_moves_by_no_more_than_a_marginal(toy, unit):
    curator, _ = toy.curator(unit=unit, rho="3/100")

    MST().run(curator, toy.workload)

    selections = [event for event in curator.events if isinstance(event, Exponential)]
    assert {event.sensitivity for event in selections} == {Fraction(unit.l1)}


def test_n_is_what_the_noisy_answers_sum_to_where_it_is_private(toy):
    curator, _ = toy.curator(unit=Unit("add-or-remove"), rho="1/100")

    outcome = MST().run(curator, toy.workload)

    sums = [float(made.answer.sum()) for made in outcome.measurements]
    assert outcome.total != toy.table.records
    assert min(sums) <= outcome.total <= max(sums)


def test_pairs_that_would_close_a_cycle_are_closed():
    pairs = list(itertools.combinations("abcd", 2))

    assert joining(pairs) == 3
    assert [pairs[place] for place in within(pairs, [0, 3])] == [("a", "b"), ("a", "c"), ("b", "c")]
    assert joining([("a", "b"), ("c", "d")]) == 2
    assert joining([]) == 0


def test_only_attributes_that_the_workload_names_are_measured(toy):
    curator, _ = toy.curator()

    outcome = MST().run(curator, Workload([("c",), ("a",)]))

    assert {attr for made in outcome.measurements for attr in made.query.attrs} == {"a", "c"}
    assert np.allclose(outcome.count(("b",)), toy.table.records / 3)


def test_a_lone_attribute_gets_the_whole_budget(toy):
    curator, _ = toy.curator(rho="1/10")

    outcome = MST().run(curator, Workload([("c",)]))

    assert [event.cost for event in curator.events] == [Rho(Fraction(1, 10))]
    assert tree(outcome) == set()


def test_queries_of_any_kind_name_attributes(toy):
    curator, _ = toy.curator()

    outcome = MST().run(curator, Workload([Prefix("c", 1), Prefix("a", 0)]))

    assert tree(outcome) == {frozenset("ac")}


def test_pairs_above_the_limit_leave_a_forest():
    domain = Domain.of({"a": 2, "b": 300, "c": 300})
    rng = np.random.default_rng(0)
    table = Table.of_codes(domain, np.stack([rng.integers(0, k, 500) for k in domain.shape], axis=1))
    limit = 8 * 1000 / 2**20
    mechanism = MST(max_model_mb=limit, oversized="skip")

    outlook = mechanism.outlook(domain, Workload([domain.attrs]), allotment=Rho(1), unit=UNITS[0])
    made = sl.release(
        table, schema=sl.Schema.from_domain(domain), epsilon=5, delta=1e-9, mechanism=mechanism,
        workload="1-way", progress=False, bins="as declared",
    )  # fmt: skip

    assert tree(made) == {frozenset("ab"), frozenset("ac")}
    assert made.card.notes[0].startswith("The tree's pairs: ")
    assert outlook.measurements == 5
    with pytest.raises(TooLargeError, match="b × c may become an edge"):
        MST(max_model_mb=limit).check(domain, Workload([domain.attrs]), None)


def test_shares_that_leave_nothing_to_measure_pairs_are_refused():
    with pytest.raises(SettingError, match="must leave some of the budget"):
        MST(one_way_share=0.5, select_share=0.5)


def with_rare_values(seed=0):
    """b follows a; eight of the ten values of a are rare."""
    rng = np.random.default_rng(seed)
    a = rng.choice(10, 20_000, p=[0.6, 0.39] + [0.00125] * 8)
    b = np.where(rng.random(20_000) < 0.9, np.minimum(a, 2), rng.integers(0, 3, 20_000))
    return Table.of_codes(Domain.of({"a": 10, "b": 3}), np.stack([a, b], axis=1))


def test_merged_pairs_are_measured_with_fewer_cells_and_saved(toy, tmp_path):
    table = with_rare_values()
    curator, _ = type(toy)(table, Workload([("a", "b")])).curator(rho="1/100")

    outcome = MST().run(curator, Workload([("a", "b")]))

    assert outcome.notes[-1] == "Values that were rare, and merged: 8 of a."
    assert outcome.measurements[-1].answer.size == 9
    loaded = Release.load(cards.released(outcome).save(tmp_path / "out"))
    assert loaded.measurements[-1].query == outcome.measurements[-1].query
    assert np.allclose(loaded.count(("a", "b")), outcome.count(("a", "b")))


def test_cells_that_were_measured_alone_have_the_noise_of_their_answers(toy):
    table = with_rare_values()
    curator, _ = type(toy)(table, Workload([("a", "b")])).curator(rho="1/100")
    release = cards.released(MST().run(curator, Workload([("a", "b")])))
    stddev = release.measurements[-1].stddev

    bars, turned = release.error_bars(("a", "b")), release.error_bars(("b", "a"))

    assert bars.source == "private"
    assert np.allclose(bars.noise_error[:2], stddev)
    assert not np.allclose(bars.noise_error[2:], stddev)
    assert np.allclose(bars.standard_error, turned.standard_error.T)
    exact = table.count(("a", "b"))
    assert (np.abs(bars.estimate - exact) <= 4 * bars.standard_error).mean() > 0.9
