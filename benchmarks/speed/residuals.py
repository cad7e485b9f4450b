"""Residual planning and reconstruction: seconds, memory and error, on ADULT and on wide tables.

    python benchmarks/speed/residuals.py [--only adult|planned|triples|pairs|aim-2|tree-2|aim-3|tree-3]
    python benchmarks/speed/residuals.py --only tree-3 --limit-seconds 600

``adult``: all three-way marginals of ``jam_adult``; ``planned``: all 47,905 triples of 67 attributes,
planned by ``sl.plan`` and not measured, with what the plan prints; ``triples``: 4,096 random ones of them,
planned, measured and reconstructed;
``pairs``: all pairs of 100 attributes; ``aim-2`` and ``aim-3``: AIM by residuals on 100 attributes, all pairs
and 2,000 random triples; ``tree-2`` and ``tree-3``: the same by trees of at most 10 MB, which are left after
``--limit-seconds`` with what they have spent by then. Wide tables are drawn: 20,000 records, 2 to 12 values,
each attribute like one before it in half of the records. ε = 1, δ = 1e-9, replacement, seeded noise. Each
part runs in a process of its own with one thread. Writes ``benchmarks/results/residuals.json``; seconds are
processor seconds.
"""

import argparse
import json
import math
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
import pyarrow.parquet as pq

import sidelight as sl
from experiment import RESULTS, curator_of, data_folder, machine
from sidelight.data.domain import Domain
from sidelight.data.table import Table
from sidelight.evaluation.workload_errors import workload_error
from sidelight.mechanisms.aim import AIM
from sidelight.mechanisms.hdmm.hdmm import HDMM
from sidelight.privacy.budget import Budget
from sidelight.queries.workload import Workload

RHO = Budget(epsilon=1.0, delta=1e-9).rho()
PATH = RESULTS / "residuals.json"
LIMIT = {"seconds": math.inf}
"""Processor seconds after which a run of AIM is left."""


class OutOfTimeError(Exception):
    """The limit is over."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=PARTS, default=None)
    parser.add_argument("--inside", action="store_true", help="run the part here, and print its result")
    parser.add_argument("--limit-seconds", type=float, default=3600.0, help="when a run of AIM is left")
    asked = parser.parse_args()
    LIMIT["seconds"] = asked.limit_seconds
    if asked.inside:
        print(json.dumps(PARTS[asked.only]()))
        return
    for name in PARTS if asked.only is None else [asked.only]:
        command = [sys.executable, __file__, "--only", name, "--inside"]
        command += ["--limit-seconds", str(asked.limit_seconds)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        found = json.loads(PATH.read_text(encoding="utf-8")) if PATH.exists() else {}
        found |= {"machine": machine(), name: json.loads(done.stdout.splitlines()[-1])}
        PATH.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
        print(name, found[name], flush=True)


def wide(attributes: int, *, seed: int = 0, records: int = 20_000) -> Table:
    """A table of many attributes, each like one before it in half of the records."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(2, 13, attributes)
    codes = np.stack([rng.integers(0, size, records) for size in sizes], axis=1)
    for place in range(1, attributes):
        parent = int(rng.integers(max(0, place - 5), place))
        same = rng.random(records) < 0.5
        codes[same, place] = codes[same, parent] * sizes[place] // sizes[parent]
    return Table.of_codes(Domain.of({f"x{i}": int(size) for i, size in enumerate(sizes)}), codes)


def adult_table() -> Table:
    sizes = json.loads((data_folder() / "jam_adult.domain.json").read_text(encoding="utf-8"))
    columns = pq.read_table(data_folder() / "jam_adult.priv.parquet")
    return Table.of_codes(Domain.of(sizes), np.stack([columns[attr].to_numpy() for attr in sizes], axis=1))


def peak_mb() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def hdmm(table: Table, workload: Workload, *, samples: bool) -> dict[str, Any]:
    """One run of either reconstruction, and what samples of the second lose."""
    found: dict[str, Any] = {"marginals": len(workload)}
    for reconstruction in ("least-squares", "non-negative"):
        curator = curator_of(table, RHO, seed=1)
        began = time.process_time()
        outcome = HDMM(reconstruction=reconstruction).run(curator, workload)  # type: ignore[arg-type]
        took = time.process_time() - began
        error = workload_error(table, outcome, workload, total=table.records)
        found[reconstruction] = {"seconds": round(took, 2), "error": round(error, 4)}
    found["peak_mb"] = peak_mb()
    if samples:
        began = time.process_time()
        drawn = outcome.model.sample(table.records, seed=1)
        found["sample_seconds"] = round(time.process_time() - began, 2)
        error = workload_error(table, drawn, workload, total=table.records)
        found["error_of_records"] = round(error, 4)
    return found


def adult() -> dict[str, Any]:
    table = adult_table()
    return hdmm(table, Workload.marginals(table.domain, degree=3), samples=True)


def planned() -> dict[str, Any]:
    schema = sl.Schema.from_domain(wide(67, records=1).domain)
    began = time.process_time()
    plan = sl.plan(schema=schema, mechanism="hdmm", workload="3-way", epsilon=1.0, delta=1e-9)
    printed = str(plan).splitlines()
    return {
        "marginals": len(plan.workload),
        "residuals": plan.outlook.measurements,
        "seconds": round(time.process_time() - began, 2),
        "peak_mb": peak_mb(),
        "printed": printed,
    }


def triples() -> dict[str, Any]:
    table = wide(67)
    workload = Workload.random_marginals(table.domain, degree=3, number=4096, seed=0)
    return hdmm(table, workload, samples=False)


def pairs() -> dict[str, Any]:
    table = wide(100)
    return hdmm(table, Workload.marginals(table.domain, degree=2), samples=True)


def aim(degree: int, mechanism: AIM) -> dict[str, Any]:
    """One run of AIM: to its end, or to the limit."""
    table = wide(100)
    number = 4950 if degree == 2 else 2000
    workload = Workload.random_marginals(table.domain, degree=degree, number=number, seed=0)
    curator = curator_of(table, RHO, seed=1)
    began = time.process_time()
    select, rounds = curator.select, 0

    def select_in_time(*given: Any) -> Any:
        nonlocal rounds
        if time.process_time() - began > LIMIT["seconds"]:
            raise OutOfTimeError
        rounds += 1
        return select(*given)

    curator.select = select_in_time  # type: ignore[method-assign]
    try:
        outcome = mechanism.run(curator, workload)
    except OutOfTimeError:
        left = float(curator.remaining.value / curator.allotment.value)
        took = time.process_time() - began
        return {
            "marginals": len(workload),
            "stopped_after_seconds": round(took, 1),
            "rounds": rounds,
            "spent": round(1 - left, 3),
        }
    took = time.process_time() - began
    drawn = outcome.model.sample(table.records, seed=1)
    return {
        "marginals": len(workload),
        "seconds": round(took, 1),
        "rounds": rounds,
        "sample_seconds": round(time.process_time() - began - took, 1),
        "error": round(workload_error(table, outcome, workload, total=table.records), 4),
        "error_of_records": round(workload_error(table, drawn, workload, total=table.records), 4),
        "peak_mb": peak_mb(),
    }


BY_RESIDUALS, BY_TREES = AIM(oversized="skip", estimator="residual"), AIM(oversized="skip", max_model_mb=10.0)
PARTS = {
    "adult": adult,
    "planned": planned,
    "triples": triples,
    "pairs": pairs,
    "aim-2": lambda: aim(2, BY_RESIDUALS),
    "tree-2": lambda: aim(2, BY_TREES),
    "aim-3": lambda: aim(3, BY_RESIDUALS),
    "tree-3": lambda: aim(3, BY_TREES),
}

if __name__ == "__main__":
    main()
