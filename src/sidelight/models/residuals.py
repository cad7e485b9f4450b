"""Marginals as sums of residuals: one estimate and one variance for each, and any marginal from them.

    M_B = Σ_{S⊆B}  r_S repeated over B ∖ S, divided by n_{B∖S}          r_S = R_S M_S

A noisy marginal on A, with variance σ² a cell, splits into one residual for each S ⊆ A: the sum over A ∖ S,
centred along every axis. Its noise has the covariance σ² n_{A∖S} R_S, and residuals of one marginal have
nothing to do with each other. So the least-squares fit to any number of noisy marginals takes, for each S
by itself, the inverse-variance mean of the residuals that hold it; there is no tree, and no table larger
than a marginal. With v_S for the variance of that mean, a cell of M_B has the variance

    Σ_{S⊆B} v_S μ_S n_S / n_B²,        μ_S = Π_{i∈S} (n_i − 1)

and a sum of cells with weights q has Σ_S v_S ‖R_S q_S‖² / n_{B∖S}², where q_S sums q over B ∖ S.

McKenna, Miklau, Hay, Machanavajjhala (2018), "Optimizing error of high-dimensional statistical queries under
differential privacy"; Xiao, He, Zhang, Kifer (2023), "An optimal and scalable matrix mechanism for noisy
marginals under convex loss functions"; Mullins, Fuentes, Xiao, Kifer, Musco, Sheldon (2024), "Efficient and
private marginal reconstruction with local non-negativity"; spec 7.5.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sidelight.data.count_source import margin
from sidelight.data.domain import Attrs, Domain
from sidelight.errors import SettingError
from sidelight.measurement import Measurement
from sidelight.queries.query import Fourier, Marginal
from sidelight.queries.residual import Residual
from sidelight.queries.strategy import subsets

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Estimate:
    """One residual: its values over the attributes it is about, and v, where its covariance is v R_S."""

    values: Array = field(repr=False)
    variance: float

    def averaged(self, other: "Estimate") -> "Estimate":
        """The inverse-variance mean of two; what is exact stays."""
        if self.variance == 0.0:
            return self
        if other.variance == 0.0:
            return other
        ours, theirs = 1.0 / self.variance, 1.0 / other.variance
        mean = (ours * self.values + theirs * other.values) / (ours + theirs)
        return Estimate(mean, 1.0 / (ours + theirs))


@dataclass(frozen=True, eq=False)
class Residuals:
    """A table by its residuals: those that are known, by attribute sets in the order of the domain.

    >>> domain = Domain.of({"a": 2, "b": 2})
    >>> made = Measurement(Marginal(("a", "b")), np.array([5.0, 3.0, 1.0, 1.0]), 2.0)
    >>> known = Residuals.of(domain, [made])
    >>> known.count(("a",)), known.variance(("a",)), known.variance(("a", "b"))
    (array([8., 2.]), 8.0, 4.0)
    """

    domain: Domain
    parts: Mapping[Attrs, Estimate]

    @classmethod
    def of(
        cls, domain: Domain, measurements: Iterable[Measurement], *, total: float | None = None
    ) -> "Residuals":
        """The least-squares fit to noisy marginals and residuals; the total is exact where it is given."""
        exact: dict[Attrs, Estimate] = {} if total is None else {(): Estimate(np.array(float(total)), 0.0)}
        return cls(domain, exact).adding(measurements)

    def adding(self, measurements: Iterable[Measurement]) -> "Residuals":
        """The fit to some measurements more."""
        parts = dict(self.parts)
        for made in measurements:
            for attrs, found in split(self.domain, made):
                parts[attrs] = found.averaged(parts[attrs]) if attrs in parts else found
        return Residuals(self.domain, parts)

    @property
    def total(self) -> float:
        """The number of records, at least 1."""
        return max(1.0, float(self.parts[()].values))

    @cached_property
    def maximal(self) -> list[Attrs]:
        """The largest attribute sets whose marginals are known: those that lie within no other."""
        within = {below for attrs in self.parts for below in _smaller(attrs)}
        return [attrs for attrs in self.parts if attrs not in within]

    def holds(self, attrs: Iterable[str]) -> bool:
        """Whether the marginal on these attributes is known, with all of its residuals."""
        told = self.domain.varying(attrs)
        return told in self.parts and all(below in self.parts for below in subsets(told))

    def count(self, attrs: Attrs) -> Array:
        """The marginal on these attributes, as far as its residuals are known; axes in the order asked."""
        ordered = self.domain.canonical(attrs)
        shape = tuple(self.domain.sizes[attr] for attr in ordered)
        cells = math.prod(shape)
        found: Array = np.zeros(shape)
        for below in subsets(self.domain.varying(attrs)):
            if below in self.parts:
                values = self.parts[below].values
                around = [size if attr in below else 1 for attr, size in zip(ordered, shape, strict=True)]
                found += values.reshape(around) * (values.size / cells)
        return found if ordered == attrs else found.transpose([ordered.index(attr) for attr in attrs])

    def variance(self, attrs: Attrs) -> float:
        """The variance of each cell of this marginal: all of them have the same."""
        told = self.domain.varying(attrs)
        cells = self.domain.size(told)
        return sum(
            self.parts[below].variance * self._contrasts(below) * self.parts[below].values.size / cells**2
            for below in subsets(told)
            if below in self.parts
        )

    def variance_of_sum(self, attrs: Attrs, weights: ArrayLike) -> float:
        """The variance of a weighted sum over the cells of this marginal; the weights have its shape."""
        told = self.domain.varying(attrs)
        given = margin(np.asarray(weights, dtype=np.float64), attrs, told)
        found = 0.0
        for below in subsets(told):
            if below in self.parts:
                folded = centred(margin(given, told, below))
                part = self.parts[below]
                found += part.variance * float((folded**2).sum()) * (part.values.size / given.size) ** 2
        return found

    def with_values(self, values: Mapping[Attrs, Array]) -> "Residuals":
        """The same variances with other values for some residuals."""
        changed = {attrs: Estimate(given, self.parts[attrs].variance) for attrs, given in values.items()}
        return Residuals(self.domain, {**self.parts, **changed})

    def _contrasts(self, attrs: Attrs) -> int:
        return math.prod(self.domain.sizes[attr] - 1 for attr in attrs)


def split(domain: Domain, made: Measurement) -> list[tuple[Attrs, Estimate]]:
    """The residuals that a noisy marginal, residual or Fourier coefficient tells of.

    >>> made = Measurement(Marginal(("a", "b")), np.array([5.0, 3.0, 1.0, 1.0]), 2.0)
    >>> [(attrs, found.variance) for attrs, found in split(Domain.of({"a": 2, "b": 2}), made)]
    [((), 16.0), (('a',), 8.0), (('b',), 8.0), (('a', 'b'), 4.0)]
    """
    query, variance = made.query, made.stddev**2
    shape = tuple(domain.sizes[attr] for attr in query.attrs)
    if isinstance(query, Residual):
        cells = math.prod(shape)
        return [(query.attrs, Estimate(centred(made.answer.reshape(shape)) / cells, variance / cells**2))]
    if isinstance(query, Fourier):
        # φ_S says all of the residual of S: ±φ_S / 2^|S| in each cell, by the parity of its codes.
        attrs, cells = domain.canonical(query.attrs), math.prod(shape)
        signs = 1.0 - 2.0 * (np.indices(shape).sum(axis=0) % 2)
        return [(attrs, Estimate(float(made.answer[0]) / cells * signs, variance / cells))]
    if not isinstance(query, Marginal):
        raise SettingError(
            f"residuals are reconstructed from whole marginals; {query.describe()} is none. Use another "
            "estimator, or ask for marginals."
        )
    told = domain.varying(query.attrs)
    answer = margin(made.answer.reshape(shape), query.attrs, told)
    found = []
    for below in subsets(told):
        values = centred(margin(answer, told, below))
        found.append((below, Estimate(values, variance * (answer.size / values.size))))
    return found


def residual_of(domain: Domain, made: Measurement, attrs: Attrs) -> Estimate:
    """One residual of a noisy marginal; its ``attrs`` vary, and stand in the domain's order.

    >>> made = Measurement(Marginal(("b", "a")), np.array([5.0, 1.0, 3.0, 1.0]), 2.0)
    >>> residual_of(Domain.of({"a": 2, "b": 2}), made, ("a",))
    Estimate(variance=8.0)
    """
    held = made.query.attrs
    table = made.answer.reshape([domain.sizes[attr] for attr in held])
    summed = margin(table, held, attrs)
    return Estimate(centred(summed), made.stddev**2 * (table.size / summed.size))


def centred(table: Array) -> Array:
    """R_S of a table: its mean taken off along every axis."""
    for axis in range(table.ndim):
        table = table - table.mean(axis=axis, keepdims=True)
    return table


def _smaller(attrs: Attrs) -> Iterable[Attrs]:
    return (attrs[:place] + attrs[place + 1 :] for place in range(len(attrs)))
