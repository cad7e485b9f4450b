"""Columns as people declare them: labels, or bounds and bins, and a place for everything else.

The codes of a column are, in this order,

    0 … declared − 1       the labels as listed, or the bins from low to high
    declared               "other", where ``outside = "other"``
    the last one           missing, where ``missing = true``

A bin is half-open, [eᵢ, eᵢ₊₁); the last bin of a real column also holds its upper edge.
"""

import sys
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import ClassVar, Literal, TypeVar

import numpy as np
import numpy.typing as npt

from sidelight._check import brief
from sidelight.errors import SchemaError

Label = str | int | float | bool
LabelKind = Literal["text", "integer", "real", "boolean"]
Outside = Literal["refuse", "other", "clamp"]

_T = TypeVar("_T")

LARGEST = 2**53 - 1
"""The largest whole number that every engine compares exactly, as a float64."""
MOST_CODES = 2**20
"""Most labels or bins of a column."""
LONGEST = 1000
"""Most characters of a label or of a column's name."""


@dataclass(frozen=True)
class Column(ABC):
    """How one column's values become codes. Declared beforehand, never learned from private data."""

    kind: ClassVar[str]
    outsides: ClassVar[tuple[str, ...]]
    """The choices for ``outside``."""

    name: str
    missing: bool = field(default=False, kw_only=True)
    """Whether missing values are a category of their own; otherwise they are refused."""
    outside: Outside = field(default="refuse", kw_only=True)
    """Where values outside the schema go: refused, to "other", or (numbers) to the nearest bin."""
    note: str = field(default="", kw_only=True, compare=False)
    """A comment, written above the column in a schema file; it changes nothing."""

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not _is_writable(self.name):
            raise SchemaError(
                f"a column's name must be text without null characters; got {brief(self.name)}."
            )
        if len(self.name) > LONGEST:
            raise SchemaError(
                f"the column name {brief(self.name)} is longer than {LONGEST:,} characters; shorten it."
            )
        if not isinstance(self.missing, bool):
            raise self._wrong(f"missing must be true or false; got {brief(self.missing)}")
        if self.outside not in self.outsides:
            listed = ", ".join(map(repr, self.outsides))
            raise self._wrong(f"outside must be one of {listed}; got {brief(self.outside)}")

    @property
    @abstractmethod
    def declared(self) -> int:
        """How many labels or bins there are."""

    @property
    @abstractmethod
    def value_kind(self) -> LabelKind:
        """What the values are once they are decoded."""

    @abstractmethod
    def code_labels(self) -> tuple[Label, ...]:
        """One readable label a code: the label itself, the bin, "other", "missing"."""

    @property
    def size(self) -> int:
        """How many codes there are."""
        return self.declared + (self.outside == "other") + self.missing

    @property
    def other_code(self) -> int | None:
        """The code of "other", where there is one."""
        return self.declared if self.outside == "other" else None

    @property
    def missing_code(self) -> int | None:
        """The code of missing values, where they are allowed."""
        return self.size - 1 if self.missing else None

    def _wrong(self, what: str) -> SchemaError:
        return SchemaError(f"column {brief(self.name)}: {what}.")

    def _check_codes(self, declared: int, what: str) -> None:
        """Refuse so many labels or bins before any of them is made."""
        if declared > MOST_CODES:
            raise self._wrong(
                f"it would have {declared:,} {what}, more than {MOST_CODES:,}. Declare fewer: wider bins "
                '(bins = …), or the labels that matter and outside = "other"'
            )

    def _special_labels(self) -> tuple[str, ...]:
        return ("other",) * (self.outside == "other") + ("missing",) * self.missing


@dataclass(frozen=True)
class CategoricalColumn(Column):
    """A column of labels, all of one type, which comes back on decoding.

    >>> CategoricalColumn("sex", ("female", "male"), missing=True).size
    3
    """

    kind: ClassVar[str] = "categorical"
    outsides: ClassVar[tuple[str, ...]] = ("refuse", "other")

    labels: tuple[Label, ...] = ()
    other_label: Label | None = field(default=None, kw_only=True)
    """What "other" decodes to: for text "other" unless declared, for numbers a missing value."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_codes(len(self.labels), "labels")
        for label in self.labels:
            self._check_label(label)
        kinds = {_kind_of(label) for label in self.labels}
        if kinds == {"integer", "real"}:
            object.__setattr__(self, "labels", tuple(float(label) for label in self.labels))
        elif len(kinds) > 1:
            raise self._wrong("labels must all be of one type (text, numbers, or true and false)")
        if len(set(self.labels)) < len(self.labels):
            twice = next(label for label, often in Counter(self.labels).items() if often > 1)
            raise self._wrong(f"labels must be distinct; {brief(twice)} appears twice")
        if not self.size:
            raise self._wrong("at least one label is needed")
        self._check_other()

    def _check_label(self, label: Label) -> None:
        if isinstance(label, str):
            if not _is_writable(label):
                raise self._wrong("labels must be text without null characters")
            if len(label) > LONGEST:
                raise self._wrong(
                    f"the label {brief(label)} is longer than {LONGEST:,} characters; write a short one, and "
                    "keep the long text elsewhere"
                )
        elif not isinstance(label, (bool, int, float)) or not abs(label) <= LARGEST:
            raise self._wrong(
                f"a numeric label must be finite and below 2^53; got {brief(label)} (declare it as text)"
            )

    def _check_other(self) -> None:
        if self.outside != "other":
            if self.other_label is not None:
                raise self._wrong('other_label needs outside = "other"')
            return
        if self.other_label is None:
            if self.value_kind == "text":
                object.__setattr__(self, "other_label", "other")
        elif self.labels and _kind_of(self.other_label) != self.value_kind:
            raise self._wrong(f"other_label must be of the labels' type ({self.value_kind})")
        if self.other_label is not None:
            self._check_label(self.other_label)
        if self.other_label in self.labels:
            raise self._wrong(
                f"{brief(self.other_label)} is a label: declare another other_label for outside values"
            )

    @property
    def declared(self) -> int:
        return len(self.labels)

    @property
    def value_kind(self) -> LabelKind:
        return _kind_of(self.labels[0]) if self.labels else "text"

    def code_labels(self) -> tuple[Label, ...]:
        return (*self.labels, *self._special_labels())


@dataclass(frozen=True)
class NumericColumn(Column):
    """A column of numbers between public bounds, in bins."""

    outsides: ClassVar[tuple[str, ...]] = ("refuse", "other", "clamp")

    low: float | None = None
    high: float | None = None
    bins: int | None = None
    edges: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.bins is not None and (_kind_of(self.bins) != "integer" or self.bins < 1):
            raise self._wrong(f"bins must be a whole number of at least 1; got {brief(self.bins)}")
        self._check_codes(self.bins or len(self.edges or ()), "bins")
        if (self.edges is None) != (self.low is not None and self.high is not None):
            raise self._wrong("declare either low and high, or edges")
        if self.edges is not None and not (self.low is self.high is self.bins is None):
            raise self._wrong("edges already say where the bins lie: leave out low, high and bins")
        for number in self.edges if self.edges is not None else (self.low, self.high):
            self._check_number(number)

    @abstractmethod
    def _check_number(self, number: object) -> None: ...

    @property
    @abstractmethod
    def bounds(self) -> npt.NDArray[np.float64] | npt.NDArray[np.int64]:
        """The edges of the bins: one more than there are bins."""

    def _check_bounds(self) -> None:
        if len(self.bounds) < 2 or not (np.diff(self.bounds) > 0).all():
            raise self._wrong("edges must increase from bin to bin; use fewer bins or wider bounds")


@dataclass(frozen=True)
class IntegerColumn(NumericColumn):
    """Whole numbers from low to high, both included; one bin a number unless ``bins`` are asked for.

    >>> IntegerColumn("age", low=0, high=99, bins=20).code_labels()[:2]
    ('0–4', '5–9')
    >>> IntegerColumn("age", edges=(0, 18, 65, 100)).code_labels()
    ('0–17', '18–64', '65–99')
    """

    kind: ClassVar[str] = "integer"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.low is not None and self.high is not None:
            count = int(self.high) - int(self.low) + 1
            if count < 1:
                raise self._wrong(f"low must not be above high; got {self.low} and {self.high}")
            if self.bins is not None and self.bins > count:
                raise self._wrong(
                    f"{self.bins} bins were asked for, but there are only {count} whole numbers"
                )
            if self.bins is None:
                self._check_codes(count, "bins, one for each whole number from low to high")
        else:
            self._check_bounds()

    def _check_number(self, number: object) -> None:
        if not isinstance(number, int) or isinstance(number, bool) or abs(number) > LARGEST:
            raise self._wrong(f"bounds must be whole numbers below 2^53; got {brief(number)}")

    @property
    def is_unit(self) -> bool:
        """Whether every whole number has a bin of its own."""
        return self.edges is None and self.bins is None

    @property
    def first(self) -> int:
        """The smallest whole number that fits."""
        return int(self.low if self.edges is None else self.edges[0])  # type: ignore[arg-type]  # checked above

    @property
    def last(self) -> int:
        """The largest whole number that fits."""
        return int(self.high) if self.edges is None else int(self.edges[-1]) - 1  # type: ignore[arg-type]  # as above

    @cached_property
    def bounds(self) -> npt.NDArray[np.int64]:
        if self.edges is not None:
            return np.array(self.edges, dtype=np.int64)
        count = self.last - self.first + 1
        bins = count if self.bins is None else self.bins
        if bins == count:
            return np.arange(self.first, self.last + 2, dtype=np.int64)
        return np.array([self.first + i * count // bins for i in range(bins + 1)], dtype=np.int64)

    @property
    def declared(self) -> int:
        return self.last - self.first + 1 if self.is_unit else len(self.bounds) - 1

    @property
    def value_kind(self) -> LabelKind:
        return "integer"

    def code_labels(self) -> tuple[Label, ...]:
        if self.is_unit:
            return (*range(self.first, self.last + 1), *self._special_labels())
        pairs = _pairs([int(bound) for bound in self.bounds])
        if all(right - left == 1 for left, right in pairs):
            return (*(int(left) for left, _ in pairs), *self._special_labels())
        named = (str(left) if right - left == 1 else f"{left}–{right - 1}" for left, right in pairs)
        return (*named, *self._special_labels())


@dataclass(frozen=True)
class RealColumn(NumericColumn):
    """Real numbers from low to high in ``bins`` equal bins, or between the edges given.

    >>> RealColumn("income", low=0.0, high=1.0, bins=2).code_labels()
    ('[0, 0.5)', '[0.5, 1]')
    """

    kind: ClassVar[str] = "real"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.edges is None:
            if self.bins is None:
                raise self._wrong("declare how many bins there are between low and high")
            object.__setattr__(self, "low", float(self.low))  # type: ignore[arg-type]  # a number by now
            object.__setattr__(self, "high", float(self.high))  # type: ignore[arg-type]  # a number by now
        else:
            object.__setattr__(self, "edges", tuple(float(edge) for edge in self.edges))
        with np.errstate(over="ignore", invalid="ignore"):
            if not np.isfinite(self.bounds[-1] - self.bounds[0]):
                raise self._wrong("bounds are too far apart for floating-point numbers")
        self._check_bounds()

    def _check_number(self, number: object) -> None:
        is_number = isinstance(number, (int, float)) and not isinstance(number, bool)
        if not is_number or not abs(number) <= sys.float_info.max:  # type: ignore[arg-type]  # a number by now
            raise self._wrong(f"bounds must be finite numbers; got {brief(number)}")

    @cached_property
    def bounds(self) -> npt.NDArray[np.float64]:
        if self.edges is not None:
            return np.array(self.edges, dtype=np.float64)
        assert self.low is not None  # checked on creation, as the next two
        assert self.high is not None
        assert self.bins is not None
        steps = np.arange(self.bins + 1) / self.bins
        bounds = self.low + (self.high - self.low) * steps
        bounds[-1] = self.high
        return bounds

    @property
    def declared(self) -> int:
        return len(self.bounds) - 1

    @property
    def value_kind(self) -> LabelKind:
        return "real"

    def code_labels(self) -> tuple[Label, ...]:
        pairs = _pairs([f"{bound:.12g}" for bound in self.bounds])
        named = [f"[{left}, {right})" for left, right in pairs]
        named[-1] = named[-1][:-1] + "]"
        return (*named, *self._special_labels())


def _pairs(edges: Sequence[_T]) -> list[tuple[_T, _T]]:
    return list(pairwise(edges))


def _kind_of(label: object) -> LabelKind:
    if isinstance(label, bool):
        return "boolean"
    if isinstance(label, int):
        return "integer"
    return "real" if isinstance(label, float) else "text"


def _is_writable(text: str) -> bool:
    """Whether every engine and file can hold this text: valid Unicode, without null characters."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return "\0" not in text
