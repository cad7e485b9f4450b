"""MWEM+PUB: MWEM on the public support, with advanced composition.

    X̂ ← distinct public records,  A₀ ← n · empirical public distribution
    t = 1 … T:
        q_t ~ exp((ε₀/2) |q(D) − q(A_{t−1})| / 2)            over all cells          select
        a_t ← q_t(D) + Lap_ℤ(2/ε₀)                                                   measure
        A_t ∝ A_{t−1} · exp(q_t(x) (a_t − q_t(A_{t−1})) / n)                         estimate
    release (A₀ + … + A_{T−1}) / T

Liu, Vietri, Steinke, Ullman, Wu, "Private query release with public data: a case study of the
American Community Survey" (2020), algorithm 1. ε₀ solves √(2T log 1/δ) ε₀ + T ε₀ (exp ε₀ − 1) = ε.

Where we differ: the paper prints Lap(ε₀/2), which is a rate and lacks 1/n, and an exponential mechanism
without its sensitivity; the loop above has what they must be (spec 9.3, M3 and M4). The paper names no
output; we release the average (M5). The ledger is charged the zCDP cost of each draw at ε₀/2: (ε₀/2)²/8
for the exponential mechanism and (ε₀/2)²/2 otherwise. Their sum always lies within ρ(ε, δ), since advanced
composition is the looser bound; the difference stays in the ledger for another run.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

import numpy as np

from sidelight import _check
from sidelight.curator.curator import Curator
from sidelight.data.domain import Domain
from sidelight.data.table import Table
from sidelight.measurement import Measurement, stddev_of
from sidelight.mechanisms.base import Mechanism, Outcome, Outlook, total_and_rest
from sidelight.mechanisms.paper import Paper
from sidelight.mechanisms.public_support import (
    ONE_NUMBER,
    check_public_share,
    check_rounds,
    left_out_notes,
    numbers_noisiest,
    public_support,
    require_public_support,
    support_notes,
    support_outlook,
)
from sidelight.models.support_weights import SupportWeights
from sidelight.privacy.budget import Budget, Cost, Epsilon, Rho
from sidelight.privacy.convert import advanced
from sidelight.privacy.event import Gaussian, Laplace
from sidelight.privacy.unit import Unit
from sidelight.queries.numbers import by_attributes, part
from sidelight.queries.workload import Workload
from sidelight.select.score import CellError


@dataclass(frozen=True, kw_only=True)
class MWEMPub(Mechanism):
    """Each round: select the one number that the model answers worst, measure it, reweigh public records."""

    name = "mwem-pub"
    public_data = "needed"
    papers = (
        Paper(
            authors=("Liu", "Vietri", "Steinke", "Ullman", "Wu"),
            title="Private query release with public data: a case study of the American Community Survey",
            year=2020,
        ),
    )

    rounds: int = 50
    """How many numbers to measure (T)."""
    total_share: float = 0.02
    """Share of the budget that measures n, where n is not public."""
    selection: Literal["exponential", "permute-and-flip"] = "exponential"
    """How a round selects; it does so at ε₀/2."""
    accounting: Literal["advanced", "pure"] = "advanced"
    """ε₀ by advanced composition as in the paper; or ε/T, which needs no δ."""
    step: float = 1.0
    """The step size η, 1 in the paper and ½ in MWEM and PMW-Pub."""
    output: Literal["average", "last"] = "average"
    """The mean of A₀ … A_{T−1}, or the last A."""
    prior: Literal["public", "uniform"] = "public"
    """Weights to start from: the public ones, or all equal ("support only")."""
    public_share: float = 1.0
    """Share of the public records to use, drawn at random."""
    seed: int = 0
    """Seed for drawing the public share; no noise depends on it."""
    max_cache_mb: float = 256.0
    """Memory for the public records' cell numbers; beyond it they are computed again each round."""

    def __post_init__(self) -> None:
        _check.positive_integer(rounds=self.rounds)
        _check.share(total_share=self.total_share)
        _check.positive(step=self.step, max_cache_mb=self.max_cache_mb)
        check_public_share(self.public_share)
        _check.one_of(("exponential", "permute-and-flip"), selection=self.selection)
        _check.one_of(("advanced", "pure"), accounting=self.accounting)
        _check.one_of(("average", "last"), output=self.output)
        _check.one_of(("public", "uniform"), prior=self.prior)
        _check.natural(seed=self.seed)

    def run(self, curator: Curator, workload: Workload, *, public: Table | None = None) -> Outcome:
        assert public is not None, "check() refuses a run without public data"
        total_cost, _ = curator.remaining.split(self.total_share)
        n = curator.total(total_cost)
        select_cost, measure_cost = self._costs(curator.remaining)

        start = public_support(
            self.name, public, curator.domain, total=n, share=self.public_share, seed=self.seed
        )
        start = start.uniform if self.prior == "uniform" else start
        fit = SupportWeights(start, workload.attribute_sets, max_cache_mb=self.max_cache_mb)
        candidates = by_attributes(workload)
        played = np.zeros_like(fit.weights)
        measurements: list[Measurement] = []
        for _ in range(self.rounds):
            played += fit.weights
            # SELECT the number that the model answers worst, among all cells of the workload.
            query, cell = curator.select_cell(candidates, CellError(fit), select_cost, method=self.selection)
            # MEASURE it.
            asked = fit.asked(part(query, cell, curator.domain))
            made = curator.measure(asked.query, measure_cost, noise="laplace").against(fit)
            measurements.append(made)
            # ESTIMATE: reweigh the public records.
            fit.update(asked, self.step * (float(made.answer[0]) - fit.answer(asked)) / n)
            fit.settle()

        weights = played if self.output == "average" else fit.weights
        return Outcome(
            fit.start.with_weights(weights),
            tuple(measurements),
            curator.events,
            notes=support_notes(fit.start, workload),
            public_attrs=curator.domain.attrs,
            public_share=self.public_share,
        )

    def allotment(self, budget: Budget) -> Cost:
        if self.accounting == "pure":
            return budget.pure()
        budget.rho()  # refuses δ = 0, and names the accounting that does without
        epsilon = Fraction(advanced(budget.epsilon, budget.delta, self.rounds)) / 2
        return Rho(self.rounds * (epsilon**2 / self._select_divisor + epsilon**2 / 2))

    @property
    def _select_divisor(self) -> int:
        # PRIVACY: ε²/8 needs a bounded range, which permute-and-flip has not (spec 9.1, C3).
        return 8 if self.selection == "exponential" else 2

    def _costs(self, left: Cost) -> tuple[Cost, Cost]:
        """The costs of a round's selection and of its measurement, both at the same ε₀/2."""
        each = left / self.rounds
        if isinstance(each, Epsilon):
            return each.split(Fraction(1, 2))
        return each.split(Fraction(2, 2 + self._select_divisor))

    def check_public(self, domain: Domain, public: Any) -> None:
        require_public_support(self.name, domain, public)

    def public_notes(self, domain: Domain, public: Any) -> tuple[str, ...]:
        return left_out_notes(self.name, domain, public)

    def check_total(self, total: float, *, allotment: Cost, unit: Unit) -> None:
        sigma = stddev_of(ONE_NUMBER, self._measure_cost(allotment, unit), unit, noise="laplace")
        check_rounds(self.rounds, total, sigma)

    def noisiest(
        self, domain: Domain, workload: Workload, *, allotment: Cost, unit: Unit
    ) -> Iterable[Gaussian | Laplace]:
        cost, total = self._measure_cost(allotment, unit), allotment.split(self.total_share)[0]
        return numbers_noisiest(workload, cost, unit, total=total, noise="laplace")

    def _measure_cost(self, allotment: Cost, unit: Unit) -> Cost:
        """The cost of each round's measurement, after n has been paid for where it is not public."""
        _, rest = total_and_rest(allotment, self.total_share, unit)
        return self._costs(rest)[1]

    def outlook(self, domain: Domain, workload: Workload, *, allotment: Cost, unit: Unit) -> Outlook:
        measure_cost = self._measure_cost(allotment, unit)
        return support_outlook(
            self.rounds, measure_cost, unit, domain, workload, self.max_cache_mb, noise="laplace"
        )
