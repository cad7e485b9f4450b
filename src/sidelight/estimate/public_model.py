"""A public model: public records as a smoothed Markov random field, at no privacy cost.

    1. structure   split the public records into halves A and B; start with all one-way marginals;
                   add the marginal with the largest w_c (‖b_c − model_c‖₁ − ‖a_c − b_c‖₁) > 0, on average
                   over a model of A judged by B and one of B judged by A, while the junction tree stays
                   within its size limit
    2. smoothing   t_c = marginal of the public records, each attribute of each record drawn anew with
                   probability α/(m + α): once in α evenly, else from the attribute's own marginal;
                   the α of each attribute by the L1 error of the t_c of A on B, and of B on A
    3. fit         the model of maximum likelihood for all t_c
    4. grain       the records themselves, beside the model: how much of them helps, again by halves

All t_c are marginals of one distribution. A value that public records never show behaves as if
independent of the rest once private data give it mass, and the rest keeps its own structure. spec/aperture 2.
Where we differ: there the pseudo-records have all attributes drawn anew at once, so a value never shown
pulls all others apart; halves are compared both ways; each attribute has its own α; several marginals
are added between two fits if they share at most one attribute, and gains are recomputed only where
they may still matter.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from sidelight import _check
from sidelight.data.domain import Attrs, Domain
from sidelight.data.impossible import is_possible
from sidelight.estimate.cliques import BYTES_PER_CELL, SizeOracle
from sidelight.estimate.graphical import GraphicalModel
from sidelight.estimate.likelihood import most_likely
from sidelight.estimate.public_source import PublicRecords
from sidelight.estimate.support import Support

Array = NDArray[np.float64]

_LOOK_AT = 64
"""Gains recomputed between two fits: those that were the largest when last seen."""
_ROUGH = 30
"""Steps of a fit in the search for structure: gains are differences of errors, and need no more."""
_ALPHAS = (1.0, 4.0, 16.0, 64.0)
_PASSES = 2
"""Over all attributes, each time α of one given those of the others."""
_JUDGE_BY = 150
"""Marginals by which it is judged how far a model strays."""
_SHARES = tuple(step / 20 for step in range(21))
_MOST_GRAIN = 100_000
"""Public records that are kept beside the model; of more, a random part."""
_LEAST_STRAY = 0.05
"""No model is believed to be free of error."""
_SWEEPS = 10
"""Of proportional fitting, so that what public data hardly show is fitted too."""


@dataclass(frozen=True, eq=False)
class Prior:
    """What is believed before anything private is measured: q, and how many records stand behind it."""

    model: GraphicalModel
    """q, with total 1."""
    records_by_attribute: Mapping[str, float] = field(repr=False)
    """How many public records tell of each attribute."""
    records: float
    """m; 0 without public data."""
    alpha: Mapping[str, float] = field(repr=False)
    """How many public records' worth of each attribute is drawn anew; more is smoother."""
    stray: float = 1.0
    """Variance of q around what it has not seen, beyond sampling, as a share of the raw public marginals'."""
    grain: Support | None = field(default=None, repr=False)
    """The public records themselves, where they tell of all attributes; total 1."""
    grain_share: float = 0.0
    """What share of them, beside q, one half of the records did best with on the other."""

    @classmethod
    def nothing(cls, domain: Domain) -> "Prior":
        """No public data: uniform."""
        return cls(GraphicalModel.uniform(domain, total=1.0), dict.fromkeys(domain.attrs, 0.0), 0.0, {})

    @property
    def domain(self) -> Domain:
        """The attributes of the private table."""
        return self.model.domain

    def under(self, domain: Domain) -> "Prior":
        """The same for a schema that may declare more impossible: without the records that cannot be."""
        if self.grain is None:
            return self
        kept = is_possible(domain, self.grain.records)
        if not kept.any():
            return replace(self, grain=None, grain_share=0.0)
        grain = Support(domain, self.grain.records[kept], self.grain.weights[kept], 1.0).with_total(1.0)
        return replace(self, grain=grain)

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
        alpha, stray, share = dict.fromkeys(domain.attrs, 1.0), 1.0, 0.0
        if halves is not None:
            chosen = self._structure(*halves, held, chosen)
            alpha = smoothing(halves, chosen)
            stray, share = _against_each_other(halves, list(held), chosen, alpha)
        model = most_likely(domain, smoothed(public, chosen, alpha=alpha), steps=400, sweeps=_SWEEPS)
        by_attribute = {attr: public.records_of(attr) for attr in domain.attrs}
        grain = public.whole(most=_MOST_GRAIN, seed=self.seed) if share > 0 else None
        return Prior(model, by_attribute, public.records, alpha, stray, grain, share if grain else 0.0)

    def _structure(
        self, first: PublicRecords, second: PublicRecords, weights: Mapping[Attrs, float], chosen: list[Attrs]
    ) -> list[Attrs]:
        """The marginals that carry over from one half of the public records to the other."""
        domain, most = first.domain, self.max_model_mb * 2**20 / BYTES_PER_CELL
        wanted = [attrs for attrs in weights if len(attrs) > 1 and domain.size(attrs) <= most]
        halves = (first, second)
        shares = [half.kept_shares(wanted) for half in halves]
        noise = {attrs: float(np.abs(shares[0][attrs] - shares[1][attrs]).sum()) for attrs in wanted}
        gains = dict.fromkeys(wanted, math.inf)
        ones = list(chosen)
        plain = dict.fromkeys(domain.attrs, 1.0)
        targets = [smoothed(half, ones, alpha=plain) for half in halves]
        models = [most_likely(domain, target, steps=_ROUGH) for target in targets]
        while len(chosen) - len(ones) < self.max_marginals:
            oracle = SizeOracle(domain, chosen)
            hopeful = [attrs for attrs in gains if gains[attrs] > 0 and not _inside(attrs, chosen)]
            for kept in shares:
                kept.keep(hopeful)  # what once had nothing to gain is not looked at again
            sizes = dict(zip(hopeful, oracle.cells_with_each(hopeful), strict=True))
            allowed = sorted((a for a in hopeful if sizes[a] <= most), key=lambda a: -gains[a])
            look = allowed if gains and math.inf in gains.values() else allowed[:_LOOK_AT]
            if not look:
                break
            errors = np.zeros(len(look))
            for model, unseen in zip(models, reversed(shares), strict=True):
                # Each model is judged by the half that it has not seen, one marginal at a time.
                for place, answer in model.count_each(look):
                    errors[place] += np.abs(answer - unseen[look[place]]).sum()
                model.forget()
            for attrs, error in zip(look, errors.tolist(), strict=True):
                gains[attrs] = weights[attrs] * (error / 2 - noise[attrs])
            added = self._apart(domain, chosen, sorted(look, key=lambda a: -gains[a]), gains, most)
            chosen = chosen + added
            if added:
                for half, target in zip(halves, targets, strict=True):
                    target |= smoothed(half, added, alpha=plain)
                models = [
                    most_likely(domain, target, start=model.potentials, steps=_ROUGH)
                    for target, model in zip(targets, models, strict=True)
                ]
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


def smoothing(halves: Sequence[PublicRecords], chosen: Sequence[Attrs]) -> dict[str, float]:
    """α of each attribute: the one, of powers of 4, with the least error of one half on the other.

    It is the error of the smoothed marginals themselves, so no model needs to be fitted. Attributes differ:
    one that another determines bears hardly any smoothing, one that goes with nothing bears much.
    """
    first, second = halves
    tables = [dict(zip(chosen, half.shares(chosen), strict=True)) for half in halves]
    alpha = {attr: 1.0 for attrs in chosen for attr in attrs}

    def error(touched: Sequence[Attrs], alpha: Mapping[str, float]) -> float:
        found = 0.0
        for half, other in ((first, tables[1]), (second, tables[0])):
            for attrs, share in smoothed(half, touched, alpha=alpha).items():
                found += float(np.abs(other[attrs] - share).sum())
        return found

    for _ in range(_PASSES):
        for attr in alpha:
            touched = [attrs for attrs in chosen if attr in attrs and len(attrs) > 1]
            tried = {a: error(touched, alpha | {attr: a}) for a in _ALPHAS} if touched else {1.0: 0.0}
            alpha[attr] = min(tried, key=lambda a: tried[a])
    return alpha


def _against_each_other(
    halves: Sequence[PublicRecords],
    held: Sequence[Attrs],
    chosen: Sequence[Attrs],
    alpha: Mapping[str, float],
) -> tuple[float, float]:
    """How far a model of one half strays from the other half, and what share of the half itself mends it.

    Straying is what is left of the raw sampling variance once the records of a half became a model: with σ²
    the variance of one half's shares, ‖a − b‖² is about 2σ² and ‖model of A − b‖² is σ² + stray·σ².
    The share is that of the half's own records, beside its model, that comes closest to the other half: in
    absolute errors, on marginals that no other one holds.
    """
    asked = [attrs for attrs in held if len(attrs) > 1]
    asked = asked[:: max(1, len(asked) // _JUDGE_BY)]
    if not asked:
        return 1.0, 0.0
    largest = {attrs for attrs in asked if not any(set(attrs) < set(other) for other in held)}
    tables = [half.kept_shares(asked) for half in halves]
    ratios, errors = [], np.zeros(len(_SHARES))
    for half, seen, unseen in zip(halves, tables, reversed(tables), strict=True):
        model = most_likely(half.domain, smoothed(half, chosen, alpha=alpha), steps=100)
        for place, answer in model.count_each(asked):
            attrs = asked[place]
            own, other = seen[attrs], unseen[attrs]
            raw = float(((own - other) ** 2).sum())
            ratios.append(float(((answer - other) ** 2).sum()) / raw if raw > 0 else 1.0)
            if attrs in largest:
                errors += [np.abs(other - answer + share * (answer - own)).sum() for share in _SHARES]
    return max(_LEAST_STRAY, 2 * float(np.median(ratios)) - 1), _SHARES[int(np.argmin(errors))]


def narrowed(prior: Prior, *, share: float, limit_mb: float) -> Prior:
    """The prior with a share of its marginals in that share of a size: q as they alone tell it.

    The size alone would not do: many small marginals tie all attributes together, and then nothing that
    is measured later fits into the tree.
    """
    most = share * limit_mb * 2**20 / BYTES_PER_CELL
    domain = prior.domain
    kept: list[Attrs] = [attrs for attrs in prior.sets if len(attrs) == 1]
    number = len(kept) + math.ceil(share * (len(prior.sets) - len(kept)))
    # Those first that hardly need room, so that one large marginal does not keep out ten small ones.
    for room in (most / 8, most / 4, most / 2, most):
        for attrs in prior.sets:
            is_new = len(kept) < number and attrs not in kept
            if is_new and SizeOracle(domain, kept).cells_with(attrs) <= room:
                kept.append(attrs)
    if len(kept) == len(prior.sets):
        return prior
    targets = dict(zip(kept, prior.model.count_many(kept), strict=True))
    prior.model.forget()
    start = {attrs: prior.model.potentials[attrs] for attrs in kept}
    return replace(prior, model=most_likely(domain, targets, start=start, steps=200, sweeps=_SWEEPS))


def smoothed(
    public: PublicRecords, wanted: Sequence[Attrs], *, alpha: Mapping[str, float]
) -> dict[Attrs, Array]:
    """T_c of each attribute set: public shares with α records' worth of each attribute drawn anew."""
    attrs = sorted({attr for names in wanted for attr in names}, key=public.domain.attrs.index)
    ones = dict(zip(attrs, public.shares([(attr,) for attr in attrs]), strict=True))
    found = {}
    for names, share in zip(wanted, public.shares(wanted), strict=True):
        for axis, attr in enumerate(names):
            m, one, a = public.records_of(attr), ones[attr], alpha[attr]
            anew = ((a - 1) * one + 1 / one.size) / (m + a)
            kept = share * (m / (m + a))
            share = kept + share.sum(axis=axis, keepdims=True) * np.expand_dims(anew, _others(axis, names))
        found[names] = share
    return found


def _others(axis: int, names: Attrs) -> tuple[int, ...]:
    return tuple(place for place in range(len(names)) if place != axis)


def _inside(attrs: Attrs, chosen: Sequence[Attrs]) -> bool:
    wanted = set(attrs)
    return any(wanted <= set(other) for other in chosen)
