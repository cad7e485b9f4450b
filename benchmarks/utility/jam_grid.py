"""JAM's Figures 1–3 on its own splits: AIM, JAM, PMW-Pub and the raw public table, ε from 0.03 to 10.

    python benchmarks/utility/jam_grid.py                       every cell of the 5 MB grid, seed 0
    python benchmarks/utility/jam_grid.py --seeds 3 --data adult025 titanic fire
    python benchmarks/utility/jam_grid.py --limit 80 --data adult025 titanic --epsilons 0.1 1 10

A cell that is in the results already is never repeated. Workload error is JAM's eq. 1 over all
3-way marginals, of the model itself and of n sampled records.
"""

import argparse
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
from pairs import JAM as JAM_PAIRS
from pairs import PAIRS, load, private_name, with_private

from experiment import RESULTS, curator_of
from resumable import run_cells
from sidelight.data.count_source import count_each
from sidelight.data.table import Table
from sidelight.errors import SettingError
from sidelight.evaluation.workload_errors import workload_error
from sidelight.mechanisms.aim import AIM
from sidelight.mechanisms.base import Mechanism
from sidelight.mechanisms.jam import JAM
from sidelight.mechanisms.pmw_pub import PMWPub
from sidelight.privacy.budget import Budget
from sidelight.queries.workload import Workload

EPSILONS = (0.03, 0.1, 0.31, 1.0, 3.16, 10.0)
DELTA = 1e-9
PMW_ROUNDS = (100, 50, 20, 10, 5, 2, 1)
"""The most of these that the budget bears."""


def mechanism_of(label: str, limit: float) -> Mechanism:
    """A rival, under a size limit where it keeps a graphical model."""
    if label.startswith("pmw-pub"):
        return PMWPub(rounds=int(label.removeprefix("pmw-pub-")))
    return {"aim": AIM, "jam": JAM}[label](max_model_mb=limit, oversized="skip")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", nargs="+", default=list(JAM_PAIRS), choices=list(PAIRS))
    parser.add_argument("--epsilons", nargs="+", type=float, default=list(EPSILONS))
    parser.add_argument("--mechanisms", nargs="+", default=["aim", "jam", "public"])
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--limit", type=float, default=5.0, help="model size limit in MB")
    asked = parser.parse_args()

    run_cells(RESULTS / "jam_grid.csv", cells(asked), measure)


def cells(asked: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """What was asked for; all of one seed before the next."""
    for seed in range(asked.seeds):
        for name in asked.data:
            for label in asked.mechanisms:
                # The raw public table knows no ε, no seed and no limit; AIM sees no public data.
                is_public = label == "public"
                limit = 0.0 if label in ("public", "pmw-pub") else asked.limit
                shown = private_name(name) if label == "aim" else name
                for epsilon in [0.0] if is_public else asked.epsilons:
                    yield {
                        "data": shown, "mechanism": label, "limit_mb": limit, "epsilon": epsilon,
                        "seed": 0 if is_public else seed,
                    }  # fmt: skip


def measure(data: str, mechanism: str, limit_mb: float, epsilon: float, seed: int) -> dict[str, float]:
    """One cell: errors of the model and of sampled records, and the seconds of the run alone."""
    private, public = load(with_private(data))
    workload = Workload.marginals(private.domain, degree=3)
    n = private.records
    if mechanism == "public":
        scaled = _Scaled(public, n / public.records)
        return {
            "error": workload_error(private, scaled, workload, total=n),
            "sampled_error": np.nan,
            "run_seconds": 0.0,
        }
    began = time.perf_counter()
    # PMW-Pub refuses more rounds than the budget bears, and charges nothing then.
    labels = [f"pmw-pub-{rounds}" for rounds in PMW_ROUNDS] if mechanism == "pmw-pub" else [mechanism]
    for label in labels:
        recipe = mechanism_of(label, limit_mb)
        curator = curator_of(private, Budget(epsilon=epsilon, delta=DELTA).rho(), seed=seed)
        try:
            release = recipe.run(curator, workload, public=None if recipe.public_data == "unused" else public)
            break
        except SettingError:
            if label == labels[-1]:
                raise
    seconds = time.perf_counter() - began
    model = Answers(release.model, workload)
    return {
        "error": workload_error(private, model, workload, total=n),
        "sampled_error": workload_error(private, release.model.sample(n, seed=seed), workload, total=n),
        "run_seconds": seconds,
    }


class _Scaled:
    def __init__(self, table: Table, factor: float) -> None:
        self._table, self._factor = table, factor

    def count(self, attrs: tuple[str, ...]) -> np.ndarray:
        return self._table.count(attrs) * self._factor


class Answers:
    """A model's answers to a workload, all asked in one pass."""

    def __init__(self, model: Any, workload: Workload) -> None:
        self.domain, self.total = model.domain, model.total
        wanted = list(workload.attribute_sets)
        self._answers = {wanted[place]: counts for place, counts in count_each(model, wanted)}

    def count(self, attrs: tuple[str, ...]) -> np.ndarray:
        return self._answers[attrs]


if __name__ == "__main__":
    main()
