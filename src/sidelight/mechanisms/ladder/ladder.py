"""LADDER: every attribute, then pairs, then triples, as far up as n and the budget can tell.

    n ← the number of records                            free where it is public, else a share of the budget
    with ρ
        y₁ ← all attributes and all pairs, with Gaussian noise, where a share of ρ would tell   look
        plan the rest by n, ρ, the workload and y₁                                        (planning.py)
        y₂ ← residuals, each with Gaussian noise of its own                                  measure
    with ε
        y ← whole marginals with Laplace noise, planned by n, ε and the workload alone       measure
    r ← the answers, shrunk degree by degree towards what the smaller marginals say         estimate
    p ← the nearest counts of at least 0                                                  (fit/residuals.py)

LADDER is our own. Like HDMM, it plans all noise. Unlike HDMM, it expects relations to fade, the more
attributes they are between, and looks how strong those of two are. So it measures no relation again that
noise would swamp, and takes noise out of those that it measured (shrinking.py). On tables of few cells it
errs least of all mechanisms here; on large tables, where a few strong relations are to be found among
thousands, mechanisms that select err less.

It stands on McKenna, Miklau, Hay, Machanavajjhala (2018) and Xiao, He, Zhang, Kifer (2023) for planned noise
on residuals, on Qardaji, Yang, Li (2014), "PriView", for views that cover a workload, and on Mullins et al.
(2024) for counts of at least 0.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np

from sidelight import _check
from sidelight.curator.curator import Curator
from sidelight.data.domain import Attrs, Domain
from sidelight.data.table import Table
from sidelight.fit.residuals import ResidualReconstruction
from sidelight.measurement import Measurement, measuring, measuring_together
from sidelight.mechanisms.base import Mechanism, Outcome, Outlook, total_and_rest
from sidelight.mechanisms.candidates import Oversized, check_only_marginals, marginal_stddev
from sidelight.mechanisms.hdmm.planning import MarginalPlan, check_asked, check_room, weights_of
from sidelight.mechanisms.ladder.planning import (
    LEAST,
    Fade,
    after_measuring,
    best_views,
    covers,
    hears,
    looking,
    mean_error,
    residuals,
    singles_of,
    with_room,
)
from sidelight.mechanisms.ladder.shrinking import faded, told_by
from sidelight.mechanisms.paper import MCKENNA_2018, XIAO_2023, Paper
from sidelight.models.residuals import Estimate
from sidelight.privacy.budget import Budget, Cost, Epsilon, Rho
from sidelight.privacy.event import Event
from sidelight.privacy.unit import Unit
from sidelight.queries.query import Marginal
from sidelight.queries.workload import Workload

_ESTIMATOR = ResidualReconstruction(tolerance=1e-4)
"""Errors of a hundredth are seen here; what is still below 0 after a coarser fit would be a tenth of them."""


@dataclass(frozen=True, kw_only=True)
class Ladder(Mechanism):
    """Look at all pairs, plan by how relations fade, shrink degree by degree."""

    name = "ladder"
    public_data = "unused"
    papers = (
        MCKENNA_2018,
        XIAO_2023,
        Paper(
            authors=("Qardaji", "Yang", "Li"),
            title="PriView: practical differentially private release of marginal contingency tables",
            year=2014,
            venue="SIGMOD",
        ),
    )

    accounting: Literal["zcdp", "pure"] = "zcdp"
    """Residuals with Gaussian noise, counted in ρ; or whole marginals with Laplace noise, counted in ε. The
    latter is often better on small tables, where δ > 0 too."""
    pairs: float = 0.3
    """How strong relations of two attributes are expected to be, next to what single attributes say: a ratio
    of variances."""
    fading: float = 0.1
    """How much weaker relations are expected to be with each further attribute, as a ratio of variances."""
    look_share: float = 0.3
    """Share of ρ that looks at every attribute and every pair, before the rest is planned; there is no look
    where noise would swamp even two equal columns."""
    total_share: float = 0.01
    """Share of the budget that counts the records, where that count is not public."""
    max_model_mb: float = 150.0
    """Size limit of all residuals together; a run takes several times as much."""
    oversized: Oversized = "refuse"
    """A workload above the limit: refuse it, or leave its largest marginals to what their single attributes
    say."""

    def __post_init__(self) -> None:
        _check.one_of(("zcdp", "pure"), accounting=self.accounting)
        _check.positive(pairs=self.pairs, fading=self.fading, max_model_mb=self.max_model_mb)
        _check.share(look_share=self.look_share, total_share=self.total_share)
        _check.one_of(("refuse", "skip"), oversized=self.oversized)

    def run(self, curator: Curator, workload: Workload, *, public: Table | None = None) -> Outcome:
        domain, unit = curator.domain, curator.unit
        total_cost, _ = curator.allotment.split(self.total_share)
        n = curator.total(total_cost)
        best = self._best(domain, workload)
        members = [attrs for attrs in best.closure.members if attrs]
        measurements: list[Measurement]
        rest = curator.remaining
        if isinstance(rest, Rho):
            # MEASURE every attribute and every pair; then what these say is worth it.
            first, (look, after) = looking(best), rest.split(self.look_share)
            if hears(first, look, unit, n=n):
                looked = curator.measure_together(first.strategy, look)
                plan = self._after(looked, best, after, unit, n=n)
                measurements = _together(looked, curator.measure_together(plan.strategy, after))
            else:
                plan = residuals(best, self._fade.expected(best, n), rest, unit)
                measurements = curator.measure_together(plan.strategy, rest)
        else:
            # MEASURE whole marginals, as planned beforehand.
            views, _ = best_views(best, self._fade, rest, unit, n=n)
            measurements = [curator.measure(Marginal(view), rest / len(views)) for view in views]
        # ESTIMATE, degree by degree.
        noise, total = curator.total_stddev, Estimate(np.array(n), 0.0)
        if noise:
            # Where n is private, whole marginals tell of it, too, and its noise is in every count.
            measurements = [Measurement(Marginal(()), np.array([n]), noise), *measurements]
            total = told_by(domain, measurements, [()])[()]
        told = told_by(domain, measurements, members)
        known, _ = faded(domain, told, members, total=total, fade=self._fade)
        model = _ESTIMATOR.of(known, seen=len(measurements))
        return Outcome(model, tuple(measurements), curator.events)

    def _after(
        self, looked: Sequence[Measurement], best: MarginalPlan, rho: Rho, unit: Unit, *, n: float
    ) -> MarginalPlan:
        """What is worth measuring after the look, by how large that says relations are."""
        number, domain = best.closure.number, best.closure.domain
        # PRIVACY: n and the noisy answers of the first look are all that goes in.
        low = [attrs for attrs in number if 0 < len(attrs) <= 2]
        told = told_by(domain, looked, low)
        _, sizes = faded(domain, told, low, total=Estimate(np.array(n), 0.0), fade=self._fade)
        tau, known = self._fade.expected(best, n), np.zeros(len(number))
        for attrs, estimate in told.items():
            known[number[attrs]] = 1 / estimate.variance
        for attrs, size in sizes.items():
            tau[number[attrs]] = size
        return residuals(best, tau, rho, unit, known=known)

    def _best(self, domain: Domain, workload: Workload) -> MarginalPlan:
        """HDMM's plan for all that there is room for."""
        weights = weights_of(domain, workload)
        if self.oversized == "skip":
            weights = with_room(domain, weights, limit_mb=self.max_model_mb)
        return _best(domain, tuple(weights.items()))

    @property
    def _fade(self) -> Fade:
        return Fade(self.pairs, self.fading)

    def expected_error(
        self, domain: Domain, workload: Workload, *, allotment: Cost, unit: Unit, n: float
    ) -> float:
        """The mean error of the workload's marginals, as a share of n, if relations fade as expected."""
        best = self._best(domain, workload)
        if isinstance(allotment, Rho):
            planned = residuals(best, self._fade.expected(best, n), allotment, unit)
            return mean_error(after_measuring(planned, self._fade, n=n), n)
        return best_views(best, self._fade, allotment, unit, n=n)[1]

    def heard(self, domain: Domain, workload: Workload, rho: Rho, unit: Unit, *, n: float) -> float:
        """The share of the pairs of attributes that the plan measures; 0 where none is asked for."""
        best = self._best(domain, workload)
        is_pair = [len(attrs) == 2 for attrs in best.closure.members]
        variances = residuals(best, self._fade.expected(best, n), rho, unit).variances[is_pair]
        return float((variances > 0).mean()) if variances.size else 0.0

    def allotment(self, budget: Budget) -> Cost:
        return budget.pure() if self.accounting == "pure" else budget.rho()

    def check(self, domain: Domain, workload: Workload, public: Table | None) -> None:
        super().check(domain, workload, public)
        check_only_marginals(workload, name=self.name)
        check_asked(domain, workload)
        instead = "oversized='skip', which leaves the largest marginals to what single attributes say."
        if self.oversized == "skip":
            workload, instead = Workload(singles_of(workload.attribute_sets)), "fewer attributes."
        check_room(domain, workload, limit_mb=self.max_model_mb, instead=instead)

    def noisiest(self, domain: Domain, workload: Workload, *, allotment: Cost, unit: Unit) -> Iterable[Event]:
        best = self._best(domain, workload)
        total_cost, rest = total_and_rest(allotment, self.total_share, unit)
        counted = [measuring(Marginal(()), total_cost, unit)] if total_cost else []
        if isinstance(rest, Epsilon):
            most = max(map(len, covers(domain, tuple(best.closure.maximal))))
            return [*counted, measuring(Marginal(()), rest / most, unit)]
        # No residual gets less than so much of the precision that HDMM's plan would give it.
        least = min(self.look_share, LEAST * (1 - self.look_share))
        return [*counted, measuring_together(best.strategy, rest.split(least)[0], unit)]

    def outlook(self, domain: Domain, workload: Workload, *, allotment: Cost, unit: Unit) -> Outlook:
        best = self._best(domain, workload)
        cells = best.closure.cells
        _, rest = total_and_rest(allotment, self.total_share, unit)
        noise_on = "each number"
        note = (
            "What is measured of pairs and triples follows from the number of records: relations that noise "
        )
        note += "would swamp are left to the model. The noise said here is the most there can be."
        if isinstance(rest, Epsilon):
            most = max(map(len, covers(domain, tuple(best.closure.maximal))))
            stddev, number = marginal_stddev(rest / most, unit), most
        else:
            noise_on = "a count of the workload, on average"
            scale = float(measuring_together(best.strategy, rest, unit).scale)
            stddev = float(np.sqrt(scale * np.concatenate(best.cell_variances())).mean())
            number = len(cells) - 1
            note = (
                "Every pair is looked at first; what the rest of the budget measures follows from what that "
            )
            note += "says. The noise said here is that of measuring everything at once: strong relations get "
            note += "less of it, and weak ones are left to the model as far as noise would swamp them."
        return Outlook(
            measurements=number,
            stddev=stddev,
            noise_on=noise_on,
            model_bytes=8 * int(cells.sum()),
            counting_bytes=8 * int(cells.sum()),
            oversized=tuple(attrs for attrs in workload.attribute_sets if not best.holds(attrs)),
            notes=(note,),
        )


def _together(first: Sequence[Measurement], second: Sequence[Measurement]) -> list[Measurement]:
    """The answers of both, with one for each query."""
    found = {made.query: made for made in first}
    for made in second:
        found[made.query] = made.averaged(found[made.query]) if made.query in found else made
    return list(found.values())


@lru_cache(maxsize=4)
def _best(domain: Domain, weights: tuple[tuple[Attrs, float], ...]) -> MarginalPlan:
    """HDMM's plan; the total is known before anything else is measured."""
    return MarginalPlan.of(domain, dict(weights), objective="mean").without_total()
