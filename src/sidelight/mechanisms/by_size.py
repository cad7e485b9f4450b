"""What a table's size adds to ``choice.py``: whether planned noise suffices, and how many rounds to play.

LADDER and HDMM measure what was planned; their errors are about those of their noise, and known before
anything is read. A mechanism that selects measures less, with less noise, and guesses the rest. So planned
noise is best where a workload has few numbers, where all that it asks for is heard, or where hardly any
relation could be heard anyway. The bounds below were chosen on the tables of
``benchmarks/utility/auto_runs.py`` that it does not keep out.
"""

import math
from dataclasses import dataclass, replace

from sidelight.data.domain import Domain
from sidelight.errors import SidelightError
from sidelight.mechanisms.base import Mechanism
from sidelight.mechanisms.hdmm.hdmm import HDMM
from sidelight.mechanisms.ladder.ladder import Ladder
from sidelight.mechanisms.mwem import MWEM
from sidelight.mechanisms.mwem_check import round_stddev
from sidelight.privacy.budget import Budget
from sidelight.privacy.unit import Unit
from sidelight.queries.strategy import Closure
from sidelight.queries.workload import Workload

_FEW, _FEW_VALUES = 50_000, 16
"""LADDER is taken up to so many numbers of a workload, its marginals' cells and those below them, and so many
values of an attribute. Where attributes have more, mechanisms that select model them in groups (bins.py)."""
_NEAR = 0.1
"""With more of either LADDER is taken where it expects to err by less than this share of n: then relations
are heard without selecting."""
_MANY_ATTRIBUTES, _FAR_OFF = 12, 0.5
"""And where there are so many attributes and it expects to err by more than this share: then selecting among
their relations, too, would be left to chance."""
_MOST_SETS = 20_000
"""Larger workloads are not planned for: that takes long."""
_RANGES = 0.03
"""HDMM is taken where σ of a range is less than this share of n, on average."""
_NO_HELP = 0.002
"""Below this share, public records can hardly be as near as that: HDMM would do better without them."""
_IN_TIME = 20_000
"""MWEM's rounds times √cells are at most this: time grows as rounds² × cells, here to two minutes or so."""
_UNKNOWN = 10_000
"""n where it is private, as far as this choice goes."""


@dataclass(frozen=True)
class Size:
    """How many records there are, where that is public, and what one person can change."""

    records: int | None
    unit: Unit

    @property
    def n(self) -> int:
        """The number of records, or a usual one."""
        return _UNKNOWN if self.records is None else max(self.records, 1)


def planned(
    domain: Domain, workload: Workload, budget: Budget, size: Size, *, may_be_pure: bool
) -> Mechanism | None:
    """The mechanism that measures what was planned, where it suffices; None where it does not.

    Laplace noise counts for much in a ledger that also pays for Gaussian noise (``Budget.admits``), and looks
    that are paid in ε are less precise than those paid in ρ. So ``may_be_pure`` at δ > 0 only where a release
    has its ledger for itself, and no criteria are judged.
    """
    if len(workload) > _MOST_SETS:
        return None
    try:
        if workload.only_marginals:
            return _ladder(domain, workload, budget, size, may_be_pure=may_be_pure)
        return None if budget.is_pure else _hdmm(domain, workload, budget, size, share=_RANGES)
    except SidelightError:  # what it refuses, others may take
        return None


def _ladder(
    domain: Domain, workload: Workload, budget: Budget, size: Size, *, may_be_pure: bool
) -> Ladder | None:
    Ladder().check(domain, workload, None)

    def expected(mechanism: Ladder) -> float:
        allotment = mechanism.allotment(budget)
        return mechanism.expected_error(domain, workload, allotment=allotment, unit=size.unit, n=size.n)

    pure = Ladder(accounting="pure")
    if budget.is_pure:
        return pure
    zcdp = Ladder()
    if too_large(domain, workload) is None:
        return pure if may_be_pure and expected(pure) < expected(zcdp) else zcdp
    error = expected(zcdp)
    is_wide = len(_about(workload)) >= _MANY_ATTRIBUTES
    return zcdp if error < _NEAR or (is_wide and error > _FAR_OFF) else None


def too_large(domain: Domain, workload: Workload) -> str | None:
    """Which bound keeps LADDER from these marginals at δ > 0, as a clause; None where all are kept."""
    if len(workload) > _MOST_SETS:
        return f"there are more than {_MOST_SETS:,} of them"
    widest = max(_about(workload), key=lambda attr: domain.sizes[attr], default=None)
    if widest is not None and domain.sizes[widest] > _FEW_VALUES:
        return f"{widest} has {domain.sizes[widest]:,} values, which is more than {_FEW_VALUES}"
    # Without those below them first: of large marginals these are too many to be listed.
    asked = {frozenset(attr for attr in attrs if domain.sizes[attr] > 1) for attrs in workload.attribute_sets}
    is_small = sum(domain.size(tuple(attrs)) for attrs in asked) <= _FEW
    if is_small and Closure.of(domain, workload.attribute_sets).cells.sum() <= _FEW:
        return None
    return f"its tables, and those below them, have more than {_FEW:,} cells"


def _about(workload: Workload) -> list[str]:
    """The attributes that a workload asks about."""
    return sorted({attr for attrs in workload.attribute_sets for attr in attrs})


def needs_no_help(domain: Domain, workload: Workload, budget: Budget, size: Size) -> bool:
    """Whether HDMM, without public data, has less noise than such data are likely to be off by."""
    try:
        return _hdmm(domain, workload, budget, size, share=_NO_HELP) is not None
    except SidelightError:
        return False


def _hdmm(domain: Domain, workload: Workload, budget: Budget, size: Size, *, share: float) -> HDMM | None:
    mechanism = HDMM()
    mechanism.check(domain, workload, None)
    told = mechanism.outlook(domain, workload, allotment=mechanism.allotment(budget), unit=size.unit)
    return mechanism if told.stddev < share * size.n else None


def rounds_of(mwem: MWEM, domain: Domain, budget: Budget, size: Size) -> int:
    """MWEM's rounds: as many as leave out more than their noise brings in.

    T rounds leave out about 1.5 n/T^1.5, and bring in the noise of one of T rounds. Laplace noise counts
    double: its tails are heavier, and selecting is noisier beside it. So does the noise of marginals, which
    is in every cell.
    """
    allotment = mwem.allotment(budget)
    weight = (2 if mwem.accounting == "pure" else 1) * (1 if mwem.candidates == "queries" else 2)
    in_time = _IN_TIME / math.sqrt(min(domain.size(), mwem.max_component_cells))

    def is_worthwhile(rounds: int) -> bool:
        stddev = round_stddev(replace(mwem, rounds=rounds), allotment, size.unit)
        return weight * stddev <= 1.5 * size.n / math.pow(rounds, 1.5)

    rounds = 1
    while rounds < in_time and is_worthwhile(rounds + 1):
        rounds += 1
    return rounds
