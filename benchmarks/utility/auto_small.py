"""Small tables, and pure ε: every mechanism that needs no public data, for ``auto_table.py``.

    OMP_NUM_THREADS=1 python benchmarks/utility/auto_small.py [--seeds 5] [--data czech acs16] [--delta 0]

Mildew (n = 70) and czech (1,841) with 6 binary attributes, rochdale (665) with 8, and acs16 (70,131) with 16
(``mwem_contingency.py``); nist10 (7,634), ten attributes of 2 to 7 values, which limited HDMM to small
domains. All
two-way or all three-way marginals; one record is replaced. δ = 1e-9, or δ = 0 for the mechanisms that keep
pure ε. Settings are the defaults but for those in the mechanism's name. The workload error of one that
refuses a cell, because its noise would exceed n, is nan there.
"""

import argparse
import math
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from mwem_contingency import SMALL, large_table, small_table

from experiment import RESULTS, coded_table, columns, curator_of, described
from resumable import run_cells
from sidelight.data.table import Table
from sidelight.errors import SidelightError
from sidelight.evaluation.workload_errors import workload_error
from sidelight.mechanisms.base import Mechanism
from sidelight.mechanisms.by_size import Size
from sidelight.mechanisms.choice import choose
from sidelight.mechanisms.registry import mechanism_of
from sidelight.privacy.budget import Budget
from sidelight.privacy.unit import Unit
from sidelight.queries.workload import Workload

PATH = RESULTS / "auto_small.csv"
DATA = (*SMALL, "acs16", "nist10")
EPSILONS = {"acs16": (0.03, 0.1, 0.3, 1.0), "nist10": (0.03, 0.1, 0.3, 1.0, 3.0, 10.0)}
DELTAS = (1e-9, 0.0)
PURE = {"accounting": "pure"}
MECHANISMS: dict[float, dict[str, tuple[str, dict[str, Any]]]] = {
    1e-9: {name: (name, {}) for name in ("aperture", "aim", "mst", "hdmm", "mwem", "barak")},
    0.0: {
        **{f"mwem, T={T}": ("mwem", PURE | {"rounds": T}) for T in (4, 10, 20, 40)},
        "mwem, T=10, noisy start": ("mwem", PURE | {"rounds": 10, "histogram_share": 0.5}),
        "barak": ("barak", PURE),
        "dualquery": ("dualquery", PURE),
        "auto": ("auto", {}),
    },
}
_tables: dict[str, Table] = {}


def cells(data: list[str], deltas: list[float], seeds: int) -> Iterator[dict[str, Any]]:
    for seed in range(seeds):
        for name in data:
            for delta in deltas:
                for degree in (3, 2):
                    for epsilon in EPSILONS.get(name, (0.3, 1.0, 3.0, 10.0)):
                        for mechanism in MECHANISMS[delta]:
                            yield {
                                "data": name, "degree": degree, "mechanism": mechanism, "epsilon": epsilon,
                                "delta": delta, "seed": seed,
                            }  # fmt: skip


def table_of(data: str) -> Table:
    """The table, read once."""
    if data not in _tables:
        large = {"acs16": large_table, "nist10": nist_table}
        _tables[data] = large[data]() if data in large else small_table(SMALL[data][0])
    return _tables[data]


def nist_table() -> Table:
    """The ten attributes of fewest values of NIST's Massachusetts excerpt."""
    known = {name: about["size"] for name, about in described("nist_acs_coded").items()}
    sizes = {name: known[name] for name in sorted(known, key=known.__getitem__)[:10]}
    return coded_table(columns("nist_acs_ma2019_coded", list(sizes)), sizes)


def auto(table: Table, workload: Workload, budget: Budget) -> Mechanism:
    """What is chosen for somebody who names nothing."""
    size = Size(table.records, Unit("replace"))
    return choose(table.domain, workload, budget=budget, public=None, settings={}, size=size).mechanism


def measure(
    data: str, degree: int, mechanism: str, epsilon: float, delta: float, seed: int
) -> dict[str, float]:
    table = table_of(data)
    workload = Workload.marginals(table.domain, degree=degree)
    name, settings = MECHANISMS[delta][mechanism]
    n, budget = table.records, Budget(epsilon=epsilon, delta=delta)
    recipe = mechanism_of(name, settings) if name != "auto" else auto(table, workload, budget)
    curator = curator_of(table, recipe.allotment(budget), seed=seed)
    try:
        recipe.check(table.domain, workload, None)
        recipe.check_total(n, allotment=curator.allotment, unit=curator.unit)
    except SidelightError:
        return {"error": math.nan}
    release = recipe.run(curator, workload)
    return {"error": workload_error(table, release, workload, total=n)}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", choices=DATA, nargs="*", default=list(DATA))
    parser.add_argument("--delta", type=float, choices=DELTAS, nargs="*", default=list(DELTAS))
    parser.add_argument("--degree", type=int, nargs="*", default=[3, 2])
    parser.add_argument("--seeds", type=int, default=5)
    asked = parser.parse_args()
    wanted = (cell for cell in cells(asked.data, asked.delta, asked.seeds) if cell["degree"] in asked.degree)
    run_cells(PATH, wanted, measure)
