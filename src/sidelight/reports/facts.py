"""The facts about a release's budget and noise, as the report shows them.

Only the release is read: its card, events and measurements, never a table.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np

from sidelight.data.domain import Attrs
from sidelight.mean_errors import MEAN_ERRORS
from sidelight.measurement import Measurement, noise_stddev
from sidelight.privacy.event import (
    Event,
    Exponential,
    Exponentials,
    Gaussian,
    Gaussians,
    Laplace,
    Parallel,
    PermuteAndFlip,
    Selection,
)
from sidelight.queries.merged import Merged
from sidelight.queries.product import Product
from sidelight.queries.query import Marginal, Query, expected_l1_noise
from sidelight.queries.residual import Residual
from sidelight.releases.quality import Quality
from sidelight.releases.release import Release
from sidelight.releases.unmeasured import left_open
from sidelight.reports.words import joined, shortened
from sidelight.select.judgement import OPTIONS
from sidelight.uncertainty.error_bars import ErrorBars

Step = Literal["total", "select", "follow", "measure", "quality"]
Kind = Literal["counts", "residuals", "sums", "single queries"]
STEPS: tuple[Step, ...] = ("total", "select", "follow", "measure", "quality")

LARGE = 0.01
"""Share of the records from which on a cell is large: where errors matter most."""
_LISTED = 150
"""Most measured marginals whose expected error is listed."""
_TRIED, _TRIED_CELLS = 30, 50_000
"""Most unmeasured marginals whose expected error is computed, and most cells of each."""


@dataclass(frozen=True)
class Spending:
    """One event: a step of the mechanism, its noise and its cost."""

    number: int
    step: Step
    what: str
    noise: str
    cost: Fraction
    share: float
    """The cost as a share of the budget that was set aside for the release."""


@dataclass(frozen=True)
class Measured:
    """All measurements of one set of attributes."""

    name: str
    attrs: Attrs
    numbers: int
    """How many noisy numbers there are."""
    kind: Kind
    """The kind of these numbers."""
    stddev: float
    """σ of one number, in records; the smallest where measurements differ."""
    largest_stddev: float
    """The largest of them."""
    misfit: float
    """Root mean square of (model − measurement)/σ: near 1 where they differ by noise alone."""


@dataclass(frozen=True)
class Expected:
    """The error to expect in one marginal's counts."""

    name: str
    degree: int
    cells: int
    stddev: float | None
    """σ of the noise on a cell; None if these attributes were not measured together."""
    model_error: float | None
    """Root mean square of the model's error on a cell; None if it is unknown."""
    error: float
    """Expected L1 error over n, at most 2, the distance of two tables without a common cell."""
    is_measured: bool
    large: tuple[float, float] | None
    """The widest 95% interval of a cell that holds 1% of the records or more; None where none does."""


@dataclass(frozen=True)
class ExpectedErrors:
    """Expected errors of the workload's marginals."""

    known: tuple[Expected, ...]
    """Marginals whose error is known, the largest first."""
    unmeasured: tuple[Attrs, ...]
    """Marginals whose attributes no measurement is about together, the largest tables first; ``known`` has
    the model's error of some of these."""
    left_out: int = 0
    """Measured marginals that are not listed."""

    def unmeasured_names(self, most: int) -> str:
        """The names of the first ``most`` unmeasured marginals, and how many more there are."""
        named = ", ".join(joined(attrs) for attrs in self.unmeasured[:most])
        more = len(self.unmeasured) - most
        return f"{named} and {more:,} more" if more > 0 else named


@dataclass(frozen=True)
class Facts:
    """Everything the page says about budget and noise."""

    currency: str
    """The unit of all costs: ρ or ε."""
    spendings: tuple[Spending, ...]
    spent: Fraction
    unspent: float
    """The unspent share of the budget that was set aside for the release."""
    measured: tuple[Measured, ...]
    half_width: float
    """Half the width of a 95% interval, in σ."""

    def share_of(self, step: Step) -> float:
        """The share of the budget that this step spent."""
        return sum(spending.share for spending in self.spendings if spending.step == step)

    def times(self, step: Step) -> int:
        """How many events this step took."""
        return sum(1 for spending in self.spendings if spending.step == step)

    @property
    def has_residuals(self) -> bool:
        """Whether some numbers are residuals, which counts are sums of."""
        return any(one.kind == "residuals" for one in self.measured)

    @property
    def numbers(self) -> str:
        """The meaning of the measured numbers, in sentences."""
        kinds = {one.kind for one in self.measured if one.attrs}
        said = ["Each number below is an exact count plus noise with standard deviation σ."]
        if self.has_residuals:
            what = "a residual" if kinds == {"residuals"} else "an exact count or a residual"
            said = [
                f"Each number below is {what} plus noise with standard deviation σ, both in records. A "
                "residual is what a table's count says beyond smaller tables; a count is a sum of residuals, "
                "with the noise of all of them."
            ]
        if "sums" in kinds:
            said.append("Numbers called sums add up many counts, each with a whole number as its weight.")
        return " ".join(said)

    @property
    def learned(self) -> str:
        """All that was learned from the private table, beside the number of records, in a sentence."""
        chosen = (
            "the choice of what to measure" if self.measured else "the choices that the model is made from"
        )
        parts = [
            *(["these numbers"] if self.measured else []),
            *([chosen] if self.times("select") else []),
            *(["the choice of which model to follow"] if self.times("follow") else []),
            *(["the measured quality"] if self.times("quality") else []),
        ]
        said = " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)
        return f"From the private table, nothing was learned but {said}"


def collect(release: Release) -> Facts:
    """The facts of a release."""
    card = release.card
    spent = sum((event.cost.value for event in card.events), start=Fraction(0))
    whole = max(card.allotted, spent) or Fraction(1)
    spendings = tuple(
        Spending(
            number,
            step_of(event),
            shortened(event.what, 160),
            _noise(event),
            event.cost.value,
            float(event.cost.value / whole),
        )
        for number, event in enumerate(card.events, start=1)
    )
    return Facts(
        currency="ε" if card.accounting == "pure" else "ρ",
        spendings=spendings,
        spent=spent,
        unspent=float(1 - spent / whole),
        measured=_measured(release),
        half_width=half_width_of(card.events),
    )


def step_of(event: Event) -> Step:
    """Which step of the loop an event paid for."""
    if isinstance(event, Selection):
        return "follow" if OPTIONS in event.what else "select"
    if event.what.startswith(MEAN_ERRORS):
        return "quality"
    return "total" if event.what == Marginal(()).describe() else "measure"


def half_width_of(events: Sequence[Event]) -> float:
    """Half the width of a 95% interval in σ: 1.96 for Gaussian noise, ln 20 / √2 if any noise is Laplace."""
    leaves = [leaf for event in events for leaf in (event.parts if isinstance(event, Parallel) else (event,))]
    return math.log(20) / math.sqrt(2) if any(isinstance(leaf, Laplace) for leaf in leaves) else 1.96


def expected_errors(release: Release) -> ExpectedErrors:
    """Expected L1 error for the workload's marginals, from noise and model as far as they are known.

    Measured marginals are ranked by their noise, and the noisiest are listed. Of the unmeasured ones, an
    even part is computed.
    """
    domain = release.model.domain
    by_attr: dict[str, set[int]] = {}
    for index, made in enumerate(release.measurements):
        for attr in made.query.attrs if isinstance(made.query, Marginal) else ():
            by_attr.setdefault(attr, set()).add(index)
    asked = release.card.workload.attribute_sets
    for attrs in asked:
        domain.require(attrs)
    unmeasured = left_open(release.measurements, asked, domain)
    is_open = set(unmeasured)
    measured: list[tuple[float, Attrs]] = []
    for attrs in asked:
        if attrs and attrs not in is_open:
            # Only what covers all attributes bears on them; sets find it without trying every measurement.
            held = set.intersection(*(by_attr.get(attr, set()) for attr in attrs))
            covering = [release.measurements[index] for index in sorted(held)]
            # Residuals and single numbers have no σ of a cell: among them the largest tables are noisiest.
            stddev = noise_stddev(covering, attrs, domain) or 1.0
            measured.append((expected_l1_noise(domain.size(attrs), stddev), attrs))
    measured.sort(key=lambda ranked: -ranked[0])
    tried = [attrs for attrs in unmeasured if attrs and domain.size(attrs) <= _TRIED_CELLS]
    tried = tried[:: max(1, -(-len(tried) // _TRIED))]
    listed = [attrs for _, attrs in measured[:_LISTED]]
    told = [_expected(release, attrs, is_measured=attrs not in is_open) for attrs in (*listed, *tried)]
    known = sorted((one for one in told if one is not None), key=lambda one: -one.error)
    return ExpectedErrors(tuple(known), tuple(unmeasured), left_out=len(measured) - len(listed))


def by_attribute(quality: Quality | None) -> list[tuple[str, str, float | None]]:
    """Each attribute's measured error in words, and as a share of the largest, which comes first.

    An error that its noise exceeds has no share; where noise hides which is largest, none has, and they keep
    their order.
    """
    if quality is None or not quality.attributes:
        return []
    found = list(quality.attributes.items())
    if not quality.worst_stands_out:
        return [(shortened(name, 80), mean.words, None) for name, mean in found]
    found.sort(key=lambda one: -one[1].error)
    most = found[0][1].error
    return [
        (shortened(name, 80), mean.words, min(mean.error / most, 1.0) if mean.error > mean.margin else None)
        for name, mean in found
    ]


def _expected(release: Release, attrs: Attrs, *, is_measured: bool) -> Expected | None:
    bars = release.error_bars(attrs)
    error = bars.expected_error
    if error is None:
        return None
    return Expected(
        joined(attrs),
        len(attrs),
        bars.estimate.size,
        stddev=None if bars.noise_variance is None else math.sqrt(float(bars.noise_variance.mean())),
        model_error=None if bars.model_variance is None else math.sqrt(float(bars.model_variance.mean())),
        error=error,
        is_measured=is_measured,
        large=_widest_large(bars),
    )


def _noise(event: Event) -> str:
    match event:
        case Gaussian():
            return f"Gaussian, σ = {event.stddev:.4g}"
        case Gaussians():
            return f"Gaussian, σ up to {math.sqrt(event.largest):.4g}, on {event.numbers:,} numbers"
        case Laplace():
            return f"Laplace, b = {float(event.scale):.4g}"
        case Exponential():
            return f"exponential mechanism, {event.candidates:,} candidates"
        case Exponentials():
            return f"exponential mechanism, {event.draws} draws from {event.candidates:,} queries"
        case PermuteAndFlip():
            return f"permute-and-flip, {event.candidates:,} candidates"
        case Parallel():
            return f"side by side, {len(event.parts):,} groups"
        case _:
            return event.name


def _measured(release: Release) -> tuple[Measured, ...]:
    groups: dict[tuple[Attrs, Kind], list[Measurement]] = {}
    for measurement in release.measurements:
        key = (measurement.query.attrs, _kind(measurement.query))
        groups.setdefault(key, []).append(measurement)
    return tuple(
        Measured(
            name=joined(attrs),
            attrs=attrs,
            numbers=sum(measurement.answer.size for measurement in group),
            kind=kind,
            stddev=min(map(_in_records, group)),
            largest_stddev=max(map(_in_records, group)),
            misfit=_misfit(release, group),
        )
        for (attrs, kind), group in groups.items()
    )


def _kind(query: Query) -> Kind:
    match query:
        case Marginal() | Merged():
            return "counts"
        case Residual():
            return "residuals"
        case Product():
            return "sums"
        case _:
            return "single queries"


def _in_records(made: Measurement) -> float:
    """σ of one number; a residual is measured in whole numbers, as many times what it is in records."""
    return made.stddev / (math.prod(made.query.shape) if isinstance(made.query, Residual) else 1)


def _misfit(release: Release, group: Sequence[Measurement]) -> float:
    squares, numbers = 0.0, 0
    counts = release.model.count(group[0].query.attrs)
    for measurement in group:
        gap = np.asarray(measurement.query.apply(counts), dtype=np.float64).reshape(-1) - measurement.answer
        squares += float(np.square(gap / measurement.stddev).sum())
        numbers += gap.size
    return math.sqrt(squares / max(numbers, 1))


def _widest_large(bars: ErrorBars) -> tuple[float, float] | None:
    interval, is_large = bars.interval(), bars.estimate >= LARGE * bars.total
    if interval is None or not is_large.any():
        return None
    low, high = (end[is_large] for end in interval)
    widest = int(np.argmax(high - low))
    return float(low[widest]), float(high[widest])
