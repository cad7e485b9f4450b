"""How long mixed statistics take: a million values in a thousand groups, each with an ε of its own.

    python benchmarks/speed/mixed.py        about a minute; writes benchmarks/results/mixed_speed.json

Each is the median of three runs with operating-system noise, the groups already in memory; all of it counts:
rounding, sums or sorts, exact noise, events and a ledger in memory.
"""

import json
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from personalised import personalised_quantile, sample_mean
from sidelight.statistics.group import Group
from sidelight.statistics.grouped_mean import grouped_mean
from sidelight.statistics.mixed_mean import mixed_mean
from sidelight.statistics.mixed_quantile import mixed_quantile

RESULTS = Path(__file__).resolve().parents[1] / "results" / "mixed_speed.json"
GROUPS, PEOPLE = 1000, 1000


def seconds(work: Callable[[], object]) -> float:
    taken = []
    for _ in range(3):
        start = time.perf_counter()
        work()
        taken.append(time.perf_counter() - start)
    return round(statistics.median(taken), 3)


def main() -> None:
    rng = np.random.default_rng(6)
    groups = [Group(rng.normal(50, 5, PEOPLE), epsilon=0.1 + place / GROUPS) for place in range(GROUPS)]
    few = [Group(rng.normal(50, 5, 100_000), epsilon=epsilon) for epsilon in np.linspace(0.1, 1, 10).tolist()]
    region = rng.integers(0, 50, 10**6)
    table = {"income": rng.normal(50, 5, 10**6), "region": region}
    bounds: dict[str, Any] = {"bounds": (0.0, 100.0)}
    work: dict[str, Callable[[], object]] = {
        "mean": lambda: mixed_mean(groups, **bounds),
        "mean, groups merged": lambda: mixed_mean(groups, merge=True, **bounds),
        "mean, variance measured": lambda: mixed_mean(groups, variance="private", **bounds),
        "mean, add-or-remove": lambda: mixed_mean(groups, unit="add-or-remove", **bounds),
        "mean, zCDP": lambda: mixed_mean(groups, accounting="zcdp", delta=1e-9, **bounds),
        "median, density given": lambda: mixed_quantile(groups, 0.5, density=0.08, **bounds),
        "median, density measured": lambda: mixed_quantile(groups, 0.5, **bounds),
        "Sample mean": lambda: sample_mean(groups, threshold="mean", **bounds),
        "PE median, ten groups": lambda: personalised_quantile(few, 0.5, **bounds),
        "mean by region, fifty cells": lambda: grouped_mean(
            table, "income", by="region", cells=list(range(50)), epsilon=1.0, **bounds
        ),
    }
    found = {name: seconds(each) for name, each in work.items()}
    machine = {"cpus": os.cpu_count(), "python": platform.python_version(), "numpy": np.__version__}
    RESULTS.write_text(
        json.dumps({"machine": machine, "groups": GROUPS, "values": 10**6, "seconds": found}, indent=1) + "\n"
    )
    for name, taken in found.items():
        print(f"{taken:7.3f} s  {name}")


if __name__ == "__main__":
    main()
