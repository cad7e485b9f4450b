"""Encoding and counting as SQL, written once for every engine that speaks it.

Three layers of SELECT: *raw* names the columns c0, c1, … by position, so that no name from
the data enters the SQL; *values* makes each one text or a float64, missing as NULL; *codes*
compares those with the schema's labels and edges. Counting groups the codes by
GROUPING SETS, one set a marginal, so that one pass serves many marginals and only counts
come back.

What a value means (``encode.encode_value`` says the same in Python):

    missing    NULL; for numbers and booleans also NaN, and empty or blank text
    numbers    text is read as a decimal number, with an exponent or "inf" if need be;
               true is 1 and false is 0
    booleans   1 and 0; text true, t, 1, false, f, 0 in any case
    text       compared letter by letter; whole numbers by their digits, booleans as true, false
    outside    everything else, text that is no number included
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from sidelight.data.column import CategoricalColumn, Column, IntegerColumn, NumericColumn
from sidelight.data.domain import Attrs, Domain
from sidelight.data.engines.base import Codes, Counts, ValueKind, require_countable, smallest_dtype
from sidelight.data.schema import Schema
from sidelight.errors import DataError

REFUSED_MISSING, REFUSED_OUTSIDE = -1, -2
"""Codes of values that the schema has no place for."""

_NOT_GROUPED = -9
_NUMBER = "^[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)(e[+-]?[0-9]+)?$"  # of text in lower case; no backslashes
_ABOVE, _BELOW = ("inf", "+inf", "infinity", "+infinity"), ("-inf", "-infinity")
_TRUE, _FALSE = ("true", "t", "1"), ("false", "f", "0")

# One query holds as many marginals as this; engines copy every record once a marginal.
_MOST_MARGINALS, _MOST_CELLS, _MOST_ATTRS = 128, 4_000_000, 60


@dataclass(frozen=True)
class Dialect:
    """The few words in which SQL engines differ."""

    double: str = "DOUBLE"
    varchar: str = "VARCHAR"

    def text(self, text: str) -> str:
        """A text literal; no setting of the engine may change what it says, or where it ends."""
        return "'" + text.replace("'", "''") + "'"

    def as_text(self, expression: str) -> str:
        """A value as text."""
        return f"CAST({expression} AS {self.varchar})"

    def matches(self, expression: str, pattern: str) -> str:
        """Whether text matches a regular expression."""
        return f"regexp_matches({expression}, {self.text(pattern)})"

    def parse(self, expression: str) -> str:
        """Text as a float64; only asked of text that is a number."""
        return f"TRY_CAST({expression} AS {self.double})"

    def number(self, number: float) -> str:
        """A float64 literal."""
        return f"CAST('{float(number)!r}' AS {self.double})"

    def one_of(self, expression: str, texts: Sequence[str]) -> str:
        """Whether text is one of these."""
        return f"{expression} IN ({', '.join(map(self.text, texts))})"


class SqlSource(Protocol):
    """A table somewhere that SQL can reach."""

    kind: str
    """Which frame came in, such as "pandas" or "file.csv"."""
    names: tuple[str, ...]
    types: tuple[ValueKind | None, ...]
    extra: tuple[str, ...]
    """Further columns, which the schema does not name and which were not even looked at."""
    relation: str
    """What stands after FROM."""
    dialect: Dialect

    def fetch(self, sql: str) -> list[npt.NDArray[np.int64]]:
        """The columns of a result that holds whole numbers only."""
        ...


def encode_sql(source: SqlSource, schema: Schema) -> str:
    """SELECT the codes of every record, as a0, a1, … in the schema's order."""
    values: list[str] = []
    codes: list[str] = []
    for i, column in enumerate(schema.columns):
        place = source.names.index(column.name)
        kind = source.types[place]
        if kind is None:
            raise DataError(f"column {column.name!r} cannot be encoded.")
        values += _value(source.dialect, column, f"c{place}", kind, i)
        may_be_unread = kind == "text" and column.value_kind != "text"
        codes.append(f"{_code(source.dialect, column, i, may_be_unread=may_be_unread)} AS a{i}")
    named = ", ".join(f"c{place}" for place in range(len(source.names)))
    prepared = f"SELECT {', '.join(values)} FROM {source.relation} AS raw({named})"
    return f"SELECT {', '.join(codes)} FROM ({prepared}) AS prepared"


def _value(sql: Dialect, column: Column, x: str, kind: ValueKind, i: int) -> list[str]:
    """The column's value as ``v``, text or a float64; and ``u``, whether text could not be read."""
    if column.value_kind == "text":
        if kind == "boolean":
            return [f"CASE WHEN {x} THEN 'true' WHEN NOT {x} THEN 'false' END AS v{i}"]
        return [f"{sql.as_text(x)} AS v{i}"]
    if kind == "boolean":
        value = f"CASE WHEN {x} THEN {sql.number(1)} WHEN NOT {x} THEN {sql.number(0)} END"
        return [f"{value} AS v{i}"]
    if kind == "integer":
        return [f"CAST({x} AS {sql.double}) AS v{i}"]
    if kind == "real":
        return [f"NULLIF(CAST({x} AS {sql.double}), {sql.number(float('nan'))}) AS v{i}"]
    t = f"LOWER(TRIM({sql.as_text(x)}))"
    if column.value_kind == "boolean":
        is_read = sql.one_of(t, (*_TRUE, *_FALSE))
        value = (
            f"CASE WHEN {sql.one_of(t, _TRUE)} THEN {sql.number(1)} WHEN {is_read} THEN {sql.number(0)} END"
        )
    else:
        is_number = sql.matches(t, _NUMBER)
        is_read = f"({sql.one_of(t, (*_ABOVE, *_BELOW))} OR {is_number})"
        value = (
            f"CASE WHEN {sql.one_of(t, _ABOVE)} THEN {sql.number(float('inf'))} "
            f"WHEN {sql.one_of(t, _BELOW)} THEN {sql.number(float('-inf'))} "
            f"WHEN {is_number} THEN {sql.parse(t)} END"
        )
    is_missing = f"({x} IS NULL OR {sql.one_of(t, ('', 'nan'))})"
    return [f"{value} AS v{i}", f"(NOT {is_missing} AND NOT {is_read}) AS u{i}"]


def _code(sql: Dialect, column: Column, i: int, *, may_be_unread: bool) -> str:
    v = f"v{i}"
    missing = REFUSED_MISSING if column.missing_code is None else column.missing_code
    outside = REFUSED_OUTSIDE if column.other_code is None else column.other_code
    cases = [f"WHEN u{i} THEN {outside}"] if may_be_unread else []
    cases.append(f"WHEN {v} IS NULL THEN {missing}")
    if isinstance(column, CategoricalColumn):
        is_text = column.value_kind == "text"
        for code, label in enumerate(column.labels):
            literal = sql.text(str(label)) if is_text else sql.number(float(label))
            cases.append(f"WHEN {v} = {literal} THEN {code}")
        otherwise = str(outside)
    else:
        assert isinstance(column, NumericColumn)  # there are no other columns
        if column.outside != "clamp":
            cases.append(f"WHEN {_is_outside(sql, column, v)} THEN {outside}")
        otherwise = _bin(sql, column, v)
    return f"CASE {' '.join(cases)} ELSE {otherwise} END"


def _is_outside(sql: Dialect, column: NumericColumn, v: str) -> str:
    if isinstance(column, IntegerColumn):
        low, high = sql.number(column.first), sql.number(column.last)
        return f"{v} < {low} OR {v} > {high} OR {v} <> FLOOR({v})"
    return f"{v} < {sql.number(column.bounds[0])} OR {v} > {sql.number(column.bounds[-1])}"


def _bin(sql: Dialect, column: NumericColumn, v: str) -> str:
    """The number of inner edges that do not exceed the value, by bisection."""
    if isinstance(column, IntegerColumn) and column.is_unit:
        near = f"LEAST(GREATEST({v}, {sql.number(column.first)}), {sql.number(column.last)})"
        return f"CAST(FLOOR({near}) AS BIGINT) - ({column.first})"

    def bisect(first: int, last: int) -> str:
        if first == last:
            return str(first)
        middle = (first + last) // 2
        edge = sql.number(column.bounds[middle + 1])
        return f"CASE WHEN {v} < {edge} THEN {bisect(first, middle)} ELSE {bisect(middle + 1, last)} END"

    return bisect(0, column.declared - 1)


class SqlEngine:
    """Counts records where they are; only counts come back."""

    def __init__(self, source: SqlSource, schema: Schema, *, records: int) -> None:
        self.domain: Domain = schema.domain
        self.records = records
        self._source = source
        self._encoded = encode_sql(source, schema)

    def count(self, attrs: Attrs) -> Counts:
        return self.count_many([attrs])[0]

    def count_many(self, marginals: Sequence[Attrs]) -> list[Counts]:
        require_countable(self.domain, marginals)
        counted: dict[Attrs, Counts] = {(): np.array(self.records, dtype=np.int64)}
        wanted = dict.fromkeys(self.domain.canonical(attrs) for attrs in marginals)
        for chunk in _chunks(self.domain, [attrs for attrs in wanted if attrs]):
            counted |= self._count_chunk(chunk)
        answers = []
        for attrs in marginals:
            own = self.domain.canonical(attrs)
            answers.append(counted[own].transpose([own.index(attr) for attr in attrs]))
        return answers

    def codes(self) -> Codes:
        """All records as codes, in no particular order: equal ones follow each other."""
        codes, times = self.distinct()
        return np.repeat(codes, times, axis=0)

    def distinct(self) -> tuple[Codes, Counts]:
        attrs = ", ".join(f"a{i}" for i in range(len(self.domain)))
        fetched = self._source.fetch(
            f"SELECT {attrs}, COUNT(*) AS n FROM ({self._encoded}) AS encoded "
            f"GROUP BY {attrs} ORDER BY {attrs}"
        )
        _require_unchanged(fetched[:-1])
        codes = np.column_stack(fetched[:-1]).astype(smallest_dtype(max(self.domain.shape)))
        return codes, fetched[-1]

    def _count_chunk(self, marginals: Sequence[Attrs]) -> dict[Attrs, Counts]:
        places = sorted({place for attrs in marginals for place in self.domain.index(attrs)})
        sets = [", ".join(f"a{place}" for place in self.domain.index(attrs)) for attrs in marginals]
        *cells, counts = self._source.fetch(
            f"SELECT {', '.join(f'COALESCE(a{p}, {_NOT_GROUPED}) AS g{p}' for p in places)}, COUNT(*) AS n "
            f"FROM ({self._encoded}) AS encoded GROUP BY GROUPING SETS ({', '.join(f'({s})' for s in sets)})"
        )
        _require_unchanged(cells)
        bit = {place: 1 << k for k, place in enumerate(places)}
        which = np.zeros(len(counts), dtype=np.int64)
        for place, codes in zip(places, cells, strict=True):
            which += np.where(codes >= 0, bit[place], 0)
        by_place = dict(zip(places, cells, strict=True))
        counted: dict[Attrs, Counts] = {}
        for attrs in marginals:
            own = self.domain.index(attrs)
            lines = np.flatnonzero(which == sum(bit[place] for place in own))
            cube = np.zeros([self.domain.shape[place] for place in own], dtype=np.int64)
            cube[tuple(by_place[place][lines] for place in own)] = counts[lines]
            counted[attrs] = cube
        return counted


def survey(source: SqlSource, schema: Schema) -> tuple[int, list[bool], list[bool]]:
    """One pass before anything is charged: how many records; whether each column has values to refuse.

    Two flags a column: missing ones, and ones outside the schema.
    """
    flags = [
        f"MAX(CASE WHEN a{i} = {refused} THEN 1 ELSE 0 END)"
        for i in range(len(schema.columns))
        for refused in (REFUSED_MISSING, REFUSED_OUTSIDE)
    ]
    # COALESCE: the maximum over no records is NULL.
    columns = ", ".join(f"COALESCE({flag}, 0) AS f{i}" for i, flag in enumerate(flags))
    fetched = source.fetch(f"SELECT COUNT(*) AS n, {columns} FROM ({encode_sql(source, schema)}) AS encoded")
    records, *found = (int(column[0]) for column in fetched)
    return records, [bool(f) for f in found[0::2]], [bool(f) for f in found[1::2]]


def _chunks(domain: Domain, marginals: Sequence[Attrs]) -> Iterator[list[Attrs]]:
    chunk: list[Attrs] = []
    cells, seen = 0, set[str]()
    for attrs in marginals:
        size, together = domain.size(attrs), seen | set(attrs)
        if chunk and (
            len(chunk) == _MOST_MARGINALS or cells + size > _MOST_CELLS or len(together) > _MOST_ATTRS
        ):
            yield chunk
            chunk, cells, together = [], 0, set(attrs)
        chunk.append(attrs)
        cells, seen = cells + size, together
    if chunk:
        yield chunk


def _require_unchanged(codes: Sequence[npt.NDArray[np.int64]]) -> None:
    if any(((c == REFUSED_MISSING) | (c == REFUSED_OUTSIDE)).any() for c in codes):
        raise DataError("the table was changed while it was being counted, and no longer fits its schema.")
