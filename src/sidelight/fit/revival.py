"""Cells that a descent has driven to 0, and how they come back.

A step of mirror descent multiplies. A cell that stands at e⁻¹⁰⁰⁰ needs as long to return as it took to get
there, and while it returns nothing is seen of it: the objective rests, and a fit that stops when the
objective rests ends too soon. So cells that are empty are pushed no further down, and before a fit stops
it is looked whether empty cells would grow. Along the slope of L, cells grow at the rate

    r_j = Σ ∇L · p − E[∇L · T | cell j]  =  d/dt ln p_j (θ − t ∇L),

which one more sum of the tree tells, and a cell that grows alone ends at about r_j/v_j, v its precision.
Those that have hardly any of that are lifted to a tenth of it. The way from p towards the lifted model p′
then has an exact worth, (∇L · (p′ − p))² / 2 ∇²L[p′ − p], which bounds from below how far L is above its
minimum: where that is little, there was nothing to bring back.
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
"""To which part of what it would grow to a cell is lifted: it grows on by itself, and overshoots worse."""


def sparing(squares: LeastSquares, slope: Any, marginals: Any) -> Any:
    """The slope, such that a step along it pushes no empty cell further below the others of its set."""
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
    """Potentials with the empty cells of one set lifted, and at most how much that may be worth.

    Of all sets, the one where most is to be gained: cells of sets that overlap would be lifted twice.
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
