"""Which of several models is closest to the data on a whole workload.

    score_k = − Σ_c w_c ‖x_c − μ_c^k‖₁,      Σ_c w_c = 1

One person moves ‖x_c − μ_c‖₁ by at most Δ₁ of the marginal, and so the mean over them by at most the mean
of their Δ₁, however many marginals there are: the choice is far cheaper than measuring any of them.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sidelight.data.count_source import ManyCountSource
from sidelight.data.domain import Attrs
from sidelight.privacy.unit import Unit
from sidelight.queries.query import Query
from sidelight.select.score import answers_of, l1_error

Array = NDArray[np.float64]

_SLACK = Fraction(1, 2**40)
"""Slack for rounding, as a fraction of n. Errors are summed exactly (``score``) and cut at 4n. The product
with a weight is rounded once, and so is the curator's sum over all queries and the start: less than 2⁻⁴²."""
_MOST_START = 2.0**10
"""Largest start of an option, as a multiple of n."""


class Judgement(ABC):
    """How well each of several options does, as a sum over queries."""

    options: int

    def start(self, scale: float) -> Array:
        """Each option's starting score, from public knowledge.

        A start higher by ``scale`` makes an option e times as likely.
        """
        return np.zeros(self.options)

    @abstractmethod
    def sensitivity(self, unit: Unit, queries: Sequence[Query]) -> Fraction:
        """How far the sum of any option can move between neighbours."""

    @abstractmethod
    def each(self, queries: Sequence[Query]) -> Iterator[tuple[int, Callable[[NDArray[Any]], Array]]]:
        """The index of every query, once each, and what its exact answer adds to each option's score."""


Said = Callable[[Attrs, Sequence[Array]], Iterator[tuple[Sequence[int], Array]]]
"""What options say of a marginal, from what a few models say of it; those that say the same come together."""


class Contest(Judgement):
    """Options made of a few models: the smaller their error on a workload, the higher the score."""

    def __init__(
        self,
        models: Sequence[ManyCountSource],
        said: Said,
        *,
        weights: Mapping[Attrs, float],
        total: float,
        log_odds: Sequence[float],
        handicaps: Sequence[float] | None = None,
    ) -> None:
        """``log_odds`` has one number an option: how likely it is before the data are looked at.

        An option's error has to be smaller by its handicap, in records; by default there are none.
        """
        self._handicaps = np.array(handicaps or [0.0] * len(log_odds))
        self.options = len(log_odds)
        self._log_odds = np.array(log_odds, dtype=np.float64)
        self._models = models
        self._said = said
        whole = sum(weights.values())
        self._weights = {attrs: weight / whole for attrs, weight in weights.items()}
        self._total = total

    def start(self, scale: float) -> Array:
        # PRIVACY: the same on neighbours. Bounded, so that adding it rounds by less than n·2⁻⁴²; where the
        # bound is felt, the budget tells nothing.
        bound = _MOST_START * self._total
        return np.asarray(np.clip(scale * self._log_odds - self._handicaps, -bound, bound))

    def sensitivity(self, unit: Unit, queries: Sequence[Query]) -> Fraction:
        # PRIVACY: what options say is released already, so only x moves, by Δ₁ of each marginal; errors are
        # cut at 4n, which moves none further. Each of two scores may be off by n·2⁻⁴⁰, for rounding.
        moved = sum((Fraction(self._weights[q.attrs]) * q.l1(unit) for q in queries), Fraction(0))
        return moved + 2 * _SLACK * Fraction(self._total)

    def each(self, queries: Sequence[Query]) -> Iterator[tuple[int, Callable[[NDArray[Any]], Array]]]:
        first, *more = self._models
        for place, one in answers_of(first, queries):
            attrs = queries[place].attrs
            others = [counts.reshape(-1) for model in more for _, counts in model.count_each([attrs])]
            yield place, partial(self._score, attrs, [one, *others])

    def _score(self, attrs: Attrs, answers: Sequence[Array], exact: NDArray[Any]) -> Array:
        errors = np.zeros(self.options)
        # One at a time: a marginal may be as large as the models, and there may be many options.
        for options, counts in self._said(attrs, answers):
            errors[list(options)] = l1_error(exact, counts.reshape(-1))
        return -self._weights[attrs] * np.minimum(errors, 4.0 * self._total)


class LeastError(Contest):
    """A contest of mixtures of models, each with a share of every model."""

    def __init__(
        self,
        models: Sequence[ManyCountSource],
        mixtures: Sequence[Sequence[float]],
        *,
        weights: Mapping[Attrs, float],
        total: float,
        log_odds: Sequence[float] | None = None,
        handicaps: Sequence[float] | None = None,
    ) -> None:
        def said(attrs: Attrs, answers: Sequence[Array]) -> Iterator[tuple[Sequence[int], Array]]:
            for option, mixture in enumerate(mixtures):
                held = [share * counts for share, counts in zip(mixture, answers, strict=True) if share]
                yield [option], np.sum(held, axis=0)

        even = [0.0] * len(mixtures)
        super().__init__(
            models, said, weights=weights, total=total, log_odds=log_odds or even, handicaps=handicaps
        )


def excess(log_odds: Sequence[float], *, epsilon: float, sensitivity: float, failure: float) -> Array:
    """Records that the chosen option errs by more than each option does, but for a chance of ``failure``.

    With π the odds as probabilities, err(chosen) ≤ err(k) + (2Δ/ε)(ln 1/π_k + ln 1/β) for all k at once, with
    probability 1 − β: for the k with the least bound, all options beyond it together have less than β of its
    weight.

    >>> excess([0.0, 0.0], epsilon=1.0, sensitivity=2.0, failure=0.05).round(2)
    array([14.76, 14.76])
    """
    odds = np.array(log_odds, dtype=np.float64)
    log_chances = odds - np.logaddexp.reduce(odds)
    return np.asarray(2 * sensitivity / epsilon * (-log_chances - np.log(failure)))
