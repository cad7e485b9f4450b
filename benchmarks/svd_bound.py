"""The SVD bound: what no matrix mechanism can beat on a linear workload.

    total squared error ≥ P(ε, δ) · (Σ_i s_i)² / N,        P = 2 log(2/δ) / ε²

with s_i the singular values of the m × N query matrix. Li and Miklau (2013), as drawn in Hardt, Ligett,
McSherry (2012), section 4.1; spec 3.6. It holds for (ε, δ)-DP with Gaussian noise under add-or-remove; a
mechanism that adapts to the data, such as MWEM, may well fall below it.
"""

import math
from collections.abc import Iterable

import numpy as np

from sidelight import _check
from sidelight.data.domain import Domain
from sidelight.models.model import Array
from sidelight.queries.query import Query


def svd_bound(singular_values: Array, cells: int) -> float:
    """(Σ s)² / N: the total squared error, in units of P(ε, δ).

    >>> round(svd_bound(range_spectrum(4), 4), 6)
    16.312243
    """
    return float(singular_values.sum() ** 2 / cells)


def squared_error_bound(
    singular_values: Array, *, cells: int, queries: int, epsilon: float, delta: float
) -> float:
    """The least mean squared error per query, in counts."""
    _check.positive(epsilon=epsilon)
    _check.share(delta=delta)
    price = 2 * math.log(2 / delta) / epsilon**2
    return price * svd_bound(singular_values, cells) / queries


def range_spectrum(values: int) -> Array:
    """Singular values of all N(N + 1)/2 ranges, from the Gram matrix min(i, j) · (N + 1 − max(i, j))."""
    i = np.arange(1, values + 1)
    return _roots(np.minimum.outer(i, i) * (values + 1 - np.maximum.outer(i, i)))


def prefix_spectrum(values: int) -> Array:
    """Singular values of all N prefixes, from the Gram matrix N + 1 − max(i, j)."""
    i = np.arange(1, values + 1)
    return _roots(values + 1 - np.maximum.outer(i, i))


def product_spectrum(*spectra: Array) -> Array:
    """Singular values of a product workload, such as all boxes of two dimensions: all products."""
    together = np.ones(1)
    for spectrum in spectra:
        together = np.multiply.outer(together, spectrum).reshape(-1)
    return together


def spectrum(queries: Iterable[Query], domain: Domain) -> Array:
    """Singular values of any list of scalar queries over all cells of a (small) domain."""
    rows = []
    for query in queries:
        weights = query.transpose(np.ones(1), domain.project(query.attrs).shape)
        axes = domain.index(query.attrs)
        aligned = weights.transpose(np.argsort(axes))
        spread = aligned.reshape([size if axis in axes else 1 for axis, size in enumerate(domain.shape)])
        rows.append(np.broadcast_to(spread, domain.shape).reshape(-1))
    matrix = np.array(rows, dtype=np.float64)
    # WWᵀ and WᵀW have the same non-zero eigenvalues: take the smaller.
    return _roots(matrix @ matrix.T if len(matrix) < matrix.shape[1] else matrix.T @ matrix)


def _roots(gram: Array) -> Array:
    """Singular values from a Gram matrix; rounding below 0 is cut off."""
    roots: Array = np.sqrt(np.maximum(np.linalg.eigvalsh(gram.astype(np.float64)), 0.0))
    return roots
