"""Linear questions about a few attributes, each with its sensitivity.

Every query is a linear function of one marginal: ``apply`` takes that marginal's counts to a
vector of answers, and ``transpose`` takes a vector back. On a table of records the answers
are whole multiples of ``resolution``, so that exact integer noise can be added to them.

Sensitivities (spec 1.5) come from the unit, and from nowhere else.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sidelight._check import brief
from sidelight.data.count_source import CountSource
from sidelight.data.domain import Attrs, Domain
from sidelight.errors import WorkloadError
from sidelight.privacy.unit import Unit
from sidelight.queries.merged import Merged
from sidelight.queries.product import Product
from sidelight.queries.residual import Residual

Array = NDArray[np.float64]


@runtime_checkable
class Query(Protocol):
    """A linear question about a few attributes; its answer is a vector."""

    @property
    def attrs(self) -> Attrs: ...
    @property
    def resolution(self) -> Fraction: ...
    def cells(self, domain: Domain) -> int: ...
    def apply(self, counts: NDArray[Any]) -> NDArray[Any]: ...
    def transpose(self, answer: NDArray[Any], shape: tuple[int, ...]) -> Array: ...
    def l1(self, unit: Unit) -> Fraction: ...
    def l2_squared(self, unit: Unit) -> Fraction: ...
    def check(self, domain: Domain) -> None: ...
    def describe(self) -> str: ...
    def as_json(self) -> dict[str, Any]: ...


def answer(query: Query, source: CountSource) -> NDArray[Any]:
    """The answers of a table or a model, as one flat vector."""
    return query.apply(source.count(query.attrs))


@dataclass(frozen=True)
class Marginal:
    """All counts over some attributes; a cuboid.

    >>> Marginal(("age", "sex")).l2_squared(Unit("replace"))
    Fraction(2, 1)
    """

    attrs: Attrs

    @property
    def resolution(self) -> Fraction:
        return Fraction(1)

    def cells(self, domain: Domain) -> int:
        return domain.size(self.attrs)

    def apply(self, counts: NDArray[Any]) -> NDArray[Any]:
        return counts.reshape(-1)

    def transpose(self, answer: NDArray[Any], shape: tuple[int, ...]) -> Array:
        return np.asarray(answer, dtype=np.float64).reshape(shape)

    def l1(self, unit: Unit) -> Fraction:
        # PRIVACY: each record stands in one cell, so it moves the counts by unit.l1 in L1.
        return Fraction(unit.l1)

    def l2_squared(self, unit: Unit) -> Fraction:
        return Fraction(unit.l2_squared)

    def check(self, domain: Domain) -> None:
        domain.require(self.attrs)
        _distinct(self.attrs)

    def describe(self) -> str:
        return " × ".join(self.attrs) or "total"

    def as_json(self) -> dict[str, Any]:
        return {"query": "marginal", "attrs": list(self.attrs)}


class _Scalar:
    """A query with one number as its answer: Σ_x φ(x_attrs), φ between ``low`` and ``high``."""

    attrs: Attrs
    low: Fraction | int = 0
    high: Fraction | int = 1

    @property
    def resolution(self) -> Fraction:
        return Fraction(1)

    def cells(self, domain: Domain) -> int:
        return 1

    def weights(self, shape: tuple[int, ...]) -> NDArray[Any]:
        raise TypeError(f"{type(self).__name__} does not say what it weighs.")

    def apply(self, counts: NDArray[Any]) -> NDArray[Any]:
        return np.atleast_1d((counts * self.weights(counts.shape)).sum())

    def transpose(self, answer: NDArray[Any], shape: tuple[int, ...]) -> Array:
        return float(np.asarray(answer).reshape(())) * self.weights(shape).astype(np.float64)

    def l1(self, unit: Unit) -> Fraction:
        # PRIVACY: a replaced record can move φ from its lowest to its highest value (spec 9.2, N2).
        return unit.scalar(self.low, self.high)

    def l2_squared(self, unit: Unit) -> Fraction:
        return self.l1(unit) ** 2


@dataclass(frozen=True)
class Cell(_Scalar):
    """The count of one cell of a marginal.

    >>> Cell(("sex",), (1,)).apply(np.array([3, 4]))
    array([4])
    """

    attrs: Attrs
    values: tuple[int, ...]

    def weights(self, shape: tuple[int, ...]) -> NDArray[Any]:
        weights = np.zeros(shape, dtype=np.int64)
        weights[self.values] = 1
        return weights

    def apply(self, counts: NDArray[Any]) -> NDArray[Any]:
        return np.atleast_1d(counts[self.values])

    def check(self, domain: Domain) -> None:
        if len(self.values) != len(self.attrs):
            raise WorkloadError(
                f"a cell of {' × '.join(self.attrs)} needs one code an attribute; got {len(self.values)}."
            )
        Range(tuple((a, v, v) for a, v in zip(self.attrs, self.values, strict=True))).check(domain)

    def describe(self) -> str:
        return ", ".join(f"{a} = #{v}" for a, v in zip(self.attrs, self.values, strict=True))

    def as_json(self) -> dict[str, Any]:
        return {"query": "cell", "attrs": list(self.attrs), "values": list(self.values)}


@dataclass(frozen=True)
class Range(_Scalar):
    """How many records fall into a box: for each attribute, codes from low to high, both included.

    >>> Range((("age", 2, 3),)).apply(np.array([1, 1, 5, 7, 1]))
    array([12])
    """

    bounds: tuple[tuple[str, int, int], ...]

    @property
    def attrs(self) -> Attrs:  # type: ignore[override]  # the box names them
        return tuple(attr for attr, _, _ in self.bounds)

    @property
    def _box(self) -> tuple[slice, ...]:
        return tuple(slice(low, high + 1) for _, low, high in self.bounds)

    def weights(self, shape: tuple[int, ...]) -> NDArray[Any]:
        weights = np.zeros(shape, dtype=np.int64)
        weights[self._box] = 1
        return weights

    def apply(self, counts: NDArray[Any]) -> NDArray[Any]:
        return np.atleast_1d(counts[self._box].sum())

    def check(self, domain: Domain) -> None:
        domain.require(self.attrs)
        _distinct(self.attrs)
        for attr, low, high in self.bounds:
            _require_integers(f"a range on {attr!r}", (low, high))
            if not 0 <= low <= high < domain.sizes[attr]:
                raise WorkloadError(
                    f"a range on {attr!r} must lie within codes 0 to {domain.sizes[attr] - 1}; "
                    f"got {low} to {high}."
                )

    def describe(self) -> str:
        return ", ".join(f"{a} in #{low}..#{high}" for a, low, high in self.bounds)

    def as_json(self) -> dict[str, Any]:
        return {"query": "range", "bounds": [list(bound) for bound in self.bounds]}


def Prefix(attr: str, high: int) -> Range:  # reads as a kind of query beside Range
    """How many records have a code of at most ``high``: a range from the first value."""
    return Range(((attr, 0, high),))


@dataclass(frozen=True)
class Linear(_Scalar):
    """Any weights φ in [-1, 1] on a marginal's cells, kept as whole multiples of 2⁻²⁰.

    >>> query = Linear.of(("sex",), [0.5, -1.0])
    >>> query.apply(np.array([4, 1])), query.l1(Unit("replace"))
    (array([1.]), Fraction(3, 2))
    """

    attrs: Attrs
    shape: tuple[int, ...]
    numerators: tuple[int, ...]

    _DENOMINATOR = 2**20

    @classmethod
    def of(cls, attrs: Attrs, values: ArrayLike) -> "Linear":
        """The query with these weights, rounded to multiples of 2⁻²⁰."""
        array = np.asarray(values, dtype=np.float64)
        if not (np.isfinite(array).all() and (np.abs(array) <= 1).all()):
            raise WorkloadError(
                f"a linear query on {' × '.join(attrs)} must have values between -1 and 1. "
                "Divide it by its largest absolute value."
            )
        numerators = np.rint(array * cls._DENOMINATOR).astype(np.int64)
        return cls(tuple(attrs), array.shape, tuple(numerators.reshape(-1).tolist()))

    @property
    def resolution(self) -> Fraction:
        return Fraction(1, self._DENOMINATOR)

    @property
    def low(self) -> Fraction:  # type: ignore[override]  # the least weight
        return Fraction(min(self.numerators), self._DENOMINATOR)

    @property
    def high(self) -> Fraction:  # type: ignore[override]  # the greatest weight
        return Fraction(max(self.numerators), self._DENOMINATOR)

    def weights(self, shape: tuple[int, ...]) -> NDArray[Any]:
        return np.array(self.numerators, dtype=np.float64).reshape(self.shape) / self._DENOMINATOR

    def apply(self, counts: NDArray[Any]) -> NDArray[Any]:
        if counts.dtype.kind not in "iu":
            return super().apply(counts)
        # PRIVACY: exact for any number of records: whole numbers, cut where a double would begin to round.
        numerators = np.array(self.numerators, dtype=np.int64).reshape(self.shape)
        steps = np.clip((counts * numerators).sum(), -(2**53), 2**53)
        return np.atleast_1d(steps / self._DENOMINATOR)

    def check(self, domain: Domain) -> None:
        domain.require(self.attrs)
        _distinct(self.attrs)
        expected = domain.project(self.attrs).shape
        if self.shape != expected:
            raise WorkloadError(
                f"a linear query on {self.describe()} has shape {self.shape}, not {expected}."
            )
        _require_integers(f"the numerators of {self.describe()}", self.numerators)
        if len(self.numerators) != math.prod(self.shape):
            raise WorkloadError(
                f"{self.describe()} has {len(self.numerators)} numerators for {math.prod(self.shape)} cells; "
                "give one a cell."
            )
        if max(map(abs, self.numerators)) > self._DENOMINATOR:
            raise WorkloadError(
                f"the numerators of {self.describe()} must lie between -2²⁰ and 2²⁰: they are weights "
                "between -1 and 1, in steps of 2⁻²⁰."
            )

    def describe(self) -> str:
        return f"linear({' × '.join(self.attrs)})"

    def as_json(self) -> dict[str, Any]:
        return {
            "query": "linear",
            "attrs": list(self.attrs),
            "shape": list(self.shape),
            "numerators": list(self.numerators),
        }


@dataclass(frozen=True)
class Fourier(_Scalar):
    """χ_a(x) = (-1)^{Σ x_i over a}: a Hadamard coefficient of binary attributes (spec 1.2).

    >>> Fourier(("a", "b")).apply(np.array([[5, 1], [2, 4]]))
    array([6])
    """

    attrs: Attrs

    @property
    def low(self) -> int:  # type: ignore[override]  # the empty coefficient is the total: always +1
        return -1 if self.attrs else 1

    def weights(self, shape: tuple[int, ...]) -> NDArray[Any]:
        weights = np.ones(shape, dtype=np.int64)
        for axis in range(len(shape)):
            index: list[slice] = [slice(None)] * len(shape)
            index[axis] = slice(1, None, 2)
            weights[tuple(index)] *= -1
        return weights

    def check(self, domain: Domain) -> None:
        domain.require(self.attrs)
        _distinct(self.attrs)
        wide = [attr for attr in self.attrs if domain.sizes[attr] != 2]
        if wide:
            raise WorkloadError(f"Fourier queries need binary attributes; {', '.join(wide)} are not.")

    def describe(self) -> str:
        return f"χ({' '.join(self.attrs)})"

    def as_json(self) -> dict[str, Any]:
        return {"query": "fourier", "attrs": list(self.attrs)}


def query_from_json(plain: dict[str, Any]) -> Query:
    """The query that ``as_json`` wrote. Types are checked here; ``check`` compares it with a domain."""
    match plain.get("query"):
        case "marginal":
            return Marginal(_names(plain["attrs"]))
        case "cell":
            attrs, values = _names(plain["attrs"]), _whole_numbers(plain["values"])
            if len(attrs) != len(values):
                raise WorkloadError("a cell must have one value for each of its attributes.")
            return Cell(attrs, values)
        case "range":
            bounds = tuple((attr, low, high) for attr, low, high in plain["bounds"])
            _names([attr for attr, _, _ in bounds])
            _whole_numbers([end for _, low, high in bounds for end in (low, high)])
            return Range(bounds)
        case "linear":
            shape, numerators = _whole_numbers(plain["shape"]), _whole_numbers(plain["numerators"])
            if not numerators or min(shape, default=1) < 1 or math.prod(shape) != len(numerators):
                raise WorkloadError("a linear query must have one numerator for each cell of its shape.")
            if max(map(abs, numerators)) > Linear._DENOMINATOR:
                raise WorkloadError(f"a linear query's numerators must lie within ±{Linear._DENOMINATOR:,}.")
            return Linear(_names(plain["attrs"]), shape, numerators)
        case "fourier":
            return Fourier(_names(plain["attrs"]))
        case "merged":
            groups = tuple(_whole_numbers(of_attr) for of_attr in plain["groups"])
            return Merged(_names(plain["attrs"]), groups)
        case "product":
            factors = tuple(tuple(map(_whole_numbers, lines)) for lines in plain["factors"])
            return Product(_names(plain["attrs"]), factors)
        case "residual":
            return Residual(_names(plain["attrs"]), _whole_numbers(plain["shape"]))
        case other:
            raise WorkloadError(f"unknown query {brief(other)}; it was written by a newer sidelight.")


def _names(given: Any) -> Attrs:
    if not isinstance(given, list | tuple) or not all(isinstance(name, str) for name in given):
        raise WorkloadError("a query's attributes must be a list of names.")
    return tuple(given)


def _whole_numbers(given: Any) -> tuple[int, ...]:
    if not isinstance(given, list | tuple) or not all(type(number) is int for number in given):
        raise WorkloadError("a query's values, bounds, shape and numerators must be whole numbers.")
    return tuple(given)


def _require_integers(what: str, values: Iterable[Any]) -> None:
    """Refuse a query that was made in Python with numbers that are not whole."""
    if not all(isinstance(value, int | np.integer) and not isinstance(value, bool) for value in values):
        raise WorkloadError(f"{what} must be whole numbers.")


def whole(query: Query, answers: NDArray[Any]) -> NDArray[np.int64]:
    """Exact answers in multiples of the query's resolution."""
    if query.resolution == 1:
        return np.asarray(answers).astype(np.int64)
    # Exact answers are whole multiples of 2⁻²⁰ up to 2³³, which a double holds and divides exactly.
    return np.rint(np.asarray(answers, dtype=np.float64) / float(query.resolution)).astype(np.int64)


def _distinct(attrs: Attrs) -> None:
    if len(set(attrs)) < len(attrs):
        raise WorkloadError(f"a query names an attribute twice: {', '.join(attrs)}.")


def expected_l1_noise(cells: int, stddev: float) -> float:
    """E‖noise‖₁ of Gaussian noise on that many cells: √(2/π) σ per cell."""
    return math.sqrt(2 / math.pi) * stddev * cells
