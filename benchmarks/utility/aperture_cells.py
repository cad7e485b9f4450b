"""APERTURE on JAM's splits: errors of the model, of sampled records, of the public model; and CPU time.

    python benchmarks/utility/aperture_cells.py                                  a handful of cells, seed 0
    python benchmarks/utility/aperture_cells.py --data adult025 fire --epsilons 0.1 1 10 --seeds 2

A cell that is in the results already is never repeated; a public model is fitted once a run of the script.
Compare with jam_grid.py, which has the rivals under the same limit.
"""

import argparse
import sys
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from jam_grid import DELTA, Answers
from pairs import PAIRS, load

from experiment import RESULTS, curator_of
from resumable import run_cells
from sidelight.evaluation.workload_errors import workload_error
from sidelight.mechanisms.aperture.aperture import Aperture
from sidelight.models.graphical import GraphicalModel
from sidelight.privacy.budget import Budget
from sidelight.public.prior import Prior
from sidelight.queries.workload import Workload

HANDFUL = (
    ("titanic", 1.0), ("titanic", 10.0), ("adult100", 0.1), ("adult025", 0.1), ("adult025", 1.0),
    ("fire", 0.1), ("salary", 1.0),
)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", nargs="+", choices=list(PAIRS))
    parser.add_argument("--epsilons", nargs="+", type=float, default=[1.0])
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--limit", type=float, default=5.0, help="model size limit in MB")
    parser.add_argument("--no-public", action="store_true", help="start from independence")
    asked = parser.parse_args()

    run_cells(RESULTS / "aperture_cells.csv", cells(asked), measure)


def cells(asked: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """What was asked for; all of one seed before the next."""
    pairs = HANDFUL if asked.data is None else [(name, eps) for name in asked.data for eps in asked.epsilons]
    for seed in range(asked.seeds):
        for name, epsilon in pairs:
            public = "none" if asked.no_public else "all"
            yield {"data": name, "public": public, "limit_mb": asked.limit, "epsilon": epsilon, "seed": seed}


def measure(data: str, public: str, limit_mb: float, epsilon: float, seed: int) -> dict[str, float]:
    """One cell: errors, what the arbiter cut off, and CPU seconds with and without the public fit."""
    private, _ = load(data)
    workload = Workload.marginals(private.domain, degree=3)
    n = private.records
    prior, fit_seconds = _prior(data, public, limit_mb)
    curator = curator_of(private, Budget(epsilon=epsilon, delta=DELTA).rho(), seed=seed)
    began = time.process_time()
    release = _recipe(limit_mb).run(curator, workload, public=prior)
    seconds = time.process_time() - began
    before = GraphicalModel(private.domain, n, {} if prior is None else prior.model.potentials)
    return {
        "error": workload_error(private, Answers(release.model, workload), workload, total=n),
        "sampled_error": workload_error(private, release.model.sample(n, seed=seed), workload, total=n),
        "public_model_error": workload_error(private, Answers(before, workload), workload, total=n),
        "cut": float(len(release.aperture.cut)),
        "bare": float(release.aperture.is_bare),
        "fit_cpu_seconds": fit_seconds,
        "run_cpu_seconds": seconds,
    }


def _recipe(limit_mb: float) -> Aperture:
    return Aperture(max_model_mb=limit_mb, oversized="skip")


@cache
def _prior(data: str, public: str, limit_mb: float) -> tuple[Prior | None, float]:
    """The public model, and the CPU seconds that it took."""
    if public == "none":
        return None, 0.0
    private, table = load(data)
    closure = Workload.marginals(private.domain, degree=3).closure(private.domain)
    began = time.process_time()
    prior = _recipe(limit_mb).prior(table, private.domain, closure)
    return prior, time.process_time() - began


if __name__ == "__main__":
    main()
