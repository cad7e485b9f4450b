"""A quantile of many groups, each with its own ε (MIX; spec 8.6).

    x̃ᵢ ~ exp(−εᵢ·|#{x ≤ o} − q·nᵢ| / 2Δ)      by the exponential mechanism        measure
    βᵢ ∝ nᵢ² / (nᵢ·q(1 − q) + 8Δ²/εᵢ²)        Σβᵢ = 1; a public group has no noise  weights
    x̃  ← Σ βᵢ x̃ᵢ                                                                  estimate

"Combining Public and Private Data" (MIX) mixes quantiles with the weights of the *mean* and leaves better
ones open; ``weights="mean"`` are theirs. Ours follow from the law of the draw. Its rank is off by about
Lap(2Δ/ε), since exp(−ε|i − qn|/2Δ) is that law; the exact quantile's rank varies by n·q(1 − q); and a rank
becomes a value through 1/(n·f), f the density at the quantile. f is the same for all groups and cancels,
but for a small term that keeps groups with little to say from being trusted (`weights.quantile_variances`).
A group whose rank noise exceeds its distance to the ends, √8·Δ/(ε·n) > min(q, 1 − q), would draw from all
over the bounds; it is not asked, and pays nothing, as long as another group does better.

f is needed for the standard error alone: given, from the public groups, or measured at a price (`density`).
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from sidelight._check import count_of
from sidelight.errors import SettingError
from sidelight.statistics.answer import MixedAnswer
from sidelight.statistics.card import KnownValue
from sidelight.statistics.density import Slope, known_slope
from sidelight.statistics.error_law import ErrorLaw
from sidelight.statistics.group import Group
from sidelight.statistics.group_quantiles import GroupQuantiles, measure_quantiles
from sidelight.statistics.mixing import Part, mix
from sidelight.statistics.quantile import asked_quantile
from sidelight.statistics.settings import QuantileSettings, check_keywords, of_keywords
from sidelight.statistics.sides import Estimates, Sides
from sidelight.statistics.terms import GroupTerms


def mixed_quantile(
    groups: Sequence[Group], quantile: float, *, bounds: tuple[float, float], **settings: Any
) -> MixedAnswer:
    """The best single quantile that respects everyone's ε.

    Args:
        groups: at least two, each private with its own ε or public; each person is in one of them.
        quantile: q, strictly between 0 and 1; 0.5 for the median.
        bounds: public bounds of a value; values outside are clamped.
        **settings: the fields of ``QuantileSettings`` (``weights``, ``density``, ``bias``, ``confidence``
            …), which cannot change what is promised, and those of ``GroupTerms`` (``unit``, ``accounting``,
            ``delta``, ``ledger``, ``noise``, ``project``, ``approved_by``), which say what is.

    >>> from sidelight.testing import SeededNoise
    >>> rng = np.random.default_rng(1)
    >>> patients = Group(rng.normal(50, 5, 4000), epsilon=0.5, name="patients")
    >>> volunteers = Group(rng.normal(50, 5, 100), public=True, name="volunteers")
    >>> answer = mixed_quantile([patients, volunteers], 0.5, bounds=(0, 100), noise=SeededNoise(7))
    >>> abs(answer.estimate - 50) < 0.5, [round(weight, 3) for weight in answer.weights]
    (True, [0.975, 0.025])
    """
    check_keywords("mixed_quantile", settings, QuantileSettings, GroupTerms)
    asked, terms = of_keywords(QuantileSettings, settings), of_keywords(GroupTerms, settings)
    sides = Sides.of(groups, bounds, alone=asked.alone)
    grid, shown = sides.grid, sides.shown
    q = asked_quantile(quantile)
    slope = known_slope(asked.density, shown, quantile, grid, has_private=bool(sides.private))
    _check_epsilons(sides.epsilons, asked.density_share, asked.size_share)

    # MEASURE the private groups; what comes back is public.
    measured = curator = None
    if sides.private:
        label = f"quantile {quantile:g} of {count_of(len(groups), 'group')}"
        with sides.ask(terms, label=label, way="quantile") as (curator, costs):
            measured = measure_quantiles(curator, costs, q, asked, slope=slope, epsilons=sides.epsilons)
        slope = measured.slope
    assert slope is not None  # known beforehand where nobody is private

    # ESTIMATE: weights from sizes and ε; then both sides together.
    public = _public_estimates(sides, quantile, slope) if shown else None
    mixed = mix(
        None if measured is None else measured.part,
        None if public is None else _public_part(public, quantile, slope),
        asked,
        public_weight=_paper_weight(public, measured, asked.sigma2(grid.width))
        if asked.weights == "mean"
        else None,
    )
    if measured is not None and measured.is_weak and public is None:
        # All groups draw from all over the bounds: nothing narrower can be promised.
        mixed = replace(mixed, standard_error=grid.width / 2, interval=(grid.low, grid.high))
    low, high = (min(max(end, grid.low), grid.high) for end in mixed.interval)
    card = replace(
        terms.card("quantile", grid, curator),
        quantile=quantile,
        weights=asked.weights,
        density=KnownValue(source=slope.source, value=1 / slope.value),
        bias=asked.allowed_bias,
        confidence=asked.confidence,
    )
    return sides.answer(
        replace(mixed, interval=(low, high)), None if measured is None else measured.by_group, public, card
    )


def _public_estimates(sides: Sides, quantile: float, slope: Slope) -> Estimates:
    sizes = np.array([values.size for values in sides.shown], dtype=np.float64)
    values = np.array([np.quantile(values, quantile) for values in sides.shown])
    errors = slope.value * np.sqrt(quantile * (1 - quantile) / sizes)
    return Estimates(sizes, sizes / sizes.sum(), values, errors)


def _public_part(public: Estimates, quantile: float, slope: Slope) -> Part:
    """The public groups together, each by its number of people."""
    people = public.sizes.sum()
    deviation = np.full(slope.likely.size, math.sqrt(quantile * (1 - quantile) / people))
    return Part(float(public.sizes @ public.values / people), ErrorLaw(deviation, multiplier=slope.likely))


def _paper_weight(public: Estimates | None, measured: GroupQuantiles | None, variance: float) -> float | None:
    """The public groups' share of the inverse variances that their *means* would have."""
    if measured is None or public is None:
        return None
    precision = float(public.sizes.sum()) / variance
    return precision / (precision + float((1 / measured.worth).sum()))


_LEAST_EPSILON = 2.0**-60
"""Below, a rank is off by more than any table has records, and variances leave the floating-point numbers."""


def _check_epsilons(epsilons: Sequence[float], *shares: float) -> None:
    """Refuse an ε too small for any part of what is measured, before a run begins."""
    least = min(*shares, 1 - sum(shares))
    for epsilon in epsilons:
        if epsilon * least < _LEAST_EPSILON:
            raise SettingError(
                f"epsilon = {epsilon:g} is too small for a quantile: the smallest that can be used is "
                f"{_LEAST_EPSILON / least:.1g}. Nothing was read and nothing was charged."
            )
