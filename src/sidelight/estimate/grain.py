"""The grain of the public records: what they show that the tree of the public model has no room for.

A public model keeps a few dozen marginals within its size. Records keep everything, and the sampling error
of everything. Reweighted so as to follow the noisy answers, in the way in which the tree follows them,

    r = argmin  n KL(r ‖ public records) + Σ_c Σ_i ½ (s_ci/σ_c²) (n r_ci − y_ci)²

they answer beside it: the release is a mixture (1 − λ) p + λ r. The spreads s_c are found as for the tree,
with the records as the model that they may stray from.

How much of them to take: at most the λ that half of the public records would have done best with on the
other half, lowered as the weights become uneven; the curator chooses below that, and pays for it.

PRIVACY: functions of public data and of noisy answers; post-processing.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from sidelight.data.domain import Attrs
from sidelight.estimate.beliefs import Beliefs
from sidelight.estimate.support import Support
from sidelight.measure.measurement import Measurement

Array = NDArray[np.float64]

_PASSES = 10
"""Over all answers at the end; a pass solves for one marginal at a time, given the others."""
_STEPS, _MOST_STEP, _CLOSE = 40, 5.0, 1e-10
"""Of Newton's method in log-shares: how many steps, how long, and when to stop."""
_MOST_TILT = 30.0
"""A weight moves by at most e³⁰ for one marginal."""


class Grain:
    """Public records whose weights follow noisy answers."""

    def __init__(self, support: Support, total: float) -> None:
        self._support = support.with_total(total)
        self._potentials: dict[Attrs, Array] = {}

    def count(self, attrs: Attrs) -> Array:
        """What the reweighted records say now."""
        ((_, counts),) = self._support.count_each([attrs])
        return counts

    def follow(self, measurements: Sequence[Measurement], beliefs: Beliefs) -> Support:
        """Take in noisy answers in the order in which they came; beliefs are about these records."""
        for measurement in measurements:
            beliefs.add(measurement, self)
            self._pass(beliefs, beliefs.precisions())
        precisions = beliefs.precisions()
        for _ in range(_PASSES):
            self._pass(beliefs, precisions)
        return self._support

    def _pass(self, beliefs: Beliefs, precisions: Mapping[Attrs, Array]) -> None:
        """Solve for one marginal at a time: its potential, all others as they are."""
        n = self._support.total
        for attrs, precision in precisions.items():
            answer = beliefs.held[attrs].answers.answer
            before = self._potentials.get(attrs, np.zeros(answer.size))
            share = self.count(attrs).reshape(-1) / n
            # Where no record is, none can be made; the log-share stands for nothing there.
            now = np.log(np.where(share > 0, share, 1.0))
            found = _solved(now, b=now - before + precision * answer, a=precision * n)
            after = np.clip(np.where(share > 0, before + found - now, 0.0), -_MOST_TILT, _MOST_TILT)
            moved = np.exp(after - before)[self._support.cells(attrs)]
            self._support = self._support.with_weights(self._support.weights * moved)
            self._potentials[attrs] = after


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
