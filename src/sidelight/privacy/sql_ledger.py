"""A ledger on disk: an SQLite file, or a database that a team shares.

Spending is one transaction that looks, decides and writes. SQLite takes the write lock when
the transaction begins (``BEGIN IMMEDIATE``); other databases lock the promise's row. So
processes that race for the last of a budget are served one after the other, and together
they can never overspend. ``synchronous=EXTRA`` makes a commit survive a power cut.

What this keeps out: crashes, races, mistakes and quiet edits, by triggers that refuse to
change a line and by the chain of hashes, verified on opening. What it cannot: someone with
the right to write the file who computes every hash anew, or who cuts lines off the end.
Against those, keep the ledger where only the data's owner writes, and compare with the
``head`` that each release carries (``verify(head=…)``).
"""

import os
import re
import sqlite3
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sidelight._extras import need
from sidelight._files import named
from sidelight.errors import LedgerError, PrivacyWarning, SettingError
from sidelight.privacy.budget import Budget
from sidelight.privacy.chain import Line, promise_line
from sidelight.privacy.chained_ledger import ChainedLedger
from sidelight.privacy.ledger import Ledger
from sidelight.privacy.marks import new_key
from sidelight.privacy.pages import Pages
from sidelight.privacy.promise import Promise
from sidelight.privacy.replay import replayed
from sidelight.privacy.unit import Unit
from sidelight.sources import failure, is_postgres, ledger_name, scheme_of, source_name, split_address

if TYPE_CHECKING:
    from sqlalchemy import URL, Connection, Engine, Table

_TABLE = "sidelight_ledger"
_PATIENCE = 60.0
"""Seconds to wait for another process to finish its spending."""


class SqlLedger(ChainedLedger):
    """A ledger in an SQLite file, or behind a database URL.

    ``people.ledger`` is a file. ``postgresql://user@host/database#people`` is the ledger
    *people* of a PostgreSQL database, which may hold many.
    """

    def __init__(self, where: str, promise: Promise, known: Line, engine: "Engine", table: "Table") -> None:
        self.where = where
        self.promise = promise
        self._engine = engine
        self._table = table
        self._known = known

    @classmethod
    def create(cls, path_or_url: str | os.PathLike[str], promise: Promise) -> "SqlLedger":
        """Make a new ledger that holds this promise. An existing one is never touched."""
        if promise.shown != promise.name:
            raise LedgerError(
                "the ledger's name looks like the address of a database, and would stand in every release. "
                "Name the table in plain words."
            )
        for doubt in promise.doubts:
            warnings.warn(doubt, PrivacyWarning, stacklevel=2)
        location = _Location(path_or_url)
        location.claim()
        try:
            engine, table = location.connect()
            line = promise_line(promise)
            with _speaking(location.name), engine.connect() as connection, _begin(connection, to_write=True):
                if _tables(connection) & {table.name}:
                    raise LedgerError(f"{location.name} exists already; use it, or choose another name.")
                table.create(connection)
                _SqlPages(
                    connection, table
                ).key()  # so that whoever spends need not have the right to make it
                for statement in _guards(engine.dialect.name, table.name):
                    connection.exec_driver_sql(statement)
                _SqlPages(connection, table).add(line)
        except BaseException:
            location.abandon()
            raise
        return cls(location.name, promise, line, engine, table)

    @classmethod
    def open(
        cls,
        path_or_url: str | os.PathLike[str],
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        unit: Unit | str = "replace",
        name: str | None = None,
    ) -> "SqlLedger":
        """Open a ledger, after verifying every line of it; with ``epsilon`` and ``delta``, make a new one.

        Args:
            path_or_url: a file such as ``people.ledger``, or a database URL.
            epsilon: ε promised for all releases from this table together; for a new ledger alone.
            delta: δ promised, well below 1/n.
            unit: what one person can change: ``replace``, ``add-or-remove``, or a ``Unit``.
            name: the table's name; by default the file's, or the text after # in an address.
        """
        if epsilon is not None or delta is not None:
            if epsilon is None or delta is None:
                raise SettingError("a new ledger promises both epsilon and delta; give both, or neither.")
            called = ledger_name(str(path_or_url)) if name is None else name
            promise = Promise(Budget(epsilon=epsilon, delta=delta), Unit.of(unit), called)
            return cls.create(path_or_url, promise)
        location = _Location(path_or_url)
        location.inspect()
        engine, table = location.connect()
        with _speaking(location.name), engine.connect() as connection, _begin(connection, to_write=False):
            if table.name not in _tables(connection):
                raise LedgerError(f"{location.name} is a database, but holds no ledger; create one first.")
            promise, known = replayed(_SqlPages(connection, table).lines(), where=location.name)
        return cls(location.name, promise, known, engine, table)

    @contextmanager
    def _transaction(self, *, to_write: bool) -> Iterator[Pages]:
        with (
            _speaking(self.where),
            self._engine.connect() as connection,
            _begin(connection, to_write=to_write),
        ):
            if to_write and connection.dialect.name != "sqlite":  # which has locked the whole file by now
                # PRIVACY: only whoever holds the promise's row may spend.
                promise = self._table.select().where(self._table.c.line == 1)
                connection.execute(promise.with_for_update())
            yield _SqlPages(connection, self._table)


class _SqlPages:
    def __init__(self, connection: "Connection", table: "Table") -> None:
        self._connection = connection
        self._table = table

    def first(self, run: str) -> Line | None:
        columns = self._table.c
        return self._one(self._table.select().where(columns.run == run).order_by(columns.line).limit(1))

    def last(self, run: str | None = None) -> Line | None:
        columns = self._table.c
        lines = self._table.select() if run is None else self._table.select().where(columns.run == run)
        return self._one(lines.order_by(columns.line.desc()).limit(1))

    def at(self, number: int) -> Line | None:
        return self._one(self._table.select().where(self._table.c.line == number))

    def lines(self, run: str | None = None, *, after: int = 0) -> Iterator[Line]:
        columns = self._table.c
        lines = self._table.select().where(columns.line > after)
        lines = lines if run is None else lines.where(columns.run == run)
        # In batches, so that a long ledger is fetched quickly and never held whole.
        for batch in self._connection.execute(lines.order_by(columns.line)).partitions(1000):
            for found in batch:
                yield Line.read(*found)

    def add(self, line: Line) -> None:
        stored = {"line": line.number, "run": line.run, "text": line.text, "hash": line.hash}
        self._connection.execute(self._table.insert(), stored)

    def key(self) -> str:
        keys = _keys(self._table)
        keys.create(self._connection, checkfirst=True)  # older ledgers have none yet
        found = self._connection.execute(keys.select()).first()
        if found is None:
            self._connection.execute(keys.insert(), {"key": (made := new_key())})
            return made
        return str(found.key)

    def _one(self, statement: Any) -> Line | None:
        found = self._connection.execute(statement).first()
        return None if found is None else Line.read(*found)


class _Location:
    """Where a ledger lives: a file, or a URL whose fragment names the ledger."""

    def __init__(self, path_or_url: str | os.PathLike[str]) -> None:
        given = os.fspath(path_or_url)
        self.path: Path | None = None
        self.url: URL | None = None
        self.table = _TABLE
        scheme = scheme_of(given)
        if scheme is None:
            if source_name(given) != given:
                raise LedgerError("a ledger is a file, or an address such as postgresql://…#people.")
            self.path = Path(given)
        elif scheme.startswith("sqlite"):
            database = _parsed(given).database
            if not database or database == ":memory:":
                raise LedgerError("an SQLite address without a file is kept in memory only; give a file.")
            self.path = Path(database)
        else:
            self._read_url(given)
        self.name = self.path.name if self.path else source_name(given)

    def _read_url(self, given: str) -> None:
        address, fragment = split_address(given)
        if fragment and not re.fullmatch(r"[A-Za-z0-9_]{1,40}", fragment):
            raise LedgerError("a ledger's name, after the #, is up to 40 letters, digits and _.")
        url = _parsed(address)
        if is_postgres(given):
            need("psycopg", "to keep a ledger in PostgreSQL")
            url = url.set(drivername="postgresql+psycopg")
        self.url = url
        if fragment:
            self.table = f"{_TABLE}_{fragment.lower()}"

    def claim(self) -> None:
        """Make the file, so that nobody else does; it must not be there yet.

        PRIVACY: its owner alone may read and write it; whoever shares it says so (chmod g+rw). SQLite gives
        its journal the same rights.
        """
        if self.path is None:
            return
        named(self.path, "a ledger")
        try:
            os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        except FileExistsError:
            raise LedgerError(f"{self.name} exists already; use it, or choose another name.") from None
        except OSError as error:
            raise LedgerError(f"{source_name(self.path)} cannot be created: {error.strerror}.") from error

    def abandon(self) -> None:
        """Undo ``claim``."""
        if self.path is not None:
            self.path.unlink(missing_ok=True)

    def inspect(self) -> None:
        """Refuse what cannot be a ledger, before a database engine touches it."""
        if self.path is None:
            return
        if not self.path.exists():
            raise LedgerError(
                f"there is no ledger {source_name(self.path)}; check its name, or open one "
                "(`sidelight ledger open`)."
            )
        if not self.path.is_file():
            raise LedgerError(f"{source_name(self.path)} is a folder, not a ledger.")
        try:
            with self.path.open("rb") as file:
                start = file.read(16)
        except OSError as error:
            raise LedgerError(f"{source_name(self.path)} cannot be read: {error.strerror}.") from error
        if not start:
            raise LedgerError(f"{self.name} is empty: its creation was interrupted, or it was emptied.")
        if start != b"SQLite format 3\0":
            raise LedgerError(f"{self.name} is not an SQLite file, so it is no ledger.")

    def connect(self) -> "tuple[Engine, Table]":
        """An engine whose transactions really are transactions, and the table of lines."""
        from sqlalchemy import Column, Index, Integer, MetaData, Table, Text, create_engine, event
        from sqlalchemy.pool import NullPool

        table = Table(
            self.table,
            MetaData(),
            Column("line", Integer, primary_key=True, autoincrement=False),
            Column("run", Text, nullable=False),
            Column("text", Text, nullable=False),
            Column("hash", Text, nullable=False),
            Index(f"{self.table}_run", "run", "line"),
        )
        if self.path is None:
            assert self.url is not None
            with _speaking(self.name):
                return create_engine(self.url, poolclass=NullPool), table
        uri = self.path.absolute().as_uri() + "?mode=rw"  # never makes a file that is not there

        def connected() -> sqlite3.Connection:
            connection = sqlite3.connect(uri, uri=True, timeout=_PATIENCE, isolation_level=None)
            connection.execute("PRAGMA synchronous=EXTRA")
            return connection

        # A connection lives for one transaction, so a forked process never inherits one.
        engine = create_engine("sqlite://", creator=connected, poolclass=NullPool)

        @event.listens_for(engine, "begin")
        def begin(connection: "Connection") -> None:
            to_write = connection.get_execution_options().get("to_write", True)
            connection.exec_driver_sql("BEGIN IMMEDIATE" if to_write else "BEGIN")

        return engine, table


def _keys(lines: "Table") -> "Table":
    """The table that holds the marks' key, apart from the lines: fewer people may read it."""
    from sqlalchemy import Column, MetaData, Table, Text

    return Table(f"{lines.name}_key", MetaData(), Column("key", Text, nullable=False))


@contextmanager
def _begin(connection: "Connection", *, to_write: bool) -> Iterator[None]:
    with connection.execution_options(to_write=to_write).begin():
        yield


def _parsed(address: str) -> "URL":
    from sqlalchemy import make_url
    from sqlalchemy.exc import ArgumentError

    try:
        return make_url(address)
    except (ArgumentError, ValueError):  # whose texts quote the address
        raise LedgerError("the ledger's address is no database URL, such as postgresql://…") from None


@contextmanager
def _speaking(name: str) -> Iterator[None]:
    """Turn a database error into a message of our own."""
    from sqlalchemy.exc import DBAPIError, NoSuchModuleError, SQLAlchemyError

    try:
        yield
    # PRIVACY: a driver's text may hold the address, a user's name or a value; only its kind is kept.
    except DBAPIError as error:
        raise LedgerError(f"{name}: {_failure(error.orig)}.") from None
    except (NoSuchModuleError, ModuleNotFoundError):
        raise LedgerError(f"{name}: no driver for such a database is installed.") from None
    except SQLAlchemyError as error:
        raise LedgerError(f"{name}: the database failed ({type(error).__name__}).") from None
    except UnicodeDecodeError:
        raise LedgerError(f"{name} was edited: it holds text that is not UTF-8.") from None


_SQLITE = {
    "BUSY": "it is locked by somebody else",
    "LOCKED": "it is locked by somebody else",
    "READONLY": "it is read-only here",
    "PERM": "it is read-only here",
    "FULL": "the database or disk is full",
    "IOERR": "the disk failed",
    "CANTOPEN": "it cannot be opened",
    "CORRUPT": "it is damaged: its pages do not fit together",
    "NOTADB": "it is damaged, or no SQLite file",
    "CONSTRAINT": "its own rules forbid that",
    "ERROR": "its tables are not those of a ledger",
}


def _failure(error: BaseException | None) -> str:
    if isinstance(error, sqlite3.Error):
        code = getattr(error, "sqlite_errorname", "")
        return _SQLITE.get(code.removeprefix("SQLITE_").partition("_")[0], "it failed")
    return failure(getattr(error, "sqlstate", None))


def _tables(connection: "Connection") -> set[str]:
    from sqlalchemy import inspect

    return set(inspect(connection).get_table_names())


def _guards(dialect: str, table: str) -> tuple[str, ...]:
    """Statements after which the database itself refuses to change or remove a line."""
    refusal = "a ledger is only ever added to"
    if dialect == "sqlite":
        return tuple(
            f"CREATE TRIGGER {table}_no_{verb.lower()} BEFORE {verb} ON {table} "
            f"BEGIN SELECT RAISE(ABORT, '{refusal}'); END"
            for verb in ("UPDATE", "DELETE")
        )
    if dialect == "postgresql":
        return (
            f"CREATE FUNCTION {table}_refuse() RETURNS trigger LANGUAGE plpgsql AS "
            f"$$BEGIN RAISE EXCEPTION '{refusal}'; END$$",
            f"CREATE TRIGGER {table}_guard BEFORE UPDATE OR DELETE OR TRUNCATE ON {table} "
            f"FOR EACH STATEMENT EXECUTE FUNCTION {table}_refuse()",
        )
    return ()


def open_ledger(where: Ledger | str | os.PathLike[str]) -> Ledger:
    """The ledger at a path or database URL, verified line by line; a ledger object is returned as it is."""
    return SqlLedger.open(where) if isinstance(where, (str, os.PathLike)) else where
