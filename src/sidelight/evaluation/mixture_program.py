"""The best mixture for some of the queries, as a linear program that is always solved.

    minimise z   over μ ≥ 0 and e   where   Σ_x φ_q(x) μ_x + e_q = q(D),   Σ μ = 1,   −z ≤ e_q ≤ z

φ_q(x) is 1 if record x is in the cell that q counts, else 0; e_q is the mixture's error on q.
Records that are in the same cells of all these queries are one column of the program, with one weight μ_x.
The dual solution of the first equations is λ, the weights that prove a lower bound (``mixture_bounds``).

HiGHS solves the program, by several methods if need be. It computes in floating point and may fail or be
wrong, so a solution is accepted only if the two bounds that its μ and λ prove on these queries are within
a quarter of the tolerance. If no method achieves that, the program is solved as a matrix game in whole
numbers (``matrix_game``), with each q(D) rounded to a 32nd of the tolerance. That always ends, and its
bounds are within two such roundings. So ``solve`` has a solution for every table.
"""

import math
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sidelight.evaluation.matrix_game import solve_game
from sidelight.evaluation.mixture_bounds import Array, Problem

_WAYS: tuple[dict[str, Any], ...] = (
    {"method": "highs-ipm"},  # several times faster than the others if thousands of records are alike
    {"method": "highs-ds"},
    {"method": "highs-ds", "presolve": False},
)


@dataclass(frozen=True, eq=False)
class Solution:
    """A mixture of the records, and signed weights of all queries, both up to a factor."""

    weights: Array
    plays: Array


def solve(problem: Problem, queries: NDArray[np.int64], *, like: Array, tolerance: float) -> Solution:
    """The best mixture on these queries; records of one column share its weight in proportion to ``like``."""
    program = _Program.on(problem, queries)
    for way in _WAYS:
        found = program.try_to_solve(**way)
        if found is not None and program.gap(*found) <= tolerance / 4:
            break
    else:
        found = program.solve_exactly(tolerance)
    mixture, duals = found
    plays = np.zeros(problem.target.size)
    plays[queries] = duals
    return Solution(_shared_out(mixture, program.column_of, like), plays)


def _shared_out(mixture: Array, column_of: NDArray[np.int64], like: Array) -> Array:
    """A weight for each record, from those of the columns."""
    held = np.bincount(column_of, like, mixture.size)
    even = np.bincount(column_of, minlength=mixture.size)
    # Where a column holds next to nothing, its records share evenly.
    is_held = held > 1e-200
    factors = mixture / np.where(is_held, held, even)
    return factors[column_of] * np.where(is_held[column_of], like, 1.0)


@dataclass(frozen=True, eq=False)
class _Program:
    target: Array
    """q(D) of each query."""
    counted: Any
    """φ, sparse: queries × columns."""
    column_of: NDArray[np.int64]
    """Which column each record belongs to."""

    @classmethod
    def on(cls, problem: Problem, queries: NDArray[np.int64]) -> "_Program":
        from scipy import sparse

        row_of = np.full(problem.target.size, -1, dtype=np.int64)
        row_of[queries] = np.arange(queries.size)
        column_of = np.zeros(problem.records, dtype=np.int64)
        rows: list[NDArray[np.int64]] = []
        for place, cells in problem.cells(row_of >= 0):
            rows.append(row_of[place][cells])
            _, column_of = np.unique(
                column_of * (queries.size + 1) + rows[-1] + 1, return_inverse=True
            )  # below 2²¹ · 2²⁵
        _, first = np.unique(column_of, return_index=True)
        entries = np.stack([row[first] for row in rows])
        columns = np.broadcast_to(np.arange(first.size), entries.shape)
        is_counted = entries >= 0
        counted = sparse.csc_array(
            (np.ones(int(is_counted.sum())), (entries[is_counted], columns[is_counted])),
            shape=(queries.size, first.size),
        )
        return cls(problem.target[queries], counted, column_of)

    def try_to_solve(self, *, method: str, **options: Any) -> tuple[Array, Array] | None:
        """μ over the columns and λ, made feasible; None if the solver fails."""
        from scipy import optimize, sparse

        linprog: Any = optimize.linprog  # the stubs know neither sparse constraints nor their blocks
        block_array: Any = sparse.block_array
        (queries, columns), counted = self.counted.shape, self.counted
        each, column = sparse.eye_array(queries, format="csc"), np.ones((queries, 1))
        cost = np.zeros(columns + queries + 1)
        cost[-1] = 1.0
        low = np.zeros(cost.size)
        low[columns:-1] = -np.inf
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # a bad solution shows in the gap
                found = linprog(
                    cost,
                    A_ub=block_array(
                        [[0 * counted, each, -column], [0 * counted, -each, -column]], format="csc"
                    ),
                    b_ub=np.zeros(2 * queries),
                    A_eq=block_array(
                        [[counted, each, 0 * column], [np.ones((1, columns)), None, None]], format="csc"
                    ),
                    b_eq=np.append(self.target, 1.0),
                    bounds=np.stack([low, np.full(cost.size, np.inf)], axis=1),
                    method=method,
                    options={
                        "primal_feasibility_tolerance": 1e-10,
                        "dual_feasibility_tolerance": 1e-10,
                        "maxiter": 100 * (columns + 3 * queries) + 10_000,
                        **options,
                    },
                )
            mixture = np.asarray(found.x, dtype=np.float64)[:columns]
            duals = np.asarray(found.eqlin.marginals, dtype=np.float64)[:queries]
        except (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError):
            return None  # no usable solution
        if mixture.shape != (columns,) or duals.shape != (queries,):
            return None
        return np.maximum(mixture, 0.0), duals

    def gap(self, mixture: Array, duals: Array) -> float:
        """The difference of the bounds that a solution proves on these queries; NaN if it proves none."""
        with np.errstate(all="ignore"):
            upper = np.abs(self.target - self.counted @ (mixture / mixture.sum())).max()
            norm = np.abs(duals).sum()
            plays = duals / norm if norm != 0 else duals
            lower = plays @ self.target - (self.counted.T @ plays).max()
        return float(upper - np.maximum(lower, 0.0))

    def solve_exactly(self, tolerance: float) -> tuple[Array, Array]:
        """The program as a game in whole numbers: a mixture of columns pays ±(q(D) − φ_q(x)) for q and ±."""
        bits = max(0, math.ceil(-math.log2(tolerance))) + 4
        frequencies = np.array(
            [round(frequency * 2**bits) for frequency in self.target.tolist()], dtype=object
        )
        misses = frequencies[:, None] - self.counted.toarray().astype(np.int64).astype(object) * 2**bits
        mixture, plays = solve_game(np.concatenate([misses, -misses]))
        # Whole numbers of any length; their quotients are doubles, rounded once.
        of_columns, of_rows, queries = max(mixture), max(plays), self.target.size
        duals = [(plays[i] - plays[queries + i]) / of_rows for i in range(queries)]
        return np.array([weight / of_columns for weight in mixture]), np.array(duals)
