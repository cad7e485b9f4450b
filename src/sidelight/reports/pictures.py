"""Which parts of a release are drawn, and the numbers behind each drawing.

A page has room for some attributes, some pairs and some values. The rest is merged or counted, never
dropped silently: neighbouring bins are added up, rare labels become "others".
"""

import itertools
import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from sidelight.data.columns.column import BinnedColumn, Column
from sidelight.data.domain import Attrs
from sidelight.models.evidence import Evidence, along
from sidelight.models.model import Array, Model
from sidelight.queries.query import Marginal
from sidelight.releases.release import Release
from sidelight.releases.where import Where
from sidelight.reports.words import joined
from sidelight.uncertainty.error_bars import ErrorBars

ONE_WAY = 24
"""Most attributes that are drawn."""
TWO_WAY = 8
"""Most pairs that are drawn."""
STRUCTURE = 24
"""Most attributes in the picture of the structure."""

_LABELLED = 14
"""Most bars with labels of their own."""
_COLUMNS = 60
"""Most narrow columns side by side."""
_SIDE = 16
"""Most values on one side of a heat map."""
_PAIRS_TRIED = 120
"""Most pairs that are compared to find the most informative ones."""
_PAIR_CELLS = 1_000_000
"""Pairs with more cells are not counted for a picture."""


@dataclass(frozen=True, eq=False)
class Values:
    """The values of one attribute as drawn: several codes may share a position."""

    attr: str
    labels: tuple[str, ...]
    place: NDArray[np.int64]
    """For each code that is drawn, the position of the label that it is drawn under."""
    is_ordered: bool
    size: int
    """The number of codes that are drawn."""

    @property
    def is_merged(self) -> bool:
        """Whether some positions hold several codes."""
        return len(self.labels) < self.size

    @property
    def rest(self) -> int | None:
        """The position of "others", whose count would dwarf those of single labels; None if there is none."""
        return len(self.labels) - 1 if self.is_merged and not self.is_ordered else None

    @property
    def codes(self) -> NDArray[np.int64]:
        """The number of codes at each position."""
        return np.bincount(self.place, minlength=len(self.labels))

    def merge(self, counts: NDArray[np.generic], axis: int = 0) -> Array:
        """Sum counts by code to counts by position."""
        moved = np.moveaxis(np.asarray(counts, dtype=np.float64), axis, 0)
        merged = np.zeros((len(self.labels), *moved.shape[1:]))
        np.add.at(merged, self.place, moved)
        return np.moveaxis(merged, 0, axis)


@dataclass(frozen=True, eq=False)
class OneWay:
    """One attribute's released counts."""

    values: Values
    counts: Array
    interval: tuple[Array, Array] | None
    """From low to high, the 95% interval of each count; None if it is unknown."""
    stddev: float | None
    """σ of the noise on one value's count, before any merging; None if the attribute was not measured."""
    model_error: float | None
    """The model's largest error on a value's count, before any merging; None if it is unknown."""
    about: str
    """The errors that the interval includes, in words."""
    exact: Array | None = None
    """PRIVATE: the exact counts, if a comparison was asked for."""
    public: Array | None = None
    """Counts of public records, scaled to as many as were released, if a comparison was asked for."""


@dataclass(frozen=True, eq=False)
class TwoWay:
    """A pair's released counts, rows by columns."""

    down: Values
    across: Values
    counts: Array
    stddev: float | None
    """σ of the noise on one cell's count, before any merging; None if the pair was not measured."""
    model_error: float | None
    """The model's largest error on a cell, before any merging; None if it is unknown."""
    information: float
    """Mutual information of the two attributes in the model, in bits."""

    @property
    def name(self) -> str:
        """The names of both attributes."""
        return joined((self.down.attr, self.across.attr))


@dataclass(frozen=True)
class Structure:
    """Which attributes were measured together."""

    attrs: Attrs
    """The attributes that are drawn, the most connected ones, in the order of the schema."""
    edges: dict[tuple[str, str], int]
    """For each pair, the number of measurements that contain both attributes."""
    measured: frozenset[str]
    left_out: int
    """How many attributes are not drawn."""


@dataclass(frozen=True, eq=False)
class Conditioned:
    """Released counts over some attributes, of the records that meet a condition."""

    release: Release
    attrs: Attrs
    evidence: Evidence
    """The condition; empty where all records are counted."""

    @classmethod
    def of(cls, release: Release, attrs: Attrs, where: Where | None = None) -> "Conditioned":
        """These attributes, under a condition as ``Release.answer`` takes it."""
        return cls(release, attrs, release.evidence(where) if where else {})

    @property
    def joint(self) -> Attrs:
        """The attributes, and those that the condition is about."""
        return (*self.attrs, *(attr for attr in self.evidence if attr not in self.attrs))

    @cached_property
    def bars(self) -> ErrorBars:
        """Counts of all of these, and their errors."""
        return self.release.error_bars(self.joint)

    @cached_property
    def allowed(self) -> NDArray[np.bool_]:
        """Which of these counts the condition allows."""
        return np.broadcast_to(along(self.joint, self.evidence) > 0, self.bars.estimate.shape)

    def codes(self, attr: str) -> NDArray[np.int64]:
        """The codes of an attribute that the condition allows."""
        size = self.release.model.domain.sizes[attr]
        return np.flatnonzero(self.evidence.get(attr, np.ones(size)) > 0)

    def counts(self, of: Array | None = None) -> Array:
        """Counts over the attributes alone; of another table over ``joint``, if one is given."""
        counts = self.bars.estimate if of is None else of
        summed = np.where(self.allowed, counts, 0.0).sum(axis=tuple(range(len(self.attrs), counts.ndim)))
        return np.asarray(summed[np.ix_(*(self.codes(attr) for attr in self.attrs))])

    def public(self, model: Model) -> Array:
        """The same counts of public records, scaled to as many records as were released."""
        counts = np.asarray(model.count(self.joint), dtype=np.float64)
        return self.counts(counts) * (self.bars.total / (counts.sum() or 1.0))

    def values(self, attr: str, *, most: int | None = None) -> Values:
        """An attribute's values, merged to at most ``most`` positions, or to as many as one chart holds."""
        labels, ordered = _labels(self.release, attr)
        codes = self.codes(attr)
        apart = tuple(axis for axis, name in enumerate(self.attrs) if name != attr)
        return arranged(
            attr,
            tuple(labels[code] for code in codes),
            self.counts().sum(axis=apart),
            ordered=int((codes < ordered).sum()),
            most=most,
        )

    def interval(self, values: Values) -> tuple[Array, Array] | None:
        """The interval at each position of the first attribute's values."""
        if self.bars.standard_error is None:
            return None
        codes, ends = self.codes(values.attr), []
        for place in range(len(values.labels)):
            at = np.zeros(self.bars.estimate.shape[0], dtype=np.bool_)
            at[codes[values.place == place]] = True
            summed = self.bars.sum(self.allowed & at.reshape([-1] + [1] * (self.allowed.ndim - 1)))
            interval = summed.interval()
            assert interval is not None  # what is known of the parts is known of their sum
            ends.append([float(end) for end in interval])
        low, high = np.array(ends).T
        return low, high


def arranged(
    attr: str, labels: tuple[str, ...], counts: Array, *, ordered: int, most: int | None = None
) -> Values:
    """Values as one chart holds them; the first ``ordered`` labels follow each other by size."""
    limit = most if most is not None else (_COLUMNS if ordered else _LABELLED)
    if len(labels) <= limit:
        return Values(attr, labels, np.arange(len(labels)), bool(ordered), len(labels))
    if ordered:
        return _neighbours(attr, labels, ordered, limit)
    return _most_frequent(attr, labels, counts, limit)


def labels_of(column: Column) -> tuple[tuple[str, ...], int]:
    """A label for each code of a column, and how many of the first codes are ordered by size."""
    labels = tuple(str(label) for label in column.code_labels())
    return labels, column.declared if isinstance(column, BinnedColumn) else 0


def values_of(release: Release, attr: str, *, most: int | None = None) -> Values:
    """An attribute's values, merged to at most ``most`` positions, or to as many as one chart holds."""
    return Conditioned.of(release, (attr,)).values(attr, most=most)


def one_way(
    release: Release, attr: str, where: Where | None = None, *, public: Model | None = None
) -> OneWay:
    """The released counts of one attribute, with the errors that the release knows of."""
    asked = Conditioned.of(release, (attr,), where)
    values, bars = asked.values(attr), asked.bars
    return OneWay(
        values,
        values.merge(asked.counts()),
        interval=asked.interval(values),
        stddev=None if bars.noise_error is None else float(bars.noise_error.max()),
        model_error=None if bars.model_error is None else float(bars.model_error.max()),
        about=bars.words,
        public=None if public is None else values.merge(asked.public(public)),
    )


def attributes_drawn(release: Release) -> Attrs:
    """The attributes with a picture of their own: measured ones first, all in the schema's order."""
    attrs = release.model.domain.attrs
    if len(attrs) <= ONE_WAY:
        return attrs
    measured = {attr for marginal in _marginals(release) for attr in marginal}
    ranked = sorted(attrs, key=lambda attr: attr not in measured)
    chosen = set(ranked[:ONE_WAY])
    return tuple(attr for attr in attrs if attr in chosen)


def two_way(release: Release) -> list[TwoWay]:
    """The most informative pairs; measured pairs come before others."""
    domain = release.model.domain
    small = [attrs for attrs in _pairs_measured(release) if domain.size(attrs) <= _PAIR_CELLS]
    drawn = _most_informative(release, small[:_PAIRS_TRIED], TWO_WAY, least=1e-6)
    if len(drawn) < TWO_WAY:
        known = set(small)
        others = (attrs for attrs in itertools.combinations(domain.attrs[:ONE_WAY], 2) if attrs not in known)
        fitting = [attrs for attrs in others if domain.size(attrs) <= _PAIR_CELLS]
        drawn += _most_informative(release, fitting[:_PAIRS_TRIED], TWO_WAY - len(drawn), least=0.005)
    return [replace(pair(release, attrs), information=information) for attrs, information in drawn]


def structure(release: Release) -> Structure:
    """Attributes joined by the measurements that contain both."""
    edges: dict[tuple[str, str], int] = {}
    degree: dict[str, int] = {}
    domain = release.model.domain
    for measurement in release.measurements:
        attrs = domain.canonical(measurement.query.attrs)
        for attr in attrs:
            degree[attr] = degree.get(attr, 0) + len(attrs)
        for both in itertools.combinations(attrs, 2):
            edges[both] = edges.get(both, 0) + 1
    ranked = sorted(domain.attrs, key=lambda attr: -degree.get(attr, 0))
    drawn = set(ranked[:STRUCTURE])
    return Structure(
        attrs=tuple(attr for attr in domain.attrs if attr in drawn),
        edges={both: times for both, times in edges.items() if drawn.issuperset(both)},
        measured=frozenset(degree),
        left_out=len(domain) - len(drawn),
    )


def _marginals(release: Release) -> list[Attrs]:
    return [m.query.attrs for m in release.measurements if isinstance(m.query, Marginal)]


def _pairs_measured(release: Release) -> list[Attrs]:
    """Pairs inside measured marginals; those measured by themselves first."""
    canonical = release.model.domain.canonical
    found = sorted(
        ((len(attrs), canonical(attrs)) for attrs in _marginals(release)), key=lambda item: item[0]
    )
    pairs = (both for _, attrs in found for both in itertools.combinations(attrs, 2))
    return list(dict.fromkeys(pairs))


def _most_informative(
    release: Release, pairs: Iterable[Attrs], most: int, *, least: float
) -> list[tuple[Attrs, float]]:
    scored = [(attrs, mutual_information(release.count(attrs))) for attrs in pairs]
    kept = [item for item in scored if item[1] >= least]
    return sorted(kept, key=lambda item: -item[1])[:most]


def mutual_information(counts: Array) -> float:
    """Σ p(x, y) log₂ p(x, y) / (p(x) p(y)), in bits; 0 where the two are independent.

    >>> mutual_information(np.array([[5.0, 0.0], [0.0, 5.0]]))
    1.0
    """
    joint = np.clip(counts, 0.0, None)
    joint = joint / (joint.sum() or 1.0)
    apart = np.outer(joint.sum(axis=1), joint.sum(axis=0))
    held = joint > 0
    return max(0.0, float((joint[held] * np.log2(joint[held] / apart[held])).sum()))


def pair(
    release: Release, attrs: Attrs, where: Where | None = None, *, public: Model | None = None
) -> TwoWay:
    """The counts of two attributes, of the records that meet a condition; or those of public records."""
    asked = Conditioned.of(release, attrs, where)
    sides = [asked.values(attr, most=_SIDE) for attr in attrs]
    counts = asked.counts() if public is None else asked.public(public)
    # The side with fewer values goes across, where labels have less room.
    if len(sides[0].labels) < len(sides[1].labels):
        sides, counts = sides[::-1], counts.T
    down, across = sides
    bars = asked.bars
    return TwoWay(
        down,
        across,
        across.merge(down.merge(counts), axis=1),
        stddev=None if bars.noise_error is None else float(bars.noise_error.max()),
        model_error=None if bars.model_error is None else float(bars.model_error.max()),
        information=mutual_information(counts),
    )


def _labels(release: Release, attr: str) -> tuple[tuple[str, ...], int]:
    """A label for each code, and how many of the first codes are ordered by size."""
    size = release.model.domain.sizes[attr]
    if release.schema is None:
        return tuple(str(code) for code in range(size)), size
    return labels_of(release.schema.column(attr))


def _neighbours(attr: str, labels: tuple[str, ...], ordered: int, limit: int) -> Values:
    """Neighbouring codes share a position; "other" and "missing" keep their own."""
    special = len(labels) - ordered
    together = math.ceil(ordered / max(1, limit - special))
    places = math.ceil(ordered / together)
    firsts = [index * together for index in range(places)]
    lasts = [min(first + together, ordered) - 1 for first in firsts]
    named = [
        labels[first] if first == last else f"{labels[first]} … {labels[last]}"
        for first, last in zip(firsts, lasts, strict=True)
    ]
    place = np.concatenate([np.arange(ordered) // together, places + np.arange(special)])
    return Values(
        attr, (*named, *labels[ordered:]), place.astype(np.int64), is_ordered=True, size=len(labels)
    )


def _most_frequent(attr: str, labels: tuple[str, ...], counts: Array, limit: int) -> Values:
    """The labels with the largest released counts keep their position; the rest share one."""
    kept = np.sort(np.argsort(-counts, kind="stable")[: limit - 1])
    place = np.full(len(labels), limit - 1, dtype=np.int64)
    place[kept] = np.arange(limit - 1)
    named = [labels[code] for code in kept.tolist()]
    return Values(
        attr, (*named, f"{len(labels) - limit + 1:,} others"), place, is_ordered=False, size=len(labels)
    )
