"""A door for one number about a private table: the best-mixture error of a public one.

f moves by at most k/n when one person's k records are replaced (Liu et al. 2021, lemma 4.2). That
holds for the exact minimum alone, so the linear program is solved until its certificate proves the
value right to τ, and the sensitivity is k/n + 2τ (spec 9.3, M10 and M11). Should the certificate ever
fail (no table that was tried made it fail), the run ends in an error after payment: that it did is
then one bit about the table which ε does not cover.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sidelight.data.table import Table
from sidelight.door import Door
from sidelight.errors import DataError, SettingError
from sidelight.estimate.support import Support
from sidelight.evaluation.best_mixture import exact, shares_of, tolerance_for
from sidelight.measure.laplace import laplace
from sidelight.privacy import event as events
from sidelight.privacy.budget import Cost
from sidelight.queries.workload import Workload

_STEPS_PER_RECORD = 64
"""The grid that the noise is drawn on is so much finer than 1/n."""


@dataclass(frozen=True, kw_only=True)
class NoisyMixture:
    """A released best-mixture error: public once it exists."""

    error: float
    """f with noise; it may fall outside [0, 1]."""
    stddev: float
    """σ of that noise."""
    is_private: bool = False
    """It may be published: noise was drawn and paid for."""


class ScreeningCurator(Door):
    """Holds a private table; tells how well public tables could imitate it, with noise that was paid for."""

    def __init__(self, table: Table, **settings: Any) -> None:
        super().__init__(**settings)
        if not self.unit.total_is_public:
            raise SettingError(
                "the best-mixture error compares shares, and under add-or-remove n is private; "
                "screen under unit='replace'."
            )
        if table.records == 0:
            raise DataError("the private table holds no records.")
        self._table = table

    def best_mixture(self, public: Table, workload: Workload, cost: Cost, *, name: str) -> NoisyMixture:
        """Pay, write, look, draw: the best-mixture error of one public table, with Laplace noise."""
        # PRIVACY: n is public under replacement (spec 9.2, N9), and everything here derives from it.
        n = self._table.records
        tolerance, step = Fraction(1, 20 * n), Fraction(1, _STEPS_PER_RECORD * n)
        support = Support.of_table(public, total=1.0)
        # PRIVACY: |f − f'| ≤ k/n; each solution is within τ of its own f; rounding to the grid moves a
        # difference by at most one step.
        l1 = (Fraction(self.unit.records, n) + 2 * tolerance) / step + 1
        event = events.Laplace.at(cost, what=f"best-mixture error of {name}", l1=l1)

        def look() -> NDArray[np.int64]:
            marginals, shares = shares_of(self._table, workload)
            found = exact(support, marginals, shares, tolerance=tolerance_for(n))
            return np.array([round(found.high / float(step))], dtype=np.int64)

        noisy = self._pay_then(event, look, lambda on_grid: laplace(self._noise, on_grid, event))
        self._tell(f"screened {name}")
        return NoisyMixture(error=float(noisy[0]) * float(step), stddev=event.stddev * float(step))
