"""Many marginals of one table, kept in as few bytes as its records need.

The exact counts of a whole workload are held as long as a run lasts. No count exceeds the number of records:
16 bits are enough for a table of 65,535 records, where counting itself uses 64. Most cells of most marginals
are empty: where it takes less memory, only the others are kept, each with its place. Together this takes a
few bytes for each record and marginal, however large the domain.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from sidelight.data.domain import Attrs
from sidelight.data.engines.base import Counts, Tell, smallest_dtype, tell_nobody
from sidelight.data.table import Table

_CELLS_AT_ONCE, _CELLS_PER_RECORD = 1 << 17, 2
"""Most cells counted in one pass: a megabyte of 64-bit counts, or about as much as the records take."""
_CELLS_UNSEEN = 1 << 18
"""Most cells counted in one pass where n is private."""


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
        """These counts, in whichever form takes less memory."""
        flat = counts.reshape(-1)
        places = np.flatnonzero(flat).astype(smallest_dtype(flat.size))
        kind = smallest_dtype(int(flat.max(initial=0)) + 1)
        if places.size * (places.itemsize + kind.itemsize) < flat.size * kind.itemsize:
            return cls(counts.shape, flat[places].astype(kind), places)
        return cls(counts.shape, flat.astype(kind), None)

    def wide(self) -> Counts:
        """All counts as 64-bit integers, whose sums do not overflow."""
        if self.places is None:
            return self.counts.astype(np.int64).reshape(self.shape)
        wide = np.zeros(int(np.prod(self.shape)), dtype=np.int64)
        wide[self.places] = self.counts
        return wide.reshape(self.shape)


def count_compactly(
    table: Table, wanted: Sequence[Attrs], *, total_is_public: bool = True, tell: Tell = tell_nobody
) -> dict[Attrs, Compact]:
    """Count these marginals, and keep each in little memory.

    PRIVACY: in how many passes they are counted follows from the domain alone where n is private. In how many
    bytes each is kept follows from its counts; nothing but this process's memory shows it.

    >>> from sidelight.data.domain import Domain
    >>> table = Table.of_codes(Domain.of({"sex": 2}), np.array([[0], [1], [1]]))
    >>> count_compactly(table, [("sex",)])[("sex",)].wide()
    array([1, 2])
    """
    left = list(dict.fromkeys(wanted))
    # In parts, so that 64-bit counts never take much; but a file or a cluster is read only once.
    sized = max(_CELLS_AT_ONCE, _CELLS_PER_RECORD * table.records) if total_is_public else _CELLS_UNSEEN
    most = sized if table.is_in_memory else np.inf
    kept: dict[Attrs, Compact] = {}
    while left:
        cells, number = 0, 0
        while number < len(left) and (not number or cells + table.domain.size(left[number]) <= most):
            cells += table.domain.size(left[number])
            number += 1
        some, left = left[:number], left[number:]
        counted = table.count_many(some, tell)[::-1]
        for attrs in some:
            kept[attrs] = Compact.of(counted.pop())
    return kept
