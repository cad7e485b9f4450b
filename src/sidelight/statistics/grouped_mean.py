"""A mean for every cell, such as "mean income by region", from one budget.

    ñ ← sizes + Lap(2/ε₁),  S̃ ← Σ(x − c) + Lap(R/ε₂)       one vector each, over all cells      measure
    y_r ← c + S̃_r/ñ_r,      v_r ← (ñσ² + ν_S + (y_r − c)²ν_n)/ñ²                               its variance
    θ_r ← partial pooling of y_r towards the public cell's mean plus one common shift           estimate

Which cell a person is in is as private as the value: a replaced record may leave one cell and enter
another, which moves two sizes by 1 and two sums by R/2 each (`curator.CellCurator`). The cells themselves
are declared, or those of the public table. Pooling (`pooling`) uses released numbers only.
"""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from fractions import Fraction
from functools import partial
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sidelight import _check
from sidelight.data.leak_guard import refuse_same
from sidelight.data.reading.each import Each
from sidelight.errors import SettingError
from sidelight.privacy.event import Event
from sidelight.privacy.unit import Unit
from sidelight.statistics.card import AnswerCard
from sidelight.statistics.columns import Cells, check_missing, numbers, read_columns
from sidelight.statistics.curator import CellCurator, GroupMeasurement
from sidelight.statistics.grid import Array, Grid
from sidelight.statistics.group import check_bounds
from sidelight.statistics.people import names_of, require_named
from sidelight.statistics.pooling import pool
from sidelight.statistics.settings import CellSettings, check_keywords, of_keywords
from sidelight.statistics.terms import GroupTerms
from sidelight.statistics.variance import KnownVariance, given_variance, private_variance, public_variance


@dataclass(frozen=True)
class CellMean:
    """One cell's mean; all of it may be published."""

    cell: Any
    estimate: float
    standard_error: float
    interval: tuple[float, float]
    own: float
    """The share of the estimate that the cell's own records make; the rest is pooled."""
    records: float
    """Noisy number of private records; at least 0."""


@dataclass(frozen=True)
class GroupedAnswer:
    """A mean for every cell."""

    cells: tuple[CellMean, ...]
    events: tuple[Event, ...] = field(repr=False)
    card: AnswerCard = field(repr=False)
    """How the means were made: settings, unit, events, noise source."""

    def __getitem__(self, cell: Any) -> CellMean:
        for mean in self.cells:
            if mean.cell == cell:
                return mean
        raise KeyError(cell)

    def as_json(self) -> dict[str, Any]:
        """A plain form for programs."""
        return {
            "cells": [asdict(mean) | {"interval": list(mean.interval)} for mean in self.cells],
            "card": self.card.as_json(),
        }


def grouped_mean(
    table: Any,
    value: str,
    *,
    by: str,
    bounds: tuple[float, float],
    epsilon: float,
    cells: Sequence[Any] | None = None,
    public: Any = None,
    **settings: Any,
) -> GroupedAnswer:
    """The mean of ``value`` in every cell of ``by``, pooled towards the public table where there is one.

    Args:
        table: the private table: a data frame, a mapping of columns, a CSV or a Parquet file.
        value: the column of numbers.
        by: the column of cells; as private as the value.
        bounds: public bounds of a value; values outside are clamped.
        epsilon: what the whole answer spends.
        cells: the declared cells, all of one type; if None, those of the public table. Each record's own cell
            is compared with them, as text, numbers, booleans or dates, whatever type its column has
            (``statistics.columns.Cells``). Other records, and those without a cell, count nowhere.
        public: a public table with the same two columns, perhaps of other people.
        **settings: the fields of ``CellSettings`` (``missing``, ``variance``, ``confidence`` …), which
            cannot change what is promised, and those of ``GroupTerms`` (``unit``, ``accounting``,
            ``delta``, ``ledger``, ``noise``, ``project``, ``approved_by``), which say what is.

    >>> from sidelight.testing import SeededNoise
    >>> rng = np.random.default_rng(1)
    >>> region = rng.integers(0, 3, 9000)
    >>> people = {"income": rng.normal(50 + 5 * region, 10), "region": region}
    >>> answer = grouped_mean(people, "income", by="region", cells=[0, 1, 2], bounds=(0, 100),
    ...     epsilon=1.0, noise=SeededNoise(7))
    >>> [round(mean.estimate) for mean in answer.cells]
    [50, 55, 60]
    """
    check_keywords("grouped_mean", settings, CellSettings, GroupTerms)
    asked, terms = of_keywords(CellSettings, settings), of_keywords(GroupTerms, settings)
    grid = Grid(*check_bounds(bounds))
    _check.positive(epsilon=epsilon)
    check_missing(asked.missing, grid.low, grid.high)
    refuse_same(table, public)
    unit = terms.agreed()
    terms.require(epsilon, way="mean")
    held = _read(table, public, (value, by), cells, asked, grid, unit)
    number = len(held.cells)

    # MEASURE sizes, squares and sums, each as one vector.
    allotment = terms.cost(epsilon)
    book = terms.book(terms.budget(epsilon), name="these groups")
    for share in (asked.size_share, asked.measured_share, 1 - asked.size_share - asked.measured_share):
        if share:
            grid.finest(allotment * Fraction(share), unit)  # refuses too small an ε
    door = partial(CellCurator, held.values, held.codes, number, grid, held.people)
    label = f"mean by {by} over {_check.count_of(number, 'cell')}"
    with terms.run(door, book, allotment, label=label, way="mean", unit=unit) as curator:
        measured = _Measured.by(curator, asked)

    # ESTIMATE each cell by itself, then all of them together.
    known = _variance(asked, held.public, measured, grid)
    estimates, errors, own = _estimate(measured, held.public, known.value, grid, alike=unit.records)
    z = NormalDist().inv_cdf(0.5 + asked.confidence / 2)
    found = tuple(
        CellMean(label, float(x), float(e), grid.within(x - z * e, x + z * e), float(b), max(0.0, float(n)))
        for label, x, e, b, n in zip(
            held.cells.labels, estimates, errors, own, measured.sizes.answer, strict=True
        )
    )
    card = replace(
        terms.card(f"mean by {by}", grid, curator),
        epsilon=epsilon,
        promise=f"ε = {epsilon:g} under {curator.unit.describe()}; the cell is as private as the value",
        variance=known.on_card(asked.variance),
        confidence=asked.confidence,
        cells=number,
    )
    return GroupedAnswer(found, curator.events, card)


@dataclass(frozen=True, eq=False)
class _Held:
    """The private records in the curator's hands, and the public facts."""

    cells: Cells
    values: Array
    codes: NDArray[np.int64]
    """The cell of each private record."""
    public: list[Array]
    """The public values of each cell, within the bounds; empty without a public table."""
    people: Any
    """Who each private record is about, as Arrow text; None where no column says it."""


@dataclass(frozen=True, eq=False)
class _Measured:
    """The noisy answers about cells: released, so free to use from then on."""

    sizes: GroupMeasurement
    squares: GroupMeasurement | None
    """Of all cells together; None where σ² is known otherwise."""
    sums: GroupMeasurement

    @classmethod
    def by(cls, curator: CellCurator, asked: CellSettings) -> "_Measured":
        """All that the curator has left, split as it was asked."""
        sizes_cost, rest = curator.remaining.split(asked.size_share)
        squares_cost, sums_cost = rest.split(asked.measured_share / (1 - asked.size_share))
        return cls(
            curator.sizes(sizes_cost),
            curator.squares(squares_cost) if asked.measured_share else None,
            curator.sums(sums_cost),
        )

    @property
    def people(self) -> Array:
        """Records in each cell, not below 1."""
        return np.maximum(self.sizes.answer, 1.0)


def _read(
    table: Any,
    public: Any,
    names: tuple[str, str],
    cells: Sequence[Any] | None,
    asked: CellSettings,
    grid: Grid,
    unit: Unit,
) -> _Held:
    """Both tables, record by record; what does not fit is refused before anything is paid."""
    value, by = names
    if unit.person in names:
        raise SettingError(f"column {unit.person!r} says who each record is about; it cannot be averaged.")
    shown = None if public is None else read_columns(public, names, asked.file)
    if asked.variance == "public" and shown is None:
        raise SettingError("variance='public' needs a public table.")
    declared = _declared(cells, shown, by)
    columns = read_columns(table, [*names, *([] if unit.person is None else [unit.person])], asked.file)
    people = None if unit.person is None else names_of(columns[unit.person])
    if people is not None:
        require_named(people, unit, "the table")
    values = numbers(columns[value], f"column {value!r}", missing=asked.missing)
    codes = declared.codes(columns[by])
    of_cells: list[Array] = []
    if shown is not None:
        said = numbers(shown[value], f"column {value!r} of the public table", missing=asked.missing)
        clamped, places = np.clip(said, grid.low, grid.high), declared.codes(shown[by])
        of_cells = [clamped[places == code] for code in range(len(declared))]
    return _Held(declared, values, codes, of_cells, people)


def _declared(cells: Sequence[Any] | None, shown: dict[str, Each] | None, by: str) -> Cells:
    """The cells that were declared, or else those of the public table."""
    if cells is not None:
        return Cells(cells)
    if shown is None:
        raise SettingError(
            "cells must be declared (cells, or --cell for each on the command line), or a public table given "
            "that has them."
        )
    return Cells.of_public(shown[by])


def _estimate(
    measured: _Measured, public: list[Array], variance: float, grid: Grid, *, alike: int
) -> tuple[Array, Array, Array]:
    """Each cell's pooled mean, its standard error, and the share of it that is the cell's own."""
    sizes, sums, people, half = measured.sizes, measured.sums, measured.people, grid.width / 2
    means = np.clip(sums.answer / people, -half, half)
    noise = sums.stddev**2 + means**2 * sizes.stddev**2
    # Up to k values of a person may be alike: then n of them tell no more than n/k people.
    own_variance = alike * variance / people + noise / people**2
    # A cell whose size is lost in the noise says nothing: its mean may be anywhere within the bounds.
    is_lost = sizes.answer < 2 * sizes.stddev
    own_variance = np.where(is_lost, np.maximum(own_variance, half**2 * 100), own_variance)
    expected, expected_variance = _expected(public, variance, people.size, grid)
    shift, errors, own = pool(grid.centre + means - expected, own_variance, expected_variance, most=half)
    # Estimate and mean both lie within the bounds.
    return np.clip(expected + shift, grid.low, grid.high), np.minimum(errors, half), own


def _variance(asked: CellSettings, public: list[Array], measured: _Measured, grid: Grid) -> KnownVariance:
    """σ² within a cell."""
    if not isinstance(asked.variance, str):
        return given_variance(asked.variance, grid)
    if asked.variance == "public":
        return public_variance(public, grid)
    if measured.squares is None:
        return given_variance(grid.width**2 / 4, grid)
    # E(x − c)² within cells, less the cells' own squared offsets: Σ n_r (μ_r − c)², free of noise on average.
    people, sums = measured.people, measured.sums
    between = ((sums.answer**2 - sums.stddev**2) / people).sum() / people.sum()
    offset = math.sqrt(min(max(float(between), 0.0), grid.width**2 / 4))
    return private_variance(measured.squares, np.array([people.sum()]), [], offset, grid)


def _expected(public: list[Array], variance: float, cells: int, grid: Grid) -> tuple[Array, Array]:
    """What is expected of each cell up to a common shift, and its variance.

    That is the cell's public mean, or the mean of the others' where nobody public is in it.
    """
    sizes = np.array([values.size for values in public], dtype=np.float64)
    there = sizes > 0
    if not there.any():
        return np.full(cells, grid.centre), np.zeros(cells)
    means = np.array([values.mean() if values.size else np.nan for values in public])
    overall = float(means[there].mean())
    between = float(means[there].var()) if there.sum() > 1 else grid.width**2 / 4
    uncertain = np.where(there, variance / np.maximum(sizes, 1), between)
    return np.where(there, means, overall), uncertain
