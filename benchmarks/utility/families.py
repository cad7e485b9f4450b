"""The other families beside AIM, JAM, PMW-Pub and APERTURE: error and time on real tables.

    python benchmarks/utility/families.py --data titanic adult025 --only mst hdmm --epsilons 1 --seeds 3
    python benchmarks/utility/families.py --only aperture --again
    python benchmarks/utility/families.py --export tables.npz --data titanic adult025
    python benchmarks/utility/families.py --tables tables.npz --data titanic --only gem-pub-5 --device cuda

δ = 1e-9, replacement; the workload is all three-way marginals. A cell that is in
``benchmarks/results/families.csv`` (or ``$OUT/families.csv``) is not repeated, unless ``--again`` says
so: then its line is dropped first, say after a mechanism has changed. ``error`` is the mean of
‖q(D) − q(A)‖₁/n over the workload, ``max_error`` the largest |q(D) − q(A)|/n of one cell; ``cpu_seconds`` are
processor seconds of this process, with ``--device cuda`` beside a GPU (``device``). GEM-Pub's public training
does not depend on the noise, so each table has it once, and its seconds are counted in every line.
``families_table.py`` prints all mechanisms side by side. An exported file of tables lets a machine without
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
from typing import Any, Literal

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
from pairs import PAIRS, load

from experiment import RESULTS, curator_of
from resumable import drop, run_cells
from sidelight.data.domain import Domain
from sidelight.data.table import Table
from sidelight.mechanisms.gem.gem_pub import GEMPub
from sidelight.mechanisms.registry import mechanism_of
from sidelight.models.product_mixture import ProductMixture
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
DATA = (
    "titanic", "adult025", "fire", "salary", "taxi", "nist-ma-national", "income-pa-oh",
    "employment-2018-2015",
)  # fmt: skip
"""The columns of the table."""
ASKED: dict[str, Any] = {"tables": None, "device": "cpu"}
"""Where tables come from, and where networks are trained."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", choices=PAIRS, nargs="+", default=list(DATA))
    parser.add_argument("--only", choices=MECHANISMS, nargs="+", default=list(MECHANISMS))
    parser.add_argument("--epsilons", type=float, nargs="+", default=[1.0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--again", action="store_true", help="run cells anew that were run before")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--tables", type=Path, help="a file that --export wrote")
    parser.add_argument("--export", type=Path, help="write the tables of --data into a file, and stop")
    asked = parser.parse_args()
    if asked.export:
        export(asked.export, asked.data)
        return
    ASKED.update(tables=asked.tables, device=asked.device)
    folder = Path(os.environ["OUT"]) if "OUT" in os.environ else RESULTS
    if asked.again:
        drop(folder / "families.csv", cells(asked))
    run_cells(folder / "families.csv", cells(asked), one_run)


def cells(asked: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """What was asked for; all of one seed before the next."""
    for seed in range(asked.seeds):
        for epsilon in asked.epsilons:
            for data in asked.data:
                for name in asked.only:
                    yield {"data": data, "mechanism": name, "epsilon": epsilon, "seed": seed}


def one_run(data: str, mechanism: str, epsilon: float, seed: int) -> dict[str, Any]:
    """Error and time of one run."""
    private, public = tables(data)
    name, settings = MECHANISMS[mechanism]
    device = ASKED["device"] if name.startswith("gem") else "cpu"
    made = mechanism_of(name, settings | ({"device": device} if name.startswith("gem") else {}))
    workload = Workload.marginals(private.domain, degree=3)
    curator = curator_of(private, Budget(epsilon=epsilon, delta=1e-9).rho(), seed=seed)
    given, before = (public, 0.0) if name != "gem-pub" else started(data, settings.get("form", "margnet"))
    began = time.process_time()
    outcome = made.run(curator, workload, public=None if made.public_data == "unused" else given)
    took = before + time.process_time() - began
    totals, largest = [], 0.0
    for query in workload:
        gap = np.abs(outcome.count(query.attrs) - private.count(query.attrs)) / private.records
        totals.append(float(gap.sum()))
        largest = max(largest, float(gap.max()))
    return {
        "device": device,
        "error": float(np.mean(totals)),
        "max_error": largest,
        "cpu_seconds": took,
        "rounds": len(outcome.measurements) or len(outcome.events),
    }


@cache
def started(data: str, form: Literal["gem", "margnet"]) -> tuple[ProductMixture, float]:
    """The network that public data have trained, and the processor seconds that it took."""
    _, public = tables(data)
    made = GEMPub(form=form, device=ASKED["device"])
    began = time.process_time()
    wanted = list(made._candidates(public.domain, Workload.marginals(public.domain, degree=3)))
    network = made._start(public.domain, wanted, public).mixture(float(public.records))
    return network, time.process_time() - began


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
