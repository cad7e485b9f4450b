"""Reconstruction by residuals: from noisy marginals to all marginals below them, without a tree.

    least squares    r_S  ← inverse-variance mean of the residuals of all noisy marginals that hold S
    non-negative     min  Σ_S ‖r_S − r̂_S‖²/u_S    such that no cell of a known marginal is below 0

with u_S = v_S/m_S for a residual that m_S of the largest known marginals hold: what each of them pushes it by
counts as a mean, not as a sum. An empty cell of a pair is many empty cells of each triple above it, and of
every such triple; with v_S itself, single attributes, which are known best, give way to all of them.

The second is solved in its dual. With multipliers y_B ≥ 0 for the cells of the largest known marginals,

    r_S = r̂_S + u_S R_S Σ_{B⊇S} (y_B summed over B ∖ S)/n_{B∖S},       y_B ← max(0, y_B − t M_B(r))

in accelerated steps (momentum.py) t = 1/L, L = max_S u_S Σ_{B⊇S} 1/n_{B∖S}. All marginals are sums of the
same residuals at every step, so they agree with each other; what is still below 0 at the end is cut off when
it is asked for.

Mullins, Fuentes, Xiao, Kifer, Musco, Sheldon (2024), "Efficient and private marginal reconstruction with
local non-negativity", arXiv:2410.01091 (GReM-LNN), for the problem. Where we differ: u_S for v_S; the
total is fixed, as the exact one or the noisy one; steps are accelerated and stop by themselves.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from sidelight import _check
from sidelight.data.domain import Attrs, Domain
from sidelight.fit.momentum import followed
from sidelight.measurement import Measurement
from sidelight.models.reconstruction import CLOSE, ROUGHLY, Reconstruction
from sidelight.models.residuals import Residuals
from sidelight.queries.strategy import subsets

Array = NDArray[np.float64]

Constraint = Literal["non-negative", "least-squares"]


@dataclass(frozen=True, kw_only=True)
class ResidualReconstruction:
    """Fits residuals to noisy marginals.

    >>> from sidelight.queries.query import Marginal
    >>> measured = Measurement(Marginal(("a",)), np.array([30.0, -2.0]), stddev=1.0)
    >>> model = ResidualReconstruction().estimate(Domain.of({"a": 2, "b": 2}), [measured])
    >>> model.total, model.count(("a", "b")).round(1).tolist()
    (28.0, [[14.0, 14.0], [0.0, 0.0]])
    """

    constraint: Constraint = "non-negative"
    """Whether counts are kept from being negative; least squares alone is unbiased."""
    max_steps: int = 200
    """Most steps towards counts of at least 0; with none, what is below 0 is cut off and no more, and
    marginals that are not known are found roughly: such a model is for choosing what to measure next."""
    tolerance: float = 1e-3
    """Stop when what is below 0, and what was pushed above it, is each at most this share of the total, on
    the mean of all marginals."""

    def __post_init__(self) -> None:
        _check.one_of(("non-negative", "least-squares"), constraint=self.constraint)
        _check.natural(max_steps=self.max_steps)
        _check.positive(tolerance=self.tolerance)

    def estimate(
        self,
        domain: Domain,
        measurements: Sequence[Measurement],
        *,
        total: float | None = None,
        start: Reconstruction | None = None,
    ) -> Reconstruction:
        """The reconstruction from all measurements; ``start`` is that from the first of them."""
        if start is not None and self.max_steps == 0:
            return start.with_measured(measurements[start.seen :])
        return self.of(Residuals.of(domain, measurements, total=total), seen=len(measurements))

    def of(self, known: Residuals, *, seen: int) -> Reconstruction:
        """The reconstruction from residuals that so many measurements told of."""
        is_clipped = self.constraint == "non-negative"
        if is_clipped and self.max_steps:
            known = known.with_values(_Dual(known).run(self.max_steps, self.tolerance))
        return Reconstruction(known, is_clipped, seen, close=CLOSE if self.max_steps else ROUGHLY)


class _Dual:
    """Multipliers for the cells of the largest known marginals, and the residuals that they give.

    All residuals are one flat vector, those of one shape side by side. Whatever is done to a residual or a
    marginal is done to all of its shape at once: a wide table has thousands of them, and few shapes.
    """

    def __init__(self, known: Residuals) -> None:
        self._known = known
        sizes = known.domain.sizes
        by_shape: dict[tuple[int, ...], list[Attrs]] = {}
        for attrs in known.parts:
            by_shape.setdefault(tuple(sizes[attr] for attr in attrs), []).append(attrs)
        self._start: dict[Attrs, int] = {}
        self._shapes: list[tuple[tuple[int, ...], slice]] = []
        end = 0
        for shape, sets in by_shape.items():
            cells = math.prod(shape)
            self._shapes.append((shape, slice(end, end + len(sets) * cells)))
            for attrs in sets:
                self._start[attrs], end = end, end + cells
        self._fitted = np.concatenate(
            [known.parts[attrs].values.reshape(-1) for sets in by_shape.values() for attrs in sets]
        )
        held = Counter(below for attrs in known.maximal for below in subsets(attrs))
        self._yields = np.concatenate(
            [
                np.full(part.values.size, part.variance / held[attrs] if attrs else 0.0)
                for sets in by_shape.values()
                for attrs, part in ((attrs, known.parts[attrs]) for attrs in sets)
            ]
        )
        self._fitted[self._start[()]] = known.total
        self._groups = self._grouped([attrs for attrs in known.maximal if attrs])
        # The residuals of one marginal are orthogonal, so that the steepest of them counts.
        self._step = 1.0 / (self._steepness().max(initial=0.0) or 1.0)

    def _grouped(self, largest: list[Attrs]) -> "list[_Group]":
        sizes = self._known.domain.sizes
        by_shape: dict[tuple[int, ...], list[Attrs]] = {}
        for attrs in largest:
            by_shape.setdefault(tuple(sizes[attr] for attr in attrs), []).append(attrs)
        return [_Group.of(shape, sets, self._start) for shape, sets in by_shape.items()]

    def _steepness(self) -> Array:
        """L for each residual: u_S Σ_{B⊇S} 1/n_{B∖S}."""
        found = np.zeros(self._fitted.size)
        for group in self._groups:
            for part in group.parts:
                np.add.at(found, part.cells, np.full(part.cells.shape, part.share))
        return np.asarray(found * self._yields)

    def run(self, most: int, tolerance: float) -> dict[Attrs, Array]:
        """The residuals after at most so many steps."""
        at = [np.zeros((group.number, *group.shape)) for group in self._groups]
        ahead, momentum = at, 1.0
        residuals = self._fitted
        number = sum(group.number for group in self._groups)
        for _ in range(most):
            marginals = [group.marginals(residuals) for group in self._groups]
            negative = -sum(float(np.minimum(tables, 0.0).sum()) for tables in marginals)
            if max(negative, _overshot(ahead, marginals)) <= tolerance * self._known.total * number:
                break
            after = [np.maximum(y - self._step * m, 0.0) for y, m in zip(ahead, marginals, strict=True)]
            turned = sum(
                float(((y - new) * (new - old)).sum()) for y, new, old in zip(ahead, after, at, strict=True)
            )
            momentum, share = followed(momentum, is_away=turned > 0)
            ahead = [new + share * (new - old) for new, old in zip(after, at, strict=True)]
            at = after
            residuals = self._residuals(ahead)
        return {
            attrs: residuals[start : start + part.values.size].reshape(part.values.shape)
            for attrs, start, part in (
                (attrs, self._start[attrs], part) for attrs, part in self._known.parts.items()
            )
        }

    def _residuals(self, multipliers: list[Array]) -> Array:
        """The residuals r_S that these multipliers give; the total stays, as if its variance were 0."""
        pushed = np.zeros(self._fitted.size)
        for group, tables in zip(self._groups, multipliers, strict=True):
            group.push(tables, pushed)
        pushed *= self._yields
        for shape, where in self._shapes:
            tables = pushed[where].reshape(-1, *shape)
            for axis in range(1, tables.ndim):
                tables = tables - tables.mean(axis=axis, keepdims=True)
            pushed[where] = tables.reshape(-1)
        return self._fitted + pushed


def _overshot(multipliers: list[Array], marginals: list[Array]) -> float:
    """The sum of counts above 0 in cells that are pushed up, each times its push next to the largest one."""
    most = max((float(y.max(initial=0.0)) for y in multipliers), default=0.0)
    above = sum(
        float((np.maximum(y, 0.0) * np.maximum(m, 0.0)).sum())
        for y, m in zip(multipliers, marginals, strict=True)
    )
    return above / most if most > 0 else 0.0


@dataclass(frozen=True, eq=False)
class _Part:
    """One subset of the attributes, in all marginals of a shape."""

    aside: tuple[int, ...]
    """The axes that it does not have, counted from 1."""
    around: tuple[int, ...]
    """Its shape, with 1 for the axes that it does not have."""
    share: float
    """1/n_{B∖S}."""
    cells: NDArray[np.intp]
    """For each marginal the places of this residual's values in the flat vector."""
    is_once: bool
    """Whether no two of the marginals have this residual in common."""


@dataclass(frozen=True, eq=False)
class _Group:
    """The largest known marginals of one shape."""

    shape: tuple[int, ...]
    number: int
    parts: tuple[_Part, ...]

    @classmethod
    def of(cls, shape: tuple[int, ...], sets: list[Attrs], start: Mapping[Attrs, int]) -> "_Group":
        axes = tuple(str(axis) for axis in range(len(shape)))
        parts = []
        for kept in subsets(axes):
            inside = [axis for axis in range(len(shape)) if axes[axis] in kept]
            cells = math.prod(shape[axis] for axis in inside)
            first = np.array([start[tuple(attrs[axis] for axis in inside)] for attrs in sets], dtype=np.intp)
            parts.append(
                _Part(
                    aside=tuple(axis + 1 for axis in range(len(shape)) if axis not in inside),
                    around=tuple(size if axis in inside else 1 for axis, size in enumerate(shape)),
                    share=cells / math.prod(shape),
                    cells=first[:, None] + np.arange(cells),
                    is_once=len(set(first.tolist())) == len(sets),
                )
            )
        return cls(shape, len(sets), tuple(parts))

    def marginals(self, residuals: Array) -> Array:
        """All of them, from a flat vector of residuals."""
        found: Array = np.zeros((self.number, *self.shape))
        for part in self.parts:
            found += residuals[part.cells].reshape(self.number, *part.around) * part.share
        return found

    def push(self, tables: Array, pushed: Array) -> None:
        """Add to a flat vector what these multipliers say of each residual."""
        # Most marginals of a wide table have no cell below 0, and push nothing.
        rows = np.flatnonzero(tables.reshape(self.number, -1).any(axis=1))
        tables = tables[rows] if len(rows) < self.number else tables
        for part in self.parts if len(rows) else ():
            found = tables.sum(axis=part.aside).reshape(len(rows), -1) * part.share
            cells = part.cells[rows] if len(rows) < self.number else part.cells
            if part.is_once:
                pushed[cells] += found
            else:
                np.add.at(pushed, cells, found)
