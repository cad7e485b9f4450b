"""JAM at its paper's size: ADULT with its first public sample, ε = 1, T = 30, 80 MB, one core.

    python benchmarks/speed/jam_speed.py                     three seeds at 80 MB
    python benchmarks/speed/jam_speed.py --reference         beside them, 1,000 plain steps every round
    python benchmarks/speed/jam_speed.py --limit 20 --reference

Writes ``benchmarks/results/jam_speed.json``: processor seconds, so that other work on the machine counts as
little as it can, and the average workload error of the model. The reference is the paper's way of fitting:
1,000 steps of plain mirror descent after every selection. Under the same noise the two select
differently once their models differ, so errors are compared as means over seeds.
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
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "utility"))

from jam_grid import DELTA
from pairs import load

from experiment import RESULTS, curator_of, machine, mean_and_error
from sidelight.evaluation.workload_errors import workload_error
from sidelight.fit.private_pgm import MirrorDescent
from sidelight.mechanisms.jam import JAM
from sidelight.privacy.budget import Budget
from sidelight.queries.workload import Workload

EPSILON, ROUNDS = 1.0, 30
REFERENCE = MirrorDescent(accelerate=False, max_steps=1000, tolerance=1e-300)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--limit", type=float, default=80.0, help="model size limit in MB")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--reference", action="store_true", help="also 1,000 plain steps every round")
    asked = parser.parse_args()

    path = RESULTS / "jam_speed.json"
    recipes = {"ours": JAM(rounds=ROUNDS, max_model_mb=asked.limit)}
    if asked.reference:
        recipes["1,000 plain steps"] = JAM(
            rounds=ROUNDS, max_model_mb=asked.limit, estimator=REFERENCE, final_estimator=REFERENCE
        )
    for name, recipe in recipes.items():
        for seed in range(asked.seeds):
            keep(path, f"{asked.limit:g} MB", name, seed, measure(recipe, seed))


def measure(recipe: JAM, seed: int) -> dict[str, float]:
    """One run: its processor seconds, the size of its last model, and its error."""
    private, public = load("adult025")
    workload = Workload.marginals(private.domain, degree=3)
    curator = curator_of(private, Budget(epsilon=EPSILON, delta=DELTA).rho(), seed=seed)
    began = time.process_time()
    release = recipe.run(curator, workload, public=public)
    seconds = time.process_time() - began
    asking = time.process_time()
    sets = workload.attribute_sets
    answers = {sets[place]: counts for place, counts in release.model.count_each(sets)}
    answering = time.process_time() - asking
    return {
        "seconds": round(seconds, 1),
        "model_mb": round(release.model.tree.bytes / 2**20, 1),
        "seconds_for_455_answers": round(answering, 2),
        "error": round(workload_error(private, _Given(answers), workload, total=private.records), 5),
    }


def keep(path: Path, limit: str, name: str, seed: int, found: dict[str, float]) -> None:
    """Put one run beside those there are."""
    results: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    results |= {"data": "jam_adult, pub025", "epsilon": EPSILON, "rounds": ROUNDS, "machine": machine()}
    runs = results.setdefault(limit, {}).setdefault(name, {"seeds": {}})
    runs["seeds"][str(seed)] = found
    for figure in ("seconds", "error"):
        mean, _ = mean_and_error(run[figure] for run in runs["seeds"].values())
        runs[f"mean_{figure}"] = round(mean, 5)
    path.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    print(limit, name, f"seed {seed}", found, flush=True)


class _Given:
    """Answers that were computed already."""

    def __init__(self, answers: dict[tuple[str, ...], Any]) -> None:
        self._answers = answers

    def count(self, attrs: tuple[str, ...]) -> Any:
        return self._answers[attrs]


if __name__ == "__main__":
    main()
