"""NIST's own score of releases of its national excerpt, 2019: APERTURE without public data beside AIM.

    SDNIST_PYTHON=… python benchmarks/utility/nist_score.py --seeds 3
    python benchmarks/utility/nist_score.py --print                     only the table, from the results

27,253 records of 18 attributes (ages in groups of five years). The score is SDNist's K-Marginal over all
pairs of attributes, 1000 where synthetic records have the very shares of the private ones, 0 where the two
have nothing in common; SDNist runs in an environment of its own, since its requirements exclude ours. As many
records are drawn from each release as there were. δ = 1e-9, models of 80 MB, one record is replaced.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from jam_grid import DELTA
from pairs import load

from experiment import BENCHMARKS, RESULTS, curator_of, mean_and_error
from resumable import read, run_cells
from sidelight.data.table import Table
from sidelight.mechanisms.aim import AIM
from sidelight.mechanisms.aperture.aperture import Aperture
from sidelight.mechanisms.base import Mechanism
from sidelight.privacy.budget import Budget
from sidelight.queries.workload import Workload

MECHANISMS: dict[str, Mechanism] = {"aim": AIM(), "aperture": Aperture()}
WORKLOADS = {"3-way": 3, "2-way": 2}
PATH = RESULTS / "nist_score.csv"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--epsilons", nargs="+", type=float, default=[1.0])
    parser.add_argument("--workloads", nargs="+", default=list(WORKLOADS), choices=WORKLOADS)
    parser.add_argument("--mechanisms", nargs="+", default=list(MECHANISMS), choices=MECHANISMS)
    parser.add_argument("--print", action="store_true", help="only the table, from the results")
    asked = parser.parse_args()
    if not asked.print:
        if "SDNIST_PYTHON" not in os.environ:
            sys.exit("Let SDNIST_PYTHON name an interpreter that has sdnist.")
        run_cells(PATH, cells(asked), measure)
    table()


def cells(asked: argparse.Namespace) -> Iterator[dict[str, Any]]:
    for seed in range(asked.seeds):
        for workload in asked.workloads:
            for epsilon in asked.epsilons:
                for mechanism in asked.mechanisms:
                    yield {"mechanism": mechanism, "workload": workload, "epsilon": epsilon, "seed": seed}


def measure(mechanism: str, workload: str, epsilon: float, seed: int) -> dict[str, float]:
    """The score of one release."""
    private = _private()
    asked = Workload.marginals(private.domain, degree=WORKLOADS[workload])
    curator = curator_of(private, Budget(epsilon=epsilon, delta=DELTA).rho(), seed=seed)
    outcome = MECHANISMS[mechanism].run(curator, asked)
    return {"score": _score(private, outcome.model.sample(private.records, seed=seed))}


@cache
def _private() -> Table:
    private, _ = load("nist-national-tx")
    return private


def _score(private: Table, synthetic: Table) -> float:
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / name for name in ("private.csv", "synthetic.csv")]
        for path, records in zip(paths, (private, synthetic), strict=True):
            lines = [
                ",".join(private.domain.attrs),
                *(",".join(map(str, r)) for r in records.codes().tolist()),
            ]
            path.write_text("\n".join(lines), encoding="utf-8")
        script = BENCHMARKS / "peers" / "nist_score.py"
        said = subprocess.run(
            [os.environ["SDNIST_PYTHON"], str(script), *map(str, paths)],
            check=True, capture_output=True, text=True,
        )  # fmt: skip
    return float(said.stdout.split()[-1])


def table() -> None:
    """Mean scores and their standard errors over seeds."""
    found: dict[tuple[str, str, str], list[float]] = {}
    for line in read(PATH):
        found.setdefault((line["workload"], line["epsilon"], line["mechanism"]), []).append(
            float(line["score"])
        )
    print("| asked for | ε | " + " | ".join(MECHANISMS) + " |")
    print("|---|---|" + "---|" * len(MECHANISMS))
    for workload, epsilon in dict.fromkeys((w, e) for w, e, _ in found):
        shown = []
        for mechanism in MECHANISMS:
            mean, error = mean_and_error(found.get((workload, epsilon, mechanism), [float("nan")]))
            shown.append(f"{mean:.1f} ± {error:.1f}")
        print(f"| {workload} | {float(epsilon):g} | " + " | ".join(shown) + " |")


if __name__ == "__main__":
    main()
