"""LADDER: what it plans, what it shrinks, and what it costs."""

import itertools
import math

import numpy as np
import pytest

import cards
from sidelight.curator.curator import Curator
from sidelight.data.domain import Domain
from sidelight.data.table import Table
from sidelight.errors import SettingError, TooLargeError, WorkloadError
from sidelight.evaluation.workload_errors import workload_error
from sidelight.measurement import Measurement, measuring_together
from sidelight.mechanisms.hdmm.hdmm import HDMM
from sidelight.mechanisms.hdmm.planning import MarginalPlan
from sidelight.mechanisms.ladder.ladder import Ladder
from sidelight.mechanisms.ladder.planning import (
    Fade,
    after_measuring,
    best_views,
    covers,
    hears,
    looking,
    mean_error,
    residuals,
    with_room,
)
from sidelight.mechanisms.ladder.shrinking import faded, told_by
from sidelight.models.residuals import Estimate, centred
from sidelight.privacy.budget import Budget, Epsilon, Rho
from sidelight.privacy.event import Gaussians
from sidelight.privacy.ledger import MemoryLedger
from sidelight.privacy.promise import Promise
from sidelight.privacy.unit import Unit
from sidelight.queries.query import Marginal, Range
from sidelight.queries.workload import Workload
from sidelight.testing import SeededNoise

UNITS = [Unit("replace"), Unit("add-or-remove")]
DOMAIN = Domain.of({"a": 2, "b": 3, "c": 2, "d": 4})
TRIPLES = Workload.marginals(DOMAIN, degree=3)
FADE = Fade(pairs=0.3, fading=0.1)
N = Estimate(np.array(1000.0), 0.0)


def best(workload=TRIPLES, domain=DOMAIN):
    weights = {query.attrs: 1.0 for query in workload}
    return MarginalPlan.of(domain, weights, objective="mean").without_total()


def degrees(plan):
    """How many residuals of each degree are measured."""
    found = [len(attrs) for attrs, v in zip(plan.closure.members, plan.variances, strict=True) if v > 0]
    return [found.count(degree) for degree in (1, 2, 3)]


def binary(records, *, seed=0, attributes=5):
    """A chain of binary attributes: neighbours are alike in seven of eight records."""
    rng = np.random.default_rng(seed)
    columns = [rng.integers(0, 2, records)]
    for _ in range(attributes - 1):
        columns.append(np.where(rng.random(records) < 0.875, columns[-1], 1 - columns[-1]))
    return Table.of_codes(Domain.of(dict.fromkeys("abcdefgh"[:attributes], 2)), np.stack(columns, axis=1))


def curator(table, budget, mechanism, *, seed=0, unit=UNITS[0]):
    ledger = MemoryLedger(Promise(budget, unit, "test"))
    return Curator(
        table, allotment=mechanism.allotment(budget), unit=unit, ledger=ledger, noise=SeededNoise(seed)
    )


def test_the_more_records_the_higher_it_climbs():
    rho = Budget(epsilon=1.0, delta=1e-9).rho()

    measured = [
        degrees(residuals(best(), FADE.expected(best(), n), rho, UNITS[0])) for n in (10, 1_000, 1_000_000)
    ]

    assert measured == [[4, 0, 0], [4, 6, 0], [4, 6, 4]]


def test_heard_is_the_share_of_pairs_that_the_plan_measures():
    rho = Budget(epsilon=1.0, delta=1e-9).rho()
    heard = [Ladder().heard(DOMAIN, TRIPLES, rho, UNITS[0], n=n) for n in (10, 130, 1_000)]
    counted = [
        degrees(residuals(best(), FADE.expected(best(), n), rho, UNITS[0]))[1] / 6 for n in (10, 130, 1_000)
    ]

    assert heard == counted
    assert 0.0 == heard[0] < heard[1] < heard[2] == 1.0
    ones = Workload.marginals(DOMAIN, degree=1)
    assert Ladder().heard(DOMAIN, ones, rho, UNITS[0], n=1_000) == 0.0


def test_with_many_records_the_proportions_are_those_of_hdmm():
    plan = residuals(best(), FADE.expected(best(), 1e9), Rho(1), UNITS[0])

    ratio = plan.variances[1:] / best().variances[1:]

    assert ratio == pytest.approx(np.full(ratio.size, ratio[0]), rel=1e-3)


def test_no_residual_gets_less_precision_than_the_plan_check_allows_for():
    for n in np.geomspace(5, 1e7, 13):
        for epsilon in (0.01, 1.0, 10.0):
            rho = Budget(epsilon=epsilon, delta=1e-9).rho()
            look, rest = rho.split(Ladder().look_share)
            for unit in UNITS:
                noisiest = list(Ladder().noisiest(DOMAIN, TRIPLES, allotment=rho, unit=unit))[-1]
                tau, rng = FADE.expected(best(), float(n)), np.random.default_rng(int(n))
                first = looking(best())
                known = np.divide(
                    float(look), first.variances, out=np.zeros(tau.size), where=first.variances > 0
                )
                for heard in (tau, tau * rng.lognormal(0, 2, tau.size)):
                    plan = residuals(best(), heard, rest, unit, known=known)
                    drawn = max(plan.strategy.variances) * plan.strategy.loss(unit) / (2 * rest.value)
                    assert drawn <= noisiest.largest
                drawn = max(first.strategy.variances) * first.strategy.loss(unit) / (2 * look.value)
                assert drawn <= noisiest.largest


@pytest.mark.parametrize(
    "unit",
    [*UNITS, Unit("replace", records=4, person="id"), Unit("add-or-remove", records=3, person="id")],
    ids=lambda unit: f"{unit.relation} {unit.records}",
)
def test_no_pair_of_neighbours_is_told_apart_by_more_than_is_paid_whatever_the_look_said(unit):
    """Of the noise as it is drawn: Σ ‖δ_S‖²/2σ_S² over the queries, for every way to disagree."""
    rng, rho, plan = np.random.default_rng(1), Budget(epsilon=1.0, delta=1e-9).rho(), best()
    first, ways = looking(plan), [set(itertools.compress("abcd", bits)) for bits in np.ndindex(2, 2, 2, 2)]
    look, rest = rho.split(0.3)

    def furthest(strategy, scale):
        def move(query, apart, relation):
            own = math.prod(size * (size - 1) for size in query.shape)
            across = math.prod(
                -size if attr in apart else size * (size - 1)
                for attr, size in zip(query.attrs, query.shape, strict=True)
            )
            return unit.records**2 * {"replace": 2 * (own - across), "add-or-remove": own}[relation]

        variances = [Gaussians.scaled(variance, scale) for variance in strategy.variances]
        return max(
            sum(
                move(query, apart, relation) / (2 * v)
                for query, v in zip(strategy.queries, variances, strict=True)
            )
            for relation in unit.relations
            for apart in ways
        )

    for spread in (0.0, 2.0, 20.0):
        heard = FADE.expected(plan, 1000.0) * rng.lognormal(0, spread, plan.variances.size)
        known = np.divide(
            float(look), first.variances, out=np.zeros(heard.size), where=first.variances > 0
        ) * rng.lognormal(0, spread / 10, heard.size)
        for made, paid in ((first, look), (residuals(plan, heard, rest, unit, known=known), rest)):
            found = furthest(made.strategy, measuring_together(made.strategy, paid, unit).scale)
            assert (1 - 1e-9) * paid.value < found <= paid.value  # neither more, nor noise for nothing


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.relation)
@pytest.mark.parametrize("accounting", ["zcdp", "pure"])
def test_all_of_the_budget_is_spent_and_no_more(toy, unit, accounting):
    mechanism = Ladder(accounting=accounting)
    one, _ = toy.curator(unit=unit, **({"rho": "1/10"} if accounting == "zcdp" else {"epsilon": "1"}))

    outcome = mechanism.run(one, toy.workload)

    assert not one.remaining
    counted = not unit.total_is_public
    assert len(one.events) == (len(outcome.measurements) if accounting == "pure" else 2 + counted)
    assert {attr for made in outcome.measurements for attr in made.query.attrs} == set(toy.table.domain.attrs)


def test_the_error_that_is_expected_is_about_the_error_that_is_made():
    table, budget = binary(3000), Budget(epsilon=1.0, delta=1e-9)
    workload = Workload.marginals(table.domain, degree=3)
    for mechanism in (Ladder(), Ladder(accounting="pure")):
        expected = mechanism.expected_error(
            table.domain, workload, allotment=mechanism.allotment(budget), unit=UNITS[0], n=3000
        )
        made = [
            workload_error(
                table,
                mechanism.run(curator(table, budget, mechanism, seed=seed), workload),
                workload,
                total=3000,
            )
            for seed in range(8)
        ]
        assert 0.6 < np.mean(made) / expected < 1.4


@pytest.mark.parametrize("epsilon", [0.3, 1.0])
def test_it_errs_less_than_noise_alone_where_relations_fade(epsilon):
    table, budget = binary(800), Budget(epsilon=epsilon, delta=1e-9)
    workload = Workload.marginals(table.domain, degree=3)

    def error(mechanism):
        made = (mechanism.run(curator(table, budget, mechanism, seed=seed), workload) for seed in range(6))
        return np.mean([workload_error(table, one, workload, total=800) for one in made])

    assert error(Ladder()) < error(HDMM())


def test_one_strong_relation_is_measured_that_the_plan_would_leave_alone():
    """Two equal columns of eight values among independent ones: before a look, their pair seems too large."""
    rng, records = np.random.default_rng(0), 2_000
    columns = rng.integers(0, (8, 8, 5, 4, 6, 7), (records, 6))
    columns[:, 1] = columns[:, 0]
    table = Table.of_codes(Domain.of({"a": 8, "b": 8, "c": 5, "d": 4, "e": 6, "f": 7}), columns)
    workload, budget = Workload.marginals(table.domain, degree=2), Budget(epsilon=1.0, delta=1e-9)
    plan = best(workload, table.domain)
    tau = FADE.expected(plan, records)
    blind = residuals(plan, tau, budget.rho(), UNITS[0])

    outcome = Ladder().run(curator(table, budget, Ladder()), workload)

    noise = {made.query.attrs: made.stddev for made in outcome.measurements}
    assert blind.variances[plan.closure.number["a", "b"]] == 0
    assert noise["a", "b"] < 0.7 * min(noise["a", "f"], noise["b", "f"])
    off = np.abs(outcome.model.count(("a", "b")) - table.count(("a", "b"))).sum() / records
    assert off < 0.4  # independent columns would be off by 1.75


def test_a_look_costs_little_where_everything_is_worth_measuring():
    table, budget = binary(800), Budget(epsilon=10.0, delta=1e-9)
    workload = Workload.marginals(table.domain, degree=3)

    def error(mechanism):
        made = (mechanism.run(curator(table, budget, mechanism, seed=seed), workload) for seed in range(20))
        return np.mean([workload_error(table, one, workload, total=800) for one in made])

    assert error(Ladder()) < 1.05 * error(HDMM())


@pytest.mark.parametrize("share", [0.001, 0.3, 0.999])
def test_all_of_rho_is_spent_whatever_the_look_takes_of_it(share):
    for sizes in ({"a": 2}, {"a": 5, "b": 3}):
        domain, mechanism = Domain.of(sizes), Ladder(look_share=share)
        table = Table.of_codes(domain, np.random.default_rng(0).integers(0, domain.shape, (300, len(sizes))))
        one = curator(table, Budget(epsilon=1.0, delta=1e-9), mechanism)
        outcome = mechanism.run(one, Workload([domain.attrs]))

        assert not one.remaining
        assert len(outcome.measurements) == len({made.query for made in outcome.measurements})


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.relation)
@pytest.mark.parametrize("degree", [1, 2, 3])
def test_however_large_epsilon_is_the_table_comes_out_whole(unit, degree):
    """Noise is then so little that its variance is no double, and ρ is more than a double can count with."""
    table, workload = binary(500), Workload.marginals(binary(1).domain, degree=degree)
    for epsilon in (1e6, 1e100, 1e200, 1e300, 1.7e308):
        one = curator(table, Budget(epsilon=epsilon, delta=1e-9), Ladder(), unit=unit)
        model = Ladder().run(one, workload).model

        assert not one.remaining
        for attrs in workload.attribute_sets:
            assert model.count(attrs) == pytest.approx(table.count(attrs), abs=0.5)


def test_nothing_is_looked_at_where_a_look_would_hear_nothing():
    """What noise would swamp in any case is left alone, and all of ρ goes to one plan."""
    look, rho = looking(best()), Budget(epsilon=0.3, delta=1e-9).rho()
    heard = [hears(look, rho, UNITS[0], n=n) for n in (50, 500, 5_000, 50_000)]
    assert heard == sorted(heard)
    assert not heard[0]
    assert heard[-1]
    assert not hears(looking(best(Workload.marginals(DOMAIN, degree=1))), rho, UNITS[0], n=50_000)

    table, budget = binary(50), Budget(epsilon=0.3, delta=1e-9)
    one = curator(table, budget, Ladder())
    Ladder().run(one, Workload.marginals(table.domain, degree=3))
    assert len(one.events) == 1
    assert not one.remaining


def test_the_second_plan_follows_from_n_and_the_noisy_answers_of_the_look(monkeypatch):
    """Tables that have nothing in common but n: after the same answers, the same is measured again."""
    plans, answers, measure = [], [], Curator.measure_together
    table, budget = binary(900), Budget(epsilon=3.0, delta=1e-9)
    alike = Table.of_codes(table.domain, np.zeros((900, 5), dtype=int))
    workload = Workload.marginals(table.domain, degree=3)

    def kept(self, strategy, cost):
        plans.append((strategy.queries, strategy.variances))
        answers.append(measure(self, strategy, cost))
        return answers[-1]

    def plans_of(private, told):
        monkeypatch.setattr(Curator, "measure_together", told)
        plans.clear()
        Ladder().run(curator(private, budget, Ladder()), workload)
        return list(plans)

    honest = plans_of(table, kept)
    look = answers[0]
    as_told = plans_of(
        alike, lambda self, *asked: look if (kept(self, *asked), len(plans))[1] == 1 else answers[-1]
    )

    assert as_told == honest
    assert plans_of(alike, kept)[1] != honest[1]


def test_covers_hold_all_that_is_asked_for():
    rng = np.random.default_rng(3)
    for _ in range(20):
        domain = Domain.of({f"x{i}": int(rng.integers(2, 9)) for i in range(7)})
        every = list(itertools.combinations(domain.attrs, int(rng.integers(1, 4))))
        asked = tuple(every[place] for place in rng.choice(len(every), min(6, len(every)), replace=False))
        for views in covers(domain, asked):
            largest = max(map(len, views))
            for one in asked:
                for below in itertools.combinations(one, min(largest, len(one))):
                    assert any(set(below) <= set(view) for view in views)


def test_the_best_views_of_a_small_table_are_the_table_itself_and_of_a_large_one_are_not():
    small, large = (Domain.of({f"x{i}": 2 for i in range(number)}) for number in (5, 20))
    found = [
        best_views(best(Workload.marginals(d, degree=2), d), FADE, Epsilon(1), UNITS[0], n=2000)[0]
        for d in (small, large)
    ]

    assert found[0] == (small.attrs,)
    assert 1 < max(map(len, found[1])) < 10


def test_the_expected_error_falls_with_more_budget_and_more_records():
    def expected(n, epsilon):
        plan = residuals(
            best(), FADE.expected(best(), n), Budget(epsilon=epsilon, delta=1e-9).rho(), UNITS[0]
        )
        return mean_error(after_measuring(plan, FADE, n=n), n)

    assert expected(1000, 0.1) > expected(1000, 1.0) > expected(1000, 10.0)
    assert expected(100, 1.0) > expected(1000, 1.0) > expected(100_000, 1.0)


def test_exact_answers_are_kept_and_noise_is_shrunk_away():
    domain = Domain.of({"a": 2, "b": 2})
    members = [("a",), ("b",), ("a", "b")]
    table = np.array([[40.0, 10.0], [10.0, 40.0]])
    residual = {("a",): np.zeros(2), ("b",): np.zeros(2), ("a", "b"): centred(table)}

    exact, noisy = (
        faded(domain, {attrs: Estimate(values, v) for attrs, values in residual.items()}, members,
              total=Estimate(np.array(100.0), 0.0), fade=FADE)[0]
        for v in (1e-6, 1e6)
    )  # fmt: skip

    assert exact.count(("a", "b")) == pytest.approx(table, abs=0.1)
    assert noisy.count(("a", "b")) == pytest.approx(np.full((2, 2), 25.0), abs=0.5)
    assert exact.parts["a", "b"].variance < noisy.parts["a", "b"].variance


def test_marginals_tell_of_residuals_whatever_the_order_of_their_attributes():
    rng = np.random.default_rng(0)
    table = rng.random((2, 3, 4))
    domain = Domain.of({"a": 2, "b": 3, "d": 4})
    turned = Measurement(Marginal(("d", "a", "b")), table.transpose(2, 0, 1).reshape(-1), 2.0)

    told = told_by(domain, [turned, turned], [("a",), ("b", "d")])

    assert told["b", "d"].values == pytest.approx(centred(table.sum(axis=0)))
    assert told["a",].variance == pytest.approx(4 * 12 / 2)  # the mean of two equal answers


def test_intervals_are_there_for_all_that_is_asked(toy):
    for mechanism in (Ladder(), Ladder(accounting="pure")):
        spent = {"rho": "1/10"} if mechanism.accounting == "zcdp" else {"epsilon": "1"}
        release = cards.released(mechanism.run(toy.curator(**spent)[0], toy.workload))
        for attrs in toy.workload.attribute_sets:
            low, high = release.error_bars(attrs).interval()
            assert (low <= high).all()


@pytest.mark.parametrize("accounting", ["zcdp", "pure"])
def test_the_noise_on_a_private_number_of_records_is_in_every_count(toy, accounting):
    mechanism = Ladder(accounting=accounting)
    spent = {"rho": "1/10"} if accounting == "zcdp" else {"epsilon": "1"}
    private, _ = toy.curator(unit=UNITS[1], **spent)

    release = cards.released(mechanism.run(private, toy.workload), unit=UNITS[1])

    counted, known = private.total_stddev**2, release.error_bars(()).noise_variance
    if accounting == "zcdp":  # the residuals that are measured say nothing of n
        assert known == pytest.approx(counted)
    assert 0 < known <= counted * 1.001
    assert (release.error_bars(("a",)).noise_variance > known / 2**2).all()


def test_whole_marginals_tell_of_a_private_number_of_records_too():
    """A hundredth of ε counts the records to ± 140 of 400; each marginal that was measured knows better."""
    table, mechanism = binary(400, attributes=3), Ladder(accounting="pure")
    budget = Budget(epsilon=1.0, delta=0.0)
    off = []
    for seed in range(20):
        one = curator(table, budget, mechanism, seed=seed, unit=UNITS[1])
        outcome = mechanism.run(one, Workload.marginals(table.domain, degree=2))
        off.append(outcome.model.total - 400)

    assert np.sqrt(np.mean(np.square(off))) < 20


def test_what_it_cannot_answer_is_refused_before_anything_is_paid():
    with pytest.raises(WorkloadError, match="whole marginals"):
        Ladder().check(DOMAIN, Workload([Range((("a", 0, 1),))]), None)
    with pytest.raises(WorkloadError, match="the total alone"):
        Ladder().check(DOMAIN, Workload([()]), None)
    with pytest.raises(TooLargeError, match="max_model_mb"):
        Ladder(max_model_mb=1e-4).check(DOMAIN, TRIPLES, None)
    with pytest.raises(SettingError, match="fading"):
        Ladder(fading=0.0)
    with pytest.raises(SettingError, match="does not use public data"):
        Ladder().check(DOMAIN, TRIPLES, Table.of_codes(DOMAIN, np.zeros((3, 4), dtype=np.uint8)))


def test_a_pair_that_there_is_no_room_for_is_refused_or_left_to_its_attributes():
    domain = Domain.of({"a": 2, "b": 300, "c": 300})
    rng = np.random.default_rng(0)
    table = Table.of_codes(domain, rng.integers(0, domain.shape, (2_000, 3)))
    workload, budget = Workload.marginals(domain, degree=2), Budget(epsilon=1.0, delta=1e-9)
    with pytest.raises(TooLargeError, match=r"b × c, takes 0\.687 MB.*oversized='skip'"):
        Ladder(max_model_mb=0.5).check(domain, workload, None)

    ladder = Ladder(max_model_mb=0.5, oversized="skip")
    ladder.check(domain, workload, None)
    outlook = ladder.outlook(domain, workload, allotment=Rho(1), unit=Unit("replace"))
    model = ladder.run(curator(table, budget, ladder), workload).model

    assert outlook.oversized == (("b", "c"),)
    assert outlook.model_bytes < 0.5 * 2**20
    assert not model.known.holds(("b", "c"))
    independent = np.outer(model.count(("b",)), model.count(("c",))) / model.total
    assert model.count(("b", "c")) == pytest.approx(independent)
    with pytest.raises(TooLargeError, match="fewer attributes"):
        Ladder(max_model_mb=1e-4, oversized="skip").check(domain, workload, None)


def test_attributes_that_only_an_oversized_marginal_names_are_still_measured():
    domain = Domain.of({"a": 2, "b": 300, "c": 300})
    kept = with_room(domain, {("b", "c"): 2.0}, limit_mb=0.5)

    assert kept == {("b",): 2.0, ("c",): 2.0}
    assert with_room(domain, {("b", "c"): 2.0}, limit_mb=1.0) == {("b", "c"): 2.0}


def test_what_shrinking_takes_away_is_in_the_variance_that_is_said():
    """Noise swamps a skewed attribute and its relations: errors are larger than what the prior leaves."""
    domain = Domain.of({"a": 9, "b": 9})
    told = {(attr,): Estimate(centred(np.random.default_rng(0).normal(0, 300, 9)), 9e4) for attr in "ab"}
    found, _ = faded(domain, told, [("a",), ("b",), ("a", "b")], total=N, fade=FADE)

    even = (1000.0 / 9) ** 2
    variance = found.variance(("a",))
    assert even < variance <= 9e4 * 8 / 9
    # Nobody measured the pair: it may stray as the plan expects, by 0.3 of what is expected, squared.
    assert found.parts["a", "b"].variance * 64 / 81 >= 0.3 * (1000.0 / 81) ** 2
    # Answers without noise leave nothing to say.
    exact = {attrs: Estimate(one.values / 10, 1e-9) for attrs, one in told.items()}
    assert faded(domain, exact, [("a",), ("b",)], total=N, fade=FADE)[0].variance(("a",)) < 1e-8
