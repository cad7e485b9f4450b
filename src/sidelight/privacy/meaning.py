"""What an amount of privacy loss means: how often an attacker can be right.

An attacker knows everything but one person's records, sees all that was released, and decides whether to
accuse: "this person is in the table", or "this person's record says so". With f the chance that he accuses
wrongly and t the chance that he accuses rightly, ρ-zCDP bounds t.

**The bound.** Let P and Q be the laws of the output with and without what he suspects. ρ-zCDP says that
D_α(P‖Q) ≤ αρ and D_α(Q‖P) ≤ αρ at every order α > 1. His decision is a function of the output, so by data
processing the same holds of its two laws, which are coins that fall on "accuse" with chance t and f:

    d_α(t, f) ≤ αρ   and   d_α(f, t) ≤ αρ,    d_α(x, y) = log(x^α y^(1−α) + (1−x)^α (1−y)^(1−α)) / (α−1)

Each d_α is quasi-convex in either argument and least, namely 0, where both are alike: both grow with t ≥ f.
So the t ≥ f that satisfy all inequalities form an interval, and ``most_caught`` is its upper end.

**No better bound follows from ρ-zCDP.** The two coins with chances t and f are themselves the outputs of a
mechanism: it is ρ-zCDP if and only if the inequalities hold at every order, and it is caught t of the time.

**Rounding.** Every order by itself gives a valid bound: whoever leaves inequalities out gets a larger t. So
a grid of orders is safe, and bisection keeps the end at which some order says no. No Gaussian law is
assumed: a Gaussian mechanism of the same ρ is caught less often than the bound says.

For pure ε-DP, t ≤ min(e^ε f, 1 − e^(−ε)(1 − f)); a pure spending of ε is also ε²/2-zCDP.
"""

import math
import sys
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from sidelight import _check
from sidelight.privacy.budget import Cost, Rho, Tally
from sidelight.privacy.rational import float_up
from sidelight.privacy.unit import Unit

FALSE_ACCUSATIONS = 0.05
"""How often the attacker of our sentences allows himself to accuse wrongly."""
_ORDERS: NDArray[np.float64] = 1 + np.logspace(-4, 5, 1801)
"""α; between neighbours of this grid the bound changes by less than 10⁻⁶."""
_SLACK = 2.0**-40
"""Relative: far above what rounding loses in d_α, far below what anybody reads."""


@dataclass(frozen=True, kw_only=True)
class Meaning:
    """How often an attacker can be right who accuses wrongly in ``false`` of all cases."""

    caught: float
    """The most of those that he suspects rightly whom he accuses: t."""
    posterior: float
    """How sure an accusation can make him who held it for as likely as not: t/(t + f)."""
    false: float = FALSE_ACCUSATIONS
    """f."""

    @classmethod
    def of(cls, cost: Cost, *, false: float = FALSE_ACCUSATIONS) -> "Meaning":
        """The meaning of one amount.

        >>> from fractions import Fraction
        >>> Meaning.of(Rho(Fraction("0.014973"))).caught < 0.1
        True
        """
        spent = Tally(rho=cost.value) if isinstance(cost, Rho) else Tally(epsilon=cost.value)
        return cls.of_tally(spent, false=false)

    @classmethod
    def of_tally(cls, spent: Tally, *, false: float = FALSE_ACCUSATIONS) -> "Meaning":
        """The meaning of all that was spent, in either currency."""
        _check.share(false=false)
        # PRIVACY: pure spendings add up to ε-DP, which is ε²/2-zCDP; zCDP adds up.
        caught = most_caught(_float_up(spent.rho + spent.epsilon**2 / 2), false=false)
        if not spent.rho:
            caught = min(caught, _most_caught_pure(_float_up(spent.epsilon), false))
        return cls(caught=caught, posterior=caught / (caught + false), false=false)

    def sentence(self, unit: Unit) -> str:
        """The meaning in words.

        >>> said = Meaning(caught=0.081, posterior=0.62).sentence(Unit("add-or-remove"))
        >>> said.split("; ")[0]
        'somebody who accuses wrongly in 5% of cases finds at most 8.1% of those who are in the table'
        >>> said.split("; ")[1]
        'an accusation turns a fifty-fifty guess into one that is right in at most 62% of cases'
        >>> Meaning(caught=0.9999, posterior=0.97).sentence(Unit("add-or-remove")).split("; ")[0]
        'somebody who accuses wrongly in 5% of cases may find all of those who are in the table'
        """
        whom = "who are in the table" if unit.hides_presence else "whose records say what is suspected"
        found = _percent_up(self.caught)
        finds = "may find all" if found == "100%" else f"finds at most {found}"
        return (
            f"somebody who accuses wrongly in {100 * self.false:.3g}% of cases {finds} of those {whom}; "
            "an accusation turns a fifty-fifty guess into one that is right "
            f"in at most {_percent_up(self.posterior)} of cases"
        )

    def as_json(self) -> dict[str, float]:
        """A plain form."""
        return {"false": self.false, "caught": self.caught, "posterior": self.posterior}


def most_caught(rho: float, *, false: float = FALSE_ACCUSATIONS) -> float:
    """The largest t that ρ-zCDP allows beside f = ``false``, rounded up.

    >>> most_caught(0.0), round(most_caught(0.015), 3), most_caught(1e6)
    (0.05, 0.075, 1.0)
    """
    _check.share(false=false)
    if rho == 0:
        return false
    low, high = false, 1.0
    if _is_allowed(high, false, rho):
        return high
    for _ in range(60):
        middle = (low + high) / 2
        if _is_allowed(middle, false, rho):
            low = middle
        else:
            high = middle
    return high


def _is_allowed(caught: float, false: float, rho: float) -> bool:
    """Whether no order of the grid excludes these two chances."""
    most = _ORDERS * rho * (1 + _SLACK) + _SLACK
    return bool((_divergence(caught, false) <= most).all() and (_divergence(false, caught) <= most).all())


def _divergence(x: float, y: float) -> NDArray[np.float64]:
    """d_α(x, y) at all orders, for y strictly between 0 and 1 or equal to x."""
    if y >= 1:
        return np.full_like(_ORDERS, math.inf)
    over = _ORDERS - 1
    with np.errstate(divide="ignore"):
        hit = _ORDERS * np.log(x) - over * math.log(y)
        miss = _ORDERS * (np.log1p(-x) if x < 1 else -math.inf) - over * math.log1p(-y)
    return np.asarray(np.logaddexp(hit, miss) / over)


def _float_up(amount: Fraction) -> float:
    """The amount, rounded up; infinite where no float is that large."""
    return float_up(amount) if amount < sys.float_info.max else math.inf


def _most_caught_pure(epsilon: float, false: float) -> float:
    bound = min(math.exp(min(epsilon, 700.0)) * false, 1 - math.exp(-epsilon) * (1 - false))
    return min(1.0, math.nextafter(bound, 2.0) if epsilon else false)


def _percent_up(share: float) -> str:
    """Per cent, never less than it is: a bound that is rounded down is none.

    >>> _percent_up(0.08123), _percent_up(0.6234), _percent_up(0.9999), _percent_up(1.0)
    ('8.2%', '63%', '100%', '100%')
    """
    digits = 1 if share < 0.1 else 0
    scale = 10**digits
    return f"{math.ceil(100 * share * scale - 1e-9) / scale:.{digits}f}%"
