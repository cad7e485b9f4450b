"""A private table in which something is looked for: in memory, or where it is, in a database or on a cluster.

PRIVACY: what these classes count is exact, and only a curator's look may ask for it. Of a table that is
elsewhere, counts come here, and labels of enough people; names of people and single records do not.
"""

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import numpy as np

from sidelight.data.columns.column import LONGEST, CategoricalColumn, RealColumn, is_writable
from sidelight.data.columns.value import NO_TEXT, text_of
from sidelight.data.engines.base import ValueKind
from sidelight.data.engines.sql import SqlEngine, records_in
from sidelight.data.engines.sql_encoding import Dialect, SqlSource, values_sql
from sidelight.data.engines.sql_people import person_of
from sidelight.data.people import PeopleThere, people_key, records_a_person
from sidelight.data.reading.each import Each
from sidelight.data.reading.file_format import FileFormat
from sidelight.data.reading.frames import kind_of
from sidelight.data.reading.read import describe, open_source
from sidelight.data.schema import Schema
from sidelight.data.table import Table
from sidelight.errors import DataError
from sidelight.privacy.marks import new_key
from sidelight.privacy.unit import Unit
from sidelight.sources import is_postgres
from sidelight.statistics.columns import read_columns
from sidelight.statistics.grid import Grid, Whole
from sidelight.statistics.label_counts import count_labels, counted_labels_sql
from sidelight.statistics.people import names_of, require_named


class Searched(Protocol):
    """A column, and who its values are about where the unit says so."""

    def require_texts(self) -> None:
        """Refuse a column whose values have no text that every engine writes alike."""
        ...

    def labels(self, declared: CategoricalColumn | None, *, more_than: int) -> Mapping[str, int]:
        """How many people have each label, of those that more people have than this.

        A person counts with at most k labels, chosen by a keyed hash. A schema that ``declared`` the column
        says which texts mean a label, or nothing, and how much of one counts.
        """
        ...

    def places(self, grid: Grid, missing_texts: tuple[str, ...]) -> Table:
        """Each value's place on the grid, 2ᵇ + 1 where there is none, with at most k values of a person."""
        ...

    def records_a_person(self) -> dict[int, int]:
        """How many people have so many records; who names nobody is a person of one record."""
        ...


def searched(private: Any, column: str | None, unit: Unit, file: FileFormat) -> Searched:
    """The column of a table, opened where it is; refused before anything is paid, where it cannot be read."""
    is_text = isinstance(private, str)
    if kind_of(private) == "spark" or (is_text and (is_postgres(private) or private.startswith("spark:"))):
        return SearchedThere(private, column, unit)
    return SearchedHere(private, column, unit, file)


def reading_of(declared: CategoricalColumn | None) -> Callable[[object], str | None]:
    """The label that a value is; None for one that is missing, blank, or cannot be declared."""
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


class SearchedHere:
    """A column of a file or a frame, in memory."""

    def __init__(self, private: Any, column: str | None, unit: Unit, file: FileFormat) -> None:
        names = [name for name in (column, unit.person) if name is not None]
        columns = read_columns(private, names, file)
        self._column, self._unit = column, unit
        self._values: Each | None = None if column is None else columns[column]
        self._people = None if unit.person is None else names_of(columns[unit.person])
        if self._people is not None:
            require_named(self._people, unit, describe(private))

    def require_texts(self) -> None:
        """Every value that Python reads has its text."""

    def labels(self, declared: CategoricalColumn | None, *, more_than: int) -> Mapping[str, int]:
        assert self._values is not None
        texts = self._values.texts(reading_of(declared))
        key = people_key(new_key())
        return count_labels(texts, self._people, records=self._unit.records, key=key, more_than=more_than)

    def places(self, grid: Grid, missing_texts: tuple[str, ...]) -> Table:
        import pyarrow as pa

        assert self._column is not None
        schema = Schema.from_domain({self._column: 2**grid.bits + 2})
        codes = self._places(grid, set(missing_texts))
        if self._unit.person is None:
            return Table.of_codes(schema.domain, [codes])
        coded = pa.table({self._unit.person: self._people, self._column: codes})
        table = Table.read(coded, schema, unit=self._unit, may_be_empty=True)
        return table.keeping(self._unit, people_key(new_key()))

    def records_a_person(self) -> dict[int, int]:
        from pyarrow import compute

        assert self._people is not None
        named = self._people.drop_null()
        each = compute.value_counts(compute.value_counts(named).field("counts"))
        found = {pair["values"].as_py(): pair["counts"].as_py() for pair in each}
        return found | {1: found.get(1, 0) + self._people.null_count}

    def _places(self, grid: Grid, nothing: set[str]) -> Whole:
        values = self._values
        assert values is not None
        numbers = values.numbers()
        if nothing:
            numbers[values.codes(lambda value: int(text_of(value) in nothing)).astype(bool)] = np.nan
        places = np.full(numbers.size, 2**grid.bits + 1, dtype=np.int64)
        is_there = ~np.isnan(numbers)
        places[is_there] = grid.places(numbers[is_there])
        return places


class SearchedThere:
    """A column of a table in PostgreSQL or Spark, which stays there."""

    def __init__(self, private: Any, column: str | None, unit: Unit) -> None:
        self._source: SqlSource = open_source(private)
        self._column, self._unit = column, unit
        names = self._source.names
        for name in (column, unit.person):
            if name is not None and names.count(name) != 1:
                found = "appears twice" if name in names else "is not there"
                raise DataError(f"{describe(private)}: column {name!r} {found}. Nothing was charged.")
        if unit.person is not None:
            self._require_people(describe(private))

    def require_texts(self) -> None:
        if self._text is None:
            raise DataError(
                f"column {self._column!r} is neither text nor whole numbers where it is, and engines write "
                "other values each in its own way. Make a view in which it is text. Nothing was charged."
            )

    def labels(self, declared: CategoricalColumn | None, *, more_than: int) -> Mapping[str, int]:
        sql, text = self._source.dialect, self._text
        who = self._who if self._unit.person is not None else f"CAST(NULL AS {sql.varchar})"
        labelled = f"SELECT {who} AS c0, {text} AS x FROM {self._raw}"
        for layer in _label_layers(sql, declared):
            labelled = f"SELECT c0, {layer} AS x FROM ({labelled}{sql.fence}) AS labelled"
        pairs = f"(SELECT c0, x AS c1 FROM ({labelled}) AS labelled)"
        key = people_key(new_key()) if self._unit.person is not None else None
        counted = counted_labels_sql(sql, pairs, records=self._unit.records, key=key, more_than=more_than)
        found = self._source.fetch_labels(counted)
        return {label: number for label, number in found if is_writable(label)}

    def places(self, grid: Grid, missing_texts: tuple[str, ...]) -> Table:
        assert self._column is not None
        sql, person = self._source.dialect, self._unit.person
        read = RealColumn(
            self._column, grid.low, grid.high, 1, missing=True, outside="clamp", missing_texts=missing_texts
        )
        low, high, per = (sql.number(x) for x in (grid.low, grid.high, 2**grid.bits / grid.width))
        place = f"FLOOR((LEAST(GREATEST(v0, {low}), {high}) - {low}) * {per} + {sql.number(0.5)})"
        nothing = ["u0", "v0 IS NULL", *(f"v0 = {sql.number(number)}" for number in read.missing_numbers)]
        code = f"CASE WHEN {' OR '.join(nothing)} THEN {2**grid.bits + 1} ELSE CAST({place} AS BIGINT) END"
        values = values_sql(self._source, Schema((read,)), person)
        domain = Schema.from_domain({self._column: 2**grid.bits + 2})
        if person is None:
            held = self._source.holding(f"SELECT {code} AS a0 FROM ({values}) AS found", (self._column,))
            return Table(SqlEngine(held, domain, records=records_in(held)), schema=domain)
        held = self._source.holding(f"SELECT p, {code} AS w0 FROM ({values}) AS found", ("p", "w0"))
        engine = PeopleThere(held, domain, person).keeping_there(self._unit, people_key(new_key()))
        return Table(engine, schema=domain, kept=self._unit)

    def records_a_person(self) -> dict[int, int]:
        assert self._unit.person is not None
        found = records_a_person(self._source, self._unit.person)
        (nameless,) = self._source.fetch(f"SELECT COUNT(*) AS n FROM {self._raw} WHERE {self._who} IS NULL")
        return found | {1: found.get(1, 0) + int(nameless[0])}

    @property
    def _text(self) -> str | None:
        """The column as text, in SQL."""
        assert self._column is not None
        place = self._source.names.index(self._column)
        return _text_sql(self._source.dialect, f"c{place}", self._source.types[place])

    @property
    def _raw(self) -> str:
        named = ", ".join(f"c{place}" for place in range(len(self._source.names)))
        return f"{self._source.relation} AS raw({named})"

    @property
    def _who(self) -> str:
        return self._person_of()[0]

    def _person_of(self) -> tuple[str, str]:
        assert self._unit.person is not None
        place = self._source.names.index(self._unit.person)
        return person_of(self._source.dialect, f"c{place}", self._source.types[place])

    def _require_people(self, what: str) -> None:
        """Refuse names that cannot be read, and records without one, unless the unit takes them.

        PRIVACY: told before anything is paid, to the person who holds the table, without value or count.
        """
        who, is_unread = self._person_of()
        flags = [f"{who} IS NULL AND NOT {is_unread}", is_unread]
        asked = ", ".join(f"COALESCE(MAX(CASE WHEN {flag} THEN 1 ELSE 0 END), 0)" for flag in flags)
        nameless, unread = (
            bool(found[0]) for found in self._source.fetch(f"SELECT {asked} FROM {self._raw}")
        )
        if unread:
            raise DataError(
                f"{what}: column {self._unit.person!r}, which says who each record is about, holds "
                "values that are neither text nor whole numbers. Nothing was charged."
            )
        if nameless and self._unit.missing_person == "refuse":
            raise DataError(
                f"{what} has records without {self._unit.person!r}, which says who they are about; remove "
                'them, or declare missing_person = "own" in [unit]. Nothing was charged.'
            )


def _text_sql(sql: Dialect, x: str, kind: ValueKind | None) -> str | None:
    """A value as its label, in SQL; None for a type that engines print each in its own way."""
    if kind in ("text", "integer"):
        return sql.as_text(x)
    if kind == "boolean":
        return f"CASE WHEN {x} THEN 'true' WHEN NOT {x} THEN 'false' END"
    return sql.text_of_bytes(x) if kind == "bytes" else None


def _label_layers(sql: Dialect, declared: CategoricalColumn | None) -> list[str]:
    """What ``reading_of`` does to the text x, as SQL, one SELECT around the other."""
    aliases = [] if declared is None else [(label, texts) for label, texts in declared.aliases if texts]
    missing = () if declared is None else declared.missing_texts
    cases = " ".join(f"WHEN {sql.one_of('x', texts)} THEN {sql.text(str(label))}" for label, texts in aliases)
    spelled = f"CASE {cases} ELSE x END" if cases else "x"
    short = "x" if declared is None or declared.prefix is None else f"LEFT(x, {declared.prefix})"
    told = ["TRIM(x) <> ''", f"LENGTH(x) <= {LONGEST}"]
    there = f"CASE WHEN {sql.one_of('x', missing)} THEN NULL ELSE x END" if missing else "x"
    return [there, spelled, short, there, f"CASE WHEN {' AND '.join(told)} THEN {spelled} END"]
