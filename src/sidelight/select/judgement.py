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

from sidelight._memory import blocks
from sidelight.data.count_source import ManyCountSource
from sidelight.data.domain import Attrs
from sidelight.privacy.unit import Unit
from sidelight.queries.query import Query
from sidelight.select.score import LARGEST_ERROR, answers_of, on_steps

Array = NDArray[np.float64]

_SLACK = Fraction(1, 2**40)
"""Slack for rounding, as a fraction of n. Errors are summed exactly (``score``) and cut at 4n. The product
with a weight is rounded once, and so is the curator's sum over all queries and the start: less than 2⁻⁴²."""
_CELLS_AT_ONCE = 1 << 12
"""Cells worked on at a time; there may be ten options."""
_MOST_START = 2.0**10
"""Largest start of an option, as a multiple of n."""


class Judgement(ABC):
    """How well each of several options does, as a sum over queries."""

    options: int

    def start(self, scale: float) -> Array:
        """Each option's starting score, from public knowledge; ``scale`` more makes it e times as likely."""
        return np.zeros(self.options)

    @abstractmethod
    def sensitivity(self, unit: Unit, queries: Sequence[Query]) -> Fraction:
        """How far the sum of any option can move between neighbours."""

    @abstractmethod
    def each(self, queries: Sequence[Query]) -> Iterator[tuple[int, Callable[[NDArray[Any]], Array]]]:
        """The index of every query, once each, and what its exact answer adds to each option's score."""


class LeastError(Judgement):
    """Options are mixtures of models; the smaller their error on a workload, the higher the score."""

    def __init__(
        self,
        models: Sequence[ManyCountSource],
        mixtures: Sequence[Sequence[float]],
        *,
        weights: Mapping[Attrs, float],
        total: float,
        log_odds: Sequence[float] | None = None,
    ) -> None:
        self.options = len(mixtures)
        self._log_odds = np.zeros(self.options) if log_odds is None else np.array(log_odds, dtype=np.float64)
        self._models = models
        self._mixtures = np.array(mixtures, dtype=np.float64)
        whole = sum(weights.values())
        self._weights = {attrs: weight / whole for attrs, weight in weights.items()}
        self._total = total

    def start(self, scale: float) -> Array:
        # PRIVACY: the same on neighbours. Bounded, so that adding it rounds by less than n·2⁻⁴²; where the
        # bound is felt, the budget tells nothing.
        bound = _MOST_START * self._total
        return np.clip(scale * self._log_odds, -bound, bound)

    def sensitivity(self, unit: Unit, queries: Sequence[Query]) -> Fraction:
        # PRIVACY: the models are released already, so only x moves, by Δ₁ of each marginal; errors are cut at
        # 4n, which moves none further. Each of two scores may be off by n·2⁻⁴⁰, for rounding.
        moved = sum((Fraction(self._weights[q.attrs]) * q.l1(unit) for q in queries), Fraction(0))
        return moved + 2 * _SLACK * Fraction(self._total)

    def each(self, queries: Sequence[Query]) -> Iterator[tuple[int, Callable[[NDArray[Any]], Array]]]:
        first, *more = self._models
        for place, one in answers_of(first, queries):
            attrs = queries[place].attrs
            others = [counts.reshape(-1) for model in more for _, counts in model.count_each([attrs])]
            yield place, partial(self._score, self._weights[attrs], [one, *others])

    def _score(self, weight: float, answers: Sequence[Array], exact: NDArray[Any]) -> Array:
        errors = np.zeros(self.options)
        # A marginal may be as large as the models, and there are many options.
        for some in blocks(exact.size, _CELLS_AT_ONCE):
            mixed = self._mixtures @ np.stack([counts[some] for counts in answers])
            errors += np.abs(exact[some] - on_steps(mixed)).sum(axis=1)
        return -weight * np.minimum(errors, min(4.0 * self._total, LARGEST_ERROR))
