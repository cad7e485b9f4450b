"""From how often a test is right to how much privacy was lost, at least.

A test tells two neighbouring tables apart. Let t be the probability that it says "the second" where that is
so, and f the probability that it says so wrongly. Every claim limits how far t and f can be apart:

    ε and δ    t ≤ e^ε f + δ                            (Wasserman and Zhou 2010; Kairouz, Oh, Viswanath 2015)
    ρ of zCDP  D_α(Bern(t) ‖ Bern(f)) ≤ αρ  for all α   (Bun and Steinke 2016: no test makes a divergence
    larger)

and the same the other way round. So t and f that were seen bound ε and ρ from below. Both are bounded with
confidence (Clopper and Pearson 1934): t from below, f from above.

The second bound is what makes audits of ρ tight. (ε, δ) follows from ρ with a loss, and far more of it at the
small δ of a promise than any number of runs can see; ρ itself is compared with ρ. A test of a Gaussian's mean
sees up to 64% of ρ (2/π, where ρ is small), which is 80% of ε.
"""

import math

import numpy as np
from numpy.typing import NDArray

_ORDERS = np.concatenate([1 + np.geomspace(1e-3, 1, 20), np.geomspace(2.1, 500, 40)])
"""Rényi orders at which a test is judged, beside 1; each gives a bound, and the largest counts."""


def at_least(hits: NDArray[np.int64] | int, number: int, level: float) -> NDArray[np.float64]:
    """The probability behind so many hits is no smaller than this, but for a chance of ``level``."""
    from scipy.stats import beta

    hits = np.asarray(hits)
    return np.where(hits > 0, beta.ppf(level, np.maximum(hits, 1), number - hits + 1), 0.0)


def at_most(hits: NDArray[np.int64] | int, number: int, level: float) -> NDArray[np.float64]:
    """The probability behind so many hits is no larger than this, but for a chance of ``level``."""
    return 1 - at_least(number - np.asarray(hits), number, level)


def epsilon_bound(true: float, false: float, delta: float) -> float:
    """The least ε, at this δ, with which a test can be so good: right with ``true``, wrong with ``false``.

    >>> round(epsilon_bound(0.75, 0.25, 0.0), 3), epsilon_bound(0.5, 0.5, 0.0)
    (1.099, 0.0)
    """
    found = 0.0
    for right, wrong in ((true, false), (1 - false, 1 - true)):
        if right > delta:
            found = max(found, math.inf if wrong <= 0 else math.log((right - delta) / wrong))
    return max(0.0, found)


def rho_bound(true: float, false: float) -> float:
    """The least ρ of zCDP with which a test can be so good.

    >>> round(rho_bound(0.75, 0.25), 3), rho_bound(0.4, 0.5)
    (0.549, 0.0)
    """
    if true <= false:
        return 0.0
    if false <= 0 or true >= 1:
        return math.inf
    return max(_divergence(true, false), _divergence(false, true))


def _divergence(p: float, q: float) -> float:
    """sup_α D_α(Bern(p) ‖ Bern(q)) / α over the orders above, and α = 1."""
    kl = p * math.log(p / q) + (1 - p) * math.log((1 - p) / (1 - q))
    a = _ORDERS
    terms = [a * math.log(x) + (1 - a) * math.log(y) for x, y in ((p, q), (1 - p, 1 - q))]
    return max(kl, float((np.logaddexp(*terms) / (a - 1) / a).max()))
