"""``mechanism="auto"``: the mechanism for people who name none, chosen from public facts alone.

    public data    marginals, δ > 0          ladder where it would be taken without public data, and public
                                             records would be further off than its noise; otherwise
                                             aperture, or mst where it has too many trees to price
                   other queries, δ > 0      hdmm where public records would be further off than its noise;
                                             otherwise pmw-pub
                   marginals, δ = 0          ladder where public records would be further off than its noise;
                                             otherwise mwem-pub
                   other queries, δ = 0      mwem-pub
    none           marginals, δ > 0          ladder where attributes have few values and the workload few
                                             numbers, where its noise is small, or where it could hear
                                             at most a third of the pairs; otherwise aperture, or mst
                                             where there are too many marginals for it
                   marginals, δ = 0          ladder; mwem where the workload is too large for it
                   other queries, δ > 0      hdmm where its noise is small beside n; otherwise mwem
                   other queries, δ = 0      mwem

``by_size.py`` says what "few", "small" and MWEM's rounds are. Why: ``benchmarks/utility/auto_table.py``
prints, for every comparison that is kept, what this rule takes and how far that is from the best. Nothing
private goes in: the schema's domain, the workload, ε and δ, which public data there are, n where the unit
keeps it fixed, whether the ledger's promise is larger than this release, and whether criteria are judged.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sidelight import _check
from sidelight.data.domain import Domain
from sidelight.data.table import Table
from sidelight.errors import SettingError
from sidelight.mechanisms.base import Mechanism
from sidelight.mechanisms.by_size import Size, planned, rounds_of, too_large, worthwhile_rounds
from sidelight.mechanisms.candidates import (
    MOST_CANDIDATES,
    has_too_many,
    has_too_many_trees,
    oversized_marginals,
)
from sidelight.mechanisms.mwem import MWEM
from sidelight.mechanisms.mwem_pub import MWEMPub
from sidelight.mechanisms.pmw_pub import PMWPub
from sidelight.mechanisms.registry import AUTO, mechanism_of
from sidelight.privacy.budget import Budget
from sidelight.public.source import WeightedRecords, records_telling
from sidelight.queries.query import Marginal
from sidelight.queries.workload import Workload


@dataclass(frozen=True)
class Choice:
    """A mechanism, and in a sentence why it was taken; None where a person named it."""

    mechanism: Mechanism
    why: str | None = None


def choose(
    domain: Domain,
    workload: Workload,
    *,
    budget: Budget,
    public: Any,
    settings: Mapping[str, Any],
    size: Size,
    may_be_pure: bool = True,
) -> Choice:
    """The mechanism for this workload, this budget and these public data, with the settings given for it.

    Settings belong to the mechanism that is chosen for a large workload: with settings, none is planned.
    ``may_be_pure`` says that Laplace noise may be taken at δ > 0, too (``by_size.planned``).
    """
    if not settings:
        mechanism = planned(domain, workload, budget, size, public=public, may_be_pure=may_be_pure)
        if mechanism is not None:
            return Choice(mechanism, _planned_because(mechanism, domain, workload, budget, size, public))
    if workload.only_marginals and not budget.is_pure:
        if public is None and not settings and has_too_many(domain, workload):
            return Choice(
                _of("mst", {"oversized": "skip"}),
                f"The workload has {len(workload):,} marginals, and with those below them more than the "
                f"{MOST_CANDIDATES:,} that aperture can look at; mst measures pairs along a tree of its "
                "attributes.",
            )
        if not settings and has_too_many_trees(domain, workload):
            why = f"{len(domain):,} attributes and {len(workload):,} marginals are too many for aperture; mst"
            why += " measures pairs along a tree of them."
            if public is not None:
                why += " It takes no public data: these are left aside."
            return Choice(_of("mst", {"oversized": "skip"}), why)
        chosen = _of("aperture", settings)
        # The plan, the card and the report name the marginals that are too large to be measured.
        if oversized_marginals(domain, workload, limit_mb=chosen.settings()["max_model_mb"]):
            chosen = _of("aperture", {"oversized": "skip", **settings})
        return Choice(chosen, _aperture_because(domain, workload, public, settings))
    _refuse_unusable(public, domain, budget)
    if budget.is_pure:
        if public is None:
            mwem = _mwem(domain, workload, budget, size, settings)
            return Choice(mwem, "δ = 0 asks for pure ε, which mwem can keep, without public data.")
        rounds = worthwhile_rounds(
            MWEM(candidates="queries", accounting="pure"), budget, size, most=MWEMPub.rounds
        )
        return Choice(
            _of("mwem-pub", {"accounting": "pure", "rounds": rounds, **settings}),
            "δ = 0 asks for pure ε, which mwem-pub can keep, with a public table.",
        )
    if public is not None:
        rounds = worthwhile_rounds(MWEM(candidates="queries"), budget, size, most=PMWPub.rounds)
        return Choice(
            _of("pmw-pub", {"rounds": rounds, **settings}),
            "The workload holds other queries than marginals; pmw-pub answers them, by reweighing public "
            "records.",
        )
    return Choice(
        _mwem(domain, workload, budget, size, settings),
        "The workload holds other queries than marginals; mwem answers them, and needs no public data.",
    )


def _mwem(
    domain: Domain, workload: Workload, budget: Budget, size: Size, settings: Mapping[str, Any]
) -> Mechanism:
    """MWEM: one number at a time, as in its paper, unless some queries are tables."""
    has_tables = any(isinstance(query, Marginal) for query in workload)
    mwem = MWEM(
        candidates="cuboids" if has_tables else "queries", accounting="pure" if budget.is_pure else "zcdp"
    )
    given = {"candidates": mwem.candidates, "accounting": mwem.accounting}
    return _of("mwem", {"rounds": rounds_of(mwem, domain, budget, size), **given, **settings})


def _planned_because(
    mechanism: Mechanism, domain: Domain, workload: Workload, budget: Budget, size: Size, public: Any
) -> str:
    """Why noise was planned, and what is lost by it, in sentences."""
    beside = "For this workload, " if size.records is None else f"Beside {size.records:,} records, "
    if public is not None:
        why = (
            f"{beside}the noise that {mechanism.name} plans is likely to be less than what the "
            f"{public.records:,} public records are off by: these are left aside."
        )
        if lost := workload.leaves_out(domain):
            measures = "aperture" if workload.only_marginals else "pmw-pub"
            keeps = "mwem-pub" if budget.is_pure else measures
            told = _check.listed(lost)
            why += f" So is what they tell of {told}, outside the workload; {keeps} would keep it."
    elif mechanism.name == "hdmm":
        why = f"{beside}the noise that hdmm plans is small."
    elif budget.is_pure:
        why = "δ = 0 asks for pure ε, and ladder has erred least with it where we compared mechanisms."
    else:
        why = f"{beside}ladder is expected to err least: it measures what was planned, and selects nothing."
    if not budget.is_pure and mechanism.settings().get("accounting") == "pure":
        why += " Its noise is that of pure ε, which is less here; it leaves nothing for others in a ledger."
    return why


def _aperture_because(domain: Domain, workload: Workload, public: Any, settings: Mapping[str, Any]) -> str:
    """Why APERTURE was taken, in a sentence: by the rule that led to it."""
    told = "The workload consists of marginals, and"
    if public is not None:
        return f"{told} aperture has made the most of public data where we compared mechanisms."
    if settings:
        return f"{told} settings were given; without public data these go to aperture."
    bound = too_large(domain, workload)
    if bound is None:
        return f"{told} ladder cannot take them; aperture can."
    return f"{told} {bound}; there aperture erred least where we compared mechanisms."


def _of(name: str, settings: Mapping[str, Any]) -> Mechanism:
    try:
        return mechanism_of(name, dict(settings))
    except SettingError as error:
        raise SettingError(
            f"{error} The mechanism was chosen for you ({AUTO}); to use the settings of another one, name it."
        ) from error


def _refuse_unusable(public: Any, domain: Domain, budget: Budget) -> None:
    """Refuse public data that only APERTURE could use, where APERTURE cannot run."""
    given = public if isinstance(public, list | tuple) else [public]
    is_table = all(isinstance(one, Table | WeightedRecords) for one in given)
    if public is None or (is_table and any(records_telling(one, domain.attrs) for one in given)):
        return
    asked = "δ = 0" if budget.is_pure else "a workload with other queries than marginals"
    raise SettingError(
        f"with {asked}, public data can help only as records with every column of the schema. Leave the "
        "public data out, or ask for whole marginals with δ above 0."
    )
