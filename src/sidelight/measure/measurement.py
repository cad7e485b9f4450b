"""A noisy answer with its standard deviation: public once it exists."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from sidelight.queries.query import Query

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Measurement:
    """What the curator answered: the query, the noisy answer as a flat vector, and σ of each number."""

    query: Query
    answer: Array = field(repr=False)
    stddev: float

    @property
    def precision(self) -> float:
        """1/σ², the weight of this measurement in a least-squares fit."""
        return 1.0 / self.stddev**2
