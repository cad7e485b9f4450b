"""``mechanism="auto"``: the mechanism for people who name none, chosen from public facts alone.

    marginals, δ > 0            aperture, with public data or without
    other queries, δ > 0        pmw-pub with a public table, mwem without
    any queries, δ = 0          mwem-pub with a public table, mwem without; both in pure ε

Where n is public, and there are no public data, noise alone may be less than any model's error, and its size
is known beforehand (``by_size.py``):

    δ > 0                       hdmm, if the noise that it plans is small beside n
    binary marginals, δ = 0     barak, likewise
    otherwise, mwem             as many rounds as n and ε bear

Why: ``benchmarks/utility/auto_table.py`` prints, for every comparison that is kept, what this rule takes and
how far that is from the best. Nothing private goes in: the schema's domain, the workload, ε and δ, which
public data there are, and n where the unit keeps it fixed.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sidelight.data.domain import Domain
from sidelight.data.table import Table
from sidelight.errors import SettingError
from sidelight.mechanisms.base import Mechanism
from sidelight.mechanisms.by_size import Size, noise_alone, rounds_of
from sidelight.mechanisms.candidates import oversized_marginals
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
    size: Size | None = None,
) -> Choice:
    """The mechanism for this workload, this budget and these public data, with the settings given for it.

    A setting belongs to the mechanism that is chosen without n, so with settings n is not looked at.
    """
    if size is not None and public is None and not settings:
        planned = noise_alone(domain, workload, budget, size)
        if planned is not None:
            said = f"the noise that {planned.name} plans for this workload is small"
            return Choice(planned, f"Beside {size.records:,} records, {said}.")
    if workload.only_marginals and not budget.is_pure:
        chosen = _of("aperture", settings)
        # The plan, the card and the report name the marginals that are too large to be measured.
        if oversized_marginals(domain, workload, limit_mb=chosen.settings()["max_model_mb"]):
            chosen = _of("aperture", {"oversized": "skip", **settings})
        compared = "erred least on most tables" if public is None else "has made most of public data"
        return Choice(
            chosen,
            f"The workload consists of marginals, and aperture {compared} where we compared mechanisms.",
        )
    _refuse_unusable(public, domain, budget)
    if budget.is_pure:
        name, how = ("mwem", "without public data") if public is None else ("mwem-pub", "with a public table")
        rounds = {} if public is not None else {"rounds": rounds_of(domain, workload, budget, size)}
        return Choice(
            _of(name, {"accounting": "pure", **rounds, **settings}),
            f"δ = 0 asks for pure ε, which {name} can keep, {how}.",
        )
    if public is not None:
        return Choice(
            _of("pmw-pub", settings),
            "The workload holds other queries than marginals; pmw-pub answers them, by reweighing public "
            "records.",
        )
    # One number at a time, as in MWEM's paper, unless some queries are tables.
    numbers = not any(isinstance(query, Marginal) for query in workload)
    one_by_one = {"candidates": "queries", "rounds": rounds_of(domain, workload, budget, size)}
    return Choice(
        _of("mwem", (one_by_one if numbers else {}) | dict(settings)),
        "The workload holds other queries than marginals; mwem answers them, and needs no public data.",
    )


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
