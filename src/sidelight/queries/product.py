"""Products of one-attribute questions: whole-number matrices, one an attribute, applied to a marginal."""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sidelight.data.domain import Attrs, Domain
from sidelight.errors import WorkloadError
from sidelight.privacy.unit import Unit

Array = NDArray[np.float64]
Lines = tuple[tuple[int, ...], ...]
"""A matrix of whole numbers, none negative: one line a question."""


@dataclass(frozen=True)
class Product:
    """(A₁ ⊗ … ⊗ A_k) M: every product of a line of each matrix, asked of the marginal on their attributes.

    >>> query = Product(("age",), (((1, 1, 0), (0, 0, 1)),))
    >>> query.apply(np.array([3, 4, 5])), query.l2_squared(Unit("replace"))
    (array([7, 5]), Fraction(2, 1))
    """

    attrs: Attrs
    factors: tuple[Lines, ...]

    @cached_property
    def matrices(self) -> tuple[NDArray[np.int64], ...]:
        """The factors as arrays."""
        return tuple(np.array(lines, dtype=np.int64) for lines in self.factors)

    @property
    def shape(self) -> tuple[int, ...]:
        """How many lines each factor has."""
        return tuple(len(lines) for lines in self.factors)

    @property
    def resolution(self) -> Fraction:
        return Fraction(1)

    def cells(self, domain: Domain) -> int:
        return math.prod(self.shape)

    def apply(self, counts: NDArray[Any]) -> NDArray[Any]:
        # PRIVACY: whole numbers stay whole.
        for axis, matrix in enumerate(self.matrices):
            counts = np.moveaxis(np.tensordot(matrix, counts, axes=(1, axis)), 0, axis)
        return counts.reshape(-1)

    def transpose(self, answer: NDArray[Any], shape: tuple[int, ...]) -> Array:
        found = np.asarray(answer, dtype=np.float64).reshape(self.shape)
        for axis, matrix in enumerate(self.matrices):
            found = np.moveaxis(np.tensordot(matrix.T, found, axes=(1, axis)), 0, axis)
        return found.reshape(shape)

    def l1(self, unit: Unit) -> Fraction:
        # PRIVACY: a record adds one column of each factor, multiplied; a replaced one takes another away.
        return Fraction(unit.l1 * math.prod(int(matrix.sum(axis=0).max()) for matrix in self.matrices))

    def l2_squared(self, unit: Unit) -> Fraction:
        # PRIVACY: no entry is negative, so two columns are at most as far apart as orthogonal ones.
        longest = math.prod(int((matrix**2).sum(axis=0).max()) for matrix in self.matrices)
        return Fraction(unit.l2_squared * longest)

    def check(self, domain: Domain) -> None:
        domain.require(self.attrs)
        sizes = [{len(line) for line in lines} for lines in self.factors]
        wanted = [{domain.sizes[attr]} for attr in self.attrs]
        if len(set(self.attrs)) < len(self.attrs) or sizes != wanted:
            raise WorkloadError(
                f"{self.describe()} must have a number for each value of each attribute, named once each."
            )
        if min(min(line) for lines in self.factors for line in lines) < 0:
            raise WorkloadError(f"{self.describe()} must have no number below 0.")

    def describe(self) -> str:
        return f"product({' × '.join(self.attrs)})"

    def as_json(self) -> dict[str, Any]:
        factors = [[list(line) for line in lines] for lines in self.factors]
        return {"query": "product", "attrs": list(self.attrs), "factors": factors}
