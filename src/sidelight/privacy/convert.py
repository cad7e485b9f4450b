"""Conversion between ρ and (ε, δ), always rounded to the private side.

A ρ-zCDP mechanism is (ε, δ)-DP for every order α > 1 with

    log δ = (α−1)(αρ − ε) − (α−1) log(1 + 1/(α−1)) − log α

(Canonne, Kamath, Steinke 2020, corollary 13, written so that nothing cancels near α = 1 or
α = ∞). Only D_α ≤ αρ at that one α is used, which is what makes ``order_of`` a filter's order.
The best α solves dδ/dα = 0, and then

    ε = (2α−1)ρ − log(1 + 1/(α−1))        log 1/δ = (α−1)²ρ + log α

Each side is monotone in α, so every conversion is one bisection on log(α−1). An inexact α
still gives a valid bound; rounding of the bound itself is covered by ``_ROUNDING``.
"""

import math
from collections.abc import Callable

from sidelight.errors import SettingError

_ROUNDING = 2.0**-48
"""Slack relative to the largest term: sixteen times the rounding of six float operations."""
_LEAST, _MOST = -30.0, 300.0
"""log(α−1): below −30 floats cannot hold α − 1, above 300 they could not hold (α−1)²ρ."""


def delta_of(rho: float, epsilon: float) -> float:
    """The least δ such that ρ-zCDP implies (ε, δ)-DP, rounded up: 0 only where ρ is.

    >>> f"{delta_of(0.01, 0.5):.6e}"
    '3.505878e-05'
    """
    _require(rho=rho, epsilon=epsilon)
    if rho == 0:
        return 0.0
    log_delta = _log_delta(order_of(rho, epsilon), rho, epsilon)
    # PRIVACY: exp is right to one unit in the last place; one step up makes it a bound.
    return min(1.0, math.nextafter(math.exp(min(0.0, log_delta)), math.inf))


def epsilon_of(rho: float, delta: float) -> float:
    """The least ε such that ρ-zCDP implies (ε, δ)-DP, rounded up.

    >>> round(epsilon_of(0.01, 1e-5), 6)
    0.545726
    """
    _require(rho=rho, delta=delta)
    if rho == 0 or delta >= 1:
        return 0.0
    if delta == 0 or rho == math.inf:
        return math.inf
    target = -math.log(delta)
    order = 1 + math.exp(_root(lambda t: t * t * rho + math.log1p(t) - target))
    epsilon = epsilon_at(order, rho, delta)
    nudge = _ROUNDING
    while delta_of(rho, epsilon) > delta:
        epsilon += nudge * (epsilon + order * rho)
        nudge *= 2
    return epsilon


def epsilon_at(order: float, rho: float, delta: float) -> float:
    """The ε that D_α ≤ αρ at this one order α implies together with δ, rounded up."""
    t = order - 1
    terms = (order * rho, -math.log1p(1 / t), -math.log(delta) / t, -math.log1p(t) / t)
    return max(0.0, math.fsum(terms) + _ROUNDING * math.fsum(map(abs, terms)))


def rho_of(epsilon: float, delta: float) -> float:
    """The most ρ such that ρ-zCDP implies (ε, δ)-DP, rounded down.

    Always ``delta_of(rho_of(epsilon, delta), epsilon) <= delta``.

    >>> f"{rho_of(1.0, 1e-9):.6e}"
    '1.497306e-02'
    """
    _require(epsilon=epsilon, delta=delta)
    if delta >= 1:
        return math.inf
    if delta == 0:
        return 0.0
    target = -math.log(delta)

    def falling(t: float) -> float:
        if math.log1p(t) >= target:
            return math.inf
        return epsilon + math.log1p(1 / t) - (1 + 2 * t) / t * ((target - math.log1p(t)) / t)

    t = math.exp(_root(falling))
    rho = max(0.0, (epsilon + math.log1p(1 / t) + (math.log1p(t) - target) / t) / (1 + t))
    nudge = _ROUNDING
    while delta_of(rho, epsilon) > delta:
        rho *= max(0.0, 1 - nudge)
        nudge *= 2
    return rho


def order_of(rho: float, epsilon: float) -> float:
    """The order α > 1 at which ``delta_of(rho, epsilon)`` is attained.

    >>> round(order_of(0.01, 0.5), 3)
    27.362
    """
    _require(rho=rho, epsilon=epsilon)
    return 1 + math.exp(_root(lambda t: (1 + 2 * t) * rho - epsilon - math.log1p(1 / t)))


def advanced(epsilon: float, delta: float, rounds: int) -> float:
    """The ε₀ that each of T rounds may spend if together they are (ε, δ)-DP, rounded down.

    √(2T log 1/δ) ε₀ + T ε₀ (exp ε₀ − 1) ≤ ε: advanced composition (Dwork, Rothblum, Vadhan
    2010, theorem III.3). The ε₀ must be fixed beforehand; ``Budget`` is the filter for adaptive ones.

    >>> round(advanced(1.0, 1e-10, 10), 9)
    0.045607343
    """
    _require(epsilon=epsilon, delta=delta)
    if not isinstance(rounds, int) or rounds < 1:
        raise SettingError(f"rounds must be a whole number of at least 1; got {rounds!r}.")
    if not 0 < delta < 1:
        raise SettingError(f"delta must be a share between 0 and 1; got {delta!r}.")
    slope = math.sqrt(2 * rounds * -math.log(delta))
    low, high = 0.0, min(epsilon, 700.0)  # exp(709) is the last that floats can hold
    for _ in range(100):
        middle = (low + high) / 2
        total = slope * middle + rounds * middle * math.expm1(middle)
        if total * (1 + _ROUNDING) <= epsilon:
            low = middle
        else:
            high = middle
    return low


def _log_delta(order: float, rho: float, epsilon: float) -> float:
    """log δ at one order, rounded up."""
    t = order - 1
    terms = (t * (order * rho), -t * epsilon, -t * math.log1p(1 / t), -math.log1p(t))
    if not all(map(math.isfinite, terms)):
        return math.inf if math.inf in terms else -math.inf
    return math.fsum(terms) + _ROUNDING * math.fsum(map(abs, terms))


def _root(increasing: Callable[[float], float]) -> float:
    """The u = log(α−1) at which an increasing function of α − 1 passes 0."""
    low, high = _LEAST, _MOST
    for _ in range(64):
        middle = (low + high) / 2
        if increasing(math.exp(middle)) < 0:
            low = middle
        else:
            high = middle
    return low


def _require(**values: float) -> None:
    for name, value in values.items():
        if not value >= 0:
            raise SettingError(f"{name} must not be negative; got {value!r}.")
