"""A model of groups of values, refined to the values: each value has its share of its group.

    p(x) = p′(group of x) · Π_a share_a(x_a)

Within a group, an attribute is independent of all others.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from sidelight.data.count_source import count_each
from sidelight.data.domain import Attrs, Domain
from sidelight.data.grouping import Grouping, sum_by_groups
from sidelight.data.table import Table
from sidelight.errors import ReleaseError
from sidelight.models.evidence import Evidence
from sidelight.models.load import model_from_state
from sidelight.models.model import Array, Model, ModelState
from sidelight.models.rounding import round_to


@dataclass(frozen=True, eq=False)
class Refined:
    """A model of groups, and each value's share of its group.

    >>> from sidelight.models.histogram import Histogram
    >>> grouping = Grouping(Domain.of({"age": 3}), {"age": (0, 1, 1)})
    >>> coarse = Histogram.uniform(grouping.domain, total=8.0)
    >>> Refined(coarse, grouping, {"age": np.array([1.0, 0.25, 0.75])}).count(("age",))
    array([4., 1., 3.])
    """

    model: Model
    grouping: Grouping
    shares: Mapping[str, Array] = field(repr=False)
    """For each grouped attribute, each value's share of its group."""

    @property
    def domain(self) -> Domain:
        return self.grouping.whole

    @property
    def total(self) -> float:
        return self.model.total

    def count(self, attrs: Attrs) -> Array:
        return self._refined(tuple(attrs), self.model.count(tuple(attrs)))

    def count_each(self, wanted: Sequence[Attrs]) -> Iterator[tuple[int, Array]]:
        """Many marginals, each with its index, in the order in which the model of groups counts them."""
        for place, counts in count_each(self.model, wanted):
            yield place, self._refined(wanted[place], counts)

    def _refined(self, attrs: Attrs, counts: Array) -> Array:
        counts = self.grouping.spread(attrs, counts)
        for axis, attr in enumerate(attrs):
            if attr in self.shares:
                along = [-1 if place == axis else 1 for place in range(len(attrs))]
                counts = counts * self.shares[attr].reshape(along)
        return counts

    def given(self, evidence: Evidence) -> "Refined | None":
        """A group is as likely as its values make it; within it, the values that are left share anew."""
        of_groups, shares = dict(evidence), dict(self.shares)
        for attr in self.shares.keys() & evidence.keys():
            groups = np.array(self.grouping.of(attr))
            kept = self.shares[attr] * evidence[attr]
            of_groups[attr] = sum_by_groups(kept, [self.grouping.of(attr)])
            whole = of_groups[attr][groups]
            shares[attr] = np.divide(kept, whole, out=self.shares[attr].copy(), where=whole > 0)
        inner = self.model.given(of_groups)
        return None if inner is None else Refined(inner, self.grouping, shares)

    def sample(self, records: int, *, seed: int) -> Table:
        """Synthetic records of groups, whose values are drawn by their shares."""
        rng = np.random.default_rng([seed, 1])
        codes = self.model.sample(records, seed=seed).codes().astype(np.int64)
        for place, attr in enumerate(self.domain.attrs):
            if attr in self.shares:
                codes[:, place] = self._values(attr, codes[:, place], rng)
        return Table.of_codes(self.domain, codes)

    def _values(self, attr: str, drawn: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
        groups = np.array(self.grouping.of(attr))
        values = np.empty_like(drawn)
        for group in range(self.grouping.domain.sizes[attr]):
            among, here = np.flatnonzero(groups == group), np.flatnonzero(drawn == group)
            counts = round_to(self.shares[attr][among], here.size, rng)
            values[here] = rng.permutation(np.repeat(among, counts))
        return values

    def state(self) -> ModelState:
        inner = self.model.state()
        arrays = {f"model_{name}": array for name, array in inner.arrays.items()}
        arrays["shares"] = np.concatenate(list(self.shares.values()))
        groups = {attr: list(self.grouping.of(attr)) for attr in self.shares}
        return ModelState(
            "refined", {"groups": groups, "model": {"kind": inner.kind, "meta": inner.meta}}, arrays
        )

    @classmethod
    def from_state(cls, domain: Domain, state: ModelState) -> "Refined":
        """The model that ``state`` wrote down."""
        described = state.meta["model"]
        if described["kind"] == "refined":
            raise ReleaseError("a saved model's groups cannot be groups of groups; it was edited.")
        groups = {attr: tuple(of_code) for attr, of_code in state.meta["groups"].items()}
        for attr, of_code in groups.items():
            is_whole = all(type(group) is int for group in of_code)
            if not is_whole or len(of_code) != domain.project([attr]).shape[0]:
                raise ReleaseError("a saved model must give a group to each value; it was edited.")
            if set(of_code) != set(range(max(of_code) + 1)):
                raise ReleaseError("a saved model's groups must be numbered from 0 on; it was edited.")
        grouping = Grouping(domain, groups)
        weights = state.weights("shares")
        ends = np.cumsum([len(of_code) for of_code in groups.values()])
        if not groups or weights.shape != (ends[-1],):
            raise ReleaseError("a saved model must have a share for each grouped value; it was edited.")
        shares = dict(zip(groups, np.split(weights, ends[:-1]), strict=True))
        for attr, share in shares.items():
            if not np.allclose(sum_by_groups(share, [groups[attr]]), 1.0, rtol=1e-6):
                raise ReleaseError("a saved model's shares of a group must add up to 1; they were edited.")
        arrays = {
            name.removeprefix("model_"): array for name, array in state.arrays.items() if name != "shares"
        }
        inner = ModelState(described["kind"], described["meta"], arrays)
        return cls(model_from_state(grouping.domain, inner), grouping, shares)
