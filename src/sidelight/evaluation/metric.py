"""The metrics of an evaluation: name, range, formula, and whether low or high values are good."""

import math
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Metric:
    """A number that says how good a release is."""

    name: str
    """The name that people read."""
    goal: Literal["low", "high"]
    """Whether low or high values are good."""
    low: float
    high: float
    formula: str
    """The formula in one line; D is the private table, A the release, n the number of records."""

    @property
    def range(self) -> str:
        """Its range in words, such as '0 to 2'."""
        return f"{self.low:g} to {self.high:g}" if math.isfinite(self.high) else f"{self.low:g} and above"


METRICS = {
    "workload_error": Metric("workload error", "low", 0, 2, "Σ_q c_q ‖q(D) − q(A)‖₁ / (n Σ_q c_q)"),
    "max_error": Metric("max error", "low", 0, 1, "max_q max |q(D) − q(A)| / n"),
    "mean_error": Metric("mean error", "low", 0, 1, "mean over all numbers of |q(D) − q(A)| / n"),
    "mean_squared_error": Metric(
        "mean squared error", "low", 0, 1, "mean over all numbers of (q(D) − q(A))² / n²"
    ),
    "squared_error_per_query": Metric(
        "squared error per query", "low", 0, math.inf, "mean over all numbers of (q(D) − q(A))², in counts"
    ),
    "cuboid_mean": Metric(
        "mean cuboid error", "low", 0, math.inf,
        "mean over cuboids of the mean |q(D) − q(A)| of their cells, in counts",
    ),
    "cuboid_max": Metric(
        "max cuboid error", "low", 0, math.inf,
        "max over cuboids of the mean |q(D) − q(A)| of their cells, in counts",
    ),
    "association_mean": Metric(
        "mean association gap", "low", 0, 1, "mean over pairs of |Ṽ(D) − Ṽ(A)|, Ṽ Cramér's V"
    ),
    "association_max": Metric(
        "max association gap", "low", 0, 1, "max over pairs of |Ṽ(D) − Ṽ(A)|, Ṽ Cramér's V"
    ),
    "nearer_share": Metric(
        "share nearer than fresh records", "low", 0, 1,
        "Pr[d(a, D) < d(x, D)] + ½ Pr[=], a synthetic, x fresh; ½ for a sample of the population",
    ),
    "accuracy": Metric(
        "accuracy, trained on A", "high", 0, 1, "share of private records whose class is predicted"
    ),
    "accuracy_private": Metric(
        "accuracy, trained on D", "high", 0, 1, "the same classifier from as many private records"
    ),
    "accuracy_majority": Metric("accuracy, commonest class", "high", 0, 1, "always the commonest class of D"),
}  # fmt: skip
"""Each metric by its field of ``Errors`` or ``Downstream``."""
