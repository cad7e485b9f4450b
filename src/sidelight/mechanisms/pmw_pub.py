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

from collections.abc import Iterable
from dataclasses import dataclass
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
from sidelight.models.support import Support
from sidelight.models.support_weights import Asked, SupportWeights
from sidelight.privacy.budget import Cost
from sidelight.privacy.event import Gaussian, Laplace
from sidelight.privacy.unit import Unit
from sidelight.queries.numbers import by_attributes, part
from sidelight.queries.workload import Workload
from sidelight.select.score import CellError


@dataclass(frozen=True, kw_only=True)
class PMWPub(Mechanism):
    """Each round: select the one number that the model answers worst, measure it, reweigh public records."""

    name = "pmw-pub"
    public_data = "needed"
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
    """How many numbers to measure (T)."""
    total_share: float = 0.02
    """Share of the budget that measures n, where n is not public."""
    select_share: float = 0.5
    """Share of each round that selects; the rest measures."""
    selection: Literal["exponential", "permute-and-flip"] = "exponential"
    """How a round selects; at equal cost the exponential mechanism runs at twice the ε."""
    step: float = 0.5
    """The step size η, the ½ of exp(q(x)(a − q(A)) / 2n)."""
    replay: bool = True
    """Whether past measurements are applied again if their error is at least half the newest one's."""
    output: Literal["average", "last"] = "average"
    """The mean of A₀ … A_{T−1}, which the paper's theorem is about; or the last A."""
    prior: Literal["public", "uniform"] = "public"
    """Weights to start from: the public ones, or all equal ("support only")."""
    support: Literal["public", "random"] = "public"
    """The records that get weights: the public ones; or random ones, an ablation, which fails as expected."""
    support_records: int = 10_000
    """Number of records of a random support."""
    public_share: float = 1.0
    """Share of the public records to use, drawn at random."""
    seed: int = 0
    """Seed for the order of a replay, a random support and the public share; no noise depends on it."""
    max_cache_mb: float = 256.0
    """Memory for the public records' cell numbers; beyond it they are computed again each round."""

    def __post_init__(self) -> None:
        _check.positive_integer(rounds=self.rounds, support_records=self.support_records)
        _check.share(total_share=self.total_share, select_share=self.select_share)
        _check.positive(step=self.step, max_cache_mb=self.max_cache_mb)
        check_public_share(self.public_share)
        _check.one_of(("exponential", "permute-and-flip"), selection=self.selection)
        _check.one_of(("average", "last"), output=self.output)
        _check.one_of(("public", "uniform"), prior=self.prior)
        _check.one_of(("public", "random"), support=self.support)
        _check.natural(seed=self.seed)

    def run(self, curator: Curator, workload: Workload, *, public: Table | None = None) -> Outcome:
        total_cost, _ = curator.remaining.split(self.total_share)
        n = curator.total(total_cost)
        select_cost, measure_cost = (curator.remaining / self.rounds).split(self.select_share)

        fit = SupportWeights(
            self._start(curator.domain, public, n), workload.attribute_sets, max_cache_mb=self.max_cache_mb
        )
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

        weights = played if self.output == "average" else fit.weights
        return Outcome(
            fit.start.with_weights(weights),
            tuple(measurements),
            curator.events,
            notes=support_notes(fit.start, workload),
            public_attrs=curator.domain.attrs,
            public_share=0.0 if self.support == "random" or public is None else self.public_share,
        )

    def _start(self, domain: Domain, public: Table | None, n: float) -> Support:
        if self.support == "random" or public is None:
            start = Support.random(domain, records=self.support_records, seed=self.seed, total=n)
        else:
            start = public_support(
                self.name, public, domain, total=n, share=self.public_share, seed=self.seed
            )
        return start.uniform if self.prior == "uniform" else start

    def _to_apply(
        self, fit: SupportWeights, known: list[tuple[Asked, float]], order: np.random.Generator
    ) -> list[tuple[Asked, float]]:
        """The measurements to apply in this round: c_i ≥ c_t/2, in random order (spec 5.2)."""
        if not self.replay:
            return known[-1:]
        errors = np.array([abs(fit.answer(asked) - noisy) for asked, noisy in known])
        kept = np.flatnonzero(errors >= errors[-1] / 2)
        return [known[index] for index in order.permutation(kept)]

    def check_public(self, domain: Domain, public: Any) -> None:
        require_public_support(self.name, domain, public)

    def public_notes(self, domain: Domain, public: Any) -> tuple[str, ...]:
        return left_out_notes(self.name, domain, public)

    def check_total(self, total: float, *, allotment: Cost, unit: Unit) -> None:
        check_rounds(self.rounds, total, stddev_of(ONE_NUMBER, self._measure_cost(allotment, unit), unit))

    def noisiest(
        self, domain: Domain, workload: Workload, *, allotment: Cost, unit: Unit
    ) -> Iterable[Gaussian | Laplace]:
        cost = self._measure_cost(allotment, unit)
        return numbers_noisiest(workload, cost, unit, total=allotment.split(self.total_share)[0])

    def outlook(self, domain: Domain, workload: Workload, *, allotment: Cost, unit: Unit) -> Outlook:
        cost = self._measure_cost(allotment, unit)
        return support_outlook(self.rounds, cost, unit, domain, workload, self.max_cache_mb)

    def _measure_cost(self, allotment: Cost, unit: Unit) -> Cost:
        """The cost of each round's measurement, after n has been paid for where it is not public."""
        _, rest = total_and_rest(allotment, self.total_share, unit)
        return (rest / self.rounds).split(self.select_share)[1]
