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
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np

from sidelight import _check
from sidelight.data.leak_guard import refuse_same
from sidelight.errors import SettingError
from sidelight.privacy.budget import Cost
from sidelight.privacy.event import Event
from sidelight.privacy.ledger import Ledger
from sidelight.privacy.noise import NoiseSource
from sidelight.privacy.unit import Unit
from sidelight.statistics.columns import Cells, Missing, check_missing, numbers, read_columns
from sidelight.statistics.curator import CellCurator, GroupMeasurement, open_run
from sidelight.statistics.grid import Grid
from sidelight.statistics.group import Array, check_bounds
from sidelight.statistics.pooling import pool
from sidelight.statistics.terms import Terms, check_shares
from sidelight.statistics.variance import KnownVariance, given_variance, private_variance, public_variance


@dataclass(frozen=True)
class CellMean:
    """One cell's mean; all of it may be published."""

    cell: Any
    estimate: float
    standard_error: float
    interval: tuple[float, float]
    own: float
    """How much of the estimate is the cell's own measurement; the rest is pooled."""
    size: float
    """Noisy number of private records; at least 0."""


@dataclass(frozen=True)
class GroupedAnswer:
    """A mean for every cell."""

    cells: tuple[CellMean, ...]
    events: tuple[Event, ...] = field(repr=False)
    card: dict[str, Any] = field(repr=False)

    def __getitem__(self, cell: Any) -> CellMean:
        for mean in self.cells:
            if mean.cell == cell:
                return mean
        raise KeyError(cell)

    def as_json(self) -> dict[str, Any]:
        """A plain form for programs."""
        return {
            "cells": [
                {
                    "cell": mean.cell,
                    "estimate": mean.estimate,
                    "standard_error": mean.standard_error,
                    "interval": list(mean.interval),
                    "own": mean.own,
                    "size": mean.size,
                }
                for mean in self.cells
            ],
            "card": self.card,
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
    missing: Missing = "refuse",
    variance: float | str = "private",
    confidence: float = 0.95,
    unit: Unit | str | None = None,
    accounting: str = "pure",
    delta: float | None = None,
    ledger: Ledger | str | Path | None = None,
    noise: NoiseSource | None = None,
    size_share: float = 0.2,
    variance_share: float = 0.1,
) -> GroupedAnswer:
    """The mean of ``value`` in every cell of ``by``, pooled towards the public table where there is one.

    Args:
        table: the private table: a data frame, a mapping of columns, a CSV or a Parquet file.
        value: the column of numbers.
        by: the column of cells; as private as the value.
        bounds: public bounds of a value; values outside are clamped.
        epsilon: what the whole answer spends.
        cells: the declared cells, all of one type; those of the public table unless said. Each record's own
            cell is compared with them, as text, numbers, booleans or dates, whatever type its column has
            (``statistics.columns.Cells``). Other records, and those without a cell, count nowhere.
        public: a public table with the same two columns, perhaps of other people.
        missing: what stands for a value that is missing or no number: a number within the bounds, or
            ``"refuse"``, and a table with such a value is refused before anything is paid.
        variance: σ² within a cell: a number, ``"bound"``, ``"public"`` or ``"private"``.
        confidence: of each interval.
        unit: ``"replace"`` or ``"add-or-remove"``.
        accounting: ``"pure"`` Laplace noise, or ``"zcdp"`` Gaussian noise at ``delta``.
        delta: δ under zCDP.
        ledger: where spending is kept for ever.
        noise: operating-system noise unless said.
        size_share: share of ε that measures sizes.
        variance_share: share of ε that measures σ², with ``variance="private"``.

    >>> from sidelight.testing import SeededNoise
    >>> rng = np.random.default_rng(1)
    >>> region = rng.integers(0, 3, 9000)
    >>> people = {"income": rng.normal(50 + 5 * region, 10), "region": region}
    >>> answer = grouped_mean(people, "income", by="region", cells=[0, 1, 2], bounds=(0, 100),
    ...     epsilon=1.0, noise=SeededNoise(7))
    >>> [round(mean.estimate) for mean in answer.cells]
    [50, 55, 60]
    """
    grid = Grid(*check_bounds(bounds))
    terms = Terms(unit=unit, accounting=accounting, delta=delta, ledger=ledger, noise=noise)
    _check.positive(epsilon=epsilon)
    _check.share(confidence=confidence)
    if isinstance(variance, str):
        _check.one_of(("bound", "public", "private"), variance=variance)
    else:
        _check.positive(variance=variance)
    asks = variance_share if variance == "private" else 0.0
    check_shares(size_share=size_share, variance_share=asks)
    if not size_share:
        raise SettingError("size_share must be above 0: a cell's size is private, and a mean needs it.")
    check_missing(missing, grid.low, grid.high)
    refuse_same(table, public)
    shown = None if public is None else read_columns(public, [value, by])
    if cells is not None:
        declared = Cells(cells)
    elif shown is not None:
        declared = Cells.of_public(shown[by])
    else:
        raise SettingError(
            "cells must be declared (cells, or --cell for each on the command line), or a public table given "
            "that has them."
        )
    labels = declared.labels
    if variance == "public" and shown is None:
        raise SettingError("variance='public' needs a public table.")
    columns = read_columns(table, [value, by])
    values = numbers(columns[value], f"column {value!r}", missing=missing)
    codes = declared.codes(columns[by])
    known_cells = None
    if shown is not None:
        shown_values = numbers(shown[value], f"column {value!r} of the public table", missing=missing)
        shown_codes = declared.codes(shown[by])
        known_cells = [shown_values[shown_codes == code] for code in range(len(labels))]

    # MEASURE sizes, squares and sums, each as one vector.
    label = f"mean by {by} over {len(labels)} cells"
    squares = None

    def check(who: Unit, allotment: Cost) -> None:
        for share in (size_share, asks or size_share, 1 - size_share - asks):
            grid.finest(allotment * Fraction(share), who)  # refuses too small an ε

    delta = terms.group_delta
    with open_run(epsilon, unit=unit, delta=delta, ledger=ledger, label=label, check=check) as run:
        curator = CellCurator(values, codes, len(labels), grid, noise=noise, **run)
        sizes_cost, rest = curator.remaining.split(size_share)
        squares_cost, sums_cost = rest.split(asks / (1 - size_share))
        sizes = curator.sizes(sizes_cost)
        if asks:
            squares = curator.squares(squares_cost)
        sums = curator.sums(sums_cost)

    # ESTIMATE each cell by itself, then all of them together.
    people = np.maximum(sizes.answer, 1.0)
    known = _variance(variance, known_cells, squares, people, sums, grid)
    half = grid.width / 2
    means = np.clip(sums.answer / people, -half, half)
    noise_variance = sums.stddev**2 + means**2 * sizes.stddev**2
    own_variance = known.value / people + noise_variance / people**2
    prior, prior_variance = _prior(known_cells, known.value, len(labels), grid)
    # A cell whose size is lost in the noise says nothing: its mean may be anywhere within the bounds.
    own_variance = np.where(
        sizes.answer < 2 * sizes.stddev, np.maximum(own_variance, half**2 * 100), own_variance
    )
    shift, errors, own = pool(grid.centre + means - prior, own_variance, prior_variance, most=half)
    errors = np.minimum(errors, half)  # an estimate and a mean within the bounds
    estimates = np.clip(prior + shift, grid.low, grid.high)
    z = NormalDist().inv_cdf(0.5 + confidence / 2)
    found = tuple(
        CellMean(
            label, float(x), float(e), (max(float(x - z * e), grid.low), min(float(x + z * e), grid.high)),
            float(b), max(0.0, float(n)),
        )
        for label, x, e, b, n in zip(labels, estimates, errors, own, sizes.answer, strict=True)
    )  # fmt: skip
    card = terms.card(f"mean by {by}", grid, curator) | {
        "epsilon": epsilon,
        "promise": f"ε = {epsilon:g} under {curator.unit.describe()}; the cell is as private as the value",
        "variance": {"source": variance if isinstance(variance, str) else "given", "value": known.value},
        "confidence": confidence,
        "cells": len(labels),
    }
    return GroupedAnswer(found, curator.events, card)


def _variance(
    variance: float | str,
    public: list[Array] | None,
    squares: GroupMeasurement | None,
    people: Array,
    sums: GroupMeasurement,
    grid: Grid,
) -> KnownVariance:
    """σ² within a cell."""
    if not isinstance(variance, str):
        return given_variance(variance, grid)
    if variance == "public":
        return public_variance(public or [], grid)
    if squares is None:
        return given_variance(grid.width**2 / 4, grid)
    # E(x − c)² within cells, less the cells' own squared offsets: Σ n_r (μ_r − c)², free of noise on average.
    between = ((sums.answer**2 - sums.stddev**2) / people).sum() / people.sum()
    offset = math.sqrt(min(max(float(between), 0.0), grid.width**2 / 4))
    return private_variance(squares, np.array([people.sum()]), [], offset, grid)


def _prior(public: list[Array] | None, variance: float, cells: int, grid: Grid) -> tuple[Array, Array]:
    """What is expected of each cell up to a common shift: its public mean, or the mean of the others."""
    if public is None:
        return np.full(cells, grid.centre), np.zeros(cells)
    sizes = np.array([values.size for values in public], dtype=np.float64)
    means = np.array([np.clip(x, grid.low, grid.high).mean() if x.size else np.nan for x in public])
    there = sizes > 0
    if not there.any():
        return np.full(cells, grid.centre), np.zeros(cells)
    overall = float(means[there].mean())
    between = float(means[there].var()) if there.sum() > 1 else grid.width**2 / 4
    uncertain = np.where(there, variance / np.maximum(sizes, 1), between)
    return np.where(there, means, overall), uncertain
