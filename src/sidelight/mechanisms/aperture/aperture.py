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
    cut off from q, if others were, the attributes whose relations the answers y contradict     free
    t ← other trees, and public records, after the same answers;  u ← no relations, likewise    free
    r ← particles of p mixed with t, or of u, as the arbiter says                               select
    go on with those, beyond what a tree can hold                        select, measure, estimate

The arbiter is arbiter.py, the last line particles.py. EI_c is the expected improvement
(select/improvement.py). s_c → 0 keeps the public model, s_c → ∞ is the plain information projection. Public
data are never candidates of a round, so its score moves by Δ₁ alone. Proofs: docs/papers/aperture.md.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
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
from sidelight.mechanisms.aperture.arbiter import Arbiter
from sidelight.mechanisms.aperture.evidence import Beliefs
from sidelight.mechanisms.aperture.keeping import kept
from sidelight.mechanisms.aperture.particles import measured_beyond
from sidelight.mechanisms.aperture.refitting import (
    Fitted,
    beside,
    refitted,
    taken_in,
    with_false_relations,
    without_doubted,
    without_false_values,
)
from sidelight.mechanisms.aperture.reweighting import Reweighting
from sidelight.mechanisms.aperture.worth import heard, left_to_public, worth_asking_again
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
from sidelight.models.graphical import GraphicalModel
from sidelight.models.model import Model
from sidelight.models.particles import particles, room_for, thinned
from sidelight.models.support import Support
from sidelight.privacy.budget import Cost
from sidelight.privacy.event import Gaussian, Laplace
from sidelight.privacy.unit import Unit
from sidelight.public.prior import LEAST_SAMPLE, Prior, fit_prior, pruned
from sidelight.public.source import PublicRecords, PublicSource, WeightedRecords
from sidelight.queries.query import Marginal
from sidelight.queries.workload import Workload
from sidelight.select.improvement import ExpectedImprovement
from sidelight.trees.triangulation import BYTES_PER_CELL, SizeOracle

_PAIRS = 128
"""So many pairs have ``max_particle_rounds``: with 41 attributes, 384 of 820 pairs are measured beyond the
tree."""

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
    them. With 0 there are none."""
    max_particle_rounds: int = 64
    """Most marginals that are measured then; as many again for every 128 pairs from 256 on, if only pairs are
    asked for and so many could be heard."""
    one_way_share: float = 0.05
    """Share of the budget for all one-way marginals, at first."""
    max_asked_again: int = 12
    """Most answers to single attributes beyond the first, each for so large a part of what is left; which,
    and how many, noisy answers tell."""
    select_share: float = 0.1
    """Share of each round that selects."""
    contest_share: float = 0.04
    """Share of the budget that asks whether the public relations hold, where it can tell; 0 trusts them. Once
    more if there are several public tables."""
    mixture_share: float = 0.03
    """Share of the budget that chooses how much to take of what stands beside the tree: other trees, and
    public records. With 0 none is taken, and no public record is in the release."""
    total_share: float = 0.02
    """Share of the budget that counts the records, where that count is not public."""
    max_model_mb: float = 80.0
    """Size limit of the graphical model; the public model may take half."""
    oversized: Oversized = "refuse"
    """What to do with workload marginals above the size limit."""
    seed: int = 0
    """Splits the public records into halves; protects nobody."""

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
        rho, closure = curator.allotment, workload.closure(curator.domain)
        n = curator.total(rho.split(self.total_share)[0])
        arbiter = Arbiter.of(curator, closure, total=n, limit_mb=self.max_model_mb)
        weights = {
            c: w for c, w in scaled(closure).items() if mib(curator.domain.size(c)) <= self.max_model_mb
        }
        # MEASURE the one-way marginals.
        ones = [Marginal(c) for c in closure if len(c) == 1]
        singles = [curator.measure(one, rho.split(self.one_way_share)[0] / len(ones)) for one in ones]
        # ESTIMATE the public model, and SELECT which of its relations lead.
        seen, prior = self._leading(arbiter, self.priors(public, curator.domain, closure), singles)
        # MEASURE single attributes again where that is worth most.
        mixture_cost = min(rho.split(self.mixture_share if prior.related else 0)[0], curator.remaining)
        again = self._asked_again(arbiter, prior, singles, reach(workload, closure), keep=mixture_cost)
        measurements = [*singles, *again]
        spare = less(curator.remaining, mixture_cost)
        cut = [attr for attr in seen.related if attr not in prior.related]
        prior = self._with_room(arbiter, prior, measurements, spare)
        model, beliefs = unasked = taken_in(prior, measurements, n)

        beyond = self._particle_rounds(
            model, list(weights), spare, curator.unit, most=self._most_particle_rounds(closure)
        )
        late, for_tree = spare.split(self.particle_share if beyond else 0)
        rounds = min(self._most_rounds(closure), len(weights)) if for_tree else 0
        for done in range(rounds):
            select_cost, measure_cost = (for_tree / rounds).split(self.select_share)
            stddev = marginal_stddev(measure_cost, curator.unit)
            allowed = tractable(
                curator.domain, [*prior.sets, *beliefs.held], heard(model, list(weights), stddev=stddev),
                limit_mb=self.max_model_mb * (0.7 + 0.3 * done / rounds),
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
            model = beliefs.estimate(model, last=done == rounds - 1)

        while cut and (false := with_false_relations(unasked, beliefs.answers)) is not None:
            # Where some proved false others may be: without them all answers are taken in anew.
            cut.append(false)
            prior = without_false_values(prior.without([false]), singles, n)
            unasked = taken_in(prior, [*singles, *again], n)
            model, beliefs = refitted(prior, measurements, n, limit_mb=self.max_model_mb)
        # ESTIMATE what stands beside the tree, and what answers say without public relations; SELECT of them.
        released, beliefs, taken = self._mixed(arbiter, (model, beliefs), measurements, mixture_cost)
        if curator.remaining:
            # SELECT, MEASURE and ESTIMATE what no tree has to hold.
            drawn = Reweighting(self._drawn(released), n)
            measurements += measured_beyond(
                curator, drawn, beliefs, weights,
                cells=2 * self.max_model_mb * 2**20 / BYTES_PER_CELL,
                most=beyond or self.max_particle_rounds, select_share=self.select_share,
            )  # fmt: skip
            released = drawn.support
        # ESTIMATE once more, so that single attributes are as they were answered.
        released = kept(released, measurements)
        opening = Opening(
            rounds=rounds,
            asked_again=tuple(answer.query.attrs[0] for answer in again),
            public_records=beliefs.prior.records,
            public_marginals=tuple(attrs for attrs in beliefs.prior.sets if len(attrs) > 1),
            marginals=tuple(_opened(beliefs, released, seen)),
            particle_share=round(float(late) / float(spare), 4) if late else 0.0,
            cut=tuple(cut),
            is_bare=taken is None,
            records_share=None if not mixture_cost else sum(taken or [0.0]),
            particle_rounds=len(measurements) - len(ones) - len(again) - rounds,
            particles=len(released.records) if isinstance(released, Support) else 0,
        )
        told = tuple(attr for attr in curator.domain.attrs if beliefs.prior.tells([attr]))
        return Outcome(
            released, tuple(measurements), curator.events,
            aperture=opening, public_attrs=told, dispersions=beliefs.dispersions(),
        )  # fmt: skip

    def _leading(
        self, arbiter: Arbiter, priors: Sequence[Prior], singles: Sequence[Measurement]
    ) -> tuple[Prior, Prior]:
        """The public data that are looked at, and what leads of them: all of it, or less."""
        n = arbiter.total
        cost, _ = arbiter.curator.allotment.split(self.contest_share)
        is_asked = bool(cost) and arbiter.tells(cost)
        seen = priors[0]
        if len(priors) > 1 and is_asked:
            seen = priors[arbiter.best([taken_in(one, singles, n)[0] for one in priors], cost)]
        prior = without_false_values(seen, singles, n)
        if prior.related and is_asked:
            candidates = [prior, *without_doubted(prior, singles, n)]
            models = [taken_in(one, singles, n)[0] for one in candidates]
            place, cut = arbiter.to_cut(models, prior.related, cost)
            prior = without_false_values(prior.without(cut), singles, n) if cut else candidates[place]
        return seen, prior

    def _asked_again(
        self,
        arbiter: Arbiter,
        prior: Prior,
        singles: Sequence[Measurement],
        reach: Mapping[Attrs, float],
        *,
        keep: Cost,
    ) -> list[Measurement]:
        """More answers to the single attributes whose answers leave most in doubt; ``keep`` is kept back."""
        made, curator = list[Measurement](), arbiter.curator
        while len(made) < self.max_asked_again and (spare := less(curator.remaining, keep)):
            model, beliefs = taken_in(prior, [*singles, *made], arbiter.total)
            part = spare / self.max_asked_again
            asked = worth_asking_again(
                beliefs, model, arbiter.judged, reach,
                stddev=marginal_stddev(part, curator.unit), later=marginal_stddev(spare, curator.unit),
            )  # fmt: skip
            if asked is None:
                break
            made.append(curator.measure(Marginal(asked), part))
        return made

    def _mixed(
        self, arbiter: Arbiter, fitted: Fitted, measurements: Sequence[Measurement], cost: Cost
    ) -> tuple[GraphicalModel | Support, Beliefs, list[float] | None]:
        """The tree with as much beside it as the arbiter says, or the bare one; beliefs; what was taken."""
        model, beliefs = fitted
        if not cost:
            return model, beliefs, []
        limit, prior = {"limit_mb": self.max_model_mb}, beliefs.prior
        bare, alone = refitted(prior.without(prior.related), measurements, arbiter.total, **limit)
        others = beside(prior, measurements, arbiter.total, **limit)
        taken = arbiter.shares(model, others, bare, min(cost, arbiter.curator.remaining))
        if taken is None:
            return bare, alone, None
        if not any(taken):
            return model, beliefs, taken
        room = self._room(model.domain)
        drawn = particles(model, room=max(1, round(room * (1 - sum(taken)))), seed=self.seed)
        parts = [(drawn, 1 - sum(taken))]
        for (one, _), share in zip(others, taken, strict=True):
            parts += (
                [(thinned(one, most=max(1, round(room * share)), seed=self.seed), share)] if share else []
            )
        return Support.mixed(parts, total=arbiter.total), beliefs, taken

    def _drawn(self, model: GraphicalModel | Support) -> Support:
        if isinstance(model, Support):
            return model
        return particles(model, room=self._room(model.domain), seed=self.seed)

    def _room(self, domain: Domain) -> int:
        """How many particles there are: what is drawn errs by the drawing, however small a tree has to be."""
        return max(LEAST_SAMPLE, room_for(domain, self.max_model_mb))

    def _with_room(
        self, arbiter: Arbiter, prior: Prior, singles: Sequence[Measurement], spare: Cost
    ) -> Prior:
        """The public tree with less room the more can be measured: its edges keep out those of answers."""
        if not spare or not prior.related:
            return prior
        model, beliefs = taken_in(prior, singles, arbiter.total)
        stddev = marginal_stddev((spare / self.max_rounds).split(self.select_share)[1], arbiter.curator.unit)
        told = [c for c in arbiter.judged if prior.tells(c)]
        share = left_to_public(beliefs, model, told, stddev=stddev) if told else 1.0
        cells = share * self.max_model_mb / 2 * 2**20 / BYTES_PER_CELL
        return replace(prior, model=pruned(prior.model, most_cells=cells))

    def _particle_rounds(
        self, model: GraphicalModel, candidates: Sequence[Attrs], spare: Cost, unit: Unit, *, most: int
    ) -> int:
        """How many marginals that no tree has to hold: as many as could be heard, or none."""
        late, _ = spare.split(self.particle_share)
        if not late or mib(SizeOracle(model.domain, candidates).cells) <= self.max_model_mb:
            return 0  # a tree can hold all there is
        times = most // self.max_particle_rounds
        while times:
            number = min(self.max_particle_rounds * times, len(candidates))
            stddev = marginal_stddev((late / number).split(self.select_share)[1], unit)
            if len(heard(model, candidates, stddev=stddev)) >= number:
                return number
            times //= 2
        return 0

    def _most_particle_rounds(self, closure: Collection[Attrs]) -> int:
        """More where many pairs are asked for, and nothing larger: a tree holds few of them."""
        pairs = sum(len(c) == 2 for c in closure) if max(map(len, closure)) == 2 else 0
        return self.max_particle_rounds * max(1, pairs // _PAIRS)

    def _most_rounds(self, closure: Iterable[Attrs]) -> int:
        """Three times as many where nothing larger than pairs is asked for: a triple holds three of them."""
        return self.max_rounds * (3 if max(map(len, closure)) == 2 else 1)

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
        # Which of several tables, and which relations.
        contests = allotment.split(self.contest_share)[0] * 2
        mixture = allotment.split(self.mixture_share)[0]
        left = allotment.value - sum(cost.value for cost in (total, first, contests, mixture))
        if left <= 0:
            raise SettingError(
                "total_share, one_way_share, mixture_share and twice contest_share are together more than "
                "the whole budget. Lower one of them."
            )
        closure = workload.closure(domain)
        costs = [total, first / ones, *self._least_costs(type(allotment)(left), closure)]
        return [measuring(any_marginal, cost, unit) for cost in costs if cost]

    def _least_costs(self, rest: Cost, closure: Collection[Attrs]) -> Iterator[Cost]:
        """The least that a run pays for one more answer to an attribute, in a round, and beyond the tree."""
        if most := self.max_asked_again:
            yield rest * Fraction(most - 1, most) ** (most - 1) / most
            rest = rest * Fraction(most - 1, most) ** most
        late, for_tree = rest.split(self.particle_share)
        yield (for_tree / self._most_rounds(closure)).split(self.select_share)[1]
        yield (late / self._most_particle_rounds(closure)).split(self.select_share)[1]

    def outlook(self, domain: Domain, workload: Workload, *, allotment: Cost, unit: Unit) -> Outlook:
        closure = workload.closure(domain)
        most = (
            self.max_asked_again
            + self._most_rounds(closure)
            + (self._most_particle_rounds(closure) if self.particle_share else 0)
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


def scaled(closure: Mapping[Attrs, float]) -> dict[Attrs, float]:
    """Weights of at most 1. How many attributes a marginal has is no merit: more make for larger errors."""
    means = {attrs: weight / len(attrs) for attrs, weight in closure.items()}
    largest = max(means.values())
    return {attrs: mean / largest for attrs, mean in means.items()}


def reach(workload: Workload, closure: Mapping[Attrs, float]) -> dict[Attrs, float]:
    """The share of the workload that each marginal of its closure is a part of."""
    return {attrs: weight / sum(workload.weights) for attrs, weight in closure.items()}


def less(remaining: Cost, kept_back: Cost) -> Cost:
    """What is left of the budget beyond what is kept back."""
    return type(remaining)(max(remaining.value - kept_back.value, Fraction(0)))


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
