"""PMW-Pub: private multiplicative weights on the public support, counted in zCDP.

    X̂ ← distinct public records,  A₀ ← n · empirical public distribution
    t = 1 … T:
        q_t ~ exp(ε₁ |q(D) − q(A_{t−1})| / 2)                over all cells          select
        a_t ← q_t(D) + 𝒩_ℤ(0, σ²), clipped to [0, n]                                 measure
        keep i ≤ t with |q_i(A_{t−1}) − a_i| ≥ ½ |q_t(A_{t−1}) − a_t|
        A ∝ A · exp(q_i(x) (a_i − q_i(A)) / 2n)  for the kept i, in random order     estimate
    release (A₀ + … + A_{T−1}) / T

Liu, Vietri, Steinke, Ullman, Wu (2021), arXiv:2102.08598, algorithm 1 and appendix (the replay).
Each round costs ρ/T; with equal shares σ = √(T/ρ) and ε₁ = 2√(ρ/T).

Where we differ: the exponential mechanism, the default, runs at twice the paper's ε for the same
charge, since its range is bounded (spec 9.1, C4). Permute-and-flip is charged ε²/2, and draws from its
own law, not from the exponential mechanism's (C3, M9). The noise depends on the private n, not on the
public table's size (9.2, N7). In a replay q_i(A) is computed anew before each update, and a query selected
twice keeps both answers (9.3, M6). Queries are counts, never divided by a private n, so add-or-remove
works too: n is measured first (9.2, N8).
"""

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from sidelight import _check
from sidelight.curator.curator import Curator
from sidelight.data.domain import Domain
from sidelight.data.table import Table
from sidelight.measurement import Measurement
from sidelight.mechanisms.base import Outcome
from sidelight.mechanisms.paper import Paper
from sidelight.mechanisms.public_support import SupportRounds
from sidelight.models.support import Support
from sidelight.models.support_weights import Asked, SupportWeights
from sidelight.privacy.budget import Cost
from sidelight.queries.numbers import by_attributes, part
from sidelight.queries.workload import Workload
from sidelight.select.score import CellError


@dataclass(frozen=True, kw_only=True)
class PMWPub(SupportRounds):
    """Each round measures one number, and applies again past ones that the weights still answer badly."""

    name = "pmw-pub"
    papers = (
        Paper(
            authors=("Liu", "Vietri", "Steinke", "Ullman", "Wu"),
            title="Leveraging public data for practical private query release",
            year=2021,
            venue="ICML",
            arxiv="2102.08598",
        ),
    )

    rounds: int = 100
    step: float = 0.5
    select_share: float = 0.5
    """Share of each round that selects; the rest measures."""
    replay: bool = True
    """Whether past measurements are applied again if their error is at least half the newest one's."""
    support: Literal["public", "random"] = "public"
    """The records that get weights: the public ones; or random ones, an ablation, which fails as expected."""
    support_records: int = 10_000
    """Number of records of a random support."""

    def __post_init__(self) -> None:
        super().__post_init__()
        _check.positive_integer(support_records=self.support_records)
        _check.share(select_share=self.select_share)
        _check.one_of(("public", "random"), support=self.support)

    def run(self, curator: Curator, workload: Workload, *, public: Table | None = None) -> Outcome:
        total_cost, _ = curator.remaining.split(self.total_share)
        n = curator.total(total_cost)
        select_cost, measure_cost = self._costs(curator.remaining)

        start = self._start(curator.domain, public, n)
        fit = SupportWeights(start, workload.attribute_sets, max_cache_mb=self.max_cache_mb)
        candidates = by_attributes(workload)
        played = np.zeros_like(fit.weights)
        measurements: list[Measurement] = []
        known: list[tuple[Asked, float]] = []
        order = np.random.default_rng(self.seed)
        for _ in range(self.rounds):
            played += fit.weights
            # SELECT the number that the model answers worst, among all cells of the workload.
            query, cell = curator.select_cell(candidates, CellError(fit), select_cost, method=self.selection)
            # MEASURE it.
            asked = fit.asked(part(query, cell, curator.domain))
            measurements.append(curator.measure(asked.query, measure_cost).against(fit))
            noisy = float(np.clip(measurements[-1].answer[0], asked.low * n, asked.high * n))
            known.append((asked, noisy))
            # ESTIMATE: reweigh, for this number and for those that are still far off.
            for past, answer in self._to_apply(fit, known, order):
                fit.update(past, self.step * (answer - fit.answer(past)) / n)
            fit.settle()

        outcome = self._outcome(fit, played, measurements, curator, workload)
        is_random = self.support == "random" or public is None
        return replace(outcome, public_share=0.0) if is_random else outcome

    def _start(self, domain: Domain, public: Any, n: float) -> Support:
        if self.support == "public" and public is not None:
            return super()._start(domain, public, n)
        start = Support.random(domain, records=self.support_records, seed=self.seed, total=n)
        return start.uniform if self.prior == "uniform" else start

    def _costs(self, left: Cost) -> tuple[Cost, Cost]:
        return (left / self.rounds).split(self.select_share)

    def _to_apply(
        self, fit: SupportWeights, known: list[tuple[Asked, float]], order: np.random.Generator
    ) -> list[tuple[Asked, float]]:
        """The measurements to apply in this round: c_i ≥ c_t/2, in random order (spec 5.2)."""
        if not self.replay:
            return known[-1:]
        errors = np.array([abs(fit.answer(asked) - noisy) for asked, noisy in known])
        kept = np.flatnonzero(errors >= errors[-1] / 2)
        return [known[index] for index in order.permutation(kept)]
