"""``sl.discover``: labels, bin edges and records a person, found privately for a schema.

A schema comes from public knowledge. Where there is none, this pays for some: the labels that enough people
have, edges between which about as many values lie, the number of records that most people do not exceed.
What is found is public from then on, and goes into the schema with a note on what was paid.
"""

import math
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from sidelight import _check
from sidelight.data.columns.column import (
    CategoricalColumn,
    Column,
    IntegerColumn,
    RealColumn,
)
from sidelight.data.fingerprint import marks_of_source
from sidelight.data.leak_guard import refuse_same
from sidelight.data.people import COVERED
from sidelight.data.reading.file_format import FileFormat
from sidelight.data.schema import Schema
from sidelight.errors import SettingError
from sidelight.privacy.budget import Budget, Rho
from sidelight.privacy.chained_ledger import Ledger
from sidelight.privacy.ledger import MemoryLedger
from sidelight.privacy.marks import new_key
from sidelight.privacy.promise import Promise
from sidelight.privacy.unit import Unit
from sidelight.statistics.columns import read_columns
from sidelight.statistics.curator import rank_scale
from sidelight.statistics.discovery_curator import DELTA_SHARE, Contribution, DiscoveryCurator, label_event
from sidelight.statistics.grid import Grid
from sidelight.statistics.searched import reading_of, searched
from sidelight.statistics.settings import check_keywords, of_keywords
from sidelight.statistics.terms import Terms

BITS = 16
"""Edges are sought on a grid of 2ᵇ steps between the bounds."""
BINS = 16
"""How many bins are looked for if nobody says so."""
RECORDS = (*range(1, 11), 12, 15, 20, 25, 30, 40, 50, 60, 80, 100, 150, 200, 300, 500, 700, 1000)
"""Numbers of records a person that may be found: few, or noise would choose among the many large ones."""
OTHER = ("other", "other (not listed)")
_NEW = """\
Begun by a private discovery; add the other columns that a release is to be about.
This file is published with every release: write nothing into it that only private data say."""


@dataclass(frozen=True, kw_only=True)
class DiscoveryTerms(Terms):
    """The terms of a discovery."""

    delta: float | None = None
    """δ of the promise where there is no ledger; a ledger has its own."""
    at_least: int = 10
    """A label of fewer people than this is never told, whatever the noise."""

    def __post_init__(self) -> None:
        super().__post_init__()
        _check.positive_integer(at_least=self.at_least)
        if self.delta is None and self.ledger is None:
            raise SettingError("delta must be given (such as 1e-9), or a ledger that promises one.")


@dataclass(frozen=True, kw_only=True)
class Discovery:
    """The column that was found; it may be published."""

    schema: Schema | None
    """The schema with what was found; None where there was none, and no label was found."""
    column: Column | None
    """The column as it is declared now; None where none is: records were asked for, or no label is known."""
    labels: Mapping[str, int] | None = None
    """The labels that were found, with about how many people have each; not those that were known."""
    edges: tuple[float, ...] | None = None
    records: int | None = None
    sentence: str
    """The labels or edges that were found, how, and their cost, in words."""
    rho: float
    """The cost."""
    noise_is_private: bool


@dataclass(frozen=True)
class _Asked:
    """The terms of a discovery: who is protected, out of which ledger, for how much."""

    terms: DiscoveryTerms
    schema: Schema | None
    """The schema so far; None where there is none, and the column that is found begins one."""
    unit: Unit
    book: Ledger
    budget: Budget

    @classmethod
    def of(cls, schema: Schema | str | Path | None, epsilon: float, terms: Mapping[str, Any]) -> "_Asked":
        check_keywords("discover", terms, DiscoveryTerms)
        asked = of_keywords(DiscoveryTerms, terms)
        known = None if schema is None else Schema.of(schema)
        unit = asked.agreed(None if known is None else known.declared_unit)
        book = asked.opened
        delta = asked.delta if book is None else book.promise.budget.delta
        if book is not None and asked.delta not in (None, delta):
            raise SettingError(f"delta must be the ledger's own, {delta:g}; leave it out.")
        if not delta:
            raise SettingError(
                "what nobody knows beforehand cannot be found with δ = 0. Give a small delta, such as 1e-9, "
                "or a ledger that promises one."
            )
        budget = Budget(epsilon=epsilon, delta=delta)
        made = MemoryLedger(Promise(budget, unit, "this discovery")) if book is None else book
        return cls(asked, known, unit, made, budget)

    @property
    def cost(self) -> Rho:
        return self.budget.rho()

    @property
    def file(self) -> FileFormat:
        return FileFormat() if self.schema is None else self.schema.file

    def declared(self, name: str) -> Column | None:
        """The column of this name, if the schema declares it."""
        columns = () if self.schema is None else self.schema.columns
        return next((known for known in columns if known.name == name), None)

    def with_column(self, made: Column) -> Schema:
        """The schema with this column, in its old place or at the end; a new one says its unit, too."""
        if self.schema is None:
            return Schema((made,), self.unit, note=_NEW)
        columns = tuple(made if known.name == made.name else known for known in self.schema.columns)
        if self.declared(made.name) is None:
            columns = (*columns, made)
        return replace(self.schema, columns=columns)

    def bind(self, private: Any) -> None:
        """Tell the ledger which table it pays for."""
        if not isinstance(self.book, MemoryLedger):
            self.book.for_table(marks_of_source(private, self.book.key))

    def run(self, label: str) -> Any:
        """The curator, for as long as it may spend."""
        return self.terms.run(
            DiscoveryCurator, self.book, self.cost, label=label, way="discover", unit=self.unit
        )

    def require(self) -> None:
        """Refuse, before anything is read, what the ledger would refuse."""
        self.book.require(self.cost, self.terms.purpose("discover"))

    def paid(self) -> str:
        """The cost, in a sentence."""
        said = "" if self.terms.source.is_private else " NOT PRIVATE: the noise was seeded."
        return f"ε = {self.budget.epsilon:g} at δ = {self.budget.delta:g} was paid for it.{said}"

    def note(self, sentence: str) -> str:
        """The comment in a schema file above the column that was found."""
        return "\n".join(textwrap.wrap(f"{sentence} {self.paid()}", 100))

    def found(self, schema: Schema | None, sentence: str, **what: Any) -> Discovery:
        """The column that was found, with its cost."""
        return Discovery(
            schema=schema, sentence=f"{sentence} {self.paid()}", rho=float(self.cost),
            noise_is_private=self.terms.source.is_private, **{"column": None} | what,
        )  # fmt: skip


def discover(
    private: Any,
    column: str,
    *,
    schema: Schema | str | Path | None = None,
    epsilon: float,
    bounds: tuple[float, float] | None = None,
    bins: int | None = None,
    public: Any = None,
    **terms: Any,
) -> Discovery:
    """Find the labels of a column, or the edges of its bins, and declare them in the schema.

    Args:
        private: a table of any kind that ``sl.release`` takes.
        column: its name. If the schema declares it, the labels there are known already.
        schema: the schema that is to declare it, or the path of its file, which is left as it is. Without
            one, what is found makes a new schema, whose unit is the ledger's.
        epsilon: what to spend, at the δ of ``delta`` or of the ledger.
        bounds: between which a column of numbers lies; values beyond count as the nearest bound.
        bins: how many bins to look for, with about as many values in each; 16 if ``bounds`` are given alone.
            Bins alone lie between the bounds that the schema declares for the column.
        public: a public table; its labels are known already.
        **terms: ``delta``, ``at_least``, ``unit``, ``ledger``, ``noise``, ``project`` and ``approved_by``.
            No label of fewer than ``at_least`` people is ever told.

    PRIVACY: labels are told if the noisy number of people who have them reaches a threshold; see
    ``discovery_curator``. A person counts with at most ``records`` labels or values.
    """
    asked = _Asked.of(schema, epsilon, terms)
    if asked.unit.person == column:
        raise SettingError(f"column {column!r} says who each record is about; it cannot be an attribute.")
    declared = asked.declared(column)
    if bounds is None and bins is not None and isinstance(declared, IntegerColumn | RealColumn):
        bounds = declared.ends
    if bounds is not None:
        if public is not None:
            raise SettingError("public data say nothing about bin edges here; leave public out.")
        return _discover_edges(private, column, asked, bounds, BINS if bins is None else bins)
    if bins is not None:
        raise SettingError(
            f"bins lie between bounds that are public knowledge: give bounds, or declare low and high of "
            f"{column!r} in the schema. To find labels, leave bins out."
        )
    refuse_same(private, public)
    return _discover_labels(private, column, asked, public)


def discover_records(private: Any, *, schema: Schema | str | Path, epsilon: float, **terms: Any) -> Discovery:
    """Find how many records 95% of the people do not exceed, and let the unit use so many of each.

    Args:
        private: a table of any kind that ``sl.release`` takes.
        schema: the schema, whose ``[unit]`` names ``person``; or the path of its file.
        epsilon: what to spend, at the δ of ``delta`` or of the ledger.
        **terms: ``delta``, ``unit``, ``ledger``, ``noise``, ``project`` and ``approved_by``.
    """
    asked = _Asked.of(schema, epsilon, terms)
    person = asked.unit.person
    if person is None:
        raise SettingError('records a person need the column that says who is who: [unit] person = "…".')
    asked.require()
    table = searched(private, None, asked.unit, asked.file)
    asked.bind(private)
    covered = Fraction(COVERED).limit_denominator(100)
    with asked.run("records a person") as curator:
        records = curator.records(table.records_a_person, asked.cost, covered=covered, answers=RECORDS)
    many, few = records_off(rank_scale(asked.cost, covered, Unit(asked.unit.relation)))
    sentence = (
        f"About {float(covered):.0%} of the people have at most {records} records, by a private quantile of "
        f"the records of each {person}. In 95 of 100 cases that share is too large by at most {many:,} "
        f"people, and too small by at most {few:,}. Where {float(1 - covered):.0%} of your people are fewer "
        "than the first number, the answer may be larger than it need be; where all of them are fewer than "
        "the second, it may be far too small. Then spend more on it, or declare records by what everybody "
        "knows."
    )
    unit = asked.unit.with_records(records)
    assert asked.schema is not None  # the schema is no choice here
    return asked.found(replace(asked.schema, unit=unit), sentence, records=records)


def records_off(scale: float) -> tuple[int, int]:
    """By how many people a number of records covers too many, and too few, in 95 of 100 cases.

    With the true answer v* and Pr[v] ∝ 1/v · exp(s_v/b), an answer whose score is −t or worse is drawn with a
    probability of at most Σ_v v*/v · exp(−t/b): over the larger answers for the first, over the smaller ones
    for the second, each at 2.5%. v* is taken to be the one that makes the sum largest.
    """
    larger = max(sum(true / v for v in RECORDS if v > true) for true in RECORDS)
    smaller = max(sum(true / v for v in RECORDS if v < true) for true in RECORDS)
    return math.ceil(scale * math.log(40 * larger)), math.ceil(scale * math.log(40 * smaller))


def _known_labels(
    column: str, declared: CategoricalColumn | None, public: Any, file: FileFormat
) -> list[str]:
    """The labels that the schema declares, and then those that only the public table has."""
    known = [] if declared is None else [str(one) for one in declared.labels]
    if public is None:
        return known
    shown = read_columns(public, [column], file)[column].read(reading_of(declared))
    return known + sorted({text for text in shown if text is not None} - set(known))


def _discover_labels(private: Any, column: str, asked: _Asked, public: Any) -> Discovery:
    declared = asked.declared(column)
    if declared is not None and not (
        isinstance(declared, CategoricalColumn) and declared.value_kind == "text"
    ):
        raise SettingError(
            f"the schema declares {column!r} as {declared.kind}, of which there are no labels of text to be "
            "found. Take it out of the schema; or say how many bins, to find edges."
        )
    known = _known_labels(column, declared, public, asked.file)
    promised = asked.book.promise.budget
    delta = DELTA_SHARE * Fraction(promised.delta)
    event = label_event(
        asked.cost, asked.unit, column=column, delta=delta, surcharge=promised.delta_price(DELTA_SHARE)
    )
    asked.require()
    table = searched(private, column, asked.unit, asked.file)
    table.require_texts()

    def counted(more_than: int) -> dict[str, int]:
        every = table.labels(declared, more_than=more_than)
        return {name: number for name, number in every.items() if name not in known}

    asked.bind(private)
    with asked.run(f"labels of {column}") as curator:
        found = curator.labels(counted, event, at_least=asked.terms.at_least)
    adds = Contribution.of(asked.unit)
    whom = "records" if asked.unit.person is None else "people"
    sentence = (
        f"{len(found.numbers)} labels were found beside {len(known)} that were known: those whose number of "
        f"{whom}, with noise of σ = {found.stddev:.3g}, reached {found.least:,}. "
        f"{'Each person counted' if asked.unit.person else 'What one person may change counted'} with at "
        f"most {adds.labels} of them. A label of fewer than {asked.terms.at_least} {whom} is never told."
    )
    text = (*known, *sorted(found.numbers))
    if not found.numbers:
        sentence += " With a larger epsilon the threshold is lower."
    if len(text) == (0 if declared is None else len(declared.labels)):
        sentence += "" if asked.schema is None else " The schema stays as it is."
        return asked.found(asked.schema, sentence, column=declared, labels={})
    other = next(name for name in (*OTHER, f"other ({new_key()})") if name not in text)
    changed: dict[str, Any] = {"outside": "other", "other_label": other, "note": asked.note(sentence)}
    if declared is None:
        made = CategoricalColumn(column, text, missing=True, **changed)
    else:
        made = replace(declared, labels=text, **changed)
    return asked.found(asked.with_column(made), sentence, column=made, labels=found.numbers)


def _discover_edges(
    private: Any, column: str, asked: _Asked, bounds: tuple[float, float], bins: int
) -> Discovery:
    low, high = bounds
    _check.positive_integer(bins=bins)
    if not all(map(_check.is_number, bounds)) or not -math.inf < low < high < math.inf:
        raise SettingError(f"bounds must be two numbers, the lower one first; got {_check.brief(bounds)}.")
    if not 2 <= bins <= 1024:
        raise SettingError(f"bins must be from 2 to 1024; got {bins}.")
    declared = asked.declared(column)
    if declared is not None and not isinstance(declared, IntegerColumn | RealColumn):
        raise SettingError(
            f"the schema declares {column!r} as {declared.kind}, which has no edges of numbers. Take it out "
            "of the schema, or leave bounds out."
        )
    asked.require()
    grid = Grid(float(low), float(high), BITS)
    nothing = () if declared is None else declared.missing_texts
    table = searched(private, column, asked.unit, asked.file).places(grid, nothing)
    asked.bind(private)
    with asked.run(f"edges of {column}") as curator:
        found = curator.edges(table, asked.cost, column=column, bins=bins, bits=BITS)
    # Four digits are as fine as the noise allows, and easier to read.
    inner = [float(f"{grid.low + place * grid.step:.4g}") for place in found]
    inner = [min(max(edge, grid.low), grid.high) for edge in inner]
    sentence = (
        f"{bins - 1} edges between {low:g} and {high:g} were found by private quantiles, with about as many "
        "values between any two."
    )
    changed: dict[str, Any] = {"outside": "clamp", "note": asked.note(sentence)}
    edges: tuple[float, ...]
    made: Column
    if isinstance(declared, IntegerColumn):
        edges = _increasing([math.floor(low), *map(math.ceil, inner), math.ceil(high) + 1])
        made = replace(declared, low=None, high=None, bins=None, edges=edges, **changed)
    else:
        edges = _increasing([grid.low, *inner, grid.high])
        before = RealColumn(column, edges=edges, missing=True) if declared is None else declared
        made = replace(before, low=None, high=None, bins=None, edges=edges, **changed)
    return asked.found(asked.with_column(made), sentence, column=made, edges=edges)


def _increasing(edges: list[Any]) -> tuple[Any, ...]:
    """Each edge once, in order; at least two."""
    return tuple(sorted(set(edges)))
