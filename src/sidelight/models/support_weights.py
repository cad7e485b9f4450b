"""A support under multiplicative updates, with a workload's answers kept up to date.

A(x) ← A(x) · exp(φ(x) · step),  rescaled to n,        φ the query that was measured
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp

import numpy as np
from numpy.typing import NDArray

from sidelight.data.domain import Attrs
from sidelight.models.model import Array
from sidelight.models.projections import Projections
from sidelight.models.support import Support
from sidelight.queries.query import Cell, Query

_ROUNDS_BETWEEN_RECOUNTS = 100
"""A round adds a few 1e-16 of the total to an answer's rounding error; recounts keep it below 1e-12."""
_MOST_STEP, _MOST_COMMON, _MOST_MASS = 30.0, 300.0, 2.0**300
"""Largest step of an update, largest common exponent, and largest ratio of the weights' sum to the total."""


@dataclass(frozen=True, eq=False)
class Asked:
    """A query on a support: φ(x) ≠ 0 for the records ``where``, and 0 for all others."""

    query: Query
    where: NDArray[np.int64]
    values: Array | None
    """φ on those records; None where it is 1 throughout."""
    position: int | None
    """Index of its answer among the workload's, if it is a cell of one of its marginals."""
    low: float
    high: float
    """The least and the greatest φ over all cells: an answer lies in n·[low, high]."""


class SupportWeights:
    """Weights on a support under multiplicative updates, with a workload's answers kept up to date.

    ``update`` multiplies A(x) by exp(φ(x)·step) and rescales. Only records with φ(x) ≠ 0 change; where those
    are most of the records, only the others do, up to a factor that is kept as one number. ``settle`` then
    recounts the changed records alone (see ``projections``).
    """

    def __init__(self, start: Support, marginals: Sequence[Attrs], *, max_cache_mb: float = 256.0) -> None:
        self.start = start
        self.domain = start.domain
        self.total = start.total
        self._projections = Projections(start.domain, start.records, marginals, max_cache_mb=max_cache_mb)
        self._settled = start.weights.copy()
        self._weights = start.weights.copy()
        self._exponents = np.zeros(len(start.records))
        self._answers = self._projections.count(self._settled)
        self._mass = self._settled_mass = float(self._settled.sum())
        self._shapes = {attrs: start.domain.project(attrs).shape for attrs in self._projections.places}
        self._scaled: Array | None = None
        self._rounds = 0
        self._is_settled = True

    @property
    def weights(self) -> Array:
        """A(x) for each record of the support, summing to the total."""
        return self._weights * (self.total / self._mass)

    @property
    def cache_bytes(self) -> int:
        """Memory of the kept cell indices."""
        return self._projections.cache_bytes

    @property
    def answers(self) -> Array:
        """All of the workload's answers as of the last ``settle``, in the order of ``places``."""
        if self._scaled is None:
            self._scaled = self._answers * (self.total / self._settled_mass)
        return self._scaled

    @property
    def places(self) -> dict[Attrs, slice]:
        """The slice of ``answers`` that belongs to each marginal."""
        return self._projections.places

    def recount(self, weights: Array) -> Array:
        """All of the workload's answers under other weights."""
        return self._projections.count(weights)

    def model(self) -> Support:
        """The model with the current weights."""
        return self.start.with_weights(self._weights)

    def count(self, attrs: Attrs) -> Array:
        """The workload's answers as of the last ``settle``; other marginals are counted."""
        place = self._projections.places.get(attrs)
        return (
            self.model().count(attrs) if place is None else self.answers[place].reshape(self._shapes[attrs])
        )

    def asked(self, query: Query) -> Asked:
        """Find the records that a query is about."""
        records, shape = self.start.records, self.domain.project(query.attrs).shape
        positions = self.domain.index(query.attrs)
        if isinstance(query, Cell):
            is_in = np.ones(len(records), dtype=bool)
            for column, value in zip(positions, query.values, strict=True):
                is_in &= records[:, column] == value
            place = self._projections.places.get(query.attrs)
            cell = int(np.ravel_multi_index(query.values, shape)) if shape else 0
            position = None if place is None else place.start + cell
            return Asked(query, np.flatnonzero(is_in), None, position, 0.0, 1.0)
        phi = query.transpose(np.ones(1), shape)
        values = np.broadcast_to(phi[tuple(records[:, column] for column in positions)], len(records))
        where = np.flatnonzero(values)
        return Asked(query, where, values[where], None, float(phi.min()), float(phi.max()))

    def answer(self, asked: Asked) -> float:
        """q(A) from the current weights, updates of this round included."""
        if self._is_settled and asked.position is not None:
            return float(self._answers[asked.position]) * (self.total / self._mass)
        weights = self._weights[asked.where]
        found = float(weights.sum() if asked.values is None else weights @ asked.values)
        return found * (self.total / self._mass)

    def update(self, asked: Asked, step: float) -> None:
        """A(x) ∝ A(x)·exp(φ(x)·step), with a step of at most 30 either way."""
        # Where noise is far above n a step could overflow; e³⁰ already outweighs all earlier updates.
        step = max(-_MOST_STEP, min(step, _MOST_STEP))
        exponents: float | Array = step if asked.values is None else step * asked.values
        before = self._weights[asked.where]
        after = before * (exp(step) if asked.values is None else np.exp(exponents))
        self._exponents[asked.where] += exponents
        self._weights[asked.where] = after
        # After a long step, the rounding of the difference may exceed all that is left: sum again.
        self._mass = float(self._weights.sum() if abs(step) > 1 else self._mass + (after - before).sum())
        self._is_settled = False
        if not self.total / _MOST_MASS < self._mass < self.total * _MOST_MASS:
            self.settle()

    def settle(self) -> None:
        """Bring the workload's answers up to date with the updates since the last time."""
        changed = self._exponents != 0
        if 2 * np.count_nonzero(changed) > changed.size:
            # Most records changed: the exponent that most of them have in common becomes the rescaling.
            middle = changed.size // 2
            common = float(np.partition(self._exponents, middle)[middle])
            if abs(common) < _MOST_COMMON:
                changed = self._exponents != common
                self._weights *= exp(-common)
                # The others are what they were, to the last bit, so that no rounding adds up.
                self._weights[~changed] = self._settled[~changed]
        where = np.flatnonzero(changed)
        self._rounds += 1
        mass = float(self._weights.sum())
        is_far = not self.total / _MOST_MASS < mass < self.total * _MOST_MASS
        if is_far or self._rounds % _ROUNDS_BETWEEN_RECOUNTS == 0 or 4 * where.size > 3 * changed.size:
            self._weights *= self.total / mass
            self._answers = self._projections.count(self._weights)
        elif where.size:
            self._projections.add(self._answers, where, self._weights[where] - self._settled[where])
        self._settled[:] = self._weights
        self._mass = self._settled_mass = float(self._weights.sum())
        self._exponents[:] = 0.0
        self._scaled = None
        self._is_settled = True
