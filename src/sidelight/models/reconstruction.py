"""A table that is known by its residuals: answers of any marginal, and records that follow them.

A marginal whose residuals are all known is their sum. Any other is the distribution of largest entropy with
the marginals that are known of it, found by proportional fitting on its own cells alone. Records come from
weighted particles: drawn from a tree of the pairs that depend most on each other, then raked to all known
marginals.

PRIVACY: a function of noisy answers; post-processing.
"""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sidelight._check import is_number
from sidelight.data.domain import Attrs, Domain
from sidelight.data.impossible import possible_cells
from sidelight.data.table import Table
from sidelight.errors import ReleaseError, TooLargeError
from sidelight.measurement import Measurement
from sidelight.models.evidence import Evidence
from sidelight.models.graphical import GraphicalModel
from sidelight.models.model import Array, ModelState
from sidelight.models.particles import drawn_from, raked, room_for
from sidelight.models.products import Products, impossible_to_json, with_impossible
from sidelight.models.residuals import Estimate, Residuals, centred
from sidelight.models.support import Support, compact
from sidelight.queries.strategy import subsets

_MOST_CELLS = 2**27
"""Most cells of one marginal: a gibibyte."""
_SWEEPS, CLOSE, ROUGHLY = 50, 1e-5, 1e-3
"""Proportional fitting: most sweeps; it stops once a sweep moves at most ``CLOSE`` of the total, or
``ROUGHLY`` in models that the next round replaces."""
_KEPT_CELLS = 2**26
"""Most cells, about, of the marginals that are kept for the next round: half a gibibyte."""
_PARTICLES_MB = 80.0
_MOST_SWEEPS, _RAKED = 10, 3000
"""Raking: most sweeps, and about how many marginals in all of them. The tree is near already."""
_SEED = 0
"""Which particles are drawn: a release has one set of them, whatever sample is asked for."""
_LEAST = 1e-12
"""The least probability of a cell in the tree, so that its logarithm is a number."""


@dataclass(frozen=True, eq=False)
class Reconstruction:
    """A model over residuals, scaled to their total."""

    known: Residuals | Products = field(repr=False)
    is_clipped: bool = True
    """Whether counts below 0 are taken for 0; otherwise they are the unbiased answers, negative ones too."""
    seen: int = 0
    """How many measurements the residuals are made of."""
    kept: dict[Attrs, Array] = field(default_factory=dict, repr=False)
    """Marginals that were asked for, read-only: the next round asks again for most of them."""
    close: float = CLOSE
    """Proportional fitting stops once a sweep moves at most this share of the total."""

    @property
    def domain(self) -> Domain:
        return self.known.domain

    @property
    def total(self) -> float:
        return self.known.total

    def count(self, attrs: Attrs) -> Array:
        """The marginal on these attributes, axes in the order asked."""
        if attrs in self.kept:
            return self.kept[attrs]
        if self.domain.size(attrs) > _MOST_CELLS:
            raise TooLargeError(
                f"the marginal {' × '.join(attrs)} has {self.domain.size(attrs):.3g} cells, more than "
                f"{_MOST_CELLS:,}. Ask for fewer attributes, or count synthetic records."
            )
        is_known = self.known.holds(attrs)
        if is_known and not self.is_clipped:
            return self.known.count(attrs)
        found = self._possible(attrs, self.known.count(attrs)) if is_known else self.of_largest_entropy(attrs)
        if len(self.kept) * found.size <= _KEPT_CELLS:
            self.kept[attrs] = read_only(found)
        return found

    def with_measured(self, measurements: Sequence[Measurement]) -> "Reconstruction":
        """The model with more measurements; marginals that they do not touch need not be counted again."""
        touched = {attr for made in measurements for attr in made.query.attrs}
        kept = {attrs: counts for attrs, counts in self.kept.items() if touched.isdisjoint(attrs)}
        if isinstance(self.known, Products):
            raise TypeError("products of matrices are measured once; nothing is added to them.")
        known = self.known.adding(measurements)
        if known.parts[()].values != self.known.parts[()].values:
            # n is private, and what is known of it has changed. Scaled counts would not be those that are
            # counted anew, and a resumed run, which has nothing kept, would go another way.
            kept = {}
        return replace(self, known=known, seen=self.seen + len(measurements), kept=kept)

    def count_each(self, wanted: Sequence[Attrs]) -> Iterator[tuple[int, Array]]:
        """Many marginals, each with its place among those asked for."""
        return ((place, self.count(attrs)) for place, attrs in enumerate(wanted))

    def _possible(self, attrs: Attrs, counts: Array) -> Array:
        """Counts of at least 0, none where the domain declares it impossible, with the right total."""
        counts = np.asarray(np.maximum(counts, 0.0))
        if self.domain.impossible:
            counts[~possible_cells(self.domain, attrs)] = 0.0
        whole = counts.sum()
        if not whole > 0:
            return self._possible(attrs, np.ones(counts.shape))
        return np.asarray(counts * (self.total / whole))

    def of_largest_entropy(self, attrs: Attrs) -> Array:
        """The counts of largest entropy with the marginals that are known of these attributes."""
        shape = tuple(self.domain.sizes[attr] for attr in attrs)
        largest = self._largest_known(tuple(attrs))
        targets = []
        for below in largest:
            around = tuple(size if attr in below else 1 for attr, size in zip(attrs, shape, strict=True))
            aside = tuple(axis for axis, attr in enumerate(attrs) if attr not in below)
            targets.append((aside, self._clipped(below).reshape(around)))
        if not self.domain.impossible and sum(map(len, largest)) == len(set().union(*largest)):
            # Marginals that share nothing are independent of each other.
            found = np.ones(shape)
            for _, wanted in targets:
                found *= wanted
            return np.asarray(found * (self.total / found.sum()))
        found = self._possible(attrs, np.ones(shape))
        for _ in range(_SWEEPS):
            before = found.copy()
            for aside, wanted in targets:
                now = found.sum(axis=aside, keepdims=True)
                found *= np.divide(wanted, now, out=np.zeros(now.shape), where=now > 0)
            # Counts that were cut off at 0 may contradict each other, so that no table has all of them.
            if len(targets) < 2 or np.abs(found - before).sum() <= self.close * self.total:
                break
        whole = found.sum()
        return np.asarray(found * (self.total / whole)) if whole > 0 else self._possible(attrs, found)

    def _largest_known(self, attrs: Attrs) -> list[Attrs]:
        """The largest sets among these attributes whose marginals are known."""
        known: list[Attrs] = []
        for below in reversed(subsets(attrs)):  # each after all that hold it
            inside = set(below)
            if below and not any(inside.issubset(other) for other in known) and self.known.holds(below):
                known.append(below)
        return known

    def _clipped(self, attrs: Attrs) -> Array:
        """A known marginal, with no count below 0."""
        return self.count(attrs) if self.is_clipped else self._possible(attrs, self.known.count(attrs))

    def sample(self, records: int, *, seed: int) -> Table:
        """Synthetic records, from particles that follow the known marginals."""
        return self.particles.sample(records, seed=seed)

    def given(self, evidence: Evidence) -> Support | None:
        """The particles that meet a condition."""
        return self.particles.given(evidence)

    @cached_property
    def particles(self) -> Support:
        """Weighted records whose marginals are close to those that are known."""
        room = room_for(self.domain, _PARTICLES_MB)
        if self.domain.size() <= room:
            weights = self._possible(self.domain.attrs, np.ones(self.domain.shape)).reshape(-1)
            codes = np.indices(self.domain.shape).reshape(len(self.domain), -1).T[weights > 0]
            drawn = Support(self.domain, compact(codes, self.domain), weights[weights > 0], self.total)
        else:
            drawn = drawn_from(self.tree, room=room, seed=_SEED)
        positive = Reconstruction(self.known)
        known = [attrs for attrs in self.known.maximal if attrs]
        sweeps = max(2, min(_MOST_SWEEPS, _RAKED // max(1, len(known))))
        return raked(drawn, positive, known, sweeps=sweeps)

    @cached_property
    def tree(self) -> GraphicalModel:
        """A tree of known pairs, those first that tell most of each other; its marginals are theirs."""
        positive = Reconstruction(self.known)
        singles: dict[Attrs, Array] = {
            (attr,): np.maximum(positive.count((attr,)) / self.total, _LEAST)
            for attr in self.domain.attrs
            if self.known.holds((attr,))
        }
        told: list[tuple[float, Attrs, Array]] = []
        for pair in itertools.combinations([attr for (attr,) in singles], 2):
            if self.known.holds(pair):
                shares = np.maximum(positive.count(pair) / self.total, _LEAST)
                excess = np.log(shares) - np.log(np.multiply.outer(singles[pair[:1]], singles[pair[1:]]))
                told.append((float((shares * excess).sum()), pair, excess))
        potentials = {attrs: np.log(shares) for attrs, shares in singles.items()}
        stands = {attr: attr for attr in self.domain.attrs}
        for _, (a, b), excess in sorted(told, key=lambda one: -one[0]):
            if (old := stands[a]) != (new := stands[b]):
                stands = {attr: new if to == old else to for attr, to in stands.items()}
                potentials[a, b] = excess
        return GraphicalModel(self.domain, self.total, potentials)

    def state(self) -> ModelState:
        """All residuals with their variances."""
        if isinstance(self.known, Products):
            return self.known.state(is_clipped=self.is_clipped)
        parts = self.known.parts
        meta = {
            "total": self.total,
            "is_clipped": self.is_clipped,
            "impossible": impossible_to_json(self.domain),
            "residuals": [[list(attrs), part.variance] for attrs, part in parts.items()],
        }
        values = np.concatenate([part.values.reshape(-1) for part in parts.values()])
        return ModelState("residuals", meta, {"values": values})

    @classmethod
    def from_state(cls, domain: Domain, state: ModelState) -> "Reconstruction":
        """The model that ``state`` wrote down."""
        domain = with_impossible(domain, state.meta["impossible"])
        if "products" in state.meta:
            return cls(Products.from_state(domain, state), is_clipped=bool(state.meta["is_clipped"]))
        values: NDArray[Any] = state.arrays["values"].astype(np.float64)
        parts: dict[Attrs, Estimate] = {}
        start = 0
        for names, variance in state.meta["residuals"]:
            attrs = tuple(names)
            shape = domain.project(attrs).shape
            size = int(np.prod(shape))
            part = values[start : start + size]
            is_variance = is_number(variance) and 0 <= variance < np.inf
            if part.size != size or not np.isfinite(part).all() or not is_variance:
                raise ReleaseError("a saved model's residuals must be finite numbers; they were edited.")
            if attrs != domain.canonical(attrs):
                raise ReleaseError("a saved model's residuals must name attributes in order; it was edited.")
            table = part.reshape(shape)
            parts[attrs] = Estimate(centred(table) if attrs else table, float(variance))
            start += size
        if () not in parts or start != values.size:
            raise ReleaseError("a saved model's residuals do not fit its numbers; it was edited.")
        return cls(Residuals(domain, parts), is_clipped=bool(state.meta["is_clipped"]))


def read_only(counts: Array) -> Array:
    """Counts that may be given out again and again, since nobody can change them."""
    counts.setflags(write=False)
    return counts
