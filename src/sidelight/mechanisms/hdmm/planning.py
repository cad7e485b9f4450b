"""Which residual gets how much noise: the optimum for a workload of marginals, in closed form.

With v_S for the variance of residual S (its noise has the covariance v_S R_S), a record more or less costs
Σ_S μ_S/(n_S v_S), and the squared errors of all cells of the marginals A, with weights c_A, add up to

    Σ_S v_S μ_S n_S ω_S,        ω_S = Σ_{A⊇S} c_A / n_A

At a given cost this is least where v_S ∝ 1/(n_S √ω_S), and is then (Σ_S μ_S √ω_S)² a unit of cost: the SVD
bound, which no strategy of any kind can pass (spec 7.5; Li and Miklau 2013). HDMM's weighted marginals come
near it; they cannot reach it where a marginal lies within several others, since √ω is then no sum of weights.

**A maximum.** The largest variance of a cell is least for some weights λ_A ≥ 0 on the marginals:
max_λ min_v Σ λ_A var_A. Each round raises the weights of marginals that stand out. The weighted mean of the
variances bounds the maximum from below, which says when to stop.

Only sets, sizes and sums are touched: no marginal is made, and no private data is seen.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from sidelight.data.domain import Attrs, Domain
from sidelight.errors import TooLargeError, WorkloadError
from sidelight.mechanisms.candidates import mib
from sidelight.privacy.rational import round_up
from sidelight.queries.residual import Residual
from sidelight.queries.strategy import Closure, Strategy, subsets
from sidelight.queries.workload import Workload, check_closure

Array = NDArray[np.float64]
Objective = Literal["mean", "maximum"]

_GRID = 64
"""Variances are powers of 2^(1/64): noise of one variance is drawn at once. The optimum is flat, so that
steps of 1% cost less than a part in 10⁴."""
_ROUNDS, _CLOSE = 400, 0.005
"""Most updates of the weights for a maximum, and how near to the bound below is near enough."""


@dataclass(frozen=True, eq=False)
class MarginalPlan:
    """Variances of all residuals of a workload, at a joint cost of 1 for a record more or less.

    >>> from sidelight.queries.workload import Workload
    >>> domain = Domain.of({"a": 2, "b": 3, "c": 2})
    >>> pairs = {query.attrs: 1.0 for query in Workload.marginals(domain, degree=2)}
    >>> plan = MarginalPlan.of(domain, pairs, objective="mean")
    >>> round(plan.squared_error(), 6)
    28.54178
    """

    closure: Closure
    asked: tuple[NDArray[np.intp], ...]
    """For the marginals of the workload of each degree, one a line, which member each of their subsets is."""
    weights: tuple[Array, ...]
    """The weight of each of these marginals."""
    variances: Array
    """v_S of each member of the closure."""

    @classmethod
    def of(cls, domain: Domain, marginals: Mapping[Attrs, float], *, objective: Objective) -> "MarginalPlan":
        """The plan with the least weighted mean, or the least maximum, of squared errors."""
        closure = Closure.of(domain, marginals)
        weights: dict[Attrs, float] = {}
        for attrs, weight in marginals.items():
            told = domain.varying(attrs)
            weights[told] = weights.get(told, 0.0) + weight
        by_degree: dict[int, list[Attrs]] = {}
        for attrs in weights:
            by_degree.setdefault(len(attrs), []).append(attrs)
        asked = tuple(
            np.array([[closure.number[below] for below in subsets(attrs)] for attrs in sets], dtype=np.intp)
            for sets in by_degree.values()
        )
        given = tuple(np.array([weights[attrs] for attrs in sets]) for sets in by_degree.values())
        plan = cls(closure, asked, given, np.ones(len(closure.members)))
        return plan._best(given) if objective == "mean" else plan._for_maximum()

    def _best(self, weights: tuple[Array, ...]) -> "MarginalPlan":
        """The optimum for these weights of the marginals' squared errors."""
        cells = self.closure.cells
        omega = np.zeros(cells.size)
        for lines, of_lines in zip(self.asked, weights, strict=True):
            each = np.repeat(of_lines / cells[lines[:, -1]], lines.shape[1])
            omega += np.bincount(lines.reshape(-1), each, cells.size)
        variances = 1.0 / (cells * np.sqrt(omega))
        cost = float((self.closure.contrasts / (cells * variances)).sum())
        return MarginalPlan(self.closure, self.asked, self.weights, variances * cost)

    def _for_maximum(self) -> "MarginalPlan":
        cells = [self.closure.cells[lines[:, -1]] for lines in self.asked]
        number = sum(map(len, self.weights))
        dual = tuple(np.full(len(of_lines), 1.0 / number) for of_lines in self.weights)
        best, least = self, math.inf
        for round_ in range(_ROUNDS):
            plan = self._best(tuple(d * w / n for d, w, n in zip(dual, self.weights, cells, strict=True)))
            found = [w * v for w, v in zip(self.weights, plan.cell_variances(), strict=True)]
            largest = max(float(part.max()) for part in found)
            if largest < least:
                best, least = plan, largest
            mean = sum(float(d @ part) for d, part in zip(dual, found, strict=True))
            if mean >= (1 - _CLOSE) * least:
                break
            raised = [
                d * (part / largest) ** (1.0 / math.sqrt(1 + round_ / 20))
                for d, part in zip(dual, found, strict=True)
            ]
            whole = sum(float(part.sum()) for part in raised)
            dual = tuple(part / whole for part in raised)
        return best

    @property
    def size(self) -> int:
        """How many numbers are measured and kept."""
        return self.closure.size

    def holds(self, attrs: Attrs) -> bool:
        """Whether all that these attributes say together is planned for; those of one value say nothing."""
        return self.closure.domain.varying(attrs) in self.closure.number

    def cell_variances(self) -> list[Array]:
        """Variance of a cell of each marginal of the workload, degree by degree, at a joint cost of 1."""
        each = self.variances * self.closure.contrasts * self.closure.cells
        return [each[lines].sum(axis=1) / self.closure.cells[lines[:, -1]] ** 2 for lines in self.asked]

    def squared_error(self) -> float:
        """The sum of the squared errors of all cells, weighted, at a joint cost of 1."""
        cells = self.closure.cells
        return sum(
            float((weights * variances * cells[lines[:, -1]]).sum())
            for lines, weights, variances in zip(self.asked, self.weights, self.cell_variances(), strict=True)
        )

    def without_total(self) -> "MarginalPlan":
        """The plan where n is public: its variance is 0, and it costs nothing."""
        variances = self.variances.copy()
        variances[0] = 0.0
        return MarginalPlan(self.closure, self.asked, self.weights, variances)

    @cached_property
    def strategy(self) -> Strategy:
        """The queries to measure: each residual as whole numbers, n_S times itself, of variance n_S² v_S."""
        sizes = self.closure.domain.sizes
        queries, variances = [], []
        for attrs, cells, variance in zip(
            self.closure.members, self.closure.cells, self.variances, strict=True
        ):
            if variance > 0:
                steps = round(_GRID * math.log2(cells**2 * variance))
                queries.append(Residual(attrs, tuple(sizes[attr] for attr in attrs)))
                variances.append(round_up(Fraction(2.0 ** (steps / _GRID))))
        return Strategy(self.closure, tuple(queries), tuple(variances))


def weights_of(domain: Domain, workload: Workload) -> dict[Attrs, float]:
    """The weight of each marginal, those asked for twice together."""
    weights: dict[Attrs, float] = {}
    for query, weight in zip(workload.queries, workload.weights, strict=True):
        attrs = domain.canonical(query.attrs)
        weights[attrs] = weights.get(attrs, 0.0) + weight
    return weights


def check_asked(domain: Domain, workload: Workload) -> None:
    """Refuse a workload that says nothing, or that holds too many smaller marginals to be listed."""
    if not domain.varying(workload.attrs):
        raise WorkloadError(
            "the workload asks for the total alone; name an attribute with more than one value."
        )
    check_closure([len(query.attrs) for query in workload], attributes=len(domain))


def check_room(domain: Domain, workload: Workload, *, limit_mb: float, instead: str) -> None:
    """Refuse a workload whose residuals are larger than the limit, before anything is charged.

    ``instead`` says who else could take it.
    """
    largest = max(workload.attribute_sets, key=domain.size)
    alone = mib(domain.size(largest))
    size = alone if alone > limit_mb else mib(numbers_of(domain, workload))
    if size > limit_mb:
        raise TooLargeError(
            f"the residuals of this workload need {size:,.3g} MB, above max_model_mb = {limit_mb:g}; the "
            f"largest marginal, {' × '.join(largest)}, takes {alone:.3g} MB. Ask for fewer or lower "
            f"marginals, coarsen attributes, raise max_model_mb, or use {instead}"
        )


def numbers_of(domain: Domain, workload: Workload) -> int:
    """How many numbers the model of a workload holds."""
    if workload.only_marginals:
        return Closure.of(domain, workload.attribute_sets).size
    return sum(map(domain.size, workload.attribute_sets))
