"""APERTURE with a good public table that lacks attributes, beside the whole table and none.

    python benchmarks/utility/partial.py                             seed 0, ε = 1 and 0.1
    python benchmarks/utility/partial.py --seeds 3 --epsilons 0.03 0.1 1 10
    python benchmarks/utility/partial.py --print                     only the table, from the results

What is lacking is drawn by the seed, and nested: all but two attributes, a third of them, one; and two other
choices of the one. The error should stay between that of the whole table and that of none, and fall as
attributes are added. A cell that is in the results already is never repeated. All 3-way marginals, models of
5 MB, δ = 1e-9. A name that ends in "-before" says that the sources of commit 09c2d84 ran.
"""

import argparse
import math
import sys
import time
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
from jam_grid import DELTA, Answers
from pairs import load

from experiment import RESULTS, curator_of, mean_and_error
from resumable import read, run_cells
from sidelight.data.table import Table
from sidelight.evaluation.workload_errors import workload_error
from sidelight.mechanisms.aperture.aperture import Aperture
from sidelight.privacy.budget import Budget
from sidelight.queries.workload import Workload

DATA = (
    "income-pa-oh", "titanic", "fire", "adult025", "employment-2018-2015", "nist-ma-national",
    "income-ga-ca", "nist-tx-national", "taxi", "salary",
)  # fmt: skip
EPSILONS = (1.0, 0.1, 10.0, 0.03)
PARTS = ("all but two", "a third", "one", "one (b)", "one (c)")
"""What is lacking."""
PUBLIC = ("none", *PARTS, "nothing")
"""From no public data to the whole table, which lacks nothing."""
LIMIT_MB = 5.0
BAR = 1.02
PATH = RESULTS / "partial.csv"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data", nargs="+", default=list(DATA), choices=DATA)
    parser.add_argument("--epsilons", nargs="+", type=float, default=[1.0, 0.1])
    parser.add_argument("--lacking", nargs="+", default=list(PUBLIC), choices=PUBLIC)
    parser.add_argument("--mechanism", default="aperture", choices=["aperture", "aperture-before"])
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
                for lacking in asked.lacking:
                    yield {
                        "data": data, "lacking": lacking, "mechanism": asked.mechanism, "epsilon": epsilon,
                        "seed": seed,
                    }  # fmt: skip


def measure(data: str, lacking: str, mechanism: str, epsilon: float, seed: int) -> dict[str, float]:
    """One cell: how many attributes the public table has, the error, and CPU seconds."""
    private, _ = load(data)
    workload = Workload.marginals(private.domain, degree=3)
    curator = curator_of(private, Budget(epsilon=epsilon, delta=DELTA).rho(), seed=seed)
    public, prior, fit_seconds = _prior(data, lacking, seed)
    began = time.process_time()
    release = _aperture().run(curator, workload, public=prior)
    seconds = time.process_time() - began
    return {
        "error": workload_error(private, Answers(release.model, workload), workload, total=private.records),
        "attributes": 0 if public is None else len(public.domain.attrs),
        "fit_cpu_seconds": fit_seconds,
        "run_cpu_seconds": seconds,
    }


def part(table: Table, lacking: str, *, seed: int) -> Table | None:
    """A public table without some attributes, or None."""
    if lacking == "none":
        return None
    order = np.random.default_rng(seed).permutation(len(table.domain.attrs))
    kept = {
        "nothing": order,
        "one": order[:-1],
        "one (b)": np.delete(order, -2),
        "one (c)": np.delete(order, -3),
        "a third": order[: -round(len(order) / 3)],
        "all but two": order[:2],
    }[lacking]
    places = np.sort(kept)
    domain = table.domain.project(tuple(table.domain.attrs[place] for place in places))
    return Table.of_codes(domain, table.codes()[:, places])


def _aperture() -> Aperture:
    return Aperture(max_model_mb=LIMIT_MB, oversized="skip")


@cache
def _prior(data: str, lacking: str, seed: int) -> tuple[Table | None, Any, float]:
    """The public table, APERTURE's model of it, and the CPU seconds that it took; the same for every ε."""
    private, whole = load(data)
    table = part(whole, lacking, seed=seed)
    if table is None:
        return None, None, 0.0
    closure = Workload.marginals(private.domain, degree=3).closure(private.domain)
    began = time.process_time()
    prior = _aperture().prior(table, private.domain, closure)
    return table, prior, time.process_time() - began


def print_table(mechanism: str) -> None:
    """Every cell, its ratio to no public data and to the whole table; how many are above the bar."""
    lines = [line for line in read(PATH) if line["mechanism"] == mechanism]
    print("| data | ε | " + " | ".join(PUBLIC) + " | worst / none | one / nothing |")
    print("|---" * (len(PUBLIC) + 4) + "|")
    ratios: list[float] = []
    for data in DATA:
        for epsilon in sorted(EPSILONS):
            found = {lacking: _errors(lines, data, epsilon, lacking) for lacking in PUBLIC}
            means = {lacking: mean_and_error(errors)[0] for lacking, errors in found.items() if errors}
            to_none = [means[one] / means["none"] for one in PARTS if one in means and "none" in means]
            if to_none:
                ratios += to_none
                shown = " | ".join(f"{means[one]:.4f}" if one in means else "" for one in PUBLIC)
                to_whole = means.get("one", math.nan) / means.get("nothing", math.nan)
                print(f"| {data} | {epsilon:g} | {shown} | {max(to_none):.3f} | {to_whole:.3f} |")
    if ratios:
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        print(
            f"\n{len(ratios)} cells beside none: {sum(ratio > BAR for ratio in ratios)} above {BAR}, ", end=""
        )
        print(f"largest {max(ratios):.3f}, geometric mean {mean:.3f}")


def _errors(lines: Sequence[dict[str, str]], data: str, epsilon: float, lacking: str) -> list[float]:
    wanted = {"data": data, "epsilon": str(epsilon), "lacking": lacking}
    return [float(line["error"]) for line in lines if all(line[k] == v for k, v in wanted.items())]


if __name__ == "__main__":
    main()
