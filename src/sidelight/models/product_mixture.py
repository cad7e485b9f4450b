"""A mixture of product distributions: what a generator network with fixed noise is, once it is trained.

    p(x) = (1/B) Σ_b Π_g p_bg(x_g)

Each of B rows says how likely every value is, attribute by attribute; within a row the attributes are
independent. A marginal is the mean over all rows of products of a few numbers, exactly and without torch.

Attributes that impossible combinations join are one block, whose probabilities are those of its possible
cells: no row gives an impossible combination any mass.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sidelight import _check
from sidelight.data.domain import Attrs, Domain
from sidelight.data.impossible import possible_cells
from sidelight.data.table import Table
from sidelight.errors import ReleaseError, WorkloadError
from sidelight.models.components import joined_by_impossible
from sidelight.models.evidence import Evidence, along
from sidelight.models.model import Array, ModelState
from sidelight.models.rounding import round_to
from sidelight.models.sampling import distribute

_WEIGHTS = "network_"
"""Prefix of the names of a network's arrays in a saved model."""


@dataclass(frozen=True)
class Blocks:
    """Which columns of a row belong to which attributes.

    >>> blocks = Blocks.of(Domain.of({"a": 2, "b": 3}))
    >>> blocks.columns, blocks.width
    ((slice(0, 2, None), slice(2, 5, None)), 5)
    """

    domain: Domain
    groups: tuple[Attrs, ...]
    """Attributes that share a block: one each, but for those that impossible combinations join."""

    @classmethod
    def of(cls, domain: Domain) -> "Blocks":
        """The blocks of a domain."""
        return cls(domain, tuple(joined_by_impossible(domain)))

    @cached_property
    def columns(self) -> tuple[slice, ...]:
        """The columns of each block."""
        ends = np.cumsum([self.domain.size(attrs) for attrs in self.groups]).tolist()
        return tuple(slice(start, end) for start, end in zip([0, *ends], ends, strict=False))

    @property
    def width(self) -> int:
        """How many columns there are in all."""
        return self.columns[-1].stop if self.columns else 0

    @cached_property
    def possible(self) -> NDArray[np.bool_]:
        """For each column, whether its cell may hold records."""
        return np.concatenate([possible_cells(self.domain, attrs).reshape(-1) for attrs in self.groups])

    @cached_property
    def _group_of(self) -> dict[str, int]:
        return {attr: number for number, attrs in enumerate(self.groups) for attr in attrs}

    def holding(self, attr: str) -> int:
        """The number of the block that holds an attribute."""
        self.domain.require([attr])
        return self._group_of[attr]

    def sides(self, attrs: Attrs) -> tuple[int, int]:
        """Numbers of columns of the two tables whose product is the marginal on these attributes."""
        way = self._way(attrs)
        sizes = [self.domain.size(kept) for _, kept in way.touched]
        return math.prod(sizes[: way.cut]), math.prod(sizes[way.cut :])

    def marginal(self, tables: Sequence[Any], attrs: Attrs) -> Any:
        """The mean over all rows of the products on these attributes, flat, in the order asked.

        ``tables`` are the probabilities, block by block: arrays of NumPy or torch, and so is the result.
        """
        return self.sums(tables, attrs) / len(tables[0])

    def sums(self, tables: Sequence[Any], attrs: Attrs) -> Any:
        """The sum of the products over all rows."""
        way = self._way(attrs)
        parts = [self._part(tables[number], number, kept) for number, kept in way.touched]
        together = _outer(parts[: way.cut], tables[0]).T @ _outer(parts[way.cut :], tables[0])
        if way.axes is None:
            return together.reshape(-1)
        shaped = together.reshape(way.shape)
        # What NumPy calls transpose is permute in torch.
        turned = shaped.permute(way.axes) if hasattr(shaped, "permute") else shaped.transpose(way.axes)
        return turned.reshape(-1)

    @cached_property
    def _ways(self) -> dict[Attrs, "_Way"]:
        """The ways that were found before: training asks for the same marginals thousands of times."""
        return {}

    def _way(self, attrs: Attrs) -> "_Way":
        if attrs not in self._ways:
            self.domain.require(attrs)
            if len(set(attrs)) < len(attrs):
                raise WorkloadError(f"a marginal names an attribute twice: {', '.join(attrs)}.")
            numbers = dict.fromkeys(self._group_of[attr] for attr in attrs)
            touched = [(number, tuple(a for a in self.groups[number] if a in attrs)) for number in numbers]
            order = tuple(attr for _, kept in touched for attr in kept)
            self._ways[attrs] = _Way(
                tuple(touched),
                _cut([self.domain.size(kept) for _, kept in touched]),
                None if order == attrs else tuple(order.index(attr) for attr in attrs),
                self.domain.project(order).shape,
            )
        return self._ways[attrs]

    def _part(self, table: Any, number: int, kept: Attrs) -> Any:
        """The probabilities of some attributes of one block, a row each."""
        attrs = self.groups[number]
        if kept == attrs:
            return table
        part = table.reshape((len(table), *self.domain.project(attrs).shape))
        for axis in reversed([place for place, attr in enumerate(attrs) if attr not in kept]):
            part = part.sum(axis + 1)
        return part.reshape(len(table), -1)


class _Way(NamedTuple):
    """How a marginal is computed."""

    touched: tuple[tuple[int, Attrs], ...]
    """Blocks, each with the attributes that are kept of it."""
    cut: int
    """How many of them make the left one of the two tables that are multiplied."""
    axes: tuple[int, ...] | None
    """Where each axis asked for is now; None where all are in their places."""
    shape: tuple[int, ...]


def _cut(sizes: Sequence[int]) -> int:
    """Where a product of tables is split into two, so that both together are smallest."""
    return min(range(len(sizes) + 1), key=lambda place: math.prod(sizes[:place]) + math.prod(sizes[place:]))


def _outer(parts: Sequence[Any], like: Any) -> Any:
    """The products of some tables, row by row; ones where there are none, as many as ``like`` has rows."""
    if not parts:
        return like[:, :1] * 0 + 1
    found = parts[0]
    for part in parts[1:]:
        found = (found[:, :, None] * part[:, None, :]).reshape(len(like), -1)
    return found


@dataclass(frozen=True, eq=False)
class ProductMixture:
    """B product distributions, all of one weight, scaled to a total.

    >>> blocks = Blocks.of(Domain.of({"a": 2, "b": 2}))
    >>> rows = np.array([[1.0, 0.0, 1.0, 0.0], [0.0, 1.0, 0.5, 0.5]])
    >>> ProductMixture(blocks, rows, 8.0).count(("a", "b"))
    array([[4., 0.],
           [2., 2.]])
    """

    blocks: Blocks
    rows: Array = field(repr=False)
    """B × the blocks' width: each block of a row adds up to 1."""
    total: float
    network: Mapping[str, NDArray[Any]] = field(default_factory=dict, repr=False)
    """The weights of the network that made the rows, for training that starts from it."""
    weights: Array | None = field(default=None, repr=False)
    """Each row's share, under a condition; None where all rows are of one weight."""

    @property
    def domain(self) -> Domain:
        return self.blocks.domain

    def count(self, attrs: Attrs) -> Array:
        tables = [self.rows[:, columns] for columns in self.blocks.columns]
        if self.weights is not None and attrs:
            place = self.blocks.holding(attrs[0])
            tables[place] = tables[place] * (self.weights * len(self.rows))[:, None]
        flat = self.total * self.blocks.marginal(tables, tuple(attrs))
        return np.asarray(flat.reshape(self.domain.project(attrs).shape), dtype=np.float64)

    def count_each(self, wanted: Sequence[Attrs]) -> Iterator[tuple[int, Array]]:
        """Many marginals, each with its index in ``wanted``."""
        return ((place, self.count(attrs)) for place, attrs in enumerate(wanted))

    def given(self, evidence: Evidence) -> "ProductMixture | None":
        """Each row under the condition, weighted by how likely the condition is in that row."""
        rows, number = self.rows.copy(), len(self.rows)
        shares = np.full(number, 1 / number) if self.weights is None else self.weights.copy()
        for attrs, columns in zip(self.blocks.groups, self.blocks.columns, strict=True):
            likely = np.broadcast_to(along(attrs, evidence), self.domain.project(attrs).shape).reshape(-1)
            kept = self.rows[:, columns] * likely
            whole = kept.sum(axis=1, keepdims=True)
            np.divide(kept, whole, out=rows[:, columns], where=whole > 0)
            shares *= whole[:, 0]
        left = float(shares.sum())
        return (
            ProductMixture(self.blocks, rows, self.total * left, weights=shares / left) if left > 0 else None
        )

    def sample(self, records: int, *, seed: int) -> Table:
        """Synthetic records: each row gives its share of them, rounded to whole records."""
        _check.natural(records=records)
        rng = np.random.default_rng(seed)
        weights = np.ones(len(self.rows)) if self.weights is None else self.weights
        row = rng.permutation(np.repeat(np.arange(len(self.rows)), round_to(weights, records, rng)))
        codes = np.zeros((records, len(self.domain)), dtype=np.int64)
        for attrs, columns in zip(self.blocks.groups, self.blocks.columns, strict=True):
            cells = distribute(self.rows[:, columns], row, rng)
            shape = self.domain.project(attrs).shape
            for place, drawn in zip(self.domain.index(attrs), np.unravel_index(cells, shape), strict=True):
                codes[:, place] = drawn
        return Table.of_codes(self.domain, codes)

    def state(self) -> ModelState:
        if self.weights is not None:
            raise ReleaseError("a model under a condition is not saved; save the release itself.")
        arrays = {"rows": self.rows} | {f"{_WEIGHTS}{name}": array for name, array in self.network.items()}
        groups = [list(attrs) for attrs in self.blocks.groups]
        return ModelState("product-mixture", {"total": self.total, "groups": groups}, arrays)

    @classmethod
    def from_state(cls, domain: Domain, state: ModelState) -> "ProductMixture":
        """The model that ``state`` wrote down."""
        groups = tuple(tuple(attrs) for attrs in state.meta["groups"])
        if sorted(attr for attrs in groups for attr in attrs) != sorted(domain.attrs):
            raise ReleaseError("a saved model must hold every attribute in one block; it was edited.")
        blocks = Blocks(domain, groups)
        rows = state.weights("rows")
        if rows.ndim != 2 or not len(rows) or rows.shape[1] != blocks.width:
            raise ReleaseError("a saved model must have a probability for each value; it was edited.")
        for columns in blocks.columns:
            if not np.allclose(rows[:, columns].sum(axis=1), 1.0, rtol=1e-6):
                raise ReleaseError("each block of a saved model must add up to 1; it was edited.")
        network = {
            name.removeprefix(_WEIGHTS): array
            for name, array in state.arrays.items()
            if name.startswith(_WEIGHTS)
        }
        return cls(blocks, rows, state.total, network)
