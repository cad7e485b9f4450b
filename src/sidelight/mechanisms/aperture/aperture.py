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
from sidelight.mechanisms.aperture.again import PART, measured_again
from sidelight.mechanisms.aperture.evidence import Beliefs
from sidelight.mechanisms.aperture.grain import chosen_blend, judged
from sidelight.mechanisms.aperture.particles import measured_beyond
from sidelight.mechanisms.aperture.reweighting import Reweighting
from sidelight.mechanisms.aperture.rounds import Forecast, beyond
from sidelight.mechanisms.base import Mechanism, Outcome, Outlook
from sidelight.mechanisms.candidates import Oversized, check_sizes, marginal_stddev, mib, tractable
from sidelight.mechanisms.told import OpenedMarginal, Opening
from sidelight.models.graphical import GraphicalModel
from sidelight.models.mixture import Blend
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
from sidelight.trees.triangulation import BYTES_PER_CELL

_LEAST_SHARE = 0.02
"""Of the budget, beyond the tree or in it: less would buy nothing for the time that it takes."""

OnePublic = Table | WeightedRecords | Model | Prior
Public = OnePublic | Sequence[OnePublic]


@dataclass(frozen=True, kw_only=True)
class Aperture(Mechanism):
    """Each round: measure the marginal that promises most; trust the public model where it proved right."""

    name = "aperture"
    public_data = "optional"

    max_rounds: int = 12
    """Most rounds with the tree, after the one-way marginals; how many is planned from noisy answers."""
    particle_share: float | None = None
    """Share of the rounds' budget for marginals that no tree has to hold: particles drawn from it follow
    them. None plans it from noisy answers; with 0 there are none, and the release is a tree."""
    max_particle_rounds: int = 64
    """Most marginals that are measured then; how many is planned likewise."""
    one_way_share: float = 0.05
    """Share of the budget for the one-way marginals, with public data."""
    one_way_share_alone: float = 0.2
    """The same without public data: then nothing else tells of single attributes."""
    max_asked_again: int = 12
    """Most answers to single attributes beyond the first; which, and how many, noisy answers tell."""
    select_share: float = 0.1
    """Share of each round that selects."""
    grain_share: float = 0.03
    """Share of the budget that chooses how much to take of what stands beside the tree: of other trees, and
    of the grain, which is public records and draws from latent classes of them. 0 takes none."""
    total_share: float = 0.02
    """Share of the budget that counts the records, where that count is not public."""
    max_model_mb: float = 80.0
    """Size limit of the graphical model; the public model may take half, and less the more ε there is."""
    oversized: Oversized = "refuse"
    """What to do with workload marginals above the size limit."""
    least_doubt: float = 0.01
    """Share of the gap between model and answer that is kept, as long as the noise hides it: for speed."""
    max_public_marginals: int = 40
    """Most marginals of two or more attributes in the public model."""
    seed: int = 0
    """Splits the public records into halves; protects nobody."""

    def __post_init__(self) -> None:
        _check.positive_integer(max_rounds=self.max_rounds, max_particle_rounds=self.max_particle_rounds)
        _check.natural(
            max_public_marginals=self.max_public_marginals,
            max_asked_again=self.max_asked_again,
            seed=self.seed,
        )
        _check.share(
            one_way_share=self.one_way_share, one_way_share_alone=self.one_way_share_alone,
            select_share=self.select_share, total_share=self.total_share, least_doubt=self.least_doubt,
        )  # fmt: skip
        if self.grain_share != 0:
            _check.share(grain_share=self.grain_share)
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

        # MEASURE the one-way marginals.
        one_way_cost, _ = rho.split(self.one_way_share_alone if public is None else self.one_way_share)
        ones = [Marginal(c) for c in weights if len(c) == 1]
        measurements = [curator.measure(one, one_way_cost / len(ones)) for one in ones]
        # ESTIMATE: the public model, then how far to trust it.
        prior = self.prior(public, domain, weights, measurements=measurements, total=n)
        has_more = self.grain_share > 0 and (prior.grain is not None or len(prior.others) > 0)
        choice_cost, _ = rho.split(self.grain_share if has_more else 0.0)
        spare = beyond(curator.remaining, choice_cost.value)
        beliefs, start = self._believed(prior, domain, measurements, total=n)
        if spare and any(len(attrs) > 1 for attrs in prior.sets):
            prior = self._with_room(prior, beliefs, start, scaled, remaining=spare, unit=unit)
            beliefs, start = self._believed(prior, domain, measurements, total=n)
        # MEASURE single attributes again where that is worth most.
        whole = judged(domain, weights, limit_mb=self.max_model_mb)
        again, beliefs, model = measured_again(
            curator, beliefs, start,
            lambda more: self._believed(prior, domain, [*measurements, *more], total=n),
            whole=whole, reach={attrs: weights[attrs] / sum(workload.weights) for attrs in beliefs.held},
            most=self.max_asked_again, kept_back=choice_cost.value,
        )  # fmt: skip
        measurements += again
        spare = beyond(curator.remaining, choice_cost.value)
        share = self._particle_share(prior, beliefs, model, scaled, remaining=spare, unit=unit)
        late, for_tree = spare.split(share)
        kept_back = choice_cost.value + late.value

        rounds, left = 0, self.max_rounds
        while spare := beyond(curator.remaining, kept_back):
            used = 1 - spare.value / for_tree.value
            allowed = tractable(
                domain, [*prior.sets, *beliefs.held], list(weights),
                limit_mb=self.max_model_mb * (0.7 + 0.3 * float(used)),
            )  # fmt: skip
            if rounds % 4 == 0:
                left = Forecast.of(
                    beliefs, model, allowed, scaled,
                    remaining=spare, select_share=self.select_share, unit=unit,
                ).rounds(left)  # fmt: skip
            select_cost, measure_cost = (spare / left).split(self.select_share)

            # SELECT the marginal whose measuring is expected to improve the model most.
            score = ExpectedImprovement(
                model, partial(beliefs.prospect, weights=scaled),
                stddev=marginal_stddev(measure_cost, unit), total=n,
            )  # fmt: skip
            chosen = curator.select([Marginal(c) for c in allowed], score, select_cost)
            # MEASURE it.
            measurements.append(curator.measure(chosen, measure_cost).against(model))
            # ESTIMATE how far it strays from the model, then the model itself.
            beliefs.add(measurements[-1])
            model = beliefs.estimate(model)
            rounds, left = rounds + 1, left - 1

        blend: GraphicalModel | Blend = model
        records_share: float | None = None
        if has_more:
            # ESTIMATE what stands beside the tree, and SELECT how much of it to take.
            mixture = chosen_blend(
                curator, model, prior, measurements, weights,
                cost=min(choice_cost, curator.remaining, key=float), least_doubt=self.least_doubt,
                limit_mb=self.max_model_mb,
            )  # fmt: skip
            blend = mixture if mixture.share else model
            records_share = mixture.share
        released: GraphicalModel | Blend | Support = blend
        found: list[Measurement] = []
        if curator.remaining:
            # SELECT, MEASURE and ESTIMATE what no tree has to hold.
            room = room_for(domain, self.max_model_mb)
            followed = Reweighting(particles(blend, room=room, seed=self.seed, like=whole), n)
            found = measured_beyond(
                curator, followed, beliefs, scaled,
                candidates=self._small(domain, weights), cells=2 * self.max_model_mb * 2**20 / BYTES_PER_CELL,
                most=self.max_particle_rounds, select_share=self.select_share,
            )  # fmt: skip
            measurements += found
            released = followed.support
        return Outcome(
            released,
            tuple(measurements),
            curator.events,
            aperture=Opening(
                rounds=rounds,
                asked_again=tuple(answer.query.attrs[0] for answer in again),
                public_records=beliefs.prior.records,
                public_marginals=tuple(attrs for attrs in beliefs.prior.sets if len(attrs) > 1),
                marginals=tuple(_opened(beliefs, released)),
                alpha=beliefs.prior.alpha,
                particle_share=round(share, 4),
                records_share=records_share,
                particle_rounds=len(found),
                particles=len(released.records) if isinstance(released, Support) else 0,
            ),
            dispersions=beliefs.dispersions(),
        )

    def _believed(
        self, prior: Prior, domain: Domain, measurements: Sequence[Measurement], *, total: float
    ) -> tuple[Beliefs, GraphicalModel]:
        """A prior, and what the answers to single attributes say of it."""
        beliefs = Beliefs(prior.alone, total, least_doubt=self.least_doubt)
        start = GraphicalModel(domain, total, prior.model.potentials)
        return beliefs, beliefs.add_all(measurements, start, beliefs.estimate)

    def _with_room(
        self,
        prior: Prior,
        beliefs: Beliefs,
        model: GraphicalModel,
        weights: Mapping[Attrs, float],
        *,
        remaining: Cost,
        unit: Unit,
    ) -> Prior:
        """The public model, narrowed where the budget can tell more than it: the tree has room for both."""
        wanted = [attrs for attrs in self._small(model.domain, weights) if len(attrs) > 1]
        forecast = Forecast.of(
            beliefs, model, wanted, weights,
            remaining=remaining, select_share=self.select_share, unit=unit,
        )  # fmt: skip
        return narrowed(prior, share=forecast.public_room(self.max_rounds), limit_mb=self.max_model_mb / 2)

    def _particle_share(
        self,
        prior: Prior,
        beliefs: Beliefs,
        model: GraphicalModel,
        weights: Mapping[Attrs, float],
        *,
        remaining: Cost,
        unit: Unit,
    ) -> float:
        """What share of the budget goes beyond the tree: that of the gain that a tree cannot have."""
        if self.particle_share is not None or not remaining:
            return self.particle_share or 0.0
        forecast = partial(
            Forecast.of, beliefs, model, remaining=remaining, select_share=self.select_share, unit=unit,
            weights=weights,
        )  # fmt: skip
        held = [*prior.sets, *beliefs.held]
        within = tractable(model.domain, held, list(weights), limit_mb=self.max_model_mb)
        tree = forecast(candidates=within).gain(self.max_rounds)
        beyond = forecast(candidates=self._small(model.domain, weights)).gain(self.max_particle_rounds)
        share = 1 - tree / beyond if beyond > 0 else 0.0
        return min(share, 1 - _LEAST_SHARE) if share >= _LEAST_SHARE else 0.0

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
        recipe = PublicModel(
            max_model_mb=self.max_model_mb / 2, max_marginals=self.max_public_marginals, seed=self.seed
        )
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
        costs = [total]
        for share, grain in self._shares():
            one_way, choice = allotment.split(share)[0], allotment.split(grain)[0]
            if total.value + one_way.value > allotment.value:
                raise SettingError(
                    f"total_share = {self.total_share:g} and a share of {share:g} for the one-way marginals "
                    "are more than the whole budget. Lower one of them."
                )
            rest = allotment.value - total.value - one_way.value - choice.value
            costs += [one_way / ones, *self._least_costs(type(allotment)(max(rest, Fraction(0))))]
        return [measuring(any_marginal, cost, unit) for cost in costs if cost]

    def _shares(self) -> list[tuple[float, float]]:
        """The shares of one-way marginals and of the grain: without public data, and with, grain or not."""
        return [
            (self.one_way_share_alone, 0.0),
            (self.one_way_share, 0.0),
            (self.one_way_share, self.grain_share),
        ]

    def _least_costs(self, rest: Cost) -> Iterator[Cost]:
        """The least that a run pays for one more answer to an attribute, in a round, and beyond the tree."""
        if self.max_asked_again:
            yield rest * Fraction(PART - 1, PART) ** (self.max_asked_again - 1) / PART
        rest = rest * Fraction(PART - 1, PART) ** self.max_asked_again
        given = self.particle_share
        for share, rounds in (
            (_LEAST_SHARE if given is None else 1 - Fraction(given), self.max_rounds),
            (_LEAST_SHARE if given is None else given, self.max_particle_rounds),
        ):
            yield (rest * Fraction(share) / rounds).split(self.select_share)[1]

    def outlook(self, domain: Domain, workload: Workload, *, allotment: Cost, unit: Unit) -> Outlook:
        closure = workload.closure(domain)
        most = (
            self.max_asked_again
            + self.max_rounds
            + (0 if self.particle_share == 0 else self.max_particle_rounds)
        )
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


def _opened(beliefs: Beliefs, model: ManyCountSource) -> Iterator[OpenedMarginal]:
    """How far the release moved on each measured marginal: all of it from public data and noisy answers."""
    held, spreads = list(beliefs.held), beliefs.spreads()
    moved = dict.fromkeys(held, 0.0)
    for place, public in beliefs.prior.model.count_each(held):
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
