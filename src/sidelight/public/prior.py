"""A public model: public records as a smoothed Markov random field, at no privacy cost.

    1. structure   the marginals that carry over from half of the records to the other (structure.py)
    2. smoothing   t_c, those marginals with each attribute smoothed on its own (smoothing.py)
    3. fit         q, the model of maximum likelihood for all t_c
    4. others      the same for other halves, so that no single structure is all there is
    5. grain       weighted records that say what trees have no room for (grain.py)

spec/aperture 2, which has one tree.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from sidelight import _check
from sidelight.data.domain import Attrs, Domain
from sidelight.data.impossible import is_possible
from sidelight.fit.proportional_fitting import most_likely
from sidelight.models.graphical import GraphicalModel
from sidelight.models.particles import room_for
from sidelight.models.support import Support
from sidelight.public.grain import against_each_other, grain
from sidelight.public.smoothing import smoothed, smoothing
from sidelight.public.source import PublicRecords
from sidelight.public.structure import structure
from sidelight.trees.triangulation import BYTES_PER_CELL, SizeOracle

LEAST_GRAIN = 20_000
"""Records in the grain, however small a model is to be: what is drawn errs by the drawing, too."""
_OTHERS = 2
"""Trees beside q."""


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
    others: tuple[GraphicalModel, ...] = field(default=(), repr=False)
    """Other trees of the same public records, which count as much as q; total 1."""
    grain: Support | None = field(default=None, repr=False)
    """Weighted records that stand beside the trees, where public ones tell of all attributes; total 1."""
    grain_share: float = 0.0
    """What share of all together they are."""

    @classmethod
    def nothing(cls, domain: Domain) -> "Prior":
        """No public data: uniform."""
        return cls(GraphicalModel.uniform(domain, total=1.0), dict.fromkeys(domain.attrs, 0.0), 0.0, {})

    @property
    def domain(self) -> Domain:
        """The attributes of the private table."""
        return self.model.domain

    @property
    def alone(self) -> "Prior":
        """The same without what stands beside the model."""
        return replace(self, others=(), grain=None, grain_share=0.0)

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
        alpha, stray = dict.fromkeys(domain.attrs, 1.0), 1.0
        others: tuple[GraphicalModel, ...] = ()
        beside: tuple[Support | None, float] = (None, 0.0)
        if halves is not None:
            first, second = halves
            chosen = self._structure([(first, second), (second, first)], held, most=self.max_marginals)
            alpha = smoothing(halves, chosen)
            most = max(LEAST_GRAIN, room_for(domain, self.max_model_mb))
            stray, records, classes = against_each_other(halves, list(held), chosen, alpha, most=most)
            beside = grain(public, records=records, classes=classes, most=most, seed=self.seed)
            others = tuple(
                most_likely(domain, smoothed(public, other, alpha=alpha))
                for other in self._others(public, held)
                if set(other) != set(chosen)
            )
        model = most_likely(domain, smoothed(public, chosen, alpha=alpha))
        by_attribute = {attr: public.records_of(attr) for attr in domain.attrs}
        return Prior(model, by_attribute, public.records, alpha, stray, others, *beside)

    def _structure(
        self,
        pairs: Sequence[tuple[PublicRecords, PublicRecords]],
        weights: Mapping[Attrs, float],
        *,
        most: int,
    ) -> list[Attrs]:
        most_cells = self.max_model_mb * 2**20 / BYTES_PER_CELL
        return structure(pairs, weights, most_cells=most_cells, most_marginals=most)

    def _others(self, public: PublicRecords, weights: Mapping[Attrs, float]) -> Iterator[list[Attrs]]:
        """The structures of other trees, of other halves, and of half as many marginals."""
        for place in range(_OTHERS if public.holds(public.domain.attrs) else 0):
            pair = public.halves(seed=self.seed + place + 1)
            if pair is not None:
                yield self._structure([pair, pair[::-1]], weights, most=self.max_marginals // 2)


def narrowed(prior: Prior, *, share: float, limit_mb: float) -> Prior:
    """The prior with a share of its marginals in that share of a size: q as they alone tell it.

    The size alone would not do: many small marginals tie all attributes together, and then nothing that
    is measured later fits into the tree.
    """
    most = share * limit_mb * 2**20 / BYTES_PER_CELL
    number = math.ceil(share * sum(len(attrs) > 1 for attrs in prior.sets))
    model = pruned(prior.model, most_marginals=number, most_cells=most)
    return prior if model is prior.model else replace(prior, model=model)


def pruned(
    tree: GraphicalModel,
    *,
    most_cells: float,
    most_marginals: int | None = None,
    beside: Sequence[Attrs] = (),
) -> GraphicalModel:
    """A tree with fewer marginals, each as it was, such that there is room ``beside`` for others."""
    domain, sets = tree.domain, list(tree.potentials)
    kept: list[Attrs] = [attrs for attrs in sets if len(attrs) == 1]
    number = len(sets) if most_marginals is None else len(kept) + most_marginals
    # Those first that hardly need room, so that one large marginal does not keep out ten small ones.
    for room in (most_cells / 8, most_cells / 4, most_cells / 2, most_cells):
        for attrs in sets:
            is_new = len(kept) < number and attrs not in kept
            if is_new and SizeOracle(domain, [*beside, *kept]).cells_with(attrs) <= room:
                kept.append(attrs)
    if len(kept) == len(sets):
        return tree
    targets = dict(zip(kept, tree.count_many(kept), strict=True))
    return most_likely(domain, targets, start={attrs: tree.potentials[attrs] for attrs in kept})
