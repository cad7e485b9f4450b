"""Attack a mechanism from outside: a lower bound on the ε that it really gives.

Run the mechanism many times on two neighbouring tables, and try to tell the outputs apart.
If a test with false positive rate ≤ f has a true positive rate ≥ t, then any (ε, δ) promise
needs ε ≥ log((t − δ)/f). Both rates are bounded with confidence (Clopper and Pearson), so a
correct mechanism passes with that confidence, and a mechanism that draws too little noise is
caught once the runs suffice. An audit never proves privacy: it can only find that it is broken.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sidelight import _check
from sidelight.curator.curator import Curator
from sidelight.data.table import Table
from sidelight.mechanisms.base import Mechanism, Outcome
from sidelight.privacy.budget import Budget
from sidelight.privacy.event import Laplace
from sidelight.privacy.ledger import MemoryLedger
from sidelight.privacy.promise import Promise
from sidelight.privacy.unit import Unit
from sidelight.queries.query import answer
from sidelight.queries.workload import Workload
from sidelight.testing import SeededNoise


@dataclass(frozen=True, kw_only=True)
class Audit:
    """What an attack found."""

    epsilon: float
    """The lower bound on ε, at ``delta``, with ``confidence``."""
    delta: float
    confidence: float
    runs: int
    """On each of the two tables."""

    def refutes(self, budget: Budget) -> bool:
        """Whether the bound is above what was promised."""
        return self.epsilon > budget.epsilon


def attack(
    statistic: Callable[[Table, int], float],
    neighbours: tuple[Table, Table],
    *,
    delta: float,
    runs: int = 2000,
    confidence: float = 0.999,
) -> Audit:
    """Tell two tables apart by one number a run: ``statistic(table, seed)``, higher for the second.

    The threshold is chosen on one half of the runs and judged on the other, so choosing it
    costs no confidence.
    """
    _check.positive_integer(runs=runs)
    _check.share(confidence=confidence)
    first, second = (
        np.array([statistic(table, 2 * seed + side) for seed in range(runs)])
        for side, table in enumerate(neighbours)
    )
    half = runs // 2
    cut, positive = _best_cut(first[:half], second[:half], delta, confidence)
    false = _rate(first[half:], cut, positive=positive)
    true = _rate(second[half:], cut, positive=positive)
    number = runs - half
    if not positive:
        false, true = true, false
    bound = _epsilon_bound(true, false, number, delta, confidence)
    return Audit(epsilon=bound, delta=delta, confidence=confidence, runs=runs)


def audit_mechanism(
    mechanism: Mechanism,
    neighbours: tuple[Table, Table],
    workload: Workload,
    *,
    budget: Budget,
    unit: Unit,
    public: Table | None = None,
    runs: int = 2000,
    confidence: float = 0.999,
) -> Audit:
    """Attack a mechanism by the likelihood ratio of what it measured.

    The attacker knows both tables and every σ, so this is the best test of the measured part.
    Audit zCDP at a large δ, such as 0.05, and ε between 1 and 2. The conversion from ρ to (ε, δ) is least
    loose there, so a few thousand runs can find a mechanism that draws too little noise.
    """

    def one_run(table: Table, seed: int) -> float:
        ledger = MemoryLedger(Promise(budget, unit, "audit"))
        curator = Curator(
            table, allotment=mechanism.allotment(budget), unit=unit, ledger=ledger, noise=SeededNoise(seed)
        )
        return _likelihood_ratio(mechanism.run(curator, workload, public=public), neighbours)

    return attack(one_run, neighbours, delta=budget.delta, runs=runs, confidence=confidence)


def _likelihood_ratio(outcome: Outcome, neighbours: tuple[Table, Table]) -> float:
    """log p(y | second) − log p(y | first) of all that was measured, by the noise that was drawn."""
    has_laplace = any(isinstance(event, Laplace) for event in outcome.events)
    ratio = 0.0
    for measurement in outcome.measurements:
        first, second = (measurement.answer - answer(measurement.query, table) for table in neighbours)
        if has_laplace:
            ratio += float((np.abs(first) - np.abs(second)).sum()) * math.sqrt(2) / measurement.stddev
        else:
            ratio += float((first**2 - second**2).sum()) / (2 * measurement.stddev**2)
    return ratio


def _best_cut(
    first: NDArray[np.float64], second: NDArray[np.float64], delta: float, confidence: float
) -> tuple[float, bool]:
    """The threshold and direction with the largest bound on these runs."""
    best: tuple[float, float, bool] = (-math.inf, 0.0, True)
    pooled = np.concatenate([first, second])
    for cut in np.unique(np.quantile(pooled, np.linspace(0.02, 0.98, 97))):
        for positive in (True, False):
            false, true = (_rate(values, cut, positive=positive) for values in (first, second))
            if not positive:
                false, true = true, false
            bound = _epsilon_bound(true, false, first.size, delta, confidence)
            best = max(best, (bound, float(cut), positive))
    return best[1], best[2]


def _rate(values: NDArray[np.float64], cut: float, *, positive: bool) -> int:
    return int((values > cut).sum() if positive else (values <= cut).sum())


def _epsilon_bound(true: int, false: int, number: int, delta: float, confidence: float) -> float:
    from scipy.stats import beta

    level = (1 - confidence) / 2
    at_least = float(beta.ppf(level, true, number - true + 1)) if true else 0.0
    at_most = float(beta.ppf(1 - level, false + 1, number - false)) if false < number else 1.0
    if at_least <= delta:
        return 0.0
    return max(0.0, math.log((at_least - delta) / at_most))
