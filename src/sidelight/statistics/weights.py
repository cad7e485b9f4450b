"""Variances and weights of the groups' estimates, from sizes, σ² and noise alone: no data, so no cost.

A set of groups with n people, σ² a person and noise of variance ν on its sum has a mean of variance
(nσ² + ν)/n²; the best weights are inverse variances, and the best variance is 1/Σ of their inverses
(spec 8.2). ν is 2R²/ε² for Laplace noise under replacement, R²/2ρ for Gaussian, and 0 for the public.

>>> best = inverse_variance(mean_variances([100.0, 100.0], 1.0, [0.0, 2.0]))
>>> round(float(best[0]), 7)
0.5049505
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from sidelight.statistics.grid import Array

TYPICAL_DENSITY = 4.0
"""f·(hi − lo) if nothing is known of it: that of the median of a normal law with bounds 10σ apart."""


def mean_variances(sizes: ArrayLike, variance: float, noise_variances: ArrayLike) -> Array:
    """(nσ² + ν)/n² for each group."""
    n = np.asarray(sizes, dtype=np.float64)
    return (n * variance + np.asarray(noise_variances, dtype=np.float64)) / n**2


def quantile_variances(
    sizes: ArrayLike,
    quantile: float,
    rank_scales: ArrayLike,
    *,
    density: float = TYPICAL_DENSITY,
    alike: int = 1,
) -> Array:
    """The variance of each group's quantile, in units of 1/f², f the density there.

    The rank of an exponential-mechanism quantile is off by about Lap(b), b = 2Δ/ε, and that of the
    exact one varies by n·q(1 − q); dividing by n·f turns ranks into values, and f is common to all groups.

        q(1 − q)/n + 2b²/n² + p·(fR)²/12,      p = fR·e^(−mn/b) / (2b/n + fR·e^(−mn/b)),  m = min(q, 1 − q)

    The last term matters for small groups: with probability p the draw comes from the empty stretches
    between the data and the bounds, which are long, and then may be anywhere. ``density`` is fR. Of up to
    ``alike`` values a person, which may be all alike, the first term is as many times as large.
    """
    n = np.asarray(sizes, dtype=np.float64)
    b = np.asarray(rank_scales, dtype=np.float64)
    beyond = density * np.exp(-min(quantile, 1 - quantile) * n / np.maximum(b, 1e-300))
    chance = beyond / (2 * b / n + beyond + 1e-300)
    return mean_variances(n, alike * quantile * (1 - quantile), 2 * b**2) + chance * density**2 / 12


def laplace_variances(epsilons: ArrayLike, width: float) -> Array:
    """ν = 2R²/ε²; 0 for ε = ∞."""
    return 2 * width**2 / np.asarray(epsilons, dtype=np.float64) ** 2


def inverse_variance(variances: Array) -> Array:
    """Weights ∝ 1/variance that add up to 1; nothing for an infinite variance."""
    precisions = 1 / variances
    return np.asarray(precisions / precisions.sum(), dtype=np.float64)


def merged(
    sizes: Sequence[float], losses: Sequence[float], *, variance: float, unit_noise: float, power: int
) -> list[tuple[int, ...]]:
    """Which groups to sum together, so that the best mix of the sums has the least variance.

    A merged set has one noise, of variance unit_noise / loss^power at its least loss (ε, power 2; or
    ρ, power 1): those with more to spend leave some of it unspent. An optimal set is a stretch of the
    groups in order of loss, so dynamic programming over stretches finds the best of all partitions
    into stretches: precision of the mix = Σ n²/(nσ² + ν) over the sets.

    >>> merged([1.0] * 4, [0.5] * 4, variance=1.0, unit_noise=2.0, power=2)
    [(0, 1, 2, 3)]
    """
    order = sorted(range(len(sizes)), key=lambda place: losses[place])
    upto = np.concatenate([[0.0], np.cumsum([sizes[place] for place in order])])
    noise = [unit_noise / losses[place] ** power for place in order]
    best = [0.0] + [-math.inf] * len(order)
    cut = [0] * (len(order) + 1)
    for end in range(1, len(order) + 1):
        n = upto[end] - upto[:end]
        worth = np.array(best[:end]) + n**2 / (n * variance + np.array(noise[:end]))
        cut[end] = int(worth.argmax())
        best[end] = float(worth[cut[end]])
    sets, end = [], len(order)
    while end:
        sets.append(tuple(sorted(order[cut[end] : end])))
        end = cut[end]
    return sets[::-1]
