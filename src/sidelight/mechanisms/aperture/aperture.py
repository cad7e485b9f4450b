"""APERTURE: a public model, opened to private measurements as far as the evidence allows.

    y_a ← M_a(D) + 𝒩(0, σ²)  for every attribute a                                              measure
    q ← a Markov random field of the public records, smoothed                                   free
    while the arbiter says so:  cut an attribute off from q, or all of them                     select
    while an attribute's answer leaves much in doubt:  ask for it again                         measure
    twelve times:
        c ~ exp(ε w_c EI_c(‖M_c(D) − M_c(p)‖₁) / 2Δ)    over what noise does not swamp          select
        y_c ← M_c(D) + 𝒩(0, σ²)                                                                 measure
        s_c ← how far the truth strays from the model, by empirical Bayes from the answers y    free
        p ← argmin  n KL(p ‖ q) + Σ_c (s_c/2σ_c²) ‖n p_c − y_c‖²                                estimate
    t ← other trees, and public records, after the same answers;  u ← no relations, likewise    free
    p ← mixtures of p and t, or u, as the arbiter says                                          select
    r ← particles drawn from p; go on with those, beyond what a tree can hold    select, measure, estimate

The arbiter is arbiter.py, the last line particles.py. EI_c is the expected improvement
(select/improvement.py). s_c → 0 keeps the public model, s_c → ∞ is the plain information projection. Public
data are never candidates of a round, so its score moves by Δ₁ alone. Proofs: docs/papers/aperture.md.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from sidelight import _check
from sidelight.curator.curator import Curator
from sidelight.data.count_source import ManyCountSource
from sidelight.data.domain import Attrs, Domain
from sidelight.data.table import Table
from sidelight.errors import SchemaError, SettingError
from sidelight.measurement import Measurement, measuring
from sidelight.mechanisms.aperture.arbiter import ALL, RELATIONS, Arbiter
from sidelight.mechanisms.aperture.evidence import Beliefs
from sidelight.mechanisms.aperture.keeping import kept
from sidelight.mechanisms.aperture.particles import measured_beyond
from sidelight.mechanisms.aperture.refitting import beside, refitted, taken_in
from sidelight.mechanisms.aperture.reweighting import Reweighting
from sidelight.mechanisms.aperture.worth import PART, heard, public_room, worth_asking_again
from sidelight.mechanisms.base import Mechanism, Outcome, Outlook
from sidelight.mechanisms.candidates import (
    Oversized,
    check_sizes,
    marginal_stddev,
    mib,
    oversized_marginals,
    tractable,
)
from sidelight.mechanisms.told import OpenedMarginal, Opening
from sidelight.models.blend import Blend
from sidelight.models.graphical import GraphicalModel
from sidelight.models.model import Model
from sidelight.models.particles import particles, room_for
from sidelight.models.support import Support
from sidelight.privacy.budget import Cost
from sidelight.privacy.event import Gaussian, Laplace
from sidelight.privacy.unit import Unit
from sidelight.public.prior import Prior, PublicModel, narrowed
from sidelight.public.source import PublicRecords, PublicSource, WeightedRecords
from sidelight.public.trust import trusted
from sidelight.queries.query import Marginal
from sidelight.queries.workload import Workload
from sidelight.select.improvement import ExpectedImprovement
from sidelight.trees.triangulation import BYTES_PER_CELL, SizeOracle

OnePublic = Table | WeightedRecords | Model | Prior
Public = OnePublic | Sequence[OnePublic]


@dataclass(frozen=True, kw_only=True)
class Aperture(Mechanism):
    """Each round: measure the marginal that promises most; trust the public model where it proved right."""

    name = "aperture"
    public_data = "optional"
    takes_groups = True

    max_rounds: int = 12
    """Rounds with the tree, after the one-way marginals; three times as many if only pairs are asked for.
    None where no budget is left for them."""
    particle_share: float = 0.5
    """Share of the rounds' budget for marginals that no tree has to hold: particles drawn from it follow
    them. With 0 there are none, and the release is a tree."""
    max_particle_rounds: int = 64
    """Most marginals that are measured then."""
    one_way_share: float = 0.05
    """Share of the budget for the one-way marginals, with public data."""
    one_way_share_alone: float = 0.2
    """The same without public data, where nothing else tells of single attributes; never less than with."""
    max_asked_again: int = 12
    """Most answers to single attributes beyond the first; which, and how many, noisy answers tell."""
    select_share: float = 0.1
    """Share of each round that selects."""
    contest_share: float = 0.04
    """Share of the budget that asks once whether the public relations hold, where it can tell."""
    max_contests: int = 5
    """How often that is asked at most; 0 trusts them all."""
    mixture_share: float = 0.03
    """Share of the budget that chooses how much to take of what stands beside the tree: other trees, and
    public records. With 0 none is taken, and no public record is in the release."""
    total_share: float = 0.02
    """Share of the budget that counts the records, where that count is not public."""
    max_model_mb: float = 80.0
    """Size limit of the graphical model; the public model may take half, and less the more ε there is."""
    oversized: Oversized = "refuse"
    """What to do with workload marginals above the size limit."""
    seed: int = 0
    """Splits the public records into halves; protects nobody."""

    def __post_init__(self) -> None:
        _check.positive_integer(max_rounds=self.max_rounds, max_particle_rounds=self.max_particle_rounds)
        _check.natural(
            max_asked_again=self.max_asked_again,
            max_contests=self.max_contests,
            seed=self.seed,
        )
        _check.share(
            one_way_share=self.one_way_share, one_way_share_alone=self.one_way_share_alone,
            select_share=self.select_share, total_share=self.total_share,
        )  # fmt: skip
        _check.share(contest_share=self.contest_share)
        if self.mixture_share:
            _check.share(mixture_share=self.mixture_share)
        if self.particle_share:
            _check.share(particle_share=self.particle_share)
        _check.positive(max_model_mb=self.max_model_mb)
        _check.one_of(("refuse", "skip"), oversized=self.oversized)

    def run(self, curator: Curator, workload: Workload, *, public: Public | None = None) -> Outcome:
        rho, weights = curator.allotment, workload.closure(curator.domain)
        small = {
            c: weight for c, weight in weights.items() if mib(curator.domain.size(c)) <= self.max_model_mb
        }
        n = curator.total(rho.split(self.total_share)[0])
        arbiter = Arbiter.of(curator, weights, total=n, limit_mb=self.max_model_mb)

        # MEASURE the one-way marginals.
        singles = self._asked(curator, weights, self.one_way_share)
        # ESTIMATE the public model, and SELECT which of its relations lead.
        priors = self.priors(public, curator.domain, weights, singles, n)
        prior, cut = self._leading(arbiter, priors, singles)
        if not prior.records:
            singles += self._asked(curator, weights, self._more_alone)
        mixture_cost, _ = rho.split(self.mixture_share if prior.related else 0.0)
        prior = self._with_room(
            prior, singles, n, list(small), beyond(curator.remaining, mixture_cost), curator.unit
        )
        # MEASURE single attributes again where that is worth most.
        reach = {c: weight / sum(workload.weights) for c, weight in weights.items()}
        again = self._asked_again(curator, arbiter, prior, singles, reach, kept_back=mixture_cost)
        measurements = [*singles, *again]
        model, beliefs = taken_in(prior, measurements, n)

        spare = beyond(curator.remaining, mixture_cost)
        late, for_tree = spare.split(self._particle_share(model, list(small), spare, curator.unit))
        tree = Rounds(min(self._most_rounds(small), len(small)), for_tree, self.select_share, curator.unit)
        for done in range(tree.number if for_tree else 0):
            allowed = tractable(
                curator.domain, [*prior.sets, *beliefs.held], heard(model, list(small), stddev=tree.stddev),
                limit_mb=self.max_model_mb * (0.7 + 0.3 * done / tree.number),
            )  # fmt: skip
            # SELECT the marginal whose measuring is expected to improve the model most.
            score = ExpectedImprovement(
                model, partial(beliefs.prospect, weights=scaled(weights)), stddev=tree.stddev, total=n
            )
            chosen = curator.select([Marginal(c) for c in allowed], score, tree.select_cost)
            # MEASURE it.
            measurements.append(curator.measure(chosen, tree.measure_cost).against(model))
            # ESTIMATE how far it strays from the model, then the model itself.
            beliefs.add(measurements[-1])
            model = beliefs.estimate(model, last=done == tree.number - 1)

        blend: GraphicalModel | Blend = model
        is_bare = False
        if mixture_cost:
            # ESTIMATE what stands beside the tree, and what the answers say without public relations; SELECT.
            apart = prior.without(prior.related)
            bare, alone = refitted(apart, measurements, n, limit_mb=self.max_model_mb)
            others = beside(prior, measurements, n, limit_mb=self.max_model_mb)
            blend = arbiter.mixed(model, others, bare, min(mixture_cost, curator.remaining, key=float))
            if is_bare := blend is bare:
                beliefs = alone
        released: GraphicalModel | Blend | Support = blend
        found: list[Measurement] = []
        if curator.remaining:
            # SELECT, MEASURE and ESTIMATE what no tree has to hold.
            room = room_for(curator.domain, self.max_model_mb)
            drawn = Reweighting(particles(blend, room=room, seed=self.seed, like=arbiter.judged), n)
            found = measured_beyond(
                curator, drawn, beliefs, scaled(weights),
                candidates=list(small), cells=2 * self.max_model_mb * 2**20 / BYTES_PER_CELL,
                most=self.max_particle_rounds, select_share=self.select_share,
            )  # fmt: skip
            released = drawn.support
        # ESTIMATE once more, so that single attributes are as they were answered.
        released = kept(released, [*measurements, *found])
        return Outcome(
            released,
            (*measurements, *found),
            curator.events,
            aperture=Opening(
                rounds=tree.number if for_tree else 0,
                asked_again=tuple(answer.query.attrs[0] for answer in again),
                public_records=beliefs.prior.records,
                public_marginals=tuple(attrs for attrs in beliefs.prior.sets if len(attrs) > 1),
                marginals=tuple(_opened(beliefs, released, priors[0])),
                particle_share=round(float(late) / float(spare), 4) if spare else 0.0,
                cut=cut,
                is_bare=is_bare,
                records_share=None if not mixture_cost else blend.share if isinstance(blend, Blend) else 0.0,
                particle_rounds=len(found),
                particles=len(released.records) if isinstance(released, Support) else 0,
            ),
            public_attrs=tuple(attr for attr in curator.domain.attrs if beliefs.prior.tells([attr])),
            dispersions=beliefs.dispersions(),
        )

    def _most_rounds(self, closure: Iterable[Attrs]) -> int:
        """Three times as many where nothing larger than pairs is asked for: a triple holds three of them."""
        return self.max_rounds * (3 if max(map(len, closure)) == 2 else 1)

    def _asked(self, curator: Curator, weights: Mapping[Attrs, float], share: float) -> list[Measurement]:
        """All single attributes, with this share of the whole budget."""
        ones = [Marginal(c) for c in weights if len(c) == 1]
        cost, _ = curator.allotment.split(share)
        return [curator.measure(one, cost / len(ones)) for one in ones if cost]

    @property
    def _more_alone(self) -> float:
        """Share of the budget that asks single attributes again where no public data lead."""
        return max(0.0, self.one_way_share_alone - self.one_way_share)

    def _leading(
        self, arbiter: Arbiter, priors: Sequence[Prior], singles: Sequence[Measurement]
    ) -> tuple[Prior, tuple[str, ...]]:
        """The public data that lead, and what was cut off from them: attribute by attribute, or all (*)."""
        n, cut = arbiter.total, list[str]()
        cost, _ = arbiter.curator.allotment.split(self.contest_share)
        prior = priors[0]
        if not arbiter.tells(cost):
            return prior, ()
        if len(priors) > 1:
            prior = priors[arbiter.best([taken_in(one, singles, n)[0] for one in priors], cost)]
        alone, _ = taken_in(Prior.nothing(prior.domain), singles, n)
        while prior.related and len(cut) < self.max_contests:
            found = arbiter.to_cut(taken_in(prior, singles, n)[0], alone, prior.related, cost)
            if found is None:
                break
            cut.append(found)
            if found == ALL:
                prior = Prior.nothing(prior.domain)
            else:
                prior = prior.without(prior.related if found == RELATIONS else [found])
        return prior, tuple(cut)

    def _with_room(
        self,
        prior: Prior,
        singles: Sequence[Measurement],
        total: float,
        candidates: Sequence[Attrs],
        spare: Cost,
        unit: Unit,
    ) -> Prior:
        """The public tree with less room the more can be measured: its edges keep out those of answers."""
        if not spare or all(len(attrs) == 1 for attrs in prior.sets):
            return prior
        model, beliefs = taken_in(prior, singles, total)
        noise = Rounds(self.max_rounds, spare, self.select_share, unit).stddev
        share = public_room(beliefs, model, candidates, stddev=noise)
        return narrowed(prior, share=share, limit_mb=self.max_model_mb / 2)

    def _asked_again(
        self,
        curator: Curator,
        arbiter: Arbiter,
        prior: Prior,
        singles: Sequence[Measurement],
        reach: Mapping[Attrs, float],
        *,
        kept_back: Cost,
    ) -> list[Measurement]:
        """More answers to the single attributes whose answers leave most in doubt."""
        made, unit = list[Measurement](), curator.unit
        while len(made) < self.max_asked_again and (spare := beyond(curator.remaining, kept_back)):
            model, beliefs = taken_in(prior, [*singles, *made], arbiter.total)
            asked = worth_asking_again(
                beliefs, model, arbiter.judged, reach,
                stddev=marginal_stddev(spare / PART, unit), later=marginal_stddev(spare, unit),
            )  # fmt: skip
            if asked is None:
                break
            made.append(curator.measure(Marginal(asked), spare / PART))
        return made

    def _particle_share(
        self, model: GraphicalModel, candidates: Sequence[Attrs], spare: Cost, unit: Unit
    ) -> float:
        """What no tree has to hold gets a share where as many marginals can be heard as it has rounds for."""
        late, _ = spare.split(self.particle_share)
        if not late or mib(SizeOracle(model.domain, candidates).cells) <= self.max_model_mb:
            return 0.0  # a tree can hold all there is
        noise = Rounds(self.max_particle_rounds, late, self.select_share, unit).stddev
        enough = min(self.max_particle_rounds, len(candidates))
        return self.particle_share if len(heard(model, candidates, stddev=noise)) >= enough else 0.0

    def priors(
        self,
        public: Public | None,
        domain: Domain,
        closure: Mapping[Attrs, float],
        singles: Sequence[Measurement],
        total: float,
    ) -> list[Prior]:
        """All public data together, by what noisy answers say of each table; and each of several alone."""
        together = self.prior(public, domain, closure, measurements=singles, total=total)
        if isinstance(public, Sequence) and len(public) > 1:
            return [together, *(self.prior(one, domain, closure) for one in public)]
        return [together]

    def prior(
        self,
        public: Public | None,
        domain: Domain,
        closure: Mapping[Attrs, float],
        *,
        measurements: Sequence[Measurement] = (),
        total: float = 1.0,
    ) -> Prior:
        """The public model; of several public tables, each counts as far as the noisy answers bear it out."""
        if public is None:
            return Prior.nothing(domain)
        if isinstance(public, Prior):
            return public.under(domain)
        sources = _sources(public, seed=self.seed)
        records = PublicRecords.of(domain, sources)
        if len(sources) > 1 and measurements:
            records = trusted(records, measurements, total=total)
        recipe = PublicModel(max_model_mb=self.max_model_mb / 2, seed=self.seed)
        held = {c: weight for c, weight in closure.items() if mib(domain.size(c)) <= self.max_model_mb}
        return recipe.fit(records, held)

    def check(self, domain: Domain, workload: Workload, public: Any) -> None:
        super().check(domain, workload, public)
        check_sizes(domain, workload, limit_mb=self.max_model_mb, oversized=self.oversized, name=self.name)

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
        any_marginal, ones = Marginal(()), sum(len(c) == 1 for c in workload.closure(domain))
        total = allotment.split(0 if unit.total_is_public else self.total_share)[0]
        first = allotment.split(self.one_way_share)[0]
        more = allotment.split(self._more_alone)[0]
        contests = allotment.split(self.contest_share)[0] * (self.max_contests + 1)
        mixture = allotment.split(self.mixture_share)[0]
        left = allotment.value - sum(cost.value for cost in (total, first, more, contests, mixture))
        if left <= 0:
            raise SettingError(
                "total_share, one_way_share_alone, contest_share for each of max_contests, and mixture_share "
                "are together more than the whole budget. Lower one of them."
            )
        rounds = self._most_rounds(workload.closure(domain))
        costs = [total, first / ones, more / ones, *self._least_costs(type(allotment)(left), rounds)]
        return [measuring(any_marginal, cost, unit) for cost in costs if cost]

    def _least_costs(self, rest: Cost, rounds: int) -> Iterator[Cost]:
        """The least that a run pays for one more answer to an attribute, in a round, and beyond the tree."""
        if self.max_asked_again:
            yield rest * Fraction(PART - 1, PART) ** (self.max_asked_again - 1) / PART
        rest = rest * Fraction(PART - 1, PART) ** self.max_asked_again
        late, for_tree = rest.split(self.particle_share)
        yield (for_tree / rounds).split(self.select_share)[1]
        yield (late / self.max_particle_rounds).split(self.select_share)[1]

    def outlook(self, domain: Domain, workload: Workload, *, allotment: Cost, unit: Unit) -> Outlook:
        closure = workload.closure(domain)
        most = (
            self.max_asked_again
            + self._most_rounds(closure)
            + (self.max_particle_rounds if self.particle_share else 0)
        )
        _, measure_cost = (allotment / most).split(self.select_share)
        return Outlook(
            measurements=most + sum(len(c) == 1 for c in closure),
            stddev=marginal_stddev(measure_cost, unit),
            model_bytes=int(self.max_model_mb * 2**20),
            counting_bytes=8 * sum(domain.size(c) for c in closure),
            oversized=oversized_marginals(domain, workload, limit_mb=self.max_model_mb),
            notes=("noise is that of the most rounds; where there are fewer, each has less of it",),
        )


@dataclass(frozen=True)
class Rounds:
    """A budget in equal rounds, each of which selects and measures."""

    number: int
    budget: Cost
    select_share: float
    unit: Unit

    @property
    def select_cost(self) -> Cost:
        """What a round's selection costs."""
        return (self.budget / self.number).split(self.select_share)[0]

    @property
    def measure_cost(self) -> Cost:
        """What a round's measurement costs."""
        return (self.budget / self.number).split(self.select_share)[1]

    @property
    def stddev(self) -> float:
        """σ of what a round measures; infinite without a budget."""
        return marginal_stddev(self.measure_cost, self.unit) if self.budget else math.inf


def scaled(closure: Mapping[Attrs, float]) -> dict[Attrs, float]:
    """Weights of at most 1. How many attributes a marginal has is no merit: more make for larger errors."""
    means = {attrs: weight / len(attrs) for attrs, weight in closure.items()}
    return {attrs: mean / max(means.values()) for attrs, mean in means.items()}


def beyond(remaining: Cost, kept_back: Cost) -> Cost:
    """What is left of the budget beyond what is kept back; nothing where that is all of it."""
    part, _ = remaining.split(max(Fraction(0), 1 - kept_back.value / remaining.value) if remaining else 0)
    return part


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
        )
