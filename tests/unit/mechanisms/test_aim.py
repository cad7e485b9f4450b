"""AIM: its budget, its annealing and its candidates (spec 7.1 and 10.5)."""

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from sidelight.curator.curator import Curator
from sidelight.data.domain import Domain
from sidelight.data.table import Table
from sidelight.errors import SettingError, WorkloadError
from sidelight.fit.private_pgm import MirrorDescent
from sidelight.mechanisms.aim import AIM
from sidelight.mechanisms.candidates import marginal_stddev, tractable
from sidelight.models.graphical import GraphicalModel
from sidelight.models.reconstruction import Reconstruction
from sidelight.privacy.budget import Budget, Rho
from sidelight.privacy.event import Exponential, Gaussian
from sidelight.privacy.ledger import MemoryLedger
from sidelight.privacy.promise import Promise
from sidelight.privacy.unit import Unit
from sidelight.queries.workload import Workload
from sidelight.select.score import WeightedError
from sidelight.testing import SeededNoise


def curator_of(table, rho, unit):
    ledger = MemoryLedger(Promise(Budget(epsilon=1e7, delta=1e-9), unit, "toy"))
    return Curator(table, allotment=Rho(Fraction(rho)), unit=unit, ledger=ledger, noise=SeededNoise(4))


@pytest.mark.parametrize(("relation", "sigma"), [("add-or-remove", 94.36569), ("replace", 133.45324)])
def test_the_first_noise_of_the_papers_setting(relation, sigma):
    rho = Budget(epsilon=1.0, delta=1e-9).rho()
    select_cost, measure_cost = (rho / 240).split(0.1)

    assert marginal_stddev(measure_cost, Unit(relation)) == pytest.approx(sigma, abs=1e-5)
    selection = Exponential.at(select_cost, what="", sensitivity=Fraction(1), candidates=1)
    assert float(selection.epsilon) == pytest.approx(0.00706471, abs=1e-8)
    assert 15 * float(measure_cost) / float(rho) == pytest.approx(0.05625)


@pytest.mark.parametrize("relation", ["replace", "add-or-remove"])
def test_all_of_the_budget_is_spent_exactly(toy, relation):
    curator = curator_of(toy.table, "1/50", Unit(relation))

    AIM().run(curator, toy.workload)

    assert curator.remaining.value == 0
    one_way = [e for e in curator.events[:3] if isinstance(e, Gaussian)]
    assert sum(float(e.cost) for e in one_way) == pytest.approx(0.05625 / 50)


@pytest.mark.parametrize(("relation", "factor"), [("replace", 2), ("add-or-remove", 1)])
def test_the_scores_sensitivity_is_the_largest_weight_times_the_units(toy, relation, factor):
    weights = toy.workload.closure(toy.table.domain)
    curator = curator_of(toy.table, "1/50", Unit(relation))

    AIM().run(curator, toy.workload)

    selection = next(e for e in curator.events if isinstance(e, Exponential))
    assert selection.sensitivity == factor * Fraction(max(weights.values()))


def test_the_noise_is_halved_when_a_round_teaches_nothing():
    domain = Domain.of({"a": 2, "b": 2})
    table = Table.of_codes(domain, np.repeat([[0, 0], [0, 1], [1, 0], [1, 1]], 250, axis=0))
    curator = curator_of(table, "1/10", Unit("replace"))

    AIM().run(curator, Workload.marginals(domain, degree=2))

    costs = [float(e.cost) for e in curator.events if isinstance(e, Gaussian)][2:]
    ratios = {round(later / earlier, 6) for earlier, later in pairwise(costs[:-1])}
    assert ratios <= {1.0, 4.0}
    assert 4.0 in ratios


def test_the_score_takes_off_the_noise_that_measuring_would_add():
    class Zero:
        def count_each(self, wanted):
            return enumerate(np.zeros(3) for _ in wanted)

    score = WeightedError(Zero(), weights={("b",): 2.0}, cell_penalty=1.5)
    from sidelight.queries.query import Marginal

    found = [one(np.array([4, 5, 6])) for _, one in score.each([Marginal(("b",))])]

    assert found == [2.0 * (15 - 4.5)]


def test_candidates_inside_the_model_are_always_allowed_and_others_only_within_the_limit():
    domain = Domain.of({"a": 64, "b": 64, "c": 64})
    wanted = [("a",), ("b",), ("c",), ("a", "b"), ("b", "c"), ("a", "b", "c")]

    tight = tractable(domain, [("a", "b"), ("c",)], wanted, limit_mb=0.0)
    loose = tractable(domain, [("a", "b"), ("c",)], wanted, limit_mb=0.07)

    assert tight == [("a",), ("b",), ("c",), ("a", "b")]
    assert loose == [("a",), ("b",), ("c",), ("a", "b"), ("b", "c")]


def test_too_few_rounds_for_the_one_way_marginals_are_refused():
    domain = Domain.of({f"x{i}": 2 for i in range(4)})
    with pytest.raises(WorkloadError, match="total alone"):
        AIM().check(domain, Workload([()]), None)
    with pytest.raises(SettingError, match="at least 1"):
        AIM(rounds_per_attribute=0)


def test_a_plan_for_a_wide_table_says_which_estimator_and_why():
    domain = Domain.of({f"x{i}": 2 for i in range(21)})
    few, many = (Workload([(attr,) for attr in domain.attrs[:number]]) for number in (19, 21))

    def notes(workload, **settings):
        told = AIM(**settings).outlook(domain, workload, allotment=Rho(1), unit=Unit("replace")).notes
        return " ".join(told)

    assert "Residuals stand in for the tree" in notes(many)
    assert "336 rounds, each with a tree of 21 attributes" in notes(many)
    assert "estimator='residual' fits none" in notes(many, estimator="tree")
    assert "estimator='residual' fits none" in notes(many, estimator=MirrorDescent())
    for settled in (notes(few), notes(many, estimator="residual"), notes(many, rounds_per_attribute=8)):
        assert "tree" not in settled


@pytest.mark.parametrize(
    ("attributes", "estimator", "kind", "is_told"),
    [
        (3, "auto", GraphicalModel, False),
        (3, "residual", Reconstruction, False),
        (21, "auto", Reconstruction, True),
        (21, "tree", GraphicalModel, False),
        (21, MirrorDescent(max_steps=60), GraphicalModel, False),
    ],
)
def test_many_rounds_on_many_attributes_fit_no_tree_unless_it_is_asked_for(
    attributes, estimator, kind, is_told
):
    domain = Domain.of({f"x{i}": 2 for i in range(attributes)})
    table = Table.of_codes(domain, np.zeros((500, attributes), dtype=int))

    workload = Workload([*((attr,) for attr in domain.attrs), ("x0", "x1")])
    outcome = AIM(estimator=estimator).run(curator_of(table, "1/50", Unit("replace")), workload)

    assert isinstance(outcome.model, kind)
    assert any("Residuals stand in" in note for note in outcome.notes) == is_told
    taken = {GraphicalModel: "tree", Reconstruction: "residual"}[kind]
    assert outcome.decided == ({"estimator": taken} if estimator == "auto" else {})


def test_the_tree_by_name_is_the_tree_that_is_taken_for_few_attributes(toy):
    auto, named = (
        AIM(estimator=estimator).run(curator_of(toy.table, "1/50", Unit("replace")), toy.workload)
        for estimator in ("auto", "tree")
    )

    assert auto.events == named.events
    for one, other in zip(auto.measurements, named.measurements, strict=True):
        assert np.array_equal(one.answer, other.answer)


def test_estimators_that_do_not_exist_are_refused():
    with pytest.raises(SettingError, match="estimator must be one of 'auto', 'tree', 'residual'"):
        AIM(estimator="forest")
