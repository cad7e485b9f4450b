"""How a table's size decides in ``choice.py``: whether planned noise suffices, and MWEM's rounds.

LADDER and HDMM measure what was planned; their errors are about those of their noise, and known before
anything is read. A mechanism that selects measures less, with less noise, and guesses the rest. So planned
noise is best where a workload has few numbers, where the noise on all of them is small, or where it would
drown most relations anyway, so that selecting could not find them. The bounds below were chosen on the tables
of ``benchmarks/utility/auto_runs.py`` that it does not keep out.
"""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sidelight.data.domain import Domain
from sidelight.data.table import Table
from sidelight.errors import SidelightError
from sidelight.mechanisms.base import Mechanism
from sidelight.mechanisms.hdmm.hdmm import HDMM
from sidelight.mechanisms.ladder.ladder import Ladder
from sidelight.mechanisms.mwem import MWEM
from sidelight.mechanisms.mwem_check import round_stddev
from sidelight.privacy.budget import Budget
from sidelight.privacy.unit import Unit
from sidelight.public.source import records_telling
from sidelight.queries.query import expected_l1_noise
from sidelight.queries.strategy import Closure
from sidelight.queries.workload import Workload

_FEW, _FEW_VALUES = 50_000, 16
"""LADDER is taken where a workload's marginals, with those below them, have at most so many cells, and no
attribute has more than so many values: mechanisms that select model more of them in groups (bins.py)."""
_NEAR, _MANY = 0.1, 1_000_000
"""Above either bound, LADDER is still taken where there are at most ``_MANY`` cells and its expected error is
below ``_NEAR`` of n: its noise drowns few relations."""
_HEARD, _MANY_VALUES = 1 / 3, 50
"""It is also taken where its plan measures at most this share of the pairs, and no attribute has more than so
many values: noise would leave selecting among pairs to chance. Of more values, groups gain more."""
_MOST_SETS = 20_000
"""Most marginals of a workload for which noise is planned: more take long."""
_RANGES = 0.03
"""HDMM is taken where σ of a range is less than this share of n, on average."""
_PUBLIC_IS_OFF, _AND_MEASURED = 2.1, 0.5
"""LADDER is taken where its expected error is below so many times the distance that chance alone puts between
the two tables, at δ = 0 and above: it overstates its error, and public tables differ by more than chance, but
APERTURE, which is taken above, corrects them by measuring."""
_COUNTED = 300
"""Most marginals of a public table that are counted, to see how far off chance alone would make them."""
_IN_TIME = 20_000
"""MWEM's rounds times √cells are at most this: time grows as rounds² × cells, here to two minutes or so."""
_UNKNOWN = 10_000
"""The n that this choice assumes where n is private."""


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
    domain: Domain, workload: Workload, budget: Budget, size: Size, *, public: Any, may_be_pure: bool
) -> Mechanism | None:
    """The mechanism with planned noise, where that suffices; None where it does not.

    Beside a public table it suffices where that is likely to be further off (``_unhelped``).

    Laplace noise counts for much in a ledger that also pays for Gaussian noise (``Budget.admits``), and looks
    that are paid in ε are less precise than those paid in ρ. So ``may_be_pure`` is true at δ > 0 only where a
    release has its ledger for itself, and no criteria are judged.
    """
    if len(workload) > _MOST_SETS:
        return None
    try:
        if public is not None:
            return _unhelped(domain, workload, budget, size, public, may_be_pure=may_be_pure)
        if workload.only_marginals:
            return _ladder(domain, workload, budget, size, may_be_pure=may_be_pure)
        return None if budget.is_pure else _hdmm(domain, workload, budget, size, share=_RANGES)
    except SidelightError:  # what it refuses, others may take
        return None


def _ladder(
    domain: Domain, workload: Workload, budget: Budget, size: Size, *, may_be_pure: bool
) -> Ladder | None:
    pure, zcdp = Ladder(accounting="pure"), Ladder()
    zcdp.check(domain, workload, None)
    if budget.is_pure:
        return pure
    error = _expected(zcdp, domain, workload, budget, size)
    if too_large(domain, workload) is None:
        return pure if may_be_pure and _expected(pure, domain, workload, budget, size) < error else zcdp
    is_near = error < _NEAR and _numbers(domain, workload, most=_MANY) <= _MANY
    heard = zcdp.heard(domain, workload, budget.rho(), size.unit, n=size.n)
    is_lost = heard <= _HEARD and _widest(domain, workload)[1] <= _MANY_VALUES
    return zcdp if is_near or is_lost else None


def too_large(domain: Domain, workload: Workload) -> str | None:
    """Which bound keeps LADDER from these marginals at δ > 0, as a clause; None where all are kept."""
    if len(workload) > _MOST_SETS:
        return f"there are more than {_MOST_SETS:,} of them"
    widest, values = _widest(domain, workload)
    if values > _FEW_VALUES:
        return f"{widest} has {values:,} values, which is more than {_FEW_VALUES}"
    if _numbers(domain, workload, most=_FEW) <= _FEW:
        return None
    return f"its tables, and those below them, have more than {_FEW:,} cells"


def _widest(domain: Domain, workload: Workload) -> tuple[str, int]:
    """The attribute of most values among those that a workload asks about, and how many it has."""
    sizes = [(attr, domain.sizes[attr]) for attr in sorted(workload.attrs)]
    return max(sizes, key=lambda one: one[1], default=("", 0))


def _numbers(domain: Domain, workload: Workload, *, most: int) -> int:
    """The cells of a workload's marginals, and of those below them unless the former are more than ``most``.

    Marginals below large ones are too many to be listed.
    """
    asked = {domain.varying(attrs) for attrs in workload.attribute_sets}
    numbers = sum(map(domain.size, asked))
    return numbers if numbers > most else int(Closure.of(domain, workload.attribute_sets).cells.sum())


def _expected(mechanism: Ladder, domain: Domain, workload: Workload, budget: Budget, size: Size) -> float:
    allotment = mechanism.allotment(budget)
    return mechanism.expected_error(domain, workload, allotment=allotment, unit=size.unit, n=size.n)


def _unhelped(
    domain: Domain, workload: Workload, budget: Budget, size: Size, public: Any, *, may_be_pure: bool
) -> Mechanism | None:
    """Planned noise beside a public table, where it is less than that table is likely to be off by.

    If m public and n private records were drawn from the same people, chance alone would set a share p apart
    by √(p(1 − p)(1/m + 1/n)); that of a range by half of √(1/m + 1/n) at most.
    """
    if not (isinstance(public, Table) and records_telling(public, domain.attrs)):
        return None
    chance = math.sqrt(1 / public.records + 1 / size.n)
    if not workload.only_marginals:
        share = min(_RANGES, chance / 2)
        return None if budget.is_pure else _hdmm(domain, workload, budget, size, share=share)
    ladder = _ladder(domain, workload, budget, size, may_be_pure=may_be_pure)
    if ladder is None:
        return None
    sets = workload.attribute_sets
    counts = public.count_many(sets[:: math.ceil(len(sets) / _COUNTED)])
    shares = (np.asarray(one) / public.records for one in counts)
    off = chance * float(np.mean([expected_l1_noise(1, np.sqrt(p * (1 - p)).sum()) for p in shares]))
    most = off * (_PUBLIC_IS_OFF if budget.is_pure else _AND_MEASURED)
    return ladder if _expected(ladder, domain, workload, budget, size) < most else None


def _hdmm(domain: Domain, workload: Workload, budget: Budget, size: Size, *, share: float) -> HDMM | None:
    mechanism = HDMM()
    mechanism.check(domain, workload, None)
    told = mechanism.outlook(domain, workload, allotment=mechanism.allotment(budget), unit=size.unit)
    return mechanism if told.stddev < share * size.n else None


def rounds_of(mwem: MWEM, domain: Domain, budget: Budget, size: Size) -> int:
    """MWEM's rounds: as many as are worthwhile, and as there is time for."""
    in_time = _IN_TIME / math.sqrt(min(domain.size(), mwem.max_component_cells))
    return worthwhile_rounds(mwem, budget, size, most=math.ceil(in_time))


def worthwhile_rounds(mwem: MWEM, budget: Budget, size: Size, *, most: int) -> int:
    """The most rounds, each of which removes more error than its noise adds.

    The error that T rounds leave is about 1.5 n/T^1.5, and the error that they add is the noise of one of
    them. Laplace noise counts double: its tails are heavier, and selecting is noisier beside it. So does the
    noise of marginals, which is in every cell.
    """
    allotment = mwem.allotment(budget)
    weight = (2 if mwem.accounting == "pure" else 1) * (1 if mwem.candidates == "queries" else 2)

    def is_worthwhile(rounds: int) -> bool:
        stddev = round_stddev(replace(mwem, rounds=rounds), allotment, size.unit)
        return weight * stddev <= 1.5 * size.n / math.pow(rounds, 1.5)

    rounds = 1
    while rounds < most and is_worthwhile(rounds + 1):
        rounds += 1
    return rounds
