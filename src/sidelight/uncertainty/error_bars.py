"""How far a released count may be off, and why: noise, or the model.

Where some measured marginal holds the attributes asked for, the noise is known: every one that does says

    y ~ (x, σ²)     with 1/σ² the sum of their precisions on a cell; sums of cells add variances

and a fit that follows the answers is off by that noise, and by as much as it does not follow them:

    noise σ²,      model m v,      m = max(0, Σ h (y − μ)² − Σ h σ²) / Σ h v       (y: their mean)

A fit that weighs a prior against the answers is off by less noise, for some model (see dispersion.py):

    noise w²σ²,    model (1 − w)² s′v + m v,     w = s v / (s v + σ²),     s′ = max(s, s₀)

where s₀ is what is known beside the fit's own s: for one attribute the sampling error of the public records,
which no prior on a single attribute escapes; for several the level of all that was measured, see below. Such
a fit is (1 − w)² (σ² + s′v) from the answers on purpose; what it is further off counts as m, as above.

Where nothing measured the attributes together, there is the model alone, and s is the level that the
measurements found (model_error.py): model s v. Noise reaches such counts through each single attribute: an
error e in the count of one value moves a cell by about e times the share of the cell's other values,

    noise Σ_a σ_a² (μ_rest / n)²      (a value that noise drove to 0 may well have records)

and the part of it that s holds already is counted twice, to be safe. Where a measured marginal counted rare
values together, cells without such values have the noise of its answers, and the others these errors.

Where a model is reconstructed from residuals, the noise of every count and of every sum is known exactly
(models/residuals.py), and there is no model to err. Its intervals are those of least squares (unbiased.py).

An attribute that neither noisy answers nor public data tell of has no interval: its counts are a mere start.

All of this is a guess of how large errors are. Where quality was measured, both parts are fitted to it
(calibration.py), and attributes that nothing told of have an interval, too.

Errors of the model are taken to add up as counts of records drawn at random do. Everything is computed
from released outputs, and so is free. What it cannot know: whether the marginals that nobody measured are
like those that somebody did.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from statistics import NormalDist
from typing import Literal, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sidelight.data.count_source import ManyCountSource
from sidelight.data.domain import Attrs
from sidelight.measurement import Measurement, noise_stddev
from sidelight.models.model import Model
from sidelight.models.products import Products
from sidelight.models.reconstruction import Reconstruction
from sidelight.models.residuals import Residuals
from sidelight.queries.merged import Merged
from sidelight.queries.query import Marginal
from sidelight.uncertainty.calibration import Calibration, Parts, expected_errors, strayed
from sidelight.uncertainty.dispersion import variance_at_one
from sidelight.uncertainty.model_error import ModelDispersion, pairs, pairs_of
from sidelight.uncertainty.unbiased import Unbiased, least_squares

Array = NDArray[np.float64]
Source = Literal["private", "both", "model", "unmeasured"]
_FREEDOM = 4.0
"""Degrees of freedom of Student's t: how large one table's errors are is itself known to a factor of 1.5."""
_SKEW = 0.8
"""n Σ p² of an attribute of n values is about n to this power, on the tables of coverage.py."""


@dataclass(frozen=True, eq=False)
class Reach:
    """How noise in the counts of one attribute reaches the cells of a marginal that holds it."""

    axis: int
    variance: Array
    """The variance of each value's count, along the axis."""
    share: Array
    """By how much a cell moves with it; of length 1 along the axis."""

    def variance_of(self, cells: NDArray[np.bool_]) -> float:
        """The variance of the sum over some cells: those with one value move together."""
        moved = np.where(cells, self.share, 0.0)
        along = moved.sum(axis=tuple(axis for axis in range(moved.ndim) if axis != self.axis))
        return float(self.variance @ along**2)

    def variances(self) -> Array:
        """The variance of every cell by itself."""
        shape = [-1 if axis == self.axis else 1 for axis in range(self.share.ndim)]
        return np.asarray(self.variance.reshape(shape) * self.share**2)


@dataclass(frozen=True, eq=False)
class ErrorBars:
    """Counts with what is known about their errors; arrays have the shape of the counts."""

    estimate: Array
    noise_variance: Array | None
    """None where no noise is known to be in these counts."""
    model_variance: Array | None
    """None where nothing is known about the model's error: the interval is of noise alone, or missing."""
    total: float
    source: Source
    """What the counts rest on: noisy answers, answers and a prior, the model between them; or, for some
    attribute, nothing that was measured."""
    reaches: tuple[Reach, ...] = ()
    """Where the source is the model: how noise reaches it."""
    of_sum: Callable[[Array], float] | None = None
    """Where cells have errors in common, as reconstructed ones do: the variance of a weighted sum of them."""
    sampling: Array | None = None
    """v where the model speaks alone, 0 where noisy answers do; None for a sum of cells."""
    is_calibrated: bool = False
    """Whether the errors were fitted to measured quality."""
    unbiased: Unbiased | None = None
    """Where the model is a reconstruction: the answers that intervals are of."""

    @property
    def noise_error(self) -> Array | None:
        """The standard error that noise makes."""
        return None if self.noise_variance is None else np.sqrt(self.noise_variance)

    @property
    def model_error(self) -> Array | None:
        """The standard error that the model makes, and the public data in it."""
        return None if self.model_variance is None else np.sqrt(self.model_variance)

    @property
    def standard_error(self) -> Array | None:
        """Both together, or the one that is known; None where neither is."""
        known = [part for part in (self.noise_variance, self.model_variance) if part is not None]
        return np.sqrt(np.sum(known, axis=0)) if known else None

    def interval(self, confidence: float = 0.95) -> tuple[Array, Array] | None:
        """From low to high; no count is below 0, or above n."""
        if self.standard_error is None:
            return None
        if self.unbiased is not None:
            low, high = self.unbiased.interval(NormalDist().inv_cdf(0.5 + confidence / 2), self.estimate)
        else:
            reach = self._quantile(confidence) * self.standard_error
            low, high = self.estimate - reach, self.estimate + reach
        return np.maximum(low, 0.0), np.clip(high, 0.0, self.total)

    def _quantile(self, confidence: float) -> float:
        """How many standard errors an interval reaches: more where their size is an estimate."""
        if not self.is_calibrated:
            return NormalDist().inv_cdf(0.5 + confidence / 2)
        from scipy.stats import t

        return float(t.ppf(0.5 + confidence / 2, _FREEDOM))

    @property
    def expected_error(self) -> float | None:
        """E‖exact − estimate‖₁ / n, from 0 to 2; None where no error is known."""
        if self.standard_error is None:
            return None
        return float(expected_errors(self.standard_error**2, self.estimate, self.total).sum()) / self.total

    @property
    def words(self) -> str:
        """What the interval holds, for people."""
        if self.noise_variance is None and self.model_variance is None:
            return (
                "No interval: these attributes were not measured together, and nothing tells how far the "
                "model is off there. Ask for fewer attributes."
            )
        if self.unbiased is not None:
            return (
                "The interval is of noise alone, which is known exactly, around the least-squares answer; a "
                "count that was kept from being negative may stand at its end."
            )
        if self.source == "unmeasured":
            return (
                "Some of these attributes were never measured: what is said of them comes from public data "
                "alone, and the interval from how far the model was off elsewhere."
            )
        if self.source == "model":
            together = "Nothing measured these attributes together"
            return f"{together}: the interval is of the model's error, {self._how}"
        if self.model_variance is None:
            return "The interval is of noise alone: how far the model is off was not estimated."
        return f"The interval holds the noise, and what the model and public data add to it, {self._how}"

    @property
    def _how(self) -> str:
        """How the model's error is known."""
        if self.is_calibrated:
            return "as far as the measured quality of this release tells."
        return "roughly estimated and mostly too wide: quality was not measured."

    def sum(self, cells: ArrayLike) -> "ErrorBars":
        """The sum over some cells, given as a mask of the counts' shape."""
        mask = np.asarray(cells, dtype=np.bool_)
        whole = float(self.estimate[mask].sum())
        model = None
        if self.model_variance is not None:
            apart = np.maximum(1 - self.estimate / self.total, 1e-9)
            model = np.array((self.model_variance / apart)[mask].sum() * max(1 - whole / self.total, 0.0))
        noise = None if self.noise_variance is None else np.array(self.noise_variance[mask].sum())
        if self.reaches:
            noise = np.array(sum(reach.variance_of(mask) for reach in self.reaches))
        if self.of_sum is not None:
            noise = np.array(self.of_sum(mask.astype(np.float64)))
        return ErrorBars(
            np.array(whole), noise, model, self.total, self.source, is_calibrated=self.is_calibrated,
            unbiased=None if self.unbiased is None else self.unbiased.sum(mask),
        )  # fmt: skip


class CountErrors:
    """The errors of a release's counts, from its measurements and its card."""

    def __init__(
        self,
        model: Model,
        measurements: Sequence[Measurement],
        told: ModelDispersion | None,
        calibration: Calibration | None = None,
    ) -> None:
        """``told`` is the card's ``model_error``; None where no measurement counted records.

        ``calibration`` is the card's, too; None where quality was not measured.
        """
        self._model, self._calibration = model, calibration
        self._made = measurements
        self._measured = [made for made in measurements if isinstance(made.query, Marginal)]
        self._merged = [made for made in measurements if isinstance(made.query, Merged)]
        self._pairs = pairs_of(measurements)
        self._about = {attr for made in measurements for attr in made.query.attrs}
        self._told = told is not None
        error = told or ModelDispersion(levels={}, trials={})
        self._levels, self._untold = error.levels, frozenset(error.untold)
        self._spreads = {frozenset(one.attrs): (one.s, one.sampling) for one in error.spreads}
        self._singles: dict[str, Array | None] = {}

    def bars(self, attrs: Attrs) -> ErrorBars:
        """The counts over these attributes, with their errors."""
        guessed = self._guessed(attrs, self._model.count(attrs))
        if self._calibration is None or not self._about:
            # Where nothing was measured, as by DualQuery, cells without a record hide what they hold.
            return guessed
        known, model = self._calibration.level(attrs)
        parts = self._parts(attrs, guessed)
        noise = guessed.noise_variance
        left = parts.known if noise is None else parts.known - noise
        of_sum = guessed.of_sum
        return replace(
            guessed,
            noise_variance=None if noise is None else known * noise,
            model_variance=known * left + strayed(parts.sampling, model),
            reaches=tuple(replace(one, variance=known * one.variance) for one in guessed.reaches),
            of_sum=None if of_sum is None else lambda weights: known * of_sum(weights),
            is_calibrated=True,
        )

    def parts(self, wanted: Sequence[Attrs]) -> Iterator[Parts]:
        """The variances that calibration weighs, of many marginals in any order."""
        if isinstance(self._model, ManyCountSource):
            counted = self._model.count_each(wanted)
        else:
            counted = ((place, self._model.count(attrs)) for place, attrs in enumerate(wanted))
        for place, counts in counted:
            yield self._parts(wanted[place], self._guessed(wanted[place], counts))

    def _parts(self, attrs: Attrs, bars: ErrorBars) -> Parts:
        """What is known, and what drawing at random would give."""
        assert bars.sampling is not None  # these are whole marginals
        known = np.zeros(bars.estimate.shape) if bars.noise_variance is None else bars.noise_variance
        model = 0.0 if bars.model_variance is None else bars.model_variance
        known = known + np.where(bars.sampling > 0, 0.0, model)
        values = math.prod(self._model.domain.size((attr,)) for attr in self._untold & set(attrs))
        if values > 1:
            # The model starts from even counts; of many values a few are common, so each is off by more.
            known = known + (values**_SKEW - 1) * bars.estimate**2
        level = None
        if bars.model_variance is not None and bars.sampling.any():
            level = float(bars.model_variance.sum() / bars.sampling.sum())
        return Parts(attrs, bars.estimate, known, bars.sampling, level)

    def _guessed(self, attrs: Attrs, counted: ArrayLike) -> ErrorBars:
        """The errors before they are fitted to measured quality."""
        domain = self._model.domain
        counts = np.asarray(counted, dtype=np.float64)
        total = max(self._model.total, 1e-12)
        if isinstance(self._model, Reconstruction) and self._model.known.holds(attrs):
            known = self._model.known
            variance = np.broadcast_to(known.variance(attrs), counts.shape)
            return ErrorBars(
                counts, variance, np.zeros(counts.shape), total, "private",
                of_sum=partial(known.variance_of_sum, attrs), sampling=np.zeros(counts.shape),
                unbiased=self._unbiased(attrs, counts.shape),
            )  # fmt: skip
        at_one = variance_at_one(counts, total=total, cells=counts.size)
        stddev = noise_stddev(self._measured, attrs, domain)
        if stddev is None:
            s = self._level(attrs)
            source: Source = "unmeasured" if self._about and not self._about.issuperset(attrs) else "model"
            if s is None:
                return ErrorBars(counts, None, None, total, source, sampling=at_one)
            reaches = self._reaches(attrs, counts / total)
            through = np.sum([reach.variances() for reach in reaches], axis=0) if reaches else None
            bars = ErrorBars(counts, through, s * at_one, total, source, reaches, sampling=at_one)
            return self._but_for_merged(attrs, bars)
        noise = np.full(counts.shape, stddev**2)
        if not self._told:
            return ErrorBars(counts, noise, None, total, "private", sampling=np.zeros(counts.shape))
        finest = max(self._holding(attrs), key=lambda made: made.precision / domain.size(made.query.attrs))
        spread = self._spreads.get(frozenset(finest.query.attrs))
        if spread is None:
            off = self._misfit(attrs, counts, at_one, stddev, meant=noise)
            return ErrorBars(counts, noise, off * at_one, total, "private", sampling=np.zeros(counts.shape))
        s, sampling = spread
        least = sampling if len(finest.query.attrs) == 1 else self._levels.get("unmet", s)
        weight = s * at_one / (s * at_one + noise)
        model = (1 - weight) ** 2 * max(s, least) * at_one
        # Weighted records, in the end, cannot follow all that many precise answers say.
        off = self._misfit(attrs, counts, at_one, stddev, meant=(1 - weight) ** 2 * noise + model)
        return ErrorBars(counts, weight**2 * noise, model + off * at_one, total, "both", sampling=at_one)

    def _unbiased(self, attrs: Attrs, shape: tuple[int, ...]) -> Unbiased | None:
        """What least squares says; None where the answers are not at hand."""
        answers = self._least_squares
        if answers is None or not answers.holds(attrs):
            return None
        variance = np.broadcast_to(answers.variance(attrs), shape)
        return Unbiased(answers.count(attrs), variance, partial(answers.variance_of_sum, attrs))

    @cached_property
    def _least_squares(self) -> Residuals | Products | None:
        model, is_known = self._model, bool(self._made)
        return least_squares(model, self._made) if is_known and isinstance(model, Reconstruction) else None

    def _but_for_merged(self, attrs: Attrs, bars: ErrorBars) -> ErrorBars:
        """The same, but for cells that were measured by themselves while rare values were merged."""
        held = [made for made in self._merged if set(made.query.attrs) == set(attrs)]
        if not held or bars.noise_variance is None or bars.model_variance is None:
            return bars
        made, merged = held[0], cast(Merged, held[0].query)
        shape = self._model.domain.project(merged.attrs).shape
        turned = [merged.attrs.index(attr) for attr in attrs]
        alone = merged.alone.transpose(turned)
        answered = merged.transpose(made.answer, shape).transpose(turned)
        at_one = variance_at_one(bars.estimate, total=bars.total, cells=alone.size)
        told = np.where(alone, at_one / (at_one + made.stddev**2), 0.0)
        off = _beyond(told, answered - bars.estimate, at_one, meant=np.array(made.stddev**2))
        return replace(
            bars,
            noise_variance=np.where(alone, made.stddev**2, bars.noise_variance),
            model_variance=np.where(alone, off * at_one, bars.model_variance),
            source="private",
            reaches=(),
            sampling=np.where(alone, 0.0, at_one),
        )

    def _level(self, attrs: Attrs) -> float | None:
        """The s of marginals like this one; where none was tried, that of the rest, which is larger."""
        if self._untold & set(attrs):
            return None
        is_met = pairs(attrs) <= self._pairs
        unmet = self._levels.get("unmet")
        return self._levels.get("met", unmet) if is_met else unmet

    def _reaches(self, attrs: Attrs, shares: Array) -> tuple[Reach, ...]:
        """The noise of each single attribute whose counts have some."""
        if len(attrs) < 2:
            return ()
        singles = [self._noise_of_single(attr) for attr in attrs]
        return tuple(
            Reach(axis, variance, shares.sum(axis=axis, keepdims=True))
            for axis, variance in enumerate(singles)
            if variance is not None
        )

    def _noise_of_single(self, attr: str) -> Array | None:
        if attr not in self._singles:
            self._singles[attr] = self._guessed((attr,), self._model.count((attr,))).noise_variance
        return self._singles[attr]

    def _holding(self, attrs: Attrs) -> list[Measurement]:
        """The measured marginals that hold all these attributes."""
        return [made for made in self._measured if set(attrs) <= set(made.query.attrs)]

    def _misfit(self, attrs: Attrs, counts: Array, at_one: Array, stddev: float, *, meant: Array) -> float:
        """How far these counts are off from the noisy answers to them, beyond what is meant, as an s."""
        domain = self._model.domain
        answered = np.zeros(counts.shape)
        for made in self._holding(attrs):
            held = made.query.attrs
            summed = made.precision * domain.size(attrs) / domain.size(held)
            answered += (
                summed * stddev**2 * _summed(made.answer.reshape(domain.project(held).shape), held, attrs)
            )
        told = at_one / (at_one + stddev**2)  # hardly anything, of cells that noise swamps
        return _beyond(told, answered - counts, at_one, meant=meant)


def _beyond(told: Array, off: Array, at_one: Array, *, meant: Array) -> float:
    """How far answers are off beyond what is meant, as an s, by what each cell has to say."""
    spread = float((told * at_one).sum())
    beyond = float((told * (off**2 - meant)).sum())
    return max(0.0, beyond) / spread if spread > 0 else 0.0


def _summed(counts: Array, held: Attrs, attrs: Attrs) -> Array:
    """A marginal's counts summed down to some of its attributes, axes in the order asked."""
    rest = tuple(axis for axis, attr in enumerate(held) if attr not in attrs)
    kept = [attr for attr in held if attr in attrs]
    return np.asarray(counts.sum(axis=rest).transpose([kept.index(attr) for attr in attrs]))
