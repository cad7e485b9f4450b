"""Best-mixture error: how well any weighting of the public records could answer the workload.

    f(D, X̂) = min over distributions μ on X̂ of  max over q of |q(D) − q(μ)|

No mechanism on the public support does better than f, whatever its budget (Liu et al. 2021, section
4.2). f is small if the public table has every kind of record, and it is 1/n-sensitive, so it can
be released cheaply before a run (``screening_curator``).

There are two methods. Both end with bounds that are valid whatever the solver did (``mixture_bounds``).
``bracketed`` runs multiplicative weights on the worst query, and takes the queries that it played as λ.
``exact`` is constraint generation. A linear program on a few queries gives z ≤ f, and its dual is λ.
Entropic projections then look for a μ with all errors within z, marginal after marginal (raking, but only
as far as z); queries that the projections had to move most join the program. At z = f such a μ exists.

**Why ``exact`` always ends.** Projections may be slow even where such a μ exists. Then the program's own
μ is used. Each program is solved to a quarter of the tolerance τ, for certain (``mixture_program``), and
rounding μ and λ to whole numbers moves a bound by at most 2⁻³¹ ≤ τ/8. So while the bounds are more than τ
apart, μ misses some query by τ/2 more than it misses any query of the program: a query that is not in the
program. The worst of them join it, twice as many each time. So there are at most 30 programs and then one
for each doubling, until all queries are in; the size of that last program is limited beforehand by public
sizes (``check_size``). So every table gets an answer; how long it takes may depend on the table.
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

_PATIENCE = 100
"""Updates that hardly help before multiplicative weights stop."""
_QUERIES_AT_ONCE = 150
_PROGRAMS = 30
"""Linear programs before each further one also adds the worst queries; one to three suffice in practice."""
_CYCLES_AT_ONCE = 30
_FINEST = Fraction(1, 2**28)
"""The smallest tolerance, reached at 13 million records: the limit of doubles and of the solver."""


@dataclass(frozen=True, kw_only=True)
class BestMixture:
    """PRIVATE: computed from exact private answers. f lies between ``low`` and ``high``."""

    low: float
    high: float
    steps: int
    """Number of updates (bracketed) or of linear programs (exact)."""
    is_private: bool = True
    """The result must not be published; release it under ε instead."""

    def __str__(self) -> str:
        return f"PRIVATE: best-mixture error between {self.low:.6g} and {self.high:.6g}"


def bracketed(support: Support, marginals: Sequence[Attrs], frequencies: Sequence[Array]) -> BestMixture:
    """Multiplicative weights on the worst query, until a hundred updates have hardly helped (spec 5.3)."""
    problem = Problem(support, marginals, frequencies)
    fit, played = problem.fit, list[tuple[int, float]]()
    high, mark, since, steps = np.inf, np.inf, 0, 0
    while since < _PATIENCE:
        errors = problem.target - fit.answers
        worst = int(np.abs(errors).argmax())
        error = float(errors[worst])
        # Less than one per cent does not count as progress: small steps would go on for ever.
        since = 0 if abs(error) < 0.99 * mark else since + 1
        mark = abs(error) if since == 0 else mark
        if abs(error) < high:
            high = abs(error)
        if not high:
            break
        steps += 1
        played.append((worst, error))
        fit.update(fit.asked(problem.cell(worst)), error)
        fit.settle()
    # Early plays were made against early weights; without them the bound is often better.
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
        found = solve(problem, queries, like=weights, tolerance=width)
        proved, (reached, misses) = problem.lower(found.plays), problem.upper(found.weights)
        is_slow = is_slow or proved <= low + width / 100 or programs >= _PROGRAMS
        if is_slow:
            # The bound hardly rose: the projections are slow. They get more time, up to a limit.
            slowest = (slowest + 1) / 2
            queries = np.union1d(queries, _worst(misses, queries, batch))
            batch *= 2
        low, high = max(low, proved), min(high, reached)
    return BestMixture(low=low, high=high, steps=programs)


def _within(low: float, high: float, tolerance: float | Fraction) -> bool:
    return Fraction(high) - Fraction(low) <= tolerance


def _worst(misses: Array, known: NDArray[np.int64], number: int) -> NDArray[np.int64]:
    """The queries that are missed most, of those not yet in the program."""
    sizes = np.abs(misses)
    sizes[known] = -1.0
    number = min(number, sizes.size - known.size)
    return np.argpartition(-sizes, number - 1)[:number] if number else known[:0]


def _project(
    problem: Problem, start: Array, within: float, tolerance: float, slowest: float
) -> tuple[Array, NDArray[np.int64]]:
    """Weights whose errors are projected towards z, and the queries that were moved most.

    For one marginal the nearest distribution in relative entropy scales each cell to the nearest end of
    q(D) ± z; taking the marginals in turn converges to a common point if there is one (Bregman 1967).
    The projections stop within the tolerance, or when a block of cycles leaves more than the part
    ``slowest`` of the excess over z; so they end.
    """
    aim = within + tolerance / 2  # aiming inside the tolerance reaches it sooner
    weights, excess_before = start.copy(), np.inf
    with np.errstate(all="ignore"):  # weights may overflow to NaN; such weights prove no bound
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
    """The workload's marginals; a workload with other queries is refused."""
    marginals = tuple(attrs for attrs in workload.attribute_sets if attrs)
    if not workload.only_marginals or not marginals:
        raise WorkloadError(
            "the best-mixture error is computed for whole marginals of one attribute or more; this workload "
            "holds other queries. Ask for marginals, such as '2-way'."
        )
    return marginals


def frequencies_of(table: Table, workload: Workload) -> tuple[tuple[Attrs, ...], list[Array]]:
    """The workload's marginals and a table's exact frequencies in each cell. PRIVATE for a private table."""
    marginals = marginals_of(workload)
    counts = table.count_many(list(marginals))
    return marginals, [np.asarray(count, dtype=np.float64) / table.records for count in counts]


def tolerance_for(n: int) -> Fraction:
    """How far apart the bounds may end: a twentieth of what one record can change, but at least 2⁻²⁸."""
    return max(Fraction(1, 20 * n), _FINEST)
