"""DualQuery on ADULT: rounds, seconds of the integer programs, and error.

    python benchmarks/speed/dualquery.py [--seeds 3]

256 random three-way marginals of ``adult_pmwpub_coded``, ε = 1, δ = 1e-9, replacement, seeded noise; step
and queries per round from the papers' grids. Writes ``benchmarks/results/dualquery.json``: seconds are
processor seconds, ``error`` the mean of ‖q(D) − q(A)‖₁/n over the marginals, ``max_error`` the largest
|q(D) − q(A)|/n of one cell. A run that is there already is not repeated.
"""

import argparse
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
import pyarrow.parquet as pq

from experiment import RESULTS, curator_of, data_folder, machine
from sidelight.data.domain import Domain
from sidelight.data.table import Table
from sidelight.mechanisms import dualquery
from sidelight.mechanisms.dualquery import DualQuery
from sidelight.privacy.budget import Budget
from sidelight.queries.workload import Workload

GRID = [(2.0, 50), (5.0, 50), (1.0, 50), (2.0, 250)]
PATH = RESULTS / "dualquery.json"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    asked = parser.parse_args()
    sizes = json.loads((data_folder() / "adult_pmwpub_coded.domain.json").read_text(encoding="utf-8"))
    columns = pq.read_table(data_folder() / "adult_pmwpub_coded.parquet")
    codes = np.stack([columns[attr].to_numpy() for attr in sizes], axis=1)
    private = Table.of_codes(Domain.of(sizes), codes)
    workload = Workload.random_marginals(private.domain, degree=3, number=256, seed=0)
    oracle = Timed(dualquery.best_record)
    dualquery.best_record = oracle  # type: ignore[assignment]
    found: dict[str, Any] = {"machine": machine(), "records": private.records, "runs": []}
    if PATH.exists():
        found["runs"] = json.loads(PATH.read_text(encoding="utf-8"))["runs"]
    done = {(run["step"], run["queries_per_round"], run["seed"]) for run in found["runs"]}
    for seed in range(asked.seeds):
        for step, queries in GRID:
            if (step, queries, seed) in done:
                continue
            oracle.seconds, began = [], time.process_time()
            curator = curator_of(private, Budget(epsilon=1.0, delta=1e-9).rho(), seed=seed)
            outcome = DualQuery(step=step, queries_per_round=queries).run(curator, workload)
            took = time.process_time() - began
            error, largest = errors(private, outcome, workload)
            found["runs"].append(
                {
                    "step": step,
                    "queries_per_round": queries,
                    "seed": seed,
                    "rounds": len(oracle.seconds),
                    "seconds": round(took, 1),
                    "oracle_seconds": round(sum(oracle.seconds), 1),
                    "slowest_oracle": round(max(oracle.seconds), 2),
                    "error": error,
                    "max_error": largest,
                }
            )
            PATH.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
            print(found["runs"][-1], flush=True)


class Timed:
    """The oracle, with a note of how long each answer took."""

    def __init__(self, oracle: Any) -> None:
        self._oracle, self.seconds = oracle, list[float]()

    def __call__(self, *given: Any, **settings: Any) -> Any:
        began = time.process_time()
        answer = self._oracle(*given, **settings)
        self.seconds.append(time.process_time() - began)
        return answer


def errors(private: Table, outcome: Any, workload: Workload) -> tuple[float, float]:
    """Mean L1 error of a marginal and largest error of a cell, as shares of the records."""
    gaps = [np.abs(outcome.count(q.attrs) - private.count(q.attrs)) / private.records for q in workload]
    return round(float(np.mean([gap.sum() for gap in gaps])), 4), round(float(max(g.max() for g in gaps)), 4)


if __name__ == "__main__":
    main()
