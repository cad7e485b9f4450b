"""APERTURE beside JAM in one run: ADULT with its first public sample, ε = 1, 5 MB, one core.

    python benchmarks/speed/aperture_speed.py                 three seeds each
    python benchmarks/speed/aperture_speed.py --huge          also a public table of 10^7 records

Writes ``benchmarks/results/aperture_speed.json``: processor seconds of JAM, of APERTURE with the public fit,
and of APERTURE with a prior fitted before; errors; and for the huge public table, drawn with replacement
from the public sample, seconds and memory of its fit. Runs alternate, so that a slow spell meets all.
"""

import argparse
import json
import os
import resource
import sys
import time
from pathlib import Path
from typing import Any

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "utility"))

import numpy as np
from jam_grid import DELTA, Answers
from pairs import load

from experiment import RESULTS, curator_of, machine, mean_and_error
from sidelight.data.table import Table
from sidelight.evaluation.workload_errors import workload_error
from sidelight.mechanisms.aperture.aperture import Aperture
from sidelight.mechanisms.base import Mechanism
from sidelight.mechanisms.jam import JAM
from sidelight.privacy.budget import Budget
from sidelight.queries.workload import Workload

EPSILON, LIMIT_MB = 1.0, 5.0
HUGE = 10_000_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--huge", action="store_true", help="also a public table of 10^7 records")
    asked = parser.parse_args()

    path = RESULTS / "aperture_speed.json"
    results: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    results |= {
        "data": "jam_adult, pub025",
        "epsilon": EPSILON,
        "limit_mb": LIMIT_MB,
        "machine": machine(),
        **in_turn(asked.seeds),
    }
    if asked.huge:
        results["huge public table"] = huge()
    path.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(results, indent=1))


def in_turn(seeds: int) -> dict[str, Any]:
    """JAM, APERTURE and APERTURE with a fitted prior, one after the other for every seed."""
    private, public = load("adult025")
    workload = Workload.marginals(private.domain, degree=3)
    aperture = Aperture(max_model_mb=LIMIT_MB, oversized="skip")
    prior = aperture.prior(public, private.domain, workload.closure(private.domain))
    recipes: dict[str, tuple[Mechanism, Any]] = {
        "JAM": (JAM(max_model_mb=LIMIT_MB, oversized="skip"), public),
        "APERTURE": (aperture, public),
        "APERTURE, prior reused": (aperture, prior),
    }
    found: dict[str, dict[str, list[float]]] = {name: {"seconds": [], "errors": []} for name in recipes}
    for seed in range(seeds):
        for name, (recipe, given) in recipes.items():
            curator = curator_of(private, Budget(epsilon=EPSILON, delta=DELTA).rho(), seed=seed)
            began = time.process_time()
            release = recipe.run(curator, workload, public=given)
            found[name]["seconds"].append(round(time.process_time() - began, 1))
            error = workload_error(private, Answers(release.model, workload), workload, total=private.records)
            found[name]["errors"].append(round(error, 5))
    return {
        name: {"mean_seconds": round(mean_and_error(runs["seconds"])[0], 1), **runs}
        for name, runs in found.items()
    }


def huge() -> dict[str, float]:
    """The public fit on 10^7 public records; its peak memory, and what the table itself takes."""
    private, public = load("adult025")
    drawn = np.random.default_rng(0).integers(0, public.records, HUGE)
    table = Table.of_codes(public.domain, public.codes()[drawn])
    closure = Workload.marginals(private.domain, degree=3).closure(private.domain)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    began = time.process_time()
    Aperture(max_model_mb=LIMIT_MB, oversized="skip").prior(table, private.domain, closure)
    return {
        "records": HUGE,
        "fit_seconds": round(time.process_time() - began, 1),
        "table_mb": round(HUGE * len(public.domain.attrs) / 2**20, 1),
        "peak_mb_above": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024 - before, 1),
    }


if __name__ == "__main__":
    main()
