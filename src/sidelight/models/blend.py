"""A blend of two models: a graphical model for the most part, weighted records for the rest.

    x = (1 − λ) p + λ r

Its marginals are those of both, mixed; its synthetic records come from both, in these shares.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from sidelight.data.domain import Attrs, Domain
from sidelight.data.table import Table
from sidelight.errors import ReleaseError
from sidelight.models.evidence import Evidence
from sidelight.models.graphical import GraphicalModel
from sidelight.models.model import Array, ModelState
from sidelight.models.support import Support


@dataclass(frozen=True, eq=False)
class Blend:
    """``share`` of weighted records, the rest of a graphical model; both of one domain and total.

    >>> domain = Domain.of({"a": 2})
    >>> records = Support(domain, np.array([[0]]), np.array([8.0]), 8.0)
    >>> Blend(GraphicalModel.uniform(domain, total=8.0), records, 0.25).count(("a",))
    array([5., 3.])
    """

    model: GraphicalModel
    records: Support = field(repr=False)
    share: float
    """λ."""

    @property
    def domain(self) -> Domain:
        return self.model.domain

    @property
    def total(self) -> float:
        return self.model.total

    def count(self, attrs: Attrs) -> Array:
        return (1 - self.share) * self.model.count(attrs) + self.share * self.records.count(attrs)

    def count_each(self, wanted: Sequence[Attrs]) -> Iterator[tuple[int, Array]]:
        """Many marginals, in the order of least work, each with its index in ``wanted``."""
        for place, counts in self.model.count_each(wanted):
            yield place, (1 - self.share) * counts + self.share * self.records.count(wanted[place])

    def given(self, evidence: Evidence) -> "Blend | GraphicalModel | Support | None":
        """Both parts under a condition, each with the share that meets it."""
        tree, records = self.model.given(evidence), self.records.given(evidence)
        of_tree = 0.0 if tree is None else (1 - self.share) * tree.total
        of_records = 0.0 if records is None else self.share * records.total
        left = of_tree + of_records
        if tree is None or not of_tree > 0:
            return records.with_total(left) if records is not None and left > 0 else None
        tree = replace(tree, total=left)
        if records is None or not of_records > 0:
            return tree
        return Blend(tree, records.with_total(left), of_records / left)

    def sample(self, records: int, *, seed: int) -> Table:
        """Synthetic records from both, in shares as close to these as whole records allow."""
        rng = np.random.default_rng(seed)
        some = min(records, int(np.floor(records * self.share + rng.random())))
        parts = [self.records.sample(some, seed=seed), self.model.sample(records - some, seed=seed)]
        codes = np.concatenate([part.codes() for part in parts])
        return Table.of_codes(self.domain, codes[rng.permutation(records)])

    def state(self) -> ModelState:
        parts = {"model": self.model.state(), "records": self.records.state()}
        arrays = {
            f"{name}_{key}": array for name, part in parts.items() for key, array in part.arrays.items()
        }
        return ModelState(
            "blend", {"share": self.share} | {name: part.meta for name, part in parts.items()}, arrays
        )

    @classmethod
    def from_state(cls, domain: Domain, state: ModelState) -> "Blend":
        """The model that ``state`` wrote down."""

        def part(name: str, kind: str) -> ModelState:
            start = f"{name}_"
            arrays = {key[len(start) :]: a for key, a in state.arrays.items() if key.startswith(start)}
            return ModelState(kind, state.meta[name], arrays)

        share = state.meta["share"]
        if not isinstance(share, int | float) or not 0 <= share <= 1:
            raise ReleaseError("a saved blend's share must lie between 0 and 1; it was edited.")
        return cls(
            GraphicalModel.from_state(domain, part("model", "graphical")),
            Support.from_state(domain, part("records", "support")),
            float(share),
        )
