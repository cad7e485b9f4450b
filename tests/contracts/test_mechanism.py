"""What every mechanism keeps. Adding a case to the list is how one joins.

Each promise is a function that takes a case, so that mechanisms which break one can be planted: the
uniform table, the public table as it is, a workload that is not read, a look that nobody paid for.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, Literal

import numpy as np
import pytest

import cards
from sidelight.curator.journal import Journal
from sidelight.data.domain import Domain
from sidelight.data.schema import Schema
from sidelight.data.table import Table
from sidelight.errors import BudgetExhausted, SettingError
from sidelight.mechanisms.aim import AIM
from sidelight.mechanisms.aperture.aperture import Aperture
from sidelight.mechanisms.barak import Barak
from sidelight.mechanisms.base import Mechanism, Outcome
from sidelight.mechanisms.bins import Bins
from sidelight.mechanisms.dualquery import DualQuery
from sidelight.mechanisms.gem.gem import GEM
from sidelight.mechanisms.gem.gem_pub import GEMPub
from sidelight.mechanisms.hdmm.hdmm import HDMM
from sidelight.mechanisms.jam import JAM
from sidelight.mechanisms.ladder.ladder import Ladder
from sidelight.mechanisms.mst import MST
from sidelight.mechanisms.mwem import MWEM
from sidelight.mechanisms.mwem_pub import MWEMPub
from sidelight.mechanisms.pmw_pub import PMWPub
from sidelight.models.histogram import Histogram
from sidelight.privacy.unit import Unit
from sidelight.public.source import UNKNOWN, WeightedRecords
from sidelight.queries.query import Marginal
from sidelight.queries.workload import Workload
from sidelight.releases.release import Release
from sidelight.testing import SeededNoise
from torched import torched

UNITS = [Unit("replace"), Unit("add-or-remove"), Unit("replace", records=2)]


@dataclass(frozen=True)
class Case:
    """A mechanism, the people it is run on, and what it needs to get close to them."""

    mechanism: Mechanism
    scene: Literal["chain", "binary", "entangled", "fine"] = "chain"
    patient: dict[str, Any] = field(default_factory=dict)
    """Settings with which much budget has time to tell: one cell a round needs many rounds, and a histogram
    of everything would answer any workload."""

    @property
    def is_pure(self) -> bool:
        return getattr(self.mechanism, "accounting", "zcdp") == "pure"

    def cost(self, rho: str, epsilon: str) -> dict[str, str]:
        return {"epsilon": epsilon} if self.is_pure else {"rho": rho}


@dataclass(frozen=True, kw_only=True)
class InGroups(Mechanism):
    """Another mechanism as ``bins="auto"`` runs it."""

    inner: Mechanism

    name = "in groups"
    public_data = "unused"

    def outlook(self, domain, workload, *, allotment, unit):
        return self.inner.outlook(domain, workload, allotment=allotment, unit=unit)

    def noisiest(self, domain, workload, *, allotment, unit):
        return self.inner.noisiest(domain, workload, allotment=allotment, unit=unit)

    def run(self, curator, workload, *, public=None):
        bins = Bins.of("auto", Schema.from_domain(curator.domain), workload, self.inner, public)
        if bins is None:
            return self.inner.run(curator, workload, public=public)
        return bins.run(self.inner, curator, workload)


MANY = {"rounds": 200, "output": "last"}
# A network that a fraction of a second trains.
SMALL = {"batch": 24, "latent": 6, "width": 12, "layers": 1, "rounds": 3, "steps": 15, "rate": 2e-2}
LONG = {"steps": 150, "rounds": 6}
CASES = [
    Case(MWEM(rounds=3)),
    Case(MWEM(rounds=2, accounting="pure")),
    Case(MWEM(rounds=3, candidates="queries", selection="permute-and-flip")),
    Case(MWEM(rounds=3, model="components")),
    Case(
        MWEM(rounds=3, histogram_share=0.3, output="average"), patient={"histogram_share": 0.0, "rounds": 30}
    ),
    Case(MWEMPub(rounds=4), patient=MANY),
    Case(MWEMPub(rounds=3, accounting="pure"), patient=MANY),
    Case(PMWPub(rounds=4), patient=MANY),
    Case(PMWPub(rounds=4, selection="permute-and-flip", output="last", prior="uniform"), patient=MANY),
    Case(AIM(rounds_per_attribute=4)),
    Case(AIM(rounds_per_attribute=4, estimator="residual")),
    Case(MST()),
    Case(MST(rare_below=40.0, one_way_share=0.1)),
    Case(HDMM()),
    Case(HDMM(objective="maximum")),
    Case(Ladder()),
    Case(Ladder(accounting="pure")),
    Case(
        DualQuery(queries_per_round=20, max_rounds=20),
        patient={"queries_per_round": 60, "max_rounds": 120, "step": 8.0},
    ),
    Case(
        DualQuery(queries_per_round=5, max_rounds=10, accounting="pure", step=0.5),
        patient={"queries_per_round": 60, "max_rounds": 120, "step": 8.0},
    ),
    Case(GEM(**SMALL), patient=LONG),
    Case(GEMPub(public_steps=100, public_rate=1e-2, **SMALL), patient=LONG),
    Case(Barak(), scene="binary"),
    Case(Barak(fit="linear-program", accounting="pure"), scene="binary"),
    Case(JAM(rounds=5)),
    Case(JAM(rounds=4, weighting="public-error", last_round="private", repeat_public=False)),
    Case(Aperture(max_rounds=4)),
    # No tree of this size holds all ten pairs, and half of them are heard: half of the budget goes beyond it.
    Case(
        Aperture(max_rounds=2, max_particle_rounds=8, particle_share=0.5, max_model_mb=0.02),
        scene="entangled",
    ),
    Case(InGroups(inner=AIM(rounds_per_attribute=4)), scene="fine"),
    Case(InGroups(inner=MST()), scene="fine"),
    Case(
        InGroups(inner=MWEM(rounds=3, candidates="queries")),
        scene="fine",
        patient={"inner": MWEM(rounds=40, candidates="queries")},
    ),
]


USES_OPEN_VALUES = ("jam", "aperture", "pmw-pub", "mwem-pub")


def chain(records: int, seed: int) -> Table:
    """b follows a; c follows nothing."""
    rng = np.random.default_rng(seed)
    a = rng.integers(0, 2, records)
    codes = np.stack([a, np.minimum(a + rng.integers(0, 2, records), 2), rng.integers(0, 4, records)], axis=1)
    return Table.of_codes(Domain.of({"a": 2, "b": 3, "c": 4}), codes)


def binary(records: int, seed: int) -> Table:
    """b is a in four of five cases, d is c likewise; c is seldom 1."""
    rng = np.random.default_rng(seed)
    a, c = rng.integers(0, 2, records), (rng.random(records) < 0.3).astype(int)
    b, d = (np.where(rng.random(records) < 0.8, column, 1 - column) for column in (a, c))
    return Table.of_codes(Domain.of(dict.fromkeys("abcd", 2)), np.stack([a, b, c, d], axis=1))


def entangled(records: int, seed: int) -> Table:
    """Every pair goes together, since each attribute tells of one thing that no column has."""
    rng = np.random.default_rng(seed)
    hidden = rng.integers(0, 6, records)
    columns = [np.where(rng.random(records) < 0.6, hidden, rng.integers(0, 6, records)) for _ in range(5)]
    return Table.of_codes(Domain.of(dict.fromkeys("abcde", 6)), np.stack(columns, axis=1))


def fine(records: int, seed: int) -> Table:
    """b has thirty values, and follows a."""
    rng = np.random.default_rng(seed)
    a = rng.integers(0, 2, records)
    codes = np.stack([a, rng.binomial(29, 0.3 + 0.4 * a), rng.integers(0, 3, records)], axis=1)
    return Table.of_codes(Domain.of({"a": 2, "b": 30, "c": 3}), codes)


PEOPLE = {
    "chain": (chain, 600),
    "binary": (binary, 600),
    "entangled": (entangled, 6000),
    "fine": (fine, 600),
}
TABLES = {name: draw(records, seed=1) for name, (draw, records) in PEOPLE.items()}


def like(case: Case) -> Table:
    """Public data as good as a second sample of half the size."""
    draw, records = PEOPLE[case.scene]
    return draw(records // 2, seed=7)


def useless(table: Table) -> Table:
    """Public data that tell nothing: every value as likely as any other."""
    rng = np.random.default_rng(2)
    return Table.of_codes(
        table.domain, np.stack([rng.integers(0, k, 300) for k in table.domain.shape], axis=1)
    )


def public_for(case: Case, table: Table) -> Table | None:
    return None if case.mechanism.public_data == "unused" else useless(table)


def workload_error(counted: Any, table: Table, workload: Workload, *, total: float | None = None) -> float:
    """The mean over the workload of ‖q(D) − q(A)‖₁/n."""
    scale = 1.0 if total is None else table.records / total
    gaps = [np.abs(scale * counted.count(q.attrs) - table.count(q.attrs)).sum() for q in workload]
    return float(np.mean(gaps)) / table.records


@pytest.fixture
def run(toy):
    """Run a case on its own people, or on others; what it gave, the curator and the ledger."""

    def run(
        case: Case,
        table: Table | None = None,
        *,
        workload: Workload | None = None,
        public: Any = "useless",
        rho: str = "1/20",
        epsilon: str = "3/2",
        **settings: Any,
    ):
        people = TABLES[case.scene] if table is None else table
        asked = Workload.marginals(people.domain, degree=2) if workload is None else workload
        curator, ledger = type(toy)(people, asked).curator(**case.cost(rho, epsilon), **settings)
        given = public_for(case, people) if isinstance(public, str) else public
        return case.mechanism.run(curator, asked, public=given), curator, ledger

    return run


def ids(value: Any) -> str:
    if isinstance(value, Unit):
        return f"{value.relation}-{value.records}"
    return f"{value.mechanism.name}-{value.scene}" + ("-pure" if value.is_pure else "")


each_case = pytest.mark.parametrize(
    "case", [pytest.param(case, marks=torched(case.mechanism.name)) for case in CASES], ids=ids
)


# What a mechanism promises: each of these raises where it is broken -----------------------------------


def spends_what_it_says(case, run, unit):
    outcome, curator, ledger = run(case, unit=unit)

    allotted = curator.allotment.value
    spent = sum((event.cost.value for event in outcome.events), Fraction(0))
    assert spent == allotted - curator.remaining.value
    assert 0 < spent <= allotted
    assert outcome.events == tuple(ledger.events())


def gives_a_distribution(case, run):
    outcome, _, _ = run(case)

    table = TABLES[case.scene]
    for query in Workload.marginals(table.domain, degree=2):
        counts = outcome.count(query.attrs)
        assert counts.shape == table.domain.project(query.attrs).shape
        assert counts.min() >= 0
        assert counts.sum() == pytest.approx(table.records)


def is_a_function_of_the_noise(case, run):
    first, again, other = (run(case, noise=SeededNoise(seed))[0] for seed in (5, 5, 6))

    attrs = TABLES[case.scene].domain.attrs[:3]
    assert np.array_equal(first.count(attrs), again.count(attrs))
    assert not np.array_equal(first.count(attrs), other.count(attrs))


def is_a_function_of_the_noisy_outputs_alone(case, run, folder):
    """Taint: replayed against an unrelated table, the journal gives the identical outcome."""
    with Journal.open(folder, run="r", settings={}) as journal:
        outcome, _, _ = run(case, journal=journal)
    domain, records = TABLES[case.scene].domain, TABLES[case.scene].records
    elsewhere = Table.of_codes(domain, np.zeros((records, len(domain)), dtype=np.uint8))

    with Journal.open(folder, run="r", settings={}) as replayed:
        again, _, _ = run(case, elsewhere, journal=replayed)

    attrs = domain.attrs[:3]
    assert np.array_equal(outcome.count(attrs), again.count(attrs))
    assert outcome.events == again.events


def comes_close_with_much_budget(case, run):
    """Four times closer than the uniform table, and than useless public data."""
    patient = replace(case, mechanism=replace(case.mechanism, **case.patient))
    outcome, _, _ = run(patient, rho="100000", epsilon="50000")

    table = TABLES[case.scene]
    workload = Workload.marginals(table.domain, degree=2)
    uniform = Histogram.uniform(table.domain, total=table.records)
    public = useless(table)
    worst = min(
        workload_error(uniform, table, workload),
        workload_error(public, table, workload, total=public.records),
    )
    assert workload_error(outcome, table, workload) < 0.25 * worst


def answers_the_workload_that_was_asked(case, run):
    """Asked for one pair, it is at least twice as close there as if it had been asked for the other."""
    table = TABLES["binary"]
    pairs = [Workload([("a", "b")]), Workload([("c", "d")])]
    patient = replace(case, mechanism=replace(case.mechanism, **case.patient))
    first, second = (run(patient, table, workload=pair, rho="10", epsilon="50")[0] for pair in pairs)

    for pair, asked, elsewhere in ((pairs[0], first, second), (pairs[1], second, first)):
        assert workload_error(asked, table, pair) < 0.5 * workload_error(elsewhere, table, pair)


def gains_by_good_public_data(case, run):
    """At a small budget, a third of the error goes where public data are of the same people."""
    table = TABLES[case.scene]
    workload = Workload.marginals(table.domain, degree=2)

    def error(public: Any) -> float:
        outcomes = [
            run(case, public=public, rho="1/2000", epsilon="1/10", noise=SeededNoise(seed))[0]
            for seed in range(2)
        ]
        return float(np.mean([workload_error(outcome, table, workload) for outcome in outcomes]))

    without = [useless(table), *([None] if case.mechanism.public_data == "optional" else [])]
    assert error(like(case)) < 0.67 * min(error(public) for public in without)


def refused(case: Case, workload: Workload, public: Any) -> SettingError | None:
    try:
        case.mechanism.check(TABLES[case.scene].domain, workload, public)
    except SettingError as refusal:
        return refusal
    return None


def uses_or_refuses_public_data_in_part(case, run, public):
    """Refused, with the name of a mechanism that can; or else the error goes where public data tell."""
    table, told = TABLES[case.scene], public.domain.attrs[:2]
    workload = Workload([told])
    refusal = refused(case, workload, public)
    if refusal is not None:
        assert "'aperture'" in str(refusal)
        return "refused"

    def error(given: Any) -> float:
        outcomes = [
            run(case, workload=workload, public=given, rho="1/2000", epsilon="1/10", noise=SeededNoise(seed))[
                0
            ]
            for seed in range(2)
        ]
        return float(np.mean([workload_error(outcome, table, workload) for outcome in outcomes]))

    assert error(public) < 0.67 * error(useless(table))
    return "used"


def without_a_column(case: Case) -> Table:
    """Good public data about all attributes but the last."""
    good = like(case)
    kept = good.domain.attrs[:-1]
    return Table.of_codes(good.domain.project(kept), good.codes()[:, : len(kept)])


def with_open_values(case: Case) -> WeightedRecords:
    """Good public data in which every fourth record leaves the last attribute open."""
    codes = like(case).codes().astype(np.int32)
    codes[::4, -1] = UNKNOWN
    return WeightedRecords(like(case).domain, codes)


def samples_follow_the_model(case, run):
    """Every cell of every pair within five standard deviations of a multinomial draw."""
    outcome, _, _ = run(case)

    drawn = outcome.model.sample(5000, seed=3)

    assert drawn.records == 5000
    for query in Workload.marginals(drawn.domain, degree=2):
        expected = outcome.count(query.attrs) * 5000 / outcome.total
        assert (np.abs(drawn.count(query.attrs) - expected) <= 5 * np.sqrt(expected) + 1).all()


# Every mechanism keeps them ---------------------------------------------------------------------------


@pytest.mark.parametrize("unit", UNITS, ids=ids)
@each_case
def test_all_that_was_spent_is_in_the_outcome_and_in_the_ledger(case, run, unit):
    spends_what_it_says(case, run, unit)


@each_case
def test_the_model_is_a_distribution_with_the_right_total(case, run):
    gives_a_distribution(case, run)


@each_case
def test_the_same_noise_gives_the_same_release(case, run):
    is_a_function_of_the_noise(case, run)


@each_case
def test_a_release_is_a_function_of_the_noisy_outputs_alone(case, run, tmp_path):
    is_a_function_of_the_noisy_outputs_alone(case, run, tmp_path / "run")


@each_case
def test_much_budget_gives_small_error(case, run):
    comes_close_with_much_budget(case, run)


@each_case
def test_what_is_asked_decides_what_is_answered_well(case, run):
    answers_the_workload_that_was_asked(case, run)


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(
            case,
            marks=[
                *torched(case.mechanism.name),
                *([pytest.mark.slow] if case.mechanism.name == "aperture" else []),
            ],
        )
        for case in CASES
        if case.mechanism.public_data != "unused"
    ],
    ids=ids,
)
def test_good_public_data_lower_the_error_of_a_small_budget(case, run):
    gains_by_good_public_data(case, run)


helped = pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, marks=torched(case.mechanism.name))
        for case in CASES
        if case.mechanism.public_data != "unused"
    ],
    ids=ids,
)


@helped
def test_public_data_without_a_column_are_used_or_refused(case, run):
    found = uses_or_refuses_public_data_in_part(case, run, without_a_column(case))

    assert found == ("used" if case.mechanism.name in ("jam", "aperture") else "refused")


@helped
def test_public_data_with_open_values_are_used_or_refused(case, run):
    found = uses_or_refuses_public_data_in_part(case, run, with_open_values(case))

    assert found == ("used" if case.mechanism.name in USES_OPEN_VALUES else "refused")


@each_case
def test_samples_have_the_number_asked_for_and_follow_the_model(case, run):
    samples_follow_the_model(case, run)


@each_case
def test_a_saved_release_comes_back_the_same(case, run, tmp_path):
    outcome, _, _ = run(case)

    loaded = Release.load(cards.released(outcome).save(tmp_path / "out"))

    assert np.allclose(loaded.count(("c", "a")), outcome.count(("c", "a")), rtol=0, atol=1e-9)
    assert loaded.events == outcome.events
    assert [m.query for m in loaded.measurements] == [m.query for m in outcome.measurements]
    for ours, theirs in zip(loaded.measurements, outcome.measurements, strict=True):
        assert np.array_equal(ours.answer, theirs.answer)
        assert ours.stddev == theirs.stddev


@each_case
def test_public_data_is_refused_or_demanded_as_the_mechanism_says(case):
    table = TABLES[case.scene]
    workload = Workload.marginals(table.domain, degree=2)
    if case.mechanism.public_data == "unused":
        with pytest.raises(SettingError, match="does not use public data"):
            case.mechanism.check(table.domain, workload, useless(table))
    if case.mechanism.public_data == "needed":
        with pytest.raises(SettingError, match="starts from public data"):
            case.mechanism.check(table.domain, workload, None)


@each_case
def test_a_curator_without_budget_refuses_to_look(case, run):
    _, curator, _ = run(case)
    spent = curator.events

    with pytest.raises(BudgetExhausted):
        curator.measure(Marginal(("a",)), curator.allotment)

    assert curator.events == spent


def test_the_entangled_case_goes_beyond_its_tree(run):
    """So that all that is promised above is promised of particles too."""
    (case,) = (case for case in CASES if case.scene == "entangled")

    for public in (None, "useless"):
        outcome, _, _ = run(case, public=public)

        assert outcome.aperture.particle_rounds > 0
        assert outcome.aperture.particles > 1000


def test_the_fine_cases_are_run_in_groups(run):
    """So that all that is promised above is promised of groups too."""
    for case in CASES:
        if case.scene == "fine":
            outcome, _, _ = run(case)

            assert [grouped.attr for grouped in outcome.groups] == ["b"]


# Mechanisms that break a promise are caught -----------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Planted(Mechanism):
    """Spends as it should, and then does as it likes."""

    name = "planted"
    public_data = "optional"

    def outlook(self, domain, workload, *, allotment, unit):
        raise NotImplementedError

    def noisiest(self, domain, workload, *, allotment, unit):
        return ()

    def model(self, curator, workload, public, measured):
        raise NotImplementedError

    def run(self, curator, workload, *, public=None):
        total_cost, cost = curator.remaining.split(0.1)
        total = curator.total(total_cost)
        measured = curator.measure(self.query(curator, workload), cost)
        model = self.model(curator, total, public, measured)
        return Outcome(model, (measured,), curator.events)

    def query(self, curator, workload):
        return workload[0]


class UniformTable(Planted):
    """Whatever was measured, every cell is as likely as any other."""

    def model(self, curator, total, public, measured):
        return Histogram.uniform(curator.domain, total=total)


class TakesAnything(UniformTable):
    """Accepts public data that it makes nothing of."""

    def check_public(self, domain, public):
        return


class PublicTable(Planted):
    """The public table as it is, brought to the total."""

    def model(self, curator, total, public, measured):
        if public is None:
            return Histogram.uniform(curator.domain, total=total)
        return Histogram.of_counts(curator.domain, public.count(curator.domain.attrs), total=total)


class IgnoresWorkload(Planted):
    """The whole table with noise, whatever was asked."""

    def query(self, curator, workload):
        return Marginal(curator.domain.attrs)

    def model(self, curator, total, public, measured):
        cells = np.maximum(measured.answer, 1e-9).reshape(curator.domain.shape)
        return Histogram.of_counts(curator.domain, cells, total=total)


class Peeks(IgnoresWorkload):
    """One exact count finds its way into the model."""

    def model(self, curator, total, public, measured):
        cells = np.maximum(measured.answer, 1e-9).reshape(curator.domain.shape).copy()
        cells.flat[0] = curator._table.count(curator.domain.attrs).flat[0]
        return Histogram.of_counts(curator.domain, cells, total=total)


class SamplesAnother(UniformTable):
    """Counts by one model and draws from another."""

    def model(self, curator, total, public, measured):
        uniform = super().model(curator, total, public, measured)
        tilted = np.arange(1.0, 1 + np.prod(curator.domain.shape)).reshape(curator.domain.shape)
        drawn_from = Histogram.of_counts(curator.domain, tilted, total=total)
        object.__setattr__(uniform, "sample", drawn_from.sample)
        return uniform


@dataclass(frozen=True, kw_only=True)
class GroupsByExactCounts(InGroups):
    """Pays for every value of the attribute that it groups, and then groups them by their exact counts."""

    def run(self, curator, workload, *, public=None):
        paid = curator.measure

        def exact(query, cost, **options):
            made = paid(query, cost, **options)
            is_fine = query == Marginal(("b",)) and curator.domain.sizes["b"] == 30
            counts = curator._table.count(query.attrs).reshape(-1).astype(np.float64)
            return replace(made, answer=counts) if is_fine else made

        curator.measure = exact
        return super().run(curator, workload, public=public)


@pytest.mark.parametrize(
    ("planted", "promise"),
    [
        (UniformTable, comes_close_with_much_budget),
        (UniformTable, answers_the_workload_that_was_asked),
        (UniformTable, gains_by_good_public_data),
        (UniformTable, is_a_function_of_the_noise),
        (PublicTable, comes_close_with_much_budget),
        (PublicTable, answers_the_workload_that_was_asked),
        (PublicTable, is_a_function_of_the_noise),
        (IgnoresWorkload, answers_the_workload_that_was_asked),
        (IgnoresWorkload, gains_by_good_public_data),
        (SamplesAnother, samples_follow_the_model),
    ],
)
def test_a_planted_mechanism_breaks_the_promise(planted, promise: Callable, run):
    with pytest.raises(AssertionError):
        promise(Case(planted()), run)


def test_a_mechanism_that_takes_public_data_in_part_for_nothing_is_caught(run):
    case = Case(TakesAnything())

    for public in (without_a_column(case), with_open_values(case)):
        assert uses_or_refuses_public_data_in_part(Case(UniformTable()), run, public) == "refused"
        with pytest.raises(AssertionError):
            uses_or_refuses_public_data_in_part(case, run, public)


def test_a_look_that_nobody_paid_for_is_seen(run, tmp_path):
    is_a_function_of_the_noisy_outputs_alone(Case(IgnoresWorkload()), run, tmp_path / "sound")

    with pytest.raises(AssertionError):
        is_a_function_of_the_noisy_outputs_alone(Case(Peeks()), run, tmp_path / "peeks")
    with pytest.raises(AssertionError):
        is_a_function_of_the_noisy_outputs_alone(
            Case(GroupsByExactCounts(inner=MST()), scene="fine"), run, tmp_path / "groups"
        )
