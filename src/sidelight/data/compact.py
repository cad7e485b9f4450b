"""Many marginals of one table, kept in as few bytes as its number of records needs.

Exact counts of a whole workload are held for a run's length, and a count never exceeds the number of
records: 16 bits are enough for a table of 65,535, a quarter of what counting itself works with.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from sidelight.data.domain import Attrs
from sidelight.data.engines.base import smallest_dtype
from sidelight.data.table import Table

Compact = npt.NDArray[np.unsignedinteger]

_FEW_RECORDS = 1 << 16
"""Up to here one more pass over the records costs nothing worth mentioning."""


def compact_type(records: int) -> np.dtype[np.unsignedinteger]:
    """The smallest type that holds every count of so many records."""
    return smallest_dtype(records + 1)


def count_compactly(table: Table, wanted: Sequence[Attrs]) -> dict[Attrs, Compact]:
    """The marginals by attributes, in the smallest type; ``astype(np.int64)`` gives the counts back.

    >>> from sidelight.data.domain import Domain
    >>> table = Table.of_codes(Domain.of({"sex": 2}), np.array([[0], [1], [1]]))
    >>> count_compactly(table, [("sex",)])
    {('sex',): array([1, 2], dtype=uint8)}
    """
    kind = compact_type(table.records)
    left = list(dict.fromkeys(wanted))
    # Few records are counted part by part, so that wide counts never take more than all compact ones.
    passes = 8 // kind.itemsize if table.records < _FEW_RECORDS else 1
    most = sum(table.domain.size(attrs) for attrs in left) / passes
    kept: dict[Attrs, Compact] = {}
    while left:
        cells, number = 0, 0
        while number < len(left) and (not number or cells + table.domain.size(left[number]) <= most):
            cells += table.domain.size(left[number])
            number += 1
        some, left = left[:number], left[number:]
        counted = table.count_many(some)[::-1]
        for attrs in some:
            kept[attrs] = counted.pop().astype(kind, order="C")
    return kept
