"""Whether a release follows the answers to single attributes that it paid for: standardised residuals.

    python benchmarks/utility/one_way_residuals.py                       every data set, ε = 1, seed 0
    python benchmarks/utility/one_way_residuals.py --epsilons 0.1 1 10 --seeds 3 --public whole none
    python benchmarks/utility/one_way_residuals.py --print               only the table, from the results

All answers to one attribute are merged by their precisions into one, y with standard deviation σ. A cell's
residual is (x − y)/σ, where x is the count of the release, or of n records sampled from it. A release that
gives the answers back has residuals 0; one that knows the exact counts has unit variance. More than 1, in the
root mean square or by far in one cell (a rare class), says that an answer was paid for and not kept.
Beside them: the same against the exact counts, (x − exact)/σ, where the answers alone would have 1.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
from jam_grid import DELTA, mechanism_of
from numpy.typing import NDArray
from pairs import load

from experiment import RESULTS, curator_of, mean_and_error
from resumable import read, run_cells
from sidelight.data.count_source import CountSource
from sidelight.measurement import Measurement
from sidelight.mechanisms.aperture.aperture import Aperture
from sidelight.privacy.budget import Budget
from sidelight.queries.workload import Workload

DATA = (
    "income-pa-oh", "titanic", "fire", "adult025", "employment-2018-2015", "nist-ma-national", "income-ga-ca",
    "nist-tx-national", "adult100", "taxi", "salary",
)  # fmt: skip
LIMIT_MB = 5.0
PATH = RESULTS / "one_way_residuals.csv"
SHOWN = ("model", "sampled", "model_exact", "sampled_exact")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data", nargs="+", default=list(DATA), choices=DATA)
    parser.add_argument("--public", nargs="+", default=["whole"], choices=["whole", "none"])
    parser.add_argument("--mechanism", default="aperture", choices=["aperture", "aperture-before", "aim"])
    parser.add_argument("--epsilons", nargs="+", type=float, default=[1.0])
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--print", action="store_true", help="only the table, from the results")
    asked = parser.parse_args()
    if asked.print:
        print_table(asked.mechanism)
    else:
        run_cells(PATH, cells(asked), measure)


def cells(asked: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """What was asked for; all of one seed before the next."""
    for seed in range(asked.seeds):
        for epsilon in asked.epsilons:
            for data in asked.data:
                for public in ["none"] if asked.mechanism == "aim" else asked.public:
                    yield {
                        "data": data, "public": public, "mechanism": asked.mechanism, "epsilon": epsilon,
                        "seed": seed,
                    }  # fmt: skip


def measure(data: str, public: str, mechanism: str, epsilon: float, seed: int) -> dict[str, float]:
    """One run: the root mean square of the residuals, and the largest."""
    private, _ = load(data)
    workload = Workload.marginals(private.domain, degree=3)
    curator = curator_of(private, Budget(epsilon=epsilon, delta=DELTA).rho(), seed=seed)
    if mechanism == "aim":
        release = mechanism_of("aim", LIMIT_MB).run(curator, workload)
    else:
        release = _aperture().run(curator, workload, public=_prior(data) if public == "whole" else None)
    answers = merged(release.measurements)
    sampled = release.model.sample(private.records, seed=seed)
    found: dict[str, float] = {"attributes": len(answers)}
    for name, source in (("model", release.model), ("sampled", sampled)):
        to_answer, to_exact = residuals(answers, source), residuals(answers, source, exact=private)
        found[name] = _rms(to_answer)
        found[f"{name}_worst"] = float(np.abs(to_answer).max())
        found[f"{name}_exact"] = _rms(to_exact)
        found[f"{name}_exact_worst"] = float(np.abs(to_exact).max())
    return found


Merged = dict[str, tuple[NDArray[np.float64], float]]
"""Of each attribute the merged answer, and its standard deviation."""


def merged(measurements: Sequence[Measurement]) -> Merged:
    """All answers to each single attribute as one."""
    found: Merged = {}
    attrs = {one.query.attrs[0] for one in measurements if len(one.query.attrs) == 1}
    for attr in sorted(attrs):
        answers = [one for one in measurements if one.query.attrs == (attr,)]
        precision = sum(one.precision for one in answers)
        found[attr] = sum(one.precision * one.answer for one in answers) / precision, precision**-0.5
    return found


def residuals(
    answers: Merged, source: CountSource, *, exact: CountSource | None = None
) -> NDArray[np.float64]:
    """(x − y)/σ in all cells of all single attributes; with ``exact``, of that instead of y."""
    found = []
    for attr, (answer, stddev) in answers.items():
        centre = answer if exact is None else exact.count((attr,))
        found.append((source.count((attr,)) - centre) / stddev)
    return np.concatenate(found)


def _rms(values: NDArray[np.float64]) -> float:
    return float(np.sqrt(np.mean(values**2)))


def _aperture() -> Aperture:
    return Aperture(max_model_mb=LIMIT_MB, oversized="skip")


@cache
def _prior(data: str) -> Any:
    private, public = load(data)
    closure = Workload.marginals(private.domain, degree=3).closure(private.domain)
    return _aperture().prior(public, private.domain, closure)


def print_table(mechanism: str) -> None:
    """Root mean squares over cells, averaged over seeds; in brackets the largest of all."""
    lines = [line for line in read(PATH) if line["mechanism"] == mechanism]
    print("| data | public | ε | " + " | ".join(SHOWN) + " |\n" + "|---" * (3 + len(SHOWN)) + "|")
    for key in dict.fromkeys((line["data"], line["public"], line["epsilon"]) for line in lines):
        runs = [line for line in lines if (line["data"], line["public"], line["epsilon"]) == key]
        shown = [
            f"{mean_and_error([float(run[name]) for run in runs])[0]:.2f} "
            f"({max(float(run[f'{name}_worst']) for run in runs):.1f})"
            for name in SHOWN
        ]
        print(f"| {' | '.join(key)} | {' | '.join(shown)} |")


if __name__ == "__main__":
    main()
