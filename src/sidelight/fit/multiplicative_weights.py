"""Multiplicative weights: the update that MWEM and its relatives share.

    A(x) ∝ A(x) · exp( q(x) · (m − q(A)) / 2n )

for one measurement m of the query q; a whole marginal updates each cell x by the error of
the marginal's cell it falls into. Replaying past measurements is post-processing and free.

Measurements that share no attribute, directly or through others, are replayed apart: in a product
they cannot disturb one another. Each such group is replayed on the marginal of its own attributes,
and the whole model is touched once, after the last pass; the result is the same, cell for cell.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from sidelight import _check
from sidelight.data.domain import Attrs, joined
from sidelight.measurement import Measurement
from sidelight.models.components import Components
from sidelight.models.fold import Array, Fold
from sidelight.models.histogram import Histogram
from sidelight.queries.query import Marginal

Dense = Histogram | Components
"""The models that hold a weight for every cell, so that all cells of a marginal can be multiplied."""

_MOST_EXPONENT, _FARTHEST = 300.0, 1e300
"""Largest exponent of an update (e³⁰⁰ outweighs all earlier ones), and largest double used on the way."""


@dataclass(frozen=True, kw_only=True)
class MultiplicativeWeights:
    """Replays all measurements, pass after pass, until each is met to within its noise.

    A measurement is met when the root mean square of m − q(A) over its numbers is at most ``tolerance`` σ.
    One that is met is left alone, but the newest is used at least once.
    """

    passes: int = 100
    """At most so many passes over the measurements (spec 3.2). 0 replays nothing: the newest is used once."""
    tolerance: float = 1.0
    """The exact answers would be no closer than σ; but a model that stops there is off by as much again."""
    most_left: float = math.inf
    """The pass that leaves more than this share of the misfit Σ (m − q(A))²/σ² is the last: noisy answers
    contradict one another, and cannot all be met."""
    step: float = 0.5
    """η, the ½ of exp(q(x)(m − q(A)) / 2n)."""
    clip: bool = True
    """Whether counts measured below 0 or above n are taken as 0 or n. Off in the paper: there, a cell
    measured below 0 loses weight in every pass, however little it has left."""

    def __post_init__(self) -> None:
        _check.natural(passes=self.passes)
        _check.positive(step=self.step, tolerance=self.tolerance)

    def estimate(self, start: Dense, measurements: Sequence[Measurement]) -> Dense:
        """The model after at most ``passes`` passes over each group of measurements."""
        newest = measurements[-1]
        replayed = measurements if self.passes else [newest]
        model: Dense = start
        told = [made for made in replayed if made.query.attrs]
        for attrs, places in joined(made.query.attrs for made in told):
            group = [told[place] for place in places]
            model = model.refitted(attrs, partial(self._replay, group, newest, start.total))
        return model

    def _replay(
        self, measurements: Sequence[Measurement], newest: Measurement, total: float, fold: Fold
    ) -> None:
        """Pass after pass, until every measurement was met, little is gained, or the passes are used up."""
        replayed = [_Replayed.of(made, fold, total, is_clipped=self.clip) for made in measurements]
        before = math.inf
        for number in range(max(1, self.passes)):
            all_met, misfit = True, 0.0
            for measurement, one in zip(measurements, replayed, strict=True):
                counts = fold.count(one.attrs)
                error = one.error(counts)
                off = math.sqrt(error @ error / error.size) / one.stddev
                is_met = off <= self.tolerance
                all_met = all_met and is_met
                misfit += off * off
                if not is_met or (number == 0 and measurement is newest):
                    self._update(fold, one.attrs, counts, one.by_cell(error), total)
            if all_met or misfit > self.most_left * before:
                break
            before = misfit

    def _update(self, fold: Fold, attrs: Attrs, counts: Array, error: Array, total: float) -> None:
        """One update in place: A(x) ∝ A(x) · exp(η · error(x) / n), where error(x) = q(x) (m − q(A))."""
        with np.errstate(over="ignore"):
            exponent = np.clip(error * (self.step / total), -_FARTHEST, _FARTHEST)
        # The largest exponent is taken out: it cancels in the rescaling and cannot overflow. None is so far
        # below it that a cell could lose all its mass at once, which may be all that there is.
        factor = np.exp(np.maximum(exponent - exponent.max(), -_MOST_EXPONENT))
        # Rescaling to the total needs the marginal alone, so all cells are multiplied only once.
        factor *= total / np.vdot(counts, factor)
        fold.multiply(attrs, factor)


@dataclass(frozen=True, eq=False)
class _Replayed:
    """A measurement, with what stays the same from pass to pass."""

    attrs: Attrs
    answer: Array
    stddev: float
    shape: tuple[int, ...]
    weights: Array | None
    """φ of a scalar query on its marginal's cells; None for a whole marginal."""

    @classmethod
    def of(cls, measurement: Measurement, fold: Fold, total: float, *, is_clipped: bool) -> "_Replayed":
        query, answer = measurement.query, measurement.answer
        shape = fold.count(query.attrs).shape
        weights = None if isinstance(query, Marginal) else query.transpose(np.ones(1), shape)
        if is_clipped:
            # What n records could answer.
            low, high = (0.0, 1.0) if weights is None else (weights.min(), weights.max())
            answer = np.clip(answer, low * total, high * total)
        return cls(query.attrs, answer, measurement.stddev, shape, weights)

    def error(self, counts: Array) -> Array:
        """The error m − q(A), as a flat vector."""
        answered = counts.reshape(-1) if self.weights is None else np.vdot(self.weights, counts)
        difference: Array = self.answer - answered
        return difference

    def by_cell(self, error: Array) -> Array:
        """q(x) (m − q(A)) for every cell x of the marginal."""
        return error.reshape(self.shape) if self.weights is None else self.weights * error[0]
