"""Sums of a table over some of its axes: the steps are worked out once, and taken thousands of times."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from sidelight.trees.arrays import Arrays

_SHORT = 24
"""Entries behind a middle axis, below which a matrix product sums over that axis faster."""
_LONG = 1 << 10
"""Beyond so many entries, ones to multiply by would be about as large as the table, and no faster."""


class Projection:
    """The sum of a table over the axes that are not kept.

    Neighbouring axes that are all kept or all summed are merged into one. A sum over the last axis, or over a
    middle one with few entries behind it, is a matrix product with zeros and ones, which is faster.
    """

    def __init__(self, shape: tuple[int, ...], keep: Sequence[bool], library: Arrays) -> None:
        self.shape = tuple(size for size, kept in zip(shape, keep, strict=True) if kept)
        self.wide = tuple(size if kept else 1 for size, kept in zip(shape, keep, strict=True))
        """The shape that broadcasts the sum over the table: 1 for each axis that was summed."""
        self._dropped = tuple(axis for axis, kept in enumerate(keep) if not kept)
        self._library = library
        groups: list[tuple[int, bool]] = []
        for size, kept in zip(shape, keep, strict=True):
            if size == 1:
                continue
            if groups and groups[-1][1] == kept:
                groups[-1] = groups[-1][0] * size, kept
            else:
                groups.append((size, kept))
        self._steps: list[tuple[tuple[int, ...], Any]] = []
        while any(not kept for _, kept in groups):
            size, kept = groups.pop()
            if not kept:
                ones = library.full((size,), 1.0) if size <= _LONG else None
                self._steps.append(((-1, size), ones))
                continue
            middle, _ = groups.pop()
            if size < _SHORT and middle * size <= 4096:
                chooser = np.tile(np.eye(size), (middle, 1))
                self._steps.append(((-1, middle * size), library.array(chooser)))
            else:
                self._steps.append(((-1, middle, size), None))
            if groups:
                before, _ = groups.pop()
                size *= before
            groups.append((size, True))

    @classmethod
    def onto(
        cls, attrs: Sequence[str], kept: Iterable[str], sizes: Mapping[str, int], library: Arrays
    ) -> "Projection":
        """From a table on these attributes onto those that are kept."""
        wanted = frozenset(kept)
        return cls(tuple(sizes[attr] for attr in attrs), [attr in wanted for attr in attrs], library)

    def sum(self, table: Any) -> Any:
        for shape, chooser in self._steps:
            table = table.reshape(shape)
            table = self._library.sum(table, 1) if chooser is None else table @ chooser
        return table.reshape(self.shape)

    def log_sum(self, table: Any) -> Any:
        """ln Σ exp, without overflow or underflow."""
        if not self._dropped:
            return table.reshape(self.shape)
        peak = self._library.finite(self._library.max(table, self._dropped))
        shifted = table - peak
        summed = self.sum(self._library.exp(shifted, shifted))
        return self._library.log(summed) + peak.reshape(self.shape)
