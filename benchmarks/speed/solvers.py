"""Which descent fits a graphical model soonest, and what a warm start gains.

    python benchmarks/speed/solvers.py                  every problem; writes benchmarks/results/solvers.json
    python benchmarks/speed/solvers.py "JAM titanic"    some of them, and writes nothing

The problems are the last rounds of AIM and JAM at ε = 1 under a limit of 5 MB, and two simulated tables.
The rivals, all on the same tree: plain mirror descent with a line search, accelerated mirror descent (what
the package does), dual averaging (McKenna, Sheldon, Miklau 2019, their RDA), and L-BFGS on the potentials.
Counted are the times that the tree is summed, and processor seconds of one thread, until the objective is
0.1% above the lowest that any of them ever reached.

L-BFGS needs the slope in the potentials, Cov(T)·∇L, which is how the marginals move along ∇L: two more sums
a step. Of dual averaging the objective is that of its average, for which it has no potentials yet.
"""

import contextlib
import itertools
import json
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")
sys.path[:0] = [str(Path(__file__).resolve().parent.parent / part) for part in (".", "utility")]

import numpy as np  # noqa: E402  # after the number of threads is set
from pairs import load  # noqa: E402

from experiment import RESULTS, curator_of, machine  # noqa: E402
from sidelight.data.domain import Domain  # noqa: E402
from sidelight.fit.least_squares import LeastSquares, estimate_total  # noqa: E402
from sidelight.fit.private_pgm import MirrorDescent, _Descent  # noqa: E402
from sidelight.measurement import Measurement  # noqa: E402
from sidelight.mechanisms.aim import AIM  # noqa: E402
from sidelight.mechanisms.jam import JAM  # noqa: E402
from sidelight.models.graphical import GraphicalModel  # noqa: E402
from sidelight.privacy.budget import Budget  # noqa: E402
from sidelight.queries.query import Marginal  # noqa: E402
from sidelight.queries.workload import Workload  # noqa: E402
from sidelight.trees.arrays import arrays  # noqa: E402
from sidelight.trees.junction_tree import JunctionTree  # noqa: E402
from sidelight.trees.sum_product import Calibrator  # noqa: E402

MOST_SUMS = 3000
LONG_RUN = 5000
CLOSE = 1.001
PROBLEMS = ["AIM titanic", "JAM titanic", "AIM adult", "JAM adult", "simulated chain", "simulated web"]

Trace = list[tuple[int, float, float]]
"""Sums of the tree, processor seconds, objective."""


class Reached(Exception):
    """The objective is low enough."""


@dataclass
class Problem:
    """Measurements, and the model of the round before the last of them."""

    domain: Domain
    measurements: list[Measurement]
    settings: dict[str, Any]
    before: GraphicalModel | None

    def squares_and_tree(self) -> tuple[LeastSquares, Calibrator]:
        total = self.settings.get("total") or estimate_total(self.domain, self.measurements)
        library = arrays("numpy")
        squares = LeastSquares(
            self.domain, self.measurements, total=total,
            precisions=self.settings.get("precisions"), library=library,
        )  # fmt: skip
        tree = JunctionTree.of(self.domain, squares.sets)
        return squares, Calibrator(tree, squares.sets, library=library, fixed=[])

    def fit(self, method: MirrorDescent, start: GraphicalModel | None = None) -> tuple[float, GraphicalModel]:
        begun = time.process_time()
        model = method.estimate(self.domain, self.measurements, start=start, **self.settings)
        return time.process_time() - begun, model


class Recorder(MirrorDescent):
    """Keeps what it was last asked to fit."""

    last: Problem | None = None

    def estimate(self, domain: Domain, measurements: Any, **settings: Any) -> GraphicalModel:
        before = settings.pop("start", None)
        type(self).last = Problem(domain, list(measurements), settings, before)
        return super().estimate(domain, measurements, start=before, **settings)


def problem_of(name: str) -> Problem:
    kind, data = name.split()
    if kind == "simulated":
        return simulated(data)
    private, public = load({"adult": "adult025"}.get(data, data))
    recipe = {"AIM": AIM, "JAM": JAM}[kind]
    mechanism = recipe(
        max_model_mb=5.0, oversized="skip",
        estimator=Recorder(tolerance=3e-3, max_steps=200),
        final_estimator=MirrorDescent(max_steps=1, polish_steps=0),
    )  # fmt: skip
    curator = curator_of(private, Budget(epsilon=1.0, delta=1e-9).rho(), seed=0)
    mechanism.run(
        curator, Workload.marginals(private.domain, degree=3), public=public if kind == "JAM" else None
    )
    assert Recorder.last is not None
    return Recorder.last


def simulated(shape: str) -> Problem:
    """Ten attributes, each of which depends on the one before; pairs along the chain, or a web of triples."""
    rng = np.random.default_rng(0)
    sizes = {f"x{i}": int(rng.integers(3, 13)) for i in range(10)}
    domain, records = Domain.of(sizes), 20_000
    columns = [rng.integers(0, sizes["x0"], records)]
    for size in list(sizes.values())[1:]:
        law = rng.dirichlet(np.full(size, 0.3), columns[-1].max() + 1)
        columns.append((rng.random((records, 1)) > law[columns[-1]].cumsum(axis=1)[:, :-1]).sum(axis=1))
    names = list(sizes)
    sets = [(a,) for a in names] + list(itertools.pairwise(names))
    if shape == "web":
        sets += [tuple(names[i : i + 3]) for i in range(8)] + [
            (names[i], names[i + 3]) for i in range(0, 7, 2)
        ]
    measurements = []
    for attrs in sets:
        flat = np.ravel_multi_index([columns[names.index(a)] for a in attrs], domain.project(attrs).shape)
        counts = np.bincount(flat, minlength=domain.size(attrs))
        measurements.append(Measurement(Marginal(attrs), counts + rng.normal(0, 40.0, counts.size), 40.0))
    settings = {"total": float(records)}
    before = MirrorDescent().estimate(domain, measurements[:-1], **settings)
    return Problem(domain, measurements, settings, before)


# The rivals: each goes on until it has reached enough, or summed the tree too often.


class _Traced(_Descent):
    """The package's descent, telling every objective that it accepts."""

    trace: Trace
    begun: float
    enough: float

    def _is_close(self, gap: float, objective: float) -> bool:
        self.trace.append((self._steps, time.process_time() - self.begun, objective))
        if objective <= self.enough:
            raise Reached
        return False


def package_descent(problem: Problem, enough: float, *, accelerate: bool) -> Trace:
    squares, calibrator = problem.squares_and_tree()
    settings = MirrorDescent(accelerate=accelerate, max_steps=MOST_SUMS, polish_steps=0)
    descent = _Traced(settings, squares, calibrator, 0.0)
    descent.trace, descent.begun, descent.enough = [], time.process_time(), enough
    with contextlib.suppress(Reached):
        descent.run(np.zeros(squares.cells))
    return descent.trace


class Tree:
    """Shares from potentials, counted."""

    def __init__(self, problem: Problem) -> None:
        self.squares, self._calibrator = problem.squares_and_tree()
        self.sums = 0

    def shares(self, theta: Any) -> Any:
        parts = zip(self.squares.slices, self.squares.shapes, strict=True)
        self._calibrator.run([theta[where].reshape(shape) for where, shape in parts])
        self.sums += 1
        return np.concatenate([table.reshape(-1) for table in self._calibrator.marginals()])


def dual_averaging(problem: Problem, enough: float) -> Trace:
    """Nesterov's averaged gradients with steps that grow linearly, under a curvature known beforehand."""
    tree, begun = Tree(problem), time.process_time()
    squares = tree.squares
    # The largest precision of any set, as their code has it.
    curvature = float(squares.precision.max())
    average = mirror = tree.shares(np.zeros(squares.cells))
    slope = np.zeros(squares.cells)
    trace: Trace = []
    for step in range(1, MOST_SUMS):
        share = 2.0 / (step + 1)
        slope = (1 - share) * slope + share * squares.gradient((1 - share) * average + share * mirror)
        mirror = tree.shares(-step * (step + 1) / (4.0 * curvature) * slope)
        average = (1 - share) * average + share * mirror
        trace.append((tree.sums, time.process_time() - begun, squares.loss(average)))
        if trace[-1][2] <= enough:
            break
    return trace


def lbfgs(problem: Problem, enough: float) -> Trace:
    """L-BFGS (scipy) on the potentials, with a memory of 20 steps."""
    from scipy.optimize import minimize

    tree, begun = Tree(problem), time.process_time()
    squares = tree.squares
    scale = 1.0 / squares.loss(tree.shares(np.zeros(squares.cells)))
    trace: Trace = []

    def value_and_slope(theta: Any) -> tuple[float, Any]:
        shares = tree.shares(theta)
        slope = scale * squares.gradient(shares)
        nudge = 1e-4 / max(float(np.abs(slope).max()), 1e-300)
        moved = tree.shares(theta + nudge * slope) - tree.shares(theta - nudge * slope)
        return scale * squares.loss(shares), moved / (2 * nudge)

    def note(intermediate_result: Any) -> None:
        trace.append((tree.sums, time.process_time() - begun, float(intermediate_result.fun) / scale))
        if trace[-1][2] <= enough or tree.sums >= MOST_SUMS:
            raise StopIteration

    options = {"maxiter": MOST_SUMS, "maxfun": MOST_SUMS, "maxcor": 20, "ftol": 0.0, "gtol": 0.0}
    minimize(
        value_and_slope, np.zeros(squares.cells), jac=True, method="L-BFGS-B", callback=note, options=options
    )
    return trace


RIVALS: dict[str, Callable[[Problem, float], Trace]] = {
    "accelerated": lambda problem, enough: package_descent(problem, enough, accelerate=True),
    "plain": lambda problem, enough: package_descent(problem, enough, accelerate=False),
    "dual averaging": dual_averaging,
    "L-BFGS": lbfgs,
}


def compared(name: str) -> dict[str, Any]:
    """One problem: every rival, then every kind of start."""
    problem = problem_of(name)
    _, long = problem.fit(MirrorDescent(max_steps=LONG_RUN, tolerance=1e-12, polish_steps=100))
    best = long.fit.objective
    traces = {label: rival(problem, CLOSE * best) for label, rival in RIVALS.items()}
    best = min([best, *(objective for trace in traces.values() for _, _, objective in trace)])
    row: dict[str, Any] = {
        "problem": name, "cells": long.tree.cells, "measured": len(problem.measurements), "long run": best,
    }  # fmt: skip
    for label, trace in traces.items():
        reached = next((entry for entry in trace if entry[2] <= CLOSE * best * (1 + 1e-9)), None)
        sums, seconds, objective = reached if reached is not None else trace[-1]
        row[label] = {
            "reached": reached is not None, "sums": sums, "seconds": round(seconds, 3),
            "excess": round(objective / best - 1, 5),
        }  # fmt: skip
    for label, start in (("from nothing", None), ("from the round before", problem.before)):
        seconds, model = problem.fit(MirrorDescent(), start)
        row[label] = {
            "stopped by itself": model.fit.converged, "sums": model.fit.steps, "seconds": round(seconds, 3),
            "excess": round(model.fit.objective / best - 1, 5),
        }  # fmt: skip
    return row


def show(row: dict[str, Any]) -> None:
    print(
        f"\n{row['problem']}: {row['measured']} measured, {row['cells']:,} cells, L = {row['long run']:.6g}"
    )
    for label, found in row.items():
        if isinstance(found, dict):
            flag = found.get("reached", found.get("stopped by itself"))
            print(
                f"  {label:28} {found['sums']:5} sums {found['seconds']:8.2f} s  "
                f"{100 * found['excess']:7.3f}% above{'' if flag else '   (cut off)'}",
                flush=True,
            )


def main() -> None:
    rows = []
    for name in sys.argv[1:] or PROBLEMS:
        rows.append(compared(name))
        show(rows[-1])
        if not sys.argv[1:]:
            found = {"machine": machine(), "most sums": MOST_SUMS, "problems": rows}
            (RESULTS / "solvers.json").write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
