"""Best-mixture error: how well any weighting of the public records could answer the workload.

    f(D, X̂) = min over distributions μ on X̂ of  max over q of |q(D) − q(μ)|

No mechanism on the public support does better than f, whatever its budget (Liu et al. 2021, section
4.2). It is small where the public table knows all kinds of records, and it is 1/n-sensitive, so it can
be released cheaply before a run (``screening_curator``).

Two ways, and both end with a certificate. Any μ gives an upper bound, its largest error. Any
distribution λ over signed queries gives a lower one, since a maximum is at least a mean:

    f  ≥  Σ λ_{q,s} s q(D) − max_{x ∈ X̂} Σ λ_{q,s} s q(x)

``bracketed`` plays multiplicative weights and takes its own plays as λ. ``exact`` is constraint
generation. A linear program on a few queries gives z ≤ f, and its dual is λ. Entropic projections
then look for a μ with all errors within z, marginal after marginal (raking, but only as far as z);
the queries that resist join the program. At z = f nothing resists. The certificate trusts neither
solver: both bounds are computed on all queries and all records.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sidelight.data.domain import Attrs
from sidelight.data.table import Table
from sidelight.errors import SidelightError, WorkloadError
from sidelight.estimate.support import Support, SupportWeights
from sidelight.queries.query import Cell
from sidelight.queries.workload import Workload

Array = NDArray[np.float64]

_QUERIES_AT_ONCE = 150
_PROGRAMS = 30
"""Linear programs at most; one to three are enough in practice."""
_CYCLES_AT_ONCE = 30
_KEPT_CELLS = 2**26
"""Cell numbers of the projections are kept up to 256 MiB."""


@dataclass(frozen=True, kw_only=True)
class BestMixture:
    """PRIVATE: computed from exact private answers. f lies between ``low`` and ``high``."""

    low: float
    high: float
    steps: int
    """Updates or linear programs that it took."""
    is_private: bool = True
    """It must not be published; release it under ε instead."""

    def __str__(self) -> str:
        return f"PRIVATE: best-mixture error between {self.low:.6g} and {self.high:.6g}"


class _Problem:
    """A support and the exact shares that a mixture of its records should reproduce."""

    def __init__(self, support: Support, marginals: Sequence[Attrs], shares: Sequence[Array]) -> None:
        self.fit = SupportWeights(support.with_total(1.0), marginals)
        self.domain = support.domain
        self.places = self.fit.places
        self.target = np.empty(self.fit.answers.size)
        for attrs, share in zip(marginals, shares, strict=True):
            self.target[self.places[attrs]] = share.reshape(-1)
        self._attrs = sorted(self.places, key=lambda attrs: self.places[attrs].start)
        self._starts = np.array([self.places[attrs].start for attrs in self._attrs])
        self._members: dict[int, NDArray[np.int64]] = {}
        self._cells_kept: dict[Attrs, NDArray[np.int32]] = {}
        # A cell that no public record falls into is answered 0, so f is at least what it holds.
        self.unreachable = float(self.target[self.fit.answers == 0].max(initial=0.0))

    @property
    def records(self) -> int:
        return len(self.fit.start.records)

    def cell(self, position: int) -> Cell:
        """The query whose answer stands at this position."""
        attrs = self._attrs[int(np.searchsorted(self._starts, position, side="right")) - 1]
        shape = self.domain.project(attrs).shape
        inside = np.unravel_index(position - self.places[attrs].start, shape)
        return Cell(attrs, tuple(int(value) for value in inside))

    def members(self, position: int) -> NDArray[np.int64]:
        """The records that this query counts."""
        if position not in self._members:
            self._members[position] = self.fit.asked(self.cell(position)).where
        return self._members[position]

    def cells(self) -> Iterator[tuple[slice, NDArray[np.int32]]]:
        """For each marginal where its answers stand, and the cell of each record among them."""
        records = self.fit.start.records
        keep = self.records * len(self._attrs) <= _KEPT_CELLS
        for attrs in self._attrs:
            if attrs not in self._cells_kept:
                flat = np.zeros(self.records, dtype=np.int32)
                for column, size in zip(
                    self.domain.index(attrs), self.domain.project(attrs).shape, strict=True
                ):
                    flat *= size
                    flat += records[:, column].astype(np.int32)
                if not keep:
                    yield self.places[attrs], flat
                    continue
                self._cells_kept[attrs] = flat
            yield self.places[attrs], self._cells_kept[attrs]

    def lower_bound(self, plays: dict[int, float]) -> tuple[float, Array]:
        """What signed weights on queries prove, and what they gain from each record."""
        gains = np.zeros(self.records)
        value = 0.0
        norm = sum(abs(weight) for weight in plays.values())
        if norm == 0:
            return 0.0, gains
        for position, weight in plays.items():
            gains[self.members(position)] += weight / norm
            value += weight / norm * float(self.target[position])
        return max(0.0, value - float(gains.max())), gains


def bracketed(
    support: Support,
    marginals: Sequence[Attrs],
    shares: Sequence[Array],
    *,
    step: float = 1.0,
    patience: int = 100,
    tolerance: float = 0.0,
) -> BestMixture:
    """Multiplicative weights on the worst query until ``patience`` updates have hardly helped (spec 5.3)."""
    problem = _Problem(support, marginals, shares)
    fit, played = problem.fit, list[tuple[int, float]]()
    high, mark, since, steps = np.inf, np.inf, 0, 0
    while since < patience:
        errors = problem.target - fit.answers
        worst = int(np.abs(errors).argmax())
        error = float(errors[worst])
        # Less than a hundredth is no progress: small steps would go on for ever.
        since = 0 if abs(error) < 0.99 * mark else since + 1
        mark = abs(error) if since == 0 else mark
        if abs(error) < high:
            high = abs(error)
        if high <= tolerance:
            break
        steps += 1
        played.append((worst, error))
        fit.update(fit.asked(problem.cell(worst)), step * error)
        fit.settle()
    # Early plays answer early weights; without them the bound is often better.
    sums = [_sums(played[start:]) for start in (0, len(played) // 2, 3 * len(played) // 4)]
    low = max([problem.unreachable, *(problem.lower_bound(plays)[0] for plays in sums)])
    return BestMixture(low=low, high=float(high), steps=steps)


def _sums(played: list[tuple[int, float]]) -> dict[int, float]:
    plays: dict[int, float] = {}
    for position, error in played:
        plays[position] = plays.get(position, 0.0) + error
    return plays


def exact(
    support: Support, marginals: Sequence[Attrs], shares: Sequence[Array], *, tolerance: float
) -> BestMixture:
    """Linear programs and projections until the bounds differ by at most ``tolerance``."""
    problem = _Problem(support, marginals, shares)
    low, high = problem.unreachable, float(np.abs(problem.target - problem.fit.answers).max())
    weights, slowest = problem.fit.start.weights.copy(), 0.8
    queries: list[int] = []
    programs = 0
    while high - low > tolerance:
        error, resisting = _project(problem, weights, low, tolerance, slowest)
        high = min(high, error)
        if high - low <= tolerance:
            break
        programs += 1
        queries += [position for position in resisting if position not in set(queries)]
        proved = problem.lower_bound(_solve(problem, queries))[0]
        if proved <= low + tolerance / 100:
            # Nothing stands in the way: the projections are only slow. They get more time, but not for ever.
            if slowest > 0.99 or programs > _PROGRAMS:
                raise SidelightError(
                    "the bounds on the best-mixture error did not meet; "
                    "ask for fewer marginals, or for a bracket."
                )
            slowest = (slowest + 1) / 2
        low = max(low, proved)
    return BestMixture(low=low, high=high, steps=programs)


def _project(
    problem: _Problem, weights: Array, within: float, tolerance: float, slowest: float
) -> tuple[float, list[int]]:
    """Push all errors within z, in place; the largest that is left, and the queries that resist most.

    For one marginal the nearest distribution in relative entropy scales each cell to the nearest end of
    q(D) ± z; taking the marginals in turn converges to a common point where there is one (Bregman 1967).
    It stops within the tolerance, or when the excess shrinks no faster than ``slowest``.
    """
    aim = within + tolerance / 2  # a little room inside the tolerance makes the end come soon
    worst_before = np.inf
    while True:
        moves = np.zeros(problem.target.size)
        for _ in range(_CYCLES_AT_ONCE):
            for place, cells in problem.cells():
                answers = np.bincount(cells, weights=weights, minlength=place.stop - place.start)
                target = problem.target[place]
                # A cell that is not empty must not be emptied: weight 0 could never grow again.
                goal = np.clip(answers, np.maximum(target - aim, 1e-12), target + aim)
                is_off = (goal != answers) & (answers > 0)
                if is_off.any():
                    factors = np.ones(answers.size)
                    np.divide(goal, answers, out=factors, where=is_off)
                    weights *= factors[cells]
                    moves[place] += np.log(factors)
            weights /= weights.sum()
        worst = float(np.abs(problem.target - problem.fit.recount(weights)).max())
        excess, excess_before = worst - within, worst_before - within
        if excess <= tolerance or excess > slowest * excess_before:
            order = np.argsort(-np.abs(moves))[:_QUERIES_AT_ONCE]
            return worst, [int(position) for position in order if moves[position] != 0]
        worst_before = worst


def _solve(problem: _Problem, queries: list[int]) -> dict[int, float]:
    """The dual λ of the program on these queries alone.

    Minimise z over μ ≥ 0 and e, with Σ_x φ_q(x) μ_x + e_q = q(D), Σ μ = 1 and −z ≤ e ≤ z. Records
    that these queries do not tell apart are one column.
    """
    from scipy import optimize, sparse

    linprog: Any = optimize.linprog  # the stubs know neither sparse constraints nor their blocks
    block_array: Any = sparse.block_array
    is_member = np.zeros((problem.records, len(queries)), dtype=bool)
    for row, position in enumerate(queries):
        is_member[problem.members(position), row] = True
    counted = sparse.csc_array(np.unique(is_member, axis=0).T.astype(np.float64))
    each, column = sparse.eye_array(len(queries), format="csc"), np.ones((len(queries), 1))
    cost = np.zeros(counted.shape[1] + len(queries) + 1)
    cost[-1] = 1.0
    low = np.zeros(cost.size)
    low[counted.shape[1] : -1] = -np.inf
    found = linprog(
        cost,
        A_ub=block_array([[0 * counted, each, -column], [0 * counted, -each, -column]], format="csc"),
        b_ub=np.zeros(2 * len(queries)),
        A_eq=block_array(
            [[counted, each, 0 * column], [np.ones((1, counted.shape[1])), None, None]], format="csc"
        ),
        b_eq=np.append(problem.target[queries], 1.0),
        bounds=np.stack([low, np.full(cost.size, np.inf)], axis=1),
        method="highs",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    if found.status != 0:
        raise SidelightError(
            "the linear program for the best-mixture error was not solved; ask for fewer marginals."
        )
    duals = np.asarray(found.eqlin.marginals)[: len(queries)]
    return {query: float(dual) for query, dual in zip(queries, duals, strict=True) if dual}


def shares_of(table: Table, workload: Workload) -> tuple[tuple[Attrs, ...], list[Array]]:
    """The workload's marginals and a table's exact shares in each cell. PRIVATE for a private table."""
    if not workload.only_marginals:
        raise WorkloadError(
            "the best-mixture error is computed for whole marginals; this workload holds others."
        )
    marginals = tuple(attrs for attrs in workload.supports if attrs)
    counts = table.count_many(list(marginals))
    return marginals, [np.asarray(count, dtype=np.float64) / table.records for count in counts]


def tolerance_for(n: int) -> float:
    """How far apart the bounds may end: a twentieth of what one record can change."""
    return 1 / (20 * n)
