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
from sidelight.curator import Curator
from sidelight.data.table import Table
from sidelight.mechanisms.base import Mechanism
from sidelight.mechanisms.release import Release
from sidelight.privacy.budget import Budget
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
    cut, positive = _best_cut(first[:half], second[:half], delta)
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
    statistic: Callable[[Release, tuple[Table, Table]], float] | None = None,
) -> Audit:
    """Attack a mechanism by the likelihood ratio of what it measured.

    The attacker knows both tables and every σ: for Gaussian noise this is the best test of
    the measured part. δ is at least 0.01 here, since smaller ones need many more runs; the
    promise at that δ is weaker, and is what the bound is compared with.
    """
    measure = statistic if statistic is not None else _likelihood_ratio

    def one_run(table: Table, seed: int) -> float:
        ledger = MemoryLedger(Promise(budget, unit, "audit"))
        curator = Curator(
            table, allotment=mechanism.allotment(budget), unit=unit, ledger=ledger, noise=SeededNoise(seed)
        )
        return measure(mechanism.run(curator, workload, public=public), neighbours)

    return attack(one_run, neighbours, delta=budget.delta, runs=runs, confidence=confidence)


def _likelihood_ratio(release: Release, neighbours: tuple[Table, Table]) -> float:
    """Log p(y | second) − log p(y | first), as if all noise were Gaussian."""
    ratio = 0.0
    for measurement in release.measurements:
        first, second = (answer(measurement.query, table) for table in neighbours)
        gap = (measurement.answer - first) ** 2 - (measurement.answer - second) ** 2
        ratio += float(gap.sum()) / (2 * measurement.stddev**2)
    return ratio


def _best_cut(first: NDArray[np.float64], second: NDArray[np.float64], delta: float) -> tuple[float, bool]:
    """The threshold and direction with the largest plug-in ε."""
    best: tuple[float, float, bool] = (-math.inf, 0.0, True)
    pooled = np.concatenate([first, second])
    cuts = np.unique(np.quantile(pooled, np.linspace(0.02, 0.98, 97)))
    for cut in cuts:
        for positive in (True, False):
            above_first, above_second = (first > cut).mean(), (second > cut).mean()
            true, false = (above_second, above_first) if positive else (1 - above_first, 1 - above_second)
            # A floor of 1% keeps the choice away from rates that the other half cannot confirm.
            value = math.log(max(true - delta, 1e-12) / max(false, 0.01))
            best = max(best, (value, float(cut), positive))
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
