"""JAM-PGM: public and private measurements, selected jointly.

    p ← uniform
    for t = 0 … T−1:
        ρ_t ← (ρ − used) / (T − t),  ρ_sel ← 20% of it,  σ_t² = Δ₂² / 2ρ_meas               budget
        (τ, i) ~ exp(ε_sel Score(τ, i) / 2Δ),  over the downward closure × {private, public}   select
            Score(τ, i) = ‖q_τ(D) − q_τ(p)‖₁ − PredError(τ, i)
            PredError(τ, private) = √(2/π) σ_t n_τ,   PredError(τ, public) = ‖q_τ(D) − (n/n̂) q_τ(D̂)‖₁
        y_τ ← q_τ(D) + 𝒩(0, σ_t²), or the public (n/n̂) q_τ(D̂), which costs nothing            measure
        p ← fit to all of them with equal weights, total n                                  estimate

Fuentes, Mullins, McKenna, Miklau, Sheldon (2024), "Joint selection: adaptively incorporating public
information for private synthetic data"; spec 6. Where we differ: the first round scores against the
uniform model, as the paper says and its code does not; the full closure is filtered every round;
the diagnostic second draw of the code is not made (spec 9.4, J5–J9).
"""

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sidelight import _check
from sidelight.curator.curator import Curator
from sidelight.data.domain import Attrs, Domain
from sidelight.data.table import Table
from sidelight.fit.private_pgm import MirrorDescent
from sidelight.measurement import Measurement, measuring
from sidelight.mechanisms.base import Mechanism, Outcome, Outlook, total_and_rest
from sidelight.mechanisms.candidates import (
    Oversized,
    check_sizes,
    marginal_stddev,
    oversized_marginals,
    take_marginals,
    tractable,
)
from sidelight.mechanisms.paper import Paper
from sidelight.mechanisms.told import JointRound
from sidelight.models.graphical import GraphicalModel
from sidelight.privacy.budget import Cost
from sidelight.privacy.event import Gaussian, Laplace
from sidelight.privacy.unit import Unit
from sidelight.public.source import PublicRecords, require_records, sources_of
from sidelight.queries.query import Marginal, expected_l1_noise
from sidelight.queries.workload import Workload
from sidelight.select.joint import JointCandidate, JointError


@dataclass(frozen=True, kw_only=True)
class JAM(Mechanism):
    """Each round: measure a marginal, or take it from the public table, whichever has the higher score."""

    name = "jam"
    public_data = "needed"
    papers = (
        Paper(
            authors=("Fuentes", "Mullins", "McKenna", "Miklau", "Sheldon"),
            title="Joint selection: adaptively incorporating public information for private synthetic data",
            year=2024,
            venue="AISTATS",
        ),
    )

    rounds: int = 30
    """T, private and public rounds together."""
    select_share: float = 0.2
    """Share of each round that selects; the rest measures, or is saved if a public marginal is chosen."""
    total_share: float = 0.02
    """Share of the budget that measures n, where n is not public."""
    max_model_mb: float = 80.0
    """Size limit of the graphical model; it grows with the budget spent."""
    oversized: Oversized = "refuse"
    """Workload marginals above the size limit: refuse the workload, or skip measuring them."""
    weighting: Literal["equal", "noise", "public-error"] = "equal"
    """Weights of the marginals in the fit. "equal": all alike (paper). "noise": 1/σ², where a public marginal
    has the σ of its round. "public-error": the same, but a public one by its own sampling error."""
    last_round: Literal["any", "private"] = "any"
    """Whether the last round may choose a public marginal and leave its measuring share unspent (paper)."""
    repeat_public: bool = True
    """Whether a public marginal may be chosen again, although that adds nothing (paper)."""
    estimator: MirrorDescent = MirrorDescent(tolerance=3e-3, max_steps=200)
    """The fit in each round, which starts from the model of the round before."""
    final_estimator: MirrorDescent = MirrorDescent()
    """The last fit, which starts anew, since cells that earlier rounds drove to 0 come back slowly."""

    def __post_init__(self) -> None:
        _check.positive_integer(rounds=self.rounds)
        _check.share(select_share=self.select_share, total_share=self.total_share)
        _check.positive(max_model_mb=self.max_model_mb)
        _check.one_of(("refuse", "skip"), oversized=self.oversized)
        _check.one_of(("equal", "noise", "public-error"), weighting=self.weighting)
        _check.one_of(("any", "private"), last_round=self.last_round)

    def run(self, curator: Curator, workload: Workload, *, public: Table | None = None) -> Outcome:
        assert public is not None  # check() saw to it
        domain, rho = curator.domain, curator.allotment
        total_cost, _ = rho.split(self.total_share)
        n = curator.total(total_cost)
        closure = list(workload.closure(domain))
        told = PublicRecords.of(domain, sources_of(self.name, public))
        proxies = _Proxies(told, closure, total=n)

        model = GraphicalModel.uniform(domain, total=n)
        # What earlier releases told of the same records stands beside what this one measures.
        earlier = take_marginals(curator, closure, limit_mb=self.max_model_mb / 2)
        taken = [_Taken.of(made) for made in earlier]
        weights = [self._weight(one, n, told) for one in taken]
        if taken:
            model = self.estimator.estimate(domain, taken, total=n, start=model, precisions=weights)
        for t in range(self.rounds):
            select_cost, measure_cost = (curator.remaining / (self.rounds - t)).split(self.select_share)
            stddev = marginal_stddev(measure_cost, curator.unit)

            # SELECT a marginal and its source.
            used = 1 - curator.remaining.value / rho.value
            limit = self.max_model_mb * (float(used) if t else 1 / self.rounds)
            allowed = tractable(domain, [m.query.attrs for m in taken], closure, limit_mb=limit)
            candidates = self._candidates(allowed, taken, proxies, is_last=t == self.rounds - 1)
            score = JointError(model, proxies, cell_noise=expected_l1_noise(1, stddev))
            chosen = curator.select(candidates, score, select_cost)
            # MEASURE it, or take it from the public table.
            query = Marginal(chosen.attrs)
            if chosen.is_public:
                taken.append(_Taken(query, proxies[query.attrs], stddev, is_public=True))
            else:
                taken.append(_Taken.of(curator.measure(query, measure_cost).against(model)))
            # ESTIMATE a model that agrees with everything taken so far.
            weights = [self._weight(one, n, told) for one in taken]
            model = self.estimator.estimate(domain, taken, total=n, start=model, precisions=weights)

        model = self.final_estimator.estimate(domain, taken, total=n, precisions=weights)
        return Outcome(
            model,
            tuple(one for one in taken if not one.is_public),
            curator.events,
            rounds=tuple(one.told for one in taken[len(earlier) :]),
            public_attrs=tuple(attr for one in taken if one.is_public for attr in one.query.attrs),
        )

    def _candidates(
        self, allowed: Sequence[Attrs], taken: Sequence["_Taken"], told: Container[Attrs], *, is_last: bool
    ) -> list[JointCandidate]:
        # PRIVACY: which candidates there are follows from public data and past selections alone.
        known = set() if self.repeat_public else {one.query.attrs for one in taken if one.is_public}
        candidates = [JointCandidate(tau, is_public=False) for tau in allowed]
        if not (is_last and self.last_round == "private"):
            candidates += [
                JointCandidate(tau, is_public=True) for tau in allowed if tau in told and tau not in known
            ]
        return candidates

    def _weight(self, one: "_Taken", n: float, told: PublicRecords) -> ArrayLike:
        if self.weighting == "equal":
            return 1.0
        if self.weighting == "public-error" and one.is_public:
            # A public count c̃ = (n/n̂) c has a sampling variance of about (n/n̂)² max(c, 1).
            scale = n / told.records_of(*one.query.attrs)
            return 1 / (scale**2 * np.maximum(one.answer / scale, 1.0))
        return one.precision

    def check(self, domain: Domain, workload: Workload, public: Table | None) -> None:
        super().check(domain, workload, public)
        check_sizes(domain, workload, limit_mb=self.max_model_mb, oversized=self.oversized, name=self.name)

    def check_public(self, domain: Domain, public: Any) -> None:
        require_records(sources_of(self.name, public), domain)

    def noisiest(
        self, domain: Domain, workload: Workload, *, allotment: Cost, unit: Unit
    ) -> Iterable[Gaussian | Laplace]:
        total, rest = total_and_rest(allotment, self.total_share, unit)
        # A round that takes a public marginal leaves more to those after it.
        costs = [total, (rest / self.rounds).split(self.select_share)[1]]
        return [measuring(Marginal(()), cost, unit) for cost in costs if cost]

    def outlook(self, domain: Domain, workload: Workload, *, allotment: Cost, unit: Unit) -> Outlook:
        _, measure_cost = (allotment / self.rounds).split(self.select_share)
        closure = workload.closure(domain)
        return Outlook(
            measurements=self.rounds,
            stddev=marginal_stddev(measure_cost, unit),
            model_bytes=int(self.max_model_mb * 2**20),
            counting_bytes=8 * sum(domain.size(tau) for tau in closure),
            oversized=oversized_marginals(domain, workload, limit_mb=self.max_model_mb),
            notes=("noise is that of the first round; every round that takes a public marginal lowers it",),
        )


class _Proxies(Mapping[Attrs, NDArray[np.float64]]):
    """(n/n̂) q_τ(D̂), the marginals that public data tell of, scaled to n; kept compactly."""

    def __init__(self, public: PublicRecords, closure: Sequence[Attrs], *, total: float) -> None:
        self._told = frozenset(tau for tau in closure if public.holds(tau))
        self._shares = public.kept_frequencies([tau for tau in closure if tau in self._told])
        self._total = total

    def __contains__(self, tau: object) -> bool:
        return tau in self._told

    def __getitem__(self, tau: Attrs) -> NDArray[np.float64]:
        return self._total * self._shares[tau].reshape(-1)

    def __iter__(self) -> Iterator[Attrs]:
        return iter(self._shares)

    def __len__(self) -> int:
        return len(self._shares)


@dataclass(frozen=True, eq=False)
class _Taken(Measurement):
    """A measurement, or a public marginal in its place."""

    is_public: bool = False

    @classmethod
    def of(cls, measured: Measurement) -> "_Taken":
        return cls(measured.query, measured.answer, measured.stddev, measured.predicted)

    @property
    def told(self) -> JointRound:
        """One round, as the release card tells it: all of it is an output of the mechanism."""
        source: Literal["private", "public"] = "public" if self.is_public else "private"
        return JointRound(marginal=self.query.attrs, source=source, stddev=self.stddev)
