"""The other families beside AIM, JAM, PMW-Pub and APERTURE: error and time on real tables.

    python benchmarks/utility/families.py --data titanic adult025 --only mst hdmm --epsilons 1 --seeds 1
    python benchmarks/utility/families.py --export tables.npz --data titanic adult025
    python benchmarks/utility/families.py --tables tables.npz --data titanic --only gem-pub-5 --device cuda

δ = 1e-9, replacement; the workload is all three-way marginals. A cell that is in
``benchmarks/results/families.csv`` (or ``$OUT/families.csv``) already is never repeated. ``error`` is the
mean of ‖q(D) − q(A)‖₁/n over the workload, ``max_error`` the largest |q(D) − q(A)|/n of one cell;
``cpu_seconds`` are processor seconds of this process, with ``--device cuda`` beside a GPU (``device``).
AIM, JAM, PMW-Pub and APERTURE under the same workload are in ``jam_grid.csv`` and ``aperture_cells.csv``;
``families_table.py`` prints all of them side by side. An exported file of tables lets a machine without
PyArrow run the networks.
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
from pairs import PAIRS, load

from experiment import RESULTS, curator_of
from resumable import run_cells
from sidelight.data.domain import Domain
from sidelight.data.table import Table
from sidelight.mechanisms.registry import mechanism_of
from sidelight.privacy.budget import Budget
from sidelight.queries.workload import Workload

MECHANISMS: dict[str, tuple[str, dict[str, Any]]] = {
    "mst": ("mst", {"oversized": "skip"}),
    "hdmm": ("hdmm", {}),
    "dualquery": ("dualquery", {}),
    "gem": ("gem", {}),
    "gem-2021": ("gem", {"form": "gem"}),
    "gem-pub-5": ("gem-pub", {"rounds": 5}),
    "gem-pub-50": ("gem-pub", {"rounds": 50}),
    "gem-pub-2021-5": ("gem-pub", {"form": "gem", "rounds": 5}),
    "aim": ("aim", {"oversized": "skip", "max_model_mb": 5.0}),
    "jam": ("jam", {"oversized": "skip", "max_model_mb": 5.0}),
    "pmw-pub": ("pmw-pub", {"rounds": 50}),
    "aperture": ("aperture", {"oversized": "skip", "max_model_mb": 5.0}),
}
"""What each line of the table is."""
ASKED: dict[str, Any] = {"tables": None, "device": "cpu"}
"""Where tables come from, and where networks are trained."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", choices=PAIRS, nargs="+", default=["titanic", "adult025", "fire"])
    parser.add_argument("--only", choices=MECHANISMS, nargs="+", default=list(MECHANISMS))
    parser.add_argument("--epsilons", type=float, nargs="+", default=[1.0])
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--tables", type=Path, help="a file that --export wrote")
    parser.add_argument("--export", type=Path, help="write the tables of --data into a file, and stop")
    asked = parser.parse_args()
    if asked.export:
        export(asked.export, asked.data)
        return
    ASKED.update(tables=asked.tables, device=asked.device)
    folder = Path(os.environ["OUT"]) if "OUT" in os.environ else RESULTS
    run_cells(folder / "families.csv", cells(asked), one_run)


def cells(asked: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """What was asked for; all of one seed before the next."""
    for seed in range(asked.seeds):
        for epsilon in asked.epsilons:
            for data in asked.data:
                for name in asked.only:
                    device = asked.device if name.startswith("gem") else "cpu"
                    yield {
                        "data": data,
                        "mechanism": name,
                        "epsilon": epsilon,
                        "seed": seed,
                        "device": device,
                    }


def one_run(data: str, mechanism: str, epsilon: float, seed: int, device: str) -> dict[str, float]:
    """Error and time of one run."""
    private, public = tables(data)
    name, settings = MECHANISMS[mechanism]
    made = mechanism_of(name, settings | ({"device": device} if name.startswith("gem") else {}))
    workload = Workload.marginals(private.domain, degree=3)
    curator = curator_of(private, Budget(epsilon=epsilon, delta=1e-9).rho(), seed=seed)
    began = time.process_time()
    outcome = made.run(curator, workload, public=None if made.public_data == "unused" else public)
    took = time.process_time() - began
    totals, largest = [], 0.0
    for query in workload:
        gap = np.abs(outcome.count(query.attrs) - private.count(query.attrs)) / private.records
        totals.append(float(gap.sum()))
        largest = max(largest, float(gap.max()))
    return {
        "error": float(np.mean(totals)),
        "max_error": largest,
        "cpu_seconds": took,
        "rounds": len(outcome.measurements) or len(outcome.events),
    }


@cache
def tables(name: str) -> tuple[Table, Table]:
    """The private table and the public one, as codes."""
    if ASKED["tables"] is None:
        return load(name)
    with np.load(ASKED["tables"]) as held:
        domain = Domain.of(json.loads(str(held[f"{name} domain"])))
        private, public = (Table.of_codes(domain, held[f"{name} {part}"]) for part in ("private", "public"))
    return private, public


def export(path: Path, names: list[str]) -> None:
    """Write tables into one file, for a machine without PyArrow."""
    held: dict[str, Any] = {}
    for name in names:
        private, public = load(name)
        held[f"{name} domain"] = json.dumps(private.domain.sizes)
        dtype = np.min_scalar_type(max(private.domain.shape))
        held[f"{name} private"], held[f"{name} public"] = (
            table.codes().astype(dtype) for table in (private, public)
        )
    np.savez_compressed(path, **held)


if __name__ == "__main__":
    main()
