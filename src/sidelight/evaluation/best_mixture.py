"""Best-mixture error: how well any weighting of the public records could answer the workload.

    f(D, X̂) = min over distributions μ on X̂ of  max over q of |q(D) − q(μ)|

No mechanism on the public support does better than f, whatever its budget (Liu et al. 2021, section
4.2). It is small where the public table knows all kinds of records, and it is 1/n-sensitive, so it can
be released cheaply before a run (``screening_curator``).

Two ways, and both end with bounds that hold whatever was computed on the way (``mixture_bounds``).
``bracketed`` plays multiplicative weights and takes its own plays as λ. ``exact`` is constraint
generation. A linear program on a few queries gives z ≤ f, and its dual is λ. Entropic projections
then look for a μ with all errors within z, marginal after marginal (raking, but only as far as z);
the queries that resist join the program. At z = f nothing resists.

**Why ``exact`` always ends.** Projections may be slow without anything in their way. Then the program's own
μ counts. Each program is solved to a quarter of the tolerance τ, for certain (``mixture_program``), and
making μ and λ whole moves a bound by at most 2⁻³¹ ≤ τ/8. So while the bounds are more than τ apart, μ misses
some query by τ/2 more than it misses any query of the program: a query that is not in the program. The
worst of them join it, twice as many each time. So there are at most 30 programs and then one for each
doubling, until all queries are in; how large that one can be is limited by public sizes beforehand
(``check_size``). No step is skipped and nothing gives up, so that an answer comes out for every table; how
long it takes may depend on the table.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from sidelight.data.domain import Attrs
from sidelight.data.table import Table
from sidelight.errors import SettingError, WorkloadError
from sidelight.evaluation.mixture_bounds import Array, Problem
from sidelight.evaluation.mixture_program import solve
from sidelight.models.support import Support
from sidelight.queries.workload import Workload

_QUERIES_AT_ONCE = 150
_PROGRAMS = 30
"""Linear programs before they grow without need; one to three are enough in practice."""
_CYCLES_AT_ONCE = 30
_FINEST = Fraction(1, 2**28)
"""The least tolerance: beyond 13 million records, what a double and a solver can do."""


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


def bracketed(
    support: Support,
    marginals: Sequence[Attrs],
    frequencies: Sequence[Array],
    *,
    step: float = 1.0,
    patience: int = 100,
    tolerance: float = 0.0,
) -> BestMixture:
    """Multiplicative weights on the worst query until ``patience`` updates have hardly helped (spec 5.3)."""
    problem = Problem(support, marginals, frequencies)
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
    sums = [_sums(played[start:], errors.size) for start in (0, len(played) // 2, 3 * len(played) // 4)]
    low = max(problem.unreachable, *map(problem.lower, sums))
    return BestMixture(low=low, high=float(high), steps=steps)


def _sums(played: list[tuple[int, float]], queries: int) -> Array:
    plays = np.zeros(queries)
    for position, error in played:
        plays[position] += error
    return plays


def exact(
    support: Support, marginals: Sequence[Attrs], frequencies: Sequence[Array], *, tolerance: float | Fraction
) -> BestMixture:
    """Linear programs and projections until the bounds differ by at most ``tolerance``, for every table."""
    if tolerance < _FINEST:
        raise SettingError(f"tolerance must be at least 2⁻²⁸; got {float(tolerance):g}.")
    problem, width = Problem(support, marginals, frequencies), float(tolerance)
    weights, slowest = problem.fit.start.weights.copy(), 0.8
    low, (high, misses) = problem.unreachable, problem.upper(weights)
    queries, batch = np.empty(0, dtype=np.int64), _QUERIES_AT_ONCE
    programs, is_slow = 0, False
    while not _within(low, high, tolerance):
        resisting = _worst(misses, queries, batch) if not queries.size else queries[:0]
        if slowest < 0.99:
            proposed, resisting = _project(problem, weights, low, width, slowest)
            reached, _ = problem.upper(proposed)
            weights, high = (proposed, min(high, reached)) if reached < 1.0 else (weights, high)
            if _within(low, high, tolerance):
                break
        programs += 1
        queries = np.union1d(queries, resisting)
        found = solve(problem, queries, spread=weights, tolerance=width)
        proved, (reached, misses) = problem.lower(found.plays), problem.upper(found.weights)
        is_slow = is_slow or proved <= low + width / 100 or programs >= _PROGRAMS
        if is_slow:
            # Nothing new stood in the way: the projections are slow. They get more time, but not for ever.
            slowest = (slowest + 1) / 2
            queries = np.union1d(queries, _worst(misses, queries, batch))
            batch *= 2
        low, high = max(low, proved), min(high, reached)
    return BestMixture(low=low, high=high, steps=programs)


def _within(low: float, high: float, tolerance: float | Fraction) -> bool:
    return Fraction(high) - Fraction(low) <= tolerance


def _worst(misses: Array, known: NDArray[np.int64], number: int) -> NDArray[np.int64]:
    """The queries that are missed most, of those not known."""
    sizes = np.abs(misses)
    sizes[known] = -1.0
    number = min(number, sizes.size - known.size)
    return np.argpartition(-sizes, number - 1)[:number] if number else known[:0]


def _project(
    problem: Problem, start: Array, within: float, tolerance: float, slowest: float
) -> tuple[Array, NDArray[np.int64]]:
    """Weights that push all errors within z as far as they go, and the queries that resist most.

    For one marginal the nearest distribution in relative entropy scales each cell to the nearest end of
    q(D) ± z; taking the marginals in turn converges to a common point where there is one (Bregman 1967).
    It stops within the tolerance, or unless the excess shrinks faster than ``slowest``; so it ends.
    """
    aim = within + tolerance / 2  # a little room inside the tolerance makes the end come soon
    weights, excess_before = start.copy(), np.inf
    with np.errstate(all="ignore"):  # weights that are no numbers any more prove nothing
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
            excess = float(np.abs(problem.target - problem.fit.recount(weights)).max()) - within
            if excess <= tolerance or not excess <= slowest * excess_before:
                order = np.argsort(-np.abs(moves))[:_QUERIES_AT_ONCE]
                return weights, order[moves[order] != 0]
            excess_before = excess


def marginals_of(workload: Workload) -> tuple[Attrs, ...]:
    """The workload's marginals; another workload has no best mixture here, and is refused."""
    marginals = tuple(attrs for attrs in workload.attribute_sets if attrs)
    if not workload.only_marginals or not marginals:
        raise WorkloadError(
            "the best-mixture error is computed for whole marginals of one attribute or more; this workload "
            "holds others. Ask for marginals, such as '2-way'."
        )
    return marginals


def frequencies_of(table: Table, workload: Workload) -> tuple[tuple[Attrs, ...], list[Array]]:
    """The workload's marginals and a table's exact frequencies in each cell. PRIVATE for a private table."""
    marginals = marginals_of(workload)
    counts = table.count_many(list(marginals))
    return marginals, [np.asarray(count, dtype=np.float64) / table.records for count in counts]


def tolerance_for(n: int) -> Fraction:
    """How far apart the bounds may end: a twentieth of what one record can change, and 2⁻²⁸ at least."""
    return max(Fraction(1, 20 * n), _FINEST)
