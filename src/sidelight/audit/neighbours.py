"""Two tables that differ in all the records one person may have, under each unit.

The planted bug is the same for all that is audited: the person has twice as many records as the unit says, so
half the noise that is due (a quarter, where an attack cannot see what half of the budget is spent on).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sidelight.data.domain import Domain
from sidelight.data.schema import Schema
from sidelight.data.table import Table
from sidelight.privacy.budget import Budget, Cost
from sidelight.privacy.unit import Unit

DOMAIN = Domain.of({"a": 2})
SCHEMA = Schema.from_domain({"a": 2})
OTHERS = 30
"""How many other records have each of the two values."""
UNITS = {
    "replace": Unit("replace"),
    "add-or-remove": Unit("add-or-remove"),
    "replace, 3 records": Unit("replace", 3),
    "add-or-remove, 3 records": Unit("add-or-remove", 3),
    "replace, by person": Unit("replace", 2, "who"),
    "add-or-remove, by person": Unit("add-or-remove", 2, "who"),
}
"""The units under which everything is audited that takes them."""
_KEY = "5a" * 32
"""Which records of a person are kept may be known to everybody."""


@dataclass(frozen=True, kw_only=True)
class Asked:
    """Under which unit, at what budget, and whether with the planted bug."""

    unit: Unit
    budget: Budget
    is_planted: bool
    own: int = 0
    """The value of the person's records in the first table."""
    others: tuple[int, ...] = (0, 1) * OTHERS
    """The values of the other records."""
    times: int = 2
    """How many times the records that the unit allows the planted bug gives the person."""
    leaves: bool = False
    """Whether somebody without records takes the person's place, where the unit has names for people."""

    @property
    def records(self) -> int:
        """How many records the person has."""
        return self.unit.records * (self.times if self.is_planted else 1)

    @property
    def tables(self) -> tuple[Table, Table]:
        """Two tables that differ in one person's records: of another value in the second, or not there."""
        is_moved = self.unit.relation == "replace" and not (self.leaves and self.unit.person)
        return self._table(self.own), self._table(1 - self.own if is_moved else None)

    def _table(self, value: int | None) -> Table:
        if self.unit.person is not None:
            return self._people(value)
        own = [] if value is None else [value] * self.records
        return Table.of_codes(DOMAIN, np.array([*own, *self.others])[:, None])

    def _people(self, value: int | None) -> Table:
        """Somebody has ten records of this value, of which some are kept."""
        import pyarrow as pa

        own = [] if value is None else [value] * 10
        who = [*["x"] * len(own), *(f"p{place // 2}" for place in range(len(self.others)))]
        frame = pa.table({"who": who, "a": [*own, *self.others]})
        used = self.unit.with_records(self.records)
        kept = Table.read(frame, SCHEMA, unit=used).keeping(used, _KEY)
        kept.kept = self.unit  # which the planted bug only says
        return kept


@dataclass(frozen=True)
class Case:
    """One attack: two neighbours, what a run shows of them, and what it says that it cost."""

    neighbours: tuple[Any, Any]
    statistic: Callable[[Any, int], float | Sequence[float]]
    claim: Cost
