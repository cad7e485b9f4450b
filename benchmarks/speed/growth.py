"""How time and memory of AIM, JAM and APERTURE grow: with records, attributes and the size limit.

    python benchmarks/speed/growth.py                        everything that is not in the results yet
    python benchmarks/speed/growth.py --only memory

Writes ``benchmarks/results/growth.csv``, line by line, and three plots ``growth_*.svg``. Data are ADULT's
private split (resampled for other numbers of records), the public sample pub025, ε = 1, all 3-way
marginals. Every cell runs in a process of its own with one thread; seconds are processor seconds of the
run alone. ``peak_mb`` is the most resident memory above what the process held before the run, with the
data and the libraries in it: a tiny run comes first, which loads what is loaded on first use, and what was
freed before the run is given back; ``workload_mb`` is what exact answers to all candidates take at 64 bits.
"""

import argparse
import ctypes
import gc
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "utility"))

import numpy as np
from jam_grid import DELTA
from pairs import load

from experiment import FIGURES, RESULTS, curator_of
from plot import line_plot
from resumable import read, run_cells
from sidelight.data.domain import Domain
from sidelight.data.table import Table
from sidelight.mechanisms.aim import AIM
from sidelight.mechanisms.aperture.aperture import Aperture
from sidelight.mechanisms.base import Mechanism
from sidelight.mechanisms.jam import JAM
from sidelight.models.graphical import GraphicalModel
from sidelight.models.model import Model
from sidelight.models.support import Support
from sidelight.privacy.budget import Budget
from sidelight.queries.workload import Workload

MECHANISMS: dict[str, type[Mechanism]] = {"aim": AIM, "jam": JAM, "aperture": Aperture}
RECORDS = (10_000, 100_000, 1_000_000, 10_000_000)
ATTRIBUTES = (5, 8, 10, 12, 15)
LIMITS = (1.0, 5.0, 20.0, 80.0)
EPSILON = 1.0
PATH = RESULTS / "growth.csv"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=["records", "attributes", "limit", "memory"], default=None)
    parser.add_argument("--mechanisms", nargs="+", default=["aim", "jam"], choices=list(MECHANISMS))
    parser.add_argument("--one", help="a cell, as JSON: run it here and print what was found")
    asked = parser.parse_args()
    if asked.one:
        print(json.dumps(one(**json.loads(asked.one))))
        return
    run_cells(PATH, cells(asked.only, asked.mechanisms), in_a_process)
    plots()


def cells(only: str | None, mechanisms: list[str]) -> Iterator[dict[str, Any]]:
    """What varies, and what stays: 5 MB, all 15 attributes, the 32,384 records as they are (0)."""
    plain = {"records": 0, "attributes": 15, "limit_mb": 5.0}
    if only in (None, "memory"):
        # The size limit comes first: its cells tell memory too.
        for limit in (5.0, 20.0, 80.0):
            for name in MECHANISMS:
                yield {"mechanism": name, **plain, "limit_mb": limit}
    varied = {"limit_mb": LIMITS, "records": RECORDS, "attributes": ATTRIBUTES}
    for what, values in varied.items():
        if only in (None, what.removesuffix("_mb")):
            for value in values:
                for name in mechanisms:
                    yield {"mechanism": name, **plain, what: value}


def in_a_process(**cell: Any) -> dict[str, float]:
    """Run a cell in a process of its own, so that its peak of memory is its own."""
    command = [sys.executable, __file__, "--one", json.dumps(cell)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def one(mechanism: str, records: int, attributes: int, limit_mb: float) -> dict[str, float]:
    """Seconds and peak memory of one run."""
    private, public = data(records, attributes)
    workload = Workload.marginals(private.domain, degree=3)
    recipe = MECHANISMS[mechanism](max_model_mb=limit_mb, oversized="skip")  # type: ignore[call-arg]
    curator = curator_of(private, Budget(epsilon=EPSILON, delta=DELTA).rho(), seed=0)
    warm_up(recipe)
    before = resident()
    began = time.process_time()
    release = recipe.run(curator, workload, public=None if recipe.public_data == "unused" else public)
    seconds = time.process_time() - began
    above = resident(most=True) - before
    counting = time.process_time()
    private.count_many(workload.attribute_sets)
    counting = time.process_time() - counting
    closure = workload.closure(private.domain)
    return {
        "run_seconds": seconds,
        "counting_seconds": counting,
        "model_mb": _bytes(release.model) / 2**20,
        "before_mb": before,
        "peak_mb": above,
        "workload_mb": 8 * sum(private.domain.size(attrs) for attrs in closure) / 2**20,
    }


def warm_up(recipe: Mechanism) -> None:
    """A run on a toy, and two large matrices: libraries load, and reserve what they work in, on first use."""
    domain = Domain.of({"a": 2, "b": 3, "c": 2, "d": 3})
    toy = Table.of_codes(domain, np.random.default_rng(0).integers(0, 2, (300, 4)))
    curator = curator_of(toy, Budget(epsilon=EPSILON, delta=DELTA).rho(), seed=0)
    public = None if recipe.public_data == "unused" else toy
    recipe.run(curator, Workload.marginals(domain, degree=3), public=public)
    matrix = np.ones((1000, 1000))
    _ = matrix @ matrix, matrix @ matrix[0]
    del matrix, _
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)


def _bytes(model: Model) -> int:
    """What the released model takes: its tree, or its records and their weights."""
    if isinstance(model, Support):
        return model.records.nbytes + model.weights.nbytes
    assert isinstance(model, GraphicalModel)
    return model.tree.bytes


def data(records: int, attributes: int) -> tuple[Table, Table]:
    """ADULT and its public sample on the first attributes, with so many records (0: as they are)."""
    private, public = load("adult025")
    some = private.domain.attrs[:attributes]
    rng = np.random.default_rng(0)
    tables = []
    for table, number in ((private, records), (public, 0)):
        codes = table.codes()[:, :attributes]
        if number:
            codes = codes[rng.integers(0, len(codes), number)]
        tables.append(Table.of_codes(table.domain.project(some), codes))
    return tables[0], tables[1]


def resident(*, most: bool = False) -> float:
    """Resident memory in MB: now, and from now on counted anew; or the most since then (Linux)."""
    if not most:
        Path("/proc/self/clear_refs").write_text("5")
    wanted = "VmHWM:" if most else "VmRSS:"
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(wanted)) / 1024


def plots() -> None:
    """Seconds against each of the three, and memory against the size limit."""
    lines = read(PATH)

    def series(x: str, y: str, **where: float) -> dict[str, list[tuple[float, float, float]]]:
        found: dict[str, list[tuple[float, float, float]]] = {}
        for line in lines:
            if all(float(line[name]) == value for name, value in where.items()):
                found.setdefault(line["mechanism"], []).append((float(line[x]), float(line[y]), 0.0))
        return {name: points for name, points in found.items() if len(points) > 1}

    drawn = (
        ("records", series("records", "run_seconds", attributes=15, limit_mb=5.0), "records", True),
        ("attributes", series("attributes", "run_seconds", records=0, limit_mb=5.0), "attributes", False),
        ("limit", series("limit_mb", "run_seconds", records=0, attributes=15), "size limit in MB", True),
    )
    for name, found, label, log_x in drawn:
        if found:
            where, title = FIGURES / f"growth_{name}.svg", f"Seconds of a run on ADULT, ε = 1: {label}"
            line_plot(where, found, title, label, "processor seconds", log_x)
    memory = series("limit_mb", "peak_mb", records=0, attributes=15)
    if memory:
        bound = [(limit, 4 * limit, 0.0) for limit in (5.0, 20.0, 80.0)]
        where = FIGURES / "growth_memory.svg"
        title = "Peak memory of a run above data and libraries"
        line_plot(where, memory | {"4 × limit": bound}, title, "limit in MB", "MB", log_x=True, log_y=True)


if __name__ == "__main__":
    main()
