"""Residuals of marginals: what a marginal says that no smaller one does.

    R_S = ⊗_{i∈S} (I − J/n_i)            the residual of the marginal on S is R_S M_S
    M_B = Σ_{S⊆B}  R_S M_S  repeated over B ∖ S, divided by n_{B∖S}

(J is the matrix of ones, n_i the number of values of attribute i, n_S their product.) Residuals are no
whole numbers, but C_S M_S with C_S = n_S R_S = ⊗(n_i I − J) is: so whole noise is added to it, exactly, and a
residual is R_S y / n_S. A record stands in one cell u of M_S and moves C_S M_S by the column c_u of C_S, with

    ⟨c_u, c_v⟩ = Π_{i∈S} (n_i (n_i − 1) where u and v agree, −n_i where they do not)
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sidelight.data.domain import Attrs, Domain
from sidelight.errors import WorkloadError
from sidelight.privacy.unit import Unit

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Residual:
    """C_S M_S = ⊗(n_i I − J) M_S: whole numbers, n_S times the residual of the marginal on S.

    >>> Residual(("sex",), (2,)).apply(np.array([7, 3]))
    array([ 4, -4])
    >>> Residual(("sex",), (2,)).l2_squared(Unit("add-or-remove"))
    Fraction(2, 1)
    """

    attrs: Attrs
    shape: tuple[int, ...]
    """How many values each attribute has."""

    @property
    def resolution(self) -> Fraction:
        return Fraction(1)

    def cells(self, domain: Domain) -> int:
        return math.prod(self.shape)

    def apply(self, counts: NDArray[Any]) -> NDArray[Any]:
        # PRIVACY: whole numbers stay whole: a product with n_i and a difference, axis by axis.
        for axis, size in enumerate(self.shape):
            counts = counts * size - counts.sum(axis=axis, keepdims=True)
        return counts.reshape(-1)

    def transpose(self, answer: NDArray[Any], shape: tuple[int, ...]) -> Array:
        return np.asarray(self.apply(np.asarray(answer, dtype=np.float64).reshape(shape)).reshape(shape))

    def l1(self, unit: Unit) -> Fraction:
        # PRIVACY: a column's entries are products of n_i − 1 and of −1, the latter n_i − 1 times.
        one = math.prod(2 * (size - 1) for size in self.shape)
        return Fraction(unit.l1 * one)

    def l2_squared(self, unit: Unit) -> Fraction:
        # PRIVACY: k records at most, each moved by a column; two columns are furthest apart where they
        # disagree in one attribute, that with the fewest values.
        one = math.prod(size * (size - 1) for size in self.shape)
        least = min(self.shape, default=1)
        moves = {
            "add-or-remove": Fraction(one),
            "replace": Fraction(2 * one * least, least - 1) if least > 1 else Fraction(0),
        }
        return unit.records**2 * max(moves[relation] for relation in unit.relations)

    def check(self, domain: Domain) -> None:
        domain.require(self.attrs)
        if len(set(self.attrs)) < len(self.attrs) or domain.project(self.attrs).shape != self.shape:
            raise WorkloadError(f"{self.describe()} must have the shape of its attributes, each named once.")

    def describe(self) -> str:
        return f"residual({' × '.join(self.attrs)})"

    def as_json(self) -> dict[str, Any]:
        return {"query": "residual", "attrs": list(self.attrs), "shape": list(self.shape)}
