"""APERTURE withstands attacks; with half the sensitivity, or an unpaid second look, it does not."""

from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace
from zlib import crc32

import numpy as np
import pytest

from sidelight.audit import attack, audit_mechanism
from sidelight.curator.curator import Curator
from sidelight.data.domain import Domain
from sidelight.data.table import Table
from sidelight.measurement import Measurement
from sidelight.mechanisms.aperture.aperture import Aperture
from sidelight.models.support import Support
from sidelight.privacy.budget import Budget
from sidelight.privacy.ledger import MemoryLedger
from sidelight.privacy.promise import Promise
from sidelight.privacy.unit import Unit
from sidelight.queries.query import Marginal
from sidelight.queries.workload import Workload
from sidelight.select.improvement import ExpectedImprovement, Profile, Prospect
from sidelight.select.judgement import LeastError
from sidelight.testing import SeededNoise

pytestmark = pytest.mark.statistical

DOMAIN = Domain.of({"a": 2, "b": 2})
WORKLOAD = Workload.marginals(DOMAIN, degree=2)
# A large δ, at which the conversion from ρ is least loose: the attack sees most of what is given away.
BUDGET = Budget(epsilon=2.0, delta=0.05)
RUNS = 1000
# What is attacked are the noisy answers, so the fit may be rough.
ROUGH = Aperture(
    max_rounds=1, one_way_share=0.4, max_asked_again=1,
)  # fmt: skip


class SecondLook(Curator):
    """The planted bug: each answer is the mean of three draws, of which one is paid for."""

    def measure(self, query, cost, *, noise=None):
        paid = super().measure(query, cost, noise=noise)
        exact = self._exact(query)
        rng = np.random.default_rng(crc32(paid.answer.tobytes()))
        unpaid = exact + rng.normal(0.0, paid.stddev, (2, exact.size))
        return Measurement(query, (paid.answer + unpaid.sum(axis=0)) / 3, paid.stddev)


def neighbours(relation="replace"):
    codes = np.array([[0, 0]] * 6 + [[1, 0]] * 2 + [[1, 1]] * 4)
    other = codes.copy()
    if relation == "replace":
        other[0] = [1, 1]
    else:
        other = other[1:]
    return Table.of_codes(DOMAIN, codes), Table.of_codes(DOMAIN, other)


PUBLIC = ROUGH.prior(
    Table.of_codes(DOMAIN, np.array([[0, 0], [1, 1], [0, 1], [1, 1]])), DOMAIN, WORKLOAD.closure(DOMAIN)
)


# With records beside the model, so that a mixture of both is chosen at the end.
SAMPLED = replace(
    PUBLIC,
    sample=Support(DOMAIN, np.array([[0, 0], [0, 1], [1, 1]]), np.array([0.4, 0.2, 0.4]), 1.0),
    sample_share=0.5,
)
PRIORS = {"model alone": replace(PUBLIC, sample=None, sample_share=0.0), "records beside it": SAMPLED}


@pytest.mark.parametrize(
    ("relation", "prior"), [("replace", "records beside it"), ("add-or-remove", "model alone")]
)
def test_it_withstands_the_attack_and_half_the_sensitivity_does_not(relation, prior, halved):
    honest, broken = (
        audit_mechanism(
            ROUGH, neighbours(relation), WORKLOAD, budget=BUDGET, unit=unit, public=PRIORS[prior], runs=RUNS
        )
        for unit in (Unit(relation), halved(relation))
    )

    assert not honest.refutes(BUDGET)
    # The attack has teeth: it sees a part of what a correct run gives away.
    assert honest.epsilon > 0.05 * BUDGET.epsilon
    assert broken.epsilon > 1.4 * honest.epsilon


def test_an_unpaid_second_look_is_seen():
    tables = neighbours()

    def found(kind):
        def ratio(table, seed):
            ledger = MemoryLedger(Promise(BUDGET, Unit("replace"), "audit"))
            curator = kind(
                table, allotment=BUDGET.rho(), unit=Unit("replace"), ledger=ledger, noise=SeededNoise(seed)
            )
            release = ROUGH.run(curator, WORKLOAD, public=PUBLIC)
            first, second = (tables[k].count(("a", "b")).reshape(-1) for k in (0, 1))
            answer = release.measurements[-1].answer
            if answer.size < 4:
                attrs = release.measurements[-1].query.attrs
                first, second = (tables[k].count(attrs).reshape(-1) for k in (0, 1))
            return float(((answer - first) ** 2 - (answer - second) ** 2).sum())

        return attack(ratio, tables, delta=BUDGET.delta, runs=RUNS).epsilon

    assert found(SecondLook) > 1.4 * found(Curator)


def test_selection_keeps_its_epsilon_on_the_worst_neighbours_and_half_the_sensitivity_does_not():
    """Exact chances of the exponential mechanism, where one score rises as far as another falls."""
    epsilon, unit = 0.5, Unit("replace")
    expected = np.array([30.0, 30.0])
    prospect = Prospect(Profile.of(expected), 0.0, 1.0)
    model = SimpleNamespace(count_each=lambda wanted: [(place, expected) for place in range(len(wanted))])
    score = ExpectedImprovement(model, lambda attrs, counts: prospect, stddev=1e-3, total=60.0)
    # A record goes from (1, 0) to (0, 1): it makes the error of a larger, and that of b smaller.
    tables = [
        {("a",): np.array([40, 20]), ("b",): np.array([5, 55])},
        {("a",): np.array([41, 19]), ("b",): np.array([6, 54])},
    ]

    def loss(share):
        chances = []
        for counts in tables:
            queries = [Marginal(attrs) for attrs in counts]
            found = {place: one(counts[queries[place].attrs]) for place, one in score.each(queries)}
            scores = np.array([found[place] for place in range(len(queries))])
            sensitivity = float(score.sensitivity(unit, Marginal(("a",)))) * share
            weights = np.exp(epsilon * (scores - scores.max()) / (2 * sensitivity))
            chances.append(weights / weights.sum())
        return np.abs(np.log(chances[0] / chances[1])).max()

    assert 0.9 * epsilon < loss(1.0) <= epsilon
    assert loss(0.5) > 1.5 * epsilon


# The choice of a mixture, between a model that errs the more and records that err the less by one record.

ONE_WAYS = [Marginal(("a",)), Marginal(("b",))]
CHOICE = Budget(epsilon=1.0, delta=0.0)
WORST = {"replace": ((15, 7), (16, 6)), "add-or-remove": ((15, 5), (15, 4))}
"""How many have a = b = 0 and how many a = b = 1, in each of two neighbours."""


class HalfTheSensitivity(LeastError):
    """The planted bug: one record is said to move the mean error by half as much as it can."""

    def sensitivity(self, unit, queries):
        return super().sensitivity(unit, queries) / Fraction(2)


def judgement_of(kind):
    """All of an even model, or all of records that are 0 throughout."""
    even, zeros = np.array([11.0, 11.0]), np.array([22.0, 0.0])
    models = [
        SimpleNamespace(count_each=lambda wanted, counts=counts: [(k, counts) for k in range(len(wanted))])
        for counts in (even, zeros)
    ]
    return kind(models, ((1.0, 0.0), (0.0, 1.0)), weights={q.attrs: 1.0 for q in ONE_WAYS}, total=22.0)


def tables_of(relation):
    return tuple(
        Table.of_codes(DOMAIN, np.array([[0, 0]] * zeros + [[1, 1]] * ones))
        for zeros, ones in WORST[relation]
    )


@pytest.mark.parametrize("relation", WORST)
def test_the_choice_of_a_mixture_withstands_the_attack_and_half_the_sensitivity_does_not(relation):
    unit = Unit(relation)

    def found(kind):
        def chosen(table, seed):
            curator = Curator(
                table,
                allotment=CHOICE.pure(),
                unit=unit,
                ledger=MemoryLedger(Promise(CHOICE, unit, "audit")),
                noise=SeededNoise(seed),
            )
            return float(curator.choose(ONE_WAYS, judgement_of(kind), CHOICE.pure()))

        return attack(chosen, tables_of(relation), delta=0.0, runs=3000)

    honest, broken = found(LeastError), found(HalfTheSensitivity)

    assert not honest.refutes(CHOICE)
    # The attack has teeth: it sees a good part of what a correct choice gives away.
    assert honest.epsilon > 0.2 * CHOICE.epsilon
    assert broken.refutes(CHOICE)


@pytest.mark.parametrize("relation", WORST)
def test_the_chances_of_mixtures_keep_their_epsilon_on_the_worst_neighbours_and_half_does_not(relation):
    """Exact chances, with so many options like the first that the last is hardly ever chosen."""
    epsilon, unit, judgement = 0.5, Unit(relation), judgement_of(LeastError)

    def loss(share):
        chances = []
        for table in tables_of(relation):
            scores = np.zeros(2)
            for place, added in judgement.each(ONE_WAYS):
                scores += added(table.count(ONE_WAYS[place].attrs))
            sensitivity = float(judgement.sensitivity(unit, ONE_WAYS)) * share
            weights = np.exp(epsilon * (scores - scores.max()) / (2 * sensitivity)) * [1000, 1]
            chances.append(weights / weights.sum())
        return np.abs(np.log(chances[0] / chances[1])).max()

    assert 0.9 * epsilon < loss(1.0) <= epsilon
    assert loss(0.5) > 1.5 * epsilon
