"""APERTURE: a public model, opened to private measurements as far as the evidence allows.

    q ← a Markov random field of the public records, smoothed                                   free
    y_a ← M_a(D) + 𝒩(0, σ²)  for every attribute a                                              measure
    narrow q to the room it deserves beside what the budget can buy;  p ← fit                   free
    while an attribute's answer leaves much in doubt:  ask for it again;  p ← fit            measure
    until the budget is spent:
        K ← the number of rounds that promises most;  this round gets a K-th of what is left    free
        c ~ exp(ε w_c EI_c(‖M_c(D) − M_c(p)‖₁) / 2Δ)    over the downward closure               select
        y_c ← M_c(D) + 𝒩(0, σ²)                                                                 measure
        s_c ← how far the truth strays from the model, by empirical Bayes from the answers y    free
        p ← argmin  n KL(p ‖ q) + Σ_c (s_c/2σ_c²) ‖n p_c − y_c‖²                                estimate
    r ← the same with what stands beside q: other trees, and weighted records, the grain        free
    λ ~ odds · exp(−ε ‖M(D) − M((1 − λ) p + λ r)‖₁ / 2Δ);  p ← (1 − λ) p + λ r                select
    r ← particles drawn from p; go on with those, beyond what a tree can hold    select, measure, estimate

The last line is particles.py. EI_c is the expected improvement (select/improvement.py). s_c → 0
keeps the public model, s_c → ∞ is the plain information projection. Public data are never candidates, so
the score moves by Δ₁ alone. Specification and proof: docs/papers/aperture.md.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from sidelight import _check
from sidelight.curator.curator import Curator
from sidelight.data.domain import Attrs, Domain
from sidelight.data.table import Table
from sidelight.errors import SchemaError, SettingError
from sidelight.measurement import Measurement, measuring
from sidelight.mechanisms.aperture.worth import PART, heard, public_room, worth_asking_again
from sidelight.mechanisms.aperture.arbiter import Arbiter
from sidelight.mechanisms.aperture.evidence import Beliefs
from sidelight.mechanisms.aperture.particles import measured_beyond
from sidelight.mechanisms.aperture.reweighting import Reweighting, evenness, lowered
from sidelight.mechanisms.base import Mechanism, Outcome, Outlook
from sidelight.mechanisms.candidates import Oversized, check_sizes, marginal_stddev, mib, tractable
from sidelight.models.graphical import GraphicalModel
from sidelight.models.mixture import Blend
from sidelight.models.model import Model
from sidelight.models.particles import drawn_from, particles, room_for
from sidelight.models.support import Support
from sidelight.privacy.budget import Cost
from sidelight.privacy.event import Gaussian, Laplace
from sidelight.privacy.unit import Unit
from sidelight.public.prior import LEAST_SAMPLE, Prior, PublicModel, narrowed, pruned
from sidelight.public.source import PublicRecords, PublicSource, WeightedRecords
from sidelight.public.trust import trusted
from sidelight.queries.query import Marginal
from sidelight.queries.workload import Workload
from sidelight.select.improvement import ExpectedImprovement
from sidelight.select.score import ManyCountable
from sidelight.trees.triangulation import BYTES_PER_CELL

OnePublic = Table | WeightedRecords | Model | Prior
Public = OnePublic | Sequence[OnePublic]


@dataclass(frozen=True, kw_only=True)
class Aperture(Mechanism):
    """Each round: measure the marginal that promises most; trust the public model where it proved right."""

    name = "aperture"
    public_data = "optional"

    rounds: int = 12
    """Rounds with the tree, after the one-way marginals."""
    particle_share: float = 0.5
    """Share of the rounds' budget for marginals that no tree has to hold: particles drawn from it follow
    them. With 0 there are none, and the release is a tree."""
    max_particle_rounds: int = 64
    """Most marginals that are measured then."""
    one_way_share: float = 0.05
    """Share of the budget for the one-way marginals, with public data."""
    one_way_share_alone: float = 0.2
    """The same without public data: then nothing else tells of single attributes."""
    max_asked_again: int = 12
    """Most answers to single attributes beyond the first; which, and how many, noisy answers tell."""
    select_share: float = 0.1
    """Share of each round that selects."""
    contest_share: float = 0.01
    """Share of the budget that asks once whether the public relations hold."""
    max_cut: int = 5
    """How often that is asked at most; 0 trusts them all."""
    mixture_share: float = 0.03
    """Share of the budget that chooses how much to take of what stands beside the tree."""
    total_share: float = 0.02
    """Share of the budget that counts the records, where that count is not public."""
    max_model_mb: float = 80.0
    """Size limit of the graphical model; the public model may take half, and less the more ε there is."""
    oversized: Oversized = "refuse"
    """What to do with workload marginals above the size limit."""
    least_doubt: float = 0.01
    """Share of the gap between model and answer that is kept, as long as the noise hides it: for speed."""
    seed: int = 0
    """Splits the public records into halves; protects nobody."""

    def __post_init__(self) -> None:
        _check.positive_integer(rounds=self.rounds, max_particle_rounds=self.max_particle_rounds)
        _check.natural(
            max_asked_again=self.max_asked_again,
            max_cut=self.max_cut,
            seed=self.seed,
        )
        _check.share(
            one_way_share=self.one_way_share, one_way_share_alone=self.one_way_share_alone,
            select_share=self.select_share, total_share=self.total_share, least_doubt=self.least_doubt,
        )  # fmt: skip
        _check.share(contest_share=self.contest_share, mixture_share=self.mixture_share)
        if self.particle_share:
            _check.share(particle_share=self.particle_share)
        _check.positive(max_model_mb=self.max_model_mb)
        _check.one_of(("refuse", "skip"), oversized=self.oversized)

    def run(self, curator: Curator, workload: Workload, *, public: Public | None = None) -> Outcome:
        domain, rho, unit = curator.domain, curator.allotment, curator.unit
        weights = workload.closure(domain)
        # By the mean weight of its attributes: how many it has is no merit, it only makes for larger errors.
        means = {attrs: weight / len(attrs) for attrs, weight in weights.items()}
        scaled = {attrs: mean / max(means.values()) for attrs, mean in means.items()}
        total_cost, _ = rho.split(self.total_share)
        n = curator.total(total_cost)
        arbiter = Arbiter.of(curator, weights, total=n, limit_mb=self.max_model_mb)

        # MEASURE the one-way marginals.
        ones = [Marginal(c) for c in weights if len(c) == 1]
        one_way_cost, _ = rho.split(self.one_way_share)
        first = [curator.measure(one, one_way_cost / len(ones)) for one in ones]
        # ESTIMATE the public model; SELECT which of its relations hold.
        prior = self.prior(public, domain, weights, measurements=first, total=n)
        contest_cost, _ = rho.split(self.contest_share)
        cut = list[str]()
        while prior.records and len(cut) < self.max_cut:
            leading, _ = self._taken_in(prior, first, n)
            alone, _ = self._taken_in(Prior.nothing(domain), first, n)
            open_ = [attr for attr in domain.attrs if prior.tells([attr])]
            found = arbiter.to_cut(leading, alone, open_, contest_cost)
            if found == "":
                break
            prior = Prior.nothing(domain) if found is None else prior.without(found)
            cut.append("all" if found is None else found)
        if not prior.records:
            # Nothing else tells of single attributes, so MEASURE them with more of the budget.
            more_cost, _ = rho.split(self.one_way_share_alone - self.one_way_share)
            first += [curator.measure(one, more_cost / len(ones)) for one in ones]
        choice_cost, _ = rho.split(self.mixture_share if prior.records else 0.0)
        # The public tree gets less room the more can be measured.
        model, beliefs = self._taken_in(prior, first, n)
        small = self._small(domain, weights)
        if any(len(c) > 1 for c in prior.sets):
            noise_ = marginal_stddev(
                (beyond(curator.remaining, choice_cost.value) / self.rounds).split(self.select_share)[1], unit
            )
            share = public_room(beliefs, model, small, stddev=noise_)
            prior = narrowed(prior, share=share, limit_mb=self.max_model_mb / 2)
            model, beliefs = self._taken_in(prior, first, n)
        # MEASURE single attributes again where that is worth most.
        again = list[Measurement]()
        reach = {attrs: weights[attrs] / sum(workload.weights) for attrs in beliefs.held}
        while len(again) < self.max_asked_again and (spare := beyond(curator.remaining, choice_cost.value)):
            asked = worth_asking_again(
                beliefs, model, arbiter.judged, reach,
                stddev=marginal_stddev(spare / PART, unit), later=marginal_stddev(spare, unit),
            )  # fmt: skip
            if asked is None:
                break
            again.append(curator.measure(Marginal(asked), spare / PART))
            model, beliefs = self._taken_in(prior, [*first, *again], n)
        measurements = [*first, *again]

        spare = beyond(curator.remaining, choice_cost.value)

        # What no tree has to hold gets a share where much of it can be heard.
        late, for_tree = spare.split(self.particle_share)
        if late:
            each = marginal_stddev((late / self.max_particle_rounds).split(self.select_share)[1], unit)
            if len(heard(model, small, stddev=each)) < self.max_particle_rounds:
                late, for_tree = spare.split(0.0)
        rounds = self.rounds if for_tree else 0
        select_cost, measure_cost = (for_tree / self.rounds).split(self.select_share)
        stddev = marginal_stddev(measure_cost, unit) if for_tree else 0.0
        for done in range(rounds):
            allowed = tractable(
                domain, [*prior.sets, *beliefs.held], heard(model, small, stddev=stddev),
                limit_mb=self.max_model_mb * (0.7 + 0.3 * done / rounds),
            )  # fmt: skip
            # SELECT the marginal whose measuring is expected to improve the model most.
            score = ExpectedImprovement(
                model, partial(beliefs.prospect, weights=scaled), stddev=stddev, total=n
            )
            chosen = curator.select([Marginal(c) for c in allowed], score, select_cost)
            # MEASURE it.
            measurements.append(curator.measure(chosen, measure_cost).against(model))
            # ESTIMATE how far it strays from the model, then the model itself.
            beliefs.add(measurements[-1])
            model = beliefs.estimate(model, last=done == rounds - 1)

        blend: GraphicalModel | Blend = model
        opened: dict[str, Any] = {
            "late": float(late) / float(spare) if spare else 0,
            "rounds": rounds,
            "room": len(prior.sets) - len(domain),
            "cut": cut,
            "asked_again": [answer.query.attrs[0] for answer in again],
        }
        if choice_cost:
            # ESTIMATE what stands beside the tree and what there is without public data; SELECT.
            bare, bare_beliefs = self._refitted(Prior.nothing(domain), measurements, n)
            beside = self._beside(prior, measurements, n)
            blend = arbiter.mixed(model, beside, bare, min(choice_cost, curator.remaining, key=float))
            if blend is bare:
                model, beliefs = bare, bare_beliefs
            opened["records_share"] = blend.share if isinstance(blend, Blend) else 0.0
            opened["bare"] = blend is bare
        released: GraphicalModel | Blend | Support = blend
        if curator.remaining:
            # SELECT, MEASURE and ESTIMATE what no tree has to hold.
            room = room_for(domain, self.max_model_mb)
            followed = Reweighting(particles(blend, room=room, seed=self.seed, like=arbiter.judged), n)
            found_ = measured_beyond(
                curator, followed, model, beliefs, scaled,
                candidates=small, cells=2 * self.max_model_mb * 2**20 / BYTES_PER_CELL,
                most=self.max_particle_rounds, select_share=self.select_share,
            )  # fmt: skip
            measurements += found_
            released = followed.support
            opened |= {"particle_rounds": len(found_), "particles": len(released.records)}
        return Outcome(
            released,
            tuple(measurements),
            curator.events,
            facts=_card(beliefs, released, opened),
            dispersions=beliefs.dispersions(),
        )

    def _taken_in(
        self, prior: Prior, singles: Sequence[Measurement], total: float
    ) -> tuple[GraphicalModel, Beliefs]:
        """The public model after the answers to single attributes, and what they say of it."""
        beliefs = Beliefs(prior, total, least_doubt=self.least_doubt)
        start = GraphicalModel(prior.domain, total, prior.model.potentials)
        return beliefs.estimate(beliefs.add_all(singles, start, beliefs.estimate)), beliefs

    def _refitted(
        self, prior: Prior, measurements: Sequence[Measurement], total: float
    ) -> tuple[GraphicalModel, Beliefs]:
        """Another tree after all answers: of its own marginals it keeps what has room beside those measured."""
        asked = [measurement.query.attrs for measurement in measurements]
        most_cells = self.max_model_mb * 2**20 / BYTES_PER_CELL
        prior = replace(prior, model=pruned(prior.model, most_cells=most_cells, beside=asked))
        tree, beliefs = self._taken_in(prior, [m for m in measurements if len(m.query.attrs) == 1], total)
        others = [m for m in measurements if len(m.query.attrs) > 1]
        for measurement in others:
            beliefs.add(measurement.against(tree))
        return (beliefs.estimate(tree) if others else tree), beliefs

    def _beside(
        self, prior: Prior, measurements: Sequence[Measurement], total: float
    ) -> list[tuple[Support, float]]:
        """Public records and draws from other trees, after the same answers; the most to take of each."""
        found = list[tuple[Support, float]]()
        if prior.sample is not None:
            beliefs = Beliefs(prior, total, least_doubt=self.least_doubt)
            records = Reweighting(prior.sample, total).follow(measurements, beliefs)
            found.append((records, lowered(prior.sample_share, evenness(records) / evenness(prior.sample))))
        if prior.others:
            room = max(LEAST_SAMPLE, room_for(prior.domain, self.max_model_mb / 2)) // len(prior.others)
            drawn = list[tuple[Support, float]]()
            for place, other in enumerate(prior.others):
                tree, _ = self._refitted(replace(prior, model=other), measurements, total)
                drawn.append((drawn_from(tree, room=room, seed=place), 1.0))
            share = len(prior.others) / (len(prior.others) + 1)
            found.append((Support.mixed(drawn, total=total), share))
        return found

    def _small(self, domain: Domain, wanted: Iterable[Attrs]) -> list[Attrs]:
        """Those that are no larger than a model may be."""
        return [attrs for attrs in wanted if mib(domain.size(attrs)) <= self.max_model_mb]

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
        return recipe.fit(records, {attrs: closure[attrs] for attrs in self._small(domain, closure)})

    def check(self, domain: Domain, workload: Workload, public: Any) -> None:
        super().check(domain, workload, public)
        check_sizes(domain, workload, limit_mb=self.max_model_mb, oversized=self.oversized, name=self.name)
        if isinstance(public, Prior):
            if public.domain != domain:
                raise SchemaError(
                    "the prior was fitted under another schema: its attributes or their values differ. "
                    "Fit it again with `sidelight prior fit` and this schema."
                )
        elif public is not None:
            PublicRecords.of(domain, _sources(public, seed=self.seed))

    def noisiest(
        self, domain: Domain, workload: Workload, *, allotment: Cost, unit: Unit
    ) -> Iterable[Gaussian | Laplace]:
        any_marginal, ones = Marginal(()), sum(len(c) == 1 for c in workload.closure(domain))
        total = allotment.split(0 if unit.total_is_public else self.total_share)[0]
        first = allotment.split(self.one_way_share)[0]
        more = allotment.split(self.one_way_share_alone - self.one_way_share)[0]
        contests = allotment.split(self.contest_share)[0] * self.max_cut
        choice = allotment.split(self.mixture_share)[0]
        if total.value + first.value + more.value + contests.value + choice.value >= allotment.value:
            raise SettingError(
                "total_share, one_way_share_alone, max_cut times contest_share and mixture_share are "
                "together the whole budget or more. Lower one of them."
            )
        rest = type(allotment)(
            allotment.value - total.value - first.value - more.value - contests.value - choice.value
        )
        costs = [total, first / ones, more / ones, *self._least_costs(rest)]
        return [measuring(any_marginal, cost, unit) for cost in costs if cost]

    def _least_costs(self, rest: Cost) -> Iterator[Cost]:
        """The least that a run pays for one more answer to an attribute, in a round, and beyond the tree."""
        if self.max_asked_again:
            yield rest * Fraction(PART - 1, PART) ** (self.max_asked_again - 1) / PART
        rest = rest * Fraction(PART - 1, PART) ** self.max_asked_again
        late, for_tree = rest.split(self.particle_share)
        yield (for_tree / self.rounds).split(self.select_share)[1]
        yield (late / self.max_particle_rounds).split(self.select_share)[1]

    def outlook(self, domain: Domain, workload: Workload, *, allotment: Cost, unit: Unit) -> Outlook:
        closure = workload.closure(domain)
        most = self.max_asked_again + self.rounds + (self.max_particle_rounds if self.particle_share else 0)
        _, measure_cost = (allotment / most).split(self.select_share)
        return Outlook(
            measurements=most + sum(len(c) == 1 for c in closure),
            stddev=marginal_stddev(measure_cost, unit),
            model_bytes=int(self.max_model_mb * 2**20),
            counting_bytes=8 * sum(domain.size(c) for c in closure),
            notes=(
                "noise is that of the most rounds; fewer, with less noise each, are planned along the way",
            ),
        )


def beyond(remaining: Cost, kept_back: Fraction) -> Cost:
    """What is left of the budget beyond what is kept back; nothing where that is all of it."""
    part, _ = remaining.split(max(Fraction(0), 1 - kept_back / remaining.value) if remaining else 0)
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


def _card(beliefs: Beliefs, model: ManyCountable, opened: Mapping[str, Any]) -> dict[str, Any]:
    """How far the aperture opened: all of it from public data and noisy answers."""
    prior, n = beliefs.prior, beliefs.total
    held = list(beliefs.held)
    spreads = beliefs.spreads()
    moved = dict.fromkeys(held, 0.0)
    for place, public in prior.model.count_each(held):
        # One at a time: all of them together may be larger than the model.
        ((_, now),) = model.count_each([held[place]])
        moved[held[place]] = float(np.abs(now / n - public).sum())
    card: dict[str, Any] = {
        "aperture": {
            **opened,
            "public_records": prior.records,
            "public_marginals": [list(attrs) for attrs in prior.sets if len(attrs) > 1],
            "marginals": [
                {
                    "attrs": list(attrs),
                    "spread": spreads[attrs],
                    "trust": belief.evidence.trust(spreads[attrs]),
                    "moved": moved[attrs],
                    "expected_error": belief.evidence.expected_error(spreads[attrs]) / n,
                }
                for attrs, belief in beliefs.held.items()
            ],
        }
    }
    if prior.records:
        card["public_error"] = [{"attrs": list(attrs), "error": round(moved[attrs], 6)} for attrs in held]
    return card
