"""Mean errors of a fixed model over sets of marginals: the formula, and the joint sensitivity beside it.

    e_r(D) = ‖M_r(D) − M_r(p)‖₁                          the error of one marginal r, in records
    m_j(D) = 1/|R_j| · Σ_{r in R_j} e_r(D)               the mean over a set of marginals R_j
    k_j(D) = ⌊c_j · m_j(D)⌋                              that mean in steps of 1/c_j records, c_j whole

The sets R_j are all marginals of one degree, those of them that hold one attribute, or those that a criterion
of acceptance names; a marginal may be in many sets. A criterion about subgroups looks at the cells of one
value alone: M_r is then a part of a marginal, and all below holds for it, since a part moves by no more than
the whole. The model p, the sets and the c_j are fixed before the private table is looked at. The curator
releases the whole vector k with exact noise.

**Joint sensitivity.** Between neighbours D and D′,

    |e_r(D) − e_r(D′)|  ≤  ‖M_r(D) − M_r(D′)‖₁  ≤  Δ₁      by the triangle inequality, since p is fixed
    |m_j(D) − m_j(D′)|  ≤  Δ₁                              a mean moves no further than its terms
    |k_j(D) − k_j(D′)|  ≤  c_j Δ₁                          since ⌊x⌋ − ⌊y⌋ < x − y + 1, and c_j Δ₁ is whole

with Δ₁ of a single marginal: 2k records under replacement, k under add-or-remove. This holds however many
marginals a mean is over, and however the sets overlap. So

    ‖k(D) − k(D′)‖₂²  ≤  Δ₁² Σ_j c_j²         ‖k(D) − k(D′)‖₁  ≤  Δ₁ Σ_j c_j.

Both are attained. Let all of D be at x, let p be D itself, and let D′ move one person's k records to a y that
differs from x in every attribute: every marginal loses k in the cell of x and gains k in that of y, so every
e_r grows from 0 to 2k. Under add-or-remove, D′ lacks k records of x, and every e_r grows from 0 to k.

**No rounding.** e_r is summed exactly in multiples of 2⁻¹⁸, and cut at 2³⁵ records (``select/score.py``); the
first inequality survives, since cutting is 1-Lipschitz. Sums and quotients are whole numbers of Python.

**Who gets how much.** At a cost of ρ, mean j is known to σ_j = Δ₁ √(Σ c²/2ρ) / c_j: its part of the cost is
c_j²/Σ c². The highest degree gets most of it, and the c_j are the whole numbers nearest to that.
"""

import hashlib
import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from sidelight.data.count_source import CountSource, count_each
from sidelight.data.domain import Attrs, Domain
from sidelight.privacy.budget import Cost, Epsilon, Rho
from sidelight.privacy.event import Gaussian, Laplace
from sidelight.privacy.unit import Unit
from sidelight.select.score import STEP_BITS, l1_error

HIGHEST_DEGREE = 3
"""Marginals of more attributes are judged by those of three that they hold."""
MOST_MARGINALS = 1000
"""Most marginals of one degree that are measured. Of more, an even part is, so that it takes seconds."""
MOST_CELLS = 2**26
"""Most cells of all measured marginals of one degree; of one marginal a fourth of it."""
_HEADLINE, _LOWER, _ATTRIBUTES = 0.6, 0.15, 0.25
"""Parts of the cost: the highest degree, all lower ones together, all attributes together."""
MEAN_ERRORS = "mean errors of the model over "
"""How every event of this kind begins."""
_FINEST: dict[type[Cost], int] = {Rho: 16, Epsilon: 256}
"""c of the highest degree: it is counted in 16ths of a record, or in finer parts where parts of a cost differ
more. Finer still would take noise beyond what can be drawn at budgets that the mechanisms can live with."""


@dataclass(frozen=True)
class Subgroup:
    """The records that have one value of an attribute."""

    attr: str
    code: int


@dataclass(frozen=True)
class Tables:
    """Marginals whose mean error is asked for: whole, or what a subgroup has of them."""

    marginals: tuple[Attrs, ...]
    subgroup: Subgroup | None = None


@dataclass(frozen=True, kw_only=True)
class MarginalSet:
    """One set R_j: what it is, which marginals are measured, and how finely their mean is counted."""

    kind: Literal["degree", "attribute", "criterion"]
    name: str
    """The degree, the attribute, or whatever tells one criterion from another."""
    places: tuple[int, ...]
    """Its marginals, by their place in ``MeanErrors.marginals``."""
    of: int
    """How many marginals the whole set has; more than ``places`` where an even part is measured."""
    steps: int
    """c_j."""
    attributes: tuple[str, ...] = ()
    """The attributes of which these are all marginals of the highest degree."""
    criteria: tuple[str, ...] = ()
    """The criteria that are judged by this mean, by name."""


@dataclass(frozen=True)
class NoisyMeans:
    """The noisy means, in records, each with σ of its noise; in the order of the sets."""

    means: tuple[float, ...]
    stddevs: tuple[float, ...]


@dataclass(frozen=True)
class MeanErrors:
    """The means that are asked for: which marginals, in which sets. All of it is public.

    >>> asked = MeanErrors.of([("a", "b"), ("b", "c")], Domain.of({"a": 2, "b": 2, "c": 2}), Rho)
    >>> [(part.name, part.of) for part in asked.sets]
    [('2', 2), ('1', 3), ('a', 1), ('c', 1)]
    >>> asked.l2_squared(Unit("replace")) == 4 * sum(part.steps**2 for part in asked.sets)
    True
    """

    marginals: tuple[Attrs, ...]
    """The marginals that are looked at; once each, and once more for each subgroup."""
    sets: tuple[MarginalSet, ...]
    """The highest degree first, then the lower ones, then the attributes."""
    subgroups: Mapping[int, Subgroup] = field(default_factory=dict)
    """For some marginals, by their places, the subgroup whose cells alone count."""

    @classmethod
    def of(cls, attribute_sets: Iterable[Attrs], domain: Domain, currency: type[Cost]) -> "MeanErrors | None":
        """The means for a workload on these sets of attributes; None where it holds no marginal to judge."""
        inside = _inside(attribute_sets, domain)
        chosen = {degree: _even_part(found, domain) for degree, found in inside.items()}
        degrees = [degree for degree in sorted(chosen, reverse=True) if chosen[degree]]
        if not degrees:
            return None
        marginals = [attrs for degree in degrees for attrs in chosen[degree]]
        place = {attrs: index for index, attrs in enumerate(marginals)}
        by_degree = [(str(d), chosen[d], len(inside[d])) for d in degrees]
        numbers = {degree: Counter(itertools.chain(*found)) for degree, found in inside.items()}
        by_attribute = [
            (attr, kept, number)
            for attr in domain.attrs
            for kept, number in [_marginals_with(attr, degrees, chosen, numbers)]
            if kept
        ]
        # Attributes whose marginals are those of another set share its mean: nothing is measured twice.
        same: dict[frozenset[Attrs], list[str]] = {frozenset(kept): [] for _, kept, _ in by_degree}
        own = []
        for attr, kept, number in by_attribute:
            if frozenset(kept) not in same:
                own.append((attr, kept, number))
            same.setdefault(frozenset(kept), []).append(attr)
        by_attribute = own
        steps = _steps(len(by_degree) - 1, len(by_attribute), currency)
        kinds: list[Literal["degree", "attribute"]] = ["degree"] * len(by_degree)
        kinds += ["attribute"] * len(by_attribute)
        return cls(
            tuple(marginals),
            tuple(
                MarginalSet(
                    kind=kind,
                    name=name,
                    places=tuple(place[r] for r in kept),
                    of=number,
                    steps=c,
                    attributes=tuple(same[frozenset(kept)]),
                )
                for kind, (name, kept, number), c in zip(
                    kinds, [*by_degree, *by_attribute], steps, strict=True
                )
            ),
        )

    def also(self, named: Mapping[str, Tables], domain: Domain, currency: type[Cost]) -> "MeanErrors":
        """These means, and one for each criterion, known as well as the highest degree's.

        A criterion about marginals of which there is a mean already is judged by that one, so that no
        quantity is measured twice.
        """
        place = {(attrs, self.subgroups.get(index)): index for index, attrs in enumerate(self.marginals)}
        sets = list(self.sets)
        index_of = {frozenset(part.places): index for index, part in reversed(list(enumerate(sets)))}
        for name, tables in named.items():
            kept = _even_part(tables.marginals, domain)
            places = tuple(place.setdefault((attrs, tables.subgroup), len(place)) for attrs in kept)
            index = index_of.setdefault(frozenset(places), len(sets))
            if index == len(sets):
                number = len(tables.marginals)
                sets.append(MarginalSet(kind="criterion", name=name, places=places, of=number, steps=1))
            steps = max(sets[index].steps, _FINEST[currency])
            sets[index] = replace(sets[index], steps=steps, criteria=(*sets[index].criteria, name))
        return MeanErrors(
            tuple(attrs for attrs, _ in place),
            tuple(sets),
            {index: subgroup for (_, subgroup), index in place.items() if subgroup is not None},
        )

    def l2_squared(self, unit: Unit) -> Fraction:
        """Δ₂² = Δ₁² Σ c_j², proved above."""
        # PRIVACY: p and the sets are fixed, so each mean moves by at most Δ₁ of a single marginal.
        return Fraction(unit.l1**2 * sum(part.steps**2 for part in self.sets))

    def l1(self, unit: Unit) -> Fraction:
        """Δ₁ of the vector: Δ₁ Σ c_j."""
        return Fraction(unit.l1 * sum(part.steps for part in self.sets))

    def event(self, cost: Cost, unit: Unit) -> Gaussian | Laplace:
        """The one spending that pays for all means: Gaussian noise for zCDP, Laplace for pure ε."""
        what = f"{MEAN_ERRORS}{len(self.marginals)} marginals, {len(self.sets)} means"
        if isinstance(cost, Rho):
            return Gaussian.at(cost, what=what, l2_squared=self.l2_squared(unit))
        return Laplace.at(cost, what=what, l1=self.l1(unit))

    def each(self, model: CountSource) -> Iterator[tuple[int, Callable[[NDArray[Any]], float]]]:
        """The place of every marginal, once each, and the function from its exact counts to its error."""
        for place, counts in count_each(model, self.marginals):
            own = np.asarray(counts, dtype=np.float64)
            yield place, _error_of(own, self.marginals[place], self.subgroups.get(place))

    def counted(self, errors: Mapping[int, float]) -> NDArray[np.int64]:
        """k, from the exact error of every marginal."""
        # PRIVACY: a multiple of 2⁻¹⁸ below 2⁵³ of them, so exact as a whole number.
        whole = {place: int(math.ldexp(error, STEP_BITS)) for place, error in errors.items()}
        return np.array(
            [
                part.steps * sum(whole[place] for place in part.places) // (len(part.places) << STEP_BITS)
                for part in self.sets
            ],
            dtype=np.int64,
        )

    def measured(self, noisy: NDArray[np.int64], stddev: float) -> NoisyMeans:
        """Noisy k as means in records; half a step makes up for ⌊·⌋."""
        return NoisyMeans(
            tuple((k + 0.5) / part.steps for k, part in zip(noisy.tolist(), self.sets, strict=True)),
            tuple(stddev / part.steps for part in self.sets),
        )


def _error_of(
    counts: NDArray[np.float64], attrs: Attrs, subgroup: Subgroup | None
) -> Callable[[NDArray[Any]], float]:
    def part(cells: NDArray[Any]) -> NDArray[Any]:
        shaped = cells.reshape(counts.shape)
        # PRIVACY: a part of a marginal moves by no more than the whole, in L1.
        return (
            shaped if subgroup is None else shaped.take(subgroup.code, attrs.index(subgroup.attr))
        ).reshape(-1)

    said = part(counts)
    return lambda exact: l1_error(part(exact), said)


def _inside(attribute_sets: Iterable[Attrs], domain: Domain) -> dict[int, list[Attrs]]:
    """All marginals of one, two and three attributes that lie within a query's attributes, by degree."""
    position = {attr: place for place, attr in enumerate(domain.attrs)}
    asked = dict.fromkeys(tuple(sorted(attrs, key=position.__getitem__)) for attrs in attribute_sets)
    # All cuboids lie within the largest: going through each of them would take as long as a small release.
    largest = max(asked, key=len, default=())
    within = set(largest)
    others = [attrs for attrs in asked if not within.issuperset(attrs)]
    found: dict[int, dict[Attrs, None]] = {degree: {} for degree in range(1, HIGHEST_DEGREE + 1)}
    for attrs in (largest, *others):
        for degree, kept in found.items():
            kept.update(dict.fromkeys(itertools.combinations(attrs, degree)))
    return {degree: list(kept) for degree, kept in found.items()}


def _even_part(marginals: Sequence[Attrs], domain: Domain) -> list[Attrs]:
    """All of them where they are few and small; else those that come first by a hash of their names.

    A rule that anybody can repeat, and that favours no attribute.
    """
    small = [attrs for attrs in marginals if domain.size(attrs) <= MOST_CELLS // 4]
    if len(small) > MOST_MARGINALS or sum(map(domain.size, small)) > MOST_CELLS:
        small.sort(key=lambda attrs: hashlib.sha256("\0".join(attrs).encode("utf-8", "replace")).digest())
        room = itertools.accumulate(map(domain.size, small))
        small = [attrs for attrs, cells in zip(small, room, strict=True) if cells <= MOST_CELLS]
    return small[:MOST_MARGINALS]


def _marginals_with(
    attr: str,
    degrees: Sequence[int],
    chosen: Mapping[int, Sequence[Attrs]],
    numbers: Mapping[int, Mapping[str, int]],
) -> tuple[list[Attrs], int]:
    """The marginals of the highest degree that hold an attribute: those measured, and how many there are."""
    for degree in degrees:
        kept = [attrs for attrs in chosen[degree] if attr in attrs]
        if kept:
            return kept, numbers[degree][attr]
    return [], 0


def _steps(lower: int, attributes: int, currency: type[Cost]) -> list[int]:
    """c_j of every set: the whole numbers nearest to the parts of the cost that they are to get.

    >>> _steps(2, 15, Rho)[:4], _steps(0, 0, Epsilon)
    ([16, 6, 6, 3], [256])
    """
    parts = [_HEADLINE] + [_LOWER / max(lower, 1)] * lower + [_ATTRIBUTES / max(attributes, 1)] * attributes
    # Of a cost in ρ a mean takes c²/Σc², of one in ε c/Σc.
    power = 1.0 if issubclass(currency, Epsilon) else 0.5
    return [max(1, round(_FINEST[currency] * (part / _HEADLINE) ** power)) for part in parts]
