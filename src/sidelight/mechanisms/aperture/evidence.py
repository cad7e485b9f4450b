"""What the noisy answers so far say: how far each marginal strays from the public model.

Keeps, for every marginal that was measured, all its answers as one (by inverse variance) beside the
counts that the model had before the first of them; so a repeat is compared with what was believed
before, and not with a model that it made itself. From these come the spreads s_c, the weights of the
fit, and what is expected of the marginals that were not measured.

PRIVACY: functions of public data, noisy answers and the model; post-processing.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

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
Follower = TypeVar("Follower", bound=CountSource)
Kind = tuple[bool, bool]

_APART = 0.1
"""The chance that a single attribute goes its own way: public data that are far off in one, such as a survey
of women alone, need not be so in others."""
TELLING = 1.0
"""An answer contradicts a model where it is e times as likely under a spread above 1."""
_MOST_FIRST = 16
"""How many answers are followed before others are tried: each takes a fit, and tables may be wide."""
_UNTOLD = 10
"""Where public data tell of half of the attributes, relations that they do not tell of are thought to move a
tenth of the variance that anything could."""
_MOST_CELL_TRUST = 0.9999
"""Most that a single cell follows its own noisy answer: more only makes the fit slow."""


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
        self.held[attrs] = self._tried(measurement if before is None else merged(before.answers, measurement))

    def add_all(
        self, measurements: Sequence[Measurement], model: Follower, follow: Callable[[Follower], Follower]
    ) -> Follower:
        """Take in answers that came at once, the most telling first; returns the model as it then is.

        One attribute that is off takes others with it. So each answer is held against a model that follows
        those before it: what they explain is not held against public data twice, and noise that agrees with
        it is not believed for that. ``follow`` brings a model to all answers taken in so far; it is not
        called for those, taken in last, that tell of nothing.
        """
        waiting = merged_singly(measurements)
        for _ in range(min(len(waiting), _MOST_FIRST)):
            tried = {c: self._tried(one.against(model)) for c, one in waiting.items()}
            first = max(tried, key=lambda c: self._telling(c, tried[c]))
            if self._telling(first, tried[first]) <= TELLING:
                break
            self.held[first] = tried[first]
            waiting.pop(first)
            model = follow(model)
        self.held |= {c: self._tried(one.against(model)) for c, one in waiting.items()}
        return model

    def doubt(self, measurement: Measurement) -> tuple[float, float]:
        """How much an answer speaks against q alone; and how likely it is, up to a constant: logarithms."""
        against = measurement.against(self.start)
        return self._telling(measurement.query.attrs, self._tried(against)), self.log_chance(against)

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

    def pull(self, attrs: Attrs, spread: float) -> Array:
        """s_ci/σ_c² of every cell: how strongly an estimate is drawn to its answer, against n KL."""
        evidence = self.held[attrs].evidence
        most = _MOST_CELL_TRUST / (1 - _MOST_CELL_TRUST) / evidence.mass
        return np.minimum(spread * evidence.sampling * evidence.measurement.precision, most)

    def dispersions(self) -> dict[Attrs, tuple[float, float]]:
        """s(1 + R) of each measured marginal, its spread around what drawing n records gives; and 1 + R."""
        return {
            attrs: (spread * self.sampling(attrs), self.sampling(attrs))
            for attrs, spread in self.spreads().items()
        }

    def estimate(self, start: GraphicalModel, *, last: bool = False) -> GraphicalModel:
        """The model that stays close to q, and follows each answer as far as its noise and spread say.

        minimise  n KL(p ‖ q) + Σ_c Σ_i ½ (s_ci/σ_c²) (n p_ci − y_ci)²,   s_ci = s_c v_i/μ_i
        """
        answers = {
            attrs: Pulled(self.held[attrs].answers.answer, self.pull(attrs, spread))
            for attrs, spread in self.spreads().items()
        }
        return following(start, self.prior.model.potentials, answers, total=self.total, last=last)

    def prospect(self, attrs: Attrs, counts: Array, *, weight: float = 1.0) -> Prospect:
        """What a candidate may be worth, from the model's answer to it; by a weight of at most 1."""
        mass = mass_of(counts.reshape(-1), total=self.total, cells=counts.size)
        # A root: twice the workload behind a marginal does not make its error twice as telling.
        return Prospect(Profile.of(self.sampling(attrs) * mass), self.precision(attrs), weight**0.5)

    def precision(self, attrs: Attrs) -> float:
        """What measured marginals that hold these attributes say about each cell of theirs."""
        size = self.prior.domain.size
        return sum(
            belief.answers.precision * size(attrs) / size(other)
            for other, belief in self.held.items()
            if set(attrs) <= set(other)
        )

    def sampling(self, attrs: Attrs) -> float:
        """1 + R: R private records for each public one that tells of all these attributes.

        Where none does, the truth may be off by as much as its mean; relations by a third of it, where public
        data tell of half of the attributes.
        """
        if self.prior.tells(attrs):
            return 1 + self.total / min(self.prior.records_by_attribute[attr] for attr in attrs)
        told = sum(records > 0 for records in self.prior.records_by_attribute.values())
        is_beside = len(attrs) > 1 and 2 * told >= len(self.prior.domain)
        return 1 + self.total / (self.prior.domain.size(attrs) * (_UNTOLD if is_beside else 1))

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

    def _telling(self, attrs: Attrs, belief: Belief) -> float:
        return self._spread[self.kind(attrs)].telling(belief.likelihood)


def merged(first: Measurement, second: Measurement) -> Measurement:
    """Two answers to one query as one, by inverse variance; against what the first was held against."""
    precision = first.precision + second.precision
    answer = (first.precision * first.answer + second.precision * second.answer) / precision
    return Measurement(first.query, answer, precision**-0.5, first.predicted)


def merged_singly(measurements: Sequence[Measurement]) -> dict[Attrs, Measurement]:
    """All answers to each single attribute as one."""
    found = dict[Attrs, Measurement]()
    for one in measurements:
        attrs = one.query.attrs
        if len(attrs) == 1:
            found[attrs] = merged(found[attrs], one) if attrs in found else one
    return found
