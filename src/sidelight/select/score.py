"""Scores, which selection maximises: each is its formula and its sensitivity, in one class.

**Rounding.** ``grid`` allows a score two roundings of itself; an error over many cells, summed in floating
point, takes more. So errors are summed exactly (``l1_error``). A model's answers are public, and are
first rounded to multiples of 2⁻¹⁸, or of 2⁻²⁰ where exact answers are such multiples. Then all terms are
multiples of that step, and a double adds such numbers exactly as long as they stay below 2⁵³ steps, in any
order. Errors are cut there, at 2³⁵ or 2³³ records, which brings no two of them further apart; and what is not
below 2⁵³ steps does not come below it by rounding. What is left to round is one difference with a public
penalty and one product with a public weight: two roundings, relative to the score itself.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sidelight._memory import blocks
from sidelight.data.count_source import CountSource, ManyCountSource, count_each
from sidelight.data.domain import Attrs
from sidelight.privacy.unit import Unit
from sidelight.queries.numbers import Batch
from sidelight.queries.query import Marginal, Query, answer

STEP_BITS = 18
"""A model's answers are rounded to multiples of 2⁻¹⁸ before errors are summed."""
_FINE_STEP_BITS = 20
"""The step for linear queries, whose weights are multiples of 2⁻²⁰."""
_CELLS_AT_ONCE = 1 << 14


OneScore = Callable[[NDArray[Any]], float | NDArray[np.float64]]
"""From a query's exact answer, as a flat vector, to its score: one number, or one for each of its cells,
among which selection then chooses."""


class Score(ABC):
    """How much a candidate deserves to be measured, given its exact answer.

    Everything in a score but the exact answer is public.
    """

    @abstractmethod
    def sensitivity(self, unit: Unit, query: Query) -> Fraction:
        """How far the score of this query, or of any of its cells, can move between neighbours."""

    def largest_sensitivity(self, unit: Unit, candidates: Sequence[Query]) -> Fraction:
        """The largest sensitivity among these candidates."""
        return max(self.sensitivity(unit, query) for query in candidates)

    @abstractmethod
    def each(self, candidates: Sequence[Query]) -> Iterator[tuple[int, OneScore]]:
        """The index of every candidate, once each, and its score, in whatever order suits the model.

        One at a time, since a model's answers to all of them may be larger than the model.
        """


@dataclass(frozen=True)
class _OneByOne(Score):
    """A score that asks the model about one candidate after another."""

    model: CountSource

    @abstractmethod
    def score(self, query: Query, exact: NDArray[Any]) -> float | NDArray[np.float64]:
        """The score of one query, or of each of its cells."""

    def each(self, candidates: Sequence[Query]) -> Iterator[tuple[int, OneScore]]:
        return ((place, partial(self.score, query)) for place, query in enumerate(candidates))


@dataclass(frozen=True, eq=False)
class ManyAtOnce(Score):
    """A score of marginals, which the model counts together."""

    model: ManyCountSource

    @abstractmethod
    def score(self, query: Query, counts: NDArray[np.float64], exact: NDArray[Any]) -> float:
        """The score of one marginal, by the model's counts and the exact ones, both flat."""

    def each(self, candidates: Sequence[Query]) -> Iterator[tuple[int, OneScore]]:
        for place, counts in answers_of(self.model, candidates):
            yield place, partial(self.score, candidates[place], counts)


@dataclass(frozen=True)
class ModelError(_OneByOne):
    """How far the model is from the data on one query, ‖q(D) − q(A)‖₁, less a public penalty per cell."""

    cell_penalty: float = 0.0
    """Subtracted once per cell (spec 3.2: 1 in the paper's cuboids); public, so privacy-neutral."""

    def sensitivity(self, unit: Unit, query: Query) -> Fraction:
        # PRIVACY: A is already released, so only q(D) moves, and by at most Δ₁ of the query.
        return query.l1(unit)

    def score(self, query: Query, exact: NDArray[Any]) -> float:
        return l1_error(exact, answer(query, self.model)) - self.cell_penalty * exact.size


@dataclass(frozen=True)
class CellError(_OneByOne):
    """How far the model is from the data on each number: |q(D) − q(A)|, by cells or members of a batch."""

    def sensitivity(self, unit: Unit, query: Query) -> Fraction:
        # PRIVACY: numbers are compared one by one, so what counts is how far a single one can move: a cell by
        # one person's records, under either relation (spec 1.5); a query that is one number by its own Δ₁.
        if isinstance(query, Batch):
            return query.widest(unit)
        return Fraction(unit.records) if isinstance(query, Marginal) else query.l1(unit)

    def score(self, query: Query, exact: NDArray[Any]) -> NDArray[np.float64]:
        return np.asarray(np.abs(exact - answer(query, self.model)), dtype=np.float64)


@dataclass(frozen=True, eq=False)
class LargestError(ManyAtOnce):
    """How far the model is off on the worst cell of a marginal: max |M(D) − M(A)|."""

    def sensitivity(self, unit: Unit, query: Query) -> Fraction:
        # PRIVACY: no cell moves by more than one person's records (spec 1.5), so the largest does not either.
        return Fraction(unit.records) if isinstance(query, Marginal) else query.l1(unit)

    def score(self, query: Query, counts: NDArray[np.float64], exact: NDArray[Any]) -> float:
        return float(np.abs(exact - counts).max())


@dataclass(frozen=True)
class SignedError(CellError):
    """How far the model is below the data on each single number, q(D) − q(A), and how far above.

    A query with so many cells has twice as many scores: those of its cells, and those of their negations.
    """

    # PRIVACY: the sensitivity is that of CellError; a negation has its score's negative, which moves as far.

    def score(self, query: Query, exact: NDArray[Any]) -> NDArray[np.float64]:
        below = np.asarray(exact - answer(query, self.model), dtype=np.float64)
        return np.concatenate([below, -below])


@dataclass(frozen=True, eq=False)
class WeightedError(ManyAtOnce):
    """AIM's score: w_r (‖M_r(D) − M_r(p)‖₁ − penalty per cell)."""

    _: KW_ONLY
    weights: Mapping[Attrs, float]
    cell_penalty: float

    def sensitivity(self, unit: Unit, query: Query) -> Fraction:
        # PRIVACY: the weight is public and scales the one term that moves, by at most Δ₁ of the marginal.
        return Fraction(self.weights[query.attrs]) * query.l1(unit)

    def largest_sensitivity(self, unit: Unit, candidates: Sequence[Query]) -> Fraction:
        if not all(type(query) is Marginal for query in candidates):
            return super().largest_sensitivity(unit, candidates)
        # Every marginal moves by the same Δ₁, so the largest weight decides.
        heaviest = max(candidates, key=lambda query: self.weights[query.attrs])
        return self.sensitivity(unit, heaviest)

    def score(self, query: Query, counts: NDArray[np.float64], exact: NDArray[Any]) -> float:
        error = np.array([l1_error(exact, counts)])
        return float(self.of_errors([query], error, np.array([exact.size]))[0])

    def of_errors(
        self, candidates: Sequence[Query], errors: NDArray[np.float64], cells: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """The scores of candidates with these errors and so many cells."""
        weights = np.array([self.weights[query.attrs] for query in candidates])
        return np.asarray(weights * (errors - self.cell_penalty * cells))


def l1_error(exact: NDArray[Any], model: NDArray[Any]) -> float:
    """‖x − μ‖₁ without any rounding; μ is first put on the grid described above.

    >>> l1_error(np.array([3, 0]), np.array([1.0, 0.25]))
    2.25
    """
    bits = STEP_BITS if exact.dtype.kind in "iu" else _FINE_STEP_BITS
    error = 0.0
    for some in blocks(exact.size, _CELLS_AT_ONCE):
        error += float(np.abs(exact[some] - on_steps(model[some], bits)).sum())
    # PRIVACY: below this every sum above is exact; min is 1-Lipschitz.
    return min(error, 2.0 ** (53 - bits))


def on_steps(answers: NDArray[Any], bits: int = STEP_BITS) -> NDArray[np.float64]:
    """A model's answers as multiples of 2⁻ᵇⁱᵗˢ."""
    stepped: NDArray[np.float64] = answers * 2.0**bits
    np.rint(stepped, out=stepped)
    stepped *= 2.0**-bits
    return stepped


def answers_of(
    model: ManyCountSource, candidates: Sequence[Query]
) -> Iterator[tuple[int, NDArray[np.float64]]]:
    """The index of each candidate, and the model's counts of its marginal as a flat vector."""
    counted = count_each(model, [query.attrs for query in candidates])
    return ((place, counts.reshape(-1)) for place, counts in counted)
