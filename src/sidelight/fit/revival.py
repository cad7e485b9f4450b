"""Cells that a descent has driven to 0, and how they come back.

A step of mirror descent multiplies. A cell at e⁻¹⁰⁰⁰ takes as many steps to return as it took to get there,
and meanwhile the objective hardly changes: a fit that stops when its objective rests would end too soon. So
empty cells are pushed no further down, and before a fit stops it checks whether empty cells would grow. Along
the slope of L, cells grow at the rate

    r_j = Σ ∇L · p − E[∇L · T | cell j]  =  d/dt ln p_j (θ − t ∇L),

which one more pass over the tree gives, and a cell that grows alone ends at about r_j/v_j, v its precision.
Cells far below that are lifted to a tenth of it. Moving from p towards the lifted model p′ lowers L by
(∇L · (p′ − p))² / 2 ∇²L[p′ − p], a lower bound on how far L is above its minimum. Where that is little, there
was nothing to bring back.
"""

from typing import Any

from sidelight.fit.least_squares import LeastSquares

EMPTY = 1e-12
"""A probability so small that no count shows it."""
_LOST = 1e-100
"""Below this a probability may be exactly 0, such as that of a declared impossibility: it is left alone."""
_HARDLY = 0.01
"""A cell with less than this part of what it would grow to counts as one that has to come back."""
_LIFT = 0.1
"""A cell is lifted to this part of what it would grow to. It grows on by itself; overshooting is worse."""


def sparing(squares: LeastSquares, slope: Any, marginals: Any) -> Any:
    """The slope, changed so that a step along it pushes no empty cell further down."""
    empty = marginals < EMPTY
    if not empty.any():
        return slope
    for where in squares.slices:
        gone = empty[where]
        if gone.any():
            over = slope[where] - squares.library.dot(slope[where], marginals[where])
            slope[where] -= over * ((over > 0.0) & gone)
    return slope


def nudge(squares: LeastSquares, slope: Any) -> float:
    """A step along the slope so short that probabilities move in proportion to it."""
    library = squares.library
    highest, lowest = library.greatest(slope), -library.greatest(-slope)
    # A slope that is the same everywhere moves nothing, and a step along it must stay a number.
    return 1e-4 / max(highest - lowest, 1e-12 * max(abs(highest), abs(lowest)), 1e-300)


def lifted(squares: LeastSquares, theta: Any, marginals: Any, nudged: Any, step: float) -> tuple[Any, float]:
    """Potentials with the empty cells of one set lifted, and an upper bound on what L gains by it.

    Only the set with the most to gain is lifted: cells of overlapping sets would be lifted twice.
    """
    library = squares.library
    grown = library.ratio(nudged, marginals)
    growth = (grown - 1.0) * (grown > 1.0) / step
    wanted = library.ratio(growth, squares.precision)
    growth = growth * ((marginals < _HARDLY * wanted) & (marginals > _LOST))
    worth, chosen = max(
        ((0.5 * library.dot(growth[where], wanted[where]), where) for where in squares.slices),
        key=lambda found: found[0],
    )
    if not worth:
        return theta, 0.0
    lift = 1.0 + library.ratio(_LIFT * wanted[chosen] * (growth[chosen] > 0.0), marginals[chosen])
    raised = 1.0 * theta
    raised[chosen] += library.log(lift)
    return raised, worth


def worth_of(squares: LeastSquares, slope: Any, change: Any) -> float:
    """How much L falls on the best part of the way along a change of the marginals."""
    downhill = max(-squares.library.dot(slope, change), 0.0)
    curve = squares.curvature(change)
    return 0.5 * downhill * downhill / curve if curve > 0 else 0.0
