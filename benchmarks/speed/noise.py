"""How long exact noise takes: ours, OpenDP's, and NumPy's, which is not private; and both selections.

    python benchmarks/speed/noise.py        about a minute; writes benchmarks/results/noise.json

Ours and NumPy's are the median of five runs of a million cells. OpenDP's is that of two runs of a hundred
thousand cells, in the same process. Ours includes the operating system's entropy.
"""

import json
import os
import platform
import statistics
import time
import tracemalloc
from collections.abc import Callable
from fractions import Fraction
from importlib.metadata import version
from pathlib import Path

import numpy as np

from sidelight.privacy.budget import Rho
from sidelight.privacy.event import Exponential, PermuteAndFlip
from sidelight.privacy.noise import SystemNoise, discrete_gaussian, discrete_laplace
from sidelight.select.exponential import exponential
from sidelight.select.permute_and_flip import permute_and_flip

RESULTS = Path(__file__).resolve().parent.parent / "results" / "noise.json"
CELLS = 1_000_000
OPENDP_CELLS = 100_000
SCALES = (1, 50, 1000, 10**6)


def seconds(work: Callable[[], object], *, times: int) -> float:
    """The median time of several runs, after one that does not count."""
    work()
    taken = []
    for _ in range(times):
        start = time.perf_counter()
        work()
        taken.append(time.perf_counter() - start)
    return statistics.median(taken)


def opendp_gaussian(sigma: float) -> Callable[[], object]:
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l2_distance(T=float)
    measure = space >> dp.m.then_gaussian(float(sigma))
    zeros = [0] * OPENDP_CELLS
    return lambda: measure(zeros)


def gaussian(sigma: int) -> dict[str, float]:
    noise, generator = SystemNoise(), np.random.default_rng(1)
    ours = seconds(lambda: discrete_gaussian(noise, Fraction(sigma) ** 2, CELLS), times=5) / CELLS
    laplace = seconds(lambda: discrete_laplace(noise, Fraction(sigma), CELLS), times=5) / CELLS
    unsafe = seconds(lambda: np.rint(generator.normal(0, sigma, CELLS)), times=5) / CELLS
    opendp = seconds(opendp_gaussian(sigma), times=2) / OPENDP_CELLS
    return {
        "sigma": sigma,
        "sidelight_us_per_cell": round(ours * 1e6, 4),
        "sidelight_laplace_us_per_cell": round(laplace * 1e6, 4),
        "opendp_us_per_cell": round(opendp * 1e6, 3),
        "numpy_unsafe_us_per_cell": round(unsafe * 1e6, 4),
        "times_faster_than_opendp": round(opendp / ours, 1),
    }


def memory() -> dict[str, float]:
    """The most that ten million cells hold at once beyond the eighty megabytes that come back."""
    cells = 10 * CELLS
    tracemalloc.start()
    discrete_gaussian(SystemNoise(), Fraction(2500), cells)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return {"cells": cells, "beyond_the_answer_megabytes": round((peak - 8 * cells) / 1e6, 2)}


def selection(candidates: int) -> dict[str, float]:
    """Equal scores, where all matter, and scores so far apart that few do."""
    spread = np.random.default_rng(2).normal(size=candidates) * 1e4
    figures: dict[str, float] = {"candidates": candidates}
    for draw, kind in ((exponential, Exponential), (permute_and_flip, PermuteAndFlip)):
        paid = kind.at(
            Rho(Fraction(1, 100)), what="candidates", sensitivity=Fraction(4), candidates=candidates
        )
        for name, scores in (("equal", np.zeros(candidates)), ("spread", spread)):
            taken = seconds(lambda d=draw, s=scores, p=paid: d(SystemNoise(), s, p), times=5)
            figures[f"{draw.__name__}_{name}_ms"] = round(taken * 1e3, 3)
    return figures


def main() -> None:
    results = {
        "machine": {"cpus": os.cpu_count(), "architecture": platform.machine()},
        "versions": {
            "python": platform.python_version(),
            "numpy": np.__version__,
            "opendp": version("opendp"),
        },
        "gaussian": [gaussian(sigma) for sigma in SCALES],
        "memory": memory(),
        "selection": [selection(candidates) for candidates in (10, 1000, CELLS)],
    }
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    RESULTS.write_text(json.dumps(results, indent=2) + "\n")
    for row in [*results["gaussian"], results["memory"], *results["selection"]]:
        print("  ".join(f"{name} {value}" for name, value in row.items()))


if __name__ == "__main__":
    main()
