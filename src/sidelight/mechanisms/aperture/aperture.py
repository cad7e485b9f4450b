"""APERTURE: a public model, opened to private measurements as far as the evidence allows.

    y_a ← M_a(D) + 𝒩(0, σ²)  for every attribute a                                              measure
    q ← a Markov random field of the public records, smoothed                                   free
    cut off from q the attributes that the arbiter says                                         select
    while an attribute's answers leave much in doubt:  ask for it again                         measure
    twelve times:
        c ~ exp(ε w_c EI_c(‖M_c(D) − M_c(p)‖₁) / 2Δ)                                            select
        y_c ← M_c(D) + 𝒩(0, σ²)                                                                 measure
        s_c ← how far the truth strays from the model, by empirical Bayes from the answers y    free
        p ← argmin  n KL(p ‖ q) + Σ_c (s_c/2σ_c²) ‖n p_c − y_c‖²                                estimate
    t ← other trees, and public records, after the same answers;  u ← no relations, likewise    free
    r ← particles of p mixed with t, or of u, as the arbiter says                               select
    go on with those, beyond what a tree can hold                        select, measure, estimate
    move single attributes back to within the noise of their answers                            free

The arbiter is arbiter.py, what lies beyond the tree beyond_tree.py, the last move keeping.py. EI_c is the
expected improvement (select/improvement.py). s_c → 0 keeps the public model, s_c → ∞ is the plain information
projection. Public data are never candidates of a round, so its score moves by Δ₁ alone. Proofs:
docs/papers/aperture.md.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from sidelight import _check
from sidelight.curator.curator import Curator
from sidelight.data.count_source import ManyCountSource
from sidelight.data.domain import Attrs, Domain
from sidelight.data.table import Table
from sidelight.errors import SchemaError, SettingError
from sidelight.measurement import Measurement, measuring
from sidelight.mechanisms.aperture.arbiter import FOR_RELATIONS, FOR_SHARES, Arbiter
from sidelight.mechanisms.aperture.beyond_tree import measured_beyond
from sidelight.mechanisms.aperture.evidence import Beliefs
from sidelight.mechanisms.aperture.keeping import kept
from sidelight.mechanisms.aperture.mixing import Mixed, drawn, mixed
from sidelight.mechanisms.aperture.refitting import (
    taken_in,
    without_doubted,
    without_false_values,
)
from sidelight.mechanisms.aperture.schedule import MostRounds, most_rounds
from sidelight.mechanisms.aperture.worth import heard_or_single, worth_asking_again
from sidelight.mechanisms.base import Mechanism, Outcome, Outlook
from sidelight.mechanisms.candidates import (
    Oversized,
    check_sizes,
    check_trees,
    marginal_stddev,
    mib,
    oversized_marginals,
    tractable,
)
from sidelight.mechanisms.told import OpenedMarginal, Opening
from sidelight.models.model import Model
from sidelight.models.support import Support
from sidelight.privacy.budget import Cost, less
from sidelight.privacy.event import Gaussian, Laplace
from sidelight.privacy.unit import Unit
from sidelight.public.prior import Prior, fit_prior
from sidelight.public.source import PublicRecords, PublicSource, WeightedRecords
from sidelight.queries.query import Marginal
from sidelight.queries.workload import Workload
from sidelight.select.improvement import ExpectedImprovement

OnePublic = Table | WeightedRecords | Model | Prior
Public = OnePublic | Sequence[OnePublic]


@dataclass(frozen=True, kw_only=True)
class Aperture(Mechanism):
    """Each round: measure the marginal that promises most; trust the public model where it proved right."""

    name = "aperture"
    public_data = "optional"
    takes_groups = True

    max_rounds: int = 12
    """Rounds with the tree; three times this number where the workload has nothing larger than pairs.
    Otherwise twice where public relations tell of less than half of the marginals, and those that a tree
    cannot hold would be heard, but not clearly."""
    particle_share: float = 0.5
    """Share of the rounds' budget for marginals that no tree has to hold: particles drawn from it follow
    them. With 0 there are none."""
    max_particle_rounds: int = 64
    """Most marginals measured beyond the tree. In a workload of pairs, this number for each full 128 pairs,
    as far as their noise lets them be heard."""
    one_way_share: float = 0.05
    """Share of the budget for all one-way marginals, at first."""
    max_asked_again: int = 12
    """Most further answers to single attributes. Each takes one part in so many of what is left; noisy
    answers decide which, and how many."""
    select_share: float = 0.1
    """Share of each round that selects."""
    contest_share: float = 0.04
    """Most of the budget that asks whether the public relations hold, where it can tell; 0 trusts them. Once
    more if there are several public tables."""
    mixture_share: float = 0.03
    """Most of the budget that chooses what is taken of what stands beside the tree: other trees, and public
    records. Where it cannot tell, it is not spent and both are; with 0 neither is, and no public record is in
    the release."""
    total_share: float = 0.02
    """Share of the budget that counts the records, where that count is not public."""
    max_model_mb: float = 80.0
    """Size limit of the graphical model; the public model may take half."""
    oversized: Oversized = "refuse"
    """What to do with workload marginals above the size limit."""
    seed: int = 0
    """Splits the public records, and draws particles and samples; no noise depends on it."""

    def __post_init__(self) -> None:
        _check.positive_integer(max_rounds=self.max_rounds, max_particle_rounds=self.max_particle_rounds)
        _check.natural(max_asked_again=self.max_asked_again, seed=self.seed)
        shares = ("one_way_share", "select_share", "total_share")
        may_be_0 = [
            name for name in ("particle_share", "contest_share", "mixture_share") if getattr(self, name)
        ]
        _check.share(**{name: getattr(self, name) for name in (*shares, *may_be_0)})
        _check.positive(max_model_mb=self.max_model_mb)
        _check.one_of(("refuse", "skip"), oversized=self.oversized)

    def run(self, curator: Curator, workload: Workload, *, public: Public | None = None) -> Outcome:
        domain, rho, closure = curator.domain, curator.allotment, workload.closure(curator.domain)
        n = curator.total(rho.split(self.total_share)[0])
        arbiter = Arbiter.of(curator, closure, total=n, limit_mb=self.max_model_mb)
        weights = {c: w for c, w in weights_of(closure).items() if mib(domain.size(c)) <= self.max_model_mb}
        # How much of the workload holds each attribute.
        holding: dict[Attrs, float] = {
            c: w / sum(workload.weights) for c, w in closure.items() if len(c) == 1
        }
        # MEASURE every attribute.
        ones = [Marginal(c) for c in closure if len(c) == 1]
        first = [curator.measure(one, rho.split(self.one_way_share)[0] / len(ones)) for one in ones]
        # ESTIMATE the public model, and SELECT which of its relations lead.
        priors = self.priors(public, domain, closure)
        seen, led = self._leading(arbiter, priors, first)
        may_mix = bool(led.related and self.mixture_share)
        for_mixture = arbiter.price(self.mixture_share if may_mix else 0, finely=FOR_SHARES)
        # MEASURE attributes again where that is worth most.
        singles = self._asked_again(arbiter, led, first, holding, for_mixture)
        measurements, for_rounds = list(singles), less(curator.remaining, for_mixture)
        model, beliefs = taken_in(led, singles, n)
        plan = self._most_rounds(closure).schedule(
            model, list(weights), for_rounds, curator.unit,
            is_led=2 * sum(map(led.tells, weights)) >= len(weights),
        )  # fmt: skip
        for done in range(plan.rounds):
            select_cost, measure_cost = (plan.for_tree / plan.rounds).split(self.select_share)
            stddev = marginal_stddev(measure_cost, curator.unit)
            allowed = tractable(
                domain, [*led.sets, *beliefs.held], heard_or_single(model, list(weights), stddev=stddev),
                limit_mb=self.max_model_mb,
            )  # fmt: skip
            # SELECT the marginal whose measuring is expected to improve the model most.
            score = ExpectedImprovement(
                model, lambda c, counts: beliefs.prospect(c, counts, weight=weights[c]),
                stddev=stddev, total=n,
            )  # fmt: skip
            chosen = curator.select([Marginal(c) for c in allowed], score, select_cost)
            # MEASURE it.
            measurements.append(curator.measure(chosen, measure_cost).against(model))
            # ESTIMATE how far it strays from the model, then the model itself.
            beliefs.add(measurements[-1])
            model = beliefs.estimate(model, last=done == plan.rounds - 1)
        # ESTIMATE other trees, public records and a tree without public relations; SELECT what is released.
        mix = Mixed(model, beliefs) if not may_mix else mixed(
            arbiter, (model, beliefs), measurements, for_mixture, limit_mb=self.max_model_mb, seed=self.seed
        )  # fmt: skip
        released, late = mix.model, list[Measurement]()
        if plan.beyond:
            # SELECT, MEASURE and ESTIMATE what no tree has to hold.
            released, late = measured_beyond(
                curator, drawn(mix.model, limit_mb=self.max_model_mb, seed=self.seed), mix.beliefs, weights,
                most=plan.beyond, select_share=self.select_share, limit_mb=self.max_model_mb,
            )  # fmt: skip
        # ESTIMATE once more, so that single attributes are as they were answered.
        released = kept(released, [*measurements, *late])
        opening = Opening(
            rounds=plan.rounds,
            asked_again=tuple(answer.query.attrs[0] for answer in singles[len(first) :]),
            public_records=mix.beliefs.prior.records,
            public_marginals=tuple(attrs for attrs in mix.beliefs.prior.sets if len(attrs) > 1),
            marginals=tuple(_opened(mix.beliefs, released, seen)),
            particle_share=self.particle_share if plan.beyond else 0.0,
            cut=tuple(attr for attr in seen.related if attr not in led.related),
            is_bare=mix.is_bare,
            records_share=mix.share_beside,
            particle_rounds=len(late),
            particles=len(released.records) if isinstance(released, Support) else 0,
        )
        return Outcome(
            released, (*measurements, *late), curator.events, aperture=opening,
            public_attrs=tuple(attr for attr in domain.attrs if mix.beliefs.prior.tells([attr])),
            public_share=min(1.0, seen.records / max(priors[0].records, 1.0)),
            dispersions=mix.beliefs.dispersions(),
        )  # fmt: skip

    def _leading(
        self, arbiter: Arbiter, priors: Sequence[Prior], singles: Sequence[Measurement]
    ) -> tuple[Prior, Prior]:
        """The public data that are looked at, and what leads of them: all of it, or less."""
        n = arbiter.total
        cost = arbiter.price(self.contest_share, finely=FOR_RELATIONS)
        seen = priors[0]
        if cost and len(priors) > 1:
            seen = priors[arbiter.best([taken_in(one, singles, n)[0] for one in priors], cost)]
        prior = without_false_values(seen, singles, n)
        if cost and prior.related:
            candidates = [prior, *without_doubted(prior, singles, n)]
            models = [taken_in(one, singles, n)[0] for one in candidates]
            place, cut = arbiter.to_cut(models, prior.related, cost)
            prior = (
                without_false_values(prior.without_relations(cut), singles, n) if cut else candidates[place]
            )
        return seen, prior

    def _asked_again(
        self,
        arbiter: Arbiter,
        prior: Prior,
        first: Sequence[Measurement],
        shares: Mapping[Attrs, float],
        keep: Cost,
    ) -> list[Measurement]:
        """The first answers, and more to those attributes that stay in doubt; ``keep`` is kept back."""
        made, curator = list(first), arbiter.curator
        for _ in range(self.max_asked_again):
            if not (spare := less(curator.remaining, keep)):
                break
            model, beliefs = taken_in(prior, made, arbiter.total)
            part = spare / self.max_asked_again
            asked = worth_asking_again(
                beliefs, model, arbiter.judged, shares,
                stddev=marginal_stddev(part, curator.unit), later=marginal_stddev(spare, curator.unit),
            )  # fmt: skip
            if asked is None:
                break
            made.append(curator.measure(Marginal(asked), part))
        return made

    def _most_rounds(self, closure: Collection[Attrs]) -> MostRounds:
        return most_rounds(
            closure, rounds=self.max_rounds, beyond=self.max_particle_rounds, late_share=self.particle_share,
            select_share=self.select_share, limit_mb=self.max_model_mb,
        )  # fmt: skip

    def priors(self, public: Public | None, domain: Domain, closure: Mapping[Attrs, float]) -> list[Prior]:
        """All public data together; and each of several alone."""
        listed = [public, *public] if isinstance(public, Sequence) and len(public) > 1 else [public]
        return [self.prior(one, domain, closure) for one in listed]

    def prior(self, public: Public | None, domain: Domain, closure: Mapping[Attrs, float]) -> Prior:
        """The public model."""
        if public is None:
            return Prior.nothing(domain)
        if isinstance(public, Prior):
            return public.under(domain)
        records = PublicRecords.of(domain, _sources(public, seed=self.seed))
        held = {c: weight for c, weight in closure.items() if mib(domain.size(c)) <= self.max_model_mb}
        return fit_prior(records, held, max_model_mb=self.max_model_mb / 2, seed=self.seed)

    def check(self, domain: Domain, workload: Workload, public: Any) -> None:
        super().check(domain, workload, public)
        check_sizes(domain, workload, limit_mb=self.max_model_mb, oversized=self.oversized, name=self.name)
        check_trees(domain, workload, name=self.name)

    def check_public(self, domain: Domain, public: Any) -> None:
        if not isinstance(public, Prior):
            PublicRecords.of(domain, _sources(public, seed=self.seed))
        elif public.domain != domain:
            raise SchemaError(
                "the prior was fitted under another schema: its attributes or their values differ. "
                "Fit it again with `sidelight prior fit` and this schema."
            )

    def noisiest(
        self, domain: Domain, workload: Workload, *, allotment: Cost, unit: Unit
    ) -> Iterable[Gaussian | Laplace]:
        closure, any_marginal = workload.closure(domain), Marginal(())
        ones = sum(len(c) == 1 for c in closure)
        total = allotment.split(0 if unit.total_is_public else self.total_share)[0]
        first = allotment.split(self.one_way_share)[0]
        # Which of several tables, and which relations.
        contests = allotment.split(self.contest_share)[0] * 2
        mixture = allotment.split(self.mixture_share)[0]
        left = allotment.value - sum(cost.value for cost in (total, first, contests, mixture))
        if left <= 0:
            raise SettingError(
                "total_share, one_way_share, mixture_share and twice contest_share are together more than "
                "the whole budget. Lower one of them."
            )
        costs = [total, first / ones, *self._least_costs(type(allotment)(left), closure)]
        return [measuring(any_marginal, cost, unit) for cost in costs if cost]

    def _least_costs(self, rest: Cost, closure: Collection[Attrs]) -> Iterator[Cost]:
        """The least that a run pays for one more answer to an attribute, in a round, and beyond the tree."""
        if most := self.max_asked_again:
            yield rest * Fraction(most - 1, most) ** (most - 1) / most
            # With 1, an answer takes all that is left, or none is asked for and the rounds have it.
            rest = rest * Fraction(most - 1, most) ** most or rest
        yield from self._most_rounds(closure).least_costs(rest)

    def outlook(self, domain: Domain, workload: Workload, *, allotment: Cost, unit: Unit) -> Outlook:
        closure = workload.closure(domain)
        most = self.max_asked_again + self._most_rounds(closure).most
        _, measure_cost = (allotment / most).split(self.select_share)
        return Outlook(
            measurements=most + sum(len(c) == 1 for c in closure),
            stddev=marginal_stddev(measure_cost, unit),
            model_bytes=int(self.max_model_mb * 2**20),
            counting_bytes=8 * sum(domain.size(c) for c in closure),
            oversized=oversized_marginals(domain, workload, limit_mb=self.max_model_mb),
            notes=("noise is that of the most rounds; where there are fewer, each has less of it",),
        )


def weights_of(closure: Mapping[Attrs, float]) -> dict[Attrs, float]:
    """w_c of the score: the root of how much of the workload holds an attribute of c on average, at most 1.

    All are 1 where the workload asks for every attribute equally: larger marginals err more anyway. A root,
    since twice the workload behind a marginal does not make its error twice as telling.
    """
    means = {attrs: weight / len(attrs) for attrs, weight in closure.items()}
    largest = max(means.values())
    return {attrs: (mean / largest) ** 0.5 for attrs, mean in means.items()}


def _sources(public: Public, *, seed: int) -> list[PublicSource]:
    """Every public input as records that can be counted; an earlier release as its synthetic table."""
    listed = list(public) if isinstance(public, Sequence) else [public]
    sources: list[PublicSource] = []
    for one in listed:
        if isinstance(one, Prior):
            raise SettingError(
                "a fitted prior stands alone: give it, or the tables themselves, but not both."
            )
        sources.append(one.sample(max(1, round(one.total)), seed=seed) if isinstance(one, Model) else one)
    return sources


def _opened(beliefs: Beliefs, model: ManyCountSource, seen: Prior) -> Iterator[OpenedMarginal]:
    """How far the release moved on each measured marginal: all of it from public data and noisy answers.

    It moved away from the public data as they were ``seen``, before anything was cut off or left out of them.
    """
    held, spreads = list(beliefs.held), beliefs.spreads()
    moved = dict.fromkeys(held, 0.0)
    for place, public in seen.model.count_each(held):
        # One at a time: all of them together may be larger than the model.
        ((_, now),) = model.count_each([held[place]])
        moved[held[place]] = float(np.abs(now / beliefs.total - public).sum())
    for attrs, belief in beliefs.held.items():
        yield OpenedMarginal(
            attrs=attrs,
            spread=spreads[attrs],
            trust=belief.evidence.trust(spreads[attrs]),
            moved=moved[attrs],
            expected_error=belief.evidence.expected_error(spreads[attrs]) / beliefs.total,
            told_by_public=all(seen.tells([attr]) for attr in attrs),
        )
