"""Small tables by workload error: every mechanism that needs no public data, for ``auto_table.py``.

    OMP_NUM_THREADS=1 python benchmarks/utility/auto_small.py

Mildew (n = 70), rochdale (665) and czech (1,841): 6 binary attributes each, all three-way marginals;
δ = 1e-9, one record is replaced. Settings are the defaults. The error of a mechanism that refuses a cell,
because its noise would exceed n, is nan there.
"""

import math
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from mwem_contingency import SMALL, small_table

from experiment import RESULTS, curator_of
from resumable import run_cells
from sidelight.errors import SettingError
from sidelight.evaluation.marginals import workload_error
from sidelight.mechanisms.registry import mechanism_of
from sidelight.privacy.budget import Budget
from sidelight.queries.workload import Workload

EPSILONS = (0.3, 1.0, 3.0, 10.0)
MECHANISMS = ("aperture", "aim", "mst", "hdmm", "mwem", "barak")
SEEDS = 3


def cells() -> Iterator[dict[str, Any]]:
    for seed in range(SEEDS):
        for name in SMALL:
            for epsilon in EPSILONS:
                for mechanism in MECHANISMS:
                    yield {"data": name, "mechanism": mechanism, "epsilon": epsilon, "seed": seed}


def measure(data: str, mechanism: str, epsilon: float, seed: int) -> dict[str, float]:
    table = small_table(SMALL[data][0])
    workload = Workload.marginals(table.domain, degree=3)
    recipe, n = mechanism_of(mechanism), table.records
    curator = curator_of(table, Budget(epsilon=epsilon, delta=1e-9).rho(), seed=seed)
    try:
        recipe.check_total(n, allotment=curator.allotment, unit=curator.unit)
    except SettingError:
        return {"error": math.nan}
    release = recipe.run(curator, workload)
    return {"error": workload_error(table, release, workload, total=n)}


if __name__ == "__main__":
    run_cells(RESULTS / "auto_small.csv", cells(), measure)
