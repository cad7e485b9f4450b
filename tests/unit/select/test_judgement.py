"""How well each of several mixtures does: their errors, how far one person moves them, and the cut."""

from fractions import Fraction

import numpy as np
import pytest

from sidelight.curator.curator import Curator
from sidelight.data.domain import Domain
from sidelight.data.table import Table
from sidelight.models.graphical import GraphicalModel
from sidelight.models.support import Support
from sidelight.privacy.budget import Budget, Rho
from sidelight.privacy.ledger import MemoryLedger
from sidelight.privacy.promise import Promise
from sidelight.privacy.unit import Unit
from sidelight.queries.query import Marginal
from sidelight.select.judgement import LeastError
from sidelight.testing import SeededNoise

DOMAIN = Domain.of({"a": 2, "b": 3, "c": 2})
WEIGHTS = {("a", "b"): 3.0, ("c", "a"): 1.0, ("b",): 4.0}
SHARES = (0.0, 0.3, 1.0)
A = Marginal(("a",))


MIXTURES = [(1 - share, share) for share in SHARES]


class Answering:
    """A model that knows some marginals, and tells them last one first."""

    def __init__(self, counts):
        self.counts = counts

    def count_each(self, wanted):
        return [(place, np.array(self.counts[wanted[place]])) for place in reversed(range(len(wanted)))]


class HalfTheSensitivity(LeastError):
    """The planted bug."""

    def sensitivity(self, unit, queries):
        return super().sensitivity(unit, queries) / 2


def scores(judgement, queries, counts):
    """As the curator adds them up."""
    found = np.zeros(judgement.options)
    for place, added in judgement.each(queries):
        found += added(np.asarray(counts(queries[place].attrs)).reshape(-1))
    return found


def two_points(kind=LeastError):
    """One mixture of two: all evenly, or all in the first cell."""
    models = (Answering({("a",): [10.0, 10.0]}), Answering({("a",): [20.0, 0.0]}))
    return kind(models, ((1.0, 0.0), (0.0, 1.0)), weights={("a",): 7.0}, total=20.0)


def test_scores_are_the_negative_errors_of_the_mixtures_weighted_over_the_workload():
    rng = np.random.default_rng(3)
    private = Table.of_codes(DOMAIN, np.stack([rng.integers(0, k, 90) for k in DOMAIN.shape], axis=1))
    tree = GraphicalModel(DOMAIN, 90.0, {("a", "b"): rng.normal(size=(2, 3)), ("c",): rng.normal(size=2)})
    records = Support.random(DOMAIN, records=5, seed=1, total=90.0)
    judgement = LeastError((tree, records), MIXTURES, weights=WEIGHTS, total=90.0)
    queries = [Marginal(attrs) for attrs in WEIGHTS]

    found = scores(judgement, queries, private.count)

    for share, score in zip(SHARES, found, strict=True):
        errors = {
            attrs: np.abs(
                private.count(attrs) - (1 - share) * tree.count(attrs) - share * records.count(attrs)
            ).sum()
            for attrs in WEIGHTS
        }
        assert score == pytest.approx(-sum(WEIGHTS[attrs] * errors[attrs] for attrs in WEIGHTS) / 8)


def test_every_query_has_its_turn_once_and_is_judged_by_its_own_answer():
    models = [Answering({("a",): [k, 0.0], ("b",): [0.0, k, 0.0]}) for k in (4.0, 8.0)]
    judgement = LeastError(models, ((1.0, 0.0), (0.0, 1.0)), weights={("a",): 1.0, ("b",): 1.0}, total=8.0)
    queries = [Marginal(("a",)), Marginal(("b",)), Marginal(("a",))]
    exact = {("a",): np.array([4, 0]), ("b",): np.array([0, 8, 0])}

    found = {place: added(exact[queries[place].attrs]) for place, added in judgement.each(queries)}

    assert sorted(found) == [0, 1, 2]
    assert [found[place].tolist() for place in range(3)] == [[0.0, -2.0], [-2.0, 0.0], [0.0, -2.0]]


@pytest.mark.parametrize(
    ("unit", "mean"), [(Unit("replace"), 2), (Unit("add-or-remove"), 1), (Unit("replace", records=3), 6)]
)
def test_the_sensitivity_is_the_mean_of_the_marginals_own_however_many_there_are(unit, mean):
    one = LeastError((Answering({}), Answering({})), MIXTURES, weights={("a",): 5.0}, total=1e6)
    many = LeastError((Answering({}), Answering({})), MIXTURES, weights=WEIGHTS, total=1e6)

    for found in (one.sensitivity(unit, [A]), many.sensitivity(unit, [Marginal(attrs) for attrs in WEIGHTS])):
        assert mean - Fraction(1, 10**9) < found < mean + Fraction(1, 10**5)


def test_the_sensitivity_is_of_the_marginals_that_are_asked_for():
    judgement = LeastError((Answering({}), Answering({})), MIXTURES, weights=WEIGHTS, total=1.0)

    found = judgement.sensitivity(Unit("replace"), [Marginal(("c", "a"))])

    assert float(found) == pytest.approx(2 / 8)


@pytest.mark.parametrize(
    ("unit", "before", "after"),
    [(Unit("replace"), [13, 7], [14, 6]), (Unit("add-or-remove"), [13, 7], [13, 6])],
    ids=lambda case: getattr(case, "relation", None),
)
def test_the_bound_is_attained_by_a_rising_and_a_falling_score_and_half_of_it_is_not_enough(
    unit, before, after
):
    judgement = two_points()

    moved = scores(judgement, [A], lambda _: after) - scores(judgement, [A], lambda _: before)

    bound = judgement.sensitivity(unit, [A])
    assert moved.tolist() == [-float(unit.l1), float(unit.l1)]
    assert unit.l1 <= bound < unit.l1 + Fraction(1, 10**9)
    assert np.abs(moved).max() > two_points(HalfTheSensitivity).sensitivity(unit, [A])


def test_errors_are_cut_at_four_times_the_total():
    judgement = LeastError(
        (Answering({("a",): [1.0, 0.0]}), Answering({("a",): [0.0, 1.0]})),
        ((1.0, 0.0),),
        weights={("a",): 1.0},
        total=1.0,
    )

    assert scores(judgement, [A], lambda _: [4, 1]) == pytest.approx([-4.0])
    assert scores(judgement, [A], lambda _: [10**9, 5]) == pytest.approx([-4.0])


def test_what_is_held_likely_beforehand_decides_where_the_budget_tells_nothing_and_not_where_it_does():
    domain = Domain.of({"a": 2})
    table = Table.of_codes(domain, np.zeros((100, 1), dtype=int))
    right, wrong = (Support(domain, np.array([[value]]), np.array([100.0]), 100.0) for value in (0, 1))

    def second_is_chosen(rho):
        # The second is held to be e³⁰ times as likely, and is wrong.
        judgement = LeastError(
            (right, wrong), ((1.0, 0.0), (0.0, 1.0)), weights={("a",): 1.0}, total=100.0, log_odds=[0.0, 30.0]
        )
        ledger = MemoryLedger(Promise(Budget(epsilon=1e7, delta=1e-9), Unit("replace"), "toy"))
        curator = Curator(
            table, allotment=Rho(rho), unit=Unit("replace"), ledger=ledger, noise=SeededNoise(0)
        )
        return curator.choose([Marginal(("a",))], judgement, curator.remaining) == 1

    assert second_is_chosen(Fraction(1, 10**6))
    assert not second_is_chosen(Fraction(10))


def test_what_an_option_begins_with_is_bounded_so_that_adding_it_rounds_by_next_to_nothing():
    judgement = LeastError(
        (Answering({}), Answering({})),
        ((1.0, 0.0), (0.0, 1.0)),
        weights={("a",): 1.0},
        total=100.0,
        log_odds=[0.0, 3.0],
    )

    assert judgement.start(2.0).tolist() == [0.0, 6.0]
    assert judgement.start(1e12).tolist() == [0.0, 102_400.0]
