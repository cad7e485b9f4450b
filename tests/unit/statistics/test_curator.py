"""Who may see a private value, and in which order things happen."""

import ast
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import sidelight.statistics
from sidelight.errors import SettingError
from sidelight.privacy.budget import Budget, Epsilon
from sidelight.privacy.ledger import MemoryLedger
from sidelight.privacy.promise import Promise
from sidelight.privacy.unit import Unit
from sidelight.statistics.curator import GroupCurator
from sidelight.statistics.grid import Grid
from sidelight.statistics.group import Group
from sidelight.testing import SeededNoise

FOLDER = Path(sidelight.statistics.__file__).parent


def a_curator(unit: Unit, noise=None) -> tuple[GroupCurator, MemoryLedger]:
    ledger = MemoryLedger(Promise(Budget(epsilon=1.0, delta=0.0), unit, "people"))
    groups = [Group(np.arange(10.0), epsilon=1.0), Group(np.arange(5.0), epsilon=0.5)]
    curator = GroupCurator(
        groups, Grid(0.0, 10.0), allotment=Epsilon(1), unit=unit, ledger=ledger, noise=noise or SeededNoise(7)
    )
    return curator, ledger


def reads_values(path: Path) -> bool:
    """Whether a module looks at ``_values`` of anything but itself."""
    return any(
        isinstance(node, ast.Attribute)
        and node.attr == "_values"
        and not (isinstance(node.value, ast.Name) and node.value.id == "self")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    )


def test_the_curator_alone_reads_private_values():
    assert [path.name for path in sorted(FOLDER.glob("*.py")) if reads_values(path)] == ["curator.py"]


def test_sizes_are_free_under_replacement_and_refused_otherwise():
    open_sizes, _ = a_curator(Unit("replace"))
    closed_sizes, _ = a_curator(Unit("add-or-remove"))

    assert open_sizes.public_sizes().tolist() == [10, 5]
    with pytest.raises(SettingError, match="measured, at a cost"):
        closed_sizes.public_sizes()


def test_payment_is_written_before_noise_is_drawn():
    class Broken:
        is_private = False
        name = "broken"

        def words(self, count):
            raise RuntimeError("the machine died")

    curator, ledger = a_curator(Unit("replace"), Broken())

    with pytest.raises(RuntimeError):
        curator.sums([(0,), (1,)], [Epsilon(Fraction(1, 2)), Epsilon(Fraction(1, 4))])

    assert [event.cost for event in ledger.events()] == [Epsilon(Fraction(1, 2))]


def test_the_same_seed_gives_the_same_answer_and_small_grids_fit_small_costs():
    one, _ = a_curator(Unit("replace"))
    two, _ = a_curator(Unit("replace"))
    costs = [Epsilon(Fraction(1, 2)), Epsilon(Fraction(1, 10**6))]

    assert one.sums([(0,), (1,)], costs).answer.tolist() == two.sums([(0,), (1,)], costs).answer.tolist()
    assert Grid(0.0, 10.0).finest(Epsilon(Fraction(1, 10**6)), Unit()).bits < 30
