"""Encoding as SQL, written once for every engine that speaks it.

Three layers of SELECT: *raw* names the columns c0, c1, … by position, so that no name from
the data enters the SQL; *values* makes each one text or a float64, missing as NULL; *codes*
compares those with the schema's labels and edges.

``value.py`` says what a value means; tests compare every engine with it, value by value. SQL engines print
real numbers and dates each in its own way, so none is printed: a label of text is turned into the one number
or date that is spelled so, where there is one, and compared as such.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from sidelight.data.column import CategoricalColumn, Column, IntegerColumn, Label, NumericColumn
from sidelight.data.engines.base import ValueKind
from sidelight.data.schema import Schema
from sidelight.data.value import moment_of, number_of, text_of

REFUSED_MISSING, REFUSED_OUTSIDE = -1, -2
"""Codes of values that the schema has no place for."""

_NUMBER = "^[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)(e[+-]?[0-9]+)?$"  # of text in lower case; no backslashes
_ABOVE, _BELOW = ("inf", "+inf", "infinity", "+infinity"), ("-inf", "-infinity")
_TRUE, _FALSE = ("true", "t", "1"), ("false", "f", "0")


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
