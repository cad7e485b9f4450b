"""The curator for one number about a private table: the best-mixture error of a public one.

f moves by at most k/n when one person's k records are replaced (Liu et al. 2021, lemma 4.2). That holds for
the exact minimum alone. ``exact`` gives, for every table, a number that is proved to be within τ of it, so
the released number moves by at most k/n + 2τ (spec 9.3, M10 and M11). ``exact`` succeeds for every table, so
whether an answer comes does not depend on private data. A request that is too large, too noisy or of the
wrong kind is recognised from public facts, and refused before anything is paid (``screening``).
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sidelight.curator.door import Door
from sidelight.data.table import Table
from sidelight.errors import SettingError
from sidelight.evaluation.best_mixture import exact, frequencies_of, tolerance_for
from sidelight.measurement import laplace
from sidelight.models.support import Support
from sidelight.privacy import event as events
from sidelight.privacy.budget import Cost
from sidelight.privacy.unit import Unit
from sidelight.queries.workload import Workload

_STEPS_PER_RECORD = 64
"""Noise is drawn on a grid whose steps are 1/n divided by this."""


@dataclass(frozen=True, kw_only=True)
class NoisyMixture:
    """A released best-mixture error; it may be published."""

    error: float
    """f with noise; it may fall outside [0, 1]."""
    stddev: float
    """σ of that noise."""
    is_private: bool = False
    """False: noise was drawn and paid for."""


def check_unit(unit: Unit) -> None:
    """Refuse a unit under which n is private."""
    if not unit.total_is_public:
        who = "unit 'add-or-remove'"
        if unit.person is not None:
            who = f"a unit with person = {unit.person!r}, whatever its records,"
        raise SettingError(
            "screening compares frequencies, so the number of records must be public, as under 'replace' "
            f"without a column of people; under {who} it is private. Nothing was charged. Instead, rehearse "
            "a release on each public table, which costs nothing (`sidelight rehearse`); or use 'aperture', "
            "whose release says how far it had to move away from its public data."
        )


def spending(cost: Cost, *, name: str, unit: Unit, n: int) -> events.Laplace:
    """The event of screening one public table, in steps of the grid; refused if the noise cannot be drawn."""
    check_unit(unit)
    # PRIVACY: |f − f'| ≤ k/n, and ≤ 1; each number is within τ of its own f; rounding to the grid moves a
    # difference by at most one step. All of it derives from n, public under replacement (spec 9.2, N9).
    moved = Fraction(min(unit.records, n), n) + 2 * tolerance_for(n)
    event = events.Laplace.at(cost, what=f"best-mixture error of {name}", l1=moved / _step(n) + 1)
    event.require_drawable()
    return event


def _step(n: int) -> Fraction:
    return Fraction(1, _STEPS_PER_RECORD * n)


class ScreeningCurator(Door):
    """Holds a private table, and releases the best-mixture error of public tables with noise, for a price."""

    def __init__(self, table: Table, **settings: Any) -> None:
        super().__init__(**settings)
        check_unit(self.unit)
        self._table = table

    def best_mixture(self, public: Support, workload: Workload, cost: Cost, *, name: str) -> NoisyMixture:
        """Pay, write, look, draw: the best-mixture error of one public table, with Laplace noise."""
        # PRIVACY: n is public under replacement (spec 9.2, N9), and check_unit refuses the rest.
        n = self._table.records
        event, step = spending(cost, name=name, unit=self.unit, n=n), _step(n)

        def look() -> NDArray[np.int64]:
            marginals, frequencies = frequencies_of(self._table, workload)
            found = exact(public, marginals, frequencies, tolerance=tolerance_for(n))
            # PRIVACY: a fraction, so that nothing but this rounding moves it.
            return np.array([round(Fraction(found.high) / step)], dtype=np.int64)

        noisy = self._pay_then(event, look, lambda on_grid: laplace(self._noise, on_grid, event))
        self._tell(f"screened {name}")
        return NoisyMixture(error=float(noisy[0]) * float(step), stddev=event.stddev * float(step))
