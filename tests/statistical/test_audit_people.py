"""Who has a thousand records is hidden as well as who has one; four ways to bound them wrongly are caught."""

from fractions import Fraction

import numpy as np
import pytest

from sidelight.audit import attack
from sidelight.audit.people import AS_IT_IS, ENGINES, WAYS, audited_bounding, by, kept_counts
from sidelight.privacy.budget import Budget
from sidelight.privacy.ledger import MemoryLedger
from sidelight.privacy.promise import Promise
from sidelight.privacy.unit import Unit
from sidelight.statistics.curator import CellCurator, GroupCurator
from sidelight.statistics.grid import Grid
from sidelight.statistics.group import Group
from sidelight.testing import SeededNoise

pytestmark = [pytest.mark.statistical, pytest.mark.slow]


@pytest.mark.parametrize("relation", ["replace", "add-or-remove"])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("engine", ENGINES)
def test_an_attack_finds_what_one_person_can_change(engine, way, relation):
    kept = kept_counts(by(engine), relation, way)
    found = audited_bounding(engine, kept, relation, way, runs=2000 if way == "one record more" else 600)

    assert found.is_refuted == (way != AS_IT_IS)
    # The attack has teeth: it sees a good part of what a correct run gives away.
    assert found.share > 0.2


def values_of(relation: str) -> tuple[Group, Group]:
    """Sixty people; and one with a thousand values at an end of the bounds, or at the other, or not there."""
    people = [f"p{i}" for i in range(60)] * 3
    values = [0.2, 0.5, 0.8] * 60
    less = 1000 if relation == "replace" else 0
    return (
        Group([0.0] * less + values, epsilon=1.0, people=["x"] * less + people),
        Group([1.0] * 1000 + values, epsilon=1.0, people=["x"] * 1000 + people),
    )


def everything(people, words, unit, key):
    """The planted bug: all values of everybody."""
    return np.ones(len(words[0]), dtype=np.bool_)


@pytest.mark.parametrize("relation", ["replace", "add-or-remove"])
@pytest.mark.parametrize("what", ["sum", "quantile", "cells"])
@pytest.mark.parametrize("is_bounded", [True, False])
def test_an_attack_on_means_and_quantiles_finds_what_one_person_can_change(
    relation, what, is_bounded, monkeypatch
):
    if not is_bounded:
        monkeypatch.setattr("sidelight.statistics.curator.kept_values", everything)
    budget, unit, grid = Budget(epsilon=1.0, delta=0.0), Unit(relation, 3, "who"), Grid(0.0, 1.0, 10)

    def one_run(group: Group, seed: int) -> float:
        ledger = MemoryLedger(Promise(budget, unit, "audit"))
        door = {"unit": unit, "ledger": ledger, "noise": SeededNoise(seed), "allotment": budget.pure()}
        if what == "cells":
            codes = (group._values > 0.5).astype(np.int64)
            cells = CellCurator(group._values, codes, 2, grid, group._people, **door)
            return float(cells.sums(budget.pure()).answer.sum())
        curator = GroupCurator([group], grid, **door)
        if what == "sum":
            return float(curator.sums([(0,)], [budget.pure()]).answer[0])
        return float(curator.quantiles(Fraction(1, 2), [0], [budget.pure()]).answer[0])

    found = attack(one_run, values_of(relation), delta=0.0, runs=400 if is_bounded else 100)

    assert found.refutes(budget) == (not is_bounded)
    if what == "sum":  # the others tell less of a person than they may
        assert found.epsilon > 0.2 * budget.epsilon
