"""Encoding as SQL, written once for every engine that speaks it.

Three layers of SELECT: *raw* names the columns c0, c1, … by position, so that no name from
the data enters the SQL; *values* makes each one text or a float64, missing as NULL; *codes*
compares those with the schema's labels and edges.

``columns/value.py`` says what a value means; tests compare every engine with it, value by value. SQL engines
print real numbers and dates each in its own way, so none is printed: a label of text is turned into the one
number or date that is spelled so, where there is one, and compared as such.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from sidelight.data.columns.column import (
    LARGEST,
    BinnedColumn,
    CategoricalColumn,
    Column,
    IntegerColumn,
    Label,
)
from sidelight.data.columns.moment_columns import MomentColumn
from sidelight.data.columns.value import moment_of, number_of, text_of
from sidelight.data.engines import sql_moments as moments
from sidelight.data.engines import sql_numbers as numbers
from sidelight.data.engines.base import ValueKind
from sidelight.data.engines.sql_constraints import read_rules
from sidelight.data.schema import Schema

REFUSED_MISSING, REFUSED_OUTSIDE = -1, -2
"""Codes of values that the schema has no place for."""

_TAIL = "[89ab][0-9a-f]"
_UTF8 = (
    f"^([0-7][0-9a-f]|c[2-9a-f]{_TAIL}|d[0-9a-f]{_TAIL}|e0[ab][0-9a-f]{_TAIL}|(e[1-9a-c]|e[ef])({_TAIL}){{2}}"
    f"|ed[89][0-9a-f]{_TAIL}|f0[9ab][0-9a-f]({_TAIL}){{2}}|f[1-3]({_TAIL}){{3}}|f48[0-9a-f]({_TAIL}){{2}})*$"
)
"""Text in UTF-8, byte by byte in hexadecimal."""
UNPRINTED = (None, "date", "timestamp", "instant", "time", "bytes")
"""Types whose values have neither a number nor a prefix."""


@dataclass(frozen=True)
class Dialect:
    """The few words in which SQL engines differ."""

    double: str = "DOUBLE"
    varchar: str = "VARCHAR"
    fence: str = ""
    """Ends a SELECT that must not be merged with the one around it, which would copy its expressions."""

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

    def seconds(self, expression: str, kind: ValueKind) -> str:
        """A date or moment in whole seconds since 1970, a time in those since midnight; NULL if infinite."""
        if kind == "instant":
            return self.instant(expression)
        if kind == "timestamp":
            return self.timestamp(expression)
        days = f"CAST({self.days(expression)} AS {self.double}) * {self.number(86_400)}"
        return days if kind == "date" else self.clock(expression)

    def clock(self, expression: str) -> str:
        """The time of day in whole seconds, of a time or of a timestamp."""
        hour, minute, second = (f"EXTRACT({part} FROM {expression})" for part in ("HOUR", "MINUTE", "SECOND"))
        return f"CAST({hour} * 3600 + {minute} * 60 + FLOOR({second}) AS {self.double})"

    def timestamp(self, expression: str) -> str:
        """A timestamp without a zone in whole seconds since 1970."""
        return self._of_type(expression, f"{self.seconds(expression, 'date')} + {self.clock(expression)}")

    def _of_type(self, x: str, seconds: str) -> str:
        # DuckDB rounds nanoseconds, and so into the next second; of other types it has too few of them.
        whole = f"CAST({_floored(f'epoch_ns({x})', 1_000_000_000)} AS {self.double})"
        return f"CASE WHEN RIGHT(typeof({x}), 3) = '_NS' THEN {whole} ELSE {seconds} END"

    def days(self, expression: str) -> str:
        """Days since 1970 of a date or timestamp; NULL if it is infinite."""
        return f"CASE WHEN isfinite({expression}) THEN CAST({expression} AS DATE) - DATE '1970-01-01' END"

    def days_of_iso(self, expression: str) -> str:
        """Days since 1970 of text that the engine itself writes for a date, 2020-01-31; otherwise NULL."""
        day = f"TRY_CAST({expression} AS DATE)"
        return f"CASE WHEN {self.as_text(day)} = {expression} THEN {self.days(day)} END"

    def instant(self, expression: str) -> str:
        """Whole seconds since 1970, in Greenwich, of a timestamp with a zone."""
        x = f"CAST({expression} AS TIMESTAMPTZ)"
        whole = f"CAST({_floored(f'epoch_us({x})', 1_000_000)} AS {self.double})"
        return self._of_type(expression, f"CASE WHEN isfinite({x}) THEN {whole} END")

    def digits(self, expression: str) -> str:
        """A whole number in a type that is printed by its digits."""
        return f"TRY_CAST({expression} AS BIGINT)"

    def whole(self, expression: str) -> str:
        """The number that text of a few digits spells."""
        return f"TRY_CAST({expression} AS {self.double})"

    def blob(self, text: str) -> str:
        """A literal of bytes."""
        return f"from_hex('{text.encode().hex()}')"

    def text_of_bytes(self, expression: str) -> str:
        """Bytes as the text that they are in UTF-8; NULL where they are none, at which engines would stop."""
        is_text = self.matches(self.hexadecimal(expression), _UTF8)
        return f"CASE WHEN {is_text} THEN {self.decoded(expression)} END"

    def hexadecimal(self, expression: str) -> str:
        """Bytes as lower-case digits, two each."""
        return f"LOWER(hex({expression}))"

    def decoded(self, expression: str) -> str:
        """Bytes that are text in UTF-8, as text."""
        return f"decode({expression})"

    def number(self, number: float) -> str:
        """A float64 literal."""
        return f"CAST('{float(number)!r}' AS {self.double})"

    def sha256(self, expression: str) -> str:
        """The first 16 hexadecimal digits of the SHA-256 of text in UTF-8, as text; it sorts by bytes."""
        return f"LEFT(sha256({expression}), 16)"

    def hexadecimal_number(self, expression: str) -> str:
        """The number that text of eight hexadecimal digits spells."""
        return f"CAST('0x' || {expression} AS BIGINT)"

    def code(self, expression: str, size: int) -> str:
        """A code below ``size``, in a small type where the engine has one."""
        return f"CAST({expression} AS {'UTINYINT' if size <= 256 else 'UINTEGER'})"

    def quotient(self, expression: str, divisor: int) -> str:
        """A whole number, not negative, divided without remainder."""
        return f"({expression} // {divisor})"

    def one_of(self, expression: str, texts: Sequence[str]) -> str:
        """Whether text is one of these."""
        # DuckDB makes a join of a longer list, and copies all columns of every record.
        few = [texts[start : start + 4] for start in range(0, len(texts), 4)]
        return "(" + " OR ".join(f"{expression} IN ({', '.join(map(self.text, some))})" for some in few) + ")"


def _floored(whole: str, unit: int) -> str:
    """A whole number divided by a unit, rounded down; engines divide negative ones upward."""
    # By a part of it first: below the least of all whole numbers there is none.
    return f"({whole} // {unit} - CASE WHEN {whole} % {unit} < 0 THEN 1 ELSE 0 END)"


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
    """The part of the statement after FROM."""
    parts: tuple[Part, ...]
    """Where not all records have the same types: what stands after FROM instead."""
    dialect: Dialect

    def fetch(self, sql: str) -> list[npt.NDArray[np.int64]]:
        """The columns of a result that holds whole numbers only."""
        ...

    def fetch_labels(self, sql: str) -> list[tuple[str, int]]:
        """The lines of a result that holds texts and their numbers.

        PRIVACY: of a private table, for what a curator looks for alone.
        """
        ...

    def to_arrow(self, places: Sequence[int]) -> Any:
        """The columns at these places of a PUBLIC table, brought here as an Arrow table with their names."""
        ...

    holds: bool
    """Whether ``holding`` computes once, and not anew for every statement."""

    def holding(self, sql: str, names: Sequence[str]) -> "SqlSource":
        """The columns that ``sql`` selects, as a source of their own, where the table itself is."""
        ...


def encode_sql(source: SqlSource, schema: Schema, person: str | None = None) -> str:
    """SELECT the codes of every record, as a0, a1, … in the schema's order.

    With ``person``, the column that says who a record is about, also select p, who that is, and pu, whether
    that cannot be read (``sql_people.person_of``).
    """
    parts = source.parts or (Part(source.relation, source.types),)
    return " UNION ALL ".join(_encode_part(source, part, schema, person) for part in parts)


def values_sql(source: SqlSource, schema: Schema, person: str | None = None) -> str:
    """SELECT the values v0, v1, … and whether each cannot be read, u0, u1, …; p and pu as ``encode_sql``."""
    parts = source.parts or (Part(source.relation, source.types),)
    return " UNION ALL ".join(_values_of_part(source, part, schema, person) for part in parts)


def _encode_part(source: SqlSource, part: Part, schema: Schema, person: str | None) -> str:
    sql = source.dialect
    prepared = _values_of_part(source, part, schema, person)
    codes = []
    for i, column in enumerate(schema.columns):
        kind = _kind_read(source, part, column)
        code = _code_of_whole if _stays_whole(schema, column, kind) else _code
        codes.append(f"{code(sql, column, kind, i)} AS a{i}")
    people = [] if person is None else ["p", "pu"]
    rules = read_rules(sql, schema.constraints, schema.columns, REFUSED_OUTSIDE)
    if not rules:
        return f"SELECT {', '.join(codes + people)} FROM ({prepared}) AS prepared"
    read = f"SELECT *, {', '.join(codes)} FROM ({prepared}) AS prepared{sql.fence}"
    ruled = [f"{rules.get(i, f'a{i}')} AS a{i}" for i in range(len(schema.columns))]
    return f"SELECT {', '.join(ruled + people)} FROM ({read}) AS read"


def _kind_read(source: SqlSource, part: Part, column: Column) -> ValueKind | None:
    """The type in which a column is read: bytes are text, but where they are compared as a whole."""
    kind = part.types[source.names.index(column.name)]
    return "text" if kind == "bytes" and not _is_of_labels(column) else kind


def _values_of_part(source: SqlSource, part: Part, schema: Schema, person: str | None) -> str:
    sql = source.dialect
    values: list[str] = []
    cut: list[list[str]] = []
    decoded: list[str] = []
    for i, column in enumerate(schema.columns):
        place = source.names.index(column.name)
        kind, x = _kind_read(source, part, column), f"c{place}"
        if kind != part.types[place]:
            decoded.append(f"{sql.text_of_bytes(x)} AS b{i}")
            x = f"b{i}"
        pieces: list[list[str]] = []
        if kind == "text" and isinstance(column, MomentColumn):
            pieces = moments.layers(sql, column, x, i)
            value, is_unread = moments.value_of_text(sql, i)
        elif kind == "text" and column.value_kind != "text":
            comma = source.kind == "file.csv" and schema.file.decimal == ","
            pieces = numbers.layers(sql, column, x, i, comma=comma)
            value, is_unread = numbers.value_of_text(sql, column, i)
        elif _stays_whole(schema, column, kind):
            value, is_unread = x, "FALSE"
        else:
            value, is_unread = _value(sql, column, x, kind)
        cut = [own + more for own, more in zip_longest(cut, pieces, fillvalue=list[str]())]
        if x == f"b{i}":
            is_unread = f"({is_unread} OR (c{place} IS NOT NULL AND {x} IS NULL))"
        values += [f"{value} AS v{i}", f"{is_unread} AS u{i}"]
    if person is not None:
        from sidelight.data.engines.sql_people import person_of

        place = source.names.index(person)
        who, is_unread = person_of(sql, f"c{place}", part.types[place])
        values += [f"{who} AS p", f"{is_unread} AS pu"]
    named = ", ".join(f"c{place}" for place in range(len(source.names)))
    relation = f"{part.relation} AS raw({named})"
    for depth, layer in enumerate([decoded, *cut] if decoded else cut):
        relation = f"(SELECT *, {', '.join(layer)} FROM {relation}{sql.fence}) AS cut{depth}"
    return f"SELECT {', '.join(values)} FROM {relation}{sql.fence}"


def _is_of_labels(column: Column) -> bool:
    """Whether text is compared as a whole, so that bytes are compared as they are."""
    return isinstance(column, CategoricalColumn) and column.value_kind == "text" and column.prefix is None


def _nothing(sql: Dialect, x: str, kind: ValueKind | None) -> tuple[str, str]:
    """No code for values of a type that the column cannot hold, and whether there is one."""
    found = _number(sql, x, kind) if kind in ("real", "decimal") else x
    return f"CAST(NULL AS {sql.double})", f"({found} IS NOT NULL)"


def _number(sql: Dialect, x: str, kind: ValueKind) -> str:
    """A real number or decimal as a float64; NULL where it is no number."""
    number = sql.decimal(x) if kind == "decimal" else f"CAST({x} AS {sql.double})"
    return f"NULLIF({number}, {sql.number(float('nan'))})"


def _value(sql: Dialect, column: Column, x: str, kind: ValueKind | None) -> tuple[str, str]:
    """The column's value, NULL if it is missing; and whether there is one that cannot be read."""
    if isinstance(column, MomentColumn):
        if kind is not None and kind in moments.TYPED[column.value_kind]:
            return moments.value_of_type(sql, column, x, kind)
        return _nothing(sql, x, kind)
    is_text = column.value_kind == "text"
    if kind in (None, "instant", "time") or (not is_text and kind in UNPRINTED):
        return _nothing(sql, x, kind)
    if isinstance(column, CategoricalColumn) and column.prefix is not None:
        return _prefix(sql, column, x, kind)
    if kind == "boolean":
        true, false = ("'true'", "'false'") if is_text else (sql.number(1), sql.number(0))
        return f"CASE WHEN {x} THEN {true} WHEN NOT {x} THEN {false} END", "FALSE"
    if kind in ("real", "decimal"):
        return _number(sql, x, kind), "FALSE"
    if is_text:
        if kind in ("date", "timestamp"):
            return sql.moment(x), "FALSE"
        return x if kind == "bytes" else sql.as_text(x), "FALSE"
    assert kind == "integer"  # numbers that text spells are read by ``sql_numbers``
    return f"CAST({x} AS {sql.double})", "FALSE"


def _stays_whole(schema: Schema, column: Column, kind: ValueKind | None) -> bool:
    """Whether whole numbers are compared as they are, which is several times faster than as float64.

    Bounds are below 2⁵³, so a number that has no float64 of its own is outside either way. Constraints
    compare values, which are float64; and no large unsigned number can be compared with one below 0.
    """
    is_unit = isinstance(column, IntegerColumn) and column.is_unit and column.first >= 0
    return kind == "integer" and is_unit and not schema.constraints


def _prefix(sql: Dialect, column: CategoricalColumn, x: str, kind: ValueKind) -> tuple[str, str]:
    """The first characters of text or of a whole number; real numbers are printed by no two engines alike."""
    if kind in UNPRINTED:
        return _nothing(sql, x, kind)
    is_unread = "FALSE"
    if kind in ("integer", "real", "decimal"):
        number = f"CAST({x} AS {sql.double})" if kind == "integer" else _number(sql, x, kind)
        same = f"{number} = CAST({sql.digits(number)} AS {sql.double})"
        is_whole = f"CASE WHEN ABS({number}) <= {sql.number(LARGEST)} THEN {same} ELSE {number} IS NULL END"
        text = f"CASE WHEN {is_whole} THEN {sql.as_text(sql.digits(number))} END"
        is_unread = f"(NOT {is_whole})"
    elif kind == "boolean":
        text = f"CASE WHEN {x} THEN 'true' WHEN NOT {x} THEN 'false' END"
    else:
        text = sql.as_text(x)
    short = f"LEFT({text}, {column.prefix})"
    if column.missing_texts:
        short = f"CASE WHEN {sql.one_of(text, column.missing_texts)} THEN NULL ELSE {short} END"
    return short, is_unread


def _code(sql: Dialect, column: Column, kind: ValueKind | None, i: int) -> str:
    v = f"v{i}"
    missing = REFUSED_MISSING if column.missing_code is None else column.missing_code
    outside = REFUSED_OUTSIDE if column.other_code is None else column.other_code
    cases = [f"WHEN u{i} THEN {outside}", f"WHEN {v} IS NULL THEN {missing}"]
    if isinstance(column, CategoricalColumn):
        held: ValueKind | None = kind
        if column.prefix is not None:
            held = None if kind in UNPRINTED else "text"
        named: list[tuple[Label, int]] = [(label, code) for code, label in enumerate(column.labels)]
        if column.value_kind == "text":
            named += column.spellings.items()
            named += [(text, missing) for text in column.missing_texts]
        else:
            named += [(number, missing) for number in column.missing_numbers]
        for label, code in named:
            literal = _label(sql, label, held)
            cases += [] if literal is None else [f"WHEN {v} = {literal} THEN {code}"]
        otherwise = str(outside)
    else:
        assert isinstance(column, BinnedColumn)  # there are no other columns
        for number in column.missing_numbers:
            cases.append(f"WHEN {v} = {sql.number(number)} THEN {missing}")
        if column.outside != "clamp":
            cases.append(f"WHEN {_is_outside(sql, column, v)} THEN {outside}")
        otherwise = _bin(sql, column, v)
    return f"CASE {' '.join(cases)} ELSE {otherwise} END"


def _code_of_whole(sql: Dialect, column: Column, kind: ValueKind | None, i: int) -> str:
    """The same for whole numbers that each have a bin of their own."""
    assert isinstance(column, IntegerColumn)
    v, first, last = f"v{i}", f"({column.first})", f"({column.last})"
    missing = REFUSED_MISSING if column.missing_code is None else column.missing_code
    outside = REFUSED_OUTSIDE if column.other_code is None else column.other_code
    named = "".join(f"WHEN {v} = {sql.number(number)} THEN {missing} " for number in column.missing_numbers)
    inside = f"WHEN {v} BETWEEN {first} AND {last} THEN CAST({v} AS BIGINT) - {first}"
    otherwise = str(outside)
    if column.outside == "clamp":
        otherwise = f"CASE WHEN {v} < {first} THEN 0 ELSE {column.declared - 1} END"
    return f"CASE WHEN {v} IS NULL THEN {missing} {named}{inside} ELSE {otherwise} END"


def _label(sql: Dialect, label: Label, kind: ValueKind | None) -> str | None:
    """The literal that a value of this kind is compared with; None where it can never be this label."""
    if not isinstance(label, str):
        return sql.number(float(label))
    if kind in (None, "instant", "time"):
        return None
    if kind in ("real", "decimal"):
        number = number_of(label)
        return sql.number(number) if number is not None and text_of(number) == label else None
    if kind in ("date", "timestamp"):
        is_spelled = moment_of(label) == label and not (kind == "date" and "T" in label)
        return sql.moment_literal(label, kind) if is_spelled else None
    return sql.blob(label) if kind == "bytes" else sql.text(label)


def _is_outside(sql: Dialect, column: BinnedColumn, v: str) -> str:
    low, high = map(sql.number, column.ends)
    is_fraction = f" OR {v} <> FLOOR({v})" if isinstance(column, IntegerColumn) else ""
    return f"{v} < {low} OR {v} > {high}{is_fraction}"


def _bin(sql: Dialect, column: BinnedColumn, v: str) -> str:
    """The number of inner edges that do not exceed the value, by bisection."""
    if isinstance(column, MomentColumn) and column.is_circular:
        return moments.bin_in_circle(sql, column, v)
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
