"""What a public n adds to ``choice.py``: whether planned noise is small, and how many rounds to play.

HDMM and Barak et al. measure all that is asked for; their errors are those of their noise, and known before
anything is read. A mechanism that selects measures less, with less noise, and guesses the rest. So planned
noise is best where it is small: the bounds below are where it met the others on the tables of
``benchmarks/utility/auto_small.py`` and ``auto_ranges.py``, on which they were chosen.
"""

import math
from dataclasses import dataclass

from sidelight.data.domain import Domain
from sidelight.errors import SidelightError
from sidelight.mechanisms.barak import Barak
from sidelight.mechanisms.base import Mechanism
from sidelight.mechanisms.hdmm.hdmm import HDMM
from sidelight.privacy.budget import Budget
from sidelight.privacy.unit import Unit
from sidelight.queries.query import Marginal, expected_l1_noise
from sidelight.queries.workload import Workload

_SMALL = 1_000
"""Cells of a small domain. On a larger one, relations that a model leaves out are often not there at all."""
_MOST_QUERIES = 5_000
"""Larger workloads are not planned for: that takes long."""
_MARGINALS = 0.35
"""HDMM is taken on a small domain where a marginal is off by less than this share of n, on average."""
_RANGES = 0.01
"""HDMM is taken where σ of a range is less than this share of n, on average."""
_BINARY = {1: 0.2, 2: 0.2, 3: 0.02}
"""Barak is taken where a marginal of so many attributes is off by less than this share of n."""
_BINARY_LARGE = 0.04
"""The same, on a domain that is not small."""


@dataclass(frozen=True)
class Size:
    """How many records there are, where that is public, and what one person can change."""

    records: int
    unit: Unit


def noise_alone(domain: Domain, workload: Workload, budget: Budget, size: Size) -> Mechanism | None:
    """The mechanism that measures everything, where its noise is small beside n; None where it is not."""
    if len(workload) > _MOST_QUERIES or (budget.is_pure and max(domain.shape) > 2):
        return None
    if workload.only_marginals and not budget.is_pure and domain.size() > _SMALL:
        return None
    mechanism: Mechanism = Barak(accounting="pure") if budget.is_pure else HDMM()
    try:
        mechanism.check(domain, workload, None)
        stddev = mechanism.outlook(
            domain, workload, allotment=mechanism.allotment(budget), unit=size.unit
        ).stddev
    except SidelightError:
        return None
    return mechanism if _is_small(domain, workload, budget, stddev / max(size.records, 1)) else None


def _is_small(domain: Domain, workload: Workload, budget: Budget, stddev: float) -> bool:
    """Whether noise of this σ, as a share of n, is less than a model's error would be."""
    if not workload.only_marginals:
        return stddev < _RANGES
    sets = workload.attribute_sets
    if not budget.is_pure:
        return expected_l1_noise(1, stddev) * sum(map(domain.size, sets)) / len(sets) < _MARGINALS
    degree = max(map(len, sets))
    # A cell of a marginal is the mean of 2^k coefficients.
    off = expected_l1_noise(1, stddev) * 2 ** (degree / 2)
    return off < min(_BINARY.get(degree, 0.0), math.inf if domain.size() <= _SMALL else _BINARY_LARGE)


def rounds_of(domain: Domain, workload: Workload, budget: Budget, size: Size | None) -> int:
    """MWEM's rounds: more records and more ε bear more of them. Without n, by ε alone."""
    numbers = not any(isinstance(query, Marginal) for query in workload)
    epsilon = budget.epsilon
    if size is None:
        if not budget.is_pure:
            return 20
        return 10 if epsilon < 1 else 20 if epsilon < 3 else 40
    reached = math.sqrt(size.records * epsilon)
    if budget.is_pure:
        # A round's noise grows with the number of rounds.
        return min(40, max(4, round(len(domain) * reached / 75))) if not numbers else 10
    # A round's noise grows with the root of it.
    return min(60, max(10, round(reached / 2.5)))
