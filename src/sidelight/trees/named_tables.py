"""Tables with named axes: sums, products and slices of them.

A table knows the attribute of each axis, by its place in the domain. A set of attributes is a whole number:
attribute i is bit i.
"""

import math
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sidelight.trees.arrays import arrays
from sidelight.trees.summing import Projection

Array = NDArray[np.float64]


class Named(NamedTuple):
    """A table, and the attribute of each axis by its place in the domain."""

    axes: tuple[int, ...]
    values: Array


At = tuple[tuple[int, int], ...]
"""Attributes by their place in the domain, each fixed to one value."""


def sum_out(table: Named, wanted: int) -> Named:
    """The sum over every axis that is not wanted."""
    axes, values = table
    keep = tuple(bool(wanted >> axis & 1) for axis in axes)
    if all(keep):
        return table
    kept = tuple(axis for axis, is_kept in zip(axes, keep, strict=True) if is_kept)
    return Named(kept, _projection(values.shape, keep).sum(values))


@lru_cache(maxsize=256)
def _projection(shape: tuple[int, ...], keep: tuple[bool, ...]) -> Projection:
    """A workload sums tables of the same few shapes again and again."""
    return Projection(shape, keep, arrays("numpy"))


def multiply_in(table: Named, messages: Sequence[Named], keeps: Sequence[int], most: int) -> Named:
    """Multiply messages into a table one by one; after each, sum over the attributes not in its ``keeps``.

    Where a table on the way has more than ``most`` cells, it is done slice by slice.
    """
    along = _slicing(table, messages, keeps, most)
    if along is None:
        for message, keep in zip(messages, keeps, strict=True):
            table = contract(table, message, keep)
        return table
    number = table.values.shape[table.axes.index(along)]
    parts = (
        multiply_in(at_value(table, along, value), [at_value(m, along, value) for m in messages], keeps, most)
        for value in range(number)
    )
    return joined(parts, along, number, is_kept=bool(keeps[-1] >> along & 1))


def joined(parts: Iterable[Named], along: int, number: int, *, is_kept: bool) -> Named:
    """One table from its slices along an attribute: stacked where the attribute is kept, else added up."""
    whole: Array | None = None
    axes: tuple[int, ...] = ()
    for value, piece in enumerate(parts):
        axes, part = piece
        if is_kept:
            if whole is None:
                whole = np.empty((number, *part.shape))
            whole[value] = part
        elif whole is None:
            whole = part
        else:
            whole += part
    assert whole is not None
    return Named((along, *axes) if is_kept else axes, whole)


def _slicing(table: Named, messages: Sequence[Named], keeps: Sequence[int], most: int) -> int | None:
    """The attribute to slice along, so that tables stay small; None where slicing is not worth it."""
    sizes = dict(zip(table.axes, table.values.shape, strict=True))
    largest = work = table.values.size
    axes = frozenset(table.axes)
    for message, keep in zip(messages, keeps, strict=True):
        sizes |= dict(zip(message.axes, message.values.shape, strict=True))
        axes = axes.union(message.axes)
        work += math.prod(sizes[axis] for axis in axes)
        axes = frozenset(axis for axis in axes if keep >> axis & 1)
        after = math.prod(sizes[axis] for axis in axes)
        largest = max(largest, after) if keep != keeps[-1] else largest
    if largest <= most:
        return None

    def extra(axis: int) -> tuple[int, int]:
        """Cells read again for each slice, and cells added up."""
        again = sum(message.values.size for message in messages if axis not in message.axes)
        return (again + (0 if keeps[-1] >> axis & 1 else after)) * sizes[axis], -sizes[axis]

    best = min((axis for axis in table.axes if sizes[axis] > 1), key=extra, default=None)
    return None if best is None or extra(best)[0] > work / 2 else best


def sliced(table: Named, at: At) -> Named:
    """The table at these values."""
    for axis, value in at:
        table = at_value(table, axis, value)
    return table


def at_value(table: Named, axis: int, value: int) -> Named:
    """The slice of a table at one value of an attribute; the whole table where it lacks the attribute."""
    if axis not in table.axes:
        return table
    where = table.axes.index(axis)
    index = (slice(None),) * where + (value,)
    return Named(table.axes[:where] + table.axes[where + 1 :], table.values[index])


def contract(left: Named, right: Named, keep: int) -> Named:
    """Σ left · right over the attributes that are not kept, as one (batched) matrix product."""
    left = sum_out(left, keep | sum(1 << axis for axis in right.axes))
    right = sum_out(right, keep | sum(1 << axis for axis in left.axes))
    batch = [axis for axis in left.axes if axis in right.axes and keep >> axis & 1]
    summed = [axis for axis in left.axes if axis in right.axes and not keep >> axis & 1]
    left_own = [axis for axis in left.axes if axis not in right.axes]
    right_own = [axis for axis in right.axes if axis not in left.axes]
    a = _fold(left, batch, left_own, summed)
    b = _fold(right, batch, summed, right_own)
    sizes = dict(zip(left.axes, left.values.shape, strict=True)) | dict(
        zip(right.axes, right.values.shape, strict=True)
    )
    axes = (*batch, *left_own, *right_own)
    product = a[:, :, 0, None] * b[:, 0, None, :] if a.shape[2] == 1 else np.matmul(a, b)
    return Named(axes, product.reshape([sizes[axis] for axis in axes]))


def _fold(table: Named, *groups: list[int]) -> Array:
    """The table with each group of axes merged into one axis."""
    sizes = dict(zip(table.axes, table.values.shape, strict=True))
    turned = np.transpose(table.values, [table.axes.index(axis) for group in groups for axis in group])
    folded = turned.reshape([math.prod(sizes[axis] for axis in group) for group in groups])
    # Matrices that are contiguous along neither axis are multiplied many times more slowly.
    is_apart = folded.itemsize not in folded.strides[1:] and 1 not in folded.shape[1:]
    return np.ascontiguousarray(folded) if is_apart else folded


def widened(values: Array, axes: tuple[int, ...], over: tuple[int, ...]) -> Array:
    """The table with an axis of length 1 for each attribute of ``over`` that it lacks."""
    present = [axis for axis in over if axis in axes]
    turned = np.transpose(values, [axes.index(axis) for axis in present])
    sizes = dict(zip(present, turned.shape, strict=True))
    return turned.reshape([sizes.get(axis, 1) for axis in over])
