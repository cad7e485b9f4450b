"""How far a model is off where nobody measured: learned from how far it was off before each measurement.

A measurement tries the model that was there before it. With the model's counts μ on n records and noise
of variance σ² in the answer y, a cell is believed to hold x ~ (μ, s v), v = μ(1 − μ/n): over-dispersed by
s around what drawing n records at random gives. Then

    T = Σ h_i (y_i − μ_i)²,    E T = Σ h_i (σ² + s v_i),    h_i = v_i / (v_i + σ²)

and T is taken to have the law of a scaled χ² with this mean and its variance (Satterthwaite 1946). h leaves
out the cells that noise swamps. A selection picks what is worst, so s falls as the rounds go on:

    log s_t ~ 𝒩(M_t, b²),    M_t ~ 𝒩(M_{t−1}, k²)

a level that drifts, on a grid; b and k take a few values, which the answers weigh. What counts is E[s]
after the last trial. It tells of the next marginal that would be selected. Where selection goes by error,
those that it never picked are closer to the model on the whole, and E[s] errs on the safe side; where it goes
by what measuring would gain, as APERTURE's does, they need not be (benchmarks/utility/coverage.py).

Marginals of which some two attributes were never measured together ("unmet") are kept apart from all
others ("met"): a limit on the model's size may leave nothing but the latter to select in late rounds,
and they say little about what the limit shut out. Of attributes that nothing told of, neither noisy
answers nor public data, no level is claimed: there the model is a mere start.

PRIVACY: functions of noisy answers and of the model alone; post-processing.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sidelight.data.domain import Attrs, Domain
from sidelight.measurement import Measurement
from sidelight.queries.query import Cell, Countable, Marginal, Range, answer

Array = NDArray[np.float64]
Kind = Literal["met", "unmet"]

_FLOOR = 0.001
"""Records, as a share of n spread over a marginal's cells, that no cell is believed to be without."""
_GRID = 120
_LOWEST = 0.05
"""The least s, a twentieth of what drawing records at random gives."""
_SCALES = (0.125, 0.25, 0.5, 1.0)
"""Values of b and of k: from hardly any to a factor of e."""


def variance_at_one(counts: ArrayLike, *, total: float, cells: int) -> Array:
    """The variance v = μ(1 − μ/n) of each count at s = 1, in a marginal of so many cells.

    >>> variance_at_one([0.0, 50.0], total=100.0, cells=2).round(2).tolist()
    [0.05, 25.02]
    """
    mass = np.maximum(np.asarray(counts, dtype=np.float64), 0.0) + _FLOOR * total / cells
    return np.asarray(mass * np.maximum(1.0 - mass / (total + _FLOOR * total), 0.0))


@dataclass(frozen=True)
class Trial:
    """One noisy answer against what the model had said: T, and the sums that give its mean and variance."""

    squares: float
    noise: float
    """Σ h σ²"""
    spread: float
    """Σ h v"""
    noise_squared: float
    """Σ h² σ⁴"""
    crossed: float
    """Σ h² σ² v"""
    spread_squared: float
    """Σ h² v²"""

    @classmethod
    def of(cls, gap: Array, variance: Array, stddev: float) -> "Trial":
        """The trial that y − μ makes."""
        h = variance / (variance + stddev**2)
        return cls(
            float(h @ gap**2), float(h.sum()) * stddev**2, float(h @ variance),
            float(h @ h) * stddev**4, float(h**2 @ variance) * stddev**2, float(h**2 @ variance**2),
        )  # fmt: skip

    def likelihood(self, grid: Array) -> Array:
        """The likelihood of each s, up to a factor."""
        from scipy.special import gammaln

        mean = self.noise + grid * self.spread
        half = self.noise_squared + 2 * grid * self.crossed + grid**2 * self.spread_squared
        freedom, scale = mean**2 / half, half / mean
        squares = max(self.squares, 1e-12 * self.noise)
        logs = (
            (freedom / 2 - 1) * math.log(squares)
            - squares / (2 * scale)
            - freedom / 2 * np.log(2 * scale)
            - gammaln(freedom / 2)
        )
        return np.asarray(np.exp(logs - logs.max()))


class Surprises:
    """What every measurement of a run told that the model had not known.

    >>> from sidelight.models.histogram import Histogram
    >>> domain = Domain.of({"a": 2, "b": 2})
    >>> surprises = Surprises(domain)
    >>> answer = Measurement(Marginal(("a", "b")), np.array([40.0, 10, 10, 40]), 0.1)
    >>> surprises.note(answer, Histogram.uniform(domain, total=100.0), total=100.0)
    >>> surprises.kind(("a", "b")), round(surprises.levels()["unmet"])
    ('met', 21)
    """

    def __init__(
        self, domain: Domain, measured: Iterable[Measurement] = (), *, told: Iterable[str] = ()
    ) -> None:
        """Trials from now on; what was measured before tries nothing. Public data tell of ``told``."""
        self._domain = domain
        self._told = set(told)
        self._pairs = pairs_of(measured)
        self._total = 1.0
        self._trials: dict[Kind, list[Trial]] = {"met": [], "unmet": []}

    def note(self, measurement: Measurement, model: Countable, *, total: float) -> None:
        """Take in a noisy answer; the model is the one from before it."""
        query = measurement.query
        if isinstance(query, Marginal | Cell | Range):
            before = np.asarray(answer(query, model), dtype=np.float64)
            variance = variance_at_one(before, total=total, cells=self._domain.size(query.attrs))
            trial = Trial.of(measurement.answer - before, variance, measurement.stddev)
            if trial.spread > 0:  # a marginal of a single cell tries nothing
                self._trials[self.kind(query.attrs)].append(trial)
            self._total = max(self._total, total)
        self._pairs |= pairs(query.attrs)

    def tell(self, attrs: Attrs) -> None:
        """Public data were taken for these attributes."""
        self._told.update(attrs)

    def kind(self, attrs: Attrs) -> Kind:
        """Whether every two of these attributes were measured together so far; a single one, at all."""
        return "met" if pairs(attrs) <= self._pairs else "unmet"

    def levels(self) -> dict[Kind, float]:
        """E[s] at the end, for each kind of marginal that was ever tried."""
        return {kind: level(trials, self._total) for kind, trials in self._trials.items() if trials}

    def card(self, *, spreads: Mapping[Attrs, tuple[float, float]] | None = None) -> dict[str, Any]:
        """What a release needs to know about the error of its model, as plain values.

        ``spreads`` are those of the measured marginals, where the fit weighed a prior against them: s, and
        what s would be if the prior were off by its own sampling alone.
        """
        error: dict[str, Any] = {
            "levels": {kind: _short(s) for kind, s in self.levels().items()},
            "trials": {kind: len(trials) for kind, trials in self._trials.items()},
            "untold": [attr for attr in self._domain.attrs if not self._is_told(attr)],
        }
        if spreads is not None:
            error["spreads"] = [
                {"attrs": list(attrs), "s": _short(s), "sampling": _short(sampling)}
                for attrs, (s, sampling) in spreads.items()
            ]
        return {"model_error": error}

    def _is_told(self, attr: str) -> bool:
        return attr in self._told or frozenset({attr}) in self._pairs


def pairs_of(measured: Iterable[Measurement]) -> set[frozenset[str]]:
    """All pairs of attributes, and single ones, that some measurement holds."""
    return set().union(*(pairs(made.query.attrs) for made in measured))


def pairs(attrs: Iterable[str]) -> set[frozenset[str]]:
    """All sets of one or two of these attributes."""
    listed = list(attrs)
    return {frozenset(pair) for pair in product(listed, listed)}


def _short(value: float) -> float:
    return float(f"{value:.4g}")


def level(trials: Sequence[Trial], total: float) -> float:
    """E[s] of the next marginal, after these trials in their order."""
    grid = np.geomspace(_LOWEST, max(total, 10.0), _GRID)
    likelihoods = [trial.likelihood(grid) for trial in trials]
    evidence, expected = [], []
    for own, drift in product(_SCALES, _SCALES):
        scatter, walk = _kernel(own, total), _kernel(drift, total)
        belief, log_evidence = np.full(_GRID, 1 / _GRID), 0.0
        for number, likelihood in enumerate(likelihoods):
            belief = (belief @ walk if number else belief) * (scatter @ likelihood + 1e-300)
            log_evidence += math.log(belief.sum())
            belief = belief / belief.sum()
        evidence.append(log_evidence)
        expected.append(float(belief @ scatter @ grid))
    weights = np.exp(np.array(evidence) - max(evidence))
    return float(weights @ np.array(expected) / weights.sum())


@lru_cache(maxsize=16)
def _kernel(scale: float, total: float) -> Array:
    """Normal steps of this scale in log s, from each point of the grid to each."""
    logs = np.log(np.geomspace(_LOWEST, max(total, 10.0), _GRID))
    density = np.exp(-0.5 * ((logs[:, None] - logs[None, :]) / scale) ** 2)
    return np.asarray(density / density.sum(axis=1, keepdims=True))
