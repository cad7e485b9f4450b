"""What the noisy answers so far say: how far each marginal strays from the public model.

Keeps, for every marginal that was measured, all its answers as one (by inverse variance) beside the
counts that the model had before the first of them; so a repeat is compared with what was believed
before, and not with a model that it made itself. From these come the spreads s_c, the weights of the
fit, and what is expected of the marginals that were not measured.

PRIVACY: functions of public data, noisy answers and the model; post-processing.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from sidelight.data.count_source import CountSource
from sidelight.data.domain import Attrs
from sidelight.fit.following import Pulled, following
from sidelight.measurement import Measurement
from sidelight.models.graphical import GraphicalModel
from sidelight.public.prior import Prior
from sidelight.select.improvement import Profile, Prospect
from sidelight.uncertainty.dispersion import Evidence, PooledSpread, SpreadPrior, mass_of

Array = NDArray[np.float64]
Kind = tuple[bool, bool]

_APART = 0.1
"""The chance that a single attribute goes its own way: public data that are far off in one, such as a survey
of women alone, need not be so in others."""


@dataclass(frozen=True, eq=False)
class Belief:
    """One measured marginal."""

    evidence: Evidence
    log_likelihood: Array
    """Of each s of the grid."""

    @property
    def likelihood(self) -> Array:
        """The same as factors, the largest of which is 1."""
        return np.asarray(np.exp(self.log_likelihood - self.log_likelihood.max()))

    @property
    def answers(self) -> Measurement:
        """All its noisy answers, merged."""
        return self.evidence.measurement


class Beliefs:
    """All that was measured, and what it says about the public model."""

    def __init__(self, prior: Prior, total: float) -> None:
        self.prior = prior
        self.total = total
        ratios = {True: total / max(prior.records, 1.0), False: total**0.5}
        self._spread = {
            (is_single, is_told): SpreadPrior(total, ratio, apart=_APART if is_single else 0.0)
            for is_told, ratio in ratios.items()
            for is_single in (True, False)
        }
        self.held: dict[Attrs, Belief] = {}
        self._holding: dict[str, dict[Attrs, tuple[float, int]]] = {}
        """For each attribute, the measured marginals with it: how precise they are, and how many cells."""

    @cached_property
    def start(self) -> GraphicalModel:
        """q, before any answer."""
        return GraphicalModel(self.prior.domain, self.total, self.prior.model.potentials)

    @property
    def answers(self) -> list[Measurement]:
        """All noisy answers, those to one marginal merged."""
        return [belief.answers for belief in self.held.values()]

    def add(self, measurement: Measurement) -> None:
        """Take in a noisy answer, which carries what the model before it had predicted."""
        attrs = measurement.query.attrs
        before = self.held.get(attrs)
        belief = self._tried(measurement if before is None else merged(before.answers, measurement))
        self.held[attrs] = belief
        for attr in attrs:
            known = self._holding.setdefault(attr, {})
            known[attrs] = belief.answers.precision, self.prior.domain.size(attrs)

    def add_singles(self, measurements: Iterable[Measurement], model: CountSource) -> None:
        """Take in answers to single attributes that came at once, each held against the same model."""
        for answer in merged_singly(measurements).values():
            self.add(answer.against(model))

    def doubt(self, measurement: Measurement) -> float:
        """How much an answer speaks against what was predicted: a logarithm."""
        belief = self._tried(measurement)
        return self._spread[self.kind(measurement.query.attrs)].telling(belief.likelihood)

    def log_chance(self, measurement: Measurement) -> float:
        """How likely an answer is around what was predicted, up to a constant: a logarithm."""
        belief = self._tried(measurement)
        chance = self._spread[self.kind(measurement.query.attrs)].pooled([]).density @ belief.likelihood
        return float(np.log(chance + 1e-300) + belief.log_likelihood.max())

    def pooled(self) -> dict[Kind, PooledSpread]:
        """The predictive spread of each kind of marginal."""
        return {
            kind: spread.pooled(
                belief.likelihood for attrs, belief in self.held.items() if self.kind(attrs) == kind
            )
            for kind, spread in self._spread.items()
        }

    def spreads(self) -> dict[Attrs, float]:
        """The spread s of each measured marginal."""
        pooled = self.pooled()
        return {
            attrs: pooled[self.kind(attrs)].median(belief.likelihood) for attrs, belief in self.held.items()
        }

    def pulled(self) -> dict[Attrs, Pulled]:
        """How strongly an estimate is drawn to each answer, against n KL: by a_c = s_c (1 + R)/σ_c².

        An answer about several attributes tells of each of them as well. Where no public data tell of an
        attribute, that part of the answer is followed as far as the attribute strays, by s_a and not by s_c:
        a weak relation is no reason to doubt what the same answer says of the attribute alone.
        """
        strengths = {c: s * self.held[c].evidence.sampling for c, s in self.spreads().items()}
        found = dict[Attrs, Pulled]()
        for attrs, strength in strengths.items():
            own = self.held[attrs]
            said = [(strength * own.answers.precision, own.answers.answer)]
            if len(attrs) == 1 and not self.prior.tells(attrs):
                said += self._said_beside(attrs[0], strengths)
            pull = sum(one for one, _ in said)
            found[attrs] = Pulled(np.asarray(sum(one * about for one, about in said) / pull), pull)
        return found

    def _said_beside(self, attr: str, strengths: Mapping[Attrs, float]) -> Iterator[tuple[float, Array]]:
        """What larger answers say of one attribute, each with the pull that its own strength lacks."""
        for attrs, (precision, cells) in self._holding[attr].items():
            lacking = strengths[(attr,)] - strengths[attrs]
            if len(attrs) > 1 and lacking > 0:
                shape, axis = self.prior.domain.project(attrs).shape, attrs.index(attr)
                others = tuple(place for place in range(len(attrs)) if place != axis)
                said = self.held[attrs].answers.answer.reshape(shape).sum(axis=others)
                yield lacking * precision * said.size / cells, said

    def dispersions(self) -> dict[Attrs, tuple[float, float]]:
        """s(1 + R) of each measured marginal, its spread around what drawing n records gives; and 1 + R."""
        return {
            attrs: (spread * self.sampling(attrs), self.sampling(attrs))
            for attrs, spread in self.spreads().items()
        }

    def estimate(self, start: GraphicalModel, *, last: bool = False) -> GraphicalModel:
        """The model that stays close to q, and follows each answer as far as its noise and spread say.

        minimise  n KL(p ‖ q) + Σ_c ½ a_c ‖n p_c − y_c‖²,   a_c = s_c (1 + R)/σ_c²
        """
        return following(start, self.prior.model.potentials, self.pulled(), total=self.total, last=last)

    def prospect(self, attrs: Attrs, counts: Array, *, weight: float = 1.0) -> Prospect:
        """What a candidate may be worth, from the model's answer to it; by a weight of at most 1."""
        mass = mass_of(counts.reshape(-1), total=self.total, cells=counts.size)
        return Prospect(Profile.of(self.sampling(attrs) * mass), self.precision(attrs), weight)

    def precision(self, attrs: Attrs) -> float:
        """The precision on each cell of this marginal, from all measured marginals that hold it."""
        wanted = set(attrs)
        holding = min((self._holding.get(attr, {}) for attr in attrs), key=len)
        size = self.prior.domain.size(attrs)
        return sum(
            precision * size / cells
            for other, (precision, cells) in holding.items()
            if wanted.issubset(other)
        )

    def sampling(self, attrs: Attrs) -> float:
        """1 + R: R private records for each public one that tells of all these attributes.

        Where none does, the truth may be off by as much as its mean.
        """
        if self.prior.tells(attrs):
            return 1 + self.total / min(self.prior.records_by_attribute[attr] for attr in attrs)
        return 1 + self.total / self.prior.domain.size(attrs)

    def kind(self, attrs: Attrs) -> Kind:
        """Whether it is one attribute, and whether public records tell of all there are.

        Each kind errs in its own way, so what is learned of one says nothing of the others.
        """
        return len(attrs) == 1, self.prior.tells(attrs)

    def _tried(self, answers: Measurement) -> Belief:
        """An answer, and what it says of the model that it is held against."""
        attrs = answers.query.attrs
        evidence = Evidence(answers, self.total, self.sampling(attrs))
        return Belief(evidence, evidence.log_likelihood(self._spread[self.kind(attrs)].grid))


def merged(first: Measurement, second: Measurement) -> Measurement:
    """Two answers to one query as one, against what the first was held against."""
    return replace(first.averaged(second), predicted=first.predicted)


def merged_singly(measurements: Iterable[Measurement]) -> dict[Attrs, Measurement]:
    """All answers to each single attribute as one."""
    found = dict[Attrs, Measurement]()
    for one in measurements:
        attrs = one.query.attrs
        if len(attrs) == 1:
            found[attrs] = merged(found[attrs], one) if attrs in found else one
    return found
