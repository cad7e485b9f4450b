"""Who has a thousand records is hidden as well as who has one; two ways to bound them wrongly are caught."""

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

from sidelight.audit import attack
from sidelight.curator.curator import Curator
from sidelight.data.schema import Schema
from sidelight.data.table import Table
from sidelight.privacy.budget import Budget
from sidelight.privacy.ledger import MemoryLedger
from sidelight.privacy.promise import Promise
from sidelight.privacy.unit import Unit
from sidelight.queries.query import Marginal
from sidelight.statistics.curator import CellCurator, GroupCurator
from sidelight.statistics.grid import Grid
from sidelight.statistics.group import Group
from sidelight.testing import SeededNoise

pytestmark = [pytest.mark.statistical, pytest.mark.slow]

BUDGET = Budget(epsilon=1.5, delta=0.05)
SCHEMA = Schema.from_domain({"ward": 4})
KEY = "5a" * 32
"""Privacy does not rest on the key: the attacker has it."""


def lines(relation: str) -> tuple[list, list]:
    """Two tables with sixty people of many records each, and one person more, or another one."""
    others = [(f"p{i}", ward) for i in range(60) for ward in (0, 0, 1, 1, 1, 2, 2, 3, 3)]
    one = [("x", 0)] * 1000
    other = [("x", 3)] * 1000 if relation == "replace" else []
    # To a table of people the order of lines is nothing.
    return [*others, *one], [*other, *others[::-1]]


def read(found: list, unit: Unit) -> Table:
    who, ward = zip(*found, strict=True)
    return Table.read(pa.table({"who": who, "ward": ward}), SCHEMA, unit=unit)


def honest(found: list, unit: Unit, key: str) -> Table:
    return read(found, unit).keeping(unit, key)


def unbounded(found: list, unit: Unit, key: str) -> Table:
    """The planted bug: all records are there, whatever the unit says."""
    table = read(found, unit)
    table.kept = unit
    return table


def by_order(found: list, unit: Unit, key: str) -> Table:
    """The planted bug: the first k lines of each person in the file."""
    seen: dict[str, int] = {}
    first = []
    for who, ward in found:
        seen[who] = seen.get(who, 0) + 1
        first += [(who, ward)] * (seen[who] <= unit.records)
    return unbounded(first, unit, key)


@pytest.mark.parametrize("relation", ["replace", "add-or-remove"])
@pytest.mark.parametrize("keep", [honest, unbounded, by_order])
def test_an_attack_finds_what_one_person_can_change(relation, keep):
    unit = Unit(relation, 3, "who")
    sides = tuple(keep(found, unit, KEY) for found in lines(relation))
    direction = sides[1].count(("ward",)) - sides[0].count(("ward",))

    def one_run(table: Table, seed: int) -> float:
        ledger = MemoryLedger(Promise(BUDGET, unit, "audit"))
        settings = {"unit": unit, "ledger": ledger, "noise": SeededNoise(seed)}
        curator = Curator(table, allotment=BUDGET.rho(), **settings)
        return float(curator.measure(Marginal(("ward",)), BUDGET.rho()).answer @ direction)

    found = attack(one_run, sides, delta=BUDGET.delta, runs=2000 if keep is honest else 400)

    assert found.contradicts(BUDGET.rho()) == (keep is not honest)
    # The attack has teeth: it sees a good part of what a correct run gives away.
    assert found.epsilon > 0.2 * BUDGET.epsilon


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
