"""``sl.discover``: labels, bin edges and records a person, found privately for a schema.

A schema comes from public knowledge. Where there is none, this pays for some: the labels that enough people
have, edges between which about as many values lie, the number of records that most people do not exceed.
What is found is public from then on, and goes into the schema with a note on what was paid.
"""

import math
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from sidelight import _check
from sidelight.data.columns.column import (
    LONGEST,
    CategoricalColumn,
    Column,
    IntegerColumn,
    RealColumn,
    is_writable,
)
from sidelight.data.columns.value import NO_TEXT, text_of
from sidelight.data.fingerprint import marks_of_source
from sidelight.data.leak_guard import refuse_same
from sidelight.data.people import COVERED, people_key
from sidelight.data.reading.each import Each
from sidelight.data.reading.frames import kind_of, people_of
from sidelight.data.schema import Schema
from sidelight.data.table import Table
from sidelight.errors import DataError, SettingError
from sidelight.privacy.budget import Budget, Rho
from sidelight.privacy.ledger import Ledger, MemoryLedger
from sidelight.privacy.marks import new_key
from sidelight.privacy.noise import SystemNoise
from sidelight.privacy.promise import Promise
from sidelight.privacy.unit import Unit
from sidelight.statistics.columns import read_columns
from sidelight.statistics.curator import rank_scale
from sidelight.statistics.discovery_curator import DELTA_SHARE, Contribution, DiscoveryCurator, label_event
from sidelight.statistics.grid import Grid, Whole
from sidelight.statistics.label_counts import count_labels
from sidelight.statistics.settings import check_keywords, of_keywords
from sidelight.statistics.terms import Terms

BITS = 16
"""Edges are sought on a grid of 2ᵇ steps between the bounds."""
RECORDS = (*range(1, 11), 12, 15, 20, 25, 30, 40, 50, 60, 80, 100, 150, 200, 300, 500, 700, 1000)
"""Numbers of records a person that may be found: few, or noise would choose among the many large ones."""
OTHER = ("other", "other (not listed)")


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

    def refuse(self, unit: Unit) -> None:
        """A discovery knows people by their column, and so refuses no unit."""


@dataclass(frozen=True, kw_only=True)
class Discovery:
    """What was found; it may be published."""

    schema: Schema
    """The schema with what was found."""
    column: Column | None
    """The column as it is declared now; None where none is: records were asked for, or no label was found."""
    labels: Mapping[str, int] | None = None
    """The labels that were found, with about how many people have each; not those that were known."""
    edges: tuple[float, ...] | None = None
    records: int | None = None
    sentence: str
    """What was found, how, and what was paid, in words."""
    rho: float
    """What was paid."""
    noise_is_private: bool


@dataclass(frozen=True)
class _Asked:
    """What every discovery is asked on: who is protected, out of which ledger, for how much."""

    terms: DiscoveryTerms
    schema: Schema
    unit: Unit
    book: Ledger
    budget: Budget

    @classmethod
    def of(cls, schema: Schema | str | Path, epsilon: float, terms: Mapping[str, Any]) -> "_Asked":
        check_keywords("discover", terms, DiscoveryTerms)
        asked = of_keywords(DiscoveryTerms, terms)
        known = Schema.of(schema)
        unit = asked.agreed(known.declared_unit)
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

    def bind(self, private: Any) -> None:
        """Tell the ledger which table it pays for."""
        if not isinstance(self.book, MemoryLedger):
            self.book.for_table(marks_of_source(private, self.book.key))

    def run(self, label: str) -> Any:
        """The curator, for as long as it may spend."""
        return self.terms.run(DiscoveryCurator, self.book, self.cost, label=label, unit=self.unit)

    def paid(self) -> str:
        """What was paid, in a sentence."""
        noise = self.terms.noise if self.terms.noise is not None else SystemNoise()
        said = "" if noise.is_private else " NOT PRIVATE: the noise was seeded."
        return f"ε = {self.budget.epsilon:g} at δ = {self.budget.delta:g} was paid for it.{said}"

    def note(self, sentence: str) -> str:
        """What a schema file says above what was found."""
        return "\n".join(textwrap.wrap(f"{sentence} {self.paid()}", 100))

    def found(self, schema: Schema, sentence: str, **what: Any) -> Discovery:
        noise = self.terms.noise if self.terms.noise is not None else SystemNoise()
        what = {"column": None, **what}
        return Discovery(
            schema=schema, sentence=f"{sentence} {self.paid()}", rho=float(self.cost),
            noise_is_private=noise.is_private, **what,
        )  # fmt: skip


def discover(
    private: Any,
    column: str,
    *,
    schema: Schema | str | Path,
    epsilon: float,
    bounds: tuple[float, float] | None = None,
    bins: int = 16,
    public: Any = None,
    **terms: Any,
) -> Discovery:
    """Find the labels of a column, or with ``bounds`` the edges of its bins, and declare them in the schema.

    Args:
        private: a file (.csv, .parquet, a glob) or a data frame.
        column: its name. If the schema declares it, the labels there are known already.
        schema: the schema that is to declare it, or the path of its file, which is left as it is.
        epsilon: what to spend, at the δ of ``delta`` or of the ledger.
        bounds: between which a column of numbers lies; values beyond count as the nearest bound.
        bins: how many bins to look for, with about as many values in each.
        public: a public table; its labels are known already.
        **terms: ``delta``, ``at_least``, ``unit``, ``ledger`` and ``noise``. No label of fewer than
            ``at_least`` people is ever told.

    PRIVACY: labels are told if the noisy number of people who have them reaches a threshold; see
    ``discovery_curator``. A person counts with at most ``records`` labels or values.
    """
    asked = _Asked.of(schema, epsilon, terms)
    if asked.unit.person == column:
        raise SettingError(f"column {column!r} says who each record is about; it cannot be an attribute.")
    if bounds is not None:
        if public is not None:
            raise SettingError("public data say nothing about bin edges here; leave public out.")
        return _discover_edges(private, column, asked, bounds, bins)
    refuse_same(private, public)
    return _discover_labels(private, column, asked, public)


def discover_records(private: Any, *, schema: Schema | str | Path, epsilon: float, **terms: Any) -> Discovery:
    """Find how many records 95% of the people do not exceed, and let the unit use so many of each.

    Args:
        private: a file (.csv, .parquet, a glob) or a data frame.
        schema: the schema, whose ``[unit]`` names ``person``; or the path of its file.
        epsilon: what to spend, at the δ of ``delta`` or of the ledger.
        **terms: ``delta``, ``unit``, ``ledger`` and ``noise``.
    """
    asked = _Asked.of(schema, epsilon, terms)
    person = asked.unit.person
    if person is None:
        raise SettingError('records a person need the column that says who is who: [unit] person = "…".')
    asked.book.require(asked.cost)
    people = _people(private, {person: _private_columns(private, [person])[person]}, asked.unit)

    def counted() -> dict[int, int]:
        import pyarrow.compute as compute

        named = people.drop_null()
        each = compute.value_counts(compute.value_counts(named).field("counts"))
        found = {pair["values"].as_py(): pair["counts"].as_py() for pair in each}
        return found | {1: found.get(1, 0) + people.null_count}

    asked.bind(private)
    covered = Fraction(COVERED).limit_denominator(100)
    with asked.run("records a person") as curator:
        records = curator.records(counted, asked.cost, covered=covered, answers=RECORDS)
    # The exponential mechanism's score falls short by t with a probability of at most |R| exp(−t/b).
    off = rank_scale(asked.cost, covered, Unit(asked.unit.relation)) * math.log(20 * len(RECORDS))
    sentence = (
        f"About {float(covered):.0%} of the people have at most {records} records, by a private quantile of "
        f"the records of each {person}. In 95 of 100 cases that share is right to within {math.ceil(off):,} "
        f"people; where {float(1 - covered):.0%} of your people are fewer than that, the number may be far "
        "too large: spend more on it, or declare records by what everybody knows."
    )
    unit = asked.unit.with_records(records)
    return asked.found(replace(asked.schema, unit=unit), sentence, records=records)


def _discover_labels(private: Any, column: str, asked: _Asked, public: Any) -> Discovery:
    declared = _declared(asked.schema, column)
    if declared is not None and not (
        isinstance(declared, CategoricalColumn) and declared.value_kind == "text"
    ):
        raise SettingError(
            f"the schema declares {column!r} as {declared.kind}, of which there are no labels of text to be "
            "found. Take it out of the schema, or give bounds to find edges."
        )
    label = _reading(declared)
    known = [] if declared is None else [str(one) for one in declared.labels]
    if public is not None:
        shown = {text for text in read_columns(public, [column])[column].read(label) if text is not None}
        known += sorted(shown - set(known))
    promised = asked.book.promise.budget
    delta = DELTA_SHARE * Fraction(promised.delta)
    event = label_event(
        asked.cost, asked.unit, column=column, delta=delta, surcharge=promised.delta_price(DELTA_SHARE)
    )
    asked.book.require(asked.cost)
    columns = _private_columns(private, [column, *([asked.unit.person] if asked.unit.person else [])])
    labels, people = columns[column].texts(label), _people(private, columns, asked.unit)
    key = people_key(new_key())

    def counted() -> dict[str, int]:
        every = count_labels(labels, people, records=asked.unit.records, key=key)
        return {name: number for name, number in every.items() if name not in known}

    asked.bind(private)
    with asked.run(f"labels of {column}") as curator:
        found = curator.labels(counted, event, at_least=asked.terms.at_least)
    adds = Contribution.of(asked.unit)
    whom = "records" if asked.unit.person is None else "people"
    sentence = (
        f"{len(found.numbers)} labels were found beside {len(known)} that were known: those whose number of "
        f"{whom}, with noise of σ = {found.stddev:.3g}, reached {found.least:,}. Each person counted with at "
        f"most {adds.labels} of them. A label of fewer than {asked.terms.at_least} people is never told."
    )
    text = (*known, *sorted(found.numbers))
    if not found.numbers:
        sentence += " With a larger epsilon the threshold is lower."
    if not text:
        sentence += " The schema stays as it is."
        return asked.found(asked.schema, sentence, labels={})
    other = next(name for name in (*OTHER, f"other ({new_key()})") if name not in text)
    changed: dict[str, Any] = {"outside": "other", "other_label": other, "note": asked.note(sentence)}
    if declared is None:
        made = CategoricalColumn(column, text, missing=True, **changed)
    else:
        made = replace(declared, labels=text, **changed)
    return asked.found(_with(asked.schema, made), sentence, column=made, labels=found.numbers)


def _discover_edges(
    private: Any, column: str, asked: _Asked, bounds: tuple[float, float], bins: int
) -> Discovery:
    low, high = bounds
    _check.positive_integer(bins=bins)
    if not all(map(_check.is_number, bounds)) or not -math.inf < low < high < math.inf:
        raise SettingError(f"bounds must be two numbers, the lower one first; got {_check.brief(bounds)}.")
    if not 2 <= bins <= 1024:
        raise SettingError(f"bins must be from 2 to 1024; got {bins}.")
    declared = _declared(asked.schema, column)
    if declared is not None and not isinstance(declared, IntegerColumn | RealColumn):
        raise SettingError(
            f"the schema declares {column!r} as {declared.kind}, which has no edges of numbers. Take it out "
            "of the schema, or leave bounds out."
        )
    asked.book.require(asked.cost)
    grid = Grid(float(low), float(high), BITS)
    columns = _private_columns(private, [column, *([asked.unit.person] if asked.unit.person else [])])
    nothing = set() if declared is None else set(declared.missing_texts)
    places = _places(columns[column], grid, nothing)
    table = _as_table(column, places, 2**BITS + 2, _people(private, columns, asked.unit), asked.unit)
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
    return asked.found(_with(asked.schema, made), sentence, column=made, edges=edges)


def _places(values: Each, grid: Grid, nothing: set[str]) -> Whole:
    """Each value's place on the grid, and 2ᵇ + 1 where it is missing, no number, or one of these texts."""
    numbers = values.numbers()
    if nothing:
        numbers[values.codes(lambda value: int(text_of(value) in nothing)).astype(bool)] = np.nan
    places = np.full(numbers.size, 2**grid.bits + 1, dtype=np.int64)
    is_there = ~np.isnan(numbers)
    places[is_there] = grid.places(numbers[is_there])
    return places


def _as_table(column: str, codes: Whole, size: int, people: Any, unit: Unit) -> Table:
    """A table of codes, with at most k records of each person."""
    import pyarrow as pa

    schema = Schema.from_domain({column: size})
    if unit.person is None:
        return Table.of_codes(schema.domain, [codes])
    coded = pa.table({unit.person: people, column: codes})
    return Table.read(coded, schema, unit=unit, may_be_empty=True).keeping(unit, people_key(new_key()))


def _private_columns(private: Any, names: list[str]) -> dict[str, Each]:
    """These columns of a file or a frame. Records on a cluster stay there, and so do the names of people."""
    if kind_of(private) == "spark":
        raise DataError(
            "a Spark DataFrame cannot be searched: its records stay on the cluster. Export the column, and "
            "the one that says who each record is about, to Parquet files first. Nothing was charged."
        )
    return read_columns(private, names)


def _people(private: Any, columns: Mapping[str, Each], unit: Unit) -> Any:
    """Who each record is about, as Arrow text; None where no column says it."""
    from pyarrow import compute

    from sidelight.data.reading.read import describe

    if unit.person is None:
        return None
    people = people_of(columns[unit.person])
    is_blank = compute.equal(compute.utf8_trim(people, " "), "")
    people = compute.if_else(is_blank, None, people)
    if people.null_count and unit.missing_person == "refuse":
        # PRIVACY: told before anything is paid, to the person who holds the table, without value or count.
        raise DataError(
            f"{describe(private)} has records without {unit.person!r}, which says who they are about; remove "
            'them, or declare missing_person = "own" in [unit]. Nothing was charged.'
        )
    return people


def _reading(declared: CategoricalColumn | None) -> Callable[[object], str | None]:
    """The label that a value is; None for one that is missing, blank, or cannot be declared.

    A column that the schema declares says which texts mean a label, or nothing, and how much of one counts.
    """
    spelled = {text: label for label, texts in declared.aliases for text in texts} if declared else {}
    missing = set(declared.missing_texts) if declared else set()
    prefix = declared.prefix if declared else None

    def label(value: object) -> str | None:
        text = text_of(value)
        if text is None or text == NO_TEXT or text in missing:
            return None
        text = spelled.get(text, text)[:prefix]
        is_label = text.strip(" ") and len(text) <= LONGEST and is_writable(text) and text not in missing
        return spelled.get(text, text) if is_label else None

    return label


def _declared(schema: Schema, column: str) -> Column | None:
    return next((declared for declared in schema.columns if declared.name == column), None)


def _with(schema: Schema, made: Column) -> Schema:
    """The schema in which this column is declared so."""
    if _declared(schema, made.name) is None:
        return replace(schema, columns=(*schema.columns, made))
    return replace(schema, columns=tuple(made if c.name == made.name else c for c in schema.columns))


def _increasing(edges: list[Any]) -> tuple[Any, ...]:
    """Each edge once, in order; at least two."""
    return tuple(sorted(set(edges)))
