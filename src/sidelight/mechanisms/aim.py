"""AIM: an adaptive and iterative mechanism over graphical models.

    measure every one-way marginal at σ;  p ← fit
    until the budget is spent:
        r ~ exp(ε w_r (‖M_r(D) − M_r(p)‖₁ − √(2/π) σ n_r) / 2Δ)    over the downward closure    select
        m_r ← M_r(D) + 𝒩(0, σ²)                                                               measure
        p ← fit to all measurements                                                           estimate
        if M_r(p) moved by no more than √(2/π) σ n_r:  σ ← σ/2, ε ← 2ε                          anneal

McKenna, Mullins, Sheldon, Miklau (2022), arXiv:2201.12677; spec 7.1. Where we differ: noise is the
exact discrete Gaussian; under replacement n is public and the sensitivities are doubled (Δ₁) and
×√2 (Δ₂); each measured marginal is charged as it is measured (spec 9.4, J17); many rounds on many
attributes take residuals in place of the graphical model, unless that is asked for; and answers that are used
again from earlier releases come first, so that one-way marginals they tell as precisely are not measured.
"""

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from sidelight import _check
from sidelight.curator.curator import Curator
from sidelight.data.domain import Attrs, Domain
from sidelight.data.table import Table
from sidelight.errors import SettingError
from sidelight.fit.estimator import Estimator
from sidelight.fit.private_pgm import MirrorDescent
from sidelight.fit.residuals import ResidualReconstruction
from sidelight.measurement import Measurement, measuring
from sidelight.mechanisms.base import Mechanism, Outcome, Outlook
from sidelight.mechanisms.candidates import (
    Oversized,
    check_sizes,
    is_known,
    marginal_stddev,
    mib,
    oversized_marginals,
    take_marginals,
    take_residuals,
    tractable,
)
from sidelight.mechanisms.paper import Paper
from sidelight.privacy.budget import Cost, less
from sidelight.privacy.event import Gaussian, Laplace
from sidelight.privacy.unit import Unit
from sidelight.queries.query import Marginal, expected_l1_noise
from sidelight.queries.workload import Workload
from sidelight.select.score import WeightedError

_TREE = MirrorDescent(tolerance=3e-3, max_steps=200)
"""The fit of a round: coarser than the last one."""
_AFFORDABLE = 6_400
"""Up to so many rounds times attributes ``auto`` fits a tree. With 16 rounds an attribute that is 20 of them,
and some two minutes of processor time; 41 did not end in 330 s by the clock (benchmarks/speed/wide.py)."""
_WITHOUT_TREE = (
    "Residuals stand in for the tree of AIM's paper: up to {rounds:,} rounds, each with a tree of {attrs} "
    "attributes, would take long. estimator='tree' fits it all the same."
)
_LONG = (
    "Up to {rounds:,} rounds fit a tree of {attrs} attributes each, which takes long; estimator='residual' "
    "fits none."
)


@dataclass(frozen=True, kw_only=True)
class AIM(Mechanism):
    """Each round: select a marginal, measure it, refit; less noise once rounds no longer move the model."""

    name = "aim"
    public_data = "unused"
    takes_groups = True
    papers = (
        Paper(
            authors=("McKenna", "Mullins", "Sheldon", "Miklau"),
            title="AIM: an adaptive and iterative mechanism for differentially private synthetic data",
            year=2022,
            venue="VLDB",
            arxiv="2201.12677",
        ),
    )

    rounds_per_attribute: int = 16
    """The noise of the first rounds is calibrated for T = 16 d rounds."""
    select_share: float = 0.1
    """Share of each round's budget that selects; the rest measures."""
    max_model_mb: float = 80.0
    """Size limit of the graphical model; it grows with the budget spent."""
    oversized: Oversized = "refuse"
    """Workload marginals above the size limit: refuse the workload, or skip measuring them."""
    estimator: MirrorDescent | Literal["auto", "tree", "residual"] = "auto"
    """The fit in each round. ``tree``: the paper's graphical model, which starts from that of the round
    before; MirrorDescent(…): the same with other steps. ``residual``: reconstruction by residuals, here and
    in the last fit; then max_model_mb limits single marginals, since there is no tree. ``auto``: a tree,
    unless there are too many rounds and attributes for it."""
    final_estimator: MirrorDescent = MirrorDescent()
    """The last fit, which starts anew, since cells that earlier rounds drove to 0 come back slowly."""

    def __post_init__(self) -> None:
        _check.positive_integer(rounds_per_attribute=self.rounds_per_attribute)
        _check.share(select_share=self.select_share)
        _check.positive(max_model_mb=self.max_model_mb)
        _check.one_of(("refuse", "skip"), oversized=self.oversized)
        if not isinstance(self.estimator, MirrorDescent):
            _check.one_of(("auto", "tree", "residual"), estimator=self.estimator)

    def run(self, curator: Curator, workload: Workload, *, public: Table | None = None) -> Outcome:
        domain, rho = curator.domain, curator.allotment
        if self.estimator == "auto":
            taken: Literal["tree", "residual"]
            taken = "tree" if self._is_affordable(domain, workload) else "residual"
            made = replace(self, estimator=taken).run(curator, workload)
            return replace(made, notes=self._told(domain, workload), decided={"estimator": taken})
        weights = workload.closure(domain)
        candidates = {Marginal(r): mib(domain.size(r)) for r in weights}
        # Under add-or-remove n is private, and the fit estimates the total from the measurements.
        n = curator.total(rho) if curator.unit.total_is_public else None
        round_cost = rho / (self.rounds_per_attribute * len(domain))
        _, measure_cost = round_cost.split(self.select_share)

        rounds, last = self._estimators()

        # MEASURE the one-way marginals that no earlier release told as well.
        measurements = self._earlier(curator, weights)
        stddev = marginal_stddev(measure_cost, curator.unit)
        unknown = [r for r in weights if len(r) == 1 and not is_known(measurements, r, domain, stddev)]
        measurements += [curator.measure(Marginal(r), measure_cost) for r in unknown]
        model = rounds.estimate(domain, measurements, total=n)
        while curator.remaining:
            if curator.remaining.value < 2 * round_cost.value:
                round_cost = curator.remaining
            select_cost, measure_cost = round_cost.split(self.select_share)
            stddev = marginal_stddev(measure_cost, curator.unit)

            # SELECT the marginal whose error most exceeds the noise it would be measured with.
            used = 1 - (curator.remaining.value - round_cost.value) / rho.value
            allowed = self._allowed(domain, measurements, candidates, share=float(used))
            score = WeightedError(model, weights=weights, cell_penalty=expected_l1_noise(1, stddev))
            chosen = curator.select(allowed, score, select_cost)
            # MEASURE it.
            measurements.append(curator.measure(chosen, measure_cost).against(model))
            # ESTIMATE a model that agrees with everything measured so far.
            before = model.count(chosen.attrs)
            model = rounds.estimate(domain, measurements, total=n, start=model)
            moved = abs(model.count(chosen.attrs) - before).sum()
            if moved <= expected_l1_noise(chosen.cells(domain), stddev):
                round_cost = round_cost * 4

        model = last.estimate(domain, measurements, total=n)
        return Outcome(model, tuple(measurements), curator.events)

    def _is_affordable(self, domain: Domain, workload: Workload) -> bool:
        # PRIVACY: the schema, the workload and the settings alone are asked.
        return self.rounds_per_attribute * len(domain) * len(workload.attrs) <= _AFFORDABLE

    def _told(self, domain: Domain, workload: Workload) -> tuple[str, ...]:
        """Which estimator, and why, where a tree would take long."""
        if self.estimator == "residual" or self._is_affordable(domain, workload):
            return ()
        said = _WITHOUT_TREE if self.estimator == "auto" else _LONG
        rounds = self.rounds_per_attribute * len(domain)
        return (said.format(rounds=rounds, attrs=len(workload.attrs)),)

    def _estimators(self) -> tuple[Estimator, Estimator]:
        """The estimators of the rounds and of the last fit."""
        if self.estimator == "residual":
            return ResidualReconstruction(max_steps=0), ResidualReconstruction()
        return self.estimator if isinstance(self.estimator, MirrorDescent) else _TREE, self.final_estimator

    def _earlier(self, curator: Curator, closure: Container[Attrs]) -> list[Measurement]:
        """Answers of earlier releases about the same records, as many as half of the model has room for."""
        if self.estimator == "residual":
            return take_residuals(curator, closure)
        return take_marginals(curator, closure, limit_mb=self.max_model_mb / 2)

    def _allowed(
        self, domain: Domain, measured: list[Measurement], wanted: Mapping[Marginal, float], *, share: float
    ) -> list[Marginal]:
        """The candidates, given with their sizes, that this share of the size limit has room for."""
        limit = self.max_model_mb * share
        if self.estimator == "residual":
            return [query for query, size in wanted.items() if size <= limit or len(query.attrs) == 1]
        asked = [query.attrs for query in wanted]
        return list(
            map(Marginal, tractable(domain, [m.query.attrs for m in measured], asked, limit_mb=limit))
        )

    def check(self, domain: Domain, workload: Workload, public: Table | None) -> None:
        super().check(domain, workload, public)
        check_sizes(domain, workload, limit_mb=self.max_model_mb, oversized=self.oversized, name=self.name)
        one_way = sum(len(r) == 1 for r in workload.closure(domain))
        if (1 - self.select_share) * one_way >= self.rounds_per_attribute * len(domain):
            raise SettingError(
                f"rounds_per_attribute must leave budget after the {one_way} one-way marginals; "
                f"got {self.rounds_per_attribute}."
            )

    def noisiest(
        self, domain: Domain, workload: Workload, *, allotment: Cost, unit: Unit
    ) -> Iterable[Gaussian | Laplace]:
        one_way = [Marginal(r) for r in workload.closure(domain) if len(r) == 1]
        first = (allotment / (self.rounds_per_attribute * len(domain))).split(self.select_share)[1]
        # No round gets less than the first, unless the one-way marginals left less than one round's cost.
        last = less(allotment, first * len(one_way)).split(self.select_share)[1]
        return [measuring(one_way[0], cost, unit) for cost in (first, last) if cost]

    def outlook(self, domain: Domain, workload: Workload, *, allotment: Cost, unit: Unit) -> Outlook:
        rounds = self.rounds_per_attribute * len(domain)
        _, measure_cost = (allotment / rounds).split(self.select_share)
        return Outlook(
            measurements=rounds,
            stddev=marginal_stddev(measure_cost, unit),
            model_bytes=int(self.max_model_mb * 2**20),
            counting_bytes=8 * sum(domain.size(r) for r in workload.closure(domain)),
            oversized=oversized_marginals(domain, workload, limit_mb=self.max_model_mb),
            notes=(
                "noise is that of the first rounds; it is halved whenever a round hardly moves the model",
                *self._told(domain, workload),
            ),
        )
