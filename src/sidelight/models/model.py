"""The models that mechanisms fit: each can be counted and sampled like a table."""

from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from sidelight._check import is_number
from sidelight.data.count_source import CountSource
from sidelight.data.domain import Attrs
from sidelight.data.table import Table
from sidelight.errors import ReleaseError
from sidelight.models.evidence import Evidence

Array = NDArray[np.float64]

_MOST_RECORDS = 2**53
"""Above this a 64-bit float cannot hold every whole number."""


@runtime_checkable
class Model(CountSource, Protocol):
    """A distribution over the domain, scaled to a total: counted, sampled, conditioned and saved."""

    @property
    def total(self) -> float: ...
    def count(self, attrs: Attrs) -> Array: ...
    def sample(self, records: int, *, seed: int) -> Table: ...
    def given(self, evidence: Evidence) -> "Model | None":
        """The same model given the evidence, its total the records that are left; None where none are."""
        ...

    def state(self) -> "ModelState": ...


@dataclass(frozen=True, eq=False)
class ModelState:
    """A model as plain values: what is saved, and all that is needed to load it."""

    kind: str
    meta: dict[str, Any]
    """JSON values."""
    arrays: dict[str, NDArray[Any]] = field(repr=False)
    """One flat or shaped array per name."""

    @property
    def total(self) -> float:
        """The number of records that the model is scaled to; checked, since the file may be a stranger's."""
        total = self.meta["total"]
        if not is_number(total) or not 0 < total <= _MOST_RECORDS:
            raise ReleaseError("a saved model's total must be a number of records; it was edited.")
        return float(total)

    def weights(self, name: str = "weights", *, total: float | None = None) -> Array:
        """An array of weights, checked: finite, none negative, and together the total where one is given."""
        weights = self.arrays[name].astype(np.float64)
        with np.errstate(over="ignore", invalid="ignore"):
            found = float(weights.sum())
        if not (np.isfinite(found) and (weights >= 0).all()):
            raise ReleaseError("a saved model's weights must be finite and not negative; they were edited.")
        if total is not None and not np.isclose(found, total, rtol=1e-6):
            raise ReleaseError("a saved model's weights must add up to its total; they were edited.")
        return weights
