"""PostgreSQL: ``postgresql://…#table``. Records stay in the database; only counts come back.

PRIVACY: nothing that a schema or a server says can make a statement do more than count. Text is
quoted in a way that no setting of the server changes; every statement goes by itself, by the extended
protocol, which takes one only; the transaction is read-only; and functions and operators are
PostgreSQL's own.
"""

import copy
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from sidelight._extras import need
from sidelight.data.engines.base import ValueKind
from sidelight.data.engines.sql_encoding import Dialect, Part
from sidelight.errors import DataError
from sidelight.sources import failure, source_name, split_address

_SETTINGS = (
    "SET LOCAL default_transaction_read_only = on",
    "SET LOCAL standard_conforming_strings = on",
)
_SET_PATH = "SELECT pg_catalog.set_config('search_path', %s::pg_catalog.text, true)"
_FIND = (
    "SELECT s.nspname, t.relname FROM pg_catalog.pg_class AS t JOIN pg_catalog.pg_namespace AS s "
    "ON s.oid OPERATOR(pg_catalog.=) t.relnamespace "
    "WHERE t.oid OPERATOR(pg_catalog.=) pg_catalog.to_regclass(%s::pg_catalog.text)"
)

_LARGEST, _SMALLEST = "1.797693134862315807e308", "2.4703282292062327e-324"
"""Beyond the one a decimal is infinite as a float64, and nearer to 0 than the other it is 0."""
_MOST_DIGITS = 16_000
_FIRST_DAY, _DAY_AFTER = "DATE '0001-01-01'", "DATE '9999-12-31'"
"""Between them lie the dates that are brought here: Python has no others, and zones move them by a day."""
_BATCH = 50_000
"""Public records that are brought here at a time."""

# Names of pg_type.
_TYPES: dict[str, ValueKind] = {
    "text": "text",
    "varchar": "text",
    "bpchar": "text",
    "name": "text",
    "bool": "boolean",
    "int2": "integer",
    "int4": "integer",
    "int8": "integer",
    "float4": "real",
    "float8": "real",
    "numeric": "decimal",
    "date": "date",
    "timestamp": "timestamp",
    "timestamptz": "instant",
    "time": "time",
    "bytea": "bytes",
}


class PostgresDialect(Dialect):
    """PostgreSQL's words: there is no TRY_CAST, but CASE looks only where it must."""

    def text(self, text: str) -> str:
        # PRIVACY: E'…' reads backslashes as escapes whatever standard_conforming_strings is; '…' does not.
        return "E'" + text.replace("\\", "\\\\").replace("'", "''") + "'"

    def as_text(self, expression: str) -> str:
        # Letter by letter, whatever the column's collation holds for equal.
        return f'(CAST({expression} AS TEXT) COLLATE pg_catalog."C")'

    def matches(self, expression: str, pattern: str) -> str:
        # PRIVACY: a number of more digits than PostgreSQL can hold would stop it; here it is no number.
        return f"(LENGTH({expression}) <= {_MOST_DIGITS} AND {expression} ~ {self.text(pattern)})"

    def parse(self, expression: str) -> str:
        # PRIVACY: PostgreSQL stops at a number beyond the range of float8, or so near 0 that it is 0. One
        # record would decide whether the table is read at all, so its digits are looked at beforehand.
        t = expression
        power = f"split_part({t}, 'e', 2)"
        digits = f"CAST(split_part({t}, 'e', 1) AS NUMERIC)"
        is_long = f"LENGTH(LTRIM({power}, '+-0')) > 5"
        exponent = (
            f"(CASE WHEN {power} = '' THEN 0 WHEN {is_long} AND LEFT({power}, 1) = '-' THEN -99999 "
            f"WHEN {is_long} THEN 99999 ELSE CAST({power} AS INTEGER) END)"
        )
        size = f"(LOG(ABS({digits})) + {exponent})"  # only evaluated where the digits are not all 0
        infinite = f"CASE WHEN {digits} > 0 THEN {self.number(math.inf)} ELSE {self.number(-math.inf)} END"
        return (
            f"CASE WHEN LENGTH({t}) <= 200 AND LENGTH({power}) <= 2 THEN CAST({t} AS {self.double}) "
            f"WHEN {digits} = 0 THEN {self.number(0)} WHEN {size} > 310 THEN {infinite} "
            f"WHEN {size} < -330 THEN {self.number(0)} ELSE {self.decimal(f'CAST({t} AS NUMERIC)')} END"
        )

    def decimal(self, expression: str) -> str:
        x = expression
        return (
            f"CASE WHEN {x} = 'NaN' THEN NULL WHEN {x} > {_LARGEST} THEN {self.number(math.inf)} "
            f"WHEN {x} < -{_LARGEST} THEN {self.number(-math.inf)} "
            f"WHEN ABS({x}) < {_SMALLEST} THEN {self.number(0)} ELSE CAST({x} AS {self.double}) END"
        )

    def moment(self, expression: str) -> str:
        return expression

    def moment_literal(self, label: str, kind: ValueKind) -> str:
        if len(label.partition(".")[2]) > 6:
            return "NULL"  # finer than a timestamp is here
        return f"CAST({self.text(label)} AS {kind.upper()})"

    def days_of_iso(self, expression: str) -> str:
        return "NULL"  # PRIVACY: PostgreSQL would stop at a day that does not exist

    def digits(self, expression: str) -> str:
        return f"CAST({expression} AS BIGINT)"

    def whole(self, expression: str) -> str:
        # Only asked where a pattern was matched; of NULL it is NULL.
        return f"CAST(CAST(NULLIF({expression}, '') AS INTEGER) AS {self.double})"

    def timestamp(self, expression: str) -> str:
        return f"({self.seconds(expression, 'date')} + {self.clock(expression)})"

    def instant(self, expression: str) -> str:
        return self.timestamp(f"({expression} AT TIME ZONE 'UTC')")

    def sha256(self, expression: str) -> str:
        return f"LEFT(encode(sha256(convert_to({expression}, 'UTF8')), 'hex'), 16) COLLATE pg_catalog.\"C\""

    def hexadecimal_number(self, expression: str) -> str:
        return f"CAST(CAST('x' || {expression} AS BIT(32)) AS BIGINT)"

    def code(self, expression: str, size: int) -> str:
        return expression

    def quotient(self, expression: str, divisor: int) -> str:
        return f"({expression} / {divisor})"

    def hexadecimal(self, expression: str) -> str:
        return f"encode({expression}, 'hex')"

    def decoded(self, expression: str) -> str:
        # Null characters are no text to PostgreSQL; no label holds one either.
        has_null = f"position('\\000'::bytea IN {expression}) > 0"
        return f"CASE WHEN NOT {has_null} THEN convert_from({expression}, 'UTF8') END"

    def blob(self, text: str) -> str:
        return f"decode('{text.encode().hex()}', 'hex')"


class PostgresSource:
    """A table or view of a PostgreSQL database, read in read-only transactions."""

    kind = "postgres"
    extra: tuple[str, ...] = ()
    parts: tuple[Part, ...] = ()
    dialect: Dialect = PostgresDialect(double="DOUBLE PRECISION", varchar="TEXT", fence=" OFFSET 0")
    holds = False

    def __init__(self, url: str) -> None:
        address, table = split_address(url)
        if not table:
            raise DataError("name the table after a #, as in postgresql://…#table.")
        if "://" not in address:
            raise DataError("give the address of a database as text: a Path keeps one of its slashes only.")
        self._name = source_name(url)
        self._psycopg: Any = need("psycopg", "to read a PostgreSQL table")
        self._address = "postgresql://" + address.partition("://")[2]
        asked = ".".join(_quoted(part) for part in table.split("."))
        with self._connect() as connection:
            found = self._run(connection, _FIND, [asked]).fetchone()
        if found is None:
            raise DataError(f"{self._name} cannot be read: there is no such table.")
        self.relation = ".".join(_quoted(part) for part in found)
        with self._connect() as connection:
            described = self._run(connection, f"SELECT * FROM {self.relation} LIMIT 0").description
        self.names = tuple(column.name for column in described)
        self.types = tuple(self._kind_of(column.type_code) for column in described)

    def fetch(self, sql: str) -> list[npt.NDArray[np.int64]]:
        with self._connect() as connection:
            cursor = self._run(connection, sql)
            lines = np.array(cursor.fetchall(), dtype=np.int64)
            return list(lines.reshape(len(lines), len(cursor.description)).T)

    def fetch_labels(self, sql: str) -> list[tuple[str, int]]:
        with self._connect() as connection:
            return [(label, int(number)) for label, number in self._run(connection, sql).fetchall()]

    def to_arrow(self, places: Sequence[int]) -> Any:
        import pyarrow as pa

        named = ", ".join(f"c{place}" for place in range(len(self.names)))
        asked = ", ".join(self._portable(place) for place in places)
        with self._connect() as connection:
            cursor = self._run(connection, f"SELECT {asked} FROM {self.relation} AS raw({named})")
            batches: list[Any] = []
            while not batches or batches[-1].num_rows:
                columns = list(zip(*cursor.fetchmany(_BATCH), strict=True)) or [()] * len(places)
                arrays = [
                    pa.array(column, type=_arrow_type(self.types[place]))
                    for column, place in zip(columns, places, strict=True)
                ]
                batches.append(pa.Table.from_arrays(arrays, [self.names[place] for place in places]))
        return pa.concat_tables(batches)

    def _portable(self, place: int) -> str:
        """A column as Python reads it: without dates beyond its calendar, decimals as real numbers."""
        x, kind = f"c{place}", self.types[place]
        if kind in ("date", "timestamp", "instant"):
            return f"CASE WHEN {x} >= {_FIRST_DAY} AND {x} < {_DAY_AFTER} THEN {x} END"
        if kind == "decimal":
            return self.dialect.decimal(x)
        if kind in ("text", None):
            return self.dialect.as_text(x)
        return f"CAST({x} AS BIGINT)" if kind == "integer" else x

    def holding(self, sql: str, names: Sequence[str]) -> "PostgresSource":
        # PRIVACY: the database is only read, so nothing is kept there: it is computed anew for each count.
        held = copy.copy(self)
        held.relation, held.names = f"({sql})", tuple(names)
        held.types = tuple("integer" for _ in names)
        return held

    def _connect(self) -> Any:
        try:
            connection = self._psycopg.connect(self._address, client_encoding="utf8")
        except (self._psycopg.Error, ValueError) as error:
            raise self._refused(error) from None
        try:
            self._guard(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _guard(self, connection: Any) -> None:
        """Settings of this transaction alone: a pool may hand the connection on to somebody else."""
        connection.read_only = True
        for setting in _SETTINGS:
            self._run(connection, setting)
        (path,) = self._run(connection, "SHOW search_path").fetchone()
        own_first = ", ".join(part for part in ("pg_catalog", path) if part)
        self._run(connection, _SET_PATH, [own_first])

    def _run(self, connection: Any, sql: str, values: Any = None) -> Any:
        try:
            # PRIVACY: binary results take the extended protocol, which runs one statement and no more.
            return connection.execute(sql, values, binary=True)
        except (self._psycopg.Error, UnicodeError) as error:
            raise self._refused(error) from None

    def _refused(self, error: BaseException) -> DataError:
        # PRIVACY: the driver's message may hold the address, with its password, and the server's a value.
        return DataError(f"{self._name} cannot be read: {failure(getattr(error, 'sqlstate', None))}.")

    def _kind_of(self, type_code: int) -> ValueKind | None:
        found = self._psycopg.adapters.types.get(type_code)
        # The driver finds the type of an array's items too.
        return _TYPES.get(found.name) if found and found.oid == type_code else None


def _arrow_type(kind: ValueKind | None) -> Any:
    import pyarrow as pa

    types = {
        "integer": pa.int64(),
        "real": pa.float64(),
        "decimal": pa.float64(),
        "boolean": pa.bool_(),
        "date": pa.date32(),
        "timestamp": pa.timestamp("us"),
        "instant": pa.timestamp("us", "UTC"),
        "time": pa.time64("us"),
        "bytes": pa.binary(),
    }
    return types.get(kind or "", pa.string())


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
