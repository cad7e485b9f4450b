"""Error bars fitted to measured quality, by degree and by attribute.

What noise and dispersion say of a marginal's error (error_bars.py) is a guess. Mechanisms measure what is
worst, so what they leave unmeasured is better than the guess; and fits smooth part of the noise away.
Measured quality (mean_errors.py) is the mean error of the final model, with noise of known size. Two numbers
of each degree, k and F, are fitted to it, and one number g of each attribute:

    V_i = f_i + k (known_i − f_i) + s v_i² / (v_i + s/10),       s = F_d · Π_a g_a²

- *known* is the variance of noise, and of the distance that a fit keeps from the answers.
- k is the part of it that is left: keeping counts from being negative takes noise out of small ones.
- f is firm: nothing takes it out. For the count μ of a single attribute's value, with the noise σ of all
  answers about it together, f = σ² μ² / (μ² + σ²), nearly all of the noise where μ is far above it. Only k
  above 1 or next to 0 changes f. For several attributes f is 0, because answers to other tables tell of
  them, too. (So a table of hundreds of rare values, which loses most of its noise, takes none from tables of
  two values.)
- v is the variance that drawing records at random gives (dispersion.py), in marginals that nobody measured as
  a whole; s says how far the model is off there. The fraction keeps a cell from being off by many times what
  it holds. Where a fit weighs public data against an answer, v is multiplied by what the answer left of it.

One number λ is fitted for each degree, k = λ^2a and F = F₀ λ^2b. Noise is known far better than a model. With
the share p of the error that the model makes, and the standard deviations n and m of the logarithms of both
parts, a change of the mean error is most likely one of the noise in proportion to a ∝ (1 − p) n², and of the
model to b ∝ p m². (So a few tables that are left to the model are not taken to be exact because the many
measured ones err by less than their noise.)

LADDER and HDMM reconstruct their models from answers whose noise is known exactly. Reconstruction takes noise
out and adds none, so k · known is at most the variance of least squares (unbiased.py), in every cell. Where a
degree has other marginals, too, λ is fitted to those alone: k is 1, and the errors of the marginals with
exact noise are subtracted from the measured mean. These are smaller than their noise by a share that is known
roughly; where that share decides what is left of the mean, the prior does.

A marginal's expected error is E‖x − μ‖₁ / n, where a cell's error is bounded by the records that can be
there:

    e = 1/n Σ_i a_i / (1 + a_i / 2m_i),     a_i = √(2V_i/π),     m_i = 0.9 μ_i + 0.1 n / cells

It is at most 2, as errors are. (Without the bound, noise on many empty cells would add up to many times n.)

A measured mean has noise, so k, F and g are fitted to its posterior. Priors: the log odds e/(2 − e) of a
degree are normal around the guess, with the variance (1 − p)² n² + p² m², and log g around 0. Where lower
degrees are left to the model, the highest degree's F is the guess, with a small m: both are errors of one
model. A mean that drowns in its noise leaves the guess nearly as it was.

How well the model's errors are known after that, the standard deviation of their logarithm, is kept, too:
intervals are those of errors whose size is log-normal with it (error_bars.py).

Where the model rests on public data, the mean error is hardly below what chance alone gives (chance.py). So a
posterior median below that is weighed against it, each by how well it is known. A measured mean that is below
it by more than five standard deviations of its noise contradicts chance, and stays as it is: public and
private records may be the same people's, or private answers may have outweighed few public records.

The constants below were chosen on the tables of benchmarks/utility/coverage.py, but for three that it keeps
out.

PRIVACY: functions of noisy answers, noisy means and of the model alone; post-processing.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sidelight.data.domain import Attrs, Domain
from sidelight.errors import SettingError
from sidelight.mean_errors import MarginalSet, MeanErrors, NoisyMeans
from sidelight.uncertainty.dispersion import four_digits

Array = NDArray[np.float64]

_NAMES: dict[int, Literal["1", "2", "3"]] = {1: "1", 2: "2", 3: "3"}
MEAN_OF_NORMAL = math.sqrt(2 / math.pi)
"""E|x| of a standard normal x."""
_EVEN = 0.1
"""Share of the records that may be anywhere, whatever the model says."""
_KNOWN, HELD_BACK, _GUESSED, _UNGUESSED, _ATTRIBUTE = 0.25, 0.6, 0.7, 2.0, 0.2
"""Standard deviations of the priors, in logs of odds or of factors: of errors that noise alone makes, or that
a higher degree tells of; of the distance that fits keep from answers; of what the model makes, by the guess,
and where there is none; of g."""
_TOO_LARGE, _FROM_WORST = 0.1, 0.3
"""The guess is too large by so much, in log odds: fits take noise out; and, of what the model makes, since it
comes from the worst marginals."""
_LEAST_ROOM = 0.25
"""The least 1 − e/2 of an error e: larger errors are not known to be as large."""
_BELOW = 0.1
"""Standard deviation, in log odds, by which the mean error may lie below what chance alone gives."""
_NOTHING_GUESSED = 0.2
"""The guess of the error where no measurement tried the model."""
_KEPT, _UNSURE = 0.75, 0.3
"""The share that is left of the errors of exact noise once counts are kept from being negative; and the
relative standard deviation of that share from release to release."""
_PART = 0.1
"""Relative standard deviation between the mean over the marginals used here and that over all measured
ones."""
_MOST, _MOST_CELLS = 150, 2**22
"""Most marginals of one degree that calibration uses, and most cells of them together: more take seconds."""
_SINGLE, _GROUPS = 64, 64
"""A marginal's largest cells are kept one by one, the others in groups of similar counts."""
_BOUND = 0.1
"""A cell's squared error is at most v² over this."""
_FIRM = 0.05
"""Where k is below this, noise of large counts shrinks, too."""
_ROUNDS = 3
"""Rounds in which attributes and degree are fitted in turn; further rounds change nothing that shows."""
_ALL = slice(None)


@dataclass(frozen=True, kw_only=True)
class Level:
    """How far off tables of one degree are, next to what was guessed."""

    known: float
    """k: the factor on the variance of noise. It is below 1 where fits took noise out, and above 1 where
    noise explains less than was measured. Exact noise is at most that of least squares, whatever k is."""
    model: float
    """F: the model's variance where nobody measured, next to that of drawing records at random."""
    unsure: float = 0.0
    """How well the size of the model's errors is known: the standard deviation of its logarithm."""


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """How error bars were fitted to the release's measured quality."""

    degrees: Mapping[Literal["1", "2", "3"], Level]
    """The level of each number of attributes; tables of more attributes go by the highest."""
    attributes: Mapping[str, float]
    """g: the factor by which the standard error of unmeasured tables with this attribute is larger."""

    def __post_init__(self) -> None:
        levels = [part for one in self.degrees.values() for part in (one.known, one.model)]
        if not levels or min(levels) < 0 or min(self.attributes.values(), default=1.0) <= 0:
            raise SettingError("error bars are fitted to one degree at least, by factors above 0.")

    def tells_of(self, attrs: Attrs) -> bool:
        """Whether the quality of tables of as many attributes, or of more, was measured."""
        return len(attrs) <= int(max(self.degrees))

    def level(self, attrs: Attrs) -> Level:
        """k and F g² for a marginal, and how well they are known."""
        highest = max(self.degrees)
        own = self.degrees.get(_NAMES.get(len(attrs), highest), self.degrees[highest])
        return replace(
            own, model=own.model * math.prod(self.attributes.get(attr, 1.0) for attr in attrs) ** 2
        )


def strayed(sampling: Array, dispersion: ArrayLike) -> Array:
    """The variance of a model's cells: s v, bounded so that no cell is off by many times what it holds.

    >>> strayed(np.array([1000.0, 1.0, 0.0]), 8.0).round(2).tolist()
    [7993.61, 4.44, 0.0]
    """
    s = np.asarray(dispersion, dtype=np.float64)
    return np.asarray(s * sampling**2 / np.maximum(sampling + _BOUND * s, 1e-300))


def expected_errors(variance: Array, estimate: Array, total: float) -> Array:
    """E|x − μ| of every cell, bounded by the records that can be there.

    >>> expected_errors(np.array([1e12, 25.0]), np.array([30.0, 70.0]), 100.0).round(1).tolist()
    [64.0, 3.9]
    """
    plain = MEAN_OF_NORMAL * np.sqrt(variance)
    return np.asarray(plain / (1 + plain / (2 * _room(estimate, total))))


def remaining(known: Array, firm: Array, factor: float) -> Array:
    """A variance multiplied by a factor k; where k is below 1, the firm part of the variance goes last.

    >>> remaining(np.array([4.0, 4.0]), np.array([0.0, 3.0]), 0.5).tolist()
    [2.0, 3.5]
    """
    if factor >= 1:
        return np.asarray(factor * known)
    return np.asarray(min(1.0, factor / _FIRM) * firm + factor * (known - firm))


def firm_part(noise: Array, estimate: Array) -> Array:
    """The part of the noise's variance that no fit takes out: nearly all where a count is far above it.

    >>> firm_part(np.array([100.0, 100.0]), np.array([0.0, 1000.0])).round(2).tolist()
    [0.0, 99.99]
    """
    return np.asarray(noise * estimate**2 / np.maximum(estimate**2 + noise, 1e-300))


@dataclass(frozen=True, eq=False)
class Parts:
    """The variance of a marginal's cells before calibration, in its two parts."""

    attrs: Attrs
    estimate: Array
    known: Array
    """The variance of noise, and of the distance that the fit keeps from the answers."""
    held_back: float
    """The share of this distance in ``known``."""
    is_left: bool
    """Whether nothing measured the attributes together, so that the counts are the model's alone."""
    firm: Array
    """The part of ``known`` that a k below 1 takes out last."""
    sampling: Array
    """v where the counts are the model's alone; where noisy answers tell of them, what they left of it."""
    guessed: float | None
    """F without calibration; None where nothing tells of it."""
    most: Array | None = None
    """The variance of the least-squares answers; None where noise is not known exactly."""
    chance: Array | None = None
    """The variance that chance alone gives; None where the model does not rest on public data."""


PartsOf = Callable[[Sequence[Attrs]], Iterable[Parts]]
"""From many marginals to their parts, in any order."""


def calibrated(
    parts_of: PartsOf, asked: MeanErrors, measured: NoisyMeans, domain: Domain, total: float
) -> Calibration | None:
    """The calibration by the means that were measured; None where none is of a degree."""
    means = [
        _Mean(part, value / total, stddev / total)
        for part, value, stddev in zip(asked.sets, measured.means, measured.stddevs, strict=True)
    ]
    degrees = sorted((one for one in means if one.part.kind == "degree"), key=lambda one: -int(one.name))
    if not degrees or total <= 0:
        return None
    by_attribute = [one for one in means if one.part.kind == "attribute"]
    highest, factors = degrees[0], dict.fromkeys((one.name for one in by_attribute), 1.0)
    shapes = _Shapes.of(parts_of, _some(asked, highest, domain), total)
    level = _fitted(shapes, highest)
    for _ in range(_ROUNDS if by_attribute else 0):
        for one in by_attribute:
            factors[one.name] = _factor(shapes, one, level, factors[one.name])
            shapes.take(factors)
        level = _fitted(shapes, highest)
    found = {highest.name: level}
    for one in degrees[1:]:
        lower = _Shapes.of(parts_of, _some(asked, one, domain), total, told=shapes.off(level))
        lower.take(factors)
        found[one.name] = _fitted(lower, one)
    return Calibration(
        degrees={
            _NAMES[int(name)]: Level(
                known=four_digits(one.known), model=four_digits(one.model), unsure=four_digits(one.unsure)
            )
            for name, one in found.items()
        },
        attributes={name: four_digits(factor) for name, factor in factors.items()},
    )


@dataclass(frozen=True)
class _Mean:
    """One measured mean, as a share of n."""

    part: MarginalSet
    error: float
    stddev: float

    @property
    def name(self) -> str:
        return self.part.name


@dataclass(eq=False)
class _Shapes:
    """Many marginals in a few numbers each: cells of similar counts stand together, with a weight."""

    attrs: list[Attrs]
    weight: Array
    known: Array
    firm: Array
    most: Array
    """The upper bound of k · known; infinite where noise is not known exactly."""
    sampling: Array
    chance: Array
    room: Array
    guesses: list[float | None]
    held_back: float
    left: float
    """The share of the marginals that are left to the model; ``held_back`` is the mean over all."""
    total: float
    told: float | None = None
    """The square of the factor by which a higher degree found the model's error larger than guessed."""
    factor: Array = field(init=False)
    """g² of every marginal."""

    def __post_init__(self) -> None:
        self.factor = np.ones(len(self.attrs))

    @classmethod
    def of(
        cls, parts_of: PartsOf, wanted: Sequence[Attrs], total: float, *, told: float | None = None
    ) -> "_Shapes":
        parts = [
            (one.attrs, one.guessed, one.held_back, one.is_left, _grouped(one, total))
            for one in parts_of(wanted)
        ]
        attrs, guesses, held, left, rows = zip(*parts, strict=True)
        weight, known, firm, most, sampling, chance, room = map(np.stack, zip(*rows, strict=True))
        return cls(
            list(attrs), weight, known, firm, most, sampling, chance, room, list(guesses),
            float(np.mean(held)), float(np.mean(left)), total, told,
        )  # fmt: skip

    def take(self, factors: Mapping[str, float]) -> None:
        """Set g² of every marginal, from the factors of the attributes."""
        self.factor = np.array(
            [math.prod(factors.get(attr, 1.0) for attr in attrs) ** 2 for attrs in self.attrs]
        )

    def level(self, scale: float) -> Level:
        """k and F at λ."""
        noise, model = self.believed.powers
        known = min(scale ** (2 * noise), self.largest)
        return Level(known=known, model=self.guess.model * scale ** (2 * model))

    @cached_property
    def guess(self) -> Level:
        """k and F before this degree's quality is looked at."""
        # What a higher degree tells is of marginals that are left to the model there, and here.
        told = 1.0 if self.told is None else self.told**self.left
        return Level(known=1.0, model=self.usual * told if self.has_model else 0.0)

    def off(self, level: Level) -> float:
        """The square of the factor by which a level's model error is larger than guessed."""
        return level.model / self.usual if self.has_model else 1.0

    def errors(self, level: Level, held: NDArray[np.bool_] | slice = _ALL, *, times: float = 1.0) -> Array:
        """The expected error of every marginal, or of those that are held, with so many times their g²."""
        kept = remaining(self.known[held], self.firm[held], level.known)
        variance = np.minimum(kept, self.most[held])
        variance += strayed(self.sampling[held], (times * level.model * self.factor[held])[:, None])
        return self._expected(variance, held)

    @property
    def least(self) -> float:
        """The mean error that chance alone gives, over the marginals that λ is fitted to."""
        return float(self._expected(self.chance)[self.fitted].mean())

    def _expected(self, variance: Array, held: NDArray[np.bool_] | slice = _ALL) -> Array:
        plain = MEAN_OF_NORMAL * np.sqrt(variance)
        bounded = plain / (1 + plain / (2 * self.room[held]))
        return np.asarray((self.weight[held] * bounded).sum(axis=1) / self.total)

    def mean(self, level: Level) -> float:
        """The mean over the marginals that λ is fitted to."""
        return float(self.errors(level)[self.fitted].mean())

    def rest_of(self, mean: "_Mean") -> "_Mean":
        """The measured mean over the marginals that λ is fitted to, without those of exact noise."""
        share = float(self.fitted.mean())
        if share == 1:
            return mean
        others = _KEPT * (1 - share) * float(self.errors(self.guess)[~self.fitted].mean())
        stddev = math.hypot(mean.stddev, _UNSURE * others)
        return replace(mean, error=(mean.error - others) / share, stddev=stddev / share)

    @property
    def is_exact(self) -> bool:
        """Whether the noise of all marginals is known exactly."""
        return bool(np.isfinite(self.most).all())

    @cached_property
    def fitted(self) -> NDArray[np.bool_]:
        """The marginals that λ is fitted to: all, or those whose noise is not known exactly."""
        exact = np.isfinite(self.most).all(axis=1)
        return np.asarray(~exact | self.is_exact)

    @cached_property
    def largest(self) -> float:
        """The k above which every error is that of least squares."""
        return float(np.max(self.most / np.maximum(self.known, 1e-300), where=self.known > 0, initial=1.0))

    @cached_property
    def usual(self) -> float:
        """F before calibration; 1 where nothing tells of it."""
        known = [guess for guess in self.guesses if guess is not None]
        return float(np.mean(known)) if known else 1.0

    @cached_property
    def believed(self) -> "_Belief":
        """The prior of the mean error."""
        guessed = self.mean(self.guess)
        share = 1 - self.mean(replace(self.guess, model=0.0)) / max(guessed, 1e-300)
        # Beside exact noise, what is measured tells of the model alone.
        noise = (_KNOWN + (HELD_BACK - _KNOWN) * self.held_back) if self.fitted.all() else 0.0
        if self.told is not None:
            model = _GUESSED + (_KNOWN - _GUESSED) * self.left
            return _Belief(_log_odds(guessed) - _TOO_LARGE * (1 - share), share, noise, model)
        if not self.is_guessed:
            return _Belief(_log_odds(max(guessed, _NOTHING_GUESSED)), share, noise, _UNGUESSED)
        return _Belief(_log_odds(guessed) - _TOO_LARGE - _FROM_WORST * share, share, noise, _GUESSED)

    @property
    def has_model(self) -> bool:
        """Whether the model speaks alone in some marginal."""
        return bool(self.sampling.any())

    @property
    def is_guessed(self) -> bool:
        return not self.has_model or any(guess is not None for guess in self.guesses)


@dataclass(frozen=True)
class _Belief:
    """The prior of a mean error e: log e/(2 − e) ~ N(odds, (spread / room)²), log e has about this spread."""

    odds: float
    share: float
    """Which share of e the model makes, where it speaks alone; noise makes the rest."""
    noise: float
    """The standard deviation of the logarithm of what noise makes."""
    model: float
    """That of what the model makes."""

    @property
    def room(self) -> float:
        """1 − e/2: the change of log e that a change of its log odds makes."""
        return max(1 / (1 + math.exp(self.odds)), _LEAST_ROOM)

    @property
    def spread(self) -> float:
        return max(math.hypot((1 - self.share) * self.noise, self.share * self.model), 1e-3)

    @property
    def powers(self) -> tuple[float, float]:
        """How much of a change of log e is one of what noise makes, and of the model: the larger is 1."""
        noise, model = (1 - self.share) * self.noise**2, self.share * self.model**2
        largest = max(noise, model, 1e-300)
        return noise / largest, model / largest

    def unsure(self, spread: float) -> float:
        """The standard deviation of what the model makes, once log e is known with this one."""
        told = self.share * self.model**2 / self.spread
        return math.sqrt(max(self.model**2 - told**2 * (1 - (spread / self.spread) ** 2), 0.0))


def _fitted(shapes: _Shapes, mean: _Mean) -> Level:
    """The level at which the mean of all expected errors is the posterior median of the measured one."""
    believed = shapes.believed
    found, spread = _posterior(shapes.rest_of(mean), believed, least=_log_odds(shapes.least))
    scale = _solved(lambda scale: shapes.mean(shapes.level(scale)), found)
    return replace(shapes.level(scale), unsure=believed.unsure(spread))


def _posterior(mean: _Mean, believed: _Belief, *, least: float) -> tuple[float, float]:
    """The posterior median of the mean error e, and about the posterior standard deviation of log e.

    A median below the least that chance gives is weighed against that, each by how well it is known.
    """
    grid = np.linspace(-14.0, 7.0, 2000)
    errors = 2 / (1 + np.exp(-grid))
    logs = -0.5 * ((grid - believed.odds) * believed.room / believed.spread) ** 2
    logs -= 0.5 * ((errors - mean.error) / max(mean.stddev, 1e-6)) ** 2
    below = np.cumsum(np.exp(logs - logs.max()))
    low, median, high = np.interp([0.16, 0.5, 0.84], below / below[-1], grid)
    own = (high - low) / 2
    contradicted = _log_odds(mean.error + 5 * mean.stddev) < least
    if median < least and not contradicted:
        median = (_BELOW**2 * median + own**2 * least) / (_BELOW**2 + own**2)
    return float(2 / (1 + np.exp(-median))), float(own) * believed.room


def _log_odds(error: float) -> float:
    bounded = min(max(error, 1e-6), 2 - 1e-6)
    return math.log(bounded / (2 - bounded))


def _factor(shapes: _Shapes, mean: _Mean, level: Level, factor: float) -> float:
    """g of an attribute: e to the posterior mean of log g, given the measured mean of its marginals."""
    held = np.array([mean.name in attrs for attrs in shapes.attrs])
    if not held.any():
        return factor
    grid = np.linspace(-1.2, 1.2, 97)
    # What is known to be noise does not grow with g, so the error is computed for each g.
    some = grid[::8]
    errors = [float(shapes.errors(level, held, times=math.exp(2 * g) / factor**2).mean()) for g in some]
    expected = np.interp(grid, some, errors)
    stddev = np.maximum(np.hypot(mean.stddev, _PART * expected), 1e-12)
    logs = -0.5 * (grid / _ATTRIBUTE) ** 2 - np.log(stddev)
    logs -= 0.5 * ((expected - mean.error) / stddev) ** 2
    chances = np.exp(logs - logs.max())
    return math.exp(float(chances @ grid / chances.sum()))


def _some(asked: MeanErrors, mean: _Mean, domain: Domain) -> list[Attrs]:
    """Some of a set's marginals: in a fixed random order, as many as there is room for."""
    order = np.random.default_rng(0).permutation(len(mean.part.places))
    listed = [asked.marginals[mean.part.places[place]] for place in order.tolist()]
    kept: list[Attrs] = []
    room = _MOST_CELLS
    for attrs in listed:
        if domain.size(attrs) <= room and len(kept) < _MOST:
            kept.append(attrs)
            room -= domain.size(attrs)
    return kept or listed[:1]


def _grouped(parts: Parts, total: float) -> tuple[Array, ...]:
    """Weights, and the mean of known, firm, the most it can be, v, chance and room in each group of cells."""
    estimate = parts.estimate.reshape(-1)
    order = np.argsort(-estimate, kind="stable")
    sizes = _group_sizes(estimate.size)
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    weight = np.maximum(sizes, 1).astype(np.float64)

    def mean(values: Array) -> Array:
        padded = np.append(np.broadcast_to(values, parts.estimate.shape).reshape(-1)[order], 0.0)
        sums = np.add.reduceat(padded, np.minimum(starts, estimate.size))
        return np.where(sizes > 0, sums / weight, 0.0)

    space = np.maximum(mean(_room(parts.estimate, total)), 1e-12)
    most = np.full(sizes.shape, np.inf) if parts.most is None else mean(parts.most)
    chance = np.zeros(sizes.shape) if parts.chance is None else mean(parts.chance)
    count = np.where(sizes > 0, weight, 0.0)
    return count, mean(parts.known), mean(parts.firm), most, mean(parts.sampling), chance, space


def _group_sizes(cells: int) -> NDArray[np.int64]:
    single = min(cells, _SINGLE)
    rest, more = divmod(cells - single, _GROUPS)
    sizes = np.full(_GROUPS, rest, dtype=np.int64)
    sizes[:more] += 1
    return np.concatenate([np.ones(single, np.int64), np.zeros(_SINGLE - single, np.int64), sizes])


def _room(estimate: Array, total: float) -> Array:
    """m: how many records a cell may hold, by the model and by chance."""
    return np.asarray((1 - _EVEN) * np.maximum(estimate, 0.0) + _EVEN * total / max(estimate.size, 1))


def _solved(errors: Callable[[float], float], target: float) -> float:
    """Where a growing function reaches its target, from e⁻⁴⁰, since some powers are small, to 100."""
    low, high = -40.0, math.log(100.0)
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if errors(math.exp(middle)) < target else (low, middle)
    return math.exp(low)
