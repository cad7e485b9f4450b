"""What was fitted: anything that can be counted and sampled like a table."""

from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from sidelight.data.domain import Attrs, Domain
from sidelight.data.table import Table

Array = NDArray[np.float64]


class Model(Protocol):
    """A distribution over the domain, scaled to a total."""

    @property
    def domain(self) -> Domain: ...
    @property
    def total(self) -> float: ...
    def count(self, attrs: Attrs) -> Array: ...
    def sample(self, records: int, *, seed: int) -> Table: ...
    def state(self) -> "ModelState": ...


@dataclass(frozen=True, eq=False)
class ModelState:
    """A model as plain values: what is saved, and all that is needed to load it."""

    kind: str
    meta: dict[str, Any]
    """JSON values."""
    arrays: dict[str, NDArray[Any]] = field(repr=False)
    """One flat or shaped array per name."""
