"""An explicit histogram: one weight for every cell of the domain."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sidelight.data.domain import Attrs, Domain
from sidelight.data.impossible import possible_cells
from sidelight.data.table import Table
from sidelight.errors import TooLargeError
from sidelight.models.evidence import Evidence, along
from sidelight.models.fold import Fold
from sidelight.models.model import Array, ModelState
from sidelight.models.rounding import round_to

MAX_CELLS = 2**27
"""Most cells of a histogram: one gibibyte of weights."""


@dataclass(frozen=True, eq=False)
class Histogram:
    """A distribution written out cell by cell, scaled to ``total``.

    >>> model = Histogram.uniform(Domain.of({"a": 2, "b": 3}), total=12.0)
    >>> model.count(("b",))
    array([4., 4., 4.])
    """

    domain: Domain
    weights: Array = field(repr=False)
    """Non-negative, shaped like the domain, summing to ``total``."""
    total: float

    @classmethod
    def uniform(cls, domain: Domain, *, total: float) -> "Histogram":
        """n · uniform over all possible cells: the maximum-entropy start."""
        check_fits(domain)
        if domain.impossible:
            return cls.of_counts(domain, np.ones(domain.shape), total=total)
        return cls(domain, np.full(domain.shape, total / domain.size()), total)

    @classmethod
    def of_counts(cls, domain: Domain, counts: NDArray[Any], *, total: float) -> "Histogram":
        """Non-negative counts, rescaled to the total; none where the domain declares it impossible."""
        weights = np.asarray(counts, dtype=np.float64).reshape(domain.shape)
        if domain.impossible:
            weights = weights * possible_cells(domain)
        return cls(domain, weights * (total / weights.sum()), total)

    @cached_property
    def _fold(self) -> Fold:
        return Fold(self.domain.attrs, self.weights)

    @cached_property
    def _kept(self) -> dict[Attrs, Array]:
        return {}

    def count(self, attrs: Attrs) -> Array:
        if attrs not in self._kept:
            self.domain.require(attrs)
            self._kept[attrs] = self._fold.count(attrs)
        return self._kept[attrs]

    def refitted(self, attrs: Attrs, refit: Callable[[Fold], None]) -> "Histogram":
        """The model after ``refit`` has changed its marginal on these attributes.

        ``refit`` changes the marginal in place; then all cells are rescaled to it once. The distribution of
        the other attributes, given these, stays as it was.
        """
        before = self.count(attrs)
        marginal = Fold(attrs, before.copy())
        refit(marginal)
        weights = self._fold.copy()
        # A cell of weight 0 stays at 0: multiplicative weights cannot revive it.
        weights.multiply(
            attrs, np.divide(marginal.weights, before, out=np.zeros_like(before), where=before > 0)
        )
        return Histogram.of_counts(self.domain, weights.weights, total=self.total)

    def given(self, evidence: Evidence) -> "Histogram | None":
        """The table under a condition."""
        weights = self.weights * along(self.domain.attrs, evidence)
        left = float(weights.sum())
        return Histogram(self.domain, weights, left) if left > 0 else None

    def sample(self, records: int, *, seed: int) -> Table:
        rng = np.random.default_rng(seed)
        counts = round_to(self.weights.reshape(-1), records, rng)
        codes = np.unravel_index(np.repeat(np.arange(counts.size), counts), self.domain.shape)
        order = rng.permutation(records)
        return Table.of_codes(self.domain, np.stack(codes, axis=1)[order])

    def state(self) -> ModelState:
        return ModelState("histogram", {"total": self.total}, {"weights": self.weights})

    @classmethod
    def from_state(cls, domain: Domain, state: ModelState) -> "Histogram":
        """The model that ``state`` wrote down."""
        check_fits(domain)
        return cls(domain, state.weights(total=state.total).reshape(domain.shape), state.total)


class RunningMean:
    """The mean of histograms over one domain, added one at a time."""

    def __init__(self) -> None:
        self._sum: Array | None = None

    def add(self, model: Histogram) -> None:
        """Count one more model in."""
        self._sum = model.weights.copy() if self._sum is None else self._sum + model.weights
        self._last = model

    @property
    def model(self) -> Histogram:
        """The mean so far, rescaled to the total."""
        assert self._sum is not None, "a mean needs at least one model"
        return Histogram.of_counts(self._last.domain, self._sum, total=self._last.total)


def check_fits(domain: Domain, max_cells: int = MAX_CELLS) -> None:
    """Refuse an explicit histogram that would not fit, and say what to use instead."""
    cells = domain.size()
    if cells > max_cells:
        raise TooLargeError(
            f"an explicit histogram over {len(domain)} attributes would have {cells:.3g} cells "
            f"({8 * cells / 2**30:.3g} GiB); at most {max_cells:.3g} are allowed. Use the factored model "
            "(mechanism='mwem' with model='components'), coarser bins, or mechanism='aim'."
        )
