"""Measured quality against the truth: how far off it is, in σ, and how long it takes.

    OMP_NUM_THREADS=1 python benchmarks/utility/quality.py        half an hour; writes results/quality.csv

ADULT as in JAM's experiments (15 attributes, 32,384 records; 455 three-way marginals), MWEM and PMW-Pub
at three ε, three seeds each, under both units. Noise is seeded, and exact answers go into every
row; they may be published because the table is public already.
"""

import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np

import sidelight as sl
from experiment import coded_table, columns, data_folder, write_rows
from sidelight.curator.curator import Curator
from sidelight.testing import SeededNoise

EPSILONS = (0.1, 1.0, 10.0)
SEEDS = 3
RUNS: dict[str, dict[str, Any]] = {"mwem": {"rounds": 10, "passes": 10}, "pmw-pub": {"rounds": 10}}


def adult() -> tuple[sl.Table, sl.Table]:
    sizes = json.loads((data_folder() / "jam_adult.domain.json").read_text(encoding="utf-8"))
    sizes = {name: spec if isinstance(spec, int) else spec["size"] for name, spec in sizes.items()}
    private, public = (coded_table(columns(f"jam_adult.{part}"), sizes) for part in ("priv", "pub100"))
    return private, public


def rows() -> Iterator[dict[str, Any]]:
    private, public = adult()
    schema = sl.Schema.from_domain(private.domain)
    workload = sl.Workload.marginals(private.domain, degree=3)
    exact = {attrs: private.count(attrs) for attrs in workload.attribute_sets}
    took: list[float] = []
    measure = Curator.mean_errors

    def timed(self: Curator, *given: Any) -> Any:
        start = time.perf_counter()
        found = measure(self, *given)
        took.append(time.perf_counter() - start)
        return found

    Curator.mean_errors = timed  # type: ignore[method-assign]  # to see how long it takes
    for name, settings in RUNS.items():
        for unit in ("replace", "add-or-remove"):
            for epsilon in EPSILONS:
                for seed in range(SEEDS):
                    start = time.perf_counter()
                    release = sl.release(
                        private, schema=schema, epsilon=epsilon, delta=1e-9, unit=unit, mechanism=name,
                        workload=workload, public=public if name == "pmw-pub" else None,
                        noise=SeededNoise(seed), progress=False, **settings,
                    )  # fmt: skip
                    whole = time.perf_counter() - start
                    truth = np.mean(
                        [np.abs(counts - release.count(attrs)).sum() for attrs, counts in exact.items()]
                    )
                    head, by_attribute = release.quality.headline, release.quality.attributes
                    yield {
                        "mechanism": name, "unit": unit, "epsilon": epsilon, "seed": seed,
                        "error": truth / release.total, "measured": head.error, "stddev": head.standard_error,
                        "off_in_stddevs": (head.error - truth / release.total) / head.standard_error,
                        "attribute_stddev": max(m.standard_error for m in by_attribute.values()),
                        "seconds": took[-1], "release_seconds": whole,
                    }  # fmt: skip


def main() -> None:
    found = []
    for row in rows():
        found.append(row)
        print({k: round(v, 5) if isinstance(v, float) else v for k, v in row.items()}, flush=True)
    write_rows("quality", found)
    off = np.array([row["off_in_stddevs"] for row in found])
    print(f"off by {off.std():.2f} σ (1 is right); at most {np.abs(off).max():.2f} of {off.size}")
    print(f"seconds: {np.median([row['seconds'] for row in found]):.2f} at the median")


if __name__ == "__main__":
    main()
