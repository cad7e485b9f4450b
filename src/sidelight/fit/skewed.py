"""Noisy counts of single attributes, freed from noise as far as attributes are skewed.

A few values of an attribute hold most of its records. So the counts x of its values are taken for draws from
gamma distributions of one shape, with means μ that are all alike, n over the number of values, unless more is
known of them:

    x_i ~ Gamma(a, μ_i/a),    y_i = x_i + 𝒩(0, σ²)    →    x_i ∝ E[x_i | y_i]

The shape a has a few values; their chances are those that make the answers about all attributes likeliest
(empirical Bayes: Robbins 1956). Where values are about as common as each other a is large, and answers are
shrunk towards μ; where most are rare a is small, and what noise alone explains goes towards 0.

PRIVACY: a function of noisy answers; post-processing.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

_SHAPES: Array = np.geomspace(0.05, 2000.0, 17)
"""Values of a: from one value that holds nearly all records to even counts."""
_ROUNDS = 50
"""Rounds of expectation and maximisation for their chances."""
_BINS, _REACH = 96, 8.0
"""Bins of a posterior, and to how many σ around an answer they reach."""


@dataclass(frozen=True, eq=False)
class Noisy:
    """Noisy counts of one attribute's values, with their expected means."""

    answer: Array
    stddev: float
    means: Array
    """μ."""

    @classmethod
    def of(cls, answer: Array, stddev: float, *, total: float) -> "Noisy":
        """An attribute of which nothing else is known."""
        return cls(answer, stddev, np.full(answer.size, total / answer.size))


@dataclass(frozen=True, eq=False)
class Denoised:
    """An attribute's counts, with the variance that is left of each, on the mean."""

    counts: Array
    variance: float


def denoised(answers: Sequence[Noisy]) -> list[Denoised]:
    """The counts of several attributes, with the same total as their means.

    >>> (found,) = denoised([Noisy.of(np.array([97.0, 4.0, -3.0, 2.0]), 3.0, total=100.0)])
    >>> found.counts.round(0).tolist(), found.variance < 9
    ([98.0, 1.0, 0.0, 1.0], True)
    """
    if not answers:
        return []
    found = [[_posterior(one, shape) for shape in _SHAPES] for one in answers]
    logs = np.array([[each.evidence for each in of_attr] for of_attr in found])
    likely = np.exp(logs - logs.max(axis=1, keepdims=True))
    shared = np.full(_SHAPES.size, 1.0 / _SHAPES.size)
    for _ in range(_ROUNDS):
        chances = likely * shared
        chances /= chances.sum(axis=1, keepdims=True)
        # As if one more attribute had every shape alike, so that none is ruled out.
        shared = chances.sum(axis=0) + 1.0 / _SHAPES.size
        shared /= shared.sum()
    told = []
    for one, of_attr, weights in zip(answers, found, chances, strict=True):
        counts = np.sum([w * each.mean for w, each in zip(weights, of_attr, strict=True)], axis=0)
        variance = sum(w * each.variance for w, each in zip(weights, of_attr, strict=True))
        told.append(Denoised(counts * (one.means.sum() / counts.sum()), float(variance)))
    return told


@dataclass(frozen=True, eq=False)
class _Posterior:
    """The posterior of an attribute's counts under one shape."""

    mean: Array
    variance: float
    """The variance of a count, averaged over the values."""
    evidence: float
    """The log-likelihood of the shape."""


def _posterior(one: Noisy, shape: float) -> _Posterior:
    """E[x | y] of every value, by bins whose prior chances are exact."""
    from scipy.special import gammainc

    y, sigma = one.answer, max(one.stddev, 1e-6 * float(one.means.mean()))
    low = np.maximum(y - _REACH * sigma, 0.0)
    high = np.maximum(y, 0.0) + _REACH * sigma
    # Near 0, where a small shape puts most of its mass, bins are narrow.
    steps = np.linspace(0.0, 1.0, _BINS + 1)
    inside = np.where((low > 0)[:, None], steps, steps**4)
    edges = low[:, None] + (high - low)[:, None] * inside
    mass = np.diff(gammainc(shape, shape * edges / one.means[:, None]), axis=1)
    middle = (edges[:, 1:] + edges[:, :-1]) / 2
    logs = -0.5 * ((y[:, None] - middle) / sigma) ** 2
    top = logs.max(axis=1, keepdims=True)
    chances = np.exp(logs - top) * mass + 1e-300
    whole = chances.sum(axis=1)
    mean = (chances * middle).sum(axis=1) / whole
    spread = (chances * (middle - mean[:, None]) ** 2).sum(axis=1) / whole
    # The counts of an attribute sum to n, so that one of them is not free.
    evidence = (1 - 1 / y.size) * float((np.log(whole) + top[:, 0]).sum())
    return _Posterior(mean, float(spread.mean()), evidence)
