"""DuckDB: files larger than memory, relations, and frames by way of Arrow.

Records are encoded by DuckDB and streamed, a batch at a time, as small unsigned codes.
Counting them with the NumPy kernel is faster than DuckDB's own grouping sets, which copy every
record once a marginal (benchmarks/speed/duckdb_memory.py measures both), and keeps memory flat.

No extension is installed or loaded, and nothing is fetched from the network.
"""

import os
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from sidelight.data.domain import Attrs, Domain
from sidelight.data.engines.base import (
    CHANGED,
    HERE,
    Codes,
    Counts,
    Tell,
    ValueKind,
    require_countable,
    smallest_dtype,
    tell_nobody,
)
from sidelight.data.engines.counting import MarginalCounter
from sidelight.data.engines.kept_records import Word, unpacked
from sidelight.data.engines.own_folder import own_folder
from sidelight.data.engines.sql import SqlEngine
from sidelight.data.engines.sql_encoding import REFUSED_MISSING, REFUSED_OUTSIDE, Dialect, Part, encode_sql
from sidelight.data.engines.sql_people import codes_sql, word_names
from sidelight.data.schema import Schema
from sidelight.errors import DataError

VIEW = "sidelight_source"
_BATCH = 1 << 17
_SQL_TYPE = {1: "UTINYINT", 2: "USMALLINT", 4: "UINTEGER", 8: "UBIGINT"}
_MEMORY = "1GB"
_SINGLE: dict[str, ValueKind] = {
    "DATE": "date",
    "TIME": "time",
    "TIME_NS": "time",
    "TIMESTAMP WITH TIME ZONE": "instant",
    "TIMESTAMPTZ_NS": "instant",
    "BLOB": "bytes",
}


class DuckDBSource:
    """A relation of the caller's, or a view on a connection of our own (its ``owner``)."""

    dialect = Dialect()
    relation = VIEW
    holds = True

    def __init__(
        self,
        rows: Any,
        *,
        kind: str,
        names: Sequence[str],
        extra: Sequence[str] = (),
        is_large: bool = False,
        owner: Any = None,
        parts: Sequence[Any] = (),
    ) -> None:
        self.kind = kind
        self.names = tuple(names)
        self.extra = tuple(extra)
        self.is_large = is_large
        """Whether its codes are better left where they are than brought into memory."""
        self.words: str | None = None
        """The table that holds its codes as few whole numbers (``kept_records``), all of them good."""
        self._owner = owner
        self.types = _kinds_of(rows)
        self._rows = rows
        self.explain: Callable[[], str | None] = lambda: None
        """A better message than DuckDB's, looked for once it has failed."""
        self.parts = tuple(Part(part.alias, _kinds_of(part)) for part in parts)

    def run(self, sql: str) -> Any:
        """The result of ``sql`` as a relation of its own."""
        # A relation of the caller's knows its connection, and keeps it to itself.
        return self._rows.query(VIEW, sql) if self._owner is None else self._owner.sql(sql)

    def fetch(self, sql: str) -> list[npt.NDArray[np.int64]]:
        with silent_errors(self.explain):
            table = _table(self.run(sql))
            return [column.to_numpy().astype(np.int64) for column in table.columns]

    def fetch_labels(self, sql: str) -> list[tuple[str, int]]:
        with silent_errors(self.explain):
            return [(label, int(number)) for label, number in self.run(sql).fetchall()]

    def table(self, sql: str) -> Any:
        """The result of ``sql`` as an Arrow table."""
        with silent_errors(self.explain):
            return _table(self.run(sql))

    def to_arrow(self, places: Sequence[int]) -> Any:
        import pyarrow as pa

        names = [self.names[place] for place in places]
        return pa.concat_tables([part.rename_columns(names) for part in self.columns(places)])

    def columns(self, places: Sequence[int]) -> list[Any]:
        """The columns at these places as Arrow tables, one a part, in the order of the records."""
        named = ", ".join(f"c{place}" for place in range(len(self.names)))
        asked = ", ".join(f"c{place} AS x{i}" for i, place in enumerate(places))
        relations = [part.relation for part in self.parts] or [self.relation]
        with silent_errors():
            return [_table(self.run(f"SELECT {asked} FROM {one} AS raw({named})")) for one in relations]

    def holding(self, sql: str, names: Sequence[str]) -> "DuckDBSource":
        """A table on a connection of our own, which DuckDB spills where only this user can look."""
        name = f"{VIEW}_{uuid.uuid4().hex}"
        connection = connect() if self._owner is None else self._owner
        with silent_errors():
            if self._owner is None:
                # Nothing is written to a database of the caller's.
                connection.register("found", _reader(self.run(sql)))
                connection.execute(f"CREATE TEMP TABLE {name} AS SELECT * FROM found")
                connection.unregister("found")
            else:
                connection.execute(f"CREATE TEMP TABLE {name} AS {sql}")
            held = connection.table(name)
        source = DuckDBSource(held, kind=self.kind, names=names, is_large=self.is_large, owner=connection)
        source.relation = name
        return source

    def holding_words(self, batches: Iterable[Sequence[Word]], domain: Domain) -> "DuckDBSource":
        """A table of these words, and so of the codes of all attributes, on a connection of its own."""
        import pyarrow as pa

        name, connection = f"{VIEW}_{uuid.uuid4().hex}", connect()
        columns = word_names(domain.shape)
        with silent_errors():
            connection.execute(f"CREATE TEMP TABLE {name} ({', '.join(f'{c} BIGINT' for c in columns)})")
            for words in batches:
                connection.register("found", pa.table(dict(zip(columns, words, strict=True))))
                connection.execute(f"INSERT INTO {name} SELECT * FROM found")
                connection.unregister("found")
            codes = connection.sql(codes_sql(self.dialect, name, domain.shape))
        source = DuckDBSource(codes, kind=self.kind, names=domain.attrs, is_large=True, owner=connection)
        source.relation, source.words = f"({codes_sql(self.dialect, name, domain.shape)})", name
        return source

    def stream(self, sql: str) -> Iterator[Any]:
        """The result as Arrow, batch by batch."""
        with silent_errors(self.explain):
            yield from _reader(self.run(sql))


@contextmanager
def silent_errors(explain: Callable[[], str | None] = lambda: None) -> Iterator[None]:
    """DuckDB and Arrow quote the offending value in their messages: keep the fact, drop the text."""
    import duckdb
    import pyarrow as pa

    try:
        yield
    except duckdb.InterruptException:
        raise KeyboardInterrupt from None
    except duckdb.OutOfMemoryException:
        raise DataError("DuckDB ran out of the memory it may use while reading the table.") from None
    except (duckdb.Error, pa.ArrowException, OSError) as error:
        raise DataError(
            explain()
            or f"the table could not be read ({type(error).__name__}): a file that is damaged, that changes "
            "while it is read, or whose lines do not all have the same columns."
        ) from None
    except RuntimeError as stop:
        # Ctrl-C while a query runs: DuckDB may make an error of its own of it.
        if str(stop) == "Query interrupted":
            raise KeyboardInterrupt from None
        raise


def connect(threads: int | None = None) -> Any:
    """A connection of our own, to a database that the process shares: views on it must be temporary.

    It uses as many threads as there are cores, and may spill; of one that is told how many, neither is so.
    """
    return _database(os.getpid(), threads).cursor()


@lru_cache(maxsize=2)  # by process: a forked one must not use its parent's
def _database(process: int, threads: int | None) -> Any:
    """In memory, no extensions, bounded. Starting one takes far longer than reading a small table."""
    import duckdb

    spill = ""  # nowhere
    if threads is None:  # a worker of Spark, which is told, ends without removing anything
        with suppress(OSError):
            # PRIVACY: what does not fit in memory is spilled where only this user can look, and removed.
            spill = str(own_folder() / "spill")
    database = duckdb.connect(
        config={
            "allow_community_extensions": "false",
            "allow_unsigned_extensions": "false",
            "autoinstall_known_extensions": "false",
            "autoload_known_extensions": "false",
            "memory_limit": _MEMORY,
            "temp_directory": spill,
            **({} if threads is None else {"threads": threads}),
        }
    )
    database.execute("SET lock_configuration = true")
    return database


def literal(text: str) -> str:
    """A text literal, for the paths that are read."""
    return Dialect().text(text)


def encoded_columns(source: DuckDBSource, schema: Schema) -> Iterator[list[npt.NDArray[np.unsignedinteger]]]:
    """All records as codes, batch by batch, one array an attribute.

    The two largest numbers of each type stand for refused values: outside, then missing.
    """
    for batch in encoded_batches(source, schema):
        yield [column.to_numpy(zero_copy_only=False) for column in batch.columns]


def encoded_batches(source: DuckDBSource, schema: Schema, person: str | None = None) -> Iterator[Any]:
    """The same as Arrow; with ``person``, also who each record is about, and whether that cannot be read."""
    columns = []
    for i, size in enumerate(schema.domain.shape):
        dtype = smallest_dtype(size, spare=2)
        most = np.iinfo(dtype).max
        cases = f"WHEN {REFUSED_MISSING} THEN {most} WHEN {REFUSED_OUTSIDE} THEN {most - 1}"
        columns.append(f"CAST(CASE a{i} {cases} ELSE a{i} END AS {_SQL_TYPE[dtype.itemsize]}) AS a{i}")
    columns += [] if person is None else ["p", "pu"]
    return source.stream(
        f"SELECT {', '.join(columns)} FROM ({encode_sql(source, schema, person)}) AS encoded"
    )


def refused(codes: npt.NDArray[np.unsignedinteger]) -> tuple[bool, bool]:
    """Whether missing values, and values outside the schema, were refused among ``codes``."""
    most = np.iinfo(codes.dtype).max
    if not len(codes) or codes.max() < most - 1:
        return False, False
    return bool((codes == most).any()), bool((codes == most - 1).any())


class DuckDBEngine(SqlEngine):
    """Counts a relation or files, a batch at a time."""

    counting = HERE

    def __init__(self, source: DuckDBSource, schema: Schema, *, records: int) -> None:
        super().__init__(source, schema, records=records)
        self._duckdb = source
        self._schema = schema

    def count_many(self, marginals: Sequence[Attrs], tell: Tell = tell_nobody) -> list[Counts]:
        require_countable(self.domain, marginals)
        asked = {attr for attrs in marginals for attr in attrs}
        # Columns that nobody asks for are not read.
        if not asked:
            return [np.array(self.records, dtype=np.int64) for _ in marginals]
        schema = self._schema.narrowed(asked)
        # PRIVACY: what is expected decides on speed alone; counts, and what is told of them, are the same.
        counter = MarginalCounter(schema.domain, marginals, expected=self.records)
        for batch in self._batches(schema):
            counter.add(batch)
            tell(counter.records / max(self.records, 1))
        return counter.counts()

    def codes(self) -> Codes:
        dtype = smallest_dtype(max(self.domain.shape))
        batches = [np.column_stack(batch).astype(dtype) for batch in self._batches(self._schema)]
        return np.concatenate([np.zeros((0, len(self.domain)), dtype), *batches])

    def _batches(self, schema: Schema) -> Iterator[list[Codes]]:
        """The codes of the schema's attributes, batch by batch."""
        source = self._duckdb
        if source.words is not None:
            wanted = self.domain.index(schema.domain.attrs)
            for batch in source.stream(f"SELECT * FROM {source.words}"):
                yield unpacked([word.to_numpy() for word in batch.columns], self.domain.shape, wanted)
            return
        for codes in encoded_columns(source, schema):
            if any(any(refused(column)) for column in codes):
                raise DataError(CHANGED)
            yield codes


def _kinds_of(rows: Any) -> tuple[ValueKind | None, ...]:
    return tuple(_kind_of(str(sql_type)) for sql_type in rows.types)


def _kind_of(sql_type: str) -> ValueKind | None:
    if sql_type == "VARCHAR" or sql_type.startswith("ENUM"):
        return "text"
    if sql_type == "BOOLEAN":
        return "boolean"
    if sql_type in ("FLOAT", "DOUBLE"):
        return "real"
    if sql_type.startswith("DECIMAL") and not sql_type.endswith("]"):
        return "decimal"
    if sql_type in ("TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"):
        return "timestamp"
    if sql_type in _SINGLE:
        return _SINGLE[sql_type]
    whole = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT")
    if sql_type in whole or sql_type in tuple(f"U{name}" for name in whole) or sql_type in ('"NULL"', "NULL"):
        return "integer"
    return None


def _reader(rows: Any) -> Any:
    # DuckDB 1.4 renamed it.
    return (
        rows.to_arrow_reader(_BATCH) if hasattr(rows, "to_arrow_reader") else rows.fetch_record_batch(_BATCH)
    )


def _table(rows: Any) -> Any:
    return rows.to_arrow_table() if hasattr(rows, "to_arrow_table") else rows.fetch_arrow_table()
