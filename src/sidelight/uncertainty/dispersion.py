"""How far the truth strays from the model on a marginal, learned from noisy answers alone.

A cell with model count μ is believed to hold x ~ (μ, s·v), v = (1 + R)(μ + floor): over-dispersed by
s around what sampling alone gives, where R = n/m is the number of private records for each public one.
A noisy answer then has

    y_i − μ_i ~ 𝒩(0, σ² + s v_i)

and the s_c of all marginals that were measured share a prior, log s_c ~ Laplace(M, ½), with
M ~ Laplace(0, 1): public data are believed to err as sampling does, until the noisy answers say
otherwise. M is integrated on a grid; the estimate of s_c is the median of its posterior.

spec/aperture 4, with s counted from 1 + R on: so one prior serves marginals of which more and of which
fewer public records tell. (An R for each cell, by how many public records show its values, was tried
and dropped: rare cells then take in mostly noise.)

PRIVACY: functions of noisy answers and of the model alone; post-processing.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

_GRID = 60
"""Points of the grid of s: steps of about a third, far finer than what one measurement can tell."""
_LOWEST = 0.05
"""The least s·(1 + R) of the grid, a twentieth of Poisson noise: so small an s follows the model alone."""
_LEAST_DOUBT = 1e-4
"""Where the model is hopeless and the noise is tiny: below, the fit would take thousands of steps."""
_OWN_SCALE, _SHARED_SCALE = 0.5, 1.0
"""Scales of the Laplace priors of log s_c around M (a factor of √e), and of M around 0 (a factor of e)."""


@dataclass(frozen=True, eq=False)
class Evidence:
    """What one marginal's noisy answer says about its own spread."""

    answer: Array
    """Y, which whoever measured it keeps anyway."""
    kept: NDArray[np.float32]
    """μ, from before the marginal was first measured, to seven digits: there is one for every answer."""
    stddev: float
    """σ of the noise on y."""
    floor: float = 0.0
    """Records that no cell is believed to be without."""
    sampling: float = 1.0
    """1 + R."""

    @property
    def expected(self) -> Array:
        """μ at whole width."""
        return self.kept.astype(np.float64)

    @property
    def gap(self) -> Array:
        """Y − μ."""
        return self.answer - self.expected

    @property
    def mass(self) -> Array:
        """μ + floor."""
        return self.expected + self.floor

    @property
    def variance(self) -> Array:
        """V: the believed variance of each cell at s = 1."""
        return self.sampling * self.mass

    def trust(self, spread: float) -> float:
        """The mass-weighted mean of s v / (s v + σ²): 0 keeps the model, 1 takes the answer."""
        mass = self.mass
        grown = spread * (self.sampling * mass)
        return float(mass @ (grown / (grown + self.stddev**2)) / mass.sum())

    def expected_error(self, spread: float) -> float:
        """E‖x − estimate‖₁ where both the prior and the noise are Gaussian."""
        precision = 1 / (spread * self.variance) + 1 / self.stddev**2
        return float(np.sqrt(2 / np.pi) * (1 / np.sqrt(precision)).sum())


class SpreadPrior:
    """The prior that the spreads of several marginals share."""

    def __init__(self, total: float, ratio: float, *, apart: float = 0.0) -> None:
        """A grid for n = total and a typical R; each goes its own way with chance ``apart``."""
        self.grid: Array = np.geomspace(_LOWEST, 10 * max(total, 1.0), _GRID) / (1 + ratio)
        logs = np.log(self.grid)
        own = np.exp(-np.abs(logs[:, None] - logs[None, :]) / _OWN_SCALE)
        own /= own.sum(axis=1, keepdims=True)
        self._own: Array = (1 - apart) * own + apart / _GRID
        self._shared: Array = -np.abs(logs) / _SHARED_SCALE

    def likelihood(self, evidence: Evidence) -> Array:
        """The likelihood of each s of the grid, up to a factor."""
        square, mass = evidence.gap**2, evidence.mass
        logs = np.empty(self.grid.size)
        for place, spread in enumerate(self.grid):
            # Point by point: a table of all would be the marginal sixty times over.
            variance = spread * evidence.sampling * mass + evidence.stddev**2
            logs[place] = -0.5 * (np.log(variance) + square / variance).sum()
        return np.asarray(np.exp(logs - logs.max()))

    def telling(self, likelihood: Array) -> float:
        """How much likelier the likeliest spread is than 1, as a logarithm; 0 where it is not above 1."""
        one = int(np.argmin(np.abs(np.log(self.grid))))
        return float(-np.log(likelihood[one] + 1e-300)) if likelihood.argmax() > one else 0.0

    def pooled(self, likelihoods: Iterable[Array]) -> "PooledSpread":
        """What all measured marginals say together about s on one that was not."""
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
    def quartiles(self) -> Array:
        """S at a quarter, a half and three quarters."""
        return np.array([self.quantile(self.density, share) for share in (0.25, 0.5, 0.75)])

    def median(self, likelihood: Array) -> float:
        """The posterior median of s for a marginal of this likelihood."""
        return self.quantile(self.density * likelihood, 0.5)

    def quantile(self, density: Array, share: float) -> float:
        """Where a density over the grid, of any sum, has this share below it."""
        below = np.cumsum(density)
        return float(np.exp(np.interp(share, below / below[-1], np.log(self.grid))))


def capped(evidence: Evidence, spread: float, *, least_doubt: float) -> float:
    """S, or the largest s that leaves some doubt in the answer: less doubt would only make the fit slow.

    Doubt d keeps a share d of the gap between model and answer. It is ``least_doubt``, or as much less
    as it takes for what is kept to be a tenth of the noise that the answer has anyway.
    """
    gap = np.abs(evidence.gap)
    noise = np.sqrt(2 / np.pi) * evidence.stddev * gap.size
    hidden = float(noise / (10 * max(gap.sum(), noise)))
    most = 1 - max(min(least_doubt, hidden), _LEAST_DOUBT)
    if evidence.trust(spread) <= most:
        return spread
    low, high = 0.0, spread
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if evidence.trust(middle) <= most else (low, middle)
    return low
