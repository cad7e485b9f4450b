"""Private-PGM: the graphical model whose marginals fit the noisy measurements best.

    minimise  L(p)      over all distributions p = exp(Σ θ_c) / Z

L is the weighted least squares of ``least_squares.py``. θ has one table for each attribute set that was
measured. A step of mirror descent moves the potentials against the gradient, θ ← θ − η ∇L(p), and
sums the tree once. We take accelerated steps,

    y ← (1 − τ) x + τ z,    θ_z ← θ_z − a ∇L(y),    x ← (1 − τ) x + τ z

with τ = a/(A + a) and C a² = A + a, where C, the curvature of L against KL, is found by
backtracking: ½ ∇²L[z′ − z] ≤ C · KL(z′ ‖ z). Momentum is dropped whenever L(x) rises. A few plain
steps with a line search then end the fit, since z, whose potentials we keep, swings about x.

It stops by itself. After k steps, L(x) is above its minimum by a power of k (at most k⁻², Tseng,
Theorem 1). So with L″, L′ and L after a quarter, half and all of the steps, the part
r = (L′ − L)/(L″ − L′) of the fall comes again with every doubling, and L − min L ≈ (L′ − L) r/(1 − r).
Cells that stand at 0 and should not are brought back first (``revival.py``).

McKenna, Sheldon, Miklau (2019), arXiv:1901.09136, Algorithm 1, for the objective and plain mirror
descent; Tseng (2008), "On accelerated proximal gradient methods", for the acceleration. Where we
differ: plain descent (``accelerate=False``) needs several times the steps for the same objective
(benchmarks/speed/solvers.py, with dual averaging and L-BFGS), and is not the default.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sidelight import _check
from sidelight.data.domain import Attrs, Domain
from sidelight.data.impossible import masks
from sidelight.fit.least_squares import LeastSquares, estimate_total
from sidelight.fit.revival import lifted, nudge, sparing, worth_of
from sidelight.measurement import Measurement
from sidelight.models.graphical import Fit, GraphicalModel, Potentials, check_table, forbidding
from sidelight.trees.arrays import arrays
from sidelight.trees.junction_tree import JunctionTree
from sidelight.trees.nesting import inner_order
from sidelight.trees.sum_product import Calibrator

Array = NDArray[np.float64]

_FLOOR_PER_CELL = 0.005
"""Least L for each measured cell in the stopping rule. Noise alone gives ½: below this, nothing is gained."""
_FEWEST_STEPS = 45
"""Accepted steps before the distance to the minimum is estimated."""
_MOST_REVIVALS = 8
"""Most times that one fit brings empty cells back before it stops."""
_ROUNDING = 1e-12
"""Rounding error of KL(z′ ‖ z), a difference of large numbers."""


@dataclass(frozen=True, kw_only=True)
class MirrorDescent:
    """Fits a graphical model to measurements.

    >>> from sidelight.queries.query import Marginal
    >>> measured = Measurement(Marginal(("a",)), np.array([30.0, 10.0]), stddev=1.0)
    >>> model = MirrorDescent().estimate(Domain.of({"a": 2, "b": 2}), [measured])
    >>> model.total, model.count(("a", "b")).round(2).tolist()
    (40.0, [[15.0, 15.0], [5.0, 5.0]])
    """

    max_steps: int = 2000
    """Most times that the tree is summed."""
    tolerance: float = 4e-4
    """Stop when the objective is about this far above its minimum, relative to it."""
    accelerate: bool = True
    """Whether steps carry momentum."""
    polish_steps: int = 30
    """Plain steps at the end of an accelerated fit."""
    arrays: str = "numpy"
    """"numpy", "torch:cpu" or "torch:cuda"."""

    def __post_init__(self) -> None:
        _check.positive_integer(max_steps=self.max_steps)
        _check.positive(tolerance=self.tolerance)
        _check.natural(polish_steps=self.polish_steps)

    def estimate(
        self,
        domain: Domain,
        measurements: Sequence[Measurement],
        *,
        total: float | None = None,
        start: GraphicalModel | Potentials | None = None,
        precisions: Sequence[ArrayLike] | None = None,
    ) -> GraphicalModel:
        """The model that fits the measurements best.

        Args:
            domain: All attributes; those that nothing measures stay uniform.
            measurements: Any linear queries; they may repeat and contradict each other.
            total: What the model sums to; by default the mean of what the measurements sum to.
            start: Where to start from: the model of the round before, or any potentials. What the
                measurements do not determine stays as it was there.
            precisions: 1/σ² for each measurement, one number or one for each answer, in place of its own.
        """
        n = estimate_total(domain, measurements) if total is None else total
        _check.positive(total=n)
        library = arrays(self.arrays)
        squares = LeastSquares(domain, measurements, total=n, precisions=precisions, library=library)
        begun = _in_inner_order(domain, start)
        fixed = {a: p for a, p in begun.items() if a not in squares.sets}
        first = [begun.get(a, np.zeros(shape)) for a, shape in zip(squares.sets, squares.shapes, strict=True)]
        calibrator = Calibrator(
            JunctionTree.of(domain, [*squares.sets, *begun]),
            squares.sets,
            library=library,
            fixed=[*fixed.items(), *forbidding(masks(domain))],
        )
        descent = _Descent(self, squares, calibrator)
        theta, fit = descent.run(library.stack_flat([library.array(table) for table in first]))

        potentials = dict(fixed)
        for attrs, shape, where in zip(squares.sets, squares.shapes, squares.slices, strict=True):
            table = library.numpy(theta[where]).reshape(shape)
            potentials[attrs] = table - table.max()
        return GraphicalModel(
            domain,
            n,
            {
                domain.canonical(attrs): _canonical(domain, attrs, table)
                for attrs, table in potentials.items()
            },
            fit=fit,
            arrays=self.arrays,
        )


@dataclass
class _Point:
    """Potentials, the marginals they give on the measured sets, and ln Z."""

    theta: Any
    marginals: Any
    log_partition: float


class _Descent:
    """One fit: potentials in, potentials out."""

    def __init__(self, settings: MirrorDescent, squares: LeastSquares, calibrator: Calibrator) -> None:
        self._settings = settings
        self._squares = squares
        self._calibrator = calibrator
        self._library = squares.library
        self._steps = 0
        self._least = _FLOOR_PER_CELL * squares.cells

    def run(self, theta: Any) -> tuple[Any, Fit]:
        """Descend from these potentials."""
        if not self._squares.cells:
            self._point(theta)
            return theta, Fit(0.0, 1, converged=True)
        point = self._point(theta)
        if self._settings.accelerate:
            point, curvature, converged = self._accelerated(point)
            most = self._steps + self._settings.polish_steps
            point, _ = self._plain(point, 1.0 / curvature, most)
        else:
            first = 1.0 / self._squares.steepness(point.marginals)
            point, converged = self._plain(point, first, self._settings.max_steps)
        return point.theta, Fit(self._squares.loss(point.marginals), self._steps, converged)

    def _point(self, theta: Any) -> _Point:
        """Sum the tree at these potentials."""
        squares = self._squares
        tables = [
            theta[where].reshape(shape) for where, shape in zip(squares.slices, squares.shapes, strict=True)
        ]
        log_partition = self._calibrator.run(tables)
        marginals = self._library.stack_flat(self._calibrator.marginals())
        self._steps += 1
        return _Point(theta, marginals, log_partition)

    def _is_close(self, gap: float, objective: float) -> bool:
        return gap <= self._settings.tolerance * max(objective, self._least)

    def _accelerated(self, z: _Point) -> tuple[_Point, float, bool]:
        """Accelerated descent: the last z, the curvature found, and whether x converged."""
        squares = self._squares
        curvature = self._first_curvature(z)
        x, mass = z.marginals, 0.0
        value = squares.loss(x)
        trail = _Trail()
        revivals = 0
        while self._steps < self._settings.max_steps:
            step = (1.0 + math.sqrt(1.0 + 4.0 * curvature * mass)) / (2.0 * curvature)
            weight = step / (mass + step)
            slope = self._slope(x + weight * (z.marginals - x), z)
            after = self._point(z.theta - step * slope)
            needed = self._curvature_between(z, after)
            if not needed <= curvature:  # or is not a number, where potentials went too far
                curvature = max(2.0 * curvature, min(8.0 * curvature, needed))
                continue
            curvature *= 0.9
            z, mass, x = after, mass + step, x + weight * (after.marginals - x)
            before, value, reached = value, squares.loss(x), squares.loss(z.marginals)
            if reached < value:
                # Any better point may take the place of x.
                x, value = z.marginals, reached
            if value > before:
                x, value, mass = z.marginals, reached, 0.0
            trail.add(value)
            if self._is_close((reached - value) / 2, value) and self._is_close(trail.gap, value):
                revived = None if revivals == _MOST_REVIVALS else self._revived(z, value)
                if revived is None:
                    return z, curvature, True
                z, mass, revivals = revived, 0.0, revivals + 1
                x, value, trail = z.marginals, squares.loss(z.marginals), _Trail()
        return z, curvature, False

    def _slope(self, marginals: Any, point: _Point) -> Any:
        """∇L at these marginals, changed so that no cell that is empty at the point sinks further."""
        return sparing(self._squares, self._squares.gradient(marginals), point.marginals)

    def _revived(self, z: _Point, objective: float) -> _Point | None:
        """The point with cells back that were wrongly at 0; None where that would change little."""
        squares = self._squares
        slope = squares.gradient(z.marginals)
        step = nudge(squares, slope)
        nudged = self._point(z.theta - step * slope)
        theta, most = lifted(squares, z.theta, z.marginals, nudged.marginals, step)
        if self._is_close(most, objective):
            return None
        revived = self._point(theta)
        worth = worth_of(squares, slope, revived.marginals - z.marginals)
        return None if self._is_close(worth, objective) else revived

    def _first_curvature(self, z: _Point) -> float:
        """The smallest curvature, within a factor of 4, under which a first step is sound."""
        curvature = self._squares.steepness(z.marginals)
        slope = self._squares.gradient(z.marginals)
        for _ in range(20):
            after = self._point(z.theta - slope * (4.0 / curvature))
            if self._curvature_between(z, after) > curvature / 4.0:
                break
            curvature /= 4.0
        return curvature

    def _curvature_between(self, before: _Point, after: _Point) -> float:
        """½ ∇²L[z′ − z] / KL(z′ ‖ z)."""
        bent = 0.5 * self._squares.curvature(after.marginals - before.marginals)
        divergence = self._library.dot(after.theta - before.theta, after.marginals)
        divergence += before.log_partition - after.log_partition
        return bent / (max(divergence, 0.0) + _ROUNDING)

    def _plain(self, point: _Point, step: float, most: int) -> tuple[_Point, bool]:
        """Mirror descent with a line search (spec 7.2), up to ``most`` steps in all."""
        value = self._squares.loss(point.marginals)
        trail = _Trail()
        taken = 0
        while self._steps < most:
            slope = self._slope(point.marginals, point)
            after = self._point(point.theta - step * slope)
            new = self._squares.loss(after.marginals)
            if value - new >= 0.5 * self._library.dot(slope, point.marginals - after.marginals):
                point, value = after, new
                taken += 1
                step *= 2.0 if taken % 20 == 0 else 1.02
                trail.add(value)
                if not self._settings.accelerate and self._is_close(trail.gap, value):
                    return point, True
            else:
                step *= 0.5
        return point, False


class _Trail:
    """The objective at every step, from which the distance to the minimum is estimated."""

    def __init__(self) -> None:
        self._values: list[float] = []

    def add(self, value: float) -> None:
        self._values.append(min(value, self._values[-1]) if self._values else value)

    @property
    def gap(self) -> float:
        """Estimate of the objective's distance to its minimum; ∞ while there are too few steps."""
        steps = len(self._values)
        if steps < _FEWEST_STEPS:
            return math.inf
        long_ago, then, now = (self._values[steps // part - 1] for part in (4, 2, 1))
        again = max((then - now) / (long_ago - then), 0.25) if long_ago > then else math.inf
        ahead = (then - now) * again / (1.0 - again) if again < 0.95 else math.inf
        return min(ahead, long_ago - now)


def _in_inner_order(domain: Domain, source: GraphicalModel | Potentials | None) -> dict[Attrs, Array]:
    """Potentials by attribute set, axes transposed into the order of inference."""
    if source is None:
        return {}
    given: Mapping[Attrs, Array] = source.potentials if isinstance(source, GraphicalModel) else source
    turned: dict[Attrs, Array] = {}
    for attrs, potential in given.items():
        check_table(domain, attrs, np.shape(potential), "potential")
        inner = inner_order(domain, attrs)
        turned[inner] = turned.get(inner, 0.0) + np.transpose(potential, [attrs.index(a) for a in inner])
    return turned


def _canonical(domain: Domain, attrs: Attrs, table: Array) -> Array:
    return np.ascontiguousarray(np.transpose(table, [attrs.index(a) for a in domain.canonical(attrs)]))
