"""HDMM's strategies for ranges: p-Identity on each attribute, and their Kronecker products.

    A(Θ) = [I; Θ] D       Θ ≥ 0 of p lines;  D scales every column to length 1
    minimise  tr(G (AᵀA)⁻¹)      G = Σ_q q qᵀ over the ranges asked about the attribute

The identity answers each value; the p further lines are sums that ranges are made of. With M = I + ΘᵀΘ,
s_j = √M_jj and H_ij = s_i G_ij s_j,

    f = tr(H M⁻¹),     ∂f/∂Θ = 2Θ (diag(u) − M⁻¹HM⁻¹),     u_i = Σ_j G_ij s_j (M⁻¹)_ij / s_i

and L-BFGS goes down from random Θ. All queries about one attribute set are answered through the product of
its attributes' strategies: an attribute that is only asked for single values has the identity, as in a
marginal. Sets get shares of the budget ∝ √(their error at the same cost), which is best for the sum.

Matrices are rounded to whole numbers, 2¹⁰ times themselves, so that noise is exact; all that is said of
errors is computed from the rounded ones.

McKenna, Miklau, Hay, Machanavajjhala (2018), arXiv:1808.03537 (OPT₀, OPT_⊗, OPT₊). Where we differ: columns
have length 1 in L2, for Gaussian noise. Queries about different sets are not combined.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from sidelight.data.domain import Attrs, Domain
from sidelight.errors import TooLargeError, WorkloadError
from sidelight.privacy.rational import round_up
from sidelight.privacy.unit import Unit
from sidelight.queries.product import Lines, Product
from sidelight.queries.query import Cell, Marginal, Query, Range
from sidelight.queries.strategy import Closure, Strategy
from sidelight.queries.workload import Workload

Array = NDArray[np.float64]

MOST_VALUES = 1024
"""Most values of an attribute with ranges: its strategy is a matrix over all of them."""
_SCALE = 2**10
_VALUES_A_LINE = 2
"""p = n/2: within 3% of the SVD bound for all ranges of 16 to 128 values, and within 8% for prefixes. The
paper's n/16 is 30% above it with Gaussian noise."""
_STARTS, _STEPS = 2, 300
_ADD_OR_REMOVE = Unit("add-or-remove")


@dataclass(frozen=True, eq=False)
class Boxes:
    """All queries about one attribute set, as intervals of each attribute; marginals are counted apart."""

    attrs: Attrs
    lows: NDArray[np.int64]
    """One line a query, one column an attribute."""
    highs: NDArray[np.int64]
    weights: Array
    whole: float
    """The weight of whole marginals."""

    @classmethod
    def all_of(cls, domain: Domain, workload: Workload) -> "list[Boxes]":
        """The queries of a workload by attribute set, attributes of one value left out."""
        found: dict[Attrs, list[tuple[Query, float]]] = {}
        for query, weight in zip(workload.queries, workload.weights, strict=True):
            found.setdefault(domain.varying(query.attrs), []).append((query, weight))
        return [cls._of(attrs, asked) for attrs, asked in found.items()]

    @classmethod
    def _of(cls, attrs: Attrs, asked: Sequence[tuple[Query, float]]) -> "Boxes":
        boxes, weights, whole = [], [], 0.0
        for query, weight in asked:
            if isinstance(query, Marginal):
                whole += weight
                continue
            ends_of = _ends(query)
            boxes.append([ends_of[attr] for attr in attrs])
            weights.append(weight)
        ends = np.array(boxes, dtype=np.int64).reshape(len(boxes), len(attrs), 2)
        return cls(attrs, ends[:, :, 0], ends[:, :, 1], np.array(weights), whole)

    def gram(self, domain: Domain, axis: int) -> Array:
        """Σ q qᵀ of the intervals on one attribute; the identity for whole marginals."""
        size = domain.sizes[self.attrs[axis]]
        corners = np.zeros((size + 1, size + 1))
        low, high = self.lows[:, axis], self.highs[:, axis] + 1
        for first, second, sign in ((low, low, 1), (low, high, -1), (high, low, -1), (high, high, 1)):
            np.add.at(corners, (first, second), sign * self.weights)
        squares = corners.cumsum(axis=0).cumsum(axis=1)[:size, :size]
        return np.asarray(squares + self.whole * np.eye(size))

    def variances(self, covariances: Sequence[Array]) -> Array:
        """Variance of each box at σ² = 1: the product over attributes of qᵀCq."""
        found = np.ones(len(self.weights))
        for axis, covariance in enumerate(covariances):
            sums = np.zeros((len(covariance) + 1, len(covariance) + 1))
            sums[1:, 1:] = covariance.cumsum(axis=0).cumsum(axis=1)
            low, high = self.lows[:, axis], self.highs[:, axis] + 1
            found *= sums[high, high] - sums[high, low] - sums[low, high] + sums[low, low]
        return found

    def squared_error(self, covariances: Sequence[Array]) -> float:
        """The weighted sum of all variances at σ² = 1."""
        cells = math.prod(float(np.trace(covariance)) for covariance in covariances)
        return float(self.weights @ self.variances(covariances)) + self.whole * cells

    def largest(self, covariances: Sequence[Array]) -> float:
        """The largest weighted variance at σ² = 1."""
        cells = math.prod(float(np.diag(covariance).max()) for covariance in covariances)
        return max(float((self.weights * self.variances(covariances)).max(initial=0.0)), self.whole * cells)


@dataclass(frozen=True, eq=False)
class ProductPlan:
    """A product of strategies for each attribute set, and the share of the budget that it gets."""

    domain: Domain
    sets: tuple[Boxes, ...]
    queries: tuple[Product, ...]
    shares: tuple[float, ...]

    @classmethod
    def of(cls, domain: Domain, workload: Workload, *, objective: str) -> "ProductPlan":
        """Strategies by L-BFGS, shares for the least sum or the least maximum."""
        sets = [boxes for boxes in Boxes.all_of(domain, workload) if boxes.attrs]
        queries, errors = [], []
        for boxes in sets:
            factors = [p_identity(boxes.gram(domain, axis)) for axis in range(len(boxes.attrs))]
            query = Product(boxes.attrs, tuple(map(_whole, factors)))
            covariances = covariances_of(query)
            price = float(query.l2_squared(_ADD_OR_REMOVE))
            queries.append(query)
            if objective == "mean":
                errors.append(math.sqrt(price * boxes.squared_error(covariances)))
            else:
                errors.append(price * boxes.largest(covariances))
        whole = sum(errors)
        return cls(domain, tuple(sets), tuple(queries), tuple(error / whole for error in errors))

    @cached_property
    def strategy(self) -> Strategy:
        """The queries to measure: each product, with the noise that its share pays for."""
        closure = Closure.of(self.domain, [query.attrs for query in self.queries])
        variances = [
            round_up(query.l2_squared(_ADD_OR_REMOVE) / Fraction(share))
            for query, share in zip(self.queries, self.shares, strict=True)
        ]
        return Strategy(closure, self.queries, tuple(variances))

    @property
    def size(self) -> int:
        """How many cells are estimated."""
        return sum(self.domain.size(query.attrs) for query in self.queries)

    def stddevs(self, scale: float) -> list[Array]:
        """σ of each query of each set, where all variances are multiplied so; of a marginal, the mean."""
        found = []
        for boxes, query, variance in zip(self.sets, self.queries, self.strategy.variances, strict=True):
            covariances = covariances_of(query)
            each = boxes.variances(covariances)
            if boxes.whole:
                each = np.append(each, math.prod(float(np.diag(c).mean()) for c in covariances))
            found.append(np.sqrt(scale * float(variance) * each))
        return found


def _ends(query: Query) -> dict[str, tuple[int, int]]:
    """For each attribute of a range or a cell, its first and last code."""
    if isinstance(query, Range):
        return {attr: (low, high) for attr, low, high in query.bounds}
    if isinstance(query, Cell):
        return {attr: (code, code) for attr, code in zip(query.attrs, query.values, strict=True)}
    raise WorkloadError(
        f"mechanism 'hdmm' answers marginals, ranges, prefixes and cells; {query.describe()} is none of "
        "them. Ask for the marginal that it is computed from, or use mechanism='mwem'."
    )


def check_ranges(domain: Domain, workload: Workload) -> None:
    """Refuse queries that have no plan, and attributes too wide for a strategy, before anything is read."""
    for query in workload:
        if isinstance(query, Marginal):
            continue
        for attr, (low, high) in _ends(query).items():
            if low < high and domain.sizes[attr] > MOST_VALUES:
                raise TooLargeError(
                    f"{query.describe()} is a range of {attr!r}, which has {domain.sizes[attr]:,} values; a "
                    f"strategy for ranges is planned over at most {MOST_VALUES:,}. Coarsen {attr!r}, or use "
                    "mechanism='mwem'."
                )


def covariances_of(query: Product) -> list[Array]:
    """The matrix (AᵀA)⁻¹ of each attribute's strategy."""
    return [np.asarray(np.linalg.pinv(m.T.astype(np.float64) @ m)) for m in query.matrices]


def p_identity(gram: Array) -> Array:
    """The best p-Identity strategy found for queries of this Gram matrix; the identity if none is better.

    >>> p_identity(np.eye(4)).tolist() == np.eye(4).tolist()
    True
    """
    if np.count_nonzero(gram - np.diag(np.diag(gram))) == 0:
        return np.eye(len(gram))
    return _searched(gram.tobytes(), len(gram)).copy()


@lru_cache(maxsize=64)
def _searched(gram: bytes, size: int) -> Array:
    asked = np.frombuffer(gram).reshape(size, size)
    lines = max(1, size // _VALUES_A_LINE)
    rng = np.random.default_rng(0)
    best, least = np.eye(size), float(np.trace(asked))
    for _ in range(_STARTS):
        solved = minimize(
            _objective, rng.uniform(0, 1, lines * size), (asked,), jac=True, method="L-BFGS-B",
            bounds=[(0, None)] * (lines * size), options={"maxiter": _STEPS},
        )  # fmt: skip
        if solved.fun < least:
            theta = solved.x.reshape(lines, size)
            columns = np.sqrt(1 + (theta**2).sum(axis=0))
            best, least = np.concatenate([np.eye(size), theta]) / columns, float(solved.fun)
    return best


def _objective(flat: Array, gram: Array) -> tuple[float, Array]:
    """tr(G (AᵀA)⁻¹) of A(Θ), and its slope."""
    theta = flat.reshape(-1, len(gram))
    inner = np.linalg.inv(np.eye(len(theta)) + theta @ theta.T)
    inverse = np.eye(len(gram)) - theta.T @ inner @ theta
    lengths = np.sqrt(1 + (theta**2).sum(axis=0))
    scaled = lengths[:, None] * gram * lengths
    turned = inverse @ scaled @ inverse
    along = ((gram * inverse) @ lengths) / lengths
    slope = 2 * (theta * along - theta @ turned)
    return float((scaled * inverse).sum()), slope.reshape(-1)


def _whole(matrix: Array) -> Lines:
    """A matrix as whole numbers; the identity needs no scale."""
    is_identity = matrix.shape[0] == matrix.shape[1]
    rounded = np.rint(matrix * (1 if is_identity else _SCALE)).astype(np.int64)
    return tuple(tuple(line) for line in rounded[rounded.any(axis=1)].tolist())
