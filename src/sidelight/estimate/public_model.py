"""A public model: public records as a smoothed Markov random field, at no privacy cost.

    1. structure   split the public records into halves A and B; start with all one-way marginals;
                   add the marginal with the largest w_c (‖b_c − model_c‖₁ − ‖a_c − b_c‖₁) > 0, the model
                   fitted on A, while the junction tree stays within its size limit
    2. smoothing   t_c = (m pub_c + α Π_a u_a) / (m + α), u_a the one-way with one pseudo-record spread
                   evenly; α by the L1 error of a model of A on the workload of B
    3. fit         the model of maximum likelihood for all t_c

All t_c are marginals of one distribution. A value that public records never show behaves as if
independent of the rest, once private data give it mass. spec/aperture 2. Where we differ: several
marginals are added between two fits if they share at most one attribute, and gains are recomputed
only where they may still matter.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from sidelight import _check
from sidelight.data.domain import Attrs, Domain
from sidelight.estimate.cliques import BYTES_PER_CELL, SizeOracle
from sidelight.estimate.graphical import GraphicalModel
from sidelight.estimate.likelihood import most_likely
from sidelight.estimate.public_source import PublicRecords

Array = NDArray[np.float64]

_LOOK_AT = 64
"""Gains recomputed between two fits: those that were the largest when last seen."""
_JUDGE_BY = 150
"""Marginals of the workload on which α is judged."""
_MOST_ALPHA = 4096.0


@dataclass(frozen=True, eq=False)
class Prior:
    """What is believed before anything private is measured: q, and how many records stand behind it."""

    model: GraphicalModel
    """q, with total 1."""
    records_by_attribute: Mapping[str, float] = field(repr=False)
    """How many public records tell of each attribute."""
    records: float
    """m; 0 without public data."""
    alpha: float
    """Pseudo-records of independence mixed in."""

    @classmethod
    def nothing(cls, domain: Domain) -> "Prior":
        """No public data: uniform."""
        return cls(GraphicalModel.uniform(domain, total=1.0), dict.fromkeys(domain.attrs, 0.0), 0.0, 0.0)

    @property
    def domain(self) -> Domain:
        """The attributes of the private table."""
        return self.model.domain

    @property
    def sets(self) -> tuple[Attrs, ...]:
        """The attribute sets that q has potentials on."""
        return tuple(self.model.potentials)


@dataclass(frozen=True, kw_only=True)
class PublicModel:
    """Fits a prior to public records."""

    max_model_mb: float = 2.5
    """Size limit of the junction tree of q."""
    max_marginals: int = 40
    """Most marginals of two or more attributes in q."""
    seed: int = 0
    """Splits the public records."""

    def __post_init__(self) -> None:
        _check.positive(max_model_mb=self.max_model_mb)
        _check.natural(max_marginals=self.max_marginals, seed=self.seed)

    def fit(self, public: PublicRecords, closure: Mapping[Attrs, float]) -> Prior:
        """The prior for a workload, given as its downward closure with weights."""
        domain = public.domain
        held = {attrs: weight for attrs, weight in closure.items() if public.holds(attrs)}
        chosen: list[Attrs] = [(attr,) for attr in domain.attrs if public.holds([attr])]
        halves = public.halves(seed=self.seed)
        alpha = 1.0
        if halves is not None:
            chosen = self._structure(*halves, held, chosen)
            alpha = self._alpha(*halves, list(held), chosen)
        model = most_likely(domain, smoothed(public, chosen, alpha=alpha), steps=400)
        by_attribute = {attr: public.records_of(attr) for attr in domain.attrs}
        return Prior(model, by_attribute, public.records, alpha)

    def _structure(
        self, first: PublicRecords, second: PublicRecords, weights: Mapping[Attrs, float], chosen: list[Attrs]
    ) -> list[Attrs]:
        """The marginals that carry over from one half of the public records to the other."""
        domain, most = first.domain, self.max_model_mb * 2**20 / BYTES_PER_CELL
        wanted = [attrs for attrs in weights if len(attrs) > 1 and domain.size(attrs) <= most]
        here, there = (dict(zip(wanted, half.shares(wanted), strict=True)) for half in (first, second))
        noise = {attrs: float(np.abs(here[attrs] - there[attrs]).sum()) for attrs in wanted}
        gains = dict.fromkeys(wanted, math.inf)
        ones = list(chosen)
        targets = smoothed(first, ones, alpha=1.0)
        model = most_likely(domain, targets, steps=60)
        while len(chosen) - len(ones) < self.max_marginals:
            oracle = SizeOracle(domain, chosen)
            hopeful = [attrs for attrs in gains if gains[attrs] > 0 and not _inside(attrs, chosen)]
            sizes = dict(zip(hopeful, oracle.cells_with_each(hopeful), strict=True))
            allowed = sorted((a for a in hopeful if sizes[a] <= most), key=lambda a: -gains[a])
            look = allowed if gains and math.inf in gains.values() else allowed[:_LOOK_AT]
            if not look:
                break
            for attrs, answer in zip(look, model.count_many(look), strict=True):
                error = float(np.abs(there[attrs] - answer).sum())
                gains[attrs] = weights[attrs] * (error - noise[attrs])
            added = self._apart(domain, chosen, sorted(look, key=lambda a: -gains[a]), gains, most)
            chosen = chosen + added
            if added:
                targets |= smoothed(first, added, alpha=1.0)
                model = most_likely(domain, targets, start=model.potentials, steps=60)
        return chosen

    def _apart(
        self,
        domain: Domain,
        chosen: Sequence[Attrs],
        ranked: Sequence[Attrs],
        gains: Mapping[Attrs, float],
        most: float,
    ) -> list[Attrs]:
        """The best few that hardly touch each other, so that one fit can take them all."""
        room = self.max_marginals - sum(len(attrs) > 1 for attrs in chosen)
        added: list[Attrs] = []
        for attrs in ranked:
            # Less than half of the best gain may not be worth its room once the best are in.
            if len(added) == min(room, 6) or gains[attrs] <= max(0.0, gains[ranked[0]] / 2):
                break
            is_apart = all(len(set(attrs) & set(other)) < 2 for other in added)
            if is_apart and SizeOracle(domain, [*chosen, *added]).cells_with(attrs) <= most:
                added.append(attrs)
        return added

    def _alpha(
        self, first: PublicRecords, second: PublicRecords, wanted: Sequence[Attrs], chosen: Sequence[Attrs]
    ) -> float:
        """Pseudo-records of independence: from 1 up by factors of 4, while the error falls.

        Never fewer than 1: split-half sees no difference between public and private data, so it
        understates how much smoothing the private data will need.
        """
        degree = max(map(len, wanted))
        asked = [attrs for attrs in wanted if len(attrs) == degree]
        asked = asked[:: max(1, len(asked) // _JUDGE_BY)]
        there = second.shares(asked)

        # All start from one fit and go equally far, so that none is ahead for having gone further.
        start = most_likely(first.domain, smoothed(first, chosen, alpha=1.0), steps=100).potentials

        def error(alpha: float) -> float:
            model = most_likely(first.domain, smoothed(first, chosen, alpha=alpha), start=start, steps=60)
            answers = model.count_many(asked)
            return float(sum(np.abs(b - p).sum() for b, p in zip(there, answers, strict=True)))

        best, lowest = 1.0, error(1.0)
        while best < _MOST_ALPHA and (found := error(4 * best)) < lowest:
            best, lowest = 4 * best, found
        return best


def narrowed(prior: Prior, *, limit_mb: float) -> Prior:
    """The prior with fewer marginals, as many as fit into this size: q as they alone tell it."""
    most = limit_mb * 2**20 / BYTES_PER_CELL
    domain = prior.domain
    kept: list[Attrs] = [attrs for attrs in prior.sets if len(attrs) == 1]
    # Those first that hardly need room, so that one large marginal does not keep out ten small ones.
    for room in (most / 8, most / 4, most / 2, most):
        for attrs in prior.sets:
            if attrs not in kept and SizeOracle(domain, kept).cells_with(attrs) <= room:
                kept.append(attrs)
    if len(kept) == len(prior.sets):
        return prior
    targets = dict(zip(kept, prior.model.count_many(kept), strict=True))
    start = {attrs: prior.model.potentials[attrs] for attrs in kept}
    return replace(prior, model=most_likely(domain, targets, start=start, steps=200))


def smoothed(public: PublicRecords, wanted: Sequence[Attrs], *, alpha: float) -> dict[Attrs, Array]:
    """T_c of each attribute set: the public shares with α records of independence mixed in."""
    attrs = sorted({attr for names in wanted for attr in names}, key=public.domain.attrs.index)
    ones = public.shares([(attr,) for attr in attrs])
    even: dict[str, Array] = {}
    for attr, share in zip(attrs, ones, strict=True):
        m = public.records_of(attr)
        even[attr] = (m * share + 1 / share.size) / (m + 1)
    found = {}
    for names, share in zip(wanted, public.shares(wanted), strict=True):
        m = min(public.records_of(attr) for attr in names)
        independent = reduce(np.multiply.outer, [even[attr] for attr in names])
        found[names] = np.asarray((m * share + alpha * independent) / (m + alpha))
    return found


def _inside(attrs: Attrs, chosen: Sequence[Attrs]) -> bool:
    wanted = set(attrs)
    return any(wanted <= set(other) for other in chosen)
