"""Rare values merged into one, and a model of what is left expanded to all values again.

An attribute whose rare values are merged has a smaller domain, in which a model is smaller and each measured
cell holds more records. Expanding such a model gives every rare value its share of their common count:

    p(x) = p′(group of x) · Π_a share_a(x_a)

Values that the schema's impossible combinations name are never merged, so that what is impossible is the same
in both domains.

PRIVACY: groups and shares are functions of noisy answers; post-processing.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import erfcx

from sidelight.data.domain import Attrs, Combination, Domain
from sidelight.measurement import Measurement
from sidelight.models.graphical import GraphicalModel
from sidelight.queries.merged import Merged
from sidelight.queries.query import Marginal

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Merging:
    """Which values of a domain are merged, and each value's share of its group.

    >>> domain = Domain.of({"job": 4})
    >>> noisy = Measurement(Marginal(("job",)), np.array([90.0, 2.0, -1.0, 70.0]), 5.0)
    >>> merging = Merging.of(domain, [noisy], threshold=3.0)
    >>> merging.groups["job"], merging.domain.shape
    ((0, 2, 2, 1), (3,))
    """

    whole: Domain
    groups: Mapping[str, tuple[int, ...]]
    """For each attribute the group of each of its codes."""
    shares: Mapping[str, Array]
    """For each attribute what share of its group each value has."""

    @classmethod
    def of(cls, domain: Domain, one_ways: list[Measurement], *, threshold: float) -> "Merging":
        """Merge the values of each attribute whose noisy count is below so many standard deviations.

        A rare value's share is proportional to the mean of its count, given the noisy answer and that no
        count is below 0: y + σ φ(y/σ)/Φ(y/σ).
        """
        named: dict[str, set[int]] = {attr: set() for attr in domain.attrs}
        for combination in domain.impossible:
            for attr, codes in zip(combination.attrs, combination.values, strict=True):
                named[attr].update(int(code) for code in codes)
        groups = {attr: tuple(range(size)) for attr, size in domain.sizes.items()}
        shares = {attr: np.ones(size) for attr, size in domain.sizes.items()}
        for made in one_ways:
            (attr,) = made.query.attrs
            rare = made.answer < threshold * made.stddev
            rare[list(named[attr])] = False
            if rare.sum() < 2:
                continue
            kept = np.cumsum(~rare) - 1
            groups[attr] = tuple(np.where(rare, kept[-1] + 1, kept).tolist())
            off = np.clip(made.answer[rare] / made.stddev, -1e3, None)
            mean = off + np.sqrt(2 / np.pi) / erfcx(-off / np.sqrt(2))  # φ/Φ, also far below 0
            # At a thousand standard deviations below 0 the two terms cancel to rounding.
            mean = np.maximum(mean, 1e-4)
            shares[attr][rare] = mean / mean.sum()
        return cls(domain, groups, shares)

    @cached_property
    def domain(self) -> Domain:
        """The domain of the groups."""
        return Domain(
            self.whole.attrs,
            tuple(max(self.groups[attr]) + 1 for attr in self.whole.attrs),
            tuple(
                Combination(one.attrs, tuple(map(self._groups_of, one.attrs, one.values)))
                for one in self.whole.impossible
            ),
        )

    def _groups_of(self, attr: str, codes: tuple[object, ...]) -> tuple[int, ...]:
        return tuple(self.groups[attr][int(str(code))] for code in codes)

    @property
    def merged(self) -> dict[str, int]:
        """How many values of each attribute are merged, where some are."""
        return {
            attr: len(groups) - max(groups)
            for attr, groups in self.groups.items()
            if max(groups) + 1 < len(groups)
        }

    def query(self, attrs: Attrs) -> Marginal | Merged:
        """The marginal over the groups of these attributes, as it is asked of the private table."""
        if not set(attrs) & set(self.merged):
            return Marginal(attrs)
        return Merged(attrs, tuple(self.groups[attr] for attr in attrs))

    def inside(self, made: Measurement) -> tuple[Measurement, Array]:
        """A measurement as one of the smaller domain, and 1/σ² of each of its answers."""
        query = made.query
        if isinstance(query, Merged):
            sizes, answer = np.ones(made.answer.size), made.answer
        else:
            merged = Merged(query.attrs, tuple(self.groups[attr] for attr in query.attrs))
            shape = self.whole.project(query.attrs).shape
            sizes, answer = merged.apply(np.ones(shape)), merged.apply(made.answer.reshape(shape))
        return Measurement(Marginal(query.attrs), answer, made.stddev), made.precision / sizes

    def expanded(self, model: GraphicalModel) -> GraphicalModel:
        """A model of the groups as a model of all values."""
        potentials = {
            attrs: potential[np.ix_(*(list(self.groups[attr]) for attr in attrs))]
            for attrs, potential in model.potentials.items()
        }
        for attr in self.merged:
            single = potentials.get((attr,), np.zeros(self.whole.sizes[attr]))
            potentials[(attr,)] = single + np.log(self.shares[attr])
        return GraphicalModel(self.whole, model.total, potentials, fit=model.fit, arrays=model.arrays)
