"""Data cubes: all 256 cuboids of ADULT's eight categorical attributes.

    OMP_NUM_THREADS=1 python benchmarks/utility/mwem_cubes.py

After section 4.3 of Hardt, Ligett and McSherry. A cuboid's error is the mean over its cells of |A − B|, in
counts; drawn are the mean and the maximum over all 256 cuboids. The domain has 38 million cells, so MWEM
takes the factored model, and cuboids above its limit are not measured (they are answered and scored all the
same). Beside it, two releases without a model, whose error is known without running them, at the same pure
ε: Laplace noise on every cuboid (scale 2·256/ε), and Laplace noise on the full table (scale 2/ε), summed up
as needed.
"""

import math
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from experiment import FIGURES, coded_table, columns, curator_of, described, summarise, write_rows
from plot import line_plot
from sidelight.data.table import Table
from sidelight.mechanisms.mwem import MWEM
from sidelight.models.components import Components
from sidelight.privacy.budget import Epsilon
from sidelight.queries.workload import Workload

ATTRS = (
    "workclass", "education", "marital-status", "occupation", "relationship", "race", "sex", "native-country",
)  # fmt: skip
EPSILONS = (0.1, 0.3, 1.0, 3.0)
RUNS = 5
PAPER = {"accounting": "pure", "select_share": 0.5, "max_component_cells": 2**16}
MECHANISMS = {
    "MWEM, T=10": MWEM(rounds=10, **PAPER),
    "MWEM, T=20": MWEM(rounds=20, **PAPER),
    "MWEM, T=40": MWEM(rounds=40, **PAPER),
    "MWEM, T=10, penalty 1": MWEM(rounds=10, penalty="cell", **PAPER),
}


def adult() -> Table:
    about = described("adult")
    values = columns("adult", list(ATTRS))
    codes = {}
    for attr in ATTRS:
        code_of = {label: code for code, label in enumerate(about[attr]["values"])}
        codes[attr] = np.array([code_of[label] for label in values[attr]])
    return coded_table(codes, {attr: about[attr]["size"] for attr in ATTRS})


class Cuboids:
    """Which cells of each cuboid hold records, and how many: all that an error needs.

    A and B have the same total, so Σ|A − B| = n + Σ over cells with records of (|A − B| − A).
    """

    def __init__(self, table: Table) -> None:
        codes = np.asarray(table.codes())
        self.table, self.domain = table, table.domain
        self.held = []
        for query in Workload.cuboids(self.domain):
            axes = self.domain.index(query.attrs)
            shape = self.domain.project(query.attrs).shape
            flat = np.zeros(len(codes), dtype=np.int64)
            for axis, size in zip(axes, shape, strict=True):
                flat = flat * size + codes[:, axis]
            cells, counts = np.unique(flat, return_counts=True)
            self.held.append((query.attrs, np.unravel_index(cells, shape) if shape else (), counts))

    def errors(self, model: Components) -> list[float]:
        errors = []
        for attrs, cells, counts in self.held:
            at = np.full(len(counts), model.total)
            for component in model.components:
                part = tuple(attr for attr in attrs if attr in component.attrs)
                if part:
                    share = model.count(part) / model.total
                    at = at * share[tuple(cells[attrs.index(attr)] for attr in part)]
            distance = self.table.records + (np.abs(at - counts) - at).sum()
            errors.append(float(distance) / self.domain.size(attrs))
        return errors


def without_model(table: Table, epsilon: float) -> dict[str, list[float]]:
    """Expected error of Laplace noise, cuboid by cuboid."""
    workload = Workload.cuboids(table.domain)
    sizes = [table.domain.size(query.attrs) for query in workload]
    scale = 2 / epsilon
    added = [table.domain.size() // size for size in sizes]
    # A sum of k > 1 Laplace draws is close to normal, with variance 2kb².
    summed = [scale if k == 1 else math.sqrt(2 / math.pi) * math.sqrt(2 * k) * scale for k in added]
    return {"Laplace on all cuboids": [256 * scale] * len(sizes), "Laplace on the full table": summed}


def main() -> None:
    table = adult()
    cuboids = Cuboids(table)
    workload = Workload.cuboids(table.domain)
    rows = []

    def add(name: str, epsilon: float, seed: int, errors: list[float]) -> None:
        mean, largest = float(np.mean(errors)), float(np.max(errors))
        rows.append({"mechanism": name, "epsilon": epsilon, "seed": seed, "mean": mean, "max": largest})

    for epsilon in EPSILONS:
        for name, errors in without_model(table, epsilon).items():
            add(name, epsilon, 0, errors)
        for name, mechanism in MECHANISMS.items():
            start = time.perf_counter()
            for seed in range(RUNS):
                release = mechanism.run(curator_of(table, Epsilon(epsilon), seed=seed), workload)
                add(name, epsilon, seed, cuboids.errors(release.model))
            print(f"ε={epsilon} {name}: {time.perf_counter() - start:.0f} s", flush=True)
    write_rows("mwem_cubes", rows)
    draw(rows)


def draw(rows: list[dict]) -> None:
    for value in ("mean", "max"):
        series: dict[str, list] = {}
        for (name, epsilon), (mean, error) in summarise(
            rows, by=("mechanism", "epsilon"), value=value
        ).items():
            print(f"{value:4s} {name:28s} ε={epsilon:<5} {mean:.4g} ± {error:.2g}")
            series.setdefault(name, []).append((epsilon, mean, error))
        title = f"ADULT, 256 cuboids: {value} of the average error per cuboid"
        path = FIGURES / f"mwem_cubes_{value}.svg"
        line_plot(path, series, title, "ε (pure)", "records per cell", log_x=True, log_y=True)


if __name__ == "__main__":
    main()
