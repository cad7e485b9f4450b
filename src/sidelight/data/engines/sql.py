"""Encoding and counting as SQL, written once for every engine that speaks it.

Three layers of SELECT: *raw* names the columns c0, c1, … by position, so that no name from
the data enters the SQL; *values* makes each one text or a float64, missing as NULL; *codes*
compares those with the schema's labels and edges. Counting groups the codes by
GROUPING SETS, one set a marginal, so that one pass serves many marginals and only counts
come back.

What a value means, ``value`` says, and ``encode.encode_value`` does the same in Python. SQL engines print
real numbers and dates each in its own way, so none is printed: a label of text is turned into the one number
or date that is spelled so, where there is one, and compared as such.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from sidelight.data.column import CategoricalColumn, Column, IntegerColumn, Label, NumericColumn
from sidelight.data.domain import Attrs, Domain
from sidelight.data.engines.base import Codes, Counts, ValueKind, require_countable, smallest_dtype
from sidelight.data.schema import Schema
from sidelight.data.value import moment_of, number_of, text_of
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
        """Text as a float64, infinite or 0 beyond its range; only asked of text that is a number."""
        return f"TRY_CAST({expression} AS {self.double})"

    def decimal(self, expression: str) -> str:
        """A decimal as the nearest float64, whatever scale its column has."""
        # By its digits: dividing by a power of ten would round twice, and differently for each scale.
        return f"CAST({self.as_text(expression)} AS {self.double})"

    def moment(self, expression: str) -> str:
        """A date or a timestamp, in a form that ``moment_literal`` can be compared with."""
        return self.as_text(expression)

    def moment_literal(self, label: str, kind: ValueKind) -> str:
        """The date or timestamp that ``label`` spells as ``value.text_of`` does."""
        if kind == "date":
            return self.text(label)
        return self.text(label.replace("T", " ") if "T" in label else f"{label} 00:00:00")

    def blob(self, text: str) -> str:
        """A literal of bytes."""
        return f"from_hex('{text.encode().hex()}')"

    def number(self, number: float) -> str:
        """A float64 literal."""
        return f"CAST('{float(number)!r}' AS {self.double})"

    def one_of(self, expression: str, texts: Sequence[str]) -> str:
        """Whether text is one of these."""
        return f"{expression} IN ({', '.join(map(self.text, texts))})"


@dataclass(frozen=True)
class Part:
    """Records that have the table's columns in types of their own, such as one of several files."""

    relation: str
    types: tuple[ValueKind | None, ...]


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
    parts: tuple[Part, ...]
    """Where not all records have the same types: what stands after FROM instead."""
    dialect: Dialect

    def fetch(self, sql: str) -> list[npt.NDArray[np.int64]]:
        """The columns of a result that holds whole numbers only."""
        ...


def encode_sql(source: SqlSource, schema: Schema) -> str:
    """SELECT the codes of every record, as a0, a1, … in the schema's order."""
    parts = source.parts or (Part(source.relation, source.types),)
    return " UNION ALL ".join(_encode_part(source, part, schema) for part in parts)


def _encode_part(source: SqlSource, part: Part, schema: Schema) -> str:
    sql = source.dialect
    values: list[str] = []
    codes: list[str] = []
    for i, column in enumerate(schema.columns):
        place = source.names.index(column.name)
        kind = part.types[place]
        value, is_unread = _value(sql, column, f"c{place}", kind)
        values += [f"{value} AS v{i}", f"{is_unread} AS u{i}"]
        codes.append(f"{_code(sql, column, kind, i)} AS a{i}")
    named = ", ".join(f"c{place}" for place in range(len(source.names)))
    prepared = f"SELECT {', '.join(values)} FROM {part.relation} AS raw({named})"
    return f"SELECT {', '.join(codes)} FROM ({prepared}) AS prepared"


def _value(sql: Dialect, column: Column, x: str, kind: ValueKind | None) -> tuple[str, str]:
    """The column's value, NULL if it is missing; and whether there is one that cannot be read."""
    is_text = column.value_kind == "text"
    if kind is None or (not is_text and kind in ("date", "timestamp", "bytes")):
        return f"CAST(NULL AS {sql.double})", f"({x} IS NOT NULL)"
    if kind == "boolean":
        true, false = ("'true'", "'false'") if is_text else (sql.number(1), sql.number(0))
        return f"CASE WHEN {x} THEN {true} WHEN NOT {x} THEN {false} END", "FALSE"
    if kind in ("real", "decimal"):
        number = sql.decimal(x) if kind == "decimal" else f"CAST({x} AS {sql.double})"
        return f"NULLIF({number}, {sql.number(float('nan'))})", "FALSE"
    if is_text:
        if kind in ("date", "timestamp"):
            return sql.moment(x), "FALSE"
        return x if kind == "bytes" else sql.as_text(x), "FALSE"
    if kind == "integer":
        return f"CAST({x} AS {sql.double})", "FALSE"
    return _value_of_text(sql, column, x)


def _value_of_text(sql: Dialect, column: Column, x: str) -> tuple[str, str]:
    """The number that text spells."""
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
    return value, f"(NOT {is_missing} AND NOT {is_read})"


def _code(sql: Dialect, column: Column, kind: ValueKind | None, i: int) -> str:
    v = f"v{i}"
    missing = REFUSED_MISSING if column.missing_code is None else column.missing_code
    outside = REFUSED_OUTSIDE if column.other_code is None else column.other_code
    cases = [f"WHEN u{i} THEN {outside}", f"WHEN {v} IS NULL THEN {missing}"]
    if isinstance(column, CategoricalColumn):
        for code, label in enumerate(column.labels):
            literal = _label(sql, label, kind)
            cases += [] if literal is None else [f"WHEN {v} = {literal} THEN {code}"]
        otherwise = str(outside)
    else:
        assert isinstance(column, NumericColumn)  # there are no other columns
        if column.outside != "clamp":
            cases.append(f"WHEN {_is_outside(sql, column, v)} THEN {outside}")
        otherwise = _bin(sql, column, v)
    return f"CASE {' '.join(cases)} ELSE {otherwise} END"


def _label(sql: Dialect, label: Label, kind: ValueKind | None) -> str | None:
    """What a value of this kind is compared with; None where it can never be this label."""
    if not isinstance(label, str):
        return sql.number(float(label))
    if kind is None:
        return None
    if kind in ("real", "decimal"):
        number = number_of(label)
        return sql.number(number) if number is not None and text_of(number) == label else None
    if kind in ("date", "timestamp"):
        is_spelled = moment_of(label) == label and not (kind == "date" and "T" in label)
        return sql.moment_literal(label, kind) if is_spelled else None
    return sql.blob(label) if kind == "bytes" else sql.text(label)


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
