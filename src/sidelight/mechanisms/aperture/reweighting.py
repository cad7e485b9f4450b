"""Weighted records that follow noisy answers, as a tree of the same beliefs does.

    r = argmin  n KL(r ‖ records) + Σ_c ½ a_c ‖n r_c − y_c‖²

A tree keeps a few dozen marginals within its size. Records keep everything, and the sampling error of
everything; and reweighted, they follow any number of marginals. APERTURE does so twice: with public records
(what they show that the public model has no room for), and with records drawn from its own model (particles:
marginals are measured then that its tree has no room for).

Solved for one marginal at a time (balance.py). Weights are those that the records came with, times
exp(Σ_c θ_c).

PRIVACY: functions of public data, of released models and of noisy answers; post-processing.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from sidelight.data.domain import Attrs
from sidelight.fit.balance import MOST_TILT, potential
from sidelight.fit.following import Pulled
from sidelight.measurement import Measurement
from sidelight.mechanisms.aperture.evidence import Beliefs
from sidelight.models.support import Support, tally, tilt

Array = NDArray[np.float64]

PASSES, LAST_PASSES = 5, 30
"""Most passes over all answers: between two batches, and at the end."""
_WHOLE = 10
"""So many passes go all the way to what each answer says; later ones shorter and shorter parts of it, so that
noisy answers that contradict each other are not met in turn, but on average."""
_CLOSE = 4e-3
"""Passes end when no marginal moves by more than this share of all records."""


class Reweighting:
    """Records whose weights follow noisy answers."""

    def __init__(self, support: Support, total: float) -> None:
        scaled = support.with_total(total)
        self.domain = support.domain
        self._weights = scaled.weights.copy()
        # It sees the weights as they move, and is given to nobody.
        self._now = replace(scaled, weights=self._weights)
        self._potentials: dict[Attrs, NDArray[np.float32]] = {}
        """Six digits are enough of a logarithm, as long as weights move by what is kept of it."""

    @property
    def support(self) -> Support:
        """The records with their weights as they now are."""
        return replace(self._now, weights=self._weights.copy())

    def count(self, attrs: Attrs) -> Array:
        """What the reweighted records say now."""
        return self._now.count(attrs)

    def count_each(self, wanted: Sequence[Attrs]) -> Iterator[tuple[int, Array]]:
        """Many marginals, one at a time, each with its place among those asked for."""
        return self._now.count_each(wanted)

    def rest(self, beliefs: Beliefs) -> None:
        """Count the weights as optimal for the answers so far: θ_c = a_c (y_c − n r_c), as at the optimum.

        Later fits start from here, and go on weighing earlier answers.
        """
        for attrs, one in beliefs.pulled().items():
            gap = one.answer - self.count(attrs).reshape(-1)
            tilts = np.clip(one.pull * gap, -MOST_TILT, MOST_TILT)
            self._potentials[attrs] = tilts.astype(np.float32)

    def follow(self, measurements: Sequence[Measurement], beliefs: Beliefs) -> Support:
        """Take in noisy answers, single attributes first; beliefs are about these records."""
        singles = [m for m in measurements if len(m.query.attrs) == 1]
        beliefs.add_singles(singles, self)
        self._pass(beliefs.pulled(), beliefs.held)
        for measurement in measurements:
            if len(measurement.query.attrs) > 1:
                beliefs.add(measurement.against(self))
                self._pass(beliefs.pulled(), [measurement.query.attrs])
        self.settle(beliefs, passes=PASSES)
        return self.support

    def settle(self, beliefs: Beliefs, *, passes: int) -> None:
        """Go over all answers at most so many times, until hardly anything moves."""
        # Single attributes last, so that what was paid for them is kept.
        order, pulled = sorted(beliefs.held, key=lambda attrs: -len(attrs)), beliefs.pulled()
        for number in range(passes):
            if self._pass(pulled, order, step=min(1.0, _WHOLE / (number + 1))) < _CLOSE:
                break

    def _pass(self, pulled: Mapping[Attrs, Pulled], some: Iterable[Attrs], *, step: float = 1.0) -> float:
        """Solve for one marginal at a time: its potential, all others as they are; and go a part of the way.

        Returns the most that a marginal moved by, as a share of all records.
        """
        n, weights, furthest = self._now.total, self._weights, 0.0
        for attrs in some:
            answer, pull, cells = pulled[attrs].answer, pulled[attrs].pull, self._now.cells(attrs)
            before = self._potentials.get(attrs, np.zeros(answer.size)).astype(np.float64)
            share = tally(cells, weights, answer.size) / n
            solved = potential(share, before, answer=answer, pull=pull, total=n)
            after = (before + step * (solved - before)).astype(np.float32)
            ratio = np.exp(np.subtract(after, before, out=before), out=before)
            furthest = max(furthest, float(share @ np.abs(ratio - 1)))
            ratio /= share @ ratio  # so that the weights keep their sum
            tilt(weights, cells, ratio)
            self._potentials[attrs] = after
        weights *= n / weights.sum()
        return furthest


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
