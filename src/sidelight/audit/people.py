"""How many records of one person are counted, under attack: the step before every mechanism.

A mechanism sees a table of which at most k records of each person were kept. Whether that was done right
shows best by a mechanism that adds nothing of its own: one marginal with Laplace noise. Somebody has a
thousand records, in the second table others or none; its lines are in another order, too. The counting engine
keeps records as it does for a release, once; the attack then draws noise many times.
"""

import hashlib
import time
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from sidelight.audit.attack import Audit, attack
from sidelight.audit.row import Row
from sidelight.curator.curator import Curator
from sidelight.data.schema import Schema
from sidelight.data.table import Table
from sidelight.privacy.budget import Budget
from sidelight.privacy.ledger import MemoryLedger
from sidelight.privacy.promise import Promise
from sidelight.privacy.unit import Relation, Unit
from sidelight.queries.query import Marginal
from sidelight.testing import SeededNoise

SCHEMA = Schema.from_domain({"ward": 4})
BUDGET = Budget(epsilon=1.0, delta=0.0)
RECORDS, OFTEN, PEOPLE = 2, 1000, 60
"""How many records of a person are kept; how many somebody has; and how many others there are, with nine."""
ENGINES = ("numpy", "duckdb")
"""The engines that need no server."""
AS_IT_IS = "as it is"
_KEY = "5a" * 32
"""Privacy does not rest on the key: the attacker has it."""

Line = tuple[str, int]
Read = Callable[[Any, Unit], Table]
"""A pyarrow table of people and wards, read by an engine together with its people."""


def by(engine: str) -> Read:
    """Reading by an engine that needs no server."""
    return lambda frame, unit: Table.read(frame, SCHEMA, engine=engine, unit=unit)


def unit_of(relation: Relation) -> Unit:
    """The unit under which people are bounded here."""
    return Unit(relation, RECORDS, "who")


def lines_of(relation: Relation) -> tuple[list[Line], list[Line]]:
    """Two tables that differ in all records of one person."""
    others = [(f"p{person}", ward) for person in range(PEOPLE) for ward in (0, 0, 1, 1, 1, 2, 2, 3, 3)]
    changed = [("x", 3)] * OFTEN if relation == "replace" else []
    return [*others, *[("x", 0)] * OFTEN], [*changed, *others[::-1]]


def _as_it_is(read: Read, lines: Sequence[Line], unit: Unit) -> Table:
    return _kept(read, lines, unit)


def _one_more(read: Read, lines: Sequence[Line], unit: Unit) -> Table:
    return _kept(read, lines, unit.with_records(unit.records + 1))


def _two_names(read: Read, lines: Sequence[Line], unit: Unit) -> Table:
    seen = [
        (f"{who}{' ' * (place % 2)}" if who == "x" else who, ward) for place, (who, ward) in enumerate(lines)
    ]
    return _kept(read, seen, unit)


def _by_order(read: Read, lines: Sequence[Line], unit: Unit) -> Table:
    first: dict[str, list[Line]] = {}
    for line in lines:
        first.setdefault(line[0], []).append(line)
    return _kept(read, [line for own in first.values() for line in own[: unit.records]], unit)


def _key_of_the_table(read: Read, lines: Sequence[Line], unit: Unit) -> Table:
    return _kept(read, lines, unit, key=hashlib.sha256(repr(sorted(lines)).encode()).hexdigest())


WAYS: dict[str, Callable[[Read, Sequence[Line], Unit], Table]] = {
    AS_IT_IS: _as_it_is,
    "one record more": _one_more,
    "one person, two names": _two_names,
    "the first in the file": _by_order,
    "by a key of the table": _key_of_the_table,
}
"""How records are kept: all but the first are planted bugs. The last two keep k of each person, but of others
too it depends on one person which."""


Counts = tuple[int, ...]


def kept_counts(read: Read, relation: Relation, way: str = AS_IT_IS) -> tuple[Counts, Counts]:
    """How many records of each ward an engine keeps of the two tables; the same in every run."""
    kept = [WAYS[way](read, lines, unit_of(relation)).count(("ward",)) for lines in lines_of(relation)]
    first, second = (tuple(int(number) for number in counts) for counts in kept)
    return first, second


def audited_bounding(
    engine: str,
    kept: tuple[Counts, Counts],
    relation: Relation,
    way: str = AS_IT_IS,
    *,
    runs: int = 2000,
    confidence: float = 0.999,
) -> Row:
    """Attack the bounding of an engine by what it kept."""
    began = time.process_time()
    audit = _attacked(*kept, unit_of(relation), runs, confidence)
    return Row(
        subject=engine, unit=f"{relation}, {way}", is_planted=way != AS_IT_IS, epsilon=BUDGET.epsilon,
        delta=0.0, found=audit.epsilon, confidence=audit.confidence, runs=audit.runs,
        chosen_on=audit.chosen_on, seconds=round(time.process_time() - began, 1),
    )  # fmt: skip


def _kept(read: Read, lines: Sequence[Line], unit: Unit, *, key: str = _KEY) -> Table:
    import pyarrow as pa

    who, ward = zip(*lines, strict=True)
    return read(pa.table({"who": who, "ward": ward}), unit).keeping(unit, key)


@cache
def _attacked(first: Counts, second: Counts, unit: Unit, runs: int, confidence: float) -> Audit:
    """Laplace noise on what was kept, by its likelihood ratio; the same for engines that keep the same."""

    def one_run(counts: Counts, seed: int) -> float:
        table = Table.of_codes(SCHEMA.domain, np.repeat(np.arange(len(counts)), counts)[:, None])
        table.kept = unit
        curator = Curator(
            table, allotment=BUDGET.pure(), unit=unit, noise=SeededNoise(seed),
            ledger=MemoryLedger(Promise(BUDGET, unit, "audit")),
        )  # fmt: skip
        noisy = curator.measure(Marginal(("ward",)), BUDGET.pure()).answer
        return float((np.abs(noisy - np.array(first)) - np.abs(noisy - np.array(second))).sum())

    return attack(one_run, (first, second), delta=0.0, runs=runs, confidence=confidence)
