"""MWEM: multiplicative weights and the exponential mechanism.

    A ← n · uniform                                                         on every cell
    T times:
        q ~ exp(ε₁ (‖q(D) − q(A)‖₁ − penalty · cells(q)) / 2Δ₁)                 select
        m ← q(D) + noise                                                       measure
        A ∝ A · exp(q(x) (m − q(A)) / 2n)  for every m so far, in passes       estimate
    return the last A, or the average of A₀ … A_{T−1}

Hardt, Ligett, McSherry (2012), arXiv:1012.4763; spec 3. Where we differ: noise is Gaussian, counted in ρ,
unless ``accounting`` is pure; sensitivities are those of the unit, 2 and not 1 for a marginal under
replacement (spec 9.2, N1–N4); under add-or-remove n is measured first. Domains too large for a
histogram take a product of components, which is the same distribution (spec 3.3).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from sidelight.curator.curator import Curator
from sidelight.data.domain import Domain
from sidelight.data.table import Table
from sidelight.fit.multiplicative_weights import MultiplicativeWeights
from sidelight.measurement import Measurement
from sidelight.mechanisms import mwem_check
from sidelight.mechanisms.base import Mechanism, Outcome, Outlook
from sidelight.mechanisms.paper import HARDT_2012
from sidelight.models.components import Components
from sidelight.models.histogram import Histogram, RunningMean, check_fits
from sidelight.privacy.budget import Budget, Cost
from sidelight.privacy.event import Gaussian, Laplace
from sidelight.privacy.unit import Unit
from sidelight.queries.numbers import by_attributes, part
from sidelight.queries.query import Marginal, Query
from sidelight.queries.workload import Workload
from sidelight.select.score import CellError, ModelError

_MET, _STUCK = 0.7, 0.999
"""Replay ends once every answer is met to within so much of its σ, or a pass leaves so much of the misfit. At
0.5 counts would be a little closer, but at small ε cells that hold people would lose all their weight."""


@dataclass(frozen=True, kw_only=True)
class MWEM(Mechanism):
    """Each round: find the query the model answers worst, measure it, refit."""

    name = "mwem"
    public_data = "unused"
    takes_groups = True
    papers = (HARDT_2012,)

    rounds: int = 10
    """How many queries to measure (T)."""
    candidates: Literal["cuboids", "queries"] = "cuboids"
    """Select whole queries of the workload, such as marginals; or one number at a time, as in the paper: a
    cell of a marginal, a range, a linear query."""
    accounting: Literal["zcdp", "pure"] = "zcdp"
    """Gaussian noise counted in ρ, or Laplace noise counted in ε as in the paper."""
    selection: Literal["exponential", "permute-and-flip"] = "exponential"
    """The selection. Permute-and-flip errs less at the same ε, but costs four times the ρ (spec 2.5)."""
    penalty: Literal["noise", "cell", "none"] = "noise"
    """The number subtracted from a marginal's score for each of its cells: the expected noise; 1 as in the
    paper, which is far less than the noise (spec 9.3, M19); or 0."""
    output: Literal["last", "average"] = "last"
    """The last A, as in the paper's experiments; or the average of A₀ … A_{T−1}, as in its theorem."""
    model: Literal["auto", "histogram", "components"] = "auto"
    """One explicit histogram, or a product of components. "auto" takes the histogram if it has at most
    ``max_component_cells`` cells."""
    max_component_cells: int = 2**18
    """Most cells of a component; a query that would make a larger one is no candidate."""
    total_share: float = 0.02
    """Share of the budget that measures n, where n is not public."""
    select_share: float = 0.5
    """Share of each round that selects; the rest measures. One half in the paper."""
    histogram_share: float = 0.0
    """Share of the budget for a noisy histogram to start from; 0 starts from the uniform one."""
    histogram_floor: float = 0.1
    """Smallest cell of that histogram, as a multiple of the uniform n/N; a cell of 0 could never grow."""
    passes: int = 100
    """Most passes over all measurements in each round; 0 uses each measurement once, as in the paper."""
    step: float = 0.5
    """The step size η, the ½ of exp(q(x)(m − q(A)) / 2n)."""
    clip: bool = True
    """Whether counts measured below 0 or above n are set to 0 or n; off in the paper."""

    def __post_init__(self) -> None:
        mwem_check.settings(self)

    @property
    def estimator(self) -> MultiplicativeWeights:
        """How measurements are replayed."""
        # Answers that are met more closely would wear away what a noisy start knows of every cell.
        tolerance = 1.0 if self.histogram_share else _MET
        return MultiplicativeWeights(
            passes=self.passes, step=self.step, clip=self.clip, tolerance=tolerance, most_left=_STUCK
        )

    def run(self, curator: Curator, workload: Workload, *, public: Table | None = None) -> Outcome:
        total_cost, _ = curator.remaining.split(self.total_share)
        n = curator.total(total_cost)
        start, measured_start = self._start(curator, n)
        select_cost, measure_cost = (curator.remaining / self.rounds).split(self.select_share)
        asked = by_attributes(workload) if self.candidates == "queries" else tuple(workload)

        model: Histogram | Components = start
        played = RunningMean()
        measurements: list[Measurement] = []
        for _ in range(self.rounds):
            if self.output == "average" and isinstance(model, Histogram):
                played.add(model)
            # SELECT the query that the model answers worst.
            query = self._select(curator, self._candidates(asked, model), model, select_cost, measure_cost)
            # MEASURE it.
            measurements.append(curator.measure(query, measure_cost).against(model))
            # ESTIMATE a model that agrees with everything measured so far.
            model = self.estimator.estimate(model, measurements)

        final = played.model if self.output == "average" else model
        taken = {"model": "components" if isinstance(final, Components) else "histogram"}
        return Outcome(final, (*measured_start, *measurements), curator.events, decided=taken)

    def _start(self, curator: Curator, n: float) -> tuple[Histogram | Components, tuple[Measurement, ...]]:
        """A₀: uniform, or a noisy histogram with its own share of the budget."""
        if self.takes_components(curator.domain):
            return Components.uniform(curator.domain, total=n), ()
        uniform = Histogram.uniform(curator.domain, total=n)
        if not self.histogram_share:
            return uniform, ()
        histogram_cost, _ = curator.remaining.split(self.histogram_share)
        noisy = curator.measure(Marginal(curator.domain.attrs), histogram_cost)
        counts = noisy.answer.clip(min=self.histogram_floor * n / curator.domain.size())
        return Histogram.of_counts(curator.domain, counts, total=n), (noisy,)

    def _candidates(self, asked: Sequence[Query], model: Histogram | Components) -> Sequence[Query]:
        """The queries that may be selected: those that keep every component within its limit."""
        # PRIVACY: which queries remain depends on past selections alone, and those are public.
        kept = [query for query in asked if query.attrs]
        if isinstance(model, Components):
            limit = self.max_component_cells
            kept = [query for query in kept if model.cells_if_joined(query.attrs) <= limit]
        return kept

    def _select(
        self,
        curator: Curator,
        candidates: Sequence[Query],
        model: Histogram | Components,
        select_cost: Cost,
        measure_cost: Cost,
    ) -> Query:
        if self.candidates == "queries":
            query, index = curator.select_cell(
                candidates, CellError(model), select_cost, method=self.selection
            )
            return part(query, index, curator.domain)
        penalty = mwem_check.penalty(self.penalty, measure_cost, curator.unit)
        return curator.select(candidates, ModelError(model, penalty), select_cost, method=self.selection)

    def takes_components(self, domain: Domain) -> bool:
        """Whether the model is a product of components."""
        needs_histogram = self.output == "average" or self.histogram_share > 0
        fits = domain.size() <= self.max_component_cells
        return self.model == "components" or (self.model == "auto" and not fits and not needs_histogram)

    def allotment(self, budget: Budget) -> Cost:
        return budget.pure() if self.accounting == "pure" else budget.rho()

    def check(self, domain: Domain, workload: Workload, public: Table | None) -> None:
        super().check(domain, workload, public)
        mwem_check.workload(self, domain, workload)
        if not self.takes_components(domain):
            check_fits(domain)

    def check_total(self, total: float, *, allotment: Cost, unit: Unit) -> None:
        mwem_check.noise(self, total, allotment=allotment, unit=unit)

    def noisiest(
        self, domain: Domain, workload: Workload, *, allotment: Cost, unit: Unit
    ) -> Iterable[Gaussian | Laplace]:
        return mwem_check.noisiest(self, domain, workload, allotment=allotment, unit=unit)

    def outlook(self, domain: Domain, workload: Workload, *, allotment: Cost, unit: Unit) -> Outlook:
        return mwem_check.outlook(self, domain, workload, allotment=allotment, unit=unit)
