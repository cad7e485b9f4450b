"""A public model: public records as a smoothed Markov random field, at no privacy cost.

1. structure   marginals that carry over from half of the records to the other, smoothed (structure.py)
2. fit         q, the model of maximum likelihood for all of them
3. others      the same for other halves, so that no single structure is all there is
4. sample      the public records themselves, which say what trees have no room for
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations

import numpy as np

from sidelight.data.domain import Attrs, Domain
from sidelight.data.impossible import is_possible
from sidelight.fit.proportional_fitting import most_likely
from sidelight.models.graphical import GraphicalModel
from sidelight.models.particles import room_for
from sidelight.models.support import Support
from sidelight.public.source import PublicRecords
from sidelight.public.structure import smoothed, structure
from sidelight.trees.triangulation import BYTES_PER_CELL, SizeOracle

LEAST_SAMPLE = 20_000
"""Records in a sample, however small a model is to be: what is drawn errs by the drawing, too."""
_OTHERS = 2
"""Trees beside q."""
JUDGE_BY = 64
"""About so many marginals models are compared by: of more than twice as many, an even part."""
_FLOOR = 0.1
"""A tenth of a record, as a share of all, is added to a marginal, evenly over its cells: none is thought to
be empty."""


@dataclass(frozen=True, eq=False)
class Prior:
    """The belief before anything private is measured: q, and how many records stand behind it."""

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
    """The share of public records in a mixture with q alone."""

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

    @cached_property
    def related(self) -> tuple[str, ...]:
        """The attributes of which q tells how they go with others."""
        held = {attr for attrs in self.sets if len(attrs) > 1 for attr in attrs}
        return tuple(attr for attr in self.domain.attrs if attr in held)

    def tells(self, attrs: Sequence[str]) -> bool:
        """Whether public records tell of all these attributes; of several, with relations of each of them."""
        is_told = all(self.records_by_attribute[attr] > 0 for attr in attrs)
        return is_told and (len(attrs) == 1 or self._among_related.issuperset(attrs))

    @cached_property
    def _among_related(self) -> frozenset[str]:
        return frozenset(self.related)

    def under(self, domain: Domain) -> "Prior":
        """The same for a schema that may declare more impossible: trees and records without such cells."""
        model, *others = (GraphicalModel(domain, 1.0, tree.potentials) for tree in (self.model, *self.others))
        sample, share = self.sample, self.sample_share
        if sample is not None:
            kept = is_possible(domain, sample.records)
            left = Support(domain, sample.records[kept], sample.weights[kept], 1.0)
            sample, share = (left.with_total(1.0), share) if kept.any() else (None, 0.0)
        return replace(self, model=model, others=tuple(others), sample=sample, sample_share=share)

    def without_relations(self, attrs: Iterable[str]) -> "Prior":
        """The same with these attributes cut off: independent of all others, each as it was.

        Public records, which hold all relations, are dropped.
        """
        return self._cut(frozenset(attrs), frozenset())

    def without_values(self, attrs: Iterable[str]) -> "Prior":
        """The same as if public data lacked these attributes. Public records are dropped."""
        unknown = frozenset(attrs)
        return self._cut(unknown, unknown)

    def _cut(self, cut: frozenset[str], unknown: frozenset[str]) -> "Prior":
        model, *others = (_cut_off(tree, cut, unknown) for tree in (self.model, *self.others))
        told = {a: 0.0 if a in unknown else number for a, number in self.records_by_attribute.items()}
        return replace(
            self, model=model, records_by_attribute=told, others=tuple(others), sample=None, sample_share=0.0
        )


def fit_prior(
    public: PublicRecords, closure: Mapping[Attrs, float], *, max_model_mb: float = 2.5, seed: int = 0
) -> Prior:
    """The prior for a workload, given as its downward closure with weights; each tree within the size."""
    domain, most_cells = public.domain, max_model_mb * 2**20 / BYTES_PER_CELL
    held = {attrs: weight for attrs, weight in closure.items() if public.holds(attrs)}
    # Marginals beyond single attributes: as many as there are attributes, and half as many more in q.
    numbers = [3 * len(domain) // 2, *[len(domain)] * _OTHERS]
    structures = list[list[Attrs]]()
    for place, number in enumerate(numbers):
        halves = public.halves(seed=seed + place)
        if halves is not None:
            told = {attrs: held[attrs] for attrs in _in_both(halves, held)}
            found = structure(halves, told, most_cells=most_cells, most_marginals=number)
            structures += [found] if set(found) not in map(set, structures) else []
    sample, share, halves = None, 0.0, public.halves(seed=seed)
    if halves is not None:
        sample = public.whole(most=max(LEAST_SAMPLE, room_for(domain, max_model_mb)), seed=seed)
        share = _share_of_records(halves, structures[0], list(held)) if sample is not None else 0.0
    singles: list[Attrs] = [(attr,) for attr in domain.attrs if public.holds([attr])]
    model, *others = (most_likely(domain, smoothed(public, some)) for some in structures or [singles])
    by_attribute = {attr: public.records_of(attr) for attr in domain.attrs}
    return Prior(model, by_attribute, public.records, tuple(others), sample if share else None, share)


def even_part(sets: Sequence[Attrs]) -> Sequence[Attrs]:
    """Every k-th, so that ``JUDGE_BY`` and fewer than twice as many remain; all where there are fewer."""
    return sets[:: max(1, len(sets) // JUDGE_BY)]


def pruned(tree: GraphicalModel, *, most_cells: float, beside: Sequence[Attrs] = ()) -> GraphicalModel:
    """A tree with fewer marginals, each as it was, such that there is room ``beside`` for others."""
    sets = list(tree.potentials)
    if SizeOracle(tree.domain, [*beside, *sets]).cells <= most_cells:
        return tree
    kept: list[Attrs] = [attrs for attrs in sets if len(attrs) == 1]
    oracle = SizeOracle(tree.domain, [*beside, *kept])
    # Those first that hardly need room, so that one large marginal does not keep out ten small ones.
    for room in (most_cells / 8, most_cells / 4, most_cells / 2, most_cells):
        for attrs in sets:
            if attrs not in kept and oracle.cells_with(attrs) <= room:
                kept.append(attrs)
                oracle = SizeOracle(tree.domain, [*beside, *kept])
    return tree if len(kept) == len(sets) else _refitted(tree, kept, kept)


def _cut_off(tree: GraphicalModel, cut: frozenset[str], unknown: frozenset[str]) -> GraphicalModel:
    """A tree's own single attributes, but unknown ones, and its own marginals of all that is not cut off."""
    singles = sorted({(a,) for attrs in tree.potentials for a in attrs if a not in unknown})
    sets = {tuple(a for a in attrs if a not in cut) for attrs in tree.potentials}
    larger = sorted(attrs for attrs in sets if len(attrs) > 1)
    kept = [*singles, *(attrs for attrs in larger if not any(set(attrs) < set(other) for other in larger))]
    return _refitted(tree, kept, [attrs for attrs in kept if attrs in tree.potentials])


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
    parts = {frozenset(part) for o in held for k in range(2, len(o)) for part in combinations(o, k)}
    asked = [attrs for attrs in held if len(attrs) > 1 and frozenset(attrs) not in parts]
    asked = list(even_part(asked))
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
