"""AIM, MST and JAM withstand attacks; with too small a sensitivity, or with draws unpaid for, they do not.

Selection and noise are attacked apart: each attack leaves nearly all of the budget to the part that it
looks at. A large δ is where ρ converts with the least loss, so it is where a bug shows soonest.
"""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from sidelight.audit import attack
from sidelight.curator.curator import Curator
from sidelight.data.domain import Domain
from sidelight.data.table import Table
from sidelight.fit.private_pgm import MirrorDescent
from sidelight.measurement import Measurement, stddev_of
from sidelight.mechanisms import jam, mst
from sidelight.mechanisms.aim import AIM
from sidelight.mechanisms.jam import JAM
from sidelight.mechanisms.mst import MST
from sidelight.models.graphical import GraphicalModel
from sidelight.models.merging import Merging
from sidelight.privacy.budget import Budget
from sidelight.privacy.event import Exponential
from sidelight.privacy.ledger import MemoryLedger
from sidelight.privacy.promise import Promise
from sidelight.privacy.unit import Unit
from sidelight.queries.merged import Merged
from sidelight.queries.query import Marginal, answer
from sidelight.queries.workload import Workload
from sidelight.select.exponential import exponential
from sidelight.select.joint import JointError
from sidelight.select.score import ModelError, WeightedError
from sidelight.testing import SeededNoise

pytestmark = pytest.mark.statistical

RELATIONS = ["replace", "add-or-remove"]


class Unfitted(MirrorDescent):
    """Fits nothing: a fit sees noisy answers alone, so choices and answers, the prey, stay as they are."""

    def estimate(self, domain, measurements, *, total=None, start=None, **_):
        return GraphicalModel.uniform(domain, total=24.0 if total is None else total)


QUICK = {"estimator": Unfitted(), "final_estimator": Unfitted()}


# JAM: the choice between two public marginals, of which one record makes the one better and the other worse.

PAIR = Domain.of({"a": 2, "b": 2})
ONE_WAYS = Workload.marginals(PAIR, degree=1)
CHOICE = Budget(epsilon=0.5, delta=0.2)
CHOOSER = JAM(rounds=1, select_share=0.999, total_share=0.1, **QUICK)
# n times (0, 0): from the uniform model, every further 0 is an error that the public table would mend.
PUBLIC = Table.of_codes(PAIR, np.zeros((10, 2), dtype=np.uint8))


def table_of_pairs(*, ones_in_a, ones_in_b, records):
    codes = np.zeros((records, 2), dtype=np.uint8)
    codes[:ones_in_a, 0] = 1
    codes[ones_in_a : ones_in_a + ones_in_b, 1] = 1
    return Table.of_codes(PAIR, codes)


def choosers_neighbours(relation):
    """A record (1, 0) becomes (0, 1), or goes: public a scores Δ more, and public b Δ less."""
    if relation == "replace":
        before, after = (12, 10, 80), (11, 11, 80)
    else:
        before, after = (11, 10, 80), (10, 10, 79)
    return tuple(table_of_pairs(ones_in_a=a, ones_in_b=b, records=n) for a, b, n in (before, after))


class HalfTheSensitivity(JointError):
    """The planted bug: the public table's distance is taken for a constant, so 2 instead of 4."""

    def sensitivity(self, unit, query):
        return super().sensitivity(unit, query) / Fraction(2)


class SecondChoice(Curator):
    """The planted bug: with each choice a second one is drawn, and what lies between them is told."""

    def select(self, candidates, score, cost, *, method="exponential"):
        chosen = super().select(candidates, score, cost, method=method)
        paid = next(event for event in self.events if isinstance(event, Exponential))
        scores = np.zeros(len(candidates))
        for place, score_of in score.each(candidates):
            scores[place] = score_of(self._exact(candidates[place]))
        self.gap = abs(scores[candidates.index(chosen)] - scores[exponential(self._noise, scores, paid)])
        return chosen


def attack_on_choice(relation, *, kind=Curator, runs=1200, gap_is_told=False):
    unit = Unit(relation)

    def one_run(table, seed):
        ledger = MemoryLedger(Promise(CHOICE, unit, "audit"))
        curator = kind(table, allotment=CHOICE.rho(), unit=unit, ledger=ledger, noise=SeededNoise(seed))
        release = CHOOSER.run(curator, ONE_WAYS, public=PUBLIC)
        if gap_is_told:
            # Only where the two marginals differ in score can there be a gap.
            return float(curator.gap == 0)
        return float(release.rounds[0].marginal == ("a",))

    return attack(one_run, choosers_neighbours(relation), delta=CHOICE.delta, runs=runs, confidence=0.99)


@pytest.mark.parametrize("relation", RELATIONS)
def test_jams_choice_withstands_the_attack_and_half_the_sensitivity_does_not(relation, monkeypatch):
    honest = attack_on_choice(relation)
    monkeypatch.setattr(jam, "JointError", HalfTheSensitivity)
    broken = attack_on_choice(relation)

    assert not honest.refutes(CHOICE)
    assert broken.refutes(CHOICE)


@pytest.mark.parametrize("relation", RELATIONS)
def test_the_gap_to_an_unpaid_second_choice_is_refuted(relation):
    told = attack_on_choice(relation, kind=SecondChoice, runs=1000, gap_is_told=True)

    assert told.refutes(CHOICE)


# AIM, MST and JAM: the noisy answers.

SINGLE = Domain.of({"a": 2})
ALONE = Workload.marginals(SINGLE, degree=1)
ANSWERS = Budget(epsilon=2.0, delta=0.2)
MEASURERS = {
    "aim": (AIM(rounds_per_attribute=2, select_share=0.01, **QUICK), None),
    "mst": (MST(estimator=Unfitted()), None),
    "jam": (
        JAM(rounds=1, select_share=0.01, total_share=0.01, last_round="private", **QUICK),
        Table.of_codes(SINGLE, np.array([[0], [1]])),
    ),
}


def measurers_neighbours(relation):
    codes = np.array([[0]] * 14 + [[1]] * 10)
    other = codes[1:].copy()
    if relation == "replace":
        other = codes.copy()
        other[0] = [1]
    return Table.of_codes(SINGLE, codes), Table.of_codes(SINGLE, other)


class UnpaidDraws(Curator):
    """The planted bug: each answer is the mean of four draws, of which one is paid for."""

    def measure(self, query, cost, *, noise=None):
        paid = super().measure(query, cost, noise=noise)
        rng = np.random.default_rng(self._noise.words(1))
        unpaid = self._exact(query) + rng.normal(0.0, paid.stddev, (3, paid.answer.size))
        return Measurement(query, (paid.answer + unpaid.sum(axis=0)) / 4, paid.stddev)


def attack_on_answers(name, unit, *, kind=Curator):
    """By the likelihood ratio of all noisy answers."""
    mechanism, public = MEASURERS[name]
    tables = measurers_neighbours(unit.relation)

    def one_run(table, seed):
        ledger = MemoryLedger(Promise(ANSWERS, unit, "audit"))
        curator = kind(table, allotment=ANSWERS.rho(), unit=unit, ledger=ledger, noise=SeededNoise(seed))
        ratio = 0.0
        for measured in mechanism.run(curator, ALONE, public=public).measurements:
            first, second = (answer(measured.query, table) for table in tables)
            distance = ((measured.answer - first) ** 2 - (measured.answer - second) ** 2).sum()
            ratio += distance / (2 * measured.stddev**2)
        return float(ratio)

    return attack(one_run, tables, delta=ANSWERS.delta, runs=1200, confidence=0.99)


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("name", MEASURERS)
def test_noisy_answers_withstand_the_attack_and_half_the_sensitivity_does_not(name, relation, halved):
    honest = attack_on_answers(name, Unit(relation))
    broken = attack_on_answers(name, halved(relation))

    assert not honest.refutes(ANSWERS)
    # The attack has teeth: it sees a part of what a correct run gives away.
    assert honest.epsilon > 0.1 * ANSWERS.epsilon
    assert broken.refutes(ANSWERS)


@pytest.mark.parametrize("name", MEASURERS)
def test_unpaid_draws_are_refuted(name):
    assert attack_on_answers(name, Unit("replace"), kind=UnpaidDraws).refutes(ANSWERS)


# MST: which values are rare.

RARE = Domain.of({"a": 3})


class RareByExactCounts(Merging):
    """The planted bug: which values are rare is read off the private table, as if that cost nothing."""

    table: Table

    @classmethod
    def of(cls, domain, one_ways, *, threshold):
        exact = [replace(made, answer=answer(made.query, cls.table) * 1.0) for made in one_ways]
        return Merging.of(domain, exact, threshold=threshold)


def attack_on_rare_values(relation, *, merging):
    """Whether values were merged; of the neighbours one has a record more in each of two rare ones."""
    unit = Unit(relation, records=2)
    stddev = stddev_of(Marginal(("a",)), CHOICE.rho(), unit)
    few = math.ceil(3 * stddev) - 1
    records = [40, few, few] if relation == "replace" else [40 - 2, few, few]
    codes = np.repeat([0, 1, 2], records)
    more = np.repeat([0, 1, 2], [38, few + 1, few + 1])
    tables = tuple(Table.of_codes(RARE, held[:, None]) for held in (codes, more))

    def one_run(table, seed):
        merging.table = table
        ledger = MemoryLedger(Promise(CHOICE, unit, "audit"))
        curator = Curator(table, allotment=CHOICE.rho(), unit=unit, ledger=ledger, noise=SeededNoise(seed))
        outcome = MST(estimator=Unfitted()).run(curator, Workload.marginals(RARE, degree=1))
        return float(not outcome.notes)

    return attack(one_run, tables, delta=CHOICE.delta, runs=1000, confidence=0.99)


@pytest.mark.parametrize("relation", RELATIONS)
def test_rare_values_are_told_by_noisy_answers_and_telling_them_by_exact_ones_is_refuted(
    relation, monkeypatch
):
    honest = attack_on_rare_values(relation, merging=Merging)
    monkeypatch.setattr(mst, "Merging", RareByExactCounts)
    broken = attack_on_rare_values(relation, merging=RareByExactCounts)

    assert not honest.refutes(CHOICE)
    assert broken.refutes(CHOICE)


# AIM and MST: their choices, by their exact chances.


class Fixed:
    """A model whose answers are given."""

    def count_each(self, wanted):
        return enumerate(map(self.count, wanted))

    def count(self, attrs):
        return np.array([30.0, 30.0])


SCORES = {
    "aim": WeightedError(Fixed(), weights={("a",): 3.0, ("b",): 3.0}, cell_penalty=1.5),
    "mst": ModelError(Fixed()),
}


@pytest.mark.parametrize("name", SCORES)
@pytest.mark.parametrize(
    ("relation", "after"),
    [("replace", {"a": [41, 19], "b": [6, 54]}), ("add-or-remove", {"a": [40, 19], "b": [5, 54]})],
)
def test_a_choice_keeps_its_epsilon_on_the_worst_neighbours_and_half_the_sensitivity_does_not(
    name, relation, after
):
    """One record makes the error of a larger and that of b smaller, each by as much as it can."""
    epsilon, unit = 0.5, Unit(relation)
    queries = [Marginal(("a",)), Merged(("b",), ((0, 1),))]
    score = SCORES[name]
    declared = float(max(score.sensitivity(unit, query) for query in queries))
    tables = [{"a": [40, 20], "b": [5, 55]}, after]

    def loss(share):
        chances = []
        for counts in tables:
            found = {at: one(np.array(counts[queries[at].attrs[0]])) for at, one in score.each(queries)}
            scores = np.array([found[at] for at in range(len(queries))])
            weights = np.exp(epsilon * (scores - scores.max()) / (2 * share * declared))
            chances.append(weights / weights.sum())
        return np.abs(np.log(chances[0] / chances[1])).max()

    assert 0.9 * epsilon < loss(1.0) <= epsilon
    assert loss(0.5) > 1.5 * epsilon
