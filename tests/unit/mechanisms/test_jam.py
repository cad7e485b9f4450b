"""JAM: its budget, its score, and its use of public data (spec 6 and 10.6)."""

from fractions import Fraction

import numpy as np
import pytest

from sidelight.curator.curator import Curator
from sidelight.data.domain import Domain
from sidelight.data.table import Table
from sidelight.errors import DataError, TooLargeError, WorkloadError
from sidelight.mechanisms.jam import JAM
from sidelight.models.graphical import GraphicalModel
from sidelight.privacy.budget import Budget, Epsilon, Rho
from sidelight.privacy.event import Exponential, Gaussian
from sidelight.privacy.ledger import MemoryLedger
from sidelight.privacy.promise import Promise
from sidelight.privacy.unit import Unit
from sidelight.queries.query import Range
from sidelight.queries.workload import Workload
from sidelight.select.joint import JointCandidate, JointError
from sidelight.testing import SeededNoise

REPLACE = Unit("replace")


def curator_of(kind, table, rho, unit=REPLACE):
    ledger = MemoryLedger(Promise(Budget(epsilon=1e7, delta=1e-9), unit, "toy"))
    return kind(table, allotment=Rho(rho), unit=unit, ledger=ledger, noise=SeededNoise(4))


class Scripted(Curator):
    """Pays for every selection, then returns what the script says."""

    script = ()

    def select(self, candidates, score, cost, *, method="exponential"):
        super().select(candidates, score, cost, method=method)
        is_public = self.script[sum(isinstance(e, Exponential) for e in self.events) - 1]
        return next(c for c in candidates if c.is_public == is_public)


def test_what_a_public_round_saves_rolls_forward(toy):
    Scripted.script = (True, False, False)
    curator = curator_of(Scripted, toy.table, 1)

    JAM(rounds=3).run(curator, toy.workload, public=toy.table)

    selections = [e for e in curator.events if isinstance(e, Exponential)]
    measured = [e for e in curator.events if isinstance(e, Gaussian)]
    assert [float(e.cost) for e in selections] == pytest.approx([1 / 15, 7 / 75, 7 / 75])
    assert [float(e.epsilon) for e in selections] == pytest.approx([0.730297, 0.864099, 0.864099], abs=1e-6)
    assert [float(e.variance) for e in measured] == pytest.approx([2.678571, 2.678571], abs=1e-6)
    assert all(e.sensitivity == 4 for e in selections)
    assert float(curator.remaining) == pytest.approx(0)


def test_a_public_choice_in_the_last_round_leaves_its_share_unspent_unless_told_otherwise(toy):
    Scripted.script = (False, True)
    wasteful = curator_of(Scripted, toy.table, 1)
    JAM(rounds=2).run(wasteful, toy.workload, public=toy.table)

    Scripted.script = (False, False)
    thrifty = curator_of(Scripted, toy.table, 1)
    JAM(rounds=2, last_round="private").run(thrifty, toy.workload, public=toy.table)

    assert float(wasteful.remaining) == pytest.approx(0.4)
    assert float(thrifty.remaining) == pytest.approx(0)


def test_the_first_round_of_the_papers_setting():
    rho = Budget(epsilon=1.0, delta=1e-9).rho()
    select_cost, measure_cost = (rho / 30).split(0.2)

    selection = Exponential.at(select_cost, what="", sensitivity=Fraction(4), candidates=1)
    noise = Gaussian.at(measure_cost, what="", l2_squared=Fraction(2))

    assert float(selection.epsilon) == pytest.approx(0.02825886, abs=1e-8)
    assert noise.stddev == pytest.approx(50.044964, abs=1e-5)


class Fixed:
    """A model whose answers are given."""

    def __init__(self, answers):
        self.answers = answers

    def count_each(self, wanted):
        return enumerate(self.answers[attrs] for attrs in wanted)


def scores_of(counts):
    """The example of spec 10.6: two binary attributes, n = 10, both marginals equal to ``counts``."""
    model = Fixed({("a",): np.array([9.0, 1.0]), ("b",): np.array([1.0, 9.0])})
    proxies = {("a",): np.array([1.0, 9.0]), ("b",): np.array([9.0, 1.0])}
    score = JointError(model, proxies, cell_noise=1.0)
    candidates = [JointCandidate((attr,), is_public) for attr in "ab" for is_public in (False, True)]
    found = {place: one(np.array(counts)) for place, one in score.each(candidates)}
    return [found[place] for place in range(len(candidates))], score, candidates


def law(scores, sensitivity, epsilon=1.0):
    weights = np.exp(epsilon * (np.array(scores) - max(scores)) / (2 * sensitivity))
    return weights / weights.sum()


def test_the_scores_sensitivity_is_attained_at_4():
    before, score, candidates = scores_of([5, 5])
    after, _, _ = scores_of([4, 6])

    assert before == [6, 0, 6, 0]
    assert after == [8, 4, 4, -4]
    changes = np.abs(np.array(after) - np.array(before))
    assert changes.max() == 4 == max(score.sensitivity(REPLACE, c) for c in candidates)


def test_sensitivity_2_would_break_the_promise_and_4_keeps_it():
    before, _, _ = scores_of([5, 5])
    after, _, _ = scores_of([4, 6])

    right = np.log(law(after, 4) / law(before, 4))
    wrong = np.log(law(after, 2) / law(before, 2))

    assert np.ptp(right) == pytest.approx(1.0)
    assert np.abs(right).max() == pytest.approx(0.560418, abs=1e-6)
    assert np.abs(wrong).max() == pytest.approx(1.185164, abs=1e-6)
    assert np.abs(wrong).max() > 1


def test_public_data_equal_to_private_data_beats_every_private_twin(toy):
    closure = list(toy.workload.closure(toy.table.domain))
    proxies = {tau: toy.table.count(tau).reshape(-1).astype(float) for tau in closure}
    score = JointError(GraphicalModel.uniform(toy.table.domain, total=600.0), proxies, cell_noise=0.01)
    candidates = [JointCandidate(tau, is_public) for tau in closure for is_public in (False, True)]

    found = {
        place: one(toy.table.count(candidates[place].attrs).reshape(-1))
        for place, one in score.each(candidates)
    }

    scores = [found[place] for place in range(len(candidates))]

    assert all(public > private for private, public in zip(scores[::2], scores[1::2], strict=True))


def test_useless_public_data_is_left_alone_when_the_budget_is_large(toy):
    zeros = Table.of_codes(toy.table.domain, np.zeros((50, 3), dtype=np.uint8))
    curator = curator_of(Curator, toy.table, 10_000)

    release = JAM(rounds=8).run(curator, toy.workload, public=zeros)

    assert {one.source for one in release.rounds} == {"private"}
    for query in toy.workload:
        assert np.abs(release.count(query.attrs) - toy.table.count(query.attrs)).max() < 5


def test_the_same_noise_gives_the_same_synthetic_records(toy):
    one, two = (
        JAM(rounds=3).run(curator_of(Curator, toy.table, 1), toy.workload, public=toy.table) for _ in range(2)
    )

    assert np.array_equal(one.model.sample(100, seed=1).codes(), two.model.sample(100, seed=1).codes())


def test_one_public_record_is_enough_to_run(toy):
    one = Table.of_codes(toy.table.domain, np.zeros((1, 3), dtype=np.uint8))

    release = JAM(rounds=3).run(curator_of(Curator, toy.table, 1), toy.workload, public=one)

    assert release.total == toy.table.records


def test_what_cannot_run_is_refused_before_it_starts(toy):
    domain = toy.table.domain
    nobody = Table.of_codes(domain, np.zeros((0, 3), dtype=np.uint8))
    with pytest.raises(DataError, match="no records"):
        JAM().check(domain, toy.workload, nobody)
    with pytest.raises(WorkloadError, match="whole marginals"):
        JAM().check(domain, Workload([Range((("b", 0, 1),))]), toy.table)
    wide = Domain.of({"a": 1000, "b": 1000})
    table = Table.of_codes(wide, np.zeros((3, 2), dtype=np.uint16))
    with pytest.raises(TooLargeError, match=r"a × b of the workload needs 7\.63 MB, above max_model_mb = 5"):
        JAM(max_model_mb=5).check(wide, Workload([("a", "b")]), table)
    JAM(max_model_mb=5, oversized="skip").check(wide, Workload([("a", "b")]), table)
    with pytest.raises(TooLargeError, match="cannot hold even the one-way marginal"):
        JAM(max_model_mb=0.001).check(wide, Workload([("a",)]), table)


def test_pure_budgets_are_another_currency(toy):
    curator = curator_of(Curator, toy.table, 1)
    with pytest.raises(Exception, match="accounted in ρ"):
        curator.measure(toy.workload[0], Epsilon(1))
