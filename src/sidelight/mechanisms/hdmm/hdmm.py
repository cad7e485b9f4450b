"""HDMM for marginals, as residual planning: the noise that a fixed workload asks for, measured once.

    v_S ∝ 1/(n_S √ω_S),  ω_S = Σ_{A⊇S} c_A/n_A     for all S below a marginal of the workload      plan
    y_S ← C_S M_S(D) + 𝒩(0, n_S² v_S),  C_S = ⊗_{i∈S} (n_i I − J)     all of them together         measure
    r_S ← R_S y_S / n_S;    M_B = Σ_{S⊆B} r_S repeated over B ∖ S, divided by n_{B∖S}              reconstruct

HDMM chooses among strategies the one whose least-squares answers have the least squared error. For marginals
and Gaussian noise the best of all strategies is known (planning.py): it measures what each marginal says
beyond the smaller ones, its residual. Answers are unbiased, and each has an exact variance, known before
anything is read.

Where the workload holds ranges, its attribute sets are measured through products of p-Identity strategies
instead (ranges.py).

McKenna, Miklau, Hay, Machanavajjhala (2018), "Optimizing error of high-dimensional statistical queries under
differential privacy", arXiv:1808.03537; Xiao, He, Zhang, Kifer (2023), "An optimal and scalable matrix
mechanism for noisy marginals under convex loss functions", arXiv:2305.08175; spec 7.5. Where we differ:
residuals are measured as whole numbers, n_S times themselves, with exact discrete noise; under replacement n
is public and the same proportions are paid at what a replaced record moves (queries/strategy.py).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from sidelight import _check
from sidelight.curator.curator import Curator
from sidelight.data.domain import Attrs, Domain
from sidelight.data.table import Table
from sidelight.errors import SettingError
from sidelight.fit.products import non_negative
from sidelight.fit.residuals import Constraint, ResidualReconstruction
from sidelight.measurement import measuring_together
from sidelight.mechanisms.base import Mechanism, Outcome, Outlook
from sidelight.mechanisms.candidates import has_too_many, take_residuals
from sidelight.mechanisms.hdmm.planning import (
    MarginalPlan,
    Objective,
    check_asked,
    check_room,
    weights_of,
)
from sidelight.mechanisms.hdmm.ranges import ProductPlan, check_ranges
from sidelight.mechanisms.paper import MCKENNA_2018, XIAO_2023
from sidelight.models.products import ProductEstimate, Products
from sidelight.models.reconstruction import Reconstruction
from sidelight.privacy.budget import Cost, Rho
from sidelight.privacy.event import Event
from sidelight.privacy.unit import Unit
from sidelight.queries.query import expected_l1_noise
from sidelight.queries.workload import Workload

Array = NDArray[np.float64]

_LISTED = 20
"""Attribute sets with ranges that the plan tells the errors of."""


@dataclass(frozen=True, kw_only=True)
class HDMM(Mechanism):
    """Plan the noise of every residual, measure them all at once, add them up."""

    name = "hdmm"
    public_data = "unused"
    papers = (MCKENNA_2018, XIAO_2023)

    objective: Objective = "mean"
    """The error that the plan makes small: the squared errors of all cells together, each marginal's times
    its weight in the workload; or the largest variance of a cell, times that weight."""
    reconstruction: Constraint = "non-negative"
    """Whether counts are kept from being negative. ``least-squares`` is unbiased, negative counts and all."""
    max_model_mb: float = 150.0
    """Size limit of all residuals together: 20 million numbers, of which a million takes some six seconds."""

    def __post_init__(self) -> None:
        _check.one_of(("mean", "maximum"), objective=self.objective)
        _check.one_of(("non-negative", "least-squares"), reconstruction=self.reconstruction)
        _check.positive(max_model_mb=self.max_model_mb)

    def run(self, curator: Curator, workload: Workload, *, public: Table | None = None) -> Outcome:
        # PLAN
        plan = self._plan(curator.domain, workload, curator.unit)
        # MEASURE everything together; the total is a residual too where n is private.
        measurements = curator.measure_together(plan.strategy, _rho(curator.allotment))
        # RECONSTRUCT all that lies below the workload's marginals.
        n = curator.total(curator.allotment) if curator.unit.total_is_public else None
        if isinstance(plan, MarginalPlan):
            # What earlier releases told of the same records is averaged in, residual by residual.
            measurements += take_residuals(curator, workload.closure(curator.domain))
            estimator = ResidualReconstruction(constraint=self.reconstruction)
            model = estimator.estimate(curator.domain, measurements, total=n)
        else:
            estimates = tuple(map(ProductEstimate.of, measurements))
            known = Products(curator.domain, estimates, known_total=n)
            is_clipped = self.reconstruction == "non-negative"
            model = Reconstruction(non_negative(known) if is_clipped else known, is_clipped=is_clipped)
        return Outcome(model, tuple(measurements), curator.events)

    def _plan(self, domain: Domain, workload: Workload, unit: Unit) -> MarginalPlan | ProductPlan:
        """Residuals for marginals alone; products of strategies where there are ranges."""
        if not workload.only_marginals:
            check_ranges(domain, workload)
            return _planned_ranges(domain, workload, self.objective)
        items = tuple(weights_of(domain, workload).items())
        return _planned_marginals(domain, items, self.objective, total_is_public=unit.total_is_public)

    def check(self, domain: Domain, workload: Workload, public: Table | None) -> None:
        super().check(domain, workload, public)
        check_asked(domain, workload)
        check_ranges(domain, workload)
        instead = "mechanism='aim' with oversized='skip', which measures only what it has room for."
        if workload.only_marginals and has_too_many(domain, workload):
            instead = "mechanism='mst', which measures pairs along a tree of the attributes."
        check_room(domain, workload, limit_mb=self.max_model_mb, instead=instead)

    def noisiest(self, domain: Domain, workload: Workload, *, allotment: Cost, unit: Unit) -> Iterable[Event]:
        return [measuring_together(self._plan(domain, workload, unit).strategy, _rho(allotment), unit)]

    def outlook(self, domain: Domain, workload: Workload, *, allotment: Cost, unit: Unit) -> Outlook:
        plan = self._plan(domain, workload, unit)
        event = measuring_together(plan.strategy, _rho(allotment), unit)
        told = _marginal_errors if isinstance(plan, MarginalPlan) else _range_errors
        stddevs, notes = told(plan, float(event.scale))  # type: ignore[arg-type]  # each by its own kind
        return Outlook(
            measurements=len(plan.strategy.queries),
            stddev=float(np.concatenate(stddevs).mean()),
            noise_on="an answer to the workload, on average",
            model_bytes=8 * plan.size,
            counting_bytes=8 * plan.size,
            notes=tuple(notes),
        )


def _marginal_errors(plan: MarginalPlan, scale: float) -> tuple[list[Array], list[str]]:
    """σ of the cells of each marginal, degree by degree, and in words."""
    found, notes = [], []
    for lines, variances in zip(plan.asked, plan.cell_variances(), strict=True):
        stddevs, cells = np.sqrt(scale * variances), plan.closure.cells[lines[:, -1]]
        sums = expected_l1_noise(1, 1.0) * stddevs * cells
        degree = len(plan.closure.members[lines[0, -1]])
        found.append(stddevs)
        notes.append(
            f"Each cell of the {len(lines):,} {degree}-way marginals has a standard error of "
            f"{_spread(stddevs)}; all cells "
            f"of one marginal together are off by {sums.mean():,.0f} records on the mean."
        )
    return found, notes


def _range_errors(plan: ProductPlan, scale: float) -> tuple[list[Array], list[str]]:
    """σ of each query, attribute set by attribute set, and in words."""
    found = plan.stddevs(scale)
    notes = [
        f"Queries about {' × '.join(query.attrs)} have a standard error of {_spread(stddevs)}."
        for query, stddevs in zip(plan.queries[:_LISTED], found, strict=False)
    ]
    return found, notes


def _spread(stddevs: Array) -> str:
    mean, least, most = (
        _check.rounded(float(one), 4) for one in (stddevs.mean(), stddevs.min(), stddevs.max())
    )
    return f"{mean} on the mean ({least} to {most})"


@lru_cache(maxsize=4)
def _planned_marginals(
    domain: Domain, weights: tuple[tuple[Attrs, float], ...], objective: Objective, *, total_is_public: bool
) -> MarginalPlan:
    """The plan, which is asked for several times before a run begins."""
    plan = MarginalPlan.of(domain, dict(weights), objective=objective)
    return plan.without_total() if total_is_public else plan


@lru_cache(maxsize=4)
def _planned_ranges(domain: Domain, workload: Workload, objective: Objective) -> ProductPlan:
    return ProductPlan.of(domain, workload, objective=objective)


def _rho(cost: Cost) -> Rho:
    if not isinstance(cost, Rho):
        raise SettingError("mechanism 'hdmm' draws Gaussian noise, which is paid for in zCDP.")
    return cost
