"""PostgreSQL: ``postgresql://…#table``. Records stay in the database; only counts come back."""

from typing import Any

import numpy as np
import numpy.typing as npt

from sidelight._extras import need
from sidelight.data.engines.base import ValueKind
from sidelight.data.engines.sql import Dialect, SqlEngine
from sidelight.errors import DataError

PREFIXES = ("postgresql://", "postgres://")

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
        address, _, table = url.partition("#")
        if not table:
            raise DataError(f"name the table after a #, as in {PREFIXES[0]}host/database#table.")
        self.relation = ".".join('"' + part.replace('"', '""') + '"' for part in table.split("."))
        self._psycopg: Any = need("psycopg", "to read a PostgreSQL table")
        self._address = address
        with self._connect() as connection:
            try:
                described = connection.execute(f"SELECT * FROM {self.relation} LIMIT 0").description
            except self._psycopg.Error:
                raise DataError(f"the PostgreSQL database has no table {table!r} that can be read.") from None
        self.names = tuple(column.name for column in described)
        self.types = tuple(self._kind_of(column.type_code) for column in described)

    def fetch(self, sql: str) -> list[npt.NDArray[np.int64]]:
        with self._connect() as connection:
            try:
                cursor = connection.execute(sql)
                lines = np.array(cursor.fetchall(), dtype=np.int64)
                return list(lines.reshape(len(lines), len(cursor.description)).T)
            except self._psycopg.Error as error:
                # The server's own message may quote values.
                raise DataError(f"PostgreSQL could not read the table ({type(error).__name__}).") from None

    def _connect(self) -> Any:
        try:
            connection = self._psycopg.connect(self._address)
        except self._psycopg.Error:
            # The driver's message may hold the address, and with it a password.
            raise DataError("the PostgreSQL database could not be reached; check the address.") from None
        connection.read_only = True
        return connection

    def _kind_of(self, type_code: int) -> ValueKind | None:
        found = self._psycopg.adapters.types.get(type_code)
        return _TYPES.get(found.name) if found else None


PostgresEngine = SqlEngine
