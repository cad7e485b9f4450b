"""The noise in a table of released counts: how large it is in every cell, and in sums of cells.

- ``CellNoise``: every cell has its own, as counts do that noisy answers tell of.
- ``ReachingNoise``: it comes through single attributes, and cells that share a value move together.
- ``KnownNoise``: its covariance is known exactly, as that of reconstructed counts is.

Of each, ``variance`` is that of every cell by itself; ``sums`` gives the noise in sums over some cells, one
sum for each cell of the first ``kept`` axes; ``fitted`` multiplies it, where a part of it is firm
(calibration.py).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from sidelight.uncertainty.calibration import remaining

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class CellNoise:
    """Noise of every cell by itself, but for a sum of all cells that may be known."""

    variance: Array
    common: float = 0.0
    """Where the sum of all cells is known: minus the covariance of the noise in any two cells."""

    def sums(self, cells: Mask, kept: int = 0) -> "CellNoise":
        over = tuple(range(kept, cells.ndim))
        whole = np.where(cells, self.variance + self.common, 0.0).sum(axis=over)
        return CellNoise(np.maximum(whole - self.common * cells.sum(axis=over) ** 2, 0.0))

    def fitted(self, factor: float, firm: Array) -> "CellNoise":
        left = remaining(self.variance, firm, factor)
        return CellNoise(left, float(left.sum() / max(self.variance.sum(), 1e-300)) * self.common)


@dataclass(frozen=True, eq=False)
class ReachingNoise:
    """Noise in the counts of single attributes: each value's error moves the cells with that value."""

    of_values: Mapping[int, Array]
    """For each axis whose attribute has noise, the variance of each value's count."""
    shares: Array
    """Counts divided by n: of the error in a value's count, a cell takes the share of its other values."""

    @cached_property
    def variance(self) -> Array:
        return np.asarray(sum(values * share**2 for _, values, share in self._each()))

    def sums(self, cells: Mask, kept: int = 0) -> CellNoise:
        over, found = tuple(range(kept, cells.ndim)), np.zeros(cells.shape[:kept])
        for axis, values, share in self._each():
            others = tuple(one for one in over if one != axis)
            moved = np.where(cells, share, 0.0).sum(axis=others, keepdims=True)
            found += (values * moved**2).sum(axis=over)
        return CellNoise(found)

    def fitted(self, factor: float, firm: Array) -> "ReachingNoise":
        # Noise reaches tables of several attributes alone, and nothing of theirs is firm.
        return replace(self, of_values={axis: factor * values for axis, values in self.of_values.items()})

    def _each(self) -> list[tuple[int, Array, Array]]:
        """Each axis, with the variances along it and the shares of the other values."""
        size, shares = self.shares.ndim, self.shares
        return [
            (
                axis,
                values.reshape([-1 if one == axis else 1 for one in range(size)]),
                shares.sum(axis=axis, keepdims=True),
            )
            for axis, values in self.of_values.items()
        ]


@dataclass(frozen=True, eq=False)
class KnownNoise:
    """Noise whose covariance is known exactly."""

    variance: Array
    of_sum: Callable[[Array], float]
    """The variance of a weighted sum of cells."""

    def sums(self, cells: Mask, kept: int = 0) -> CellNoise:
        found = np.zeros(cells.shape[:kept])
        for cell in np.ndindex(found.shape):
            if cells[cell].any():
                weights = np.zeros(cells.shape)
                weights[cell] = cells[cell]
                found[cell] = self.of_sum(weights)
        return CellNoise(found)

    def fitted(self, factor: float, firm: Array) -> "KnownNoise":
        return KnownNoise(factor * self.variance, lambda weights: factor * self.of_sum(weights))

    def at_most(self, other: "KnownNoise") -> "KnownNoise":
        """The smaller of two, in every cell and in every sum."""
        return KnownNoise(
            np.minimum(self.variance, other.variance),
            lambda weights: min(self.of_sum(weights), other.of_sum(weights)),
        )


CountNoise = CellNoise | ReachingNoise | KnownNoise
