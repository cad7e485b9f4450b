"""How far the truth strays from a model on a marginal, learned from noisy answers alone.

With the model's counts μ on n records, a cell is believed to hold

    x ~ (μ, s v),    y = x + 𝒩(0, σ²)

over-dispersed by s around v, what drawing records at random gives. What noisy answers y say of s is asked in
two ways:

- **Shared** (``Evidence``, ``SpreadPrior``): by a fit that weighs public data against answers, and by the
  score that goes with it. Each cell has its say, y_i − μ_i ~ 𝒩(0, σ² + s v_i), with v = (1 + R) μ: R private
  records for each public one blur what a public model says, and the fit keeps the total by itself. The s_c of
  all measured marginals share a prior, log s_c ~ Laplace(M, ½) with M ~ Laplace(0, 1): public data are
  believed to err as sampling does, until the answers say otherwise. The estimate of s_c is its posterior's
  median.
- **In order** (``Trial``, ``level``): by error bars, for which one number tells of the whole marginal, so
  that a few cells that the model knew nothing of do not speak for all others. With v = μ(1 − μ/n),

      T = Σ h_i (y_i − μ_i)²,    E T = Σ h_i (σ² + s v_i),    h_i = v_i / (v_i + σ²)

  T is taken to have the law of a scaled χ² with this mean and its variance (Satterthwaite 1946); h leaves out
  the cells that noise swamps. A selection picks what is worst, so s falls as the rounds go on:
  log s_t ~ 𝒩(M_t, b²) and M_t ~ 𝒩(M_{t−1}, k²), a level that drifts; b and k take a few values, which the
  answers weigh. The estimate is E[s] after the last trial.

Both live on a grid. s is counted from 1 + R on, so that one prior serves marginals of which many public
records tell and marginals of which few do.

PRIVACY: functions of noisy answers and of the model alone; post-processing.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import product

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sidelight.measurement import Measurement

Array = NDArray[np.float64]

_FLOOR = 0.001
"""Records, as a share of n spread over a marginal's cells, that no cell is believed to be without."""
_LOWEST = 0.05
"""The least s·(1 + R) of a grid, a twentieth of what drawing records at random gives: the model stands."""
_SHARED_GRID, _LEVEL_GRID = 60, 120
"""Points of the grids of s: steps of about a third are far finer than what one measurement can tell."""
_OWN_SCALE, _SHARED_SCALE = 0.5, 1.0
"""Scales of the Laplace priors of log s_c around M (a factor of √e), and of M around 0 (a factor of e)."""
_SCALES = (0.125, 0.25, 0.5, 1.0)
"""Values of b and of k: from hardly any to a factor of e."""


def mass_of(counts: ArrayLike, *, total: float, cells: int) -> Array:
    """Counts with the few records that no cell of a marginal of so many cells is believed to be without."""
    return np.maximum(np.asarray(counts, dtype=np.float64), 0.0) + _FLOOR * total / cells


def variance_at_one(counts: ArrayLike, *, total: float, cells: int) -> Array:
    """The variance v = μ(1 − μ/n) of each count at s = 1, in a marginal of so many cells.

    >>> variance_at_one([0.0, 50.0], total=100.0, cells=2).round(2).tolist()
    [0.05, 25.02]
    """
    mass = mass_of(counts, total=total, cells=cells)
    return np.asarray(mass * np.maximum(1.0 - mass / (total + _FLOOR * total), 0.0))


def four_digits(value: float) -> float:
    """A level of dispersion as a card tells it: nobody knows more digits of it."""
    return float(f"{value:.4g}")


@dataclass(frozen=True)
class Trial:
    """One noisy answer against what the model had said: T, and the sums that give its mean and variance."""

    squares: float
    noise: float
    """Σ h σ²"""
    sampling: float
    """Σ h v"""
    noise_squared: float
    """Σ h² σ⁴"""
    crossed: float
    """Σ h² σ² v"""
    sampling_squared: float
    """Σ h² v²"""

    @classmethod
    def of(cls, gap: Array, variance: Array, stddev: float) -> "Trial":
        """The trial that y − μ makes, by v and σ."""
        h = variance / (variance + stddev**2)
        return cls(
            float(h @ gap**2), float(h.sum()) * stddev**2, float(h @ variance),
            float(h @ h) * stddev**4, float(h**2 @ variance) * stddev**2, float(h**2 @ variance**2),
        )  # fmt: skip

    def likelihood(self, grid: Array) -> Array:
        """The likelihood of each s, up to a factor."""
        from scipy.special import gammaln

        mean = self.noise + grid * self.sampling
        half = self.noise_squared + 2 * grid * self.crossed + grid**2 * self.sampling_squared
        freedom, scale = mean**2 / half, half / mean
        squares = max(self.squares, 1e-12 * self.noise)
        logs = (
            (freedom / 2 - 1) * math.log(squares)
            - squares / (2 * scale)
            - freedom / 2 * np.log(2 * scale)
            - gammaln(freedom / 2)
        )
        return np.asarray(np.exp(logs - logs.max()))


@dataclass(frozen=True, eq=False)
class Evidence:
    """A measured marginal, against what the model predicted before it was first measured."""

    measurement: Measurement
    total: float
    sampling: float = 1.0
    """1 + R."""

    @property
    def predicted(self) -> Array:
        """μ."""
        assert self.measurement.predicted is not None
        return self.measurement.predicted

    @property
    def gap(self) -> Array:
        """y − μ: how far the noisy answer is from what the model predicted."""
        return self.measurement.answer - self.predicted

    @property
    def stddev(self) -> float:
        """σ of the noise on y."""
        return self.measurement.stddev

    @property
    def mass(self) -> Array:
        """μ, and the least that a cell is believed to hold."""
        return mass_of(self.predicted, total=self.total, cells=self.predicted.size)

    @property
    def variance(self) -> Array:
        """v: the believed variance of each cell at s = 1."""
        return self.sampling * self.mass

    def log_likelihood(self, grid: Array) -> Array:
        """The log-likelihood of each s, up to a constant that depends on the noise and the cells alone."""
        square, at_one, noise = self.gap**2, self.variance, self.stddev**2
        logs = np.empty(grid.size)
        for place, spread in enumerate(grid):
            # Point by point: a table of all would be the marginal sixty times over.
            variance = spread * at_one + noise
            logs[place] = -0.5 * (np.log(variance) + square / variance).sum()
        return logs

    def trust(self, spread: float) -> float:
        """The mass-weighted mean of s v / (s v + σ²): 0 keeps the model, 1 takes the answer."""
        mass, grown = self.mass, spread * self.variance
        return float(mass @ (grown / (grown + self.stddev**2)) / mass.sum())

    def expected_error(self, spread: float) -> float:
        """E‖x − estimate‖₁ where both the prior and the noise are Gaussian."""
        grown = spread * self.variance
        left = grown * self.stddev**2 / (grown + self.stddev**2)
        return float(np.sqrt(2 / np.pi) * np.sqrt(left).sum())


class SpreadPrior:
    """The prior that the spreads of several marginals share."""

    def __init__(self, total: float, ratio: float, *, apart: float = 0.0) -> None:
        """A grid for n = total and a typical R; each goes its own way with chance ``apart``."""
        self.grid: Array = np.geomspace(_LOWEST, 10 * max(total, 1.0), _SHARED_GRID) / (1 + ratio)
        logs = np.log(self.grid)
        own = np.exp(-np.abs(logs[:, None] - logs[None, :]) / _OWN_SCALE)
        own /= own.sum(axis=1, keepdims=True)
        self._own: Array = (1 - apart) * own + apart / _SHARED_GRID
        self._shared: Array = -np.abs(logs) / _SHARED_SCALE

    def telling(self, likelihood: Array) -> float:
        """The log-likelihood ratio of the best s against s = 1; 0 if the best s is at most 1."""
        one = int(np.argmin(np.abs(np.log(self.grid))))
        return float(-np.log(likelihood[one] + 1e-300)) if likelihood.argmax() > one else 0.0

    def pooled(self, likelihoods: Iterable[Array]) -> "PooledSpread":
        """The predictive distribution of s on an unmeasured marginal, from all measured ones together."""
        shared = self._shared.copy()
        for likelihood in likelihoods:
            shared += np.log(self._own @ likelihood + 1e-300)
        density = np.exp(shared - shared.max())
        return PooledSpread(self.grid, density / density.sum() @ self._own)


@dataclass(frozen=True, eq=False)
class PooledSpread:
    """The predictive distribution of s."""

    grid: Array
    density: Array

    @cached_property
    def middle(self) -> float:
        """The median of s."""
        return self.median(np.ones(self.grid.size))

    def mean(self, likelihood: Array) -> float:
        """The posterior mean of s for a marginal of this likelihood."""
        density = self.density * likelihood
        return float(density @ self.grid / density.sum())

    def median(self, likelihood: Array) -> float:
        """The posterior median of s for a marginal of this likelihood."""
        below = np.cumsum(self.density * likelihood)
        return float(np.exp(np.interp(0.5, below / below[-1], np.log(self.grid))))


def level(trials: Sequence[Trial], total: float) -> float:
    """E[s] of the next marginal, after these trials in their order."""
    grid = np.geomspace(_LOWEST, max(total, 10.0), _LEVEL_GRID)
    likelihoods = [trial.likelihood(grid) for trial in trials]
    evidence, expected = [], []
    for own, drift in product(_SCALES, _SCALES):
        scatter, walk = _kernel(own, total), _kernel(drift, total)
        chances, log_evidence = np.full(_LEVEL_GRID, 1 / _LEVEL_GRID), 0.0
        for number, likelihood in enumerate(likelihoods):
            chances = (chances @ walk if number else chances) * (scatter @ likelihood + 1e-300)
            log_evidence += math.log(chances.sum())
            chances = chances / chances.sum()
        evidence.append(log_evidence)
        expected.append(float(chances @ scatter @ grid))
    weights = np.exp(np.array(evidence) - max(evidence))
    return float(weights @ np.array(expected) / weights.sum())


@lru_cache(maxsize=16)
def _kernel(scale: float, total: float) -> Array:
    """Normal steps of this scale in log s, from each point of the grid to each."""
    logs = np.log(np.geomspace(_LOWEST, max(total, 10.0), _LEVEL_GRID))
    density = np.exp(-0.5 * ((logs[:, None] - logs[None, :]) / scale) ** 2)
    return np.asarray(density / density.sum(axis=1, keepdims=True))
