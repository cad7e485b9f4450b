"""Common to MWEM+PUB and PMW-Pub, which reweigh public records and measure one number a round.

Checks before a run, the noise and memory to expect, and remarks on values that no public record has.
"""

from collections.abc import Iterator
from typing import Any

from sidelight import _check
from sidelight.data.domain import Domain
from sidelight.data.table import Table
from sidelight.errors import DataError, SettingError
from sidelight.measurement import NoiseKind, measuring, stddev_of
from sidelight.mechanisms.base import Outlook
from sidelight.models.support import Support, missing_values
from sidelight.privacy.budget import Cost
from sidelight.privacy.event import Gaussian, Laplace
from sidelight.privacy.unit import Unit
from sidelight.public.source import PublicRecords, records_telling, require_whole_records, sources_of
from sidelight.queries.query import Cell, Marginal
from sidelight.queries.workload import Workload

_MOST_RECORDS = 2**31
"""Most records of a support: all there may be."""
ONE_NUMBER = Cell((), ())
"""A cell of a marginal, for its sensitivity, which is the same for all cells."""


def numbers_noisiest(
    workload: Workload, cost: Cost, unit: Unit, *, total: Cost, noise: NoiseKind | None = None
) -> Iterator[Gaussian | Laplace]:
    """The total where it is not public, and every single number of the workload at a round's cost."""
    if not unit.total_is_public:
        yield measuring(Marginal(()), total, unit)
    for query in workload:
        asked = ONE_NUMBER if isinstance(query, Marginal) else query
        yield measuring(asked, cost, unit, noise=noise)


def check_public_share(public_share: float) -> None:
    """Refuse a share of the public records that is not above 0 and at most 1."""
    _check.positive(public_share=public_share)
    if public_share > 1:
        raise SettingError(f"public_share must be a share of at most 1; got {public_share!r}.")


def check_rounds(rounds: int, n: float, stddev: float) -> None:
    """Refuse rounds whose noise exceeds the number of records, and say how many rounds make sense."""
    if stddev <= max(n, 1.0):
        return
    # σ grows like √T for Gaussian noise and like T for Laplace noise; √T gives the larger number of rounds.
    sensible = int(rounds * (n / 4 / stddev) ** 2)
    advice = (
        f"use at most {sensible} rounds"
        if sensible
        else "no number of rounds makes sense here: raise epsilon"
    )
    raise SettingError(
        f"rounds = {rounds} leaves so little budget for each round that its noise (σ = {stddev:.3g}) exceeds "
        f"the number of records; {advice}. Nothing was charged."
    )


def require_public_support(who: str, domain: Domain, public: Any) -> None:
    """Refuse public data without records that have every attribute."""
    require_whole_records(who, domain, sources_of(who, public))
    if domain.impossible:
        public_support(who, public, domain, total=1.0)  # refuses tables of impossible records alone


def left_out_notes(who: str, domain: Domain, public: Any) -> tuple[str, ...]:
    """How many public records a mechanism that reweighs them leaves out, because they leave a value open."""
    sources = sources_of(who, public)
    every = sum(source.records for source in sources)
    whole = sum(records_telling(source, domain.attrs) for source in sources)
    if round(whole) >= round(every):
        return ()
    return (
        f"{who} reweighs whole public records: it uses {whole:,.0f} of {every:,.0f}, and leaves out those "
        "that do not tell of every column; aperture would use them.",
    )


def public_support(
    who: str, public: Any, domain: Domain, *, total: float, share: float = 1.0, seed: int = 0
) -> Support:
    """The public records that have every attribute, weighted as they count; or a random share of them."""
    if isinstance(public, Table) and public.domain == domain:
        return Support.of_table(public, total=total, share=share, seed=seed, domain=domain)
    records = PublicRecords.of(domain, sources_of(who, public))
    whole = records.whole(most=_MOST_RECORDS, seed=seed, share=share)
    if whole is None:
        raise DataError(
            "no public record has every attribute without a combination that the schema declares impossible. "
            "Check the combinations, or give another public table."
        )
    return whole.distinct.with_total(total)


def support_notes(support: Support, workload: Workload) -> tuple[str, ...]:
    """Remarks on values of the workload's attributes that no public record has."""
    return tuple(
        f"{attr}: {missing} of {support.domain.sizes[attr]} values occur in no public record; "
        "the release counts 0 there, whatever the private table holds"
        for attr, missing in missing_values(support, workload.attrs).items()
    )


def support_outlook(
    rounds: int,
    measure_cost: Cost,
    unit: Unit,
    domain: Domain,
    workload: Workload,
    max_cache_mb: float,
    *,
    noise: NoiseKind | None = None,
) -> Outlook:
    """The outlook of mechanisms on the public support: noise and memory."""
    answers = 8 * sum(domain.size(attrs) for attrs in workload.attribute_sets)
    return Outlook(
        measurements=rounds,
        stddev=stddev_of(ONE_NUMBER, measure_cost, unit, noise=noise),
        model_bytes=int(max_cache_mb * 2**20) + answers,
        counting_bytes=answers,
        notes=(
            f"the model takes {8 * (len(domain) + 4)} bytes for each distinct public record, and at most "
            f"max_cache_mb = {max_cache_mb:g} MB for their cell numbers; where that is too little, rounds "
            "take longer",
        ),
    )
