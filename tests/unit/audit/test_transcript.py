"""A run that is played again on the neighbour, with the same answers, tells how likely they were there."""

import math
from fractions import Fraction

import numpy as np
import pytest

from sidelight.audit.neighbours import UNITS, Asked
from sidelight.audit.transcript import IMPOSSIBLE, _chosen, likelihood_ratios
from sidelight.curator.curator import Scored
from sidelight.data.domain import Domain
from sidelight.data.table import Table
from sidelight.mechanisms.hdmm.hdmm import HDMM
from sidelight.mechanisms.mwem import MWEM
from sidelight.privacy.budget import Budget, Rho
from sidelight.privacy.event import Exponential
from sidelight.privacy.unit import Unit
from sidelight.queries.query import Marginal
from sidelight.queries.workload import Workload

BUDGET = Budget(epsilon=8.0, delta=1e-6)
ONE = MWEM(rounds=1, select_share=0.02, passes=1)


def ratios(mechanism, tables, domain, *, unit, runs=60):
    workload, asked = Workload.marginals(domain, degree=1), {"budget": BUDGET, "unit": unit, "public": None}
    found = [
        likelihood_ratios(mechanism, table, tables, workload, seed=2 * seed + side, **asked)
        for side, table in enumerate(tables)
        for seed in range(runs)
    ]
    return np.array(found).reshape(2, runs, -1)


@pytest.mark.parametrize("unit", ["replace", "add-or-remove, 3 records", "replace, by person"])
def test_the_log_likelihood_ratio_of_gaussian_answers_has_mean_rho_and_variance_two_rho(unit):
    asked = Asked(unit=UNITS[unit], budget=BUDGET, is_planted=False)
    tables = asked.tables
    found = ratios(HDMM(), tables, tables[0].domain, unit=asked.unit, runs=60)[:, :, 0]
    rho = float(BUDGET.rho())

    spread = math.sqrt(2 * rho / 60)
    if unit != "replace, by person":  # under which no single change attains the whole loss
        assert found[1].mean() == pytest.approx(rho, abs=5 * spread)
        assert found[0].mean() == pytest.approx(-rho, abs=5 * spread)
    assert abs(found).mean() <= rho + 5 * spread + math.sqrt(2 * rho)


def test_choices_count_too():
    """Between a and b: one record makes the error of a larger and that of b smaller."""
    domain = Domain.of({"a": 2, "b": 2})
    codes = np.array([[1, 0]] * 12 + [[0, 1]] * 10 + [[0, 0]] * 40)
    other = codes.copy()
    other[0] = [0, 1]
    tables = Table.of_codes(domain, codes), Table.of_codes(domain, other)

    chooser = MWEM(rounds=1, select_share=0.98, passes=1)
    found = ratios(chooser, tables, domain, unit=Unit("replace"))

    assert (
        np.unique(np.round(found[:, :, 0] - found[:, :, 1], 9)).size >= 2
    )  # all draws, less what was measured
    assert found[1, :, 0].mean() > found[0, :, 0].mean()


class Leaks(MWEM):
    """The planted bug: what is measured depends on an exact count."""

    def run(self, curator, workload, *, public=None):
        exact = curator._table.count(("a",))[0]
        cost = curator.remaining / (2 if exact % 2 else 3)
        curator.measure(Marginal(("a",)), cost)
        return super().run(curator, workload, public=public)


def test_a_run_that_goes_another_way_on_the_neighbour_is_told_apart_at_once():
    tables = Asked(unit=Unit("replace"), budget=BUDGET, is_planted=False).tables

    found = ratios(Leaks(rounds=1), tables, tables[0].domain, unit=Unit("replace"), runs=3)

    assert set(found[0, :, 0]) == {-IMPOSSIBLE}
    assert set(found[1, :, 0]) == {IMPOSSIBLE}


def test_the_chance_of_a_choice_is_that_of_the_exponential_mechanism():
    """Two candidates, the second of two cells: the chance of its last cell, which has a score of its own."""
    cost = Rho(Fraction(1, 8))
    event = Exponential(what="", cost=cost, epsilon=Fraction(1), sensitivity=Fraction(1, 2), candidates=2)
    scored = Scored(np.array([0.0, 1.0, 2.0]), np.array([1, 3]))

    found = _chosen(event, scored, np.array([1, 1]))

    assert found == pytest.approx(2 - math.log(1 + math.e + math.e**2))
    assert _chosen(event, np.array([0.0, 1.0, 2.0]), np.array([2])) == pytest.approx(found)


def test_choices_among_cells_are_heard_as_well():
    tables = Asked(unit=Unit("replace"), budget=BUDGET, is_planted=False).tables
    domain = tables[0].domain

    found = ratios(MWEM(rounds=2, candidates="queries"), tables, domain, unit=Unit("replace"), runs=3)

    assert np.isfinite(found).all()
