"""A dense table of weights over a few attributes, summed and multiplied quickly.

A table over many small attributes is slow to sum: along an axis of two values NumPy's inner
loop has two steps. So the attributes are folded into rows (the first ones) and columns (the
rest, about √cells of them). Sums first run over whole rows, then over the few columns that
are left; products run along whole rows too.

    marginal(a ∪ b) = Σ_columns∖b ( Σ_rows∖a weights )           a among the rows, b among the columns
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sidelight.data.domain import Attrs

Array = NDArray[np.float64]


class Fold:
    """A dense table of weights with named axes.

    >>> fold = Fold(("a", "b"), np.array([[1.0, 2.0], [3.0, 4.0]]))
    >>> fold.count(("b",))
    array([4., 6.])
    >>> fold.multiply(("a",), np.array([1.0, 10.0]))
    >>> fold.count(("b", "a"))
    array([[ 1., 30.],
           [ 2., 40.]])
    """

    def __init__(self, attrs: Attrs, weights: Array) -> None:
        self.attrs = attrs
        self.weights = np.ascontiguousarray(weights, dtype=np.float64)
        self._axis = {attr: axis for axis, attr in enumerate(attrs)}
        shape = self.weights.shape
        split = len(shape)
        columns = 1
        while split and columns * columns < self.weights.size:
            split -= 1
            columns *= shape[split]
        self._split = split
        self._rows = self.weights.reshape(*shape[:split], columns)
        self._columns = shape[split:]
        self._partial: dict[tuple[int, ...], Array] = {}
        self._ways: dict[Attrs, _Way] = {}

    @property
    def size(self) -> int:
        """How many cells there are."""
        return self.weights.size

    def count(self, attrs: Attrs) -> Array:
        """The marginal on these attributes, axes in the order asked; not to be written to."""
        if attrs == self.attrs:
            return self.weights
        way = self._way(attrs)
        summed = self._over_rows(way)
        if way.columns_gone:
            summed = summed.sum(axis=way.columns_gone)
        return summed if way.is_in_order else np.ascontiguousarray(summed.transpose(way.order))

    def _over_rows(self, way: "_Way") -> Array:
        """The sum over those attributes of the rows that are not kept."""
        known = self._partial.get(way.rows_gone)
        if known is not None:
            return known
        summed = self._rows.sum(axis=way.rows_gone) if way.rows_gone else self._rows
        unfolded = summed.reshape(*summed.shape[:-1], *self._columns)
        if 4 * unfolded.size <= self.size:  # larger ones are not worth their memory
            self._partial[way.rows_gone] = unfolded
        return unfolded

    def multiply(self, attrs: Attrs, factor: Array) -> None:
        """Multiply every cell, in place, by the factor of the marginal's cell it falls into."""
        self._partial.clear()
        if attrs == self.attrs:
            self.weights *= factor
            return
        way = self._way(attrs)
        aligned = factor if way.is_in_order else factor.transpose(way.sorting)
        # Along the columns the factor is written out, so that the product runs over whole rows.
        written_out = np.empty(way.written_out)
        written_out[...] = aligned.reshape(way.aligned)
        self._rows *= written_out.reshape(*way.written_out[: self._split], -1)

    def _way(self, attrs: Attrs) -> "_Way":
        """How to sum onto these attributes and to multiply by a factor on them; worked out once."""
        known = self._ways.get(attrs)
        if known is None:
            axes = [self._axis[attr] for attr in attrs]
            known = self._ways[attrs] = _Way.of(axes, self._split, self.weights.shape)
        return known

    def copy(self) -> "Fold":
        """An independent table with the same weights."""
        return Fold(self.attrs, self.weights.copy())


@dataclass(frozen=True)
class _Way:
    """From a table to one of its marginals, and back."""

    rows_gone: tuple[int, ...]
    """Axes of the rows that are summed away."""
    columns_gone: tuple[int, ...]
    """Axes of the columns that are summed away, counted after the rows are."""
    order: tuple[int, ...]
    """From the table's order of axes to the order asked."""
    sorting: tuple[int, ...]
    """From the order asked to the table's order."""
    is_in_order: bool
    aligned: tuple[int, ...]
    """The marginal's shape with an axis of 1 for everything summed away."""
    written_out: tuple[int, ...]
    """The same shape, with the axes of the columns written out."""

    @classmethod
    def of(cls, axes: list[int], split: int, shape: tuple[int, ...]) -> "_Way":
        kept = sorted(axes)
        kept_rows = sum(axis < split for axis in kept)
        order = tuple(kept.index(axis) for axis in axes)
        aligned = tuple(size if axis in axes else 1 for axis, size in enumerate(shape))
        return cls(
            rows_gone=tuple(axis for axis in range(split) if axis not in axes),
            columns_gone=tuple(kept_rows + a - split for a in range(split, len(shape)) if a not in axes),
            order=order,
            sorting=tuple(axes.index(axis) for axis in kept),
            is_in_order=axes == kept,
            aligned=aligned,
            written_out=aligned[:split] + shape[split:],
        )
