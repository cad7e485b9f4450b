"""How far up an interval reaches: records that a model misplaced are somewhere.

An interval that is as wide above a count as below it suits symmetric errors. A model's errors are skewed: no
count is below 0, and the model is off by most where it says that there are few records. Of three-way cells
that hold 1% of the records or more, symmetric intervals of MWEM held 84%, and nearly all others were too low
(benchmarks/utility/coverage.py). Two things are asked of the upper end.

**It is right for records, not for cells.** Cells are many and mostly small; people ask about large ones. Who
draws a record, and looks at its cell, finds a cell of x records with a chance in proportion to x. If x has
the mean m and the variance V, then so drawn it has

    E x²/E x = m + V/m

and, for gamma distributions, about the variance V + (V/m)². So the upper end is raised by V/m, and reaches as
many of these standard errors further as it would of √V. Where V is small beside m², next to nothing changes.

**Nothing is beyond reach.** A table whose expected error is e has a share u = e/2 of its records in wrong
cells. A model that is off by much may say 0 where many are. So m is (1 − u) μ + u n/c in a table of c cells,
and

    B = (u² n/c)² c^0.8

is added to the variance: as a model that nothing told of the table would err, weighed by u⁴. It is felt where
a third of the records or more are misplaced, and lost in V otherwise.

PRIVACY: functions of released counts and of errors said of them; post-processing.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

_SKEW = 0.8
"""n Σ p² of an attribute of n values is about n to this power, on the tables of coverage.py."""


def skew(values: int) -> float:
    """n Σ p² of an attribute of n values of which nothing is known: a few of them are common.

    >>> round(skew(10), 1)
    6.3
    """
    return float(values**_SKEW)


@dataclass(frozen=True, eq=False)
class Misplaced:
    """Records that the model misplaced, and that counts may hold; arrays have the shape of the counts."""

    room: Array
    """m: how many records are expected in a cell."""
    variance: Array
    """B."""

    @classmethod
    def of(cls, estimate: Array, total: float, *, share: float) -> Self:
        """The misplaced records that cells of a table may hold, if this share of all is misplaced."""
        even = total / max(estimate.size, 1)
        room = (1 - share) * np.maximum(estimate, 0.0) + share * even
        variance = (share**2 * even) ** 2 * skew(estimate.size)
        return cls(np.maximum(room, 1e-12), np.full(estimate.shape, variance))

    def each(self, of: Callable[[Array], Array]) -> Self:
        """The same for sums of cells, or for some of the cells."""
        return type(self)(of(self.room), of(self.variance))

    def reach(self, quantile: float, skewed: Array, stddev: Array) -> Array:
        """From the count to the upper end: ``skewed`` is V, ``stddev`` the standard error with noise in it.

        >>> one = Misplaced(np.array([100.0, 1.0]), np.zeros(2))
        >>> one.reach(2.0, np.array([25.0, 25.0]), np.array([5.0, 5.0])).round(1).tolist()
        [10.3, 76.0]
        """
        raised = skewed / self.room
        return np.asarray(raised + quantile * np.sqrt(stddev**2 + self.variance + raised**2))
