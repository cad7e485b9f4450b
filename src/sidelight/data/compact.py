"""Many marginals of one table, kept in as few bytes as its records need.

Exact counts of a whole workload are held for a run's length. A count never exceeds the number of records: 16
bits are enough for a table of 65,535, a quarter of what counting itself works with. And most cells of most
marginals are empty: where it takes less, only the others are kept, each with its place. Together no more than
a few bytes a record and marginal, however large the domain.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from sidelight.data.domain import Attrs
from sidelight.data.engines.base import Counts, smallest_dtype
from sidelight.data.table import Table

_CELLS_AT_ONCE, _CELLS_PER_RECORD = 1 << 17, 2
"""Cells that are counted in one pass: a megabyte of wide counts, or about what records take themselves."""
_CELLS_UNSEEN = 1 << 18
"""The same where nobody may see how many records there are."""


@dataclass(frozen=True, eq=False)
class Compact:
    """The counts of one marginal.

    >>> counts = Compact.of(np.array([0, 0, 7, 0, 0, 0]))
    >>> counts.counts, counts.places, counts.wide()
    (array([7], dtype=uint8), array([2], dtype=uint8), array([0, 0, 7, 0, 0, 0]))
    """

    shape: tuple[int, ...]
    counts: npt.NDArray[np.unsignedinteger] = field(repr=False)
    places: npt.NDArray[np.unsignedinteger] | None = field(repr=False)
    """Which cells these are counts of; None where they are all cells."""

    @classmethod
    def of(cls, counts: Counts) -> "Compact":
        """Counts, kept in the way that takes less."""
        flat = counts.reshape(-1)
        places = np.flatnonzero(flat).astype(smallest_dtype(flat.size))
        kind = smallest_dtype(int(flat.max(initial=0)) + 1)
        if places.size * (places.itemsize + kind.itemsize) < flat.size * kind.itemsize:
            return cls(counts.shape, flat[places].astype(kind), places)
        return cls(counts.shape, flat.astype(kind), None)

    def wide(self) -> Counts:
        """All counts again, at whole width: so sums of them do not overflow."""
        if self.places is None:
            return self.counts.astype(np.int64).reshape(self.shape)
        wide = np.zeros(int(np.prod(self.shape)), dtype=np.int64)
        wide[self.places] = self.counts
        return wide.reshape(self.shape)


def count_compactly(
    table: Table, wanted: Sequence[Attrs], *, total_is_public: bool = True
) -> dict[Attrs, Compact]:
    """The marginals by attributes, kept compactly.

    PRIVACY: in how many passes they are counted follows from the domain alone where n is private. In how many
    bytes each is kept follows from its counts; nothing but this process's memory shows it.

    >>> from sidelight.data.domain import Domain
    >>> table = Table.of_codes(Domain.of({"sex": 2}), np.array([[0], [1], [1]]))
    >>> count_compactly(table, [("sex",)])[("sex",)].wide()
    array([1, 2])
    """
    left = list(dict.fromkeys(wanted))
    # Part by part, so that wide counts never take much; but files and clusters are gone through once.
    sized = max(_CELLS_AT_ONCE, _CELLS_PER_RECORD * table.records) if total_is_public else _CELLS_UNSEEN
    most = sized if table.is_in_memory else np.inf
    kept: dict[Attrs, Compact] = {}
    while left:
        cells, number = 0, 0
        while number < len(left) and (not number or cells + table.domain.size(left[number]) <= most):
            cells += table.domain.size(left[number])
            number += 1
        some, left = left[:number], left[number:]
        counted = table.count_many(some)[::-1]
        for attrs in some:
            kept[attrs] = Compact.of(counted.pop())
    return kept
