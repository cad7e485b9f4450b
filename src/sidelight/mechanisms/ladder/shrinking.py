"""Residuals of a table whose relations fade: each shrunk towards what the smaller marginals say.

**Single attributes** are taken for skewed: a few values hold most of the records (``fit/skewed.py``).

**Relations**, degree by degree, for all sets S of that degree:

    μ   ← the counts of largest entropy with the marginals found below S
    g_S ← r̂_S − R_S μ                                        what noisy answers say beyond them
    r_S ← R_S (μ + k g_S),     k_i = s_S μ_i / (s_S μ_i + σ_S²)

A cell is believed to stray from μ by s times what drawing records at random gives; σ_S² is the variance of
its noise. How far tables of a degree stray is learned from all of them together (``SpreadPrior``), though any
may be unlike the others; s_S is the median of what that says of S. A residual that nobody measured stays at
R_S μ; s is then the median of its degree, or of the degree below times ``fading``.

**Pairs that clearly stray**, by more than their noise, are taken for skewed around μ, like single attributes:
of values that depend on each other most combinations are rare, and what noise alone explains goes towards 0.
Attributes of two values have too few combinations for that, and where noise is next to nothing it is in vain.

**How large a relation is** for the plan: τ_S² is E[s] times the mean of μ, in each dimension of S.

**What is left of each**, for error bars: noise, and what shrinking takes away of the truth.

    V_i = k_i² σ² + (1 − k_i)² E[s] μ_i     at most σ²

with max(s μ_i, c_S μ_i²) where nobody measured: the truth is not believed to stray by less than the plan
expected (planning.py), nor single attributes by less than they usually do (uncertainty/misplaced.py).

Where noise is small, the answers stand; where it swamps them, what is left is the table of largest entropy
with what could be told apart from noise.

PRIVACY: a function of noisy answers; post-processing.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sidelight.data.domain import Attrs, Domain
from sidelight.fit.skewed import Noisy, denoised
from sidelight.measurement import Measurement
from sidelight.mechanisms.ladder.planning import Fade
from sidelight.models.reconstruction import Reconstruction
from sidelight.models.residuals import Estimate, Residuals, centred, residual_of, split
from sidelight.queries.residual import Residual
from sidelight.uncertainty.dispersion import SpreadPrior
from sidelight.uncertainty.misplaced import skew

Array = NDArray[np.float64]

_APART = 0.1
"""The chance that a relation is unlike all others of its degree, and that they say nothing of it."""
_CLEAR = 30.0
"""A pair that strays by more than its noise, as a variance, is taken for skewed, up to so many times it."""
_MOST_SKEWED = 2_500
"""Most cells of all pairs together for that: it takes some 0.3 milliseconds a cell."""
_LEAST = 1e-3
"""Records, as a share of what is even, that no cell is believed to be without."""


def told_by(
    domain: Domain, measurements: Sequence[Measurement], members: Sequence[Attrs]
) -> dict[Attrs, Estimate]:
    """Estimates of these residuals from noisy marginals or residuals, as inverse-variance means."""
    found: dict[Attrs, Estimate] = {}
    for made in measurements:
        if isinstance(made.query, Residual):
            parts = split(domain, made)
        else:
            held = set(made.query.attrs)
            parts = [(attrs, residual_of(domain, made, attrs)) for attrs in members if held.issuperset(attrs)]
        for attrs, part in parts:
            found[attrs] = part.averaged(found[attrs]) if attrs in found else part
    return found


def faded(
    domain: Domain,
    told: Mapping[Attrs, Estimate],
    members: Sequence[Attrs],
    *,
    total: Estimate,
    fade: Fade,
) -> tuple[Residuals, dict[Attrs, float]]:
    """All these residuals, from those that noisy answers told of: single attributes are among these.

    Beside them, how large each relation is expected to be, squared, in each dimension: τ² of another plan.
    The members hold all of their subsets.

    >>> domain = Domain.of({"a": 2, "b": 2})
    >>> told = {("a",): Estimate(np.array([30.0, -30.0]), 1.0), ("b",): Estimate(np.array([2.0, -2.0]), 1e4)}
    >>> n = Estimate(np.array(100.0), 0.0)
    >>> known, _ = faded(domain, told, [("a",), ("b",), ("a", "b")], total=n, fade=Fade(0.3, 0.1))
    >>> known.count(("a", "b")).round(0).tolist()
    [[40.0, 40.0], [10.0, 10.0]]
    """
    found: dict[Attrs, Estimate] = {(): total}
    n = max(1.0, float(total.values))
    singles = [attrs for attrs in members if len(attrs) == 1]
    for one_way, single in zip(singles, denoised([_single(told[a], n) for a in singles]), strict=True):
        cells = single.counts.size
        variance = _left_of_single(single.variance, told[one_way].variance * (cells - 1) / cells, n, cells)
        found[one_way] = Estimate(centred(single.counts), variance * cells / (cells - 1))
    prior, sizes = SpreadPrior(n, 0.0, apart=_APART), {}
    spread = 1.0
    for degree in range(2, max(map(len, members), default=0) + 1):
        below = Reconstruction(Residuals(domain, dict(found)))
        sets = {
            attrs: _Set.of(domain, attrs, below.of_largest_entropy(attrs), told.get(attrs))
            for attrs in members
            if len(attrs) == degree
        }
        likely = {attrs: one.likelihood(prior.grid) for attrs, one in sets.items() if one.told is not None}
        pooled = prior.pooled(likely.values())
        spread = pooled.middle if likely else fade.fading * spread
        is_small = degree == 2 and sum(one.expected.size for one in sets.values()) <= _MOST_SKEWED
        for attrs, one in sets.items():
            mean = pooled.mean(likely[attrs]) if attrs in likely else spread
            sizes[attrs] = mean * float(one.mass.mean()) / one.share
            if attrs in likely:
                found[attrs] = one.shrunk(pooled.median(likely[attrs]), mean, may_be_skewed=is_small)
            else:
                found[attrs] = one.left_alone(spread, fade.strength(degree))
    return Residuals(domain, found), sizes


def _left_of_single(posterior: float, noise: float, total: float, cells: int) -> float:
    """The variance of a value's count, where its answer was shrunk towards n over the number of values."""
    kept = min(posterior / noise, 1.0) if noise > 0 else 1.0
    usual = (skew(cells) - 1) * (total / cells) ** 2
    return min(noise, max(posterior, kept**2 * noise + (1 - kept) ** 2 * usual))


def _single(told: Estimate, total: float) -> Noisy:
    """The noisy counts of one attribute, from the estimate of its residual."""
    cells = told.values.size
    stddev = math.sqrt(told.variance * (cells - 1) / cells)
    return Noisy.of(told.values + total / cells, stddev, total=total)


@dataclass(frozen=True, eq=False)
class _Set:
    """A residual, what is expected of it, and what noisy answers say."""

    expected: Array
    """μ."""
    told: Estimate | None
    share: float
    """In how many dimensions the residual lies, for each cell."""

    @classmethod
    def of(cls, domain: Domain, attrs: Attrs, expected: Array, told: Estimate | None) -> "_Set":
        cells = math.prod(domain.sizes[attr] for attr in attrs)
        contrasts = math.prod(domain.sizes[attr] - 1 for attr in attrs)
        return cls(expected, told, contrasts / cells)

    @property
    def mass(self) -> Array:
        """The variance of each cell at s = 1, that of drawing records at random."""
        return np.asarray(self.expected + _LEAST * self.expected.mean())

    @property
    def noise(self) -> float:
        """The variance of the noise in a cell."""
        assert self.told is not None
        return self.told.variance * self.share

    @property
    def gap(self) -> Array:
        assert self.told is not None
        return self.told.values - centred(self.expected)

    def likelihood(self, grid: Array) -> Array:
        """The likelihood of each s, up to a factor; cells of a residual are not free, so each counts less."""
        square, mass = self.gap.reshape(-1) ** 2, self.mass.reshape(-1)
        logs = np.empty(grid.size)
        for place, spread in enumerate(grid):
            variance = spread * mass + self.noise
            logs[place] = -0.5 * self.share * float((np.log(variance) + square / variance).sum())
        return np.asarray(np.exp(logs - logs.max()))

    def left_alone(self, spread: float, strength: float) -> Estimate:
        """The residual that nobody measured, with what it may stray; ``strength`` is c_S of the plan."""
        strays = np.maximum(spread * self.mass, strength * self.mass**2)
        return Estimate(centred(self.expected), float(strays.mean()) / self.share)

    def shrunk(self, spread: float, mean: float, *, may_be_skewed: bool) -> Estimate:
        """The residual by this s, with the variance that is left of it; ``mean`` is E[s]."""
        assert self.told is not None
        kept = spread * self.mass / (spread * self.mass + self.noise)
        left = kept**2 * self.noise + (1 - kept) ** 2 * mean * self.mass
        variance = min(float(left.mean()) / self.share, self.told.variance)
        is_told = self.noise < spread * float(self.mass.mean()) < _CLEAR * self.noise
        is_skewed = may_be_skewed and is_told and min(kept.shape) > 2
        counts = self._skewed() if is_skewed else self.expected + kept * self.gap
        return Estimate(centred(counts), variance)

    def _skewed(self) -> Array:
        """The counts, taken for skewed around μ: what noise alone explains goes towards 0."""
        assert self.told is not None
        means = self.mass * (self.expected.sum() / self.mass.sum())
        answer = self.expected + self.gap
        (found,) = denoised([Noisy(answer.reshape(-1), math.sqrt(self.noise), means.reshape(-1))])
        return found.counts.reshape(answer.shape)
