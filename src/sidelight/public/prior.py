"""A public model: public records as a smoothed Markov random field, at no privacy cost.

    1. structure   the marginals that carry over from half of the records to the other (structure.py)
    2. smoothing   t_c, those marginals with each attribute smoothed on its own (smoothing.py)
    3. fit         q, the model of maximum likelihood for all t_c
    4. others      the same for other halves, so that no single structure is all there is
    5. sample      the public records themselves, which say what trees have no room for

spec/aperture 2, which has one tree.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from sidelight import _check
from sidelight.data.domain import Attrs, Domain
from sidelight.data.impossible import is_possible
from sidelight.fit.proportional_fitting import most_likely
from sidelight.models.graphical import GraphicalModel
from sidelight.models.particles import room_for
from sidelight.models.support import Support
from sidelight.public.smoothing import smoothed
from sidelight.public.source import PublicRecords
from sidelight.public.structure import structure
from sidelight.trees.triangulation import BYTES_PER_CELL, SizeOracle

LEAST_SAMPLE = 20_000
"""Records in a sample, however small a model is to be: what is drawn errs by the drawing, too."""
_OTHERS = 2
"""Trees beside q."""
_JUDGE_BY = 64
"""Most marginals by which halves are compared."""
_FLOOR = 0.1
"""Of a record, as a share of all, spread over a marginal's cells: none is thought to be without."""


@dataclass(frozen=True, eq=False)
class Prior:
    """What is believed before anything private is measured: q, and how many records stand behind it."""

    model: GraphicalModel
    """q, with total 1."""
    records_by_attribute: Mapping[str, float] = field(repr=False)
    """How many public records tell of each attribute."""
    records: float
    """m; 0 without public data."""
    others: tuple[GraphicalModel, ...] = field(default=(), repr=False)
    """Other trees of the same public records, which count as much as q; total 1."""
    sample: Support | None = field(default=None, repr=False)
    """Public records themselves, where they tell of all attributes; total 1."""
    sample_share: float = 0.0
    """What share of all together they are."""
    cut_off: frozenset[str] = frozenset()
    """Attributes whose relations to all others are not believed; each still has its own public values."""

    @classmethod
    def nothing(cls, domain: Domain) -> "Prior":
        """No public data: uniform."""
        return cls(GraphicalModel.uniform(domain, total=1.0), dict.fromkeys(domain.attrs, 0.0), 0.0)

    @property
    def domain(self) -> Domain:
        """The attributes of the private table."""
        return self.model.domain

    @property
    def sets(self) -> tuple[Attrs, ...]:
        """The attribute sets that q has potentials on."""
        return tuple(self.model.potentials)

    def tells(self, attrs: Sequence[str]) -> bool:
        """Whether public records tell of all these attributes, and of how they go together."""
        is_told = all(self.records_by_attribute[attr] > 0 for attr in attrs)
        return is_told and (len(attrs) == 1 or self.cut_off.isdisjoint(attrs))

    @property
    def related(self) -> tuple[str, ...]:
        """The attributes that public records tell of, and of how they go with others."""
        return tuple(a for a in self.domain.attrs if a not in self.cut_off and self.tells([a]))

    def under(self, domain: Domain) -> "Prior":
        """The same for a schema that may declare more impossible: trees and records without such cells."""
        model, *others = (GraphicalModel(domain, 1.0, tree.potentials) for tree in (self.model, *self.others))
        sample, share = self.sample, self.sample_share
        if sample is not None:
            kept = is_possible(domain, sample.records)
            left = Support(domain, sample.records[kept], sample.weights[kept], 1.0)
            sample, share = (left.with_total(1.0), share) if kept.any() else (None, 0.0)
        return replace(self, model=model, others=tuple(others), sample=sample, sample_share=share)

    def without(self, attrs: Iterable[str]) -> "Prior":
        """The same with these attributes cut off: independent of all others, each as it was."""
        cut_off = self.cut_off.union(attrs)
        return replace(
            self,
            model=_cut_off(self.model, cut_off),
            others=tuple(_cut_off(other, cut_off) for other in self.others),
            sample=None,
            sample_share=0.0,
            cut_off=cut_off,
        )


@dataclass(frozen=True, kw_only=True)
class PublicModel:
    """Fits a prior to public records."""

    max_model_mb: float = 2.5
    """Size limit of the junction tree of q."""
    seed: int = 0
    """Splits the public records."""

    def __post_init__(self) -> None:
        _check.positive(max_model_mb=self.max_model_mb)
        _check.natural(seed=self.seed)

    def fit(self, public: PublicRecords, closure: Mapping[Attrs, float]) -> Prior:
        """The prior for a workload, given as its downward closure with weights."""
        domain = public.domain
        held = {attrs: weight for attrs, weight in closure.items() if public.holds(attrs)}
        sets: list[Attrs] = [(attr,) for attr in domain.attrs if public.holds([attr])]
        structures, sample, share = list[list[Attrs]](), None, 0.0
        halves = public.halves(seed=self.seed)
        if halves is not None:
            sets = self._structure(halves, held, most=3 * len(domain) // 2)
            structures = [other for other in self._others(public, held) if set(other) != set(sets)]
            most = max(LEAST_SAMPLE, room_for(domain, self.max_model_mb))
            sample = public.whole(most=most, seed=self.seed)
            share = _share_of_records(halves, sets, list(held)) if sample is not None else 0.0
        model, *others = (most_likely(domain, smoothed(public, some)) for some in (sets, *structures))
        by_attribute = {attr: public.records_of(attr) for attr in domain.attrs}
        return Prior(model, by_attribute, public.records, tuple(others), sample if share else None, share)

    def _structure(
        self, halves: tuple[PublicRecords, PublicRecords], weights: Mapping[Attrs, float], *, most: int
    ) -> list[Attrs]:
        most_cells = self.max_model_mb * 2**20 / BYTES_PER_CELL
        weights = {attrs: weights[attrs] for attrs in _in_both(halves, weights)}
        return structure([halves, halves[::-1]], weights, most_cells=most_cells, most_marginals=most)

    def _others(self, public: PublicRecords, weights: Mapping[Attrs, float]) -> Iterator[list[Attrs]]:
        """The structures of other trees, of other halves, and of half as many marginals."""
        for place in range(_OTHERS):
            halves = public.halves(seed=self.seed + place + 1)
            if halves is not None:
                yield self._structure(halves, weights, most=len(public.domain))


def narrowed(prior: Prior, *, share: float, limit_mb: float) -> Prior:
    """The prior in a share of its room: q as fewer marginals tell it.

    They are from 0.4 to 1.4 times as many as attributes, and the smaller ones come first: many
    marginals, or large ones, tie all attributes together, and nothing that is measured later
    fits into the tree.
    """
    number = math.ceil((0.4 + share) * len(prior.domain))
    most_cells = share * limit_mb * 2**20 / BYTES_PER_CELL
    return replace(prior, model=pruned(prior.model, most_cells=most_cells, most_marginals=number))


def pruned(
    tree: GraphicalModel,
    *,
    most_cells: float,
    most_marginals: int | None = None,
    beside: Sequence[Attrs] = (),
) -> GraphicalModel:
    """A tree with fewer marginals, each as it was, such that there is room ``beside`` for others."""
    sets = list(tree.potentials)
    kept: list[Attrs] = [attrs for attrs in sets if len(attrs) == 1]
    number = len(sets) if most_marginals is None else len(kept) + most_marginals
    # Those first that hardly need room, so that one large marginal does not keep out ten small ones.
    for room in (most_cells / 8, most_cells / 4, most_cells / 2, most_cells):
        for attrs in sets:
            is_new = len(kept) < number and attrs not in kept
            if is_new and SizeOracle(tree.domain, [*beside, *kept]).cells_with(attrs) <= room:
                kept.append(attrs)
    return tree if len(kept) == len(sets) else _refitted(tree, kept, kept)


def _cut_off(tree: GraphicalModel, cut_off: frozenset[str]) -> GraphicalModel:
    """A tree's own single attributes, and its own marginals of all that is not cut off.

    Single attributes stay marginals of their own: whoever prunes the tree keeps those, and drops larger ones.
    """
    singles = sorted({(a,) for attrs in tree.potentials for a in attrs})
    sets = {tuple(a for a in attrs if a not in cut_off) for attrs in tree.potentials}
    larger = sorted(attrs for attrs in sets if len(attrs) > 1)
    kept = [*singles, *(attrs for attrs in larger if not any(set(attrs) < set(other) for other in larger))]
    same = [attrs for attrs in kept if attrs in tree.potentials]
    return _refitted(tree, kept, same)


def _refitted(tree: GraphicalModel, kept: Sequence[Attrs], same: Sequence[Attrs]) -> GraphicalModel:
    counts = dict(tree.count_each(kept))
    targets = {attrs: counts[place] for place, attrs in enumerate(kept)}
    return most_likely(tree.domain, targets, start={attrs: tree.potentials[attrs] for attrs in same})


def _in_both(halves: Sequence[PublicRecords], wanted: Iterable[Attrs]) -> list[Attrs]:
    """The attribute sets that both halves tell of: few records may know all values of a set."""
    return [attrs for attrs in wanted if all(half.holds(attrs) for half in halves)]


def _share_of_records(halves: Sequence[PublicRecords], sets: Sequence[Attrs], held: Sequence[Attrs]) -> float:
    """The share of records beside a tree with which one half comes closest to the other.

    On marginals that no other one holds. Squared errors, each over how large an error is likely there (the
    root of what the tree expects), stand for absolute ones, which would hold the noise of the other half
    against all that is smoother.
    """
    held = _in_both(halves, held)
    asked = [attrs for attrs in held if len(attrs) > 1 and not any(set(attrs) < set(o) for o in held)]
    asked = asked[:: max(1, len(asked) // _JUDGE_BY)]
    tables = [half.kept_frequencies(asked) for half in halves]
    slope = bend = 0.0
    for half, seen, unseen in zip(halves, tables, reversed(tables), strict=True):
        tree = most_likely(half.domain, smoothed(half, sets))
        for place, expected in tree.count_each(asked):
            apart = seen[asked[place]] - expected
            weighted = apart / np.sqrt(expected + _FLOOR / expected.size)
            slope += float((weighted * (unseen[asked[place]] - expected)).sum())
            bend += float((weighted * apart).sum())
    return min(1.0, max(0.0, slope / bend)) if bend > 0 else 0.0
