"""MST: one-way marginals, and the two-way marginals along a spanning tree of the attributes.

    y_i ← M_i(D) + 𝒩(0, d σ²)          for each of d attributes, ρ/3 in all                      measure
    values with a noisy count below 3 √d σ are merged into one, attribute by attribute
    p ← fit to the one-way answers
    d − 1 times, ρ/3 in all:
        ab ~ exp(ε ‖M_ab(D) − M_ab(p)‖₁ / 2Δ)     over the pairs that close no cycle             select
    y_ab ← M_ab(D) + 𝒩(0, (d − 1) σ²)  for each pair of the tree, ρ/3 in all                     measure
    p ← fit to all answers; merged values get their shares again                                 estimate

McKenna, Miklau, Sheldon (2021), "Winning the NIST contest: a scalable and general approach to
differentially private synthetic data", arXiv:2108.04978; spec 7.6. Where we differ: noise is the exact
discrete Gaussian; under replacement n is public and the sensitivities are doubled (Δ₁) and ×√2 (Δ₂); where n
is private it is what the noisy answers sum to, and is never read. A merged value gets its share by its
own noisy answer instead of an equal one. Only attributes that the workload names are measured.
"""

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sidelight import _check
from sidelight._check import listed
from sidelight.curator.curator import Curator
from sidelight.data.domain import Attrs, Domain, joined
from sidelight.data.table import Table
from sidelight.errors import SettingError, TooLargeError
from sidelight.fit.private_pgm import MirrorDescent
from sidelight.measurement import Measurement, measuring
from sidelight.mechanisms.base import Mechanism, Outcome, Outlook
from sidelight.mechanisms.candidates import (
    Oversized,
    check_asks_attributes,
    check_model_room,
    marginal_stddev,
    mib,
    take_marginals,
)
from sidelight.mechanisms.paper import Paper
from sidelight.models.graphical import GraphicalModel
from sidelight.models.merging import Merging
from sidelight.privacy.budget import Cost
from sidelight.privacy.event import Gaussian, Laplace
from sidelight.privacy.unit import Unit
from sidelight.queries.query import Marginal, Query
from sidelight.queries.workload import Workload
from sidelight.select.score import ModelError

_MOST_PAIRS = 80_000
"""Most pairs among which the tree is selected: those of 400 attributes. 200 take 27 s and 100
take 5 (benchmarks/speed/wide.py)."""


@dataclass(frozen=True, kw_only=True)
class MST(Mechanism):
    """Measure every attribute, choose a tree of pairs, measure those pairs, fit."""

    name = "mst"
    public_data = "unused"
    takes_groups = True
    papers = (
        Paper(
            authors=("McKenna", "Miklau", "Sheldon"),
            title="Winning the NIST contest: a scalable and general approach to differentially private "
            "synthetic data",
            year=2021,
            arxiv="2108.04978",
        ),
    )

    one_way_share: float = 1 / 3
    """Share of the budget that measures the one-way marginals."""
    select_share: float = 1 / 3
    """Share of the budget that selects the tree; the rest measures its pairs."""
    rare_below: float = 3.0
    """A value is rare, and merged, if its noisy count is below so many standard deviations of its noise."""
    max_model_mb: float = 80.0
    """Size limit of one pair's marginal."""
    oversized: Oversized = "refuse"
    """Pairs above the size limit: refuse the workload, or leave them out of the tree (``skip``)."""
    estimator: MirrorDescent = MirrorDescent(tolerance=1e-3, max_steps=500)
    """How both fits are made. On ADULT four times the steps change the error by less than 0.001."""

    def __post_init__(self) -> None:
        _check.share(one_way_share=self.one_way_share, select_share=self.select_share)
        _check.positive(max_model_mb=self.max_model_mb, rare_below=self.rare_below)
        _check.one_of(("refuse", "skip"), oversized=self.oversized)
        if self.one_way_share + self.select_share >= 1:
            raise SettingError(
                "one_way_share and select_share must leave some of the budget to measure pairs; got "
                f"{self.one_way_share:g} and {self.select_share:g}."
            )

    def run(self, curator: Curator, workload: Workload, *, public: Table | None = None) -> Outcome:
        domain = curator.domain
        named, pairs = _named(domain, workload), self._pairs(domain, workload)
        one_way_cost, select_cost, pair_cost = self._costs(curator.allotment, named, pairs)
        # Under add-or-remove n is private, and the fit takes the total that the measurements show.
        n = curator.total(one_way_cost) if curator.unit.total_is_public else None

        # MEASURE the one-way marginals, and merge rare values.
        one_ways = [curator.measure(Marginal((attr,)), one_way_cost) for attr in named]
        merging = Merging.of(domain, one_ways, threshold=self.rare_below)
        model = self._fit(merging, one_ways, n)
        # SELECT a spanning tree: always among the pairs that join what is not joined yet.
        candidates = [merging.query(pair) for pair in pairs]
        tree = [] if not pairs else curator.select_many(
            candidates, ModelError(model), select_cost,
            number=joining(pairs), closed=lambda chosen: within(pairs, chosen),
        )  # fmt: skip
        # MEASURE its pairs.
        two_ways = [curator.measure(query, pair_cost).against(model) for query in tree]
        # ESTIMATE, with the pairs that earlier releases told of the same records.
        told = {attrs for attrs in pairs if attrs not in {query.attrs for query in tree}}
        earlier = take_marginals(curator, told, limit_mb=self.max_model_mb, most=2)
        made = [*one_ways, *two_ways, *earlier]
        if two_ways or earlier:
            model = self._fit(merging, made, n)

        return Outcome(model, tuple(made), curator.events, notes=_notes(merging, tree))

    def _fit(self, merging: Merging, made: Sequence[Measurement], n: float | None) -> GraphicalModel:
        """Fitted over merged values, where the model is small, and expanded to all values."""
        inside, precisions = zip(*map(merging.inside, made), strict=True)
        small = self.estimator.estimate(merging.domain, inside, total=n, precisions=precisions)
        return merging.expanded(small)

    def _costs(self, allotment: Cost, named: Attrs, pairs: Sequence[Attrs]) -> tuple[Cost, Cost, Cost]:
        """Costs of a one-way marginal, of a selection and of a pair; a lone attribute gets all there is."""
        edges = joining(pairs)
        if not edges:
            return allotment / len(named), allotment * 0, allotment * 0
        one_ways, rest = allotment.split(self.one_way_share)
        selections, measured = rest.split(self.select_share / (1 - self.one_way_share))
        return one_ways / len(named), selections / edges, measured / edges

    def _pairs(self, domain: Domain, workload: Workload) -> list[Attrs]:
        """All pairs of named attributes within the size limit."""
        pairs = itertools.combinations(_named(domain, workload), 2)
        return [pair for pair in pairs if mib(domain.size(pair)) <= self.max_model_mb]

    def check(self, domain: Domain, workload: Workload, public: Table | None) -> None:
        super().check(domain, workload, public)
        check_asks_attributes(workload)
        named = _named(domain, workload)
        check_model_room(domain, limit_mb=self.max_model_mb)
        if (pairs := len(named) * (len(named) - 1) // 2) > _MOST_PAIRS:
            raise TooLargeError(
                f"MST selects {len(named) - 1:,} times among all pairs of the {len(named):,} attributes that "
                f"the workload names: {pairs:,}, more than the {_MOST_PAIRS:,} that it takes. Name fewer "
                "attributes, or release parts of the table one by one, each with a part of the budget."
            )
        widest = sorted(named, key=lambda attr: domain.sizes[attr])[-2:]
        size = mib(domain.size(widest))
        if len(widest) == 2 and size > self.max_model_mb and self.oversized == "refuse":
            raise TooLargeError(
                f"the pair {' × '.join(widest)} may become an edge of the tree and needs {size:.3g} MB, more "
                f"than max_model_mb = {self.max_model_mb:g}. Raise max_model_mb, coarsen its attributes, or "
                "have pairs that large left out of the tree (oversized='skip')."
            )

    def noisiest(
        self, domain: Domain, workload: Workload, *, allotment: Cost, unit: Unit
    ) -> Iterable[Gaussian | Laplace]:
        costs = self._costs(allotment, _named(domain, workload), self._pairs(domain, workload))
        return [measuring(Marginal(()), cost, unit) for cost in (costs[0], costs[2]) if cost]

    def outlook(self, domain: Domain, workload: Workload, *, allotment: Cost, unit: Unit) -> Outlook:
        named, pairs = _named(domain, workload), self._pairs(domain, workload)
        one_way_cost, _, pair_cost = self._costs(allotment, named, pairs)
        edges, one_way = joining(pairs), marginal_stddev(one_way_cost, unit)
        sizes = sorted(map(domain.size, pairs))
        notes = [
            f"Values whose noisy count is below {self.rare_below * one_way:.3g} records are merged into one, "
            "attribute by attribute.",
            "MST measures a tree of pairs: of the workload it reads which attributes it names, and no more.",
        ]
        return Outlook(
            measurements=len(named) + edges,
            stddev=marginal_stddev(pair_cost, unit) if edges else one_way,
            model_bytes=8 * (sum(sizes[-edges:]) if edges else sum(domain.shape)),
            counting_bytes=8 * sum(sizes),
            notes=tuple(notes),
        )


def _notes(merging: Merging, tree: Sequence[Query]) -> tuple[str, ...]:
    """The tree and the merged values, in words."""
    notes = [f"The tree's pairs: {listed(' × '.join(query.attrs) for query in tree)}."] if tree else []
    if merging.merged:
        merged = listed(f"{number} of {attr}" for attr, number in merging.merged.items())
        notes.append(f"Values that were rare, and merged: {merged}.")
    return tuple(notes)


def _named(domain: Domain, workload: Workload) -> Attrs:
    return domain.canonical(workload.attrs)


def joining(pairs: Sequence[Attrs]) -> int:
    """How many of these pairs it takes to join all that they can join.

    >>> joining([("a", "b"), ("b", "c"), ("a", "c")])
    2
    """
    return sum(len(attrs) - 1 for attrs, _ in joined(pairs))


def within(pairs: Sequence[Attrs], chosen: Sequence[int]) -> list[int]:
    """The places of all pairs that would close a cycle with those chosen.

    >>> within([("a", "b"), ("b", "c"), ("a", "c"), ("c", "d")], [0, 1])
    [0, 1, 2]
    """
    parts = joined(pairs[place] for place in chosen)
    part_of = {attr: number for number, (attrs, _) in enumerate(parts) for attr in attrs}
    return [place for place, (a, b) in enumerate(pairs) if a in part_of and part_of[a] == part_of.get(b)]
