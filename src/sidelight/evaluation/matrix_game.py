"""A matrix game solved in whole numbers: slow, exact, and certain to end.

The best-mixture error falls back on it where a floating-point solver fails (``mixture_program``).

    min over distributions μ on columns of  max over rows i of  Σ_j A_ij μ_j

With all A_ij ≥ 1 this is the linear program

    maximise Σ u_j   where   A u ≤ 1,  u ≥ 0          μ = u / Σu,   the game's value is 1 / Σu

and its dual solution, divided by its sum, is the best distribution over rows. u = 0 is where the simplex
method starts, so that no first phase is needed. u ≤ 1, so that no direction is unbounded.

The tableau holds whole numbers over one common denominator, the last pivot; a pivot step

    T_ij ← (p T_ij − T_ic T_rj) / p_before      p = T_rc

divides without remainder (Edmonds 1967, Bareiss 1968): nothing is ever rounded. The steepest column enters.
After a step that gained nothing Bland's rule (1977) chooses, until one gains again. **It ends**: a step that
gains never comes back to an earlier basis, of which there are finitely many, and Bland's rule does not cycle.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Whole = NDArray[Any]
"""Whole numbers of any length."""


def solve_game(payoffs: Whole) -> tuple[list[int], list[int]]:
    """The best mixtures of columns (which pay) and of rows (which are paid), up to a factor.

    >>> solve_game(np.array([[1, 0], [0, 2]]))
    ([2, 1], [2, 1])
    """
    game = payoffs.astype(object)
    rows, columns = game.shape
    table = np.full((rows + 1, columns + 1), 1, dtype=object)
    table[:-1, :-1] = game - (int(game.min()) - 1)
    table[-1, :-1] = -1
    table[-1, -1] = 0
    # Variables 0 … columns − 1 are u, the others are the rows' slacks.
    outside = list(range(columns))
    basis = list(range(columns, columns + rows))
    before, has_gained = 1, True
    while (entering := _entering(table[-1, :-1], outside, steepest=has_gained)) is not None:
        leaving = _leaving(table[:-1, entering], table[:-1, -1], basis)
        has_gained = table[leaving, -1] > 0
        before = _pivot(table, leaving, entering, before)
        basis[leaving], outside[entering] = outside[entering], basis[leaving]
    mixture, plays = [0] * columns, [0] * rows
    for place, variable in enumerate(basis):
        if variable < columns:
            mixture[variable] = int(table[place, -1])
    for place, variable in enumerate(outside):
        if variable >= columns:
            plays[variable - columns] = int(table[-1, place])
    return mixture, plays


def _entering(costs: Whole, outside: list[int], *, steepest: bool) -> int | None:
    gaining = [place for place, cost in enumerate(costs) if cost < 0]
    if not gaining:
        return None
    if steepest:
        return min(gaining, key=lambda place: costs[place])
    return min(gaining, key=lambda place: outside[place])


def _leaving(column: Whole, right: Whole, basis: list[int]) -> int:
    """The row that limits the entering variable first; of several, that of the first variable."""
    best = -1
    for place in range(len(basis)):
        if column[place] <= 0:
            continue
        if best < 0:
            best = place
            continue
        here, there = right[place] * column[best], right[best] * column[place]
        if here < there or (here == there and basis[place] < basis[best]):
            best = place
    return best


def _pivot(table: Whole, row: int, column: int, before: int) -> int:
    """Exchange two variables; return the pivot, the common denominator from now on."""
    pivot = int(table[row, column])
    its_row, its_column = table[row].copy(), table[:, column].copy()
    table *= pivot
    table -= np.multiply.outer(its_column, its_row)
    table //= before
    table[row], table[:, column] = its_row, -its_column
    table[row, column] = before
    return pivot
