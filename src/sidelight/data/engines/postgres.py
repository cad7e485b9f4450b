"""PostgreSQL: ``postgresql://…#table``. Records stay in the database; only counts come back.

PRIVACY: nothing that a schema or a server says can make a statement do more than count. Text is
quoted in a way that no setting of the server changes; every statement goes by itself, by the extended
protocol, which takes one only; the transaction is read-only; and functions and operators are
PostgreSQL's own.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from sidelight._extras import need
from sidelight.data.engines.base import ValueKind
from sidelight.data.engines.sql import Dialect, SqlEngine
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
    "numeric": "real",
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
        return f"({expression} ~ {self.text(pattern)})"

    def parse(self, expression: str) -> str:
        return f"CAST({expression} AS {self.double})"


class PostgresSource:
    """A table or view of a PostgreSQL database, read in read-only transactions."""

    kind = "postgres"
    extra: tuple[str, ...] = ()
    dialect: Dialect = PostgresDialect(double="DOUBLE PRECISION", varchar="TEXT")

    def __init__(self, url: str) -> None:
        address, table = split_address(url)
        if not table:
            raise DataError("name the table after a #, as in postgresql://…#table.")
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
        return _TYPES.get(found.name) if found else None


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


PostgresEngine = SqlEngine
