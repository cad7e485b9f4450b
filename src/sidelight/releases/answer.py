"""A table of released counts: one record for each cell, or for each cell of each group.

    count       summed over what ``where`` asks for, with the errors of that sum
    share       x_c / x_g of a cell c within its group g; the two parts of a group err apart, so that
                Var ≈ ((1 − share)² V(c) + share² V(g without c)) / x_g²       (Taylor's first order)

Everything is computed from released outputs, and so is free.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sidelight.data.domain import Attrs, Domain
from sidelight.errors import TooLargeError, WorkloadError
from sidelight.models.evidence import Evidence, along
from sidelight.uncertainty.count_errors import CountErrors
from sidelight.uncertainty.error_bars import ErrorBars

_MOST_STEPS = 2**31
"""Cells of the joint table times cells asked for: a minute or two."""


@dataclass(frozen=True, eq=False)
class Asked:
    """The table asked for: cells of ``by`` × ``attrs``, of the records that meet a condition."""

    by: Attrs
    attrs: Attrs
    evidence: Evidence

    @property
    def shown(self) -> Attrs:
        """The attributes that the table shows."""
        return (*self.by, *self.attrs)

    @property
    def joint(self) -> Attrs:
        """The attributes that the table shows, and then those that only the condition is about."""
        return (*self.shown, *(attr for attr in self.evidence if attr not in self.shown))

    def cells(self, domain: Domain) -> NDArray[np.intp]:
        """The codes of each cell that is shown, one a column: all that the condition allows."""
        domain.require(self.joint)
        if len(set(self.shown)) < len(self.shown):
            raise WorkloadError(f"a column is named twice: {', '.join(self.shown)}. Name each once.")
        allowed = [
            np.flatnonzero(self.evidence.get(attr, np.ones(domain.sizes[attr]))) for attr in self.shown
        ]
        if not allowed:
            return np.zeros((0, 1), dtype=np.intp)  # one cell, of no attributes
        return np.stack([axis.reshape(-1) for axis in np.meshgrid(*allowed, indexing="ij")])

    def columns(self, errors: CountErrors, domain: Domain, confidence: float) -> dict[str, Any]:
        """Estimates, errors and intervals of every cell, as columns; with groups, shares within them too."""
        cells, bars = self.cells(domain), errors.bars(self.joint)
        number = cells.shape[1]
        found = (bars if self.joint == self.shown else self._summed(bars, number)).at(cells)
        low, high = found.interval(confidence) or (None, None)
        columns = {
            "estimate": found.estimate, "noise_error": found.noise_error, "model_error": found.model_error,
            "standard_error": found.standard_error, "low": low, "high": high,
            "source": [bars.source] * number,
        }  # fmt: skip
        return columns | (self._shares(bars, cells, confidence) if self.by else {})

    def _summed(self, bars: ErrorBars, number: int) -> ErrorBars:
        """Each cell summed over what the condition allows of the other attributes, which come last."""
        return bars.sum(self._allowed(bars, number), kept=len(self.shown))

    def _allowed(self, bars: ErrorBars, number: int) -> NDArray[np.bool_]:
        """The cells of the joint table that meet the condition; refused where their sums would take long."""
        if number * bars.estimate.size > _MOST_STEPS:
            raise TooLargeError(
                f"{number:,} cells, each a sum over a table of {bars.estimate.size:,}, are too many to "
                "answer at once. Ask for fewer columns, or for less in where."
            )
        return np.broadcast_to(along(self.joint, self.evidence) > 0, bars.estimate.shape)

    def _masks(
        self, bars: ErrorBars, shown: Attrs, cells: NDArray[np.intp], number: int
    ) -> Iterator[NDArray[np.bool_]]:
        """For each cell of some attributes, which cells of the joint table it consists of."""
        allowed = self._allowed(bars, number)
        axes = [self.joint.index(attr) for attr in shown]
        for place in range(number):
            mask = np.zeros(bars.estimate.shape, dtype=np.bool_)
            index: list[Any] = [slice(None)] * mask.ndim
            for axis, codes in zip(axes, cells, strict=True):
                index[axis] = codes[place]
            mask[tuple(index)] = allowed[tuple(index)]
            yield mask

    def _shares(self, bars: ErrorBars, cells: NDArray[np.intp], confidence: float) -> dict[str, Any]:
        """Each cell's share of its group, with its interval."""
        number, reach = cells.shape[1], NormalDist().inv_cdf(0.5 + confidence / 2)
        bars = bars.apart()
        masks = zip(
            self._masks(bars, self.shown, cells, number),
            self._masks(bars, self.by, cells[: len(self.by)], number),
            strict=True,
        )
        shares, errors = np.zeros(number), np.full(number, np.nan)
        for place, (cell, group) in enumerate(masks):
            whole, part, rest = bars.sum(group), bars.sum(cell), bars.sum(group & ~cell)
            if not whole.estimate > 0:
                shares[place] = np.nan
                continue
            share = shares[place] = float(part.estimate / whole.estimate)
            if part.standard_error is not None and rest.standard_error is not None:
                variance = (1 - share) ** 2 * part.standard_error**2 + share**2 * rest.standard_error**2
                errors[place] = np.sqrt(variance) / whole.estimate
        return {
            "share": shares,
            "share_low": np.clip(shares - reach * errors, 0.0, 1.0),
            "share_high": np.clip(shares + reach * errors, 0.0, 1.0),
        }
