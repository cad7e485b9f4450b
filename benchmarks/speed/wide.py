"""How time, memory and error of mechanisms grow with the number of attributes: 10 to 200.

    python benchmarks/speed/wide.py                            every cell that is not in the results yet
    python benchmarks/speed/wide.py --mechanisms aim --workloads 2-way --attributes 41
    python benchmarks/speed/wide.py --plots                    plots and fitted exponents alone

Tables are made up (``benchmarks/wide_tables.py``): 150,000 records, ε = 1, δ = 1e-9, replacement, seeded
noise, models of at most 20 MB. ``aperture`` has 5,000 public records, ``aperture alone`` has none.
Workloads: all pairs, all triples, 10,000 random triples (``random``), and all pairs where the last two
attributes have 5,000 values each (``5000``); there the error leaves out the pair of these two, which nobody
measures. Every cell runs in a process of its own with one thread. ``run_seconds`` are processor seconds of
the run alone, ``clock_seconds`` those of the clock, which other work on the machine makes longer; ``peak_mb``
is the most resident memory above what the process held before the run; ``error`` is the mean of
‖M(D) − M(p)‖₁/n over the workload, or over 2,000 marginals of it. What the mechanism refuses has no error,
and ``run_seconds`` are those of refusing.
Writes ``benchmarks/results/wide.csv``, line by line, and the figures ``wide_seconds.svg`` and
``wide_memory.svg``; a cell that takes longer than ``--limit-seconds`` by the clock is told as such, and left.
"""

import argparse
import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
from growth import resident, warm_up

from experiment import FIGURES, RESULTS, curator_of
from plot import line_plot
from resumable import read, run_cells
from sidelight.data.domain import Domain
from sidelight.errors import SidelightError
from sidelight.evaluation.workload_errors import workload_error
from sidelight.mechanisms.aim import AIM
from sidelight.mechanisms.aperture.aperture import Aperture
from sidelight.mechanisms.base import Mechanism
from sidelight.mechanisms.hdmm.hdmm import HDMM
from sidelight.mechanisms.ladder.ladder import Ladder
from sidelight.mechanisms.mst import MST
from sidelight.privacy.budget import Budget
from sidelight.queries.workload import Workload
from wide_tables import wide

PATH = RESULTS / "wide.csv"
LIMIT_MB = 20.0
MOST_JUDGED = 2000
MOST_CELLS = 10**7
COLUMNS = ("marginals", "run_seconds", "clock_seconds", "peak_mb", "measured", "error")
MECHANISMS: dict[str, Mechanism] = {
    "aim": AIM(max_model_mb=LIMIT_MB, oversized="skip", estimator="tree"),
    "aim by residuals": AIM(max_model_mb=LIMIT_MB, oversized="skip", estimator="residual"),
    "aperture": Aperture(max_model_mb=LIMIT_MB, oversized="skip"),
    "aperture alone": Aperture(max_model_mb=LIMIT_MB, oversized="skip"),
    "hdmm": HDMM(),
    "ladder": Ladder(oversized="skip"),
    "mst": MST(max_model_mb=LIMIT_MB, oversized="skip"),
}
AIMS = ("aim", "aim by residuals")
ATTRIBUTES = {"2-way": (10, 20, 41, 70, 100, 200), "3-way": (10, 20, 41), "random": (41, 100), "5000": (20,)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--mechanisms", nargs="+", default=list(MECHANISMS), choices=list(MECHANISMS))
    parser.add_argument("--workloads", nargs="+", default=list(ATTRIBUTES), choices=list(ATTRIBUTES))
    parser.add_argument("--attributes", nargs="+", type=int, default=None)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--limit-seconds", type=float, default=3600.0, help="when a run is left")
    parser.add_argument("--plots", action="store_true", help="draw what there is, and run nothing")
    parser.add_argument("--one", help="a cell, as JSON: run it here and print what was found")
    asked = parser.parse_args()
    if asked.one:
        print(json.dumps(one(**json.loads(asked.one))))
        return
    if not asked.plots:
        run_cells(PATH, cells(asked), partial(in_a_process, asked.limit_seconds))
    plots()


def cells(asked: argparse.Namespace) -> Iterator[dict[str, Any]]:
    for workload in asked.workloads:
        for attributes in asked.attributes or ATTRIBUTES[workload]:
            for mechanism in asked.mechanisms:
                for seed in range(asked.seeds):
                    yield {
                        "mechanism": mechanism,
                        "workload": workload,
                        "attributes": attributes,
                        "seed": seed,
                    }


def in_a_process(limit: float, **cell: Any) -> dict[str, float]:
    """Run a cell in a process of its own, so that its peak of memory is its own."""
    command = [sys.executable, __file__, "--one", json.dumps(cell)]
    try:
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, timeout=limit)
    except subprocess.TimeoutExpired:
        return {**dict.fromkeys(COLUMNS, math.nan), "clock_seconds": limit}
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def asked_for(domain: Domain, name: str) -> Workload:
    if name == "random":
        return Workload.random_marginals(domain, degree=3, number=10_000, seed=0)
    return Workload.marginals(domain, degree=3 if name == "3-way" else 2)


def one(mechanism: str, workload: str, attributes: int, seed: int) -> dict[str, float]:
    """Seconds, peak memory and error of one run."""
    data = wide(attributes, large=(5000, 5000) if workload == "5000" else ())
    wanted = asked_for(data.private.domain, workload)
    recipe = MECHANISMS[mechanism]
    curator = curator_of(data.private, Budget(epsilon=1.0, delta=1e-9).rho(), seed=seed)
    asking = time.process_time()
    try:
        recipe.check(data.private.domain, wanted, data.public if mechanism == "aperture" else None)
    except SidelightError as refused:
        print(refused, file=sys.stderr)
        nothing = dict.fromkeys(COLUMNS, math.nan)
        return {**nothing, "marginals": len(wanted), "run_seconds": time.process_time() - asking}
    warm_up(recipe)
    before = resident()
    began, clock = time.process_time(), time.perf_counter()
    outcome = recipe.run(curator, wanted, public=data.public if mechanism == "aperture" else None)
    seconds, clocked = time.process_time() - began, time.perf_counter() - clock
    above = resident(most=True) - before
    small = [query for query in wanted if data.private.domain.size(query.attrs) <= MOST_CELLS]
    judged = Workload(small[:: max(1, len(small) // MOST_JUDGED)])
    return {
        "marginals": len(wanted),
        "run_seconds": seconds,
        "clock_seconds": clocked,
        "peak_mb": above,
        "measured": len(outcome.measurements),
        "error": workload_error(data.private, outcome, judged, total=data.private.records),
    }


def plots() -> None:
    """Draw seconds and memory against attributes, and print fitted exponents and errors beside AIM's."""
    lines = read(PATH)
    drawn = (("run_seconds", "seconds", "processor seconds"), ("peak_mb", "memory", "MB above the data"))
    for column, name, label in drawn:
        series = {}
        for workload in ("2-way", "3-way"):
            for mechanism in MECHANISMS:
                points = _points(lines, mechanism, workload, column)
                if len(points) > 1:
                    series[f"{mechanism}, {workload}"] = points
                    print(f"{column:12} {mechanism:17} {workload}: {_exponent(points)}")
        if series:
            title = f"One run on 150,000 records, ε = 1: {name}"
            line_plot(
                FIGURES / f"wide_{name}.svg", series, title, "attributes", label, log_x=True, log_y=True
            )
    for line in lines:
        errors = {o["mechanism"]: float(o["error"]) for o in lines if _same(o, line)}
        # Its tree where that ended, else its residuals.
        aim = [errors[name] for name in AIMS if not math.isnan(errors.get(name, math.nan))]
        ratio = f"{float(line['error']) / aim[0]:.3f}" if aim else "-"
        print(" ".join(line.values()), "of aim:", ratio)


def _same(one: dict[str, str], other: dict[str, str]) -> bool:
    return all(one[name] == other[name] for name in ("workload", "attributes", "seed"))


def _points(
    lines: list[dict[str, str]], mechanism: str, workload: str, column: str
) -> list[tuple[float, float, float]]:
    found: dict[float, list[float]] = {}
    for line in lines:
        is_asked = line["mechanism"] == mechanism and line["workload"] == workload
        # What was refused has no error.
        if is_asked and not math.isnan(float(line[column])) and not math.isnan(float(line["error"])):
            found.setdefault(float(line["attributes"]), []).append(float(line[column]))
    return [(at, float(np.mean(values)), 0.0) for at, values in sorted(found.items())]


def _exponent(points: list[tuple[float, float, float]]) -> str:
    """The power of the number of attributes that fits best, and from where to where."""
    logs = np.array([(math.log(x), math.log(max(y, 1e-3))) for x, y, _ in points])
    slope = np.polyfit(logs[:, 0], logs[:, 1], 1)[0]
    return f"attributes^{slope:.1f} from {points[0][0]:g} to {points[-1][0]:g}"


if __name__ == "__main__":
    main()
