"""Who alone has a label is hidden by the threshold; a low one, and labels without bound, are caught."""

from fractions import Fraction

import pyarrow as pa
import pytest

from sidelight.audit import attack
from sidelight.privacy.budget import Budget
from sidelight.privacy.event import Threshold
from sidelight.privacy.ledger import MemoryLedger
from sidelight.privacy.promise import Promise
from sidelight.privacy.unit import Unit
from sidelight.statistics.discovery_curator import DELTA_SHARE, DiscoveryCurator, label_event
from sidelight.statistics.label_counts import count_labels
from sidelight.testing import SeededNoise

pytestmark = [pytest.mark.statistical, pytest.mark.slow]

BUDGET = Budget(epsilon=1.5, delta=0.05)
UNIT = Unit("add-or-remove", 2, "who")
KEY = "5a" * 32
OTHERS = [(f"p{i}", f"d{i % 60}") for i in range(1200)]
MINE = [("x", f"d{i}") for i in range(60)] + [("x", f"mine{i}") for i in range(40)]


def counted(lines: list[tuple[str, str]], *, records: int) -> dict[str, int]:
    who, labels = zip(*lines, strict=True)
    return count_labels(pa.array(labels), pa.array(who), records=records, key=KEY)


def event() -> Threshold:
    surcharge = BUDGET.delta_price(DELTA_SHARE)
    return label_event(
        BUDGET.rho(), UNIT, column="drug", delta=DELTA_SHARE * Fraction(BUDGET.delta), surcharge=surcharge
    )


def low_threshold() -> Threshold:
    """The planted bug: what one person has reaches the threshold once in a while."""
    paid = event()
    object.__setattr__(paid, "threshold", 2)
    return paid


@pytest.mark.parametrize(
    ("records", "paid", "is_private"),
    [(2, event, True), (99, event, False), (2, low_threshold, False)],
    ids=["honest", "labels without bound", "low threshold"],
)
def test_an_attack_finds_what_one_person_can_change(records, paid, is_private):
    sides = counted(OTHERS, records=records), counted([*OTHERS, *MINE], records=records)

    def one_run(numbers: dict[str, int], seed: int) -> float:
        ledger = MemoryLedger(Promise(BUDGET, UNIT, "audit"))
        settings = {"unit": UNIT, "ledger": ledger, "noise": SeededNoise(seed), "allotment": BUDGET.rho()}
        curator = DiscoveryCurator(**settings)
        found = curator.labels(lambda _: numbers, paid(), at_least=1)
        # Labels of mine alone tell; if there are none, those that I share with others do.
        mine = sum(name.startswith("mine") for name in found.numbers)
        return 1000.0 * mine + sum(found.numbers.values()) - found.least * len(found.numbers)

    found = attack(one_run, sides, delta=BUDGET.delta, runs=1500)

    assert found.refutes(BUDGET) != is_private
