"""How far a released count may be off, and why: noise, or the model.

Where measured marginals hold the attributes asked for, the noise is known: each of these marginals says

    y ~ (x, σ²)     with 1/σ² the sum of their precisions on a cell; sums of cells add variances

and a fit that follows the answers is off by that noise, and by as much as it does not follow them:

    noise σ²,      model m v,      m = max(0, Σ h (y − μ)² − Σ h σ²) / Σ h v       (y: their mean)

(Where the number of records is public, the errors of all c cells sum to 0, and the noise is σ² (1 − 1/c).
An answer to the same marginal that counted rare values together adds its precision to the other cells.)

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

Where a model is made from residuals, or from Fourier coefficients, which tell of residuals, the noise of
every count and of every sum is known exactly (models/residuals.py), and there is no model to err. Its
intervals are those of least squares (unbiased.py), and no standard error is above that of least squares.
Marginals with a residual that nobody measured are the model's, as above; s is what it expects to be off.

An attribute that neither noisy answers nor public data tell of has no interval: its counts are a mere start.

All of this is a guess of how large errors are. Where quality was measured, both parts are fitted to it
(calibration.py), and attributes that nothing told of have an interval, too.

Errors of the model are taken to add up as counts of records drawn at random do. Everything is computed
from released outputs, and so is free. Released outputs cannot tell whether the marginals that nobody measured
are like the measured ones.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sidelight.data.count_source import count_each, margin
from sidelight.data.domain import Attrs
from sidelight.measurement import Measurement, noise_stddev
from sidelight.models.model import Model
from sidelight.models.products import Products
from sidelight.models.reconstruction import Reconstruction
from sidelight.models.residuals import Residuals
from sidelight.queries.merged import Merged
from sidelight.queries.query import Fourier, Marginal
from sidelight.uncertainty.calibration import Calibration, Parts, firm_part, remaining, strayed
from sidelight.uncertainty.chance import Chance
from sidelight.uncertainty.dispersion import variance_at_one
from sidelight.uncertainty.error_bars import ErrorBars, Reach, Source
from sidelight.uncertainty.misplaced import Misplaced, skew
from sidelight.uncertainty.model_error import ModelDispersion, pairs, pairs_of
from sidelight.uncertainty.unbiased import Unbiased, least_squares

Array = NDArray[np.float64]


class CountErrors:
    """The errors of a release's counts, from its measurements and its card."""

    def __init__(
        self,
        model: Model,
        measurements: Sequence[Measurement],
        told: ModelDispersion | None,
        calibration: Calibration | None = None,
        *,
        total_is_public: bool = False,
        chance: Chance | None = None,
    ) -> None:
        """``told`` is the card's ``model_error``; None where no measurement counted records.

        ``calibration`` is the card's, too; None where quality was not measured. ``total_is_public`` is what
        the unit says of the number of records. ``chance`` is for ``parts`` alone, where the model rests on
        public data.
        """
        self._model, self._calibration, self._total_is_public = model, calibration, total_is_public
        self._made = measurements
        self._measured = [made for made in measurements if isinstance(made.query, Marginal)]
        self._merged = [made for made in measurements if isinstance(made.query, Merged)]
        self._pairs = pairs_of(measurements)
        self._about = {attr for made in measurements for attr in made.query.attrs}
        self._told = told is not None
        error = told or ModelDispersion(levels={}, trials={})
        self._levels, self._untold = error.levels, frozenset(error.untold)
        public = model.domain.attrs if error.told_by_public is None else error.told_by_public
        self._told_by_public = frozenset(public)
        self._chance = chance
        self._spreads = {frozenset(one.attrs): (one.s, one.sampling) for one in error.spreads}
        self._singles: dict[str, Array | None] = {}
        self._last: tuple[Attrs, ErrorBars] | None = None

    def bars(self, attrs: Attrs) -> ErrorBars:
        """The counts over these attributes, with their errors; those of the last call are kept."""
        if self._last is None or self._last[0] != attrs:
            self._last = attrs, self._bars(attrs)
        return self._last[1]

    def _bars(self, attrs: Attrs) -> ErrorBars:
        if not attrs and self._total_is_public:
            total = np.array(self._model.total)
            return ErrorBars(total, np.zeros(()), np.zeros(()), float(total), "public", sampling=np.zeros(()))
        guessed = self._guessed(attrs, self._model.count(attrs))
        if self._calibration is None or not self._about:
            # Where nothing was measured, as by DualQuery, the error of a cell without a record is unknown.
            return guessed
        return self._fitted(attrs, guessed, self._calibration)

    def _fitted(self, attrs: Attrs, guessed: ErrorBars, calibration: Calibration) -> ErrorBars:
        """The errors, fitted to measured quality."""
        known, model = calibration.level(attrs)
        if guessed.unbiased is not None:
            return guessed.scaled(known)
        parts = self._parts(attrs, guessed)
        if parts.sampling.any() and not calibration.tells_of(attrs):
            # Quality of pairs says nothing of triples: a model may have all pairs right, and miss triples.
            if parts.guessed is None and not model:
                return guessed
            model = max(model, parts.guessed or 0.0)
        noise = guessed.noise_variance
        left = parts.known if noise is None else parts.known - noise
        kept = None if noise is None else remaining(noise, parts.firm, known)
        share = 1.0 if noise is None or kept is None else float(kept.sum() / max(noise.sum(), 1e-300))
        found = replace(
            guessed,
            noise_variance=kept,
            model_variance=known * left + strayed(parts.sampling, model),
            reaches=tuple(replace(one, variance=known * one.variance) for one in guessed.reaches),
            common=share * guessed.common,
            is_calibrated=True,
        )
        error = found.expected_error
        assert error is not None
        return replace(found, misplaced=Misplaced.of(found.estimate, found.total, share=error / 2))

    def parts(self, wanted: Sequence[Attrs]) -> Iterator[Parts]:
        """The variances that calibration weighs, of many marginals in any order."""
        for place, counts in count_each(self._model, wanted):
            yield self._parts(wanted[place], self._guessed(wanted[place], counts))

    def _parts(self, attrs: Attrs, bars: ErrorBars) -> Parts:
        """The variance before calibration: of noise, and what drawing records at random would give."""
        assert bars.sampling is not None  # these are whole marginals
        known = np.zeros(bars.estimate.shape) if bars.noise_variance is None else bars.noise_variance
        model = 0.0 if bars.model_variance is None else bars.model_variance
        known = known + np.where(bars.sampling > 0, 0.0, model)
        values = math.prod(self._model.domain.size((attr,)) for attr in self._untold & set(attrs))
        # The model starts from even counts; of many values a few are common, so each is off by more. What
        # is off in the other attributes is multiplied by it.
        known = skew(values) * known + (skew(values) - 1) * bars.estimate**2
        level = None
        if bars.model_variance is not None and bars.sampling.any():
            level = float(bars.model_variance.sum() / bars.sampling.sum())
        most = None if bars.unbiased is None else bars.unbiased.variance
        firm = np.zeros(known.shape)
        if len(attrs) == 1 and most is None and bars.noise_variance is not None:
            # Of several attributes, answers to other tables that hold some of them take noise out, too.
            firm = firm_part(bars.noise_variance, bars.estimate)
        chance = None if self._chance is None else self._chance.variance(attrs, bars.estimate)
        return Parts(attrs, bars.estimate, known, firm, bars.sampling, level, most, chance)

    def _guessed(self, attrs: Attrs, counted: ArrayLike) -> ErrorBars:
        """The errors before they are fitted to measured quality."""
        counts = np.asarray(counted, dtype=np.float64)
        total = max(self._model.total, 1e-12)
        at_one = variance_at_one(counts, total=total, cells=counts.size)
        expected = None
        known = self._known
        if known is not None and known.holds(attrs):
            variance = np.broadcast_to(known.variance(attrs), counts.shape)
            unbiased = self._unbiased(attrs, counts.shape)
            if unbiased is not None or self._least_squares is None:
                return ErrorBars(
                    counts, variance, np.zeros(counts.shape), total, "private",
                    of_sum=partial(known.variance_of_sum, attrs), sampling=np.zeros(counts.shape),
                    unbiased=unbiased,
                )  # fmt: skip
            # A part was left to the model, as LADDER does: that errs most where most records are.
            expected = float(variance.sum()) / max(float(at_one.sum()), 1e-12)
        stddev = noise_stddev(self._measured, attrs, self._model.domain)
        if stddev is None:
            return self._of_model(attrs, counts, at_one, self._level(attrs) if expected is None else expected)
        return self._of_answers(attrs, counts, at_one, stddev)

    def _of_model(self, attrs: Attrs, counts: Array, at_one: Array, s: float | None) -> ErrorBars:
        """The errors where nothing measured the attributes together; ``s`` is None where it is unknown."""
        total = max(self._model.total, 1e-12)
        source: Source = "unmeasured" if self._about and not self._about.issuperset(attrs) else "model"
        if s is None:
            return ErrorBars(counts, None, None, total, source, sampling=at_one)
        reaches = self._reaches(attrs, counts / total)
        through = np.sum([reach.variances() for reach in reaches], axis=0) if reaches else None
        bars = ErrorBars(counts, through, s * at_one, total, source, reaches, sampling=at_one)
        return self._but_for_merged(attrs, bars)

    def _of_answers(self, attrs: Attrs, counts: Array, at_one: Array, stddev: float) -> ErrorBars:
        """The errors where measured marginals hold the attributes, with this much noise on a cell."""
        domain, total = self._model.domain, max(self._model.total, 1e-12)
        alone = np.full(counts.shape, stddev**2)
        answers = 1 / (1 / alone + self._precision_of_merged(attrs, counts.shape))
        # Errors of cells that sum to a number that is known have a mean of 0.
        share = answers / answers.sum() if self._total_is_public else 0.0
        noise, common = answers * (1 - share), float(np.mean(answers * share))
        if not self._told:
            return ErrorBars(
                counts, noise, None, total, "private", common=common, sampling=np.zeros(counts.shape)
            )
        finest = max(self._holding(attrs), key=lambda made: made.precision / domain.size(made.query.attrs))
        spread = self._spreads.get(frozenset(finest.query.attrs))
        if spread is None or not attrs:  # no prior tells how many records there are
            off = self._misfit(attrs, counts, at_one, stddev, meant=alone)
            return ErrorBars(
                counts, noise, off * at_one, total, "private", common=common, sampling=np.zeros(counts.shape)
            )
        s, sampling = spread
        least = sampling if len(finest.query.attrs) == 1 else self._levels.get("unmet", s)
        weight = s * at_one / (s * at_one + answers)
        model = (1 - weight) ** 2 * max(s, least) * at_one
        # Weighted records, in the end, cannot follow all that many precise answers say.
        off = self._misfit(attrs, counts, at_one, stddev, meant=(1 - weight) ** 2 * answers + model)
        is_told = self._told_by_public.issuperset(attrs)
        return ErrorBars(
            counts, weight**2 * noise, model + off * at_one, total, "both" if is_told else "private",
            sampling=at_one,
        )  # fmt: skip

    def _unbiased(self, attrs: Attrs, shape: tuple[int, ...]) -> Unbiased | None:
        """The least-squares counts with their variance; None where the answers are not at hand."""
        answers = self._least_squares
        if answers is None or not answers.holds(attrs):
            return None
        variance = np.broadcast_to(answers.variance(attrs), shape)
        return Unbiased(answers.count(attrs), variance, partial(answers.variance_of_sum, attrs))

    @cached_property
    def _known(self) -> Residuals | Products | None:
        """The residuals that the model was made from: its own, or those that Fourier coefficients tell of."""
        if isinstance(self._model, Reconstruction):
            return self._model.known
        made = [one for one in self._made if isinstance(one.query, Fourier)]
        has_total = any(not one.query.attrs for one in made)
        total = None if has_total else self._model.total
        return Residuals.of(self._model.domain, made, total=total) if made else None

    @cached_property
    def _least_squares(self) -> Residuals | Products | None:
        if isinstance(self._model, Reconstruction):
            return least_squares(self._model, self._made) if self._made else None
        return self._known

    def _precision_of_merged(self, attrs: Attrs, shape: tuple[int, ...]) -> Array:
        """The precision that answers to merged marginals add to the cells which they count singly."""
        added = np.zeros(shape)
        for made in self._merged:
            merged = cast(Merged, made.query)
            if set(merged.attrs) == set(attrs):
                turned = [merged.attrs.index(attr) for attr in attrs]
                added += made.precision * merged.alone.transpose(turned)
        return added

    def _but_for_merged(self, attrs: Attrs, bars: ErrorBars) -> ErrorBars:
        """The bars, with the noise of answers in cells that were measured while rare values were merged."""
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
            answer = made.answer.reshape(domain.project(held).shape)
            answered += summed * stddev**2 * margin(answer, held, attrs)
        told = at_one / (at_one + stddev**2)  # hardly anything, of cells that noise swamps
        return _beyond(told, answered - counts, at_one, meant=meant)


def _beyond(told: Array, off: Array, at_one: Array, *, meant: Array) -> float:
    """How far answers are off beyond what is meant, as an s, by what each cell has to say.

    Squares of noise differ from what is meant by chance alone, with the variance 2 Σ h² meant². An excess b
    of the same size tells nothing, and b (1 − that variance / b²) is left of it, as James and Stein shrink.
    """
    spread = float((told * at_one).sum())
    beyond = float((told * (off**2 - meant)).sum())
    chance = 2 * float((told**2 * meant**2).sum())
    if spread <= 0 or beyond <= 0 or beyond**2 <= chance:
        return 0.0
    return beyond * (1 - chance / beyond**2) / spread
