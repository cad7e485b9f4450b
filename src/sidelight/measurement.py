"""MEASURE: a noisy answer with its standard deviation, and the two draws that make one."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Literal, Self

import numpy as np
from numpy.typing import NDArray

from sidelight.data.count_source import CountSource
from sidelight.data.domain import Attrs, Domain
from sidelight.privacy import event
from sidelight.privacy.budget import Cost, Rho
from sidelight.privacy.event import Gaussian, Gaussians, Laplace
from sidelight.privacy.noise import NoiseSource, discrete_gaussian, discrete_laplace
from sidelight.privacy.unit import Unit
from sidelight.queries.query import Marginal, Query
from sidelight.queries.query import answer as answer_of
from sidelight.queries.strategy import Strategy

Array = NDArray[np.float64]
NoiseKind = Literal["gaussian", "laplace"]


@dataclass(frozen=True, eq=False)
class Measurement:
    """An answer of the curator: the query, the noisy numbers as a flat vector, and σ of each."""

    query: Query
    answer: Array = field(repr=False)
    stddev: float
    predicted: Array | None = field(default=None, repr=False)
    """The prediction of a model that had not seen this answer; None where no model was asked."""

    def against(self, model: CountSource) -> Self:
        """The same measurement with a model's prediction, from which the model's error is learned.

        >>> from sidelight.models.histogram import Histogram
        >>> made = Measurement(Marginal(("a",)), np.array([30.0, 10.0]), 1.0)
        >>> made.against(Histogram.uniform(Domain.of({"a": 2}), total=40.0)).predicted
        array([20., 20.])
        """
        return replace(self, predicted=np.asarray(answer_of(self.query, model), dtype=np.float64).reshape(-1))

    def averaged(self, *others: "Measurement") -> "Measurement":
        """The inverse-variance mean with other answers to the same query, whose noise is independent.

        >>> made = Measurement(Marginal(()), np.array([10.0]), 1.0)
        >>> mean = made.averaged(Measurement(Marginal(()), np.array([16.0]), 2.0**0.5))
        >>> mean.answer.round(3).tolist(), round(mean.stddev, 3)
        ([12.0], 0.816)
        """
        every = (self, *others)
        precision = sum(one.precision for one in every)
        answer = sum(one.precision * one.answer for one in every) / precision
        return Measurement(self.query, np.asarray(answer), 1 / math.sqrt(precision))

    @property
    def precision(self) -> float:
        """1/σ², the weight of this measurement in a least-squares fit."""
        return 1.0 / self.stddev**2


def measuring(query: Query, cost: Cost, unit: Unit, *, noise: NoiseKind | None = None) -> Gaussian | Laplace:
    """The event of measuring a query: Gaussian noise for zCDP, Laplace for pure ε, or the ``noise`` named.

    >>> from fractions import Fraction
    >>> from sidelight.queries.query import Marginal
    >>> measuring(Marginal(("age",)), Rho(Fraction(1, 2)), Unit("replace")).variance
    Fraction(2, 1)
    """
    # The noise is drawn in multiples of the resolution, so the sensitivity is counted in them too.
    step = query.resolution
    if isinstance(cost, Rho) and noise != "laplace":
        return Gaussian.at(cost, what=query.describe(), l2_squared=query.l2_squared(unit) / step**2)
    return Laplace.at(cost, what=query.describe(), l1=query.l1(unit) / step)


def measuring_together(strategy: Strategy, rho: Rho, unit: Unit) -> Gaussians:
    """The event of measuring all queries of a strategy at once."""
    return Gaussians.at(
        rho,
        what=f"{len(strategy.queries):,} queries together",
        numbers=sum(query.cells(strategy.closure.domain) for query in strategy.queries),
        loss=strategy.loss(unit),
        largest=max(strategy.variances),
    )


def stddev_of(query: Query, cost: Cost, unit: Unit, *, noise: NoiseKind | None = None) -> float:
    """σ of each number, if a query is measured at this cost."""
    return measuring(query, cost, unit, noise=noise).stddev * float(query.resolution)


def gaussian(
    noise: NoiseSource, exact: NDArray[np.int64], event: event.Gaussian | event.Threshold
) -> NDArray[np.int64]:
    """y = q(D) + 𝒩_ℤ(0, σ²): exact counts plus discrete Gaussian noise of the variance that was paid for.

    >>> from fractions import Fraction
    >>> from sidelight.privacy.budget import Rho
    >>> from sidelight.testing import SeededNoise
    >>> paid = event.Gaussian.at(Rho(Fraction(1, 2)), what="marginal (a)", l2_squared=Fraction(1))
    >>> gaussian(SeededNoise(7), np.array([10, 20, 30]), paid).shape
    (3,)
    """
    drawn = discrete_gaussian(noise, event.variance, exact.size)
    return _added(exact, drawn)


def gaussians(
    noise: NoiseSource, exact: NDArray[np.int64], variances: Sequence[Fraction], sizes: Sequence[int]
) -> NDArray[np.int64]:
    """Gaussian noise for parts of a vector, of these sizes, each with a variance of its own."""
    drawn = np.empty(exact.size, dtype=np.int64)
    place_of: dict[Fraction, list[NDArray[np.int64]]] = {}
    start = 0
    for variance, size in zip(variances, sizes, strict=True):
        place_of.setdefault(variance, []).append(np.arange(start, start + size))
        start += size
    for variance, places in place_of.items():
        together = np.concatenate(places)
        drawn[together] = discrete_gaussian(noise, variance, together.size)
    return _added(exact, drawn)


def laplace(noise: NoiseSource, exact: NDArray[np.int64], event: event.Laplace) -> NDArray[np.int64]:
    """y = q(D) + Lap_ℤ(b): exact counts plus discrete Laplace noise of the scale that was paid for.

    >>> from fractions import Fraction
    >>> from sidelight.privacy.budget import Epsilon
    >>> from sidelight.testing import SeededNoise
    >>> paid = event.Laplace.at(Epsilon(Fraction(1, 2)), what="marginal (a)", l1=Fraction(2))
    >>> laplace(SeededNoise(7), np.array([10, 20, 30]), paid).shape
    (3,)
    """
    drawn = discrete_laplace(noise, event.scale, exact.size)
    return _added(exact, drawn)


def _added(exact: NDArray[np.int64], drawn: NDArray[np.int64]) -> NDArray[np.int64]:
    # PRIVACY: integers added to integers; there is no rounding that could tell of the exact count.
    return exact.astype(np.int64, casting="safe") + drawn.reshape(exact.shape)


def noise_stddev(measurements: Sequence[Measurement], attrs: Attrs, domain: Domain) -> float | None:
    """σ of one cell of this marginal, if all measurements of it are averaged by inverse variance.

    A measured marginal on more attributes counts too: its cells are summed, so each cell's
    variance is σ² times the number of cells that fall into it. None if nothing measured it.

    >>> domain = Domain.of({"a": 2, "b": 8})
    >>> noise_stddev([Measurement(Marginal(("a", "b")), np.zeros(16), 5.0)], ("a",), domain)
    14.142135623730951
    """
    wanted = set(attrs)
    precision = 0.0
    for measurement in measurements:
        query = measurement.query
        if isinstance(query, Marginal) and wanted <= set(query.attrs):
            cells = domain.size(query.attrs) // domain.size(attrs)
            precision += measurement.precision / cells
    return 1 / math.sqrt(precision) if precision else None
