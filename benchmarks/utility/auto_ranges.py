"""Ranges at δ > 0: MWEM and HDMM on the tables of ``mwem_ranges.py``, for ``auto_table.py``.

    OMP_NUM_THREADS=1 python benchmarks/utility/auto_ranges.py [--seeds 5] [--data monetary]

2,000 random ranges on raw integer values, from ADULT (n = 48,842) and Blood Transfusion (748); δ = 1e-9, one
record is replaced, n is public. The error is √(mean squared error of a range) / n; nan where a mechanism
refuses, as HDMM does for attributes of more than 1,024 values.
"""

import argparse
import math
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from auto_small import auto
from mwem_ranges import RANGES, SETTINGS, raw_table

from experiment import RESULTS, curator_of
from resumable import run_cells
from sidelight.errors import SidelightError
from sidelight.evaluation.workload_errors import Errors
from sidelight.mechanisms.registry import mechanism_of
from sidelight.privacy.budget import Budget
from sidelight.queries.workload import Workload

PATH = RESULTS / "auto_ranges.csv"
EPSILONS = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
MECHANISMS: dict[str, tuple[str, dict[str, Any]]] = {
    **{f"mwem, T={T}": ("mwem", {"candidates": "queries", "rounds": T}) for T in (10, 20, 50)},
    "auto": ("auto", {}),
    "hdmm": ("hdmm", {}),
    "hdmm, least squares": ("hdmm", {"reconstruction": "least-squares"}),
}


def cells(data: list[str], seeds: int) -> Iterator[dict[str, Any]]:
    for seed in range(seeds):
        for name in data:
            for epsilon in EPSILONS:
                for mechanism in MECHANISMS:
                    yield {"data": name, "mechanism": mechanism, "epsilon": epsilon, "seed": seed}


def measure(data: str, mechanism: str, epsilon: float, seed: int) -> dict[str, float]:
    file, attrs, _ = SETTINGS[data]
    table = raw_table(file, attrs)
    workload = Workload.ranges(table.domain, attrs, number=RANGES, seed=0)
    name, settings = MECHANISMS[mechanism]
    budget = Budget(epsilon=epsilon, delta=1e-9)
    recipe = mechanism_of(name, settings) if name != "auto" else auto(table, workload, budget)
    try:
        recipe.check(table.domain, workload, None)
    except SidelightError:
        return {"error": math.nan}
    cost = recipe.allotment(budget)
    release = recipe.run(curator_of(table, cost, seed=seed), workload)
    errors = Errors.of(table, release, workload, total=table.records)
    return {"error": math.sqrt(errors.mean_squared_error)}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", choices=SETTINGS, nargs="*", default=list(SETTINGS))
    parser.add_argument("--seeds", type=int, default=3)
    asked = parser.parse_args()
    run_cells(PATH, cells(asked.data, asked.seeds), measure)
