"""What the noisy answers of a release say of the counts over some attributes."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import NDArray

from sidelight.data.count_source import margin
from sidelight.data.domain import Attrs, Domain
from sidelight.measurement import Measurement, noise_stddev
from sidelight.queries.merged import Merged
from sidelight.queries.query import Marginal
from sidelight.uncertainty.model_error import pairs_of

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class MergedAnswer:
    """An answer to a marginal that counted rare values together; arrays have the shape of the marginal."""

    alone: NDArray[np.bool_]
    """The cells that it counted singly."""
    counts: Array
    """Its numbers, each in all cells that it counted together."""
    variance: float


class Answers:
    """All noisy answers of a release."""

    def __init__(self, domain: Domain, made: Sequence[Measurement]) -> None:
        self.made, self._domain = made, domain
        self.attrs = frozenset(attr for one in made for attr in one.query.attrs)
        self.pairs = pairs_of(made)
        self._marginals = [one for one in made if isinstance(one.query, Marginal)]
        self._merged = [one for one in made if isinstance(one.query, Merged)]

    def stddev(self, attrs: Attrs) -> float | None:
        """σ of a cell of the mean of all answers to marginals that hold these attributes."""
        return noise_stddev(self._marginals, attrs, self._domain)

    def mean(self, attrs: Attrs) -> Array:
        """That mean, each answer weighed by its precision."""
        stddev, found = self.stddev(attrs), np.zeros(self._domain.project(attrs).shape)
        assert stddev is not None
        for one in self._holding(attrs):
            held = one.query.attrs
            precision = one.precision * self._domain.size(attrs) / self._domain.size(held)
            answer = one.answer.reshape(self._domain.project(held).shape)
            found += precision * stddev**2 * margin(answer, held, attrs)
        return found

    def finest(self, attrs: Attrs) -> Attrs:
        """The marginal that tells most of these attributes."""
        held = self._holding(attrs)
        return max(held, key=lambda one: one.precision / self._domain.size(one.query.attrs)).query.attrs

    def merged(self, attrs: Attrs) -> list[MergedAnswer]:
        """The answers about exactly these attributes that counted rare values together."""
        found = []
        for one in self._merged:
            query = cast(Merged, one.query)
            if set(query.attrs) == set(attrs):
                turned = [query.attrs.index(attr) for attr in attrs]
                counts = query.transpose(one.answer, self._domain.project(query.attrs).shape)
                found.append(
                    MergedAnswer(query.alone.transpose(turned), counts.transpose(turned), one.stddev**2)
                )
        return found

    def _holding(self, attrs: Attrs) -> list[Measurement]:
        return [one for one in self._marginals if set(attrs) <= set(one.query.attrs)]
