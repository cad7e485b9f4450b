"""Columns as people declare them: labels, or bounds and bins, and a place for everything else.

A bin is half-open, [eᵢ, eᵢ₊₁); the last bin of a real column also holds its upper edge. Columns of dates and
times are in ``moment_columns``; what all columns share, and the order of their codes, is in ``column_base``.
"""

import math
import sys
from abc import abstractmethod
from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from sidelight._check import brief, is_number
from sidelight.data.columns.column_base import (
    LARGEST,
    LONGEST,
    MOST_CODES,
    BinnedColumn,
    Column,
    Label,
    LabelKind,
    is_writable,
    kind_of,
    label_text,
)
from sidelight.data.columns.value import NO_TEXT, number_of, text_of

__all__ = [
    "LARGEST",
    "LONGEST",
    "MOST_CODES",
    "BinnedColumn",
    "CategoricalColumn",
    "Column",
    "IntegerColumn",
    "Label",
    "LabelKind",
    "NumericColumn",
    "RealColumn",
    "is_writable",
    "label_text",
]


@dataclass(frozen=True)
class CategoricalColumn(Column):
    """A column of labels, all of one type, which comes back on decoding.

    >>> CategoricalColumn("sex", ("female", "male"), missing=True).size
    3
    """

    kind: ClassVar[str] = "categorical"
    outsides: ClassVar[tuple[str, ...]] = ("refuse", "other")

    labels: tuple[Label, ...] = ()
    ordered: bool = field(default=False, kw_only=True)
    """Whether the labels are listed from low to high: "mild", "moderate", "severe"."""
    prefix: int | None = field(default=None, kw_only=True)
    """How many first characters of a text count: of 10115 the 101. So long are labels, too."""
    aliases: tuple[tuple[str, tuple[str, ...]], ...] = field(default=(), kw_only=True)
    """Other texts for a label, such as "f" and "F " for "F"."""
    other_label: Label | None = field(default=None, kw_only=True)
    """The value that "other" decodes to: for text "other" unless declared, for numbers a missing value."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_codes(len(self.labels), "labels")
        for label in self.labels:
            self._check_label(label)
        kinds = {kind_of(label) for label in self.labels}
        if kinds == {"integer", "real"}:
            object.__setattr__(self, "labels", tuple(float(label) for label in self.labels))
        elif len(kinds) > 1:
            raise self._wrong("labels must all be of one type (text, numbers, or true and false)")
        if len(set(self.labels)) < len(self.labels):
            twice = next(label for label, often in Counter(self.labels).items() if often > 1)
            raise self._wrong(f"labels must be distinct; {brief(twice)} appears twice")
        if not self.size:
            raise self._wrong("at least one label is needed", key="labels")
        self._check_other()
        if not isinstance(self.ordered, bool):
            raise self._wrong(f"ordered must be true or false; got {brief(self.ordered)}")
        self._check_prefix()
        self._check_aliases()

    def _check_prefix(self) -> None:
        if self.prefix is None:
            return
        if kind_of(self.prefix) != "integer" or not 1 <= self.prefix <= LONGEST:
            raise self._wrong(f"prefix must be a number of characters, 1 or more; got {brief(self.prefix)}")
        if self.value_kind != "text":
            raise self._wrong("prefix needs labels of text: write them in quotes")
        written = (*self.labels, *(spelling for _, spellings in self.aliases for spelling in spellings))
        long = next((label for label in written if len(str(label)) > self.prefix), None)
        if long is not None:
            raise self._wrong(
                f"the label {brief(long)} is longer than prefix = {self.prefix}, so no value could have it"
            )

    def _check_aliases(self) -> None:
        named = {label_text(label): label for label in self.labels}
        taken = set(named) | set(self.missing_texts)
        twice = sorted(set(named) & set(self.missing_texts))
        if twice:
            raise self._wrong(f"{brief(twice[0])} is a label and stands in missing_texts; keep one of them")
        for label, spellings in self.aliases:
            if label not in named:
                raise self._wrong(f"aliases are given for {brief(label)}, which is no label")
            for spelling in spellings:
                self._check_text(spelling, "aliases")
                if spelling in taken:
                    raise self._wrong(
                        f"the alias {brief(spelling)} already stands for something", key="aliases"
                    )
                taken.add(spelling)

    @cached_property
    def spellings(self) -> dict[str, int]:
        """The code of each alias."""
        named = {label_text(label): code for code, label in enumerate(self.labels)}
        return {spelling: named[label] for label, spellings in self.aliases for spelling in spellings}

    def _check_label(self, label: Label) -> None:
        if isinstance(label, str):
            if not is_writable(label):
                raise self._wrong("labels must be text without null characters")
            if len(label) > LONGEST:
                raise self._wrong(
                    f"the label {brief(label)} is longer than {LONGEST:,} characters; write a short one, and "
                    "keep the long text elsewhere",
                    key="labels",
                )
        elif not isinstance(label, (bool, int, float)) or not abs(label) <= LARGEST:
            raise self._wrong(
                f"a numeric label must be finite and below 2^53; got {brief(label)} (declare it as text)",
                key="labels",
            )

    def _check_other(self) -> None:
        if self.outside != "other":
            if self.other_label is not None:
                raise self._wrong('other_label needs outside = "other"')
            return
        if self.other_label is None:
            if self.value_kind == "text":
                object.__setattr__(self, "other_label", "other")
        elif self.labels and kind_of(self.other_label) != self.value_kind:
            raise self._wrong(f"other_label must be of the labels' type ({self.value_kind})")
        if self.other_label is not None:
            self._check_label(self.other_label)
        if self.other_label in self.labels:
            raise self._wrong(
                f"{brief(self.other_label)} is a label: declare another other_label for outside values"
            )

    def text_of(self, value: object) -> str | None:
        """The text that a value means here, None for a missing one.

        >>> CategoricalColumn("postcode", ("101", "102"), prefix=3).text_of(10115)
        '101'
        """
        text = text_of(value)
        if text is None or self.prefix is None or text in self.missing_texts:
            return text
        if isinstance(value, (str, bytes, bool, np.bool_)):
            return text[: self.prefix]
        # Every type of number must give the same prefix, and engines print no two real numbers alike.
        number = number_of(value)
        is_whole = number is not None and abs(number) <= LARGEST and number == int(number)
        return text[: self.prefix] if is_whole else NO_TEXT

    @property
    def declared(self) -> int:
        return len(self.labels)

    @property
    def value_kind(self) -> LabelKind:
        return kind_of(self.labels[0]) if self.labels else "text"

    def code_labels(self) -> tuple[Label, ...]:
        return (*self.labels, *self._special_labels())


@dataclass(frozen=True)
class NumericColumn(BinnedColumn):
    """A column of numbers between public bounds, in bins."""

    outsides: ClassVar[tuple[str, ...]] = ("refuse", "other", "clamp")
    is_ordered: ClassVar[bool] = True

    low: float | None = None
    high: float | None = None
    bins: int | None = None
    edges: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_bins(self.bins)
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
    def _bounds_key(self) -> str:
        return "low" if self.edges is None else "edges"


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
            raise self._wrong(
                f"bounds must be whole numbers below 2^53; got {brief(number)}", key=self._bounds_key
            )

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

    @property
    def ends(self) -> tuple[float, float]:
        return self.first, self.last

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
        pairs = list(pairwise(int(bound) for bound in self.bounds))
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

    decimals: int | None = field(default=None, kw_only=True)
    """Decimals of synthetic numbers; if None, see ``sampled_decimals``. It changes nothing in reading."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.decimals is not None and (
            kind_of(self.decimals) != "integer" or not 0 <= self.decimals <= 15
        ):
            raise self._wrong(f"decimals must be a whole number from 0 to 15; got {brief(self.decimals)}")
        if self.edges is None:
            if self.bins is None:
                raise self._wrong("declare how many bins there are between low and high")
            object.__setattr__(self, "low", float(self.low))  # type: ignore[arg-type]  # a number by now
            object.__setattr__(self, "high", float(self.high))  # type: ignore[arg-type]  # a number by now
        else:
            object.__setattr__(self, "edges", tuple(float(edge) for edge in self.edges))
        with np.errstate(over="ignore", invalid="ignore"):
            if not np.isfinite(self.bounds[-1] - self.bounds[0]):
                raise self._wrong("bounds are too far apart for floating-point numbers", key=self._bounds_key)
        self._check_bounds()
        first, last = self.steps
        if self.decimals is not None and (last < first).any():
            raise self._wrong(
                f"a bin holds no number of {self.decimals} decimals; use wider bins or more decimals"
            )

    def _check_number(self, number: object) -> None:
        if not is_number(number) or not abs(number) <= sys.float_info.max:  # type: ignore[arg-type]  # a number by now
            raise self._wrong(f"bounds must be finite numbers; got {brief(number)}", key=self._bounds_key)

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
    def ends(self) -> tuple[float, float]:
        return float(self.bounds[0]), float(self.bounds[-1])

    @cached_property
    def sampled_decimals(self) -> int | None:
        """Decimals of synthetic numbers: as declared, or so many that each bin holds a thousand numbers.

        None, for all that a float64 has, where bins are too narrow for that.

        >>> RealColumn("income", low=0.0, high=1e6, bins=40).sampled_decimals
        0
        >>> RealColumn("share", low=0.0, high=1.0, bins=2).sampled_decimals
        4
        """
        if self.decimals is not None:
            return self.decimals
        decimals = max(0, 3 - math.floor(math.log10(float(np.diff(self.bounds).min()))))
        # Beyond 2^53 neighbouring multiples of the last decimal are the same float64.
        largest = float(np.abs(self.bounds).max())
        return decimals if decimals <= 15 and largest < 2**53 / 10.0**decimals else None

    @cached_property
    def steps(self) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """The first and the last number in each bin, as multiples of the last declared decimal.

        >>> RealColumn("price", low=0.0, high=1.0, bins=2, decimals=1).steps
        (array([0., 5.]), array([ 4., 10.]))
        """
        scale = 10.0 ** (self.sampled_decimals or 0)
        low, high = self.bounds[:-1], self.bounds[1:]
        first, last = np.ceil(low * scale), np.floor(high * scale)
        # The product may be rounded across an edge: what counts is the number that is written.
        first += (first / scale < low).astype(np.float64)
        first -= ((first - 1) / scale >= low).astype(np.float64)
        is_last = np.arange(len(low)) == len(low) - 1
        last += ((last + 1) / scale < high).astype(np.float64)
        last -= np.where(is_last, last / scale > high, last / scale >= high)
        return first, last

    @property
    def declared(self) -> int:
        return len(self.bounds) - 1

    @property
    def value_kind(self) -> LabelKind:
        return "real"

    def code_labels(self) -> tuple[Label, ...]:
        pairs = pairwise(f"{bound:.12g}" for bound in self.bounds)
        named = [f"[{left}, {right})" for left, right in pairs]
        named[-1] = named[-1][:-1] + "]"
        return (*named, *self._special_labels())
