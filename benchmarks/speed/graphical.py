"""How fast the graphical-model engine fits, answers and generates, and which descent wins.

Run as ``python benchmarks/speed/graphical.py``; writes ``benchmarks/results/graphical.json``. Needs the
data sets of the JAM paper (``SIDELIGHT_DATA``, or ``../shared/data``). Times are processor seconds of
one thread, so that other work on the machine counts as little as it can.
"""

import itertools
import json
import math
import os
import platform
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import numpy as np  # noqa: E402  # after the number of threads is set
import pyarrow.parquet as pq  # noqa: E402

from sidelight.data.domain import Attrs, Domain  # noqa: E402
from sidelight.data.table import Table  # noqa: E402
from sidelight.fit.private_pgm import MirrorDescent  # noqa: E402
from sidelight.measurement import Measurement  # noqa: E402
from sidelight.queries.query import Marginal  # noqa: E402
from sidelight.trees.triangulation import SizeOracle  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
DATA = Path(os.environ.get("SIDELIGHT_DATA", ROOT.parent / "shared" / "data"))
RHO = 0.0149730577
"""ε = 1 at δ = 1e-9."""
PROBLEMS = [("adult", 10, 5), ("adult", 30, 5), ("titanic", 15, 5), ("salary", 12, 5)]
"""Data set, marginals measured beside all one-ways, size limit in MB."""


def load(name: str) -> tuple[Domain, Table]:
    domain = Domain.of(json.loads((DATA / f"jam_{name}.domain.json").read_text()))
    columns = pq.read_table(DATA / f"jam_{name}.priv.parquet")
    return domain, Table.of_codes(domain, np.stack([columns[a].to_numpy() for a in domain.attrs], axis=1))


def dependence(table: Table, attrs: Attrs) -> float:
    """How far a marginal is from the product of its one-ways, in L1."""
    counts = table.count(attrs) / table.records
    product = np.ones(())
    for axis in range(counts.ndim):
        one = counts.sum(axis=tuple(other for other in range(counts.ndim) if other != axis))
        product = np.multiply.outer(product, one)
    return float(np.abs(counts - product).sum())


def measured(name: str, count: int, megabytes: float) -> tuple[Domain, list[Measurement], int]:
    """Noisy marginals such as a run at ε = 1 has at its end: all one-ways, and the dependent ones."""
    domain, table = load(name)
    rng = np.random.default_rng(0)
    candidates = [c for k in (2, 3) for c in itertools.combinations(domain.attrs, k)]
    one_ways: list[Attrs] = [(attr,) for attr in domain.attrs]
    chosen: list[Attrs] = []
    while len(chosen) < count:
        sizes = SizeOracle(domain, [*one_ways, *chosen]).cells_with_each(candidates)
        fitting = [c for c, s in zip(candidates, sizes, strict=True) if 8 * s <= megabytes * 2**20]
        fitting = [c for c in fitting if c not in chosen]
        some = rng.choice(len(fitting), min(8, len(fitting)), replace=False)
        chosen.append(max((fitting[i] for i in some), key=lambda attrs: dependence(table, attrs)))
    measurements = []
    for attrs in [*one_ways, *chosen]:
        rho = 0.05 * RHO / len(one_ways) if len(attrs) == 1 else 0.8 * 0.95 * RHO / count
        stddev = 1 / math.sqrt(rho)
        exact = table.count(attrs).reshape(-1).astype(np.float64)
        measurements.append(Measurement(Marginal(attrs), exact + rng.normal(0, stddev, exact.size), stddev))
    return domain, measurements, table.records


def seconds(work: Callable[[], Any]) -> tuple[float, Any]:
    start = time.process_time()
    done = work()
    return round(time.process_time() - start, 3), done


def fits(name: str, count: int, megabytes: float) -> dict[str, Any]:
    domain, measurements, total = measured(name, count, megabytes)

    def fit(method: MirrorDescent) -> tuple[float, Any]:
        return seconds(lambda: method.estimate(domain, measurements, total=float(total)))

    _, long = fit(MirrorDescent(max_steps=5000, tolerance=1e-12, polish_steps=100))
    best = long.fit.objective
    methods = {"accelerated": MirrorDescent(), "plain": MirrorDescent(accelerate=False, max_steps=3000)}
    row: dict[str, Any] = {"data": name, "measured": count, "cells": long.tree.cells, "long run": best}
    for label, method in methods.items():
        spent, model = fit(method)
        row[label] = {
            "seconds": spent,
            "steps": model.fit.steps,
            "stopped by itself": model.fit.converged,
            "excess": round(model.fit.objective / best - 1, 6),
            "ms a step": round(1000 * spent / model.fit.steps, 3),
        }
    rest = MirrorDescent().estimate(domain, measurements[:-1], total=float(total))
    spent, warm = seconds(
        lambda: MirrorDescent().estimate(domain, measurements, total=float(total), start=rest)
    )
    row["warm start, one more marginal"] = {
        "seconds": spent,
        "steps": warm.fit.steps,
        "excess": round(warm.fit.objective / best - 1, 6),
    }
    model = MirrorDescent().estimate(domain, measurements, total=float(total))
    workload = list(itertools.combinations(domain.attrs, 3))
    model.count(())
    row["all three-way marginals"], found = seconds(lambda: dict(model.count_each(workload)))
    answers = [found[place] for place in range(len(workload))]
    row["a million records"], _ = seconds(lambda: model.sample(1_000_000, seed=1))
    row["mean L1 / total of as many records as the data"] = rounding(
        model.sample(total, seed=1), workload, answers
    )
    return row


def rounding(table: Table, workload: list[Attrs], answers: list[Any]) -> dict[str, float]:
    """How far records stray from the model: ours, and independent draws of each marginal."""
    rng = np.random.default_rng(0)
    total = table.records
    ours = [
        np.abs(table.count(attrs) - answer).sum() for attrs, answer in zip(workload, answers, strict=True)
    ]
    drawn = [np.abs(rng.multinomial(total, a.reshape(-1) / a.sum()) - a.reshape(-1)).sum() for a in answers]
    return {
        "rounding": round(float(np.mean(ours)) / total, 4),
        "independent draws": round(float(np.mean(drawn)) / total, 4),
    }


def steps_at_a_hundred_thousand_cells() -> dict[str, Any]:
    """1,000 plain mirror-descent steps on a model of about 10⁵ cells."""
    domain, measurements, total = measured("adult", 16, 1.0)
    method = MirrorDescent(accelerate=False, max_steps=1000, tolerance=1e-300)
    spent, model = seconds(lambda: method.estimate(domain, measurements, total=float(total)))
    return {"cells": model.tree.cells, "measured": len(measurements), "seconds for 1,000 steps": spent}


def sizes() -> dict[str, Any]:
    """The price of every candidate of a round."""
    domain, measurements, _ = measured("adult", 30, 5)
    candidates = [c for k in (1, 2, 3) for c in itertools.combinations(domain.attrs, k)]
    spent, _ = seconds(
        lambda: SizeOracle(domain, [m.query.attrs for m in measurements]).cells_with_each(candidates)
    )
    return {"candidates": len(candidates), "seconds": spent}


def main() -> None:
    if not DATA.is_dir():
        print("real data sets are absent: set SIDELIGHT_DATA to the folder that holds them")
        return
    found = {
        "machine": {
            "cpus": os.cpu_count(),
            "python": platform.python_version(),
            "numpy": np.__version__,
            "threads": 1,
        },
        "1,000 steps": steps_at_a_hundred_thousand_cells(),
        "sizes": sizes(),
        "fits": [fits(*problem) for problem in PROBLEMS],
    }
    where = ROOT / "benchmarks" / "results" / "graphical.json"
    where.parent.mkdir(parents=True, exist_ok=True)
    where.write_text(json.dumps(found, indent=2) + "\n")
    print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
