"""A table of released counts: one record for each cell, or for each cell of each group.

    count       summed over what ``where`` asks for, with the errors of that sum
    share       s = x_c / x_g of a cell c within its group g, r being the rest of the group. By Taylor's first
                order its error is that of (1 − s) c − s r, divided by x_g. The three variances tell how c and
                r err together, 2 Cov(c, r) = V(g) − V(c) − V(r), so that
                Var ≈ ((1 − s) V(c) + s V(r) − s (1 − s) V(g)) / x_g²

Where counts were kept from being negative, a share's interval is around that of the least-squares answers,
whose noise is known exactly, and is stretched to hold the share itself, as the interval of a count is.

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
        number = cells.shape[1]
        reach = NormalDist().inv_cdf(0.5 + confidence / 2)
        if bars.unbiased is None:  # the size of the errors may be an estimate, too
            reach = bars.quantile(confidence)
        masks = zip(
            self._masks(bars, self.shown, cells, number),
            self._masks(bars, self.by, cells[: len(self.by)], number),
            strict=True,
        )
        shares, low, high = (np.full(number, np.nan) for _ in range(3))
        for place, (cell, group) in enumerate(masks):
            whole, part, rest = bars.sum(group), bars.sum(cell), bars.sum(group & ~cell)
            if not whole.estimate > 0:
                continue
            share = shares[place] = float(part.estimate / whole.estimate)
            apart = _error_of_share(share, whole, part, rest)
            if apart is not None:
                off, error = apart
                low[place] = min(share + off - reach * error, share)
                high[place] = max(share + off + reach * error, share)
        return {"share": shares, "share_low": np.clip(low, 0.0, 1.0), "share_high": np.clip(high, 0.0, 1.0)}


def _error_of_share(
    share: float, whole: ErrorBars, part: ErrorBars, rest: ErrorBars
) -> tuple[float, float] | None:
    """How far unbiased answers are from a share, and the standard error of that; None where none is known."""
    answers = [one.unbiased for one in (whole, part, rest)]
    errors = [one.standard_error for one in (whole, part, rest)]
    off = 0.0
    if answers[0] is not None and answers[1] is not None and answers[2] is not None:
        off = float(answers[1].values - share * answers[0].values)
        of_whole, of_part, of_rest = (float(one.noise.variance) for one in answers if one is not None)
    elif errors[0] is not None and errors[1] is not None and errors[2] is not None:
        of_whole, of_part, of_rest = (float(one**2) for one in errors if one is not None)
    else:
        return None
    most = np.sqrt(of_part * of_rest)  # what a covariance can be
    together = np.clip((of_whole - of_part - of_rest) / 2, -most, most)
    variance = (1 - share) ** 2 * of_part + share**2 * of_rest - 2 * share * (1 - share) * together
    return off / float(whole.estimate), float(np.sqrt(max(variance, 0.0)) / whole.estimate)
