"""Synthetic records from a junction tree, clique by clique, with systematic rounding.

The root clique is rounded to whole records first. Every further clique then adds its new
attributes: records that agree on the separator form a group, and a group of g records is distributed
over the new cells with expected counts e = g · P(new | separator). Cut points u, u + 1, u + 2, …
along the cumulated e give each cell ⌊e⌋ or ⌈e⌉ records, with mean e; the records of a group
take the cells in random order.

What it costs: a marginal of the root is within 1 record a cell of the model. Elsewhere the roundings
of many groups add up. Measured on ADULT (32,384 records, 30 measured marginals, all 455 three-way
marginals), the mean L1 distance to the model is 0.047 of the total, and 0.073 for independent draws.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sidelight.data.domain import Attrs
from sidelight.trees.junction_tree import JunctionTree

Codes = NDArray[Any]

_CELLS_AT_ONCE = 2**15
"""Cells of a clique's table that are worked on at a time."""


def codes_along_tree(
    tree: JunctionTree,
    marginal: Callable[[Attrs], NDArray[np.floating]],
    records: int,
    rng: np.random.Generator,
) -> Codes:
    """Draw so many coded records: one column an attribute, in the domain's order.

    ``marginal`` gives P on the attributes of a clique, in the order asked.
    """
    domain = tree.domain
    codes = np.zeros(
        (records, len(domain)), dtype=np.min_scalar_type(max(domain.shape, default=1) - 1), order="F"
    )
    for clique in tree.order:
        given = tree.separators[clique]
        new = tuple(attr for attr in tree.cliques[clique] if attr not in given)
        cells = distribute(
            marginal((*given, *new)).reshape(domain.size(given), domain.size(new)),
            _group_of(codes, domain.index(given), domain.project(given).shape),
            rng,
        )
        # The last attribute first, as numbers are read off digit by digit: no table of all of them at once.
        for column, size in reversed(list(zip(domain.index(new), domain.project(new).shape, strict=True))):
            codes[:, column] = cells % size
            cells //= size
    return codes


def _group_of(codes: Codes, columns: tuple[int, ...], shape: tuple[int, ...]) -> Codes:
    """Which combination of the separator's values each record has."""
    group = np.zeros(len(codes), dtype=np.min_scalar_type(math.prod(shape)))
    for column, size in zip(columns, shape, strict=True):
        group *= group.dtype.type(size)
        group += codes[:, column].astype(group.dtype, copy=False)
    return group


def distribute(table: NDArray[np.floating], group: Codes, rng: np.random.Generator) -> NDArray[np.int32]:
    """A cell for each record: systematic within its group, in random order."""
    groups, width = table.shape
    sizes = np.bincount(group, minlength=groups)
    present = np.flatnonzero(sizes)
    offsets = rng.random((len(present), 1))
    some = max(1, _CELLS_AT_ONCE // width)
    parts, rows = [np.empty(0, dtype=np.int32)], table
    for k in range(0, len(present), some):
        here = present[k : k + some]
        rows = table if len(here) == groups else table[here]
        parts.append(_cells_of_groups(rows, sizes[here, None], offsets[k : k + some]))
    drawn = np.concatenate(parts)

    # Records in random order, then gathered by group: sorting small integers is quick.
    shuffled = np.arange(len(group), dtype=np.int32 if len(group) < 2**31 else np.int64)
    rng.shuffle(shuffled)
    shuffled = shuffled[np.argsort(group[shuffled], kind="stable")]
    cells = np.empty(len(shuffled), dtype=drawn.dtype)
    cells[shuffled] = drawn
    return cells


def _cells_of_groups(
    table: NDArray[np.floating], sizes: NDArray[np.int64], offsets: NDArray[np.float64]
) -> NDArray[np.int32]:
    """A cell for each record of some groups, group by group; cut points are whole numbers plus an offset."""
    # Either there are few cells, or there is one group, which is then walked along twice.
    blocks = [slice(k, k + _CELLS_AT_ONCE) for k in range(0, table.shape[1], _CELLS_AT_ONCE)]
    last: NDArray[Any] = np.zeros((len(table), 1))
    for block in blocks:
        last = _ends(last, table[:, block])[:, -1:]
    # A group that was drawn although its mass rounds to 0 is distributed evenly.
    is_void = ~(last > 0)
    last = np.where(is_void, table.shape[1], last)
    end, cut = np.zeros((len(table), 1)), np.zeros((len(table), 1), dtype=np.int64)
    parts = []
    for block in blocks:
        ends = _ends(end, np.where(is_void, 1.0, table[:, block]))
        end = ends[:, -1:]
        # The last end is the group's size itself: every record gets a cell, and no cell of mass 0 any.
        cuts = np.where(ends == last, sizes, np.ceil(ends * (sizes / last) - offsets))
        cuts = np.minimum(cuts.astype(np.int64), sizes)
        counts = np.diff(cuts, axis=1, prepend=cut)
        cut = cuts[:, -1:]
        cells = np.arange(block.start, block.start + counts.shape[1], dtype=np.int32)
        parts.append(np.repeat(np.tile(cells, len(table)), counts.reshape(-1)))
    return np.concatenate(parts)


def _ends(start: NDArray[np.float64], block: NDArray[np.floating]) -> NDArray[np.float64]:
    """Cumulated masses of every group, from where the block before ended."""
    return np.cumsum(np.concatenate([start, block], axis=1), axis=1)[:, 1:]
