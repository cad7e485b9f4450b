"""Is a public table worth using? Its best-mixture error, exact or released under ε, and a verdict.

A release that reweighs public records errs by at least the best-mixture error. Without public data the
same budget would be spent on measuring the whole workload, which errs by about σ√(2 log cells)/n in the
worst cell. The public table is worth using if the first error is well below the second.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

from sidelight import _check
from sidelight.data.domain import Domain
from sidelight.data.fingerprint import marks_of
from sidelight.data.leak_guard import refuse_same
from sidelight.data.schema import Schema
from sidelight.data.table import Table
from sidelight.errors import DataError, SettingError
from sidelight.evaluation.best_mixture import (
    BestMixture,
    bracketed,
    exact,
    frequencies_of,
    marginals_of,
    tolerance_for,
)
from sidelight.evaluation.mixture_bounds import check_size
from sidelight.evaluation.screening_curator import NoisyMixture, ScreeningCurator, check_unit, spending
from sidelight.measurement import stddev_of
from sidelight.models.support import Support
from sidelight.privacy.budget import Budget
from sidelight.privacy.ledger import MemoryLedger
from sidelight.privacy.unit import Unit
from sidelight.queries.query import Marginal
from sidelight.queries.workload import Workload
from sidelight.releases.public_data import told_table
from sidelight.sources import scheme_of, source_name
from sidelight.statistics.settings import check_keywords, of_keywords
from sidelight.statistics.terms import Terms

Verdict = Literal[
    "as good as a second sample", "worth using", "of little help", "not worth using", "cannot tell"
]


def best_mixture_error(
    private: Any,
    public: Any,
    *,
    schema: Schema | str | Path | None = None,
    workload: Any = "3-way",
    method: Literal["exact", "bracketed"] = "exact",
    epsilon: float | None = None,
    **terms: Any,
) -> BestMixture | NoisyMixture:
    """The largest error, as a frequency, of the best weighting of the public records.

    Without ``epsilon`` the result is computed from exact answers, and marked PRIVATE.
    With ``epsilon`` it is released with Laplace noise, is charged, and may be published.

    Args:
        private: a table of any kind that ``release`` takes.
        public: the public table to judge. If it lacks columns of the schema, it is judged by the marginals
            of those that it has.
        schema: columns, bins and labels; not needed for tables of codes.
        workload: marginals: ``3-way``, a list of attribute sets, a Workload.
        method: ``exact`` by linear programming, or ``bracketed`` by multiplicative weights; both prove
            their bounds. A released error is always the exact one.
        epsilon: what to spend. Without it nothing is spent, and nothing may be published.
        **terms: with ``epsilon``, the fields of ``Terms``: ``unit``, ``ledger`` and ``noise``. The unit must
            be ``"replace"``, since n must be public.
    """
    _check.one_of(("exact", "bracketed"), method=method)
    check_keywords("best_mixture_error", terms, Terms)
    known = None if schema is None else Schema.of(schema)
    other = _read_public(public, known)
    if epsilon is not None:
        refuse_same(private, public)
        found = screen(private, {"public": other}, schema=known, workload=workload, epsilon=epsilon, **terms)
        return found[0].mixture
    domain = other.domain if known is None else known.domain
    one = _candidate("public", other, domain, Workload.of(workload, domain))
    table = _private(private, known, domain)
    marginals, frequencies = frequencies_of(table, one.workload)
    support = one.support
    if method == "bracketed":
        return bracketed(support, marginals, frequencies)
    return exact(support, marginals, frequencies, tolerance=tolerance_for(table.records))


@dataclass(frozen=True, kw_only=True)
class Screened:
    """The result of screening one public table; it may be published."""

    name: str
    mixture: NoisyMixture
    verdict: Verdict
    sentence: str
    """The verdict with its numbers, in words."""
    left_out: tuple[str, ...] = ()
    """Columns that this table tells nothing of. It is judged by the marginals of the other columns."""


def screen(
    private: Any,
    public: Any,
    *,
    epsilon: float,
    schema: Schema | str | Path | None = None,
    workload: Any = "3-way",
    for_epsilon: float = 1.0,
    for_delta: float | None = None,
    **terms: Any,
) -> list[Screened]:
    """Rank candidate public tables, best first.

    Args:
        private: the private table, of any kind that ``release`` takes.
        public: the candidates, by name or as a list. One that lacks columns is judged by the marginals of
            those that it has.
        epsilon: what to spend on all candidates together; each gets an equal part of it.
        schema: columns, bins and labels; not needed for tables of codes.
        workload: marginals: ``3-way``, a list of attribute sets, a Workload.
        for_epsilon: ε of the release to come. A candidate has to beat what that release would achieve
            without public data.
        for_delta: δ of the release to come; 1/n² if None.
        **terms: the fields of ``Terms``: ``unit``, ``ledger``, ``noise``, ``project``, ``approved_by``.
    """
    check_keywords("screen", terms, Terms)
    asked_terms = of_keywords(Terms, terms)
    _check.positive(epsilon=epsilon, for_epsilon=for_epsilon)
    publics = named_tables(public)
    if not publics:
        raise SettingError("there is nothing to screen: give at least one public table.")
    known = None if schema is None else Schema.of(schema)
    promised = Budget(epsilon=epsilon, delta=0.0)
    declared = None if known is None else known.declared_unit
    book = asked_terms.book(promised, name="this screening", declared=declared)
    who = book.promise.unit
    check_unit(who)
    refuse_same(private, list(publics.values()))
    tables = {name: _read_public(one, known) for name, one in publics.items()}
    domain = next(iter(tables.values())).domain if known is None else known.domain
    asked = Workload.of(workload, domain)
    candidates = [_candidate(name, one, domain, asked) for name, one in tables.items()]
    allotment = promised.pure()
    each = allotment / len(candidates)
    book.require(allotment, asked_terms.purpose("screen"))

    # PRIVACY: n is public, or check_unit has refused. What can be refused is refused before it is charged.
    table = _private(private, known, domain)
    n = table.records
    for one in candidates:
        spending(each, name=one.name, unit=who, n=n)
    later = Budget(epsilon=for_epsilon, delta=1 / max(n, 2) ** 2 if for_delta is None else for_delta)
    error_of = partial(error_without_public, domain, asked, n, who, later)
    without = error_of()  # refuses a budget that pays for nothing

    if not isinstance(book, MemoryLedger):
        book.for_table(marks_of(table, private, book.key))
    label = f"screening {_check.count_of(len(candidates), 'public table')}"
    door = partial(ScreeningCurator, table)
    with asked_terms.run(door, book, allotment, label=label, way="screen") as curator:
        mixtures = [
            curator.best_mixture(one.support, one.workload, each, name=one.name) for one in candidates
        ]
    found = [
        _judge(
            one,
            mixture,
            without=error_of(told=one.workload),
            sampling=sampling_error(domain, one.workload, n),
            later=later,
        )
        for one, mixture in zip(candidates, mixtures, strict=True)
    ]
    # Where a table tells nothing, the release errs as it would without public data.
    return sorted(found, key=lambda one: max(one.mixture.error, without if one.left_out else -math.inf))


@dataclass(frozen=True, eq=False)
class _Candidate:
    """A public table, and the marginals that it can be judged by."""

    name: str
    support: Support
    workload: Workload
    left_out: tuple[str, ...]


def _candidate(name: str, public: Table, domain: Domain, asked: Workload) -> _Candidate:
    """Refuses a table of other attributes, or one that tells of no marginal."""
    if not set(public.domain.attrs) <= set(domain.attrs):
        raise SettingError(f"public table {name!r} has other attributes than the first one.")
    told = asked.within(public.domain.attrs)
    left_out = tuple(attr for attr in domain.attrs if attr not in public.domain)
    if told is None:
        raise SettingError(
            f"public table {name!r} tells nothing of {_check.listed(left_out)}, and the workload has no "
            f"table without {_them(left_out)}. Ask for smaller tables, such as '1-way', or leave it out."
        )
    return _Candidate(name, _support(public, told), told, left_out)


def error_without_public(
    domain: Domain,
    workload: Workload,
    n: int,
    unit: Unit,
    budget: Budget,
    *,
    told: Workload | None = None,
) -> float:
    """The largest error to expect, as a share of n, if the budget measured every marginal once.

    σ√(2 log cells)/n with σ² = |W| Δ₂²/2ρ: Gaussian noise on all cells of all marginals. With ``told``, the
    largest over the cells of these marginals alone.
    """
    cells = sum(domain.size(attrs) for attrs in (workload if told is None else told).attribute_sets)
    sigma = stddev_of(Marginal(()), budget.rho() / len(workload.attribute_sets), unit)
    return min(1.0, sigma * math.sqrt(2 * math.log(max(cells, 2))) / n)


def sampling_error(domain: Domain, workload: Workload, n: int) -> float:
    """How far two samples of n records of one population may differ at worst: √(log(2 cells)/n).

    Hoeffding's bound for the difference of two frequencies, over all cells.
    """
    cells = sum(domain.size(attrs) for attrs in workload.attribute_sets)
    return min(1.0, math.sqrt(math.log(2 * max(cells, 1)) / n))


def _judge(
    one: _Candidate, found: NoisyMixture, *, without: float, sampling: float, later: Budget
) -> Screened:
    low = max(0.0, found.error - 2 * found.stddev)
    high = min(1.0, max(found.error, 0.0) + 2 * found.stddev)
    numbers = f"reweighted, its worst count is off by {100 * low:.2g}% to {100 * high:.2g}% of all records"
    beside = f"without public data, ε = {later.epsilon:g} would err by about {100 * without:.2g}%"
    verdict: Verdict
    if high <= min(sampling, without / 2):
        verdict, why = (
            "as good as a second sample",
            f"{numbers}, as that of a second sample of your people may be ({100 * sampling:.2g}%); {beside}",
        )
    elif high <= without / 2:
        verdict, why = "worth using", f"{numbers}; {beside}"
    elif low >= without:
        verdict, why = "not worth using", f"{numbers}; {beside}"
    elif found.stddev > without / 8:
        verdict, why = (
            "cannot tell",
            f"{numbers}, a range too wide to judge by, because of the noise at this ε; {beside}. "
            "Screen fewer tables, or spend more",
        )
    else:
        verdict, why = "of little help", f"{numbers}; {beside}, which is about as good"
    if one.left_out:
        why += f". It tells nothing of {_check.listed(one.left_out)}: tables with {_them(one.left_out)} "
        why += "are not judged"
    sentence = f"{one.name}: {verdict}: {why}."
    return Screened(name=one.name, mixture=found, verdict=verdict, sentence=sentence, left_out=one.left_out)


def _them(columns: tuple[str, ...]) -> str:
    return "it" if len(columns) == 1 else "them"


def named_tables(public: Any) -> dict[str, Any]:
    """Each candidate under a name: the one given, or that of its file; files of one name under their address.

    >>> list(named_tables(["2015/acs.csv", "ohio.csv"]))
    ['acs.csv', 'ohio.csv']
    """
    if isinstance(public, Mapping):
        return dict(public)
    given = list(public) if isinstance(public, list | tuple) else [public]
    short = [_name(one, place) for place, one in enumerate(given, start=1)]
    names = [
        source_name(str(one)) if short.count(name) > 1 else name
        for one, name in zip(given, short, strict=True)
    ]
    for name in names:
        if names.count(name) > 1:
            raise SettingError(f"two public tables are both called {name}; give each once.")
    return dict(zip(names, given, strict=True))


def _name(one: Any, place: int) -> str:
    if not isinstance(one, str | Path):
        return f"public {place}"
    text = str(one)
    return (Path(text).name if scheme_of(text) is None else "") or source_name(text)


def _read_public(public: Any, schema: Schema | None) -> Table:
    return _read(public, None) if schema is None else told_table(public, schema, "screening")


def _read(table: Any, schema: Schema | None) -> Table:
    if isinstance(table, Table):
        return table
    if schema is None:
        raise SettingError("schema must be given, unless the tables are already tables of codes.")
    return Table.read(table, schema)


def _support(public: Table, workload: Workload) -> Support:
    """The public table's distinct records; refused if there are none, too many, or no marginals to answer."""
    support = Support.of_table(public, total=1.0)
    check_size(support.domain, marginals_of(workload), len(support.records))
    return support


def _private(private: Any, schema: Schema | None, domain: Domain) -> Table:
    """The private table; refused if it is empty, or has other attributes than the public tables."""
    table = _read(private, schema)
    if table.domain != domain:
        raise SettingError("the private table has other attributes than the public ones.")
    # PRIVACY: n is public, or nothing that is computed from this table may be published.
    if table.records == 0:
        raise DataError("the private table holds no records.")
    return table
