"""Where an SQL ledger lives: a file, or a database whose address names the ledger; and how it is reached.

A file's connection lives for one transaction. PostgreSQL's is kept between transactions, because making one
takes longer than spending: it is given up where a process forks, and replaced where it is lost.
"""

import os
import re
import sqlite3
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from sidelight._extras import need
from sidelight._files import named
from sidelight.errors import LedgerError, LedgerUnavailableError
from sidelight.privacy.sql_pages import SqlPages
from sidelight.sources import failure, is_postgres, scheme_of, source_name, split_address

if TYPE_CHECKING:
    from sqlalchemy import URL, Connection, Engine, Table

T = TypeVar("T")
TABLE = "sidelight_ledger"
PATIENCE = 60.0
"""Seconds to wait for another process to finish its spending, or for a lost database to come back."""
_REACHED = {
    "connect_timeout": 10,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
}
"""Settings with which a dead network is noticed within half a minute, and not after two hours."""
_SESSION = (
    # PRIVACY: a commit that a crash of the server may forget would give budget back.
    "SET synchronous_commit = on",
    f"SET lock_timeout = '{PATIENCE:.0f}s'",
    # A client that vanishes in a transaction keeps the others waiting no longer than this.
    f"SET idle_in_transaction_session_timeout = '{PATIENCE:.0f}s'",
)


class LostConnectionError(LedgerUnavailableError):
    """The database was lost in a transaction, or cannot be reached any more; what was begun may be kept."""


class Location:
    """A file, or a URL whose fragment names the ledger."""

    def __init__(self, path_or_url: str | os.PathLike[str]) -> None:
        given = os.fspath(path_or_url)
        self.path: Path | None = None
        self.url: URL | None = None
        self.table = TABLE
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
            self.table = f"{TABLE}_{fragment.lower()}"

    @property
    def identity(self) -> str:
        """A digest that no other place has: of the file's whole path, or the whole address and the table."""
        if self.path is not None:
            place = str(self.path.resolve())
        else:
            assert self.url is not None
            # PRIVACY: an address is shown to nobody, and a password is no part of a place.
            place = str(self.url._replace(password=None).difference_update_query(["password"]))
        return sha256(f"{place}\n{self.table}".encode()).hexdigest()

    def _claim(self) -> None:
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

    def _abandon(self) -> None:
        """Remove the file that ``_claim`` made."""
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

    @contextmanager
    def transaction(self, *, to_write: bool) -> Iterator[SqlPages]:
        """The lines, inside one transaction; to write, nobody else can change them meanwhile."""
        with (
            speaking(self.name),
            self._engine.connect() as connection,
            connection.execution_options(to_write=to_write).begin(),
        ):
            pages = SqlPages(connection, self._lines)
            if to_write:
                pages.lock()
            yield pages

    def create(self, fill: Callable[[SqlPages], T]) -> T:
        """Make the table and fill it, whole or not at all; an existing one is never touched."""
        self._claim()
        try:
            with self.transaction(to_write=True) as pages:
                if pages.exists():
                    raise LedgerError(f"{self.name} exists already; use it, or choose another name.")
                pages.create()
                return fill(pages)
        except BaseException:
            self._abandon()
            raise

    @cached_property
    def _lines(self) -> "Table":
        from sqlalchemy import Column, Index, Integer, MetaData, Table, Text

        return Table(
            self.table,
            MetaData(),
            Column("line", Integer, primary_key=True, autoincrement=False),
            Column("run", Text, nullable=False),
            Column("text", Text, nullable=False),
            Column("hash", Text, nullable=False),
            Index(f"{self.table}_run", "run", "line"),
        )

    @cached_property
    def _engine(self) -> "Engine":
        """An engine whose transactions really are transactions."""
        if self.path is not None:
            return _file_engine(self.path)
        assert self.url is not None
        engine = _server_engine(self.url)
        # With the last ledger that uses it, and not whenever Python finds the time.
        weakref.finalize(self, _close_pool, engine.pool, os.getpid())
        return engine


def _file_engine(path: Path) -> "Engine":
    from sqlalchemy import create_engine, event
    from sqlalchemy.pool import NullPool

    uri = path.absolute().as_uri() + "?mode=rw"  # never makes a file that is not there

    def connected() -> sqlite3.Connection:
        connection = sqlite3.connect(uri, uri=True, timeout=PATIENCE, isolation_level=None)
        connection.execute("PRAGMA synchronous=EXTRA")
        return connection

    # A connection lives for one transaction, so a forked process never inherits one.
    engine = create_engine("sqlite://", creator=connected, poolclass=NullPool)

    @event.listens_for(engine, "begin")
    def begin(connection: "Connection") -> None:
        to_write = connection.get_execution_options().get("to_write", True)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if to_write else "BEGIN")

    return engine


def _server_engine(url: "URL") -> "Engine":
    from sqlalchemy import create_engine, event
    from sqlalchemy.exc import DisconnectionError
    from sqlalchemy.pool import NullPool

    if url.get_backend_name() != "postgresql":
        return create_engine(url, poolclass=NullPool)
    reached = {name: value for name, value in _REACHED.items() if name not in url.query}
    engine = create_engine(
        url, connect_args=reached, isolation_level="READ COMMITTED", pool_size=1, max_overflow=-1
    )

    @event.listens_for(engine, "connect")
    def connected(connection: Any, record: Any) -> None:
        record.info["process"] = os.getpid()
        with connection.cursor() as cursor:
            for statement in _SESSION:
                cursor.execute(statement)
        connection.commit()

    @event.listens_for(engine, "checkout")
    def checked_out(connection: Any, record: Any, proxy: Any) -> None:
        if record.info["process"] != os.getpid():
            # Two processes that talk over one connection would hear each other's answers.
            record.dbapi_connection = proxy.dbapi_connection = None
            raise DisconnectionError("the connection belongs to another process")

    return engine


def _close_pool(pool: Any, process: int) -> None:
    if os.getpid() == process:
        pool.dispose()


def _parsed(address: str) -> "URL":
    from sqlalchemy import make_url
    from sqlalchemy.exc import ArgumentError

    try:
        return make_url(address)
    except (ArgumentError, ValueError):  # whose texts quote the address
        raise LedgerError("the ledger's address is no database URL, such as postgresql://…") from None


@contextmanager
def speaking(name: str) -> Iterator[None]:
    """Turn a database error into a message of our own."""
    from sqlalchemy.exc import DBAPIError, NoSuchModuleError, SQLAlchemyError

    try:
        yield
    # PRIVACY: a driver's text may hold the address, a user's name or a value; only its kind is kept.
    except DBAPIError as error:
        kind = _kind(error)
        raise kind(f"{name}: {_failure(error.orig)}.") from None
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
_PASSING = {"BUSY", "LOCKED", "READONLY", "PERM", "FULL", "IOERR", "CANTOPEN"}
"""Errors that are no fault of the file: the call may succeed once there is room, or the right to write."""
_LOST = ("08", "57P01", "57P02", "57P03", "57P05", "25P03", "40", "53300")
"""The connection was lost, the server stops, starts or is full, or others were writing: try again."""


def _kind(error: Any) -> type[LedgerError]:
    """Whether trying again may help: at once, later, or never."""
    if isinstance(error.orig, sqlite3.Error):
        return LedgerUnavailableError if _sqlite_code(error.orig) in _PASSING else LedgerError
    state = getattr(error.orig, "sqlstate", None)
    if error.connection_invalidated or state is None or state.startswith(_LOST):
        return LostConnectionError
    return LedgerUnavailableError if state.startswith(("53", "55", "57", "25006")) else LedgerError


def _sqlite_code(error: sqlite3.Error) -> str:
    return getattr(error, "sqlite_errorname", "").removeprefix("SQLITE_").partition("_")[0]


def _failure(error: BaseException | None) -> str:
    if isinstance(error, sqlite3.Error):
        return _SQLITE.get(_sqlite_code(error), "it failed")
    return failure(getattr(error, "sqlstate", None))
