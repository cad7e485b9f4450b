"""The public support: one weight for every distinct record of a public table, and none elsewhere.

    X̂ = distinct public records        A(x) = weight of x, Σ A = n        q(A) = Σ_x φ(x) A(x)

Memory grows with the records and not with the domain. What the public table never shows, the
model cannot represent: no budget mends a bad support (spec 9.3, M16).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sidelight._memory import blocks
from sidelight.data.count_source import margin
from sidelight.data.domain import Attrs, Domain
from sidelight.data.engines.distinct import distinct_weights
from sidelight.data.impossible import is_possible
from sidelight.data.table import Table
from sidelight.errors import DataError, ReleaseError
from sidelight.models.evidence import Evidence, of_records
from sidelight.models.exchange import closest_counts
from sidelight.models.model import Array, ModelState
from sidelight.queries.covers import covers

Cells = NDArray[np.unsignedinteger]
"""Indices of cells, in as few bits as they need."""

_AT_ONCE = 1 << 15
"""Records that are worked on at a time."""
_CELLS_TOGETHER = 1 << 14
"""Most cells of a table from which several marginals are summed; above it, counting again is faster."""


@dataclass(frozen=True, eq=False)
class Support:
    """Weighted distinct records, scaled to ``total``.

    >>> domain = Domain.of({"a": 2, "b": 2})
    >>> model = Support(domain, np.array([[0, 0], [1, 1]]), np.array([3.0, 1.0]), 4.0)
    >>> model.count(("a",))
    array([3., 1.])
    """

    domain: Domain
    records: NDArray[np.integer] = field(repr=False)
    """Distinct records, one a line, codes in the domain's order."""
    weights: Array = field(repr=False)
    """Non-negative, one a record, summing to ``total``."""
    total: float

    @classmethod
    def of_table(
        cls, public: Table, *, total: float, share: float = 1.0, seed: int = 0, domain: Domain | None = None
    ) -> "Support":
        """The empirical distribution of a public table, or of a random share of its records.

        Records that ``domain`` (by default the table's own) declares impossible are left out.
        """
        declared = public.domain if domain is None else domain
        records, counts = public.distinct()
        if len(records) == 0:
            raise DataError("the public table holds no records, so its support is empty. Give another one.")
        kept = is_possible(declared, records)
        if not kept.any():
            raise DataError(
                "every public record holds a combination that the schema declares impossible, so the support "
                "is empty. Check the combinations, or give another public table."
            )
        if not kept.all():
            records, counts = records[kept], counts[kept]
        if share < 1.0:
            number = max(1, round(share * int(counts.sum())))
            rng = np.random.default_rng(seed)
            drawn = rng.multivariate_hypergeometric(counts, number, method="marginals")
            records, counts = records[drawn > 0], drawn[drawn > 0]
        return cls(declared, records, counts * (total / counts.sum()), total)

    @classmethod
    def random(cls, domain: Domain, *, records: int, seed: int, total: float) -> "Support":
        """Uniform weights on records drawn uniformly from the domain: a support without data."""
        rng = np.random.default_rng(seed)
        drawn = np.stack([rng.integers(0, size, records) for size in domain.shape], axis=1)
        kept = np.unique(drawn[is_possible(domain, drawn)], axis=0)
        if len(kept) == 0:
            raise DataError("every random record holds an impossible combination; draw more of them.")
        return cls(domain, kept, np.full(len(kept), total / len(kept)), total)

    @classmethod
    def mixed(cls, parts: "Sequence[tuple[Support, float]]", *, total: float) -> "Support":
        """All records of several supports of one domain, each support with its share of the total.

        >>> domain = Domain.of({"a": 2})
        >>> one = Support(domain, np.array([[0]]), np.array([1.0]), 1.0)
        >>> Support.mixed([(one, 1.0), (one, 3.0)], total=8.0).weights
        array([2., 6.])
        """
        domain = parts[0][0].domain
        weights = np.concatenate([part.weights * (share / part.total) for part, share in parts])
        codes = np.empty((len(weights), len(domain)), dtype=_code_type(domain), order="F")
        np.concatenate([part.records for part, _ in parts], out=codes, casting="unsafe")
        weights *= total / weights.sum()
        return cls(domain, codes, weights, total)

    def with_weights(self, weights: Array) -> "Support":
        """Other weights on the same records, rescaled to the total."""
        return Support(self.domain, self.records, weights * (self.total / weights.sum()), self.total)

    def with_total(self, total: float) -> "Support":
        """The same distribution at another scale."""
        return Support(self.domain, self.records, self.weights * (total / self.weights.sum()), total)

    @property
    def distinct(self) -> "Support":
        """The same distribution, with each distinct record once, sorted by code."""
        columns = [self.records[:, k] for k in range(len(self.domain))]
        records, weights = distinct_weights(self.domain.shape, columns, self.weights)
        return Support(self.domain, records, weights, self.total)

    @property
    def uniform(self) -> "Support":
        """The same records, all of one weight."""
        return self.with_weights(np.ones(len(self.records)))

    def count_each(self, wanted: Sequence[Attrs]) -> Iterator[tuple[int, Array]]:
        """Many marginals, in the order of least work, each with its index in ``wanted``."""
        most_cells = min(_CELLS_TOGETHER, len(self.records) // 4)
        for table, places in covers(self.domain, wanted, most_cells=most_cells):
            counts = self.count(table)
            for place in places:
                yield place, margin(counts, table, wanted[place])

    def count(self, attrs: Attrs) -> Array:
        size = self.domain.size(attrs)
        # In blocks, so that temporary arrays stay in the processor's cache.
        parts = (
            np.bincount(self.cells(attrs, some), self.weights[some], size)
            for some in blocks(len(self.records), max(_AT_ONCE, size))
        )
        counts = _added(parts)
        return counts.reshape(self.domain.project(attrs).shape)

    def cells(self, attrs: Attrs, some: slice = slice(None)) -> Cells:
        """The cell of a marginal that each record is in, or each record of a slice."""
        cells: Cells = np.zeros(len(self.weights[some]), dtype=np.min_scalar_type(self.domain.size(attrs)))
        for position in self.domain.index(attrs):
            cells *= cells.dtype.type(self.domain.shape[position])
            cells += self.records[some, position].astype(cells.dtype, copy=False)
        return cells

    def given(self, evidence: Evidence) -> "Support | None":
        """The records that meet a condition."""
        weights = self.weights * of_records(self.domain, self.records, evidence)
        kept = weights > 0
        return (
            Support(self.domain, self.records[kept], weights[kept], float(weights.sum()))
            if kept.any()
            else None
        )

    def sample(self, records: int, *, seed: int) -> Table:
        rng = np.random.default_rng(seed)
        counts = closest_counts(self.domain, self.records, self.weights, records, rng)
        codes = np.repeat(self.records, counts, axis=0)
        return Table.of_codes(self.domain, codes[rng.permutation(records)])

    def state(self) -> ModelState:
        return ModelState(
            "support", {"total": self.total}, {"records": self.records, "weights": self.weights}
        )

    @classmethod
    def from_state(cls, domain: Domain, state: ModelState) -> "Support":
        """The model that ``state`` wrote down."""
        # As a table of codes, so that each is one that its attribute has.
        codes = Table.of_codes(domain, state.arrays["records"].reshape(-1, len(domain))).codes()
        weights = state.weights(total=state.total)
        if weights.shape != (len(codes),):
            raise ReleaseError("a saved model must have one weight for each of its records; it was edited.")
        return cls(domain, compact(codes, domain), weights, state.total)


def compact(codes: NDArray[np.integer], domain: Domain) -> NDArray[np.integer]:
    """The codes in as few bytes as the domain needs, stored by column, which is counted fastest."""
    return np.asfortranarray(codes, dtype=_code_type(domain))


def _code_type(domain: Domain) -> np.dtype[Any]:
    return np.min_scalar_type(max(domain.shape, default=1) - 1)


def tally(cells: Cells, weights: Array, size: int) -> Array:
    """The total weight in each of ``size`` cells."""
    every = blocks(len(cells), max(_AT_ONCE, size))
    return _added(np.bincount(cells[some], weights[some], size) for some in every)


def tilt(weights: Array, cells: Cells, ratio: Array) -> None:
    """Multiply each record's weight, in place, by the ratio of its cell."""
    for some in blocks(len(cells), _AT_ONCE):
        # Every cell is one that there is; looking that up again takes as long as the rest.
        weights[some] *= ratio.take(cells[some], mode="clip")


def _added(parts: Iterator[NDArray[Any]]) -> Array:
    """The sum of all parts, accumulated in the first."""
    total = next(parts)
    for part in parts:
        total += part
    return total


def missing_values(support: Support, attrs: Sequence[str]) -> dict[str, int]:
    """For each attribute with values that no record of the support has: how many they are.

    >>> domain = Domain.of({"a": 3})
    >>> missing_values(Support(domain, np.array([[0], [2]]), np.ones(2), 2.0), ["a"])
    {'a': 1}
    """
    found: dict[str, Any] = {}
    for attr in attrs:
        seen = np.unique(support.records[:, support.domain.index([attr])[0]]).size
        if seen < support.domain.sizes[attr]:
            found[attr] = support.domain.sizes[attr] - seen
    return found
