"""Figure 1 of the mixed-mean paper: the variance of each estimator against the size of the first group.

Six groups of n, 100, 500, 1000, 5000 and 10000 people with ε = 10, 0.05, 0.1, 0.01, 0.25 and 0.15, values
from 𝒩(0, 25), 1,000 trials. Trials are drawn as arrays, with floating-point noise: this is a simulation of
artificial data, not a release. ``published`` takes r = 100 for the noise (the bounds' half width, which
is half of what replacement needs) and divides by the realised sample size, as printed; ``strict`` is what
this library runs, R = 200 wide.

    python benchmarks/utility/mixed_mean.py        seconds; writes benchmarks/results/mixed_mean.json
"""

import json
import math
import os
import platform
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from personalised import best_threshold, mixed_variance, sample_chances, sample_variance
from sidelight.statistics.weights import (
    inverse_variance,
    laplace_variances,
    mean_variances,
    merged,
)

RESULTS = Path(__file__).resolve().parents[1] / "results" / "mixed_mean.json"
EPSILONS = np.array([10, 0.05, 0.1, 0.01, 0.25, 0.15])
SIZES = (100, 500, 1000, 2000, 5000, 10000)
TRIALS = 1000
VARIANCE = 25.0
THRESHOLDS = (0.01, 0.25, 1.76, 10.0)


def group_sizes(n: int) -> np.ndarray:
    return np.array([n, 100, 500, 1000, 5000, 10000], dtype=float)


def interval(estimates: np.ndarray) -> dict[str, float]:
    """The variance over trials, with its 95% interval from the estimates' fourth moment."""
    centred = (estimates - estimates.mean()) ** 2
    error = 1.96 * centred.std() / math.sqrt(estimates.size)
    return {
        "variance": float(centred.mean()),
        "low": float(centred.mean() - error),
        "high": float(centred.mean() + error),
    }


def mixed(rng: np.random.Generator, sizes: np.ndarray, width: float) -> np.ndarray:
    """Sums are drawn directly: the sum of n values of 𝒩(0, σ²) is 𝒩(0, nσ²)."""
    beta = inverse_variance(mean_variances(sizes, VARIANCE, laplace_variances(EPSILONS, width)))
    sums = rng.normal(0, np.sqrt(sizes * VARIANCE), (TRIALS, 6)) + rng.laplace(
        0, width / EPSILONS, (TRIALS, 6)
    )
    return sums @ (beta / sizes)


def with_merging(rng: np.random.Generator, sizes: np.ndarray, width: float) -> tuple[np.ndarray, float]:
    sets = merged(sizes.tolist(), EPSILONS.tolist(), variance=VARIANCE, unit_noise=2 * width**2, power=2)
    people = np.array([sizes[list(who)].sum() for who in sets])
    least = np.array([EPSILONS[list(who)].min() for who in sets])
    variances = mean_variances(people, VARIANCE, laplace_variances(least, width))
    beta = inverse_variance(variances)
    shape = (TRIALS, len(sets))
    sums = rng.normal(0, np.sqrt(people * VARIANCE), shape) + rng.laplace(0, width / least, shape)
    return sums @ (beta / people), mixed_variance(variances)


def sampled(rng: np.random.Generator, sizes: np.ndarray, t: float, width: float, form: Any) -> np.ndarray:
    """Sample: the sum of k kept values of 𝒩(0, σ²) is 𝒩(0, kσ²), and k is binomial."""
    chances = sample_chances(EPSILONS, t, form=form)
    kept = rng.binomial(sizes.astype(int), chances, (TRIALS, 6)).sum(axis=1).astype(float)
    sums = rng.normal(0, np.sqrt(kept * VARIANCE)) + rng.laplace(0, width / t, TRIALS)
    return sums / (np.maximum(kept, 1) if form == "published" else float((sizes * chances).sum()))


def main() -> None:
    start = time.perf_counter()
    rng = np.random.default_rng(6)
    rows: list[dict[str, Any]] = []

    def row(n: int, form: str, estimator: str, predicted: float, estimates: np.ndarray) -> None:
        rows.append(
            {"n": n, "form": form, "estimator": estimator, "predicted": predicted, **interval(estimates)}
        )

    for n in SIZES:
        sizes = group_sizes(n)
        for form, width in (("published", 100.0), ("strict", 200.0)):
            predicted = mixed_variance(mean_variances(sizes, VARIANCE, laplace_variances(EPSILONS, width)))
            row(n, form, "mixed", predicted, mixed(rng, sizes, width))
            estimates, predicted = with_merging(rng, sizes, width)
            row(n, form, "mixed, merged", predicted, estimates)
            best = best_threshold(sizes, EPSILONS, variance=VARIANCE, width=width, form=form)  # type: ignore[arg-type]
            for t in sorted({*THRESHOLDS, best}):
                predicted = sample_variance(sizes, EPSILONS, t, variance=VARIANCE, width=width, form=form)  # type: ignore[arg-type]
                name = f"Sample, t = {t:g}" + (" (optimised)" if t == best else "")
                row(n, form, name, predicted, sampled(rng, sizes, t, width, form))
    seconds = time.perf_counter() - start
    machine = {"cpus": os.cpu_count(), "python": platform.python_version(), "numpy": np.__version__}
    RESULTS.write_text(
        json.dumps(
            {"machine": machine, "trials": TRIALS, "seconds": round(seconds, 2), "rows": rows}, indent=1
        )
        + "\n"
    )
    for each in rows:
        if each["n"] in (100, 1000, 10000):
            print(
                f"n = {each['n']:5d}  {each['form']:9s}  {each['estimator']:30s} "
                f"predicted {each['predicted']:.6f}  "
                f"measured {each['variance']:.6f} ({each['low']:.6f} to {each['high']:.6f})"
            )
    print(f"{seconds:.1f} s")


if __name__ == "__main__":
    main()
