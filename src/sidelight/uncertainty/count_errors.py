"""How far a released count may be off, and why: noise, or the model.

Where measured marginals hold the attributes asked for, the noise is known: each of these marginals says

    y ~ (x, σ²)     with 1/σ² the sum of their precisions on a cell; sums of cells add variances

and a fit that follows the answers is off by that noise, and by as much as it does not follow them:

    noise σ²,      model m v,      m = max(0, Σ h (y − μ)² − Σ h σ²) / Σ h v       (y: their mean)

(Where the number of records is public, the errors of all c cells sum to 0, and the noise is σ² (1 − 1/c).
An answer to the same marginal that counted rare values together adds its precision to the other cells.)

A fit that weighs a prior against the answers is off by less noise, for some model (see dispersion.py):

    noise w²σ²,    model s′ (1 − w)² v + m v,    w = s v / (s v + σ²),     s′ = max(s, s₀)

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
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sidelight.data.count_source import count_each
from sidelight.data.domain import Attrs
from sidelight.measurement import Measurement
from sidelight.models.model import Model
from sidelight.uncertainty.answers import Answers
from sidelight.uncertainty.calibration import HELD_BACK, Calibration, Parts, firm_part, strayed
from sidelight.uncertainty.chance import Chance
from sidelight.uncertainty.count_noise import CellNoise, CountNoise, KnownNoise, ReachingNoise
from sidelight.uncertainty.dispersion import variance_at_one
from sidelight.uncertainty.error_bars import ErrorBars, Source
from sidelight.uncertainty.misplaced import Misplaced, skew
from sidelight.uncertainty.model_error import ModelDispersion, pairs
from sidelight.uncertainty.unbiased import Exact

Array = NDArray[np.float64]
_ONE_TABLE, _BEYOND = 0.28, 0.8
"""How far, in logs, the size of one table's errors may be from that of its degree; and that of what the model
makes, in tables of more attributes than any whose quality was measured."""


@dataclass(frozen=True, eq=False)
class _Guess:
    """Error bars before they are fitted to measured quality."""

    bars: ErrorBars
    held_back: Array
    """The variance of the distance that the fit keeps from answers that it follows."""
    sampling: Array
    """v, by how much the model speaks there: all of it where it speaks alone, 0 where noisy answers do."""
    level: float | None
    """s; None where it is unknown."""

    @property
    def uncalibrated(self) -> ErrorBars:
        """Bars for releases without measured quality: none where nothing tells how far the model is off."""
        if not self.sampling.any():
            return self.bars
        return replace(self.bars, noise=None) if self.bars.model_variance is None else _reaching_up(self.bars)


@dataclass(frozen=True, eq=False)
class _Counts:
    """The model's counts over some attributes."""

    attrs: Attrs
    counts: Array
    total: float

    @cached_property
    def at_one(self) -> Array:
        """v: the variance that drawing records at random gives."""
        return variance_at_one(self.counts, total=self.total, cells=self.counts.size)

    def guess(
        self, noise: CountNoise | None, held_back: Array | None, source: Source,
        *, sampling: Array | None = None, level: float | None = None,
    ) -> _Guess:  # fmt: skip
        """Their errors; noisy answers speak where ``sampling`` is not given.

        Where ``held_back`` is None, the model's errors are unknown.
        """
        none = np.zeros(self.counts.shape)
        alone = none if sampling is None else sampling
        model = None if held_back is None else held_back + (level or 0.0) * alone
        bars = ErrorBars(self.counts, noise, model, self.total, source)
        return _Guess(bars, none if held_back is None else held_back, alone, level)


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
        self._answers, self._chance = Answers(model.domain, measurements), chance
        self._has_told = told is not None
        self._error = told or ModelDispersion(levels={}, trials={})
        public = self._error.told_by_public
        self._told_by_public = frozenset(model.domain.attrs if public is None else public)
        self._spreads = {frozenset(one.attrs): one for one in self._error.spreads}
        self._singles: dict[str, CountNoise | None] = {}
        self._last: tuple[Attrs, ErrorBars] | None = None

    def bars(self, attrs: Attrs) -> ErrorBars:
        """The counts over these attributes, with their errors; those of the last call are kept."""
        if self._last is None or self._last[0] != attrs:
            self._last = attrs, replace(
                self._bars(attrs),
                is_total_public=self._total_is_public, total_stddev=self._error.total_stddev,
            )  # fmt: skip
        return self._last[1]

    def parts(self, wanted: Sequence[Attrs]) -> Iterator[Parts]:
        """The variances that calibration weighs, of many marginals in any order."""
        for place, counts in count_each(self._model, wanted):
            yield self._parts(wanted[place], self._guess(wanted[place], counts))

    def _bars(self, attrs: Attrs) -> ErrorBars:
        if not attrs and self._total_is_public:
            total, none = np.array(self._model.total), np.zeros(())
            return ErrorBars(total, CellNoise(none), none, float(total), "public")
        guess = self._guess(attrs, self._model.count(attrs))
        if self._calibration is None or not self._answers.attrs:
            # Where nothing was measured, as by DualQuery, the error of a cell without a record is unknown.
            return guess.uncalibrated
        return self._fitted(attrs, guess, self._calibration)

    def _fitted(self, attrs: Attrs, guess: _Guess, calibration: Calibration) -> ErrorBars:
        """The errors, fitted to measured quality."""
        bars, level = guess.bars, calibration.level(attrs)
        parts, model, unsure = self._parts(attrs, guess), level.model, level.unsure
        noise = None if bars.noise is None else bars.noise.fitted(level.known, parts.firm)
        if bars.unbiased is not None:
            most = bars.unbiased.noise
            assert isinstance(noise, KnownNoise)
            assert isinstance(most, KnownNoise)
            return replace(bars, noise=noise.at_most(most), unsure=_ONE_TABLE)
        if parts.sampling.any() and not calibration.tells_of(attrs):
            # Quality of pairs says nothing of triples: a model may have all pairs right, and miss triples.
            if parts.guessed is None and not model:
                return guess.uncalibrated
            model, unsure = max(model, parts.guessed or 0.0), math.hypot(unsure, _BEYOND)
        held_back = parts.known if bars.noise is None else parts.known - bars.noise.variance
        kept, off = level.known * held_back, strayed(parts.sampling, model)
        noisy = 0.0 if noise is None else float(noise.variance.sum())
        size = float(kept.sum()) * HELD_BACK + float(off.sum()) * unsure
        size /= max(noisy + float((kept + off).sum()), 1e-300)
        found = replace(bars, noise=noise, model_variance=kept + off, unsure=math.hypot(_ONE_TABLE, size))
        return _reaching_up(found)

    def _parts(self, attrs: Attrs, guess: _Guess) -> Parts:
        """The variance before calibration: of noise, and what drawing records at random would give."""
        bars, sampling = guess.bars, guess.sampling
        noise = np.zeros(bars.estimate.shape) if bars.noise is None else bars.noise.variance
        known = noise + guess.held_back
        values = math.prod(self._model.domain.size((attr,)) for attr in set(self._error.untold) & set(attrs))
        # The model starts from even counts; of many values a few are common, so each is off by more. What
        # is off in the other attributes is multiplied by it.
        known = skew(values) * known + (skew(values) - 1) * bars.estimate**2
        most = None if bars.unbiased is None else bars.unbiased.noise.variance
        firm = np.zeros(known.shape)
        if len(attrs) == 1 and most is None:
            # Of several attributes, answers to other tables that hold some of them take noise out, too.
            firm = firm_part(noise, bars.estimate)
        chance = None if self._chance is None else self._chance.variance(attrs, bars.estimate)
        held_back = 1 - float(noise.sum()) / max(float(known.sum()), 1e-300)
        is_left = bars.source in ("model", "unmeasured")
        return Parts(
            attrs, bars.estimate, known, held_back, is_left, firm, sampling, guess.level, most, chance
        )

    def _guess(self, attrs: Attrs, counted: ArrayLike) -> _Guess:
        """The errors before they are fitted to measured quality."""
        table = _Counts(attrs, np.asarray(counted, dtype=np.float64), max(self._model.total, 1e-12))
        s = self._level(attrs)
        exact = None if self._exact is None else self._exact.noise(attrs, table.counts.shape)
        if self._exact is not None and exact is not None:
            unbiased = self._exact.unbiased(attrs, table.counts.shape)
            if unbiased is not None or self._exact.answers is None:
                guess = table.guess(exact, np.zeros(table.counts.shape), "private")
                return replace(guess, bars=replace(guess.bars, unbiased=unbiased))
            # A part was left to the model, as LADDER does: that errs most where most records are.
            s = float(exact.variance.sum()) / max(float(table.at_one.sum()), 1e-12)
        stddev = self._answers.stddev(attrs)
        return self._of_model(table, s) if stddev is None else self._of_answers(table, stddev)

    def _of_model(self, table: _Counts, s: float | None) -> _Guess:
        """The errors where nothing measured the attributes together; ``s`` is None where it is unknown."""
        told = self._answers.attrs
        source: Source = "unmeasured" if told and not told.issuperset(table.attrs) else "model"
        if s is None:
            return table.guess(self._reaching(table), None, source, sampling=table.at_one)
        none = np.zeros(table.counts.shape)
        guess = table.guess(self._reaching(table), none, source, sampling=table.at_one, level=s)
        return self._but_for_merged(table, guess)

    def _of_answers(self, table: _Counts, stddev: float) -> _Guess:
        """The errors where measured marginals hold the attributes, with this much noise on a cell."""
        attrs, at_one = table.attrs, table.at_one
        alone = np.full(table.counts.shape, stddev**2)
        answers = 1 / (1 / alone + sum(one.alone / one.variance for one in self._answers.merged(attrs)))
        # Errors of cells that sum to a number that is known have a mean of 0.
        share = answers / answers.sum() if self._total_is_public else 0.0
        noise = CellNoise(answers * (1 - share), common=float(np.mean(answers * share)))
        if not self._has_told:
            return table.guess(noise, None, "private")
        finest = self._answers.finest(attrs)
        spread = self._spreads.get(frozenset(finest))
        if spread is None or not attrs:  # no prior tells how many records there are
            return table.guess(noise, self._misfit(table, stddev, meant=alone) * at_one, "private")
        least = spread.sampling if len(finest) == 1 else self._error.levels.get("unmet", spread.s)
        weight = spread.s * at_one / (spread.s * at_one + answers)
        level, sampling = max(spread.s, least), (1 - weight) ** 2 * at_one
        # Weighted records, in the end, cannot follow all that many precise answers say.
        off = self._misfit(table, stddev, meant=(1 - weight) ** 2 * answers + level * sampling)
        is_told = self._told_by_public.issuperset(attrs)
        return table.guess(
            CellNoise(weight**2 * noise.variance), off * at_one, "both" if is_told else "private",
            sampling=sampling, level=level,
        )  # fmt: skip

    @cached_property
    def _exact(self) -> Exact | None:
        return Exact.of(self._model, self._answers.made)

    def _but_for_merged(self, table: _Counts, guess: _Guess) -> _Guess:
        """The errors, with the noise of answers in cells that were measured while rare values were merged."""
        held, bars, at_one = self._answers.merged(table.attrs), guess.bars, table.at_one
        if not held or bars.noise is None or bars.model_variance is None:
            return guess
        merged = held[0]
        told = np.where(merged.alone, at_one / (at_one + merged.variance), 0.0)
        off = _beyond(told, merged.counts - table.counts, at_one, meant=np.array(merged.variance))
        noise = CellNoise(np.where(merged.alone, merged.variance, bars.noise.variance))
        sampling, held_back = np.where(merged.alone, 0.0, at_one), np.where(merged.alone, off * at_one, 0.0)
        return table.guess(noise, held_back, "private", sampling=sampling, level=guess.level)

    def _level(self, attrs: Attrs) -> float | None:
        """The s of marginals like this one; where none was tried, that of the rest, which is larger."""
        if set(self._error.untold) & set(attrs):
            return None
        unmet = self._error.levels.get("unmet")
        return self._error.levels.get("met", unmet) if pairs(attrs) <= self._answers.pairs else unmet

    def _reaching(self, table: _Counts) -> ReachingNoise | None:
        """The noise of the single attributes whose counts have some; None where none has."""
        noises = [self._noise_of(attr) for attr in table.attrs] if len(table.attrs) > 1 else []
        found = {axis: noise.variance for axis, noise in enumerate(noises) if noise is not None}
        return ReachingNoise(found, table.counts / table.total) if found else None

    def _noise_of(self, attr: str) -> CountNoise | None:
        if attr not in self._singles:
            self._singles[attr] = self._guess((attr,), self._model.count((attr,))).bars.noise
        return self._singles[attr]

    def _misfit(self, table: _Counts, stddev: float, *, meant: Array) -> float:
        """How far the counts are off from the noisy answers to them, beyond what is meant, as an s."""
        told = table.at_one / (table.at_one + stddev**2)  # hardly anything, of cells that noise swamps
        off = self._answers.mean(table.attrs) - table.counts
        return _beyond(told, off, table.at_one, meant=meant)


def _reaching_up(bars: ErrorBars) -> ErrorBars:
    """Bars whose intervals reach further up than down, as the errors of models do."""
    error = bars.expected_error
    assert error is not None
    return replace(bars, misplaced=Misplaced.of(bars.estimate, bars.total, share=error / 2))


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
