"""Counts of at least 0 from answers through products of matrices: least squares on a simplex.

    min  (x − x̂)ᵀ G (x − x̂),   G = ⊗ A_iᵀA_i,     such that x ≥ 0,  Σ x = n,  x = 0 where impossible

This is what the noisy answers themselves ask for: ‖Ax − y‖² is the same but for a constant. Cutting off each
negative count by itself is not: a strategy for ranges tells single cells badly and sums of them well, and of
thousands of empty cells the positive half alone would have more records than the table. The projection keeps
the sums, and in the norm of G it is never further from the truth than least squares is.

Accelerated steps (momentum.py), x ← P(x − G(x − x̂)/L) with L the largest eigenvalue of G.

PRIVACY: a function of noisy answers; post-processing.
"""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from sidelight.data.domain import Domain
from sidelight.data.impossible import possible_cells
from sidelight.fit.momentum import followed
from sidelight.models.products import ProductEstimate, Products

Array = NDArray[np.float64]

_STEPS, _CLOSE = 500, 1e-4
"""Most steps, and the records, as a share of the total, that a last step moves."""


def non_negative(known: Products) -> Products:
    """The same estimates, each with the nearest counts that a table can have; the total stays."""
    found = [replace(one, values=_nearest(one, known.total, known.domain)) for one in known.estimates]
    return replace(known, estimates=tuple(found))


def _nearest(one: ProductEstimate, total: float, domain: Domain) -> Array:
    grams: list[Array] = [np.asarray(np.linalg.pinv(covariance)) for covariance in one.covariances]
    steepest = math.prod(float(np.linalg.eigvalsh(gram)[-1]) for gram in grams)
    possible = possible_cells(domain, one.attrs)
    at = ahead = on_simplex(one.values, total, possible)
    momentum = 1.0
    for _ in range(_STEPS):
        slope = _applied(grams, ahead - one.values) / steepest
        after = on_simplex(ahead - slope, total, possible)
        moved = after - at
        momentum, share = followed(momentum, is_away=float(((ahead - after) * moved).sum()) > 0)
        at, ahead = after, after + share * moved
        if np.abs(moved).sum() <= _CLOSE * total:
            break
    return at


def on_simplex(values: Array, total: float, possible: NDArray[np.bool_]) -> Array:
    """The nearest counts of at least 0 with this sum, none of them where it is impossible.

    >>> on_simplex(np.array([5.0, 2.0, -1.0, 9.0]), 5.0, np.array([True, True, True, False])).tolist()
    [4.0, 1.0, 0.0, 0.0]
    """
    kept = values[possible]
    while True:  # every round drops a value, or is the last
        shift = (kept.sum() - total) / kept.size
        positive = kept > shift
        if positive.all() or not positive.any():
            return np.where(possible, np.maximum(values - shift, 0.0), 0.0)
        kept = kept[positive]


def _applied(grams: Sequence[Array], values: Array) -> Array:
    """The product of matrices, one along each axis."""
    for axis, gram in enumerate(grams):
        values = np.moveaxis(np.tensordot(gram, values, axes=(1, axis)), 0, axis)
    return values
