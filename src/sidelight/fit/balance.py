"""The potential that balances one noisy marginal against all else that is known; solved exactly.

    minimise  n KL(p ‖ rest) + ½ a ‖n p − y‖²      over the marginal p, the rest as it is

At the optimum the potential is θ = a (y − n p) + ν, where ν keeps the total. APERTURE solves for one marginal
after another, on its tree (following.py) and with weighted records (reweighting.py) alike.

PRIVACY: a function of noisy answers and of models; post-processing.
"""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

_STEPS, _MOST_STEP, _CLOSE = 40, 5.0, 1e-6
"""Newton's method in ln p: most steps, longest step, and the step at which it stops."""
_STEPS_TOGETHER = 15
"""Most steps of Newton's method in all unknowns at once; from a near start it needs four or five."""
MOST_TILT = 30.0
"""A cell moves by at most e³⁰ for one marginal."""


def potential(p: Array, before: Array, *, answer: Array, pull: float, total: float) -> Array:
    """θ, given p with the potential as it was before; all of one shape.

    Where p is 0 it stays 0, and the potential is 0.

    >>> half = np.array([0.5, 0.5])
    >>> theta = potential(half, np.zeros(2), answer=np.array([30.0, 10.0]), pull=1e9, total=40.0)
    >>> after = half * np.exp(theta)
    >>> np.round(after / after.sum(), 4)
    array([0.75, 0.25])
    """
    held = p > 0
    now = np.log(p[held])
    found = balanced(now, b=now - before[held] + pull * answer[held], a=pull * total)
    after = np.zeros(p.shape)
    after[held] = np.clip(before[held] + found - now, -MOST_TILT, MOST_TILT)
    return after


def balanced(start: Array, *, a: float, b: Array) -> Array:
    """The u with u + a eᵘ = b + ν, cell by cell, at the ν with which Σ eᵘ = 1.

    Newton's method in u and ν together; where that does not end, in ν alone with u solved for each time.

    >>> a, b = 9.0, np.array([1.0, 2.0])
    >>> u = balanced(np.log([0.5, 0.5]), a=a, b=b)
    >>> np.round(np.exp(u), 4), np.round(u + a * np.exp(u) - b, 4)
    (array([0.4546, 0.5454]), array([2.3027, 2.3027]))
    """
    found = start
    for _ in range(_STEPS_TOGETHER):
        # Marginals may be large: in place where possible.
        p = np.exp(found)
        grown = a * p
        away = found + grown
        away -= b
        grown += 1.0
        away /= grown
        missing = 1.0 - float(p.sum()) + float(p @ away)
        p /= grown
        level = missing / float(p.sum())
        step = np.divide(level, grown, out=grown)
        step -= away
        np.clip(step, -_MOST_STEP, _MOST_STEP, out=step)
        found = found + step
        if np.abs(step).max() < _CLOSE:
            return found
    return _bracketed(a=a, b=b)


def _bracketed(*, a: float, b: Array) -> Array:
    """The same by Newton's method in ln Σ eᵘ as a function of ν, within a bracket.

    At its upper end one cell is at 1, at its lower end none of k cells is above 1/k.
    """
    least = float((a / b.size - np.log(b.size) - b).min())
    most, level, found = float((a - b).min()), 0.0, b
    for _ in range(_STEPS):
        level = level if least < level < most else (least + most) / 2
        found = _solved(a=a, b=b + level)
        p = np.exp(found)
        total = float(p.sum())
        if abs(total - 1.0) < _CLOSE:
            break
        least, most = (level, most) if total < 1.0 else (least, level)
        slope = float((p / (1.0 + a * p)).sum())
        level = level - total * float(np.log(total)) / slope if slope > 0 else np.inf
    return found


def _solved(*, a: float, b: Array) -> Array:
    """The u with u + a eᵘ = b, cell by cell: by Wright's ω, with ω + ln ω = z, at z = b + ln a.

    >>> u = _solved(a=1e6, b=np.array([-1e3, 1.0, 1e3]))
    >>> np.allclose(u + 1e6 * np.exp(u), [-1e3, 1.0, 1e3])
    True
    """
    from scipy.special import wrightomega

    with np.errstate(divide="ignore", invalid="ignore"):
        log_a = np.log(a)  # −∞ without any pull
        omega = wrightomega(b + log_a)
        # ω = a eᵘ; where it is tiny, u is b but for that.
        return np.asarray(np.where(omega > 1e-12, np.log(omega) - log_a, b - omega))
