"""Which of several options is closest to the data on a whole workload.

    score_k = − Σ_c w_c ‖x_c − μ_c^k‖₁,      Σ_c w_c = 1

One person moves ‖x_c − μ_c‖₁ by at most Δ₁ of the marginal, and so the mean over them by at most the mean
of their Δ₁, however many marginals and options there are: choosing is far cheaper than measuring.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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
Said = Callable[[Attrs, Sequence[Array]], tuple[Iterable[Array], NDArray[np.intp]]]
"""From each model's counts of a marginal to the different counts that the options propose, and to the place
of each option's own among these."""

OPTIONS = "options, by"
"""Words by which the event of a contest is known, as in "3 options, by 28 queries"."""
_SLACK = Fraction(1, 2**40)
"""Slack for rounding, as a fraction of n. Errors are summed exactly (``score``) and cut at 4n. The product
with a weight is rounded once, and so is the curator's sum over all queries and the start: less than 2⁻⁴²."""
_CELLS_AT_ONCE = 1 << 16
"""Cells of the queries that every model answers, once it is made ready, before the next are looked at."""
_MOST_START = 2.0**10
"""Largest start of an option, as a multiple of n."""


class Contest:
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
        self.options = len(log_odds)
        self._log_odds = np.array(log_odds, dtype=np.float64)
        self._handicaps = np.array(handicaps or [0.0] * self.options)
        self._models = models
        self._said = said
        whole = sum(weights.values())
        self._weights = {attrs: weight / whole for attrs, weight in weights.items()}
        self._total = total

    def start(self, scale: float) -> Array:
        """Each option's starting score, from public knowledge: higher by ``scale`` is e times as likely."""
        # PRIVACY: the same on neighbours. Bounded, so that adding it rounds by less than n·2⁻⁴²; where the
        # bound is felt, the budget tells nothing.
        bound = _MOST_START * self._total
        return np.asarray(np.clip(scale * self._log_odds - self._handicaps, -bound, bound))

    def sensitivity(self, unit: Unit, queries: Sequence[Query]) -> Fraction:
        """How far the sum of any option can move between neighbours."""
        # PRIVACY: what options say is released already, so only x moves, by Δ₁ of each marginal; errors are
        # cut at 4n, which moves none further. Each of two scores may be off by n·2⁻⁴⁰, for rounding.
        moved = sum((Fraction(self._weights[q.attrs]) * q.l1(unit) for q in queries), Fraction(0))
        return moved + 2 * _SLACK * Fraction(self._total)

    def each(self, queries: Sequence[Query]) -> Iterator[tuple[int, Callable[[NDArray[Any]], Array]]]:
        """The index of every query, once each, and what its exact answer adds to each option's score."""
        first, *more = self._models
        held = dict[int, Array]()
        for place, one in answers_of(first, queries):
            held[place] = one
            if sum(answer.size for answer in held.values()) > _CELLS_AT_ONCE:
                yield from self._judged(queries, held, more)
                held = {}
        yield from self._judged(queries, held, more)

    def _judged(
        self, queries: Sequence[Query], held: Mapping[int, Array], more: Sequence[ManyCountSource]
    ) -> Iterator[tuple[int, Callable[[NDArray[Any]], Array]]]:
        """The same for a few queries, given the first model's answers; every other model is asked once."""
        asked = [queries[place] for place in held]
        others = [dict(answers_of(model, asked)) for model in more] if asked else []
        for number, (place, one) in enumerate(held.items()):
            answers = [one, *(of.pop(number) for of in others)]
            yield place, partial(self._score, queries[place].attrs, answers)

    def _score(self, attrs: Attrs, answers: Sequence[Array], exact: NDArray[Any]) -> Array:
        said, which = self._said(attrs, answers)
        # One at a time: a marginal may be as large as the models, and there may be many options.
        errors = np.array([l1_error(exact, counts.reshape(-1)) for counts in said])
        return np.asarray(-self._weights[attrs] * np.minimum(errors, 4.0 * self._total)[which])


class LeastError(Contest):
    """A contest of mixtures of models, each with a share of every model."""

    def __init__(
        self, models: Sequence[ManyCountSource], mixtures: Sequence[Sequence[float]], **settings: Any
    ) -> None:
        def said(attrs: Attrs, answers: Sequence[Array]) -> tuple[Iterable[Array], NDArray[np.intp]]:
            return (mixed(mixture, answers) for mixture in mixtures), np.arange(len(mixtures))

        def mixed(mixture: Sequence[float], answers: Sequence[Array]) -> Array:
            held = [share * counts for share, counts in zip(mixture, answers, strict=True) if share]
            return np.asarray(np.sum(held, axis=0))

        super().__init__(models, said, **{"log_odds": [0.0] * len(mixtures)} | settings)


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
