"""Measured quality against the truth: how far off it is, in σ, and how much time it takes.

    OMP_NUM_THREADS=1 python benchmarks/utility/quality.py            results/quality.csv, then the summary
    OMP_NUM_THREADS=1 python benchmarks/utility/quality.py --seeds 3

Pennsylvania in 2018 (27,323 records, 11 attributes, 165 three-way marginals; public: Ohio), MST and PMW-Pub
at three ε under both units, 2% of the budget. A release is one row, and is not made again. Its columns: the
exact mean error of the three-way marginals, the measured one, its σ, and how far the two are apart in σ; the
root mean square of that over all means of the release (three degrees, eleven attributes), which should be 1;
and what share of the processor's time the look took. Noise is seeded, and exact answers are in every row:
they may be published because the tables are public.
"""

import argparse
import sys
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np

import sidelight as sl
from experiment import RESULTS
from resumable import run_cells
from sidelight.curator.curator import Curator
from sidelight.testing import SeededNoise
from tables import income

PATH = RESULTS / "quality.csv"
RUNS: dict[str, dict[str, Any]] = {"mst": {"max_model_mb": 5}, "pmw-pub": {"rounds": 10}}
tables = cache(income)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=1)
    lines = run_cells(PATH, cells(parser.parse_args().seeds), measured)
    print("mechanism  unit            ε   exact   measured ± 2σ      off in σ   all means, in σ")
    for one in lines:
        exact, found, stddev, off, spread = (
            float(one[name]) for name in ("exact", "measured", "stddev", "off_in_stddevs", "rms_of_all")
        )
        print(
            f"{one['mechanism']:10s} {one['unit']:14s} {one['epsilon']:>4s} {exact:7.3f} {found:10.3f} ± "
            f"{2 * stddev:.3f} {off:12.2f} {spread:12.2f}"
        )
    squares = [float(one["rms_of_all"]) ** 2 for one in lines]
    shares = [float(one["share_of_time"]) for one in lines]
    print(f"{len(lines)} releases: off by {np.sqrt(np.mean(squares)):.2f} σ (1 is right), over all means")
    print(f"{np.median(shares):.1%} of the processor's time at the median")


def cells(seeds: int) -> Iterator[dict[str, Any]]:
    for seed in range(seeds):
        for mechanism in RUNS:
            for unit in ("replace", "add-or-remove"):
                for epsilon in (0.1, 1.0, 10.0):
                    yield {"mechanism": mechanism, "unit": unit, "epsilon": epsilon, "seed": seed}


def measured(mechanism: str, unit: str, epsilon: float, seed: int) -> dict[str, float]:
    """One release, what it says of itself, and the truth."""
    private, public = tables("PA"), tables("OH")
    looks: list[float] = []
    measure = Curator.mean_errors

    def timed(self: Curator, *given: Any) -> Any:
        start = time.process_time()
        found = measure(self, *given)
        looks.append(time.process_time() - start)
        return found

    Curator.mean_errors = timed  # type: ignore[method-assign]  # to see how long it takes
    start = time.process_time()
    try:
        release = sl.release(
            private, schema=sl.Schema.from_domain(private.domain), epsilon=epsilon, delta=1e-9, unit=unit,
            mechanism=mechanism, public=public if mechanism == "pmw-pub" else None, bins="as declared",
            noise=SeededNoise(seed), progress=False, **RUNS[mechanism],
        )  # fmt: skip
    finally:
        Curator.mean_errors = measure  # type: ignore[method-assign]
    whole = time.process_time() - start
    quality = release.quality
    assert quality is not None
    errors = {
        attrs: float(np.abs(private.count(attrs) - release.count(attrs)).sum()) / release.total
        for degree in (1, 2, 3)
        for attrs in sl.Workload.marginals(private.domain, degree=degree).attribute_sets
    }

    def truth(degree: int, attr: str | None = None) -> float:
        kept = [e for a, e in errors.items() if len(a) == degree and (attr is None or attr in a)]
        return float(np.mean(kept))

    apart = [
        (mean.error - truth(int(name[0]))) / mean.standard_error for name, mean in quality.degrees.items()
    ]
    apart += [
        (mean.error - truth(3, attr)) / mean.standard_error for attr, mean in quality.attributes.items()
    ]
    return {
        "exact": truth(3),
        "measured": quality.headline.error,
        "stddev": quality.headline.standard_error,
        "off_in_stddevs": apart[0],
        "rms_of_all": float(np.sqrt(np.mean(np.square(apart)))),
        "share_of_time": looks[0] / whole,
    }


if __name__ == "__main__":
    main()
