"""Weighted records that follow noisy answers, as a tree of the same beliefs does.

    r = argmin  n KL(r ‖ records) + Σ_c Σ_i ½ (s_ci/σ_c²) (n r_ci − y_ci)²

A tree keeps a few dozen marginals within its size. Records keep everything, and the sampling error of
everything; and reweighted, they follow any number of marginals. APERTURE does so twice: with the grain (what
public records show that the public model has no room for), and with records drawn from its own model
(particles: marginals are measured then that its tree has no room for).

Solved for one marginal at a time. At the optimum its potential is θ_c = (s_c/σ_c²)(y_c − n r_c) + ν_c, where
ν_c keeps the total, and weights are those that the records came with, times exp(Σ_c θ_c).

PRIVACY: functions of public data, of released models and of noisy answers; post-processing.
"""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from sidelight.data.domain import Attrs
from sidelight.estimate.beliefs import Beliefs
from sidelight.estimate.support import Support
from sidelight.measure.measurement import Measurement

Array = NDArray[np.float64]

_PASSES = 5
"""Over all answers at the end; a pass solves for one marginal at a time, given the others."""
_STEPS, _MOST_STEP, _CLOSE = 40, 5.0, 1e-8
"""Of Newton's method in log-shares: how many steps, how long, and when to stop."""
_MOST_TILT = 30.0
"""A weight moves by at most e³⁰ for one marginal."""


class Reweighting:
    """Records whose weights follow noisy answers."""

    def __init__(self, support: Support, total: float) -> None:
        self._support = support.with_total(total)
        self._potentials: dict[Attrs, Array] = {}

    @property
    def support(self) -> Support:
        """The records with their weights as they are now."""
        return self._support

    def count(self, attrs: Attrs) -> Array:
        """What the reweighted records say now."""
        return self._support.count(attrs)

    def count_each(self, wanted: Sequence[Attrs]) -> Iterator[tuple[int, Array]]:
        """Many marginals, one at a time, each with its place among those asked for."""
        return self._support.count_each(wanted)

    def rest(self, beliefs: Beliefs) -> None:
        """Take the weights as they are for the optimum, given all answers so far."""
        for attrs, spread in beliefs.spreads().items():
            gap = beliefs.held[attrs].answers.answer - self.count(attrs).reshape(-1)
            self._potentials[attrs] = np.clip(beliefs.pull(attrs, spread) * gap, -_MOST_TILT, _MOST_TILT)

    def follow(self, measurements: Sequence[Measurement], beliefs: Beliefs) -> Support:
        """Take in noisy answers in the order in which they came; beliefs are about these records."""
        for measurement in measurements:
            beliefs.add(measurement, self)
            attrs = measurement.query.attrs
            self._pass(beliefs, [(attrs, beliefs.pull(attrs, beliefs.spreads()[attrs]))])
        self.settle(beliefs, passes=_PASSES)
        return self._support

    def settle(self, beliefs: Beliefs, *, passes: int) -> None:
        """Go over all answers so many times."""
        spreads = beliefs.spreads()
        for _ in range(passes):
            self._pass(beliefs, ((attrs, beliefs.pull(attrs, spreads[attrs])) for attrs in spreads))

    def _pass(self, beliefs: Beliefs, precisions: Iterable[tuple[Attrs, Array]]) -> None:
        """Solve for one marginal at a time: its potential, all others as they are."""
        n, weights = self._support.total, self._support.weights.copy()
        for attrs, precision in precisions:
            answer, cells = beliefs.held[attrs].answers.answer, self._support.cells(attrs)
            before = self._potentials.get(attrs, np.zeros(answer.size))
            share = np.bincount(cells, weights, answer.size) / n
            # Where no record is, none can be made: its potential stays 0.
            held = share > 0
            now, precision = np.log(share[held]), precision[held]
            found = _balanced(now, b=now - before[held] + precision * answer[held], a=precision * n)
            after = np.zeros(answer.size)
            after[held] = np.clip(before[held] + found - now, -_MOST_TILT, _MOST_TILT)
            weights *= np.exp(after - before)[cells]
            weights *= n / weights.sum()
            self._potentials[attrs] = after
            del cells  # before the next are found: they are as large as the weights
        self._support = self._support.with_weights(weights)


def _balanced(start: Array, *, a: Array, b: Array) -> Array:
    """U with u + a eᵘ = b + ν, cell by cell, at the ν with which Σ eᵘ = 1.

    Newton's method in ln Σ eᵘ, within a bracket: at its upper end one cell is at 1, at its lower end none of
    k cells is above 1/k.

    >>> a, b = np.array([1.0, 9.0]), np.array([1.0, 2.0])
    >>> u = _balanced(np.log([0.5, 0.5]), a=a, b=b)
    >>> np.round(np.exp(u), 4), np.round(u + a * np.exp(u) - b, 4)
    (array([0.7103, 0.2897]), array([-0.6317, -0.6317]))
    """
    least = float((a / a.size - np.log(a.size) - b).min())
    most, level, found = float((a - b).min()), 0.0, start
    for _ in range(_STEPS):
        level = level if least < level < most else (least + most) / 2
        found = _solved(found, a=a, b=b + level)
        share = np.exp(found)
        total = float(share.sum())
        if abs(total - 1.0) < _CLOSE:
            break
        least, most = (level, most) if total < 1.0 else (least, level)
        slope = float((share / (1.0 + a * share)).sum())
        level = level - total * float(np.log(total)) / slope if slope > 0 else np.inf
    return found


def _solved(start: Array, *, a: Array, b: Array) -> Array:
    """U with u + a eᵘ = b, cell by cell, by Newton's method in steps of at most 5.

    >>> u = _solved(np.zeros(2), a=np.array([1.0, 1e6]), b=np.array([1.0, 1e3]))
    >>> np.allclose(u + np.array([1.0, 1e6]) * np.exp(u), [1.0, 1e3])
    True
    """
    found = start
    for _ in range(_STEPS):
        grown = a * np.exp(found)
        step = np.clip((found + grown - b) / (1.0 + grown), -_MOST_STEP, _MOST_STEP)
        found = found - step
        if np.abs(step).max() < _CLOSE:
            break
    return found


def evenness(support: Support) -> float:
    """As many records of equal weight would say as much: (Σw)² / Σw²."""
    weights = support.weights
    return float(weights.sum() ** 2 / (weights @ weights))


def lowered(share: float, by: float) -> float:
    """λ, when the records are worth only this part of what they were: its odds fall by as much.

    >>> lowered(0.5, 0.25)
    0.2
    """
    return share * by / (share * by + (1 - share))  # in this order never above 1
