"""Attack a mechanism from outside: a lower bound on the privacy that it really loses.

Run the mechanism many times on two neighbouring tables, and try to tell the outputs apart by one number, or
by the best of several. How often that succeeds bounds ε and ρ from below (``bounds``), with confidence: a
correct mechanism passes with that confidence, and a mechanism that draws too little noise is caught once the
runs suffice. An audit never proves privacy: it can only find that it is broken.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sidelight import _check
from sidelight.audit.bounds import at_least, at_most, epsilon_bound, rho_bound
from sidelight.audit.transcript import likelihood_ratios
from sidelight.data.table import Table
from sidelight.mechanisms.base import Mechanism
from sidelight.privacy.budget import Budget, Cost, Rho
from sidelight.privacy.unit import Unit
from sidelight.queries.workload import Workload

_CUTS = np.linspace(0.01, 0.99, 99)
"""Quantiles of all runs at which a statistic is cut."""
_CHOICE_LEVEL = 0.005
"""The level at which a cut is chosen. At that of an audit, small samples would bound nothing at all; with no
caution, chance would choose cuts far out, where the other runs then find less."""


@dataclass(frozen=True, kw_only=True)
class Audit:
    """The lower bounds that an attack found."""

    epsilon: float
    """The lower bound on ε, at ``delta``, with ``confidence``."""
    delta: float
    rho: float
    """The lower bound on ρ, with the same confidence."""
    confidence: float
    runs: int
    """On each of the two tables."""
    chosen_on: int
    """On so many of them the test was chosen; the others judged it."""
    statistic: int = 0
    """Which number told the tables apart best."""

    def refutes(self, budget: Budget) -> bool:
        """Whether the bound on ε is above what was promised."""
        return self.epsilon > budget.epsilon

    def contradicts(self, claim: Cost) -> bool:
        """Whether more was lost than was charged: in ρ, or in ε at δ = 0."""
        return self.found(claim) > float(claim)

    def found(self, claim: Cost) -> float:
        """The lower bound in the currency of a claim."""
        return self.rho if isinstance(claim, Rho) else self.epsilon


def attack(
    statistic: Callable[[Any, int], float | Sequence[float]],
    neighbours: tuple[Any, Any],
    *,
    delta: float,
    runs: int = 2000,
    confidence: float = 0.999,
) -> Audit:
    """Tell two tables apart by what a run shows: ``statistic(table, seed)``, a number or several.

    The statistic, the threshold and the side are chosen on a fifth of the runs and judged on the others, so
    choosing costs no confidence. For ε and for ρ they are chosen apart: each bound holds with this
    confidence.
    """
    _check.positive_integer(runs=runs)
    _check.share(confidence=confidence)
    first, second = (
        np.array([np.atleast_1d(statistic(table, 2 * seed + side)) for seed in range(runs)], dtype=float)
        for side, table in enumerate(neighbours)
    )
    trained = max(1, runs // 5)
    number, level = runs - trained, (1 - confidence) / 2
    bounds: list[tuple[float, int]] = []
    for bound in (lambda true, false: epsilon_bound(true, false, delta), rho_bound):
        place, cut, is_above = _best_cut(first[:trained], second[:trained], bound)
        said = [(side[trained:, place] > cut) == is_above for side in (first, second)]
        true, false = (int(one.sum()) for one in reversed(said))
        rates = float(at_least(true, number, level)), float(at_most(false, number, level))
        bounds.append((bound(*rates), place))
    return Audit(
        epsilon=bounds[0][0],
        delta=delta,
        rho=bounds[1][0],
        confidence=confidence,
        runs=runs,
        chosen_on=trained,
        statistic=bounds[int(delta > 0)][1],
    )


def audit_mechanism(
    mechanism: Mechanism,
    neighbours: tuple[Table, Table],
    workload: Workload,
    *,
    budget: Budget,
    unit: Unit,
    public: Any = None,
    runs: int = 2000,
    confidence: float = 0.999,
) -> Audit:
    """Attack a mechanism by the likelihood ratio of all that it drew.

    The attacker knows both tables, every σ and every score, so no test of what was drawn is better (but for
    permute-and-flip, whose ratio is approximated). Beside that, the released model itself is looked at, where
    the two tables differ most.
    """

    def one_run(table: Table, seed: int) -> Sequence[float]:
        return likelihood_ratios(
            mechanism, table, neighbours, workload, budget=budget, unit=unit, public=public, seed=seed
        )

    return attack(one_run, neighbours, delta=budget.delta, runs=runs, confidence=confidence)


def _best_cut(
    first: NDArray[np.float64],
    second: NDArray[np.float64],
    bound: Callable[[float, float], float],
) -> tuple[int, float, bool]:
    """The statistic, its threshold and the side of it that means "the second" with the largest bound here.

    The bound is one with confidence, of these runs alone: a test that is right in all of few runs is not for
    that reason the best.
    """
    best, chosen = -1.0, (0, 0.0, True)
    here = len(first)
    for place in range(first.shape[1]):
        values = [np.sort(side[:, place]) for side in (first, second)]
        cuts = np.unique(np.quantile(np.concatenate(values), _CUTS))
        above = [here - np.searchsorted(side, cuts, side="right") for side in values]
        for is_above in (True, False):
            said = above if is_above else [here - count for count in above]
            false, true = said
            rates = zip(at_least(true, here, _CHOICE_LEVEL), at_most(false, here, _CHOICE_LEVEL), strict=True)
            found = [bound(float(right), float(wrong)) for right, wrong in rates]
            which = int(np.argmax(found))
            if found[which] > best:
                best, chosen = found[which], (place, float(cuts[which]), is_above)
    return chosen
