"""What selection maximises: each score is its formula and its sensitivity, in one class."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from sidelight.data.domain import Attrs
from sidelight.privacy.unit import Unit
from sidelight.queries.query import Countable, Marginal, Query, answer


class ManyCountable(Protocol):
    """A model that answers many marginals in one pass, in the order that suits it."""

    def count_each(self, wanted: Sequence[Attrs]) -> Iterable[tuple[int, NDArray[np.float64]]]:
        """The place of each marginal among those asked for, and its counts."""
        ...


class Score(ABC):
    """How much a candidate deserves to be measured, given its exact answer.

    A score may be one number for the whole query, or one number for each of its cells: then
    selection chooses among the cells. Everything in a score but the exact answer is public.
    """

    @abstractmethod
    def sensitivity(self, unit: Unit, query: Query) -> Fraction:
        """How far the score of this query, or of any of its cells, can move between neighbours."""

    @abstractmethod
    def __call__(self, query: Query, exact: NDArray[Any]) -> float | NDArray[np.float64]:
        """The score, from the query's exact answer as a flat vector."""

    def in_turn(self, candidates: Sequence[Query]) -> Iterator[int]:
        """The place of every candidate, once each, in the order in which they are best scored.

        When a place is given, the score has at hand what it needs for that candidate alone, such as a
        model's answer; so the answers to all of them never lie in memory at once. Sees nothing private.
        """
        yield from range(len(candidates))


@dataclass(frozen=True)
class ModelError(Score):
    """How far the model is from the data on one query, ‖q(D) − q(A)‖₁, less a public penalty per cell."""

    model: Countable
    cell_penalty: float = 0.0
    """Subtracted once per cell (spec 3.2: 1 in the paper's cuboids); public, so privacy-neutral."""

    def sensitivity(self, unit: Unit, query: Query) -> Fraction:
        # PRIVACY: A is already released, so only q(D) moves, and by at most Δ₁ of the query.
        return query.l1(unit)

    def __call__(self, query: Query, exact: NDArray[Any]) -> float:
        gap = np.abs(exact - answer(query, self.model))
        return float(gap.sum() - self.cell_penalty * gap.size)


@dataclass(frozen=True)
class CellError(Score):
    """How far the model is from the data on each single number: |q(D) − q(A)|, cell by cell."""

    model: Countable

    def sensitivity(self, unit: Unit, query: Query) -> Fraction:
        # PRIVACY: one cell of a marginal gains or loses at most one person's records, under either
        # relation (spec 1.5); a query that is one number moves by its own Δ₁.
        return Fraction(unit.records) if isinstance(query, Marginal) else query.l1(unit)

    def __call__(self, query: Query, exact: NDArray[Any]) -> NDArray[np.float64]:
        return np.asarray(np.abs(exact - answer(query, self.model)), dtype=np.float64)


class WeightedError(Score):
    """AIM's score: w_r (‖M_r(D) − M_r(p)‖₁ − penalty per cell), with a model that answers many at once."""

    def __init__(self, model: ManyCountable, *, weights: Mapping[Attrs, float], cell_penalty: float) -> None:
        self._model = model
        self._weights = weights
        self._cell_penalty = cell_penalty
        self._answers: dict[Attrs, NDArray[np.float64]] = {}
        """The model's answer to the marginal whose turn it is."""

    def sensitivity(self, unit: Unit, query: Query) -> Fraction:
        # PRIVACY: the weight is public and scales the one term that moves, by at most Δ₁ of the marginal.
        return Fraction(self._weights[query.attrs]) * query.l1(unit)

    def in_turn(self, candidates: Sequence[Query]) -> Iterator[int]:
        for places, answers in answers_in_turn(self._model, candidates):
            self._answers = answers
            yield from places

    def __call__(self, query: Query, exact: NDArray[Any]) -> float:
        gap = float(np.abs(exact - self._answers[query.attrs]).sum())
        return self._weights[query.attrs] * (gap - self._cell_penalty * exact.size)


def answers_in_turn(
    model: ManyCountable, candidates: Sequence[Query]
) -> Iterator[tuple[list[int], dict[Attrs, NDArray[np.float64]]]]:
    """The places of the candidates on each marginal, with the model's answer to it as a flat vector."""
    places: dict[Attrs, list[int]] = {}
    for place, query in enumerate(candidates):
        places.setdefault(query.attrs, []).append(place)
    wanted = list(places)
    for number, counts in model.count_each(wanted):
        yield places[wanted[number]], {wanted[number]: counts.reshape(-1)}
