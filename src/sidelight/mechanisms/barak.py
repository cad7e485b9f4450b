"""Barak et al.: every Fourier coefficient that the workload needs, measured once.

    for every subset a of the attributes of some query of the workload:
        m_a ← Σ_x (−1)^{a·x} D(x) + Lap(Δ₁ m / ε)                             measure
    A ← the distribution that fits all m_a                                    estimate

A marginal on binary attributes b needs only the coefficients of the subsets of b:
marginal_b[y] = 2^{−|b|} Σ_{a⊆b} (−1)^{a·y} φ_a.

Barak, Chaudhuri, Dwork, Kale, McSherry, Talwar (PODS 2007); the fit by multiplicative weights is the
baseline of Hardt, Ligett, McSherry (2012), section 4.2; spec 3.5. Where we differ: noise may be Gaussian,
counted in ρ; under replacement φ_∅ = n is public and not measured, and each other coefficient moves by
Δ₁ = 2, so the scale is 2(m − 1)/ε; the linear program's solution is not rounded to whole counts.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from sidelight import _check
from sidelight.curator.curator import Curator
from sidelight.data.domain import Domain
from sidelight.data.impossible import possible_cells
from sidelight.data.table import Table
from sidelight.errors import TooLargeError
from sidelight.fit.multiplicative_weights import MultiplicativeWeights
from sidelight.measurement import Measurement, measuring, stddev_of
from sidelight.mechanisms.base import Mechanism, Outcome, Outlook
from sidelight.mechanisms.candidates import check_asks_attributes, check_only_marginals
from sidelight.mechanisms.paper import HARDT_2012, Paper
from sidelight.models.histogram import Histogram, check_fits
from sidelight.models.model import Model
from sidelight.privacy.budget import Budget, Cost
from sidelight.privacy.event import Gaussian, Laplace
from sidelight.privacy.unit import Unit
from sidelight.queries.query import Fourier
from sidelight.queries.workload import Workload

MAX_LINEAR_PROGRAM_CELLS = 2**12
"""Most cells for the linear program: it has a variable for each cell, two dense rows for each coefficient."""


@dataclass(frozen=True, kw_only=True)
class Barak(Mechanism):
    """Measure every Fourier coefficient the workload needs, then fit a distribution to them."""

    name = "barak"
    public_data = "unused"
    papers = (
        Paper(
            authors=("Barak", "Chaudhuri", "Dwork", "Kale", "McSherry", "Talwar"),
            title="Privacy, accuracy, and consistency too: a holistic solution to contingency table release",
            year=2007,
            venue="PODS",
        ),
        HARDT_2012,
    )

    fit: Literal["multiplicative-weights", "linear-program"] = "multiplicative-weights"
    """Multiplicative weights from the uniform histogram, as in MWEM's comparison; or the original: the
    non-negative histogram that minimises the largest deviation from a measured coefficient."""
    accounting: Literal["zcdp", "pure"] = "zcdp"
    """Gaussian noise counted in ρ, or Laplace noise counted in ε as in the paper."""
    passes: int = 100
    """Most passes over the coefficients in the fit by multiplicative weights."""

    def __post_init__(self) -> None:
        _check.one_of(("multiplicative-weights", "linear-program"), fit=self.fit)
        _check.one_of(("zcdp", "pure"), accounting=self.accounting)
        _check.positive_integer(passes=self.passes)

    def run(self, curator: Curator, workload: Workload, *, public: Table | None = None) -> Outcome:
        asked = coefficients(curator.domain, workload, with_total=not curator.unit.total_is_public)
        share = curator.remaining / len(asked)

        # MEASURE every coefficient, each with its share.
        measurements = [curator.measure(query, share) for query in asked]

        # ESTIMATE the distribution that fits them all.
        if curator.unit.total_is_public:
            n = curator.total(share)
        else:
            n = max(1.0, float(measurements[0].answer[0]))
        uniform = Histogram.uniform(curator.domain, total=n)
        model: Model
        if self.fit == "linear-program":
            model = least_deviation(uniform, measurements)
        else:
            model = MultiplicativeWeights(passes=self.passes).estimate(uniform, measurements)
        return Outcome(model, tuple(measurements), curator.events)

    def allotment(self, budget: Budget) -> Cost:
        return budget.pure() if self.accounting == "pure" else budget.rho()

    def check(self, domain: Domain, workload: Workload, public: Table | None) -> None:
        super().check(domain, workload, public)
        check_only_marginals(workload, name=self.name)
        for query in workload:
            Fourier(query.attrs).check(domain)
        check_asks_attributes(workload)
        check_fits(domain)
        if self.fit == "linear-program" and domain.size() > MAX_LINEAR_PROGRAM_CELLS:
            raise TooLargeError(
                f"the linear program would have {domain.size()} variables; at most "
                f"{MAX_LINEAR_PROGRAM_CELLS} are allowed. Use fit='multiplicative-weights'."
            )

    def noisiest(
        self, domain: Domain, workload: Workload, *, allotment: Cost, unit: Unit
    ) -> Iterable[Gaussian | Laplace]:
        asked = coefficients(domain, workload, with_total=not unit.total_is_public)
        return [measuring(query, allotment / len(asked), unit) for query in (asked[0], asked[-1])]

    def outlook(self, domain: Domain, workload: Workload, *, allotment: Cost, unit: Unit) -> Outlook:
        asked = coefficients(domain, workload, with_total=not unit.total_is_public)
        return Outlook(
            measurements=len(asked),
            stddev=stddev_of(asked[-1], allotment / len(asked), unit),
            model_bytes=8 * domain.size(),
            counting_bytes=8 * max(domain.size(query.attrs) for query in asked),
            notes=(
                "Each measured number is a Fourier coefficient; a cell of a marginal is a mean of several.",
            ),
        )


def coefficients(domain: Domain, workload: Workload, *, with_total: bool) -> list[Fourier]:
    """One query for every subset of some marginal's attributes; the total comes first.

    >>> domain = Domain.of({name: 2 for name in "abc"})
    >>> len(coefficients(domain, Workload.marginals(domain, degree=2), with_total=True))
    7
    """
    total = [Fourier(())] if with_total else []
    return total + [Fourier(attrs) for attrs in workload.closure(domain)]


def least_deviation(start: Histogram, measurements: list[Measurement]) -> Histogram:
    """The histogram A ≥ 0 of the same total that minimises max_a |φ_a(A) − m_a|."""
    from scipy.optimize import linprog

    domain = start.domain
    signs = []
    for measurement in measurements:
        attrs = measurement.query.attrs
        alone = Fourier(attrs).weights((2,) * len(attrs))
        # The axes of a coefficient are in the domain's order, as the closure gives them.
        aligned = alone.reshape([2 if attr in attrs else 1 for attr in domain.attrs])
        signs.append(np.broadcast_to(aligned, domain.shape).reshape(-1))
    queries = np.array(signs, dtype=np.float64)
    answers = np.concatenate([measurement.answer for measurement in measurements])
    slack = np.ones((len(queries), 1))
    solved = linprog(
        np.append(np.zeros(domain.size()), 1.0),
        A_ub=np.block([[queries, -slack], [-queries, -slack]]),
        b_ub=np.concatenate([answers, -answers]),
        A_eq=np.append(np.ones(domain.size()), 0.0)[None, :],
        b_eq=[start.total],
        bounds=[*((0, None if possible else 0) for possible in possible_cells(domain).flat), (0, None)],
        method="highs",
    )
    if solved.x is None:
        raise ArithmeticError(f"the linear program could not be solved: {solved.message}")
    return Histogram.of_counts(domain, np.maximum(solved.x[:-1], 0.0), total=start.total)
