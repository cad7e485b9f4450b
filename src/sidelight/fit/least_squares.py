"""The data term: how far a model's answers are from the measurements, in units of their noise.

    L(μ) = Σ_i ½ Σ_j v_ij ((Q_i μ)_j − y_ij)²,     v = 1/σ² unless given

Measurements of one attribute set are brought together. Whole marginals and single cells become
one table of precisions and one of targets (repeats merge by inverse variance, which changes L by
a constant only); every other linear query is one line of a matrix. Tables hold
probabilities, so that L is the same number for p as for the counts μ = total · p.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sidelight.data.domain import Attrs, Domain
from sidelight.errors import DataError, SettingError, TooLargeError
from sidelight.measurement import Measurement
from sidelight.queries.query import Cell, Marginal
from sidelight.trees.arrays import Arrays
from sidelight.trees.nesting import inner_order

Array = NDArray[np.float64]

_MOST_MATRIX_CELLS = 1 << 27
"""Most entries of the matrix of sums measured on one attribute set: 1 GB."""


class LeastSquares:
    """All measurements as one quadratic function of the marginals on the measured attribute sets.

    They are one flat vector of probabilities: set after set, each with its axes in the order of inference.
    """

    def __init__(
        self,
        domain: Domain,
        measurements: Sequence[Measurement],
        *,
        total: float,
        precisions: Sequence[ArrayLike] | None,
        library: Arrays,
    ) -> None:
        gathered = _gather(domain, measurements, precisions)
        self.library = library
        self.sets = tuple(gathered)
        self.shapes = tuple(part.shape for part in gathered.values())
        ends = np.cumsum([0, *(part.precision.size for part in gathered.values())])
        self.slices = tuple(slice(int(low), int(high)) for low, high in pairwise(ends))
        self.cells = int(ends[-1])
        parts = list(gathered.values())
        self.precision = library.array(_joined([part.precision for part in parts]) * total**2)
        self._centre = library.array(_joined([part.centre for part in parts]) / total)
        self._constant = sum(part.disagreement for part in parts)
        self._lines = [
            (
                where,
                library.array(np.stack(part.lines)),
                library.array(np.array(part.line_precision) * total**2),
                library.array(np.array(part.line_answer) / total),
            )
            for where, part in zip(self.slices, parts, strict=True)
            if part.lines
        ]

    def loss(self, marginals: Any) -> float:
        """The objective L at these marginals."""
        away = marginals - self._centre
        loss = self._constant + 0.5 * self.library.dot(self.precision * away, away)
        for where, lines, precision, answer in self._lines:
            off = lines @ marginals[where] - answer
            loss += 0.5 * self.library.dot(precision * off, off)
        return loss

    def gradient(self, marginals: Any) -> Any:
        """The slope of L in each probability."""
        slope = self.precision * (marginals - self._centre)
        for where, lines, precision, answer in self._lines:
            slope[where] += (precision * (lines @ marginals[where] - answer)) @ lines
        return slope

    def curvature(self, change: Any) -> float:
        """The second derivative of L along a change of the marginals."""
        curve = self.library.dot(self.precision * change, change)
        for where, lines, precision, _ in self._lines:
            off = lines @ change[where]
            curve += self.library.dot(precision * off, off)
        return curve

    def steepness(self, marginals: Any) -> float:
        """About the largest curvature of L in the geometry of KL: max of precision × probability."""
        if not self.cells:
            return 1.0
        steep = self.library.greatest(self.precision * marginals)
        for where, lines, precision, _ in self._lines:
            steep += self.library.greatest(precision * ((lines * lines) @ marginals[where]))
        return steep if steep > 0 else 1.0


def _joined(parts: Sequence[Array]) -> Array:
    return np.concatenate(parts) if parts else np.zeros(0)


def _gather(
    domain: Domain, measurements: Sequence[Measurement], precisions: Sequence[ArrayLike] | None
) -> dict[Attrs, "_Gathered"]:
    if precisions is not None and len(precisions) != len(measurements):
        raise SettingError(
            f"precisions must be one for each of the {len(measurements)} measurements; got {len(precisions)}."
        )
    gathered: dict[Attrs, _Gathered] = {}
    for number, measurement in enumerate(measurements):
        measurement.query.check(domain)
        inner = inner_order(domain, measurement.query.attrs)
        part = gathered.setdefault(inner, _Gathered(domain, inner))
        part.add(measurement, measurement.precision if precisions is None else precisions[number])
    return gathered


def estimate_total(domain: Domain, measurements: Sequence[Measurement]) -> float:
    """The inverse-variance mean of all measured marginals' sums, at least 1 (spec 7.2)."""
    sums = [
        (float(np.sum(m.answer)), m.stddev**2 * domain.size(m.query.attrs))
        for m in measurements
        if isinstance(m.query, Marginal)
    ]
    if not sums:
        raise SettingError(
            "total must be given where no whole marginal was measured: sums of cells do not tell it."
        )
    exact = [value for value, variance in sums if variance == 0]
    if exact:
        return max(1.0, float(np.mean(exact)))
    weights = np.array([1 / variance for _, variance in sums])
    return max(1.0, float(np.dot(weights, [value for value, _ in sums]) / weights.sum()))


class _Gathered:
    """The measurements of one attribute set while they are brought together."""

    def __init__(self, domain: Domain, inner: Attrs) -> None:
        self.domain = domain
        self.inner = inner
        self.shape = domain.project(inner).shape
        cells = domain.size(inner)
        self.precision = np.zeros(cells)
        self.weighted = np.zeros(cells)
        self.weighted_square = 0.0
        self.lines: list[Array] = []
        self.line_precision: list[float] = []
        self.line_answer: list[float] = []

    def add(self, measurement: Measurement, precision: ArrayLike) -> None:
        query = measurement.query
        answer = np.asarray(measurement.answer, dtype=np.float64).reshape(-1)
        expected = query.cells(self.domain)
        given = np.asarray(precision, dtype=np.float64).reshape(-1)
        if len(answer) != expected or len(given) not in (1, expected):
            raise DataError(
                f"the measurement of {query.describe()} must have {expected} answers; got {len(answer)}, "
                f"with {len(given)} precisions."
            )
        weight = np.broadcast_to(given, answer.shape)
        if not np.isfinite(answer).all() or not np.isfinite(weight).all() or (weight < 0).any():
            raise DataError(
                f"the measurement of {query.describe()} must have finite answers and a stddev above 0; "
                f"got a stddev of {measurement.stddev}."
            )
        outer = tuple(self.shape[self.inner.index(attr)] for attr in query.attrs)
        if isinstance(query, Marginal):
            self._add_cells(self._turn(answer, query.attrs, outer), self._turn(weight, query.attrs, outer))
        elif isinstance(query, Cell):
            place = np.zeros(outer)
            place[query.values] = 1.0
            chosen = self._turn(place, query.attrs, outer)
            self._add_cells(chosen * answer[0], chosen * weight[0])
        else:
            if (len(self.lines) + len(answer)) * self.precision.size > _MOST_MATRIX_CELLS:
                raise TooLargeError(
                    f"too many sums of cells were measured on {' × '.join(self.inner)}: "
                    f"{len(self.lines)} sums over {self.precision.size:,} cells. "
                    "Measure the whole marginal instead."
                )
            for line in range(len(answer)):
                unit = np.zeros(len(answer))
                unit[line] = 1.0
                self.lines.append(self._turn(query.transpose(unit, outer), query.attrs, outer))
                self.line_precision.append(float(weight[line]))
                self.line_answer.append(float(answer[line]))

    def _add_cells(self, answer: Array, weight: Array) -> None:
        self.precision += weight
        self.weighted += weight * answer
        self.weighted_square += float(np.dot(weight, answer**2))

    def _turn(self, values: Array, attrs: Attrs, shape: tuple[int, ...]) -> Array:
        """The values with axes in the order of inference, flat."""
        turned = np.transpose(np.reshape(values, shape), [attrs.index(attr) for attr in self.inner])
        return np.ascontiguousarray(turned).reshape(-1)

    @property
    def centre(self) -> Array:
        """The inverse-variance mean of all that was measured of each cell; 0 where nothing was."""
        measured = self.precision > 0
        return np.divide(self.weighted, self.precision, out=np.zeros_like(self.weighted), where=measured)

    @property
    def disagreement(self) -> float:
        """The part of L that comes from repeats of a cell that differ; no model can change it."""
        return max(0.0, 0.5 * (self.weighted_square - float(np.dot(self.precision, self.centre**2))))
