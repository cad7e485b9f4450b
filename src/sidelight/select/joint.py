"""JAM's score: a marginal's error less what would be left of it, measured or taken from public data."""

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sidelight.data.domain import Attrs
from sidelight.privacy.unit import Unit
from sidelight.queries.query import Marginal, Query
from sidelight.select.score import ManyAtOnce, l1_error


@dataclass(frozen=True)
class JointCandidate(Marginal):
    """A marginal, and whether to take it from the public table instead of measuring it."""

    is_public: bool = False

    def describe(self) -> str:
        return super().describe() + (" (public)" if self.is_public else "")


@dataclass(frozen=True, eq=False)
class JointError(ManyAtOnce):
    """Score(τ, i) = ‖q_τ(D) − q_τ(p)‖₁ − PredError(τ, i), in counts (spec 6.2)."""

    proxies: Mapping[Attrs, NDArray[np.float64]]
    """The public table's counts of each marginal, scaled to n."""
    _: KW_ONLY
    cell_noise: float

    def sensitivity(self, unit: Unit, query: Query) -> Fraction:
        # PRIVACY: both L1 terms of a public candidate hold q(D), each moves by Δ₁ of the marginal, and
        # they can move in opposite directions: 4 under replacement, attained (spec 9.4 J3, 10.6).
        # Under add-or-remove n is a noisy output, so the proxy is fixed and each term moves by 1.
        return 2 * query.l1(unit)

    def score(self, query: Query, counts: NDArray[np.float64], exact: NDArray[Any]) -> float:
        error = l1_error(exact, counts)
        if isinstance(query, JointCandidate) and query.is_public:
            return error - l1_error(exact, self.proxies[query.attrs])
        return error - self.cell_noise * exact.size
