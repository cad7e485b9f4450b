"""Marginals that were measured through products of matrices: least squares, with their exact covariance.

    x̂ = (A₁⁺ ⊗ … ⊗ A_k⁺) y,      Cov x̂ = σ² (C₁ ⊗ … ⊗ C_k),      C_i = (A_iᵀA_i)⁻¹

Several such marginals stand side by side: each answers what lies within it, and where several do, the one
that is most precise there.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sidelight._check import is_number
from sidelight.data.count_source import margin
from sidelight.data.domain import Attrs, Combination, Domain
from sidelight.errors import ReleaseError
from sidelight.measurement import Measurement
from sidelight.models.model import ModelState
from sidelight.queries.product import Product

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ProductEstimate:
    """One marginal with its covariance."""

    attrs: Attrs
    values: Array = field(repr=False)
    covariances: tuple[Array, ...] = field(repr=False)
    """The matrix C_i of each attribute."""
    variance: float
    """σ²."""

    @classmethod
    def of(cls, made: Measurement) -> "ProductEstimate":
        """The least-squares estimate from the answers to a product."""
        query = made.query
        if not isinstance(query, Product):
            raise TypeError(f"{query.describe()} is no product.")
        matrices = [matrix.astype(np.float64) for matrix in query.matrices]
        values = made.answer.reshape(query.shape)
        for axis, matrix in enumerate(matrices):
            values = np.moveaxis(np.tensordot(np.linalg.pinv(matrix), values, axes=(1, axis)), 0, axis)
        covariances = tuple(np.asarray(np.linalg.pinv(matrix.T @ matrix)) for matrix in matrices)
        return cls(query.attrs, values, covariances, made.stddev**2)

    def variance_of(self, weights: Sequence[Array | None]) -> Array:
        """The variance of all cells of a marginal, or of a weighted sum along some attributes.

        For each attribute: None for all of its values, each by itself, or weights that it is summed with.
        """
        found = np.array(self.variance)
        for covariance, given in zip(self.covariances, weights, strict=True):
            each = np.diag(covariance) if given is None else np.array([given @ covariance @ given])
            found = np.multiply.outer(found, each)
        return found

    def variance_of_sum(self, weights: Array) -> float:
        """The variance of a weighted sum over all cells."""
        turned = weights
        for axis, covariance in enumerate(self.covariances):
            turned = np.moveaxis(np.tensordot(covariance, turned, axes=(1, axis)), 0, axis)
        return self.variance * float((weights * turned).sum())


@dataclass(frozen=True, eq=False)
class Products:
    """Marginals measured through products; what ``Residuals`` is for those measured through residuals."""

    domain: Domain
    estimates: tuple[ProductEstimate, ...]
    known_total: float | None = None
    """Where n is public."""

    @cached_property
    def total(self) -> float:
        """The number of records, at least 1: the public one, or the most precise sum."""
        known = self.known_total
        return max(1.0, float(self._best(()).values.sum()) if known is None else known)

    @property
    def maximal(self) -> list[Attrs]:
        """The attribute sets that were measured."""
        return [one.attrs for one in self.estimates]

    def holds(self, attrs: Iterable[str]) -> bool:
        """Whether some measured marginal holds these attributes; those of one value count for nothing."""
        told = set(self.domain.varying(attrs))
        return any(told <= set(one.attrs) for one in self.estimates)

    def count(self, attrs: Attrs) -> Array:
        """The marginal on these attributes, axes in the order asked."""
        best = self._best(attrs)
        found = margin(best.values, best.attrs, [attr for attr in attrs if attr in best.attrs])
        return found.reshape([self.domain.sizes[attr] for attr in attrs])

    def variance(self, attrs: Attrs) -> Array:
        """The variance of each cell of this marginal."""
        best = self._best(attrs)
        # Of attributes that are summed over, there is one variance each.
        variances = self._variances(best, attrs)
        found = margin(variances, best.attrs, [attr for attr in attrs if attr in best.attrs])
        return found.reshape([self.domain.sizes[attr] for attr in attrs])

    def variance_of_sum(self, attrs: Attrs, weights: ArrayLike) -> float:
        """The variance of a weighted sum over the cells of this marginal; the weights have its shape."""
        best = self._best(attrs)
        told = [attr for attr in attrs if attr in best.attrs]
        given = np.asarray(weights, dtype=np.float64).reshape([self.domain.sizes[attr] for attr in told])
        ordered = [attr for attr in best.attrs if attr in told]
        given = given.transpose([told.index(attr) for attr in ordered])
        shape = [self.domain.sizes[attr] if attr in told else 1 for attr in best.attrs]
        return best.variance_of_sum(np.broadcast_to(given.reshape(shape), best.values.shape))

    def state(self, *, is_clipped: bool) -> ModelState:
        """All estimates, with what their covariances are made of."""
        arrays: dict[str, NDArray[Any]] = {}
        for number, one in enumerate(self.estimates):
            arrays[f"values_{number}"] = one.values
            for axis, covariance in enumerate(one.covariances):
                arrays[f"covariance_{number}_{axis}"] = covariance
        meta = {
            "total": self.total,
            "known_total": self.known_total,
            "is_clipped": is_clipped,
            "impossible": impossible_to_json(self.domain),
            "products": [[list(one.attrs), one.variance] for one in self.estimates],
        }
        return ModelState("residuals", meta, arrays)

    @classmethod
    def from_state(cls, domain: Domain, state: ModelState) -> "Products":
        """The estimates that ``state`` wrote down."""
        found = []
        for number, (names, variance) in enumerate(state.meta["products"]):
            attrs = tuple(names)
            shape = domain.project(attrs).shape
            values = state.arrays[f"values_{number}"].astype(np.float64).reshape(shape)
            covariances = tuple(
                state.arrays[f"covariance_{number}_{axis}"].astype(np.float64).reshape(size, size)
                for axis, size in enumerate(shape)
            )
            if not is_number(variance) or not 0 <= variance < np.inf or attrs != domain.canonical(attrs):
                raise ReleaseError("a saved model's products must have variances; they were edited.")
            if not all(np.isfinite(table).all() for table in (values, *covariances)):
                raise ReleaseError("a saved model's products must be finite numbers; they were edited.")
            found.append(ProductEstimate(attrs, values, covariances, float(variance)))
        if not found:
            raise ReleaseError("a saved model must hold some marginal; it was edited.")
        known = None if state.meta["known_total"] is None else state.total
        return cls(domain, tuple(found), known)

    def _variances(self, one: ProductEstimate, attrs: Iterable[str]) -> Array:
        wanted = set(attrs)
        return one.variance_of(
            [None if attr in wanted else np.ones(self.domain.sizes[attr]) for attr in one.attrs]
        )

    def _best(self, attrs: Iterable[str]) -> ProductEstimate:
        """The estimate that holds these attributes with the least variance on the mean."""
        told = set(self.domain.varying(attrs))
        holding = [one for one in self.estimates if told <= set(one.attrs)]
        return min(holding, key=lambda one: float(self._variances(one, told).mean()))


def impossible_to_json(domain: Domain) -> list[Any]:
    """The domain's impossible combinations, as plain values."""
    return [[list(one.attrs), list(map(list, one.values))] for one in domain.impossible]


def with_impossible(domain: Domain, plain: Sequence[Any]) -> Domain:
    """A domain with the impossible combinations that ``impossible_to_json`` wrote down."""
    combinations = tuple(Combination(tuple(attrs), tuple(map(tuple, codes))) for attrs, codes in plain)
    return Domain(domain.attrs, domain.shape, combinations)
