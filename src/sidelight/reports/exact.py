"""Exact comparisons for a PRIVATE report; the only file of the report that looks at a table.

PRIVACY: all of this sees exact counts. What it returns may go on a page that says PRIVATE at its
top and in its name, and nowhere else.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sidelight.data.domain import Attrs
from sidelight.data.table import Table
from sidelight.errors import DataError
from sidelight.queries.query import Marginal
from sidelight.releases.release import Release
from sidelight.reports.facts import LARGE
from sidelight.reports.pictures import OneWay, values_of
from sidelight.reports.words import joined, number, shortened

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Gap:
    """How far one released marginal is from the exact one."""

    name: str
    cells: int
    mean: float
    """Mean |exact − released| of its cells, in records."""
    worst: str | None
    """The cell that is off by most, of those that hold 1% of the records or more; None if none does."""
    l1: float
    """‖exact − released‖₁ / n: 0 for equal, 2 for disjoint."""
    inside: float | None
    """Share of cells whose 95% interval holds the exact count; None where there is no interval."""


@dataclass(frozen=True)
class Comparison:
    """PRIVATE: the release beside the exact counts."""

    records: int
    gaps: tuple[Gap, ...]
    """The largest L1 first."""
    inside: float | None
    """Share of all compared cells with an interval that holds the exact count."""

    @property
    def mean_l1(self) -> float:
        """Mean of the marginals' L1 distances, over n."""
        return float(np.mean([gap.l1 for gap in self.gaps])) if self.gaps else 0.0


def compare(release: Release, table: Table, wanted: Iterable[Attrs]) -> Comparison:
    """Compare the release with exact counts on these marginals and on every measured one."""
    domain = release.model.domain
    if table.domain.sizes != domain.sizes:
        raise DataError(
            "the table to compare with has other attributes than the release; read it with the release's "
            "own schema."
        )
    measured = [
        m.query.attrs for m in release.measurements if isinstance(m.query, Marginal) and m.query.attrs
    ]
    chosen = list(dict.fromkeys([*(domain.canonical(attrs) for attrs in (*wanted, *measured))]))
    gaps, held, cells = [], 0.0, 0
    for attrs, counts in zip(chosen, table.count_many(chosen), strict=True):
        bars = release.error_bars(attrs)
        exact = np.asarray(counts, dtype=np.float64)
        gap = np.abs(exact - bars.estimate)
        interval = bars.interval()
        inside = None if interval is None else float(((interval[0] <= exact) & (exact <= interval[1])).mean())
        if inside is not None:
            held, cells = held + inside * gap.size, cells + gap.size
        share = float(gap.sum()) / max(table.records, 1)
        worst = _worst(release, attrs, exact, bars.estimate)
        gaps.append(Gap(joined(attrs), gap.size, float(gap.mean()), worst, share, inside))
    gaps.sort(key=lambda gap: -gap.l1)
    return Comparison(table.records, tuple(gaps), held / cells if cells else None)


def _worst(release: Release, attrs: Attrs, exact: Array, released: Array) -> str | None:
    """The cell off by most among those large by either count: a lost cell matters like a made-up one."""
    total = max(float(exact.sum()), 1.0)
    gap = np.where(np.maximum(exact, released) >= LARGE * total, np.abs(exact - released), -1.0)
    place = np.unravel_index(int(gap.argmax()), gap.shape)
    if gap[place] < 0:
        return None
    labels = [
        values_of(release, attr, most=release.model.domain.sizes[attr]).labels[code]
        for attr, code in zip(attrs, place, strict=True)
    ]
    cell = shortened(" × ".join(labels), 80)
    return f"{cell}: {number(float(exact[place]))} exact, {number(float(released[place]))} released"


def with_exact(drawn: OneWay, table: Table) -> OneWay:
    """The same picture with exact counts beside the released ones."""
    return replace(drawn, exact=drawn.values.merge(table.count((drawn.values.attr,))))
