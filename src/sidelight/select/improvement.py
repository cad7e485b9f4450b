"""APERTURE's score: how much measuring a marginal is expected to lower its error.

    score_c = w_c · EI_c(E_c),      E_c = ‖x_c − μ_c‖₁,      0 < w_c ≤ 1

The cells are taken to deviate from the model with variances r² v_i, in given proportions v; r is such that
the expected error is E. Earlier measurements hold each cell with a precision P; measuring adds 1/σ²:

    E      = C Σ_i r √v_i                                                             C = √(2/π)
    EI(E)  = C Σ_i (1/(r² v_i) + P)^(−½)  −  C Σ_i (1/(r² v_i) + P + 1/σ²)^(−½)

A large marginal that noise would swamp scores about 0, and not far below it; so does one that is known well.

Sensitivity. r is in proportion to E, and the slopes in E of the two sums are

    Σ_i √v_i (1 + P r² v_i)^(−3/2) / Σ_i √v_i     and     Σ_i √v_i (1 + (P + 1/σ²) r² v_i)^(−3/2) / Σ_i √v_i,

the second at most the first, term by term, and both in [0, 1]; so is their difference. Hence
|EI(E) − EI(E′)| ≤ |E − E′| ≤ Δ₁ of the marginal, for any v, P and σ, which are all public. Errors are cut at
4n (cutting is 1-Lipschitz). Each sum adds positive numbers by pairs, with less than 64 roundings of each: for
a sum of at most 4n, less than n·2⁻⁴⁴. Twice n·2⁻⁴⁰ is added to the sensitivity.
"""

import math
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sidelight.data.domain import Attrs
from sidelight.privacy.unit import Unit
from sidelight.queries.query import Query
from sidelight.select.score import ManyAtOnce

Array = NDArray[np.float64]

_C1 = math.sqrt(2 / math.pi)
_BINS_PER_OCTAVE = 8
"""Cells whose v lie in one eighth of an octave (9%) are grouped; sums move by less than a thousandth."""
_SLACK = Fraction(1, 2**40)


@dataclass(frozen=True, eq=False)
class Profile:
    """The proportions v of one marginal, cells of about the same v taken together."""

    roots: Array
    """√v of each group of cells."""
    cells: Array
    """How many cells it has."""

    @classmethod
    def of(cls, variance: Array) -> "Profile":
        """Group the cells of a marginal; every v must be above 0.

        >>> Profile.of(np.array([4.0, 9.0, 4.0])).cells.tolist()
        [2.0, 1.0]
        """
        place = np.floor(np.log2(variance) * _BINS_PER_OCTAVE).astype(np.int64)
        place -= place.min()
        cells = np.bincount(place).astype(np.float64)
        roots = np.bincount(place, np.sqrt(variance))
        held = cells > 0
        return cls(roots[held] / cells[held], cells[held])

    def expected_error(self, reach: float, precision: float) -> float:
        """C Σ_i (1/(r² v_i) + P)^(−½)."""
        if reach == 0.0:
            return 0.0
        left = self.cells / np.sqrt((reach * self.roots) ** -2.0 + precision)
        return _C1 * float(left.sum())

    def improvement(self, error: float, *, precision: float, stddev: float) -> float:
        """EI(E): what is expected to be left of the error by P, less what measuring leaves of it."""
        reach = error / (_C1 * float(self.cells @ self.roots))
        return self.expected_error(reach, precision) - self.expected_error(reach, precision + stddev**-2)


@dataclass(frozen=True, eq=False)
class Prospect:
    """A candidate before selection: all of it public."""

    profile: Profile
    precision: float
    """P: what earlier measurements hold on each cell."""
    weight: float
    """w, at most 1."""

    def __post_init__(self) -> None:
        assert 0 < self.weight <= 1


@dataclass(frozen=True, eq=False)
class ExpectedImprovement(ManyAtOnce):
    """The gain that is expected of measuring each candidate with noise of this σ, in records."""

    prospect: Callable[[Attrs, Array], Prospect]
    """A candidate's prospect, from its attributes and the model's answer to it."""
    _: KW_ONLY
    stddev: float
    total: float

    def sensitivity(self, unit: Unit, query: Query) -> Fraction:
        # PRIVACY: EI is 1-Lipschitz in E (see above), E moves by Δ₁ of the marginal, and w ≤ 1. Each of two
        # scores may be off by n·2⁻⁴⁰, for residuals and rounding.
        return query.l1(unit) + 2 * _SLACK * Fraction(self.total)

    def score(self, query: Query, counts: Array, exact: NDArray[Any]) -> float:
        prospect = self.prospect(query.attrs, counts)
        error = min(float(np.abs(exact - np.maximum(counts, 0.0)).sum()), 4.0 * self.total)
        return prospect.weight * prospect.profile.improvement(
            error, precision=prospect.precision, stddev=self.stddev
        )
