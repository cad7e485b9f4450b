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
on who was kept, the lemma does not cover it, and it leaks (spec 10.8). It is not in this library;
``form="published"`` gives its predicted variance, for comparison.

**Threshold** drops the groups below t and sums the others at t. **PE** draws a quantile of all people
together (`personal_quantile`). All need one record a person, and sizes that are public.
"""

import math
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from sidelight import _check
from sidelight.errors import SettingError
from sidelight.privacy.budget import Budget
from sidelight.privacy.event import Event
from sidelight.privacy.ledger import Ledger
from sidelight.privacy.noise import NoiseSource
from sidelight.statistics.answer import GroupShare, MixedAnswer
from sidelight.statistics.grid import Grid
from sidelight.statistics.group import Array, Group, asked_share, check_bounds, check_groups, named
from sidelight.statistics.spread import Spread
from sidelight.statistics.terms import Terms

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


def sample_mean(
    groups: Sequence[Group],
    *,
    bounds: tuple[float, float],
    threshold: Threshold = "optimised",
    variance: float | Literal["bound"] = "bound",
    confidence: float = 0.95,
    ledger: Ledger | str | Path | None = None,
    noise: NoiseSource | None = None,
) -> MixedAnswer:
    """The mean by the Sample mechanism, in the form whose privacy holds.

    ``threshold`` is t itself, or a rule: the least ε, the mean over groups (``"mean"``) or over people
    (``"mean-of-people"``), the greatest, or the one with the least predicted variance.
    """
    check_groups(groups, alone=True)
    grid = Grid(*check_bounds(bounds, groups))
    terms = Terms(ledger=ledger, noise=noise)
    _check.share(confidence=confidence)
    if variance != "bound":
        _check.positive(variance=variance)
    sigma2 = grid.width**2 / 4 if variance == "bound" else float(variance)
    private = _private(groups)
    epsilons = np.array([group.epsilon or math.inf for group in groups])
    with terms.open(
        [groups[i] for i in private], grid, label=f"sampled mean of {len(groups)} groups"
    ) as curator:
        sizes = np.array([0.0 if not group.is_public else group.public_values.size for group in groups])
        sizes[private] = curator.public_sizes()
        t = _threshold(threshold, sizes, epsilons, sigma2, grid.width)
        chances = sample_chances(epsilons, t)
        # PRIVACY: coins are rounded down by 2⁻⁴⁰, more than doubles can be off: less kept, less lost.
        keep = [_COIN if chances[i] == 1 else int(chances[i] * (1 - 2.0**-40) * _COIN) for i in private]
        noisy = curator.sampled_sum(keep, Budget(epsilon=t, delta=0.0).pure())
    exact = sum(
        float((np.clip(group.public_values, grid.low, grid.high) - grid.centre).sum())
        for group in groups
        if group.is_public
    )
    m = float((sizes * chances).sum())
    offset = (float(noisy.answer[0]) + exact) / m
    far = max(-grid.width / 2, min(grid.width / 2, offset))
    coins = float((sizes * chances * (1 - chances)).sum()) * far**2
    spread = Spread(np.array([math.sqrt(m * sigma2 + coins) / m]), noisy.scale / m)
    card = terms.card("mean by the Sample mechanism", grid, curator) | {
        "threshold": t,
        "losses": [None if group.is_public else min(float(epsilons[i]), t) for i, group in enumerate(groups)],
    }
    shares = _shares(groups, sizes, sizes * chances / m, noisy.events, used=[True] * len(groups))
    return _answer(grid.centre + offset, spread, confidence, shares, card)


def threshold_mean(
    groups: Sequence[Group],
    *,
    bounds: tuple[float, float],
    threshold: float,
    variance: float | Literal["bound"] = "bound",
    confidence: float = 0.95,
    ledger: Ledger | str | Path | None = None,
    noise: NoiseSource | None = None,
) -> MixedAnswer:
    """The mean of the groups whose ε is at least the threshold, all summed at the threshold."""
    check_groups(groups, alone=True)
    grid = Grid(*check_bounds(bounds, groups))
    terms = Terms(ledger=ledger, noise=noise)
    _check.positive(threshold=threshold)
    _check.share(confidence=confidence)
    sigma2 = grid.width**2 / 4 if variance == "bound" else float(variance)
    used = [group.is_public or (group.epsilon or 0.0) >= threshold for group in groups]
    private = [i for i in _private(groups) if used[i]]
    if not private:
        raise SettingError(f"no private group has an epsilon of at least the threshold, {threshold:g}.")
    everyone = tuple(range(len(private)))
    with terms.open(
        [groups[i] for i in private], grid, label=f"mean of groups above {threshold:g}"
    ) as curator:
        sizes = np.array([0.0 if not group.is_public else group.public_values.size for group in groups])
        sizes[private] = curator.public_sizes()
        noisy = curator.sums([everyone], [Budget(epsilon=threshold, delta=0.0).pure()])
    exact = sum(
        float((np.clip(group.public_values, grid.low, grid.high) - grid.centre).sum())
        for group in groups
        if group.is_public
    )
    n = float(sizes.sum())
    spread = Spread(np.array([math.sqrt(sigma2 / n)]), noisy.scale / n)
    card = terms.card("mean by thresholding", grid, curator) | {"threshold": threshold}
    shares = _shares(groups, sizes, sizes / n, noisy.events, used=used)
    return _answer(grid.centre + (float(noisy.answer[0]) + exact) / n, spread, confidence, shares, card)


def personalised_quantile(
    groups: Sequence[Group],
    quantile: float,
    *,
    bounds: tuple[float, float],
    ledger: Ledger | str | Path | None = None,
    noise: NoiseSource | None = None,
) -> MixedAnswer:
    """A quantile of all people together by the personalised exponential mechanism (PE).

    PE says nothing of its own error: the standard error is NaN, and the interval is the bounds.
    """
    check_groups(groups, alone=True)
    _check.share(quantile=quantile)
    share = asked_share(quantile)
    grid = Grid(*check_bounds(bounds, groups))
    terms = Terms(ledger=ledger, noise=noise)
    private = _private(groups)
    public = [group.public_values for group in groups if group.is_public]
    with terms.open([groups[i] for i in private], grid, label=f"quantile of {len(groups)} groups") as curator:
        sizes = np.array([0.0 if not group.is_public else group.public_values.size for group in groups])
        sizes[private] = curator.public_sizes()
        estimate, event = curator.personalised_quantile(share, public)
    card = terms.card("quantile by the personalised exponential mechanism", grid, curator)
    shares = _shares(groups, sizes, sizes / sizes.sum(), (event,), used=[True] * len(groups))
    return MixedAnswer(estimate, math.nan, (grid.low, grid.high), shares, card)


def _private(groups: Sequence[Group]) -> list[int]:
    private = [place for place, group in enumerate(groups) if not group.is_public]
    if not private:
        raise SettingError("all groups are public: there is nobody to protect, so take their mean itself.")
    return private


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


def _shares(
    groups: Sequence[Group], sizes: Array, weights: Array, events: tuple[Event, ...], *, used: Sequence[bool]
) -> tuple[GroupShare, ...]:
    names = named(groups)
    return tuple(
        GroupShare(
            names[i],
            group.epsilon,
            float(sizes[i]),
            float(weights[i]),
            math.nan,
            math.nan,
            () if group.is_public or not used[i] else events,
        )
        for i, group in enumerate(groups)
    )


def _answer(
    estimate: float,
    spread: Spread,
    confidence: float,
    shares: tuple[GroupShare, ...],
    card: dict[str, object],
) -> MixedAnswer:
    half = spread.half_width(confidence)
    return MixedAnswer(estimate, spread.stddev, (estimate - half, estimate + half), shares, card)
