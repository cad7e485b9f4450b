"""Latent classes: public records as a mixture of classes, within each of which attributes are independent.

    p(x) = Σ_k π_k Π_a θ_ak(x_a)

A tree says all of a few marginals and nothing of the others; classes say a little of every one. Fitted to the
same records they err in other places, so a mixture of both is closer to the truth than either. Several fits
from random starts are taken together as one model, with all their classes: that evens out where each fit got
stuck.

Fitted by expectation maximisation, where every class is given one more record that is like all of them:

    r_ik ∝ π_k Π_a θ_ak(x_ia)          π_k ∝ Σ_i w_i r_ik + ½          θ_ak ∝ Σ_i w_i r_ik [x_ia] + θ_a

A step takes time in proportion to records, attributes and classes, whatever the size of the domain.

PRIVACY: a function of public records alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from sidelight.data.domain import Attrs, Domain
from sidelight.data.impossible import is_possible
from sidelight.models.support import Support, compact

Array = NDArray[np.float64]
Floats = NDArray[np.float32]

_CLASSES = 64
"""Of one fit; those that the records do not need end up alike."""
_FITS, _READ = 8, 16_000
"""Most fits, and most records that all of them together read: more records need fewer fits."""
_STEPS = 40
_EVEN = 0.3
"""Of the Dirichlet distribution that records are first given to classes by: each to a few of them."""
_OWN = 0.5
"""Records' worth that every class has to itself."""


@dataclass(frozen=True, eq=False)
class LatentClasses:
    """A mixture of classes over a domain."""

    domain: Domain
    shares: Array
    """π, summing to 1."""
    tables: Sequence[Floats]
    """θ of each attribute: one row for each of its values, one column a class, which sums to 1."""

    @classmethod
    def of(cls, records: Support, *, seed: int) -> "LatentClasses":
        """Fit weighted records; their total says how many there are.

        >>> domain = Domain.of({"a": 2, "b": 2})
        >>> alike = Support(domain, np.array([[0, 0], [1, 1]]), np.array([5e3, 5e3]), 1e4)
        >>> np.round(LatentClasses.of(alike, seed=0).count(("a", "b")), 2)
        array([[0.5, 0. ],
               [0. , 0.5]])
        """
        rng = np.random.default_rng(seed)
        codes, weights = records.records, records.weights
        if len(codes) > _READ:
            some = rng.choice(len(codes), _READ, replace=False)
            codes, weights = codes[some], weights[some]
        number = max(1, min(_FITS, _READ // len(codes)))
        fits = [_fitted(records.domain, codes, weights, rng) for _ in range(number)]
        shares = np.concatenate([share for share, _ in fits]) / len(fits)
        tables = [
            np.concatenate([table[place] for _, table in fits], axis=1)
            for place in range(len(records.domain))
        ]
        return cls(records.domain, shares, tables)

    def count(self, attrs: Attrs) -> Array:
        """Shares on a marginal."""
        # The widest attribute last: it comes in by a matrix product, and classes are summed over then.
        inner = tuple(sorted(attrs, key=lambda attr: self.domain.sizes[attr]))
        tables = [self.tables[place] for place in self.domain.index(inner)]
        found = np.zeros(self.domain.size(attrs))
        # A fit at a time: all classes together would be the marginal many times over.
        for start in range(0, len(self.shares), _CLASSES):
            some = slice(start, start + _CLASSES)
            grown: Floats = self.shares[None, some].astype(np.float32)
            for table in tables[:-1]:
                grown = (grown[:, None, :] * table[None, :, some]).reshape(-1, grown.shape[1])
            found += (grown @ tables[-1][:, some].T).reshape(-1)
        turned = found.reshape(self.domain.project(inner).shape)
        return np.transpose(turned, [inner.index(attr) for attr in attrs])

    def draw(self, number: int, *, seed: int) -> Support:
        """Records drawn from it, of one weight each, with total 1; none that cannot be.

        Of each class as many as its share says, and of each attribute within it as many of every value as
        that says, but for rounding: what is left to chance is how they meet.
        """
        rng = np.random.default_rng(seed)
        ends = np.cumsum(self.shares) * number
        owner = np.searchsorted(ends, np.arange(number) + rng.random(), side="right")
        owner = np.minimum(owner, len(self.shares) - 1)
        first = np.searchsorted(owner, np.arange(len(self.shares)))
        size = np.maximum(np.bincount(owner, minlength=len(self.shares)), 1)
        codes = compact(np.zeros((number, len(self.domain)), dtype=np.int8), self.domain)
        for place, table in enumerate(self.tables):
            # Places in random order within each class, spread evenly between 0 and 1.
            order = np.empty(number, dtype=np.int64)
            order[np.lexsort((rng.random(number), owner))] = np.arange(number)
            level = (order - first[owner] + rng.random(number)) / size[owner]
            below = np.cumsum(table, axis=0, dtype=np.float64)
            rising = (below / below[-1] + np.arange(len(self.shares))).T.reshape(-1)
            value = np.searchsorted(rising, level + owner, side="right") - owner * len(table)
            codes[:, place] = np.clip(value, 0, len(table) - 1)
        kept = codes[is_possible(self.domain, codes)]
        return Support(self.domain, kept, np.full(len(kept), 1 / max(len(kept), 1)), 1.0)


def _fitted(
    domain: Domain, codes: NDArray[np.integer], weights: Array, rng: np.random.Generator
) -> tuple[Array, list[Floats]]:
    """Π and θ of one fit from a random start."""
    number, width = codes.shape
    starts = np.concatenate([[0], np.cumsum(domain.shape)])
    marks = (codes + starts[:-1]).reshape(-1)
    shown = csr_array(
        (np.ones(marks.size, dtype=np.float32), marks, np.arange(0, marks.size + 1, width)),
        shape=(number, int(starts[-1])),
    )
    each = np.repeat(weights.astype(np.float32), width)
    weighted = csr_array((each, marks, shown.indptr), shape=shown.shape).T.tocsr()
    # One more record, evenly spread, so that no value is impossible.
    sizes = np.repeat(np.array(domain.shape, dtype=np.float32), domain.shape)
    alike = (weighted.sum(axis=1) + 1 / sizes) / np.float32(weights.sum() + 1)
    belongs = rng.dirichlet(np.full(_CLASSES, _EVEN), size=number).astype(np.float32)
    for _ in range(_STEPS):
        mass = weights.astype(np.float32) @ belongs
        tables = (weighted @ belongs + alike[:, None]) / (mass + 1)
        shares = (mass + _OWN) / (mass + _OWN).sum()
        belongs = shown @ np.log(tables)
        belongs += np.log(shares)
        belongs -= belongs.max(axis=1, keepdims=True)
        np.exp(belongs, out=belongs)
        belongs /= belongs.sum(axis=1, keepdims=True)
    found = [tables[start:end] for start, end in pairwise(starts)]
    return shares.astype(np.float64), found
