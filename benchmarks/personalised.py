"""Personalised differential privacy: the baselines that one mechanism for all people gives.

**Sample** (Jorgensen, Yu, Cormode 2015; spec 8.4) keeps each person by a coin of their own and adds one
noise at a threshold t to what is left. In the form whose privacy holds under replacement:

    πᵢ ← (1 − e^−εᵢ) / (e^−εᵢ(e^{t/2} − 1) + 1 − e^{−t/2})      at most 1; public: 1
    S̃  ← Σ kept (x − c) + Lap(R/t)
    μ̃  ← c + S̃/m,   m = Σ nᵢπᵢ                                 the *expected* size

**Why εᵢ holds.** Fix everyone else's coins. Being kept with a value x multiplies the density of S̃ by some
A in [e^{−t/2}, e^{t/2}], since |x − c| ≤ R/2, so one value's density is (1 − π + πA)/(1 − π + πB) times
another's: at most (1 − π + πe^{t/2})/(1 − π + πe^{−t/2}), which π makes equal to e^εᵢ. Mixing over the
others' coins leaves the bound. Where we differ: (e^{ε/2} − 1)/(e^{t/2} − 1), for a removal and an addition,
keeps fewer people and wastes some of ε; this π is the largest that is private.

The published estimator divides by the *realised* size and takes εᵢ and t whole: its noise scale then depends
on who was kept, the lemma does not cover it, and it leaks (spec 10.8). It is not here; ``form="published"``
gives its predicted variance, for comparison.

**Threshold** drops the groups below t and sums the others at t. **PE** draws a quantile of all people
together (`personal_quantile`). All need one record a person, and sizes that are public.

They are what the figures of `docs/papers/mixed.md` compare with. The library has no use for them, so they are
here, with a curator of their own: exact noise, paid before a value is looked at, as everywhere.
"""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from personal_quantile import check_work, personalised_quantile_place
from sidelight import _check
from sidelight.errors import SettingError
from sidelight.measurement import laplace
from sidelight.privacy import event as events
from sidelight.privacy.budget import Budget, Epsilon
from sidelight.privacy.unit import Unit
from sidelight.statistics.answer import GroupShare, MixedAnswer
from sidelight.statistics.curator import GroupCurator, check_groups_of
from sidelight.statistics.error_law import ErrorLaw
from sidelight.statistics.grid import Array, Grid, Whole
from sidelight.statistics.group import Group, check_bounds, check_groups, named
from sidelight.statistics.quantile import asked_quantile
from sidelight.statistics.terms import GroupTerms

Form = Literal["strict", "published"]
Threshold = float | Literal["min", "mean", "mean-of-people", "max", "optimised"]

_COIN = 2**53


def sample_chances(epsilons: ArrayLike, threshold: float, *, form: Form = "strict") -> Array:
    """π of each group: how likely a person is to be kept.

    >>> [round(float(chance), 8) for chance in sample_chances([0.1, 0.25, 10], 0.25, form="published")]
    [0.370287, 1.0, 1.0]
    """
    capped = np.minimum(np.asarray(epsilons, dtype=np.float64), threshold)
    if form == "published":
        return np.asarray(np.minimum(np.expm1(capped) / np.expm1(threshold), 1.0))
    kept = np.expm1(-capped) / (np.expm1(-threshold / 2) - np.exp(-capped) * np.expm1(threshold / 2))
    return np.asarray(np.where(capped == threshold, 1.0, np.minimum(kept, 1.0)))


def sample_variance(
    sizes: ArrayLike,
    epsilons: ArrayLike,
    threshold: float,
    *,
    variance: float,
    width: float,
    offset: float = 0.0,
    form: Form = "strict",
) -> float:
    """The predicted variance of the Sample mean: (mσ² + 2R²/t² + Σ nπ(1 − π)(μ − c)²)/m².

    ``width`` is what the noise is calibrated to: R = hi − lo here, r in the published form.

    >>> sizes, epsilons = [1000, 100, 500, 1000, 5000, 10000], [10, 0.05, 0.1, 0.01, 0.25, 0.15]
    >>> round(sample_variance(sizes, epsilons, 0.25, variance=25, width=100, form="published"), 8)
    0.00434037
    """
    chances = sample_chances(epsilons, threshold, form=form)
    kept = np.asarray(sizes, dtype=np.float64) * chances
    m = float(kept.sum())
    coins = float((kept * (1 - chances)).sum()) * offset**2
    return (m * variance + 2 * width**2 / threshold**2 + coins) / m**2


def mixed_variance(variances: Array) -> float:
    """The variance of the best mix of estimates with these variances, which Sample is compared with."""
    return float(1 / (1 / variances).sum())


def best_threshold(
    sizes: ArrayLike,
    epsilons: ArrayLike,
    *,
    variance: float,
    width: float,
    offset: float = 0.0,
    form: Form = "strict",
) -> float:
    """The t with the least predicted variance, between the least and the greatest finite ε.

    The variance has a kink at every εᵢ and is smooth between: each stretch is searched by itself.

    >>> best_threshold([1000, 100, 500, 1000, 5000, 10000], [10, 0.05, 0.1, 0.01, 0.25, 0.15],
    ...     variance=25, width=100, form="published")
    0.25
    """
    from scipy.optimize import minimize_scalar

    def predicted(t: float) -> float:
        return sample_variance(
            sizes, epsilons, float(t), variance=variance, width=width, offset=offset, form=form
        )

    finite = np.asarray(epsilons, dtype=np.float64)
    kinks: list[float] = sorted(set(finite[np.isfinite(finite)].tolist()))
    candidates = list(kinks)
    for low, high in pairwise(kinks):
        points = np.linspace(low, high, 33)
        best = int(np.argmin([predicted(t) for t in points]))
        around = (float(points[max(0, best - 1)]), float(points[min(32, best + 1)]))
        candidates.append(float(minimize_scalar(predicted, bounds=around, method="bounded").x))
    return min(candidates, key=predicted)


class PersonalCurator(GroupCurator):
    """Asks all groups together, each person with their own ε."""

    def __init__(self, groups: Sequence[Group], grid: Grid, **settings: Any) -> None:
        super().__init__(groups, grid, **settings)
        self._epsilons = [Budget(epsilon=group.epsilon or 0.0, delta=0.0).pure().value for group in groups]

    def sampled_sum(self, keep: Sequence[int], threshold: Epsilon) -> tuple[float, events.Laplace, float]:
        """Σ(x − c) over a random sample of all groups: with its event, and the scale of its noise.

        ``keep`` says of each group in how many of 2⁵³ cases a person is kept, by a coin of their own.
        """
        grid = self.grid.finest(threshold, self.unit)
        width = self.unit.scalar(-(2 ** (grid.bits - 1)), 2 ** (grid.bits - 1))
        event = events.Laplace.at(threshold, what=f"sum of a sample of {len(keep)} groups", l1=width)

        def draw(exact: list[Whole]) -> Whole:
            total = 0
            for values, chance in zip(exact, keep, strict=True):
                # PRIVACY: the coins come from the noise source and do not look at values.
                coins = self._noise.words(values.size) >> np.uint64(11)
                total += int(values[coins < np.uint64(chance)].sum())
            return laplace(self._noise, np.array([total], dtype=np.int64), event)

        drawn = self._pay_then(event, lambda: [grid.centred(values) for values in self._values], draw)
        return float(drawn[0]) * grid.step, event, float(event.scale) * grid.step

    def quantile_of_all(self, quantile: Fraction, public: Sequence[Array]) -> tuple[float, events.Event]:
        """The q-quantile of all people together."""
        epsilons = self._epsilons
        check_work(int(self.public_sizes().sum()) + sum(values.size for values in public), epsilons)
        # PRIVACY: the score −h moves by at most ε_i when person i changes; Pr ∝ exp(−h/2) (spec 8.5).
        event = events.Exponential.at(
            Epsilon(max(epsilons)), what=f"quantile {float(quantile):g} of {len(epsilons)} groups together",
            sensitivity=max(epsilons), candidates=2**self.grid.bits,
        )  # fmt: skip
        known = [self.grid.places(values) for values in public]

        def draw(private: list[Whole]) -> Whole:
            place = personalised_quantile_place(
                self._noise, private, epsilons, known, quantile, bits=self.grid.bits
            )
            return np.array([place], dtype=np.int64)

        drawn = self._pay_then(
            event, lambda: [self._places(place) for place in range(len(self._values))], draw
        )
        return self.grid.low + (float(drawn[0]) + 0.5) * self.grid.step, event


@dataclass(frozen=True, eq=False)
class Everybody:
    """All groups of one question, and on what terms the private ones are asked."""

    groups: Sequence[Group]
    grid: Grid
    terms: GroupTerms
    private: list[int]

    @classmethod
    def of(cls, groups: Sequence[Group], bounds: tuple[float, float], terms: dict[str, Any]) -> "Everybody":
        check_groups(groups, alone=True)
        private = [place for place, group in enumerate(groups) if not group.is_public]
        if not private:
            raise SettingError("all groups are public: there is nobody to protect; take their mean itself.")
        return cls(groups, Grid(*check_bounds(bounds, groups)), GroupTerms(**terms), private)

    @property
    def epsilons(self) -> Array:
        return np.array([group.epsilon or math.inf for group in self.groups])

    @property
    def shown(self) -> list[Array]:
        return [group.public_values for group in self.groups if group.is_public]

    @property
    def public_sum(self) -> float:
        """Σ(x − c) over the public people."""
        low, high = self.grid.low, self.grid.high
        return sum(float((np.clip(values, low, high) - self.grid.centre).sum()) for values in self.shown)

    @contextmanager
    def ask(self, label: str, asked: Sequence[int] | None = None) -> Iterator[tuple[PersonalCurator, Array]]:
        """A curator of these private groups, of all unless said; and every group's size."""
        private = self.private if asked is None else list(asked)
        own = [self.groups[place] for place in private]
        budget = Budget(epsilon=max(float(self.epsilons[place]) for place in private), delta=0.0)
        book = self.terms.book(budget, name="these groups")
        unit = book.promise.unit
        if unit != Unit("replace"):
            raise SettingError(
                "personalised mechanisms are for replacing one record of a group of public size; "
                f"got a unit of {unit.describe()}."
            )
        check_groups_of(own, unit)
        door = partial(PersonalCurator, own, self.grid)
        with self.terms.run(door, book, budget.pure(), label=label, way="mean") as curator:
            sizes = np.array(
                [float(group.public_values.size) if group.is_public else 0.0 for group in self.groups]
            )
            sizes[private] = curator.public_sizes()
            yield curator, sizes

    def shares(
        self,
        sizes: Array,
        weights: Array,
        paid: tuple[events.Event, ...],
        *,
        asked: Sequence[int] | None = None,
    ) -> tuple[GroupShare, ...]:
        private = self.private if asked is None else asked
        return tuple(
            GroupShare(
                name, group.epsilon, float(sizes[place]), float(weights[place]), math.nan, math.nan,
                paid if place in private else (),
            )
            for place, (name, group) in enumerate(zip(named(self.groups), self.groups, strict=True))
        )  # fmt: skip


@dataclass(frozen=True)
class SampledAnswer(MixedAnswer):
    """A mean by the Sample mechanism."""

    threshold: float
    """t, at which the sampled people are summed."""
    losses: tuple[float | None, ...]
    """ε that each group's people lost; None if they are public."""


def sample_mean(
    groups: Sequence[Group],
    *,
    bounds: tuple[float, float],
    threshold: Threshold = "optimised",
    variance: float | Literal["bound"] = "bound",
    confidence: float = 0.95,
    **terms: Any,
) -> SampledAnswer:
    """The mean by the Sample mechanism, in the form whose privacy holds.

    ``threshold`` is t itself, or a rule: the least ε, the mean over groups (``"mean"``) or over people
    (``"mean-of-people"``), the greatest, or the one with the least predicted variance.
    """
    everybody = Everybody.of(groups, bounds, terms)
    grid, epsilons = everybody.grid, everybody.epsilons
    _check.share(confidence=confidence)
    sigma2 = _variance(variance, grid)
    with everybody.ask(f"sampled mean of {len(groups)} groups") as (curator, sizes):
        t = _threshold(threshold, sizes, epsilons, sigma2, grid.width)
        chances = sample_chances(epsilons, t)
        # PRIVACY: coins are rounded down by 2⁻⁴⁰, more than doubles can be off: less kept, less lost.
        keep = [
            _COIN if chances[place] == 1 else int(chances[place] * (1 - 2.0**-40) * _COIN)
            for place in everybody.private
        ]
        noisy, event, scale = curator.sampled_sum(keep, Budget(epsilon=t, delta=0.0).pure())
    m = float((sizes * chances).sum())
    offset = (noisy + everybody.public_sum) / m
    far = max(-grid.width / 2, min(grid.width / 2, offset))
    coins = float((sizes * chances * (1 - chances)).sum()) * far**2
    error = ErrorLaw(np.array([math.sqrt(m * sigma2 + coins) / m]), np.array([scale]) / m)
    card = everybody.terms.card("mean by the Sample mechanism", grid, curator)
    shares = everybody.shares(sizes, sizes * chances / m, (event,))
    losses = tuple(
        None if group.is_public else min(float(epsilons[place]), t) for place, group in enumerate(groups)
    )
    estimate = grid.centre + offset
    interval = _interval(estimate, error, confidence)
    return SampledAnswer(estimate, error.stddev, interval, shares, card, t, losses)


def threshold_mean(
    groups: Sequence[Group],
    *,
    bounds: tuple[float, float],
    threshold: float,
    variance: float | Literal["bound"] = "bound",
    confidence: float = 0.95,
    **terms: Any,
) -> MixedAnswer:
    """The mean of the groups whose ε is at least the threshold, all summed at the threshold."""
    everybody = Everybody.of(groups, bounds, terms)
    grid = everybody.grid
    _check.positive(threshold=threshold)
    _check.share(confidence=confidence)
    sigma2 = _variance(variance, grid)
    asked = [place for place in everybody.private if everybody.epsilons[place] >= threshold]
    if not asked:
        raise SettingError(f"no private group has an epsilon of at least the threshold, {threshold:g}.")
    with everybody.ask(f"mean of groups above {threshold:g}", asked) as (curator, sizes):
        cost = Budget(epsilon=threshold, delta=0.0).pure()
        noisy = curator.sums([tuple(range(len(asked)))], [cost])
    n = float(sizes.sum())
    error = ErrorLaw(np.array([math.sqrt(sigma2 / n)]), noisy.scale / n)
    card = everybody.terms.card("mean by thresholding", grid, curator)
    shares = everybody.shares(sizes, sizes / n, noisy.events, asked=asked)
    estimate = grid.centre + (float(noisy.answer[0]) + everybody.public_sum) / n
    interval = _interval(estimate, error, confidence)
    return MixedAnswer(estimate, error.stddev, interval, shares, card)


def personalised_quantile(
    groups: Sequence[Group], quantile: float, *, bounds: tuple[float, float], **terms: Any
) -> MixedAnswer:
    """A quantile of all people together by the personalised exponential mechanism (PE).

    PE says nothing of its own error: the standard error is NaN, and the interval is the bounds.
    """
    everybody = Everybody.of(groups, bounds, terms)
    q, grid = asked_quantile(quantile), everybody.grid
    with everybody.ask(f"quantile of {len(groups)} groups") as (curator, sizes):
        estimate, event = curator.quantile_of_all(q, everybody.shown)
    card = everybody.terms.card("quantile by the personalised exponential mechanism", grid, curator)
    shares = everybody.shares(sizes, sizes / sizes.sum(), (event,))
    return MixedAnswer(estimate, math.nan, (grid.low, grid.high), shares, card)


def _interval(estimate: float, error: ErrorLaw, confidence: float) -> tuple[float, float]:
    half = error.half_width(confidence)
    return estimate - half, estimate + half


def _variance(variance: float | Literal["bound"], grid: Grid) -> float:
    if variance == "bound":
        return grid.width**2 / 4
    _check.positive(variance=variance)
    return float(variance)


def _threshold(rule: Threshold, sizes: Array, epsilons: Array, variance: float, width: float) -> float:
    """The threshold t, from public numbers alone."""
    finite = np.isfinite(epsilons)
    own, people = epsilons[finite], sizes[finite]
    if not isinstance(rule, str):
        _check.positive(threshold=rule)
        if not own.min() <= rule <= own.max():
            raise SettingError(
                f"threshold must lie between the least and the greatest epsilon, {own.min():g} and "
                f"{own.max():g}; got {rule:g}."
            )
        return float(rule)
    _check.one_of(("min", "mean", "mean-of-people", "max", "optimised"), threshold=rule)
    if rule == "optimised":
        return best_threshold(sizes, epsilons, variance=variance, width=width)
    rules = {
        "min": own.min(),
        "mean": own.mean(),
        "mean-of-people": (own * people).sum() / people.sum(),
        "max": own.max(),
    }
    return float(rules[rule])
