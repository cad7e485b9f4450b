"""How far public data are off by chance alone, and how much of that noisy answers can take away.

Public records of the very distribution that the private ones come from still differ from them, by sampling:
with R private records for each public one, a private count strays from its public share of n by the variance
(1 + R) v, where v is what drawing n records gives. A mechanism that rests on public data knows better only by
its noisy answers. So the tables of such a release are off by at least about this much on average, however
small a noisy mean of their errors happens to be (calibration.py).

v is split by what can be measured. With the shares p of single values, the part that belongs to a set S of a
marginal's attributes, and that no smaller set tells of, is in proportion to

    v_S ∝ Π_{a in S} p_a (1 − p_a) · Π_{a not in S} p_a²,        Σ_S v_S = v

(which is exact where the attributes are independent). Answers to marginals that hold S tell its part with the
variance σ_S², so what is left is

    Σ_S 1 / (1/c_S + 1/σ_S²),        c_S = (1 + R_S) v_S

(An answer of fewer numbers than its marginal has cells, as one cell is, counts by its share of them.) Of one
attribute R_S is R. Of several it is 0, since only the private records' own sampling is sure: a model smooths
what public records say of relations, and learns of them from private answers to other marginals.

Where the number of records n is noisy, as where people have several records each, a cell is off by its share
of that noise, too: (μ/n)² σ_n² is added.

PRIVACY: functions of noisy answers, of the model and of public data alone; post-processing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from itertools import product

import numpy as np
from numpy.typing import NDArray

from sidelight.data.domain import Attrs, Domain
from sidelight.measurement import Measurement
from sidelight.uncertainty.dispersion import variance_at_one

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Chance:
    """The error that chance leaves to a release that rests on public records."""

    domain: Domain
    total: float
    measurements: Sequence[Measurement]
    records: Mapping[str, float]
    """How many public records tell of each attribute; attributes that none tells of may be missing."""
    total_stddev: float = 0.0
    """σ_n: the noise in the number of records that the model has."""
    _precise: dict[Attrs, float] = field(default_factory=dict, init=False, repr=False)

    def variance(self, attrs: Attrs, counts: Array) -> Array:
        """The least variance that the cells of a marginal have, by the model's counts; 0 where none is known.

        Of two values that 1,000 public records tell of, among 1,000 private ones, half have each; without
        noisy answers, and with one that is as precise:

        >>> from sidelight.queries.query import Marginal
        >>> domain, half = Domain.of({"a": 2}), np.array([500.0, 500.0])
        >>> Chance(domain, 1000.0, [], {"a": 1000.0}).variance(("a",), half).round().tolist()
        [500.0, 500.0]
        >>> answer = Measurement(Marginal(("a",)), half, 1000**0.5)
        >>> Chance(domain, 1000.0, [answer], {"a": 1000.0}).variance(("a",), half).round().tolist()
        [250.0, 250.0]
        """
        left = np.zeros(counts.shape)
        if self.total <= 0 or not any(self.records.get(attr) for attr in attrs):
            return left
        held = np.maximum(counts, 0.0)
        left += self.total_stddev**2 * (held / self.total) ** 2
        shares = [_along(held, axis) / max(float(held.sum()), 1e-300) for axis in range(held.ndim)]
        even = _product(shares)
        scale = variance_at_one(held, total=self.total, cells=held.size) / np.maximum(even - even**2, 1e-200)
        for kept in product((False, True), repeat=held.ndim):
            some = tuple(attr for attr, is_kept in zip(attrs, kept, strict=True) if is_kept)
            fewest = min((self.records.get(attr, 0.0) for attr in some), default=0.0)
            if fewest > 0:
                parts = [
                    p * np.maximum(1 - p, 0.0) if is_kept else p**2
                    for p, is_kept in zip(shares, kept, strict=True)
                ]
                drawn = scale * _product(parts)
                strays = (1 + self.total / fewest) * drawn if len(some) == 1 else drawn
                left += strays / (1 + strays * self._precision(some, shares, kept))
        return left

    def _precision(self, some: Attrs, shares: Sequence[Array], kept: Sequence[bool]) -> Array:
        """1/σ_S² in each cell: the error of a set's part is spread over other attributes by their shares."""
        if some not in self._precise:
            self._precise[some] = sum(
                made.precision * self._told(made) * self.domain.size(some)
                for made in self.measurements
                if set(some) <= set(made.query.attrs)
            )
        spread = [
            np.array(share.size / max(share.size - 1, 1)) if is_kept else 1 / np.maximum(share, 1e-9) ** 2
            for share, is_kept in zip(shares, kept, strict=True)
        ]
        return self._precise[some] * _product(spread)

    def _told(self, made: Measurement) -> float:
        """The share of its marginal that an answer tells of, over the number of the marginal's cells."""
        return made.answer.size / self.domain.size(made.query.attrs) ** 2


def _along(counts: Array, axis: int) -> Array:
    return np.asarray(counts.sum(axis=tuple(one for one in range(counts.ndim) if one != axis), keepdims=True))


def _product(factors: Sequence[Array]) -> Array:
    return reduce(np.multiply, factors)
