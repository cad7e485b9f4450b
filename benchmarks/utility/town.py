"""What a lie costs on a made-up town of 20,000 people, over many seeds: it takes seconds, and no real data.

    python benchmarks/utility/town.py                                    24 seeds of each, ε = 0.1
    python benchmarks/utility/town.py --print                            only the table, from the results

One release strays some 7% from the mean of its like at ε = 0.1, so two seeds cannot tell 10% from nothing;
24 of each tell 4%. A cell that is in the results already is never repeated. All 3-way marginals, models of
1 MB, δ = 1e-9. A name that ends in "-before" says that the sources of commit 06f1c71 ran, which cut off one
attribute at a time.
"""

import argparse
import math
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from hostile_tables import Lie, hostile
from jam_grid import DELTA, mechanism_of
from small_town import DOMAIN, OTHER, PRIVATE, PUBLIC

from experiment import RESULTS, curator_of, mean_and_error
from resumable import read, run_cells
from sidelight.evaluation.workload_errors import workload_error
from sidelight.mechanisms.aperture.aperture import Aperture
from sidelight.mechanisms.base import Outcome
from sidelight.privacy.budget import Budget
from sidelight.queries.workload import Workload

NONE, GOOD = "none", "good"
LIES = (NONE, "another table", "labels permuted in all", "locked", "pairs reversed", GOOD)
MECHANISMS = ("aperture", "aperture-before", "aim")
LIMIT_MB = 1.0
PATH = RESULTS / "town.csv"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--mechanism", default="aperture", choices=MECHANISMS)
    parser.add_argument("--lies", nargs="+", default=list(LIES), choices=LIES)
    parser.add_argument("--epsilon", type=float, default=0.1)
    parser.add_argument("--seeds", type=int, default=24)
    parser.add_argument("--print", action="store_true", help="only the table, from the results")
    asked = parser.parse_args()
    if not asked.print:
        run_cells(PATH, cells(asked), measure)
    print_table()


def cells(asked: argparse.Namespace) -> Iterator[dict[str, Any]]:
    for lie in asked.lies:
        for seed in range(asked.seeds):
            yield {"mechanism": asked.mechanism, "lie": lie, "epsilon": asked.epsilon, "seed": seed}


def measure(mechanism: str, lie: str, epsilon: float, seed: int) -> dict[str, float]:
    """The error of one release."""
    workload = Workload.marginals(DOMAIN, degree=3)
    curator = curator_of(PRIVATE, Budget(epsilon=epsilon, delta=DELTA).rho(), seed=seed)
    release: Outcome
    if mechanism == "aim":
        release = mechanism_of("aim", LIMIT_MB).run(curator, workload, public=None)
    else:
        public = told(lie, seed)
        release = Aperture(max_model_mb=LIMIT_MB, oversized="skip").run(curator, workload, public=public)
    return {"error": workload_error(PRIVATE, release.model, workload, total=PRIVATE.records)}


def told(lie: str, seed: int) -> Lie | None:
    """The public data: none, good ones, or a lie."""
    if lie == NONE:
        return None
    return PUBLIC if lie == GOOD else hostile(lie, PRIVATE, PUBLIC, other=OTHER, seed=seed)


def print_table() -> None:
    """Means with their standard errors, and what each lie costs beside no public data."""
    found: dict[tuple[str, float], dict[str, list[float]]] = {}
    for line in read(PATH):
        group = found.setdefault((line["mechanism"], float(line["epsilon"])), {})
        group.setdefault(line["lie"], []).append(float(line["error"]))
    print("| mechanism | ε | public data | error | beside none | seeds |\n|---|---|---|---|---|---|")
    for (mechanism, epsilon), group in found.items():
        none, none_error = mean_and_error(group[NONE])
        for lie, errors in group.items():
            mean, error = mean_and_error(errors)
            ratio, ratio_error = mean / none, mean / none * math.hypot(error / mean, none_error / none)
            beside = "" if lie == NONE else f"{ratio:.3f} ± {ratio_error:.3f}"
            print(
                f"| {mechanism} | {epsilon:g} | {lie} | {mean:.4f} ± {error:.4f} | {beside} | {len(errors)} |"
            )


if __name__ == "__main__":
    main()
