"""Bounds on the best-mixture error f(D) = min over mixtures μ of max over queries q of |q(D) − q(μ)|.

The bounds hold whatever a solver says: it only proposes the μ and λ from which they are computed.

    upper(μ) = max over q of |q(D) − q(μ)|                      for any mixture μ of the public records
    lower(λ) = Σ λ_q q(D) − max over x of Σ λ_q q(x)            for any signed weights λ, Σ|λ| = 1

The first is the largest error of μ. The second holds since a maximum is at least a mean: for every μ,
max |q(D) − q(μ)| ≥ Σ λ_q (q(D) − q(μ)), and Σ λ_q q(μ) is at most max_x Σ λ_q q(x).

**Rounding.** μ and λ are first rounded to whole numbers that sum to about 2⁵². Sums of whole numbers below
2⁵³ are exact in doubles, so q(μ), Σ|λ| and Σ λ_q q(x) are exact for the rounded μ and λ. These operations
round: the frequencies q(D) (2⁻⁵³ each), one division and one difference in an upper bound; and in a lower
bound two products, one sum (``fsum``, rounded once), one division and one difference, all of numbers of at
most 1. That is less than 8 · 2⁻⁵³ in all. Both bounds are loosened by 2⁻⁵⁰, and so hold exactly.
"""

import math
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from sidelight.data.domain import Attrs, Domain
from sidelight.errors import SettingError
from sidelight.models.support import Support
from sidelight.models.support_weights import SupportWeights
from sidelight.queries.query import Cell

Array = NDArray[np.float64]

_WHOLE = 2.0**52
_ROUNDING = 2.0**-50
_KEPT_CELLS = 2**26
"""Most cell numbers that are kept: 256 MiB."""
_MOST_RECORDS = 2**21
"""Most records: rounding μ or λ to whole numbers moves a bound by at most this · 2⁻⁵² = 2⁻³¹."""
_MOST_ENTRIES = 2**25
"""Most entries of the full linear program, one for each record and marginal; and most cells."""


def check_size(domain: Domain, marginals: Sequence[Attrs], records: int) -> None:
    """Refuse, by public sizes alone, a problem that might be too large to solve for some private table."""
    cells = sum(map(domain.size, marginals))
    if records <= _MOST_RECORDS and records * len(marginals) <= _MOST_ENTRIES and cells <= _MOST_ENTRIES:
        return
    raise SettingError(
        f"the best mixture of {records:,} distinct public records on {len(marginals):,} marginals with "
        f"{cells:,} cells is too large to be solved for certain: records × marginals and cells must be at "
        f"most {_MOST_ENTRIES:,} each, and records at most {_MOST_RECORDS:,}. "
        "Ask for fewer marginals, or give a sample of the public table."
    )


class Problem:
    """A support, and the exact frequencies that a mixture of its records should reproduce."""

    def __init__(self, support: Support, marginals: Sequence[Attrs], frequencies: Sequence[Array]) -> None:
        self.fit = SupportWeights(support.with_total(1.0), marginals)
        self.domain = support.domain
        self.places = self.fit.places
        self.target = np.empty(self.fit.answers.size)
        for attrs, frequency in zip(marginals, frequencies, strict=True):
            self.target[self.places[attrs]] = frequency.reshape(-1)
        self._attrs = sorted(self.places, key=lambda attrs: self.places[attrs].start)
        self._starts = np.array([self.places[attrs].start for attrs in self._attrs])
        self._cells_kept: dict[Attrs, NDArray[np.int32]] = {}
        # A cell without public records is always answered 0, so f is at least that cell's frequency.
        is_reachable = self.fit.recount(np.ones(self.records)) > 0
        unreachable = float(self.target[~is_reachable].max(initial=0.0))
        self.unreachable = max(0.0, unreachable - _ROUNDING)

    @property
    def records(self) -> int:
        return len(self.fit.start.records)

    def cell(self, position: int) -> Cell:
        """The query whose answer stands at this position."""
        attrs = self._attrs[int(np.searchsorted(self._starts, position, side="right")) - 1]
        shape = self.domain.project(attrs).shape
        inside = np.unravel_index(position - self.places[attrs].start, shape)
        return Cell(attrs, tuple(int(value) for value in inside))

    def cells(self, asked: NDArray[np.bool_] | None = None) -> Iterator[tuple[slice, NDArray[np.int32]]]:
        """For each marginal, the slice of its answers, and the cell of each record among them.

        Marginals without a position in ``asked`` are left out.
        """
        records = self.fit.start.records
        keep = self.records * len(self._attrs) <= _KEPT_CELLS
        for attrs in self._attrs:
            if asked is not None and not asked[self.places[attrs]].any():
                continue
            if attrs not in self._cells_kept:
                flat = np.zeros(self.records, dtype=np.int32)
                for column, size in zip(
                    self.domain.index(attrs), self.domain.project(attrs).shape, strict=True
                ):
                    flat *= size
                    flat += records[:, column].astype(np.int32)
                if not keep:
                    yield self.places[attrs], flat
                    continue
                self._cells_kept[attrs] = flat
            yield self.places[attrs], self._cells_kept[attrs]

    def upper(self, weights: Array) -> tuple[float, Array]:
        """The upper bound that these weights of the records prove, and their error on each query."""
        whole, total = _made_whole(weights)
        if total == 0:
            return 1.0, np.zeros(self.target.size)  # no frequency errs by more than 1
        misses = self.target - self.fit.recount(whole) / total
        return min(1.0, float(np.abs(misses).max()) + _ROUNDING), misses

    def lower(self, plays: Array) -> float:
        """The lower bound that these signed weights of the queries prove."""
        whole, total = _made_whole(plays)
        if total == 0:
            return 0.0
        gains = np.zeros(self.records)
        for place, cells in self.cells(whole != 0):
            gains += whole[place][cells]
        played = np.flatnonzero(whole)
        value = math.fsum(whole[played] / total * self.target[played])
        return max(0.0, value - float(gains.max()) / total - _ROUNDING)


def _made_whole(values: Array) -> tuple[Array, float]:
    """Whole numbers in about these proportions, and the sum of their sizes; zeros if one is not finite."""
    largest = float(np.abs(values).max(initial=0.0))
    if not 0.0 < largest < math.inf:
        return np.zeros_like(values), 0.0
    scaled = values / largest  # so that the sum is finite
    scaled *= _WHOLE / float(np.abs(scaled).sum())
    whole = np.rint(scaled)
    return whole, float(np.abs(whole).sum())
