"""Fewer, larger marginals that contain all that are asked for.

A marginal is a sum over a larger one. Where there are many records, one marginal of five attributes and
its ten sums take less time than ten marginals of three attributes: 220 three-way marginals of 12 attributes
are sums over some fifty unions of at most 16,384 cells.

Unions are found greedily. Each starts from the largest marginal that is left, and takes in the attribute that
completes most others for its size, until none fits. The choice affects speed alone.
"""

from collections.abc import Iterable, Mapping, Sequence
from math import log, prod

import numpy as np
import numpy.typing as npt

BLOCK = 1 << 15
"""Records in a block: more than the cells of a union, so that adding up blocks takes little."""
MOST_CELLS = 1 << 14
"""Cells of the largest union."""

_Ranks = tuple[int, ...]
_Flags = npt.NDArray[np.bool_]


class UnionCounter:
    """Counts of unions, block by block; columns are in the order of ranks.

    >>> counter = UnionCounter([3, 2], [(0, 1)])
    >>> counter.add([np.array([0, 2, 2]), np.array([1, 0, 0])])
    >>> counter.counts[0, 1].tolist()
    [0, 1, 0, 0, 2, 0]
    """

    def __init__(self, sizes: Sequence[int], wanted: Iterable[_Ranks]) -> None:
        self._sizes = sizes
        cells = {union: prod([sizes[rank] for rank in union]) for union in sorted(wanted)}
        self.counts = {union: np.zeros(size, dtype=np.int64) for union, size in cells.items()}
        self._used = {rank for union in cells for rank in union}

    def add(self, columns: Sequence[npt.NDArray[np.integer]]) -> None:
        """Count these records, too."""
        for start in range(0, len(columns[0]) if self._used else 0, BLOCK):
            block = {rank: columns[rank][start : start + BLOCK].astype(np.uint32) for rank in self._used}
            digits: list[npt.NDArray[np.uint32]] = []
            before: _Ranks = ()
            for union, counts in self.counts.items():
                # Unions that begin alike, which follow each other, share the digits of that beginning.
                same = next((i for i, (a, b) in enumerate(zip(before, union, strict=False)) if a != b), 0)
                del digits[same:]
                for rank in union[same:]:
                    digits.append(
                        digits[-1] * np.uint32(self._sizes[rank]) + block[rank] if digits else block[rank]
                    )
                counts += np.bincount(digits[-1], minlength=counts.size)
                before = union


def unions(sizes: Sequence[int], marginals: Sequence[_Ranks], *, most: int) -> Mapping[_Ranks, _Ranks]:
    """For each marginal of at most ``most`` cells, the union that it is a sum over.

    >>> dict(unions([3, 2, 2], [(0, 1), (0, 2), (1, 2)], most=12))
    {(0, 1): (0, 1, 2), (0, 2): (0, 1, 2), (1, 2): (0, 1, 2)}
    >>> dict(unions([3, 2, 2], [(0, 1), (2,)], most=6))
    {(0, 1): (0, 1), (2,): (2,)}
    >>> dict(unions([3, 2, 2], [(0, 1), (2,)], most=5))
    {(2,): (2,)}
    """
    cells = {ranks: prod([sizes[rank] for rank in ranks]) for ranks in marginals}
    found: dict[_Ranks, _Ranks] = {}
    left = sorted((ranks for ranks in cells if cells[ranks] <= most), key=lambda ranks: -cells[ranks])
    has = np.zeros((len(left), len(sizes)), dtype=np.bool_)
    for place, ranks in enumerate(left):
        has[place, list(ranks)] = True
    weight = np.array([log(size + 1) for size in sizes])
    while left:
        union = _grown(sizes, has, cells[left[0]], weight, most)
        is_in: _Flags = np.logical_not((has & ~union).any(axis=1))
        whole = tuple(np.flatnonzero(union).tolist())
        found.update({left[place]: whole for place in np.flatnonzero(is_in).tolist()})
        left = [ranks for ranks, done in zip(left, is_in, strict=True) if not done]
        has = has[~is_in]
    return found


def _grown(
    sizes: Sequence[int], has: _Flags, cells: int, weight: npt.NDArray[np.float64], most: int
) -> _Flags:
    """The first marginal's attributes, and those that complete most other marginals for their size."""
    union: _Flags = has[0].copy()
    while True:
        outside = has & ~union
        completed = outside[outside.sum(axis=1) == 1].sum(axis=0)
        fits = np.array([cells * size <= most for size in sizes])
        worth = np.where(fits & ~union, completed / weight, 0.0)
        best = int(worth.argmax())
        if not worth[best]:
            return union
        union[best] = True
        cells *= sizes[best]
