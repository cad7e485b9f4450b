"""The parts of every kind of column: a name, a place for missing values and for others, codes.

The codes of a column are, in this order,

    0 … declared − 1       the labels as listed, or the bins from low to high
    declared               "other", where ``outside = "other"``
    the last one           missing, where ``missing = true``
"""

import re
from abc import ABC, abstractmethod
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import ClassVar, Literal

import numpy as np
import numpy.typing as npt

from sidelight._check import brief
from sidelight.data.columns.value import is_unicode, number_of
from sidelight.errors import SchemaError

Label = str | int | float | bool
LabelKind = Literal["text", "integer", "real", "boolean", "date", "datetime", "time"]
Outside = Literal["refuse", "other", "clamp"]

_WORD = re.compile(r"[a-z_]+")
_DTYPE = re.compile(r"(pandas|polars|pyarrow|spark):[^\0]{1,200}")

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
    is_ordered: ClassVar[bool] = False
    """Whether codes next to each other stand for values next to each other."""

    name: str
    missing: bool = field(default=False, kw_only=True)
    """Whether missing values are a category of their own; otherwise they are refused."""
    outside: Outside = field(default="refuse", kw_only=True)
    """Where values outside the schema go: refused, to "other", or (numbers and dates) to the nearest bin."""
    missing_texts: tuple[str, ...] = field(default=(), kw_only=True)
    """Texts that stand for a missing value, such as "NA"; where labels are numbers, without spaces around."""
    dtype: str = field(default="", kw_only=True)
    """The type of synthetic columns in a frame: the library, then its name, such as "pandas:Int16"."""
    note: str = field(default="", kw_only=True, compare=False)
    """A comment, written above the column in a schema file; it changes nothing."""

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not is_writable(self.name):
            raise SchemaError(
                f"a column's name must be text without null characters; got {brief(self.name)}."
            )
        if len(self.name) > LONGEST:
            raise SchemaError(
                f"the column name {brief(self.name)} is longer than {LONGEST:,} characters; shorten it."
            )
        if not isinstance(self.missing, bool):
            raise self._wrong(f"missing must be true or false; got {brief(self.missing)}")
        if not self.missing and self.missing_texts:
            raise self._wrong("missing_texts needs missing = true")
        for text in self.missing_texts:
            self._check_text(text, "missing_texts")
        if not isinstance(self.dtype, str) or (self.dtype and not _DTYPE.fullmatch(self.dtype)):
            raise self._wrong(
                f'dtype must name a library and its type, such as "pandas:Int16"; got {brief(self.dtype)}'
            )
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
        """The type of decoded values."""

    @abstractmethod
    def code_labels(self) -> tuple[Label, ...]:
        """One readable label a code: the label itself, the bin, "other", "missing"."""

    def number_of(self, value: object) -> float | None:
        """The number that a value means here, NaN for a missing one; None where it means none."""
        return number_of(value, is_truth=self.value_kind == "boolean")

    @cached_property
    def missing_numbers(self) -> tuple[float, ...]:
        """The numbers that stand for a missing value, such as 999."""
        read = (self.number_of(text) for text in self.missing_texts)
        return tuple(dict.fromkeys(number for number in read if number is not None and number == number))

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

    def _check_text(self, text: object, what: str) -> None:
        """Refuse what is no text that every engine can compare."""
        if not isinstance(text, str) or not is_writable(text):
            raise self._wrong(f"{what} must be text without null characters; got {brief(text)}")
        if len(text) > LONGEST:
            raise self._wrong(f"{what}: {brief(text)} is longer than {LONGEST:,} characters")

    def _wrong(self, what: str, *, key: str | None = None) -> SchemaError:
        """The error for one key of the declaration: by default the first that the message names."""
        error = SchemaError(f"column {brief(self.name)}: {what}.")
        keys = {f.name for f in fields(self)}
        error.column, error.key = self.name, key or next((w for w in _WORD.findall(what) if w in keys), None)
        return error

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
class BinnedColumn(Column):
    """A column of quantities in bins: numbers, dates or times."""

    @property
    @abstractmethod
    def bounds(self) -> npt.NDArray[np.float64] | npt.NDArray[np.int64]:
        """The edges of the bins: one more than there are bins."""

    @property
    @abstractmethod
    def ends(self) -> tuple[float, float]:
        """The smallest and the largest number that fit."""

    def _check_bounds(self) -> None:
        if len(self.bounds) < 2 or not (np.diff(self.bounds) > 0).all():
            key = "edges" if getattr(self, "edges", None) is not None else "bins"
            raise self._wrong("edges must increase from bin to bin; use fewer bins or wider bounds", key=key)

    def _check_bins(self, bins: object) -> None:
        if bins is not None and (kind_of(bins) != "integer" or bins < 1):  # type: ignore[operator]  # an integer by then
            raise self._wrong(f"bins must be a whole number of at least 1; got {brief(bins)}")


def kind_of(label: object) -> LabelKind:
    """The type of a label."""
    if isinstance(label, bool):
        return "boolean"
    if isinstance(label, int):
        return "integer"
    return "real" if isinstance(label, float) else "text"


def label_text(label: Label) -> str:
    """A label as a TOML key or a form writes it: true, and not True."""
    return str(label).lower() if isinstance(label, bool) else str(label)


def is_writable(text: str) -> bool:
    """Whether every engine and file can hold this text: valid Unicode, without null characters."""
    return is_unicode(text) and "\0" not in text
