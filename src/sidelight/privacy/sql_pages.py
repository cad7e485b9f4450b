"""A ledger's lines in a table of a database, and the triggers that keep others from changing them."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from sidelight.privacy.chain import Line, clock, told_time
from sidelight.privacy.marks import new_key

if TYPE_CHECKING:
    from sqlalchemy import Connection, Table

_SPACE = 0x51DE << 32
"""Where the numbers of our locks begin, so that they are nobody else's."""


class SqlPages:
    """Lines in a table, inside one transaction."""

    def __init__(self, connection: "Connection", table: "Table") -> None:
        self._connection = connection
        self._table = table
        self._now: str | None = None

    def lock(self) -> None:
        """Wait until nobody else may write; SQLite has locked the whole file when the transaction began."""
        from sqlalchemy import text

        if self._connection.dialect.name != "postgresql":
            return
        # PRIVACY: only one at a time may look, decide and spend. A lock of ours, and not a row's, needs no
        # right to change a line. Even without it nobody could spend twice: both would add a line of one
        # number.
        asked = text(
            "SELECT pg_advisory_xact_lock(:space + to_regclass(:name)::oid::bigint), clock_timestamp()"
        )
        locked = self._connection.execute(asked, {"space": _SPACE, "name": self._table.name}).one()
        self._now = told_time(locked[1])

    def now(self) -> str:
        return clock() if self._now is None else self._now

    def first(self, run: str) -> Line | None:
        columns = self._table.c
        return self._one(self._table.select().where(columns.run == run).order_by(columns.line).limit(1))

    def last(self) -> Line | None:
        return self._one(self._table.select().order_by(self._table.c.line.desc()).limit(1))

    def at_and_last(self, number: int) -> tuple[Line | None, Line | None]:
        from sqlalchemy import func, or_, select

        line = self._table.c.line
        newest = select(func.max(line)).scalar_subquery()
        found = self._connection.execute(self._table.select().where(or_(line == number, line == newest)))
        lines = sorted((Line.read(*one) for one in found), key=lambda one: one.number)
        asked = next((one for one in lines if one.number == number), None)
        return asked, lines[-1] if lines else None

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

    def ends(self, run: str | None = None) -> Iterator[tuple[Line, Line]]:
        from sqlalchemy import func, or_, select

        columns = self._table.c
        ends = (
            select(func.min(columns.line).label("first"), func.max(columns.line).label("last"))
            .where(columns.run != "" if run is None else columns.run == run)
            .group_by(columns.run)
            .subquery()
        )
        both = or_(columns.line == ends.c.first, columns.line == ends.c.last)
        found = select(ends.c.last, self._table).join_from(ends, self._table, both)
        first: Line | None = None
        for last, *line in self._connection.execute(found.order_by(ends.c.first, columns.line)):
            read = Line.read(*line)
            first = read if first is None else first
            if read.number == last:
                yield first, read
                first = None

    def add(self, line: Line) -> None:
        stored = {"line": line.number, "run": line.run, "text": line.text, "hash": line.hash}
        self._connection.execute(self._table.insert(), stored)

    def key(self) -> str:
        keys = _keys(self._table)
        keys.create(self._connection, checkfirst=True)  # older ledgers have none yet
        found = self._connection.execute(keys.select()).first()
        return self.keep_key(new_key()) if found is None else str(found.key)

    def keep_key(self, key: str) -> str:
        """Make this the key of the marks; there must be none yet."""
        keys = _keys(self._table)
        keys.create(self._connection, checkfirst=True)
        self._connection.execute(keys.insert(), {"key": key})
        return key

    def create(self) -> None:
        """Make the table, and the triggers by which the database itself refuses to change a line."""
        self._table.create(self._connection)
        for statement in _guards(self._connection.dialect.name, self._table.name):
            self._connection.exec_driver_sql(statement)

    def exists(self) -> bool:
        """Whether there is such a table."""
        from sqlalchemy import inspect

        return inspect(self._connection).has_table(self._table.name)

    def is_sound(self) -> bool:
        """Whether a file's pages fit together; a server looks after its own.

        PRIVACY: a damaged index hides lines of a run, which could then pay out of what it has spent.
        """
        if self._connection.dialect.name != "sqlite":
            return True
        return self._connection.exec_driver_sql("PRAGMA integrity_check(1)").scalar() == "ok"

    def _one(self, statement: Any) -> Line | None:
        found = self._connection.execute(statement).first()
        return None if found is None else Line.read(*found)


def _keys(lines: "Table") -> "Table":
    """The table that holds the marks' key, apart from the lines: fewer people may read it."""
    from sqlalchemy import Column, MetaData, Table, Text

    return Table(f"{lines.name}_key", MetaData(), Column("key", Text, nullable=False))


def _guards(dialect: str, table: str) -> tuple[str, ...]:
    """Statements after which the database itself refuses to change or remove a line.

    PostgreSQL also refuses a line that does not follow the last one, whoever adds it: nobody who may add
    lines can make the ledger unreadable with one that is out of place. And it takes the ledger's owner to set
    a policy, to move or restore the ledger, or to bind it to another table.
    """
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
            _FOLLOWS.replace("TABLE", table),
            f"CREATE TRIGGER {table}_order BEFORE INSERT ON {table} "
            f"FOR EACH ROW EXECUTE FUNCTION {table}_follows()",
        )
    return ()


# PRIVACY: the search path is PostgreSQL's own, so that nobody can put functions of theirs in its place.
_FOLLOWS = """
CREATE FUNCTION TABLE_follows() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog AS $$
DECLARE
  body json := NEW.text::json;
  before integer;
  before_hash text;
BEGIN
  EXECUTE format('SELECT line, hash FROM %%s ORDER BY line DESC LIMIT 1', TG_RELID::regclass)
    INTO before, before_hash;
  IF NEW.line IS DISTINCT FROM coalesce(before, 0) + 1
    OR body->>'line' IS DISTINCT FROM NEW.line::text
    OR body->>'run' IS DISTINCT FROM NEW.run
    OR body->>'previous' IS DISTINCT FROM coalesce(before_hash, '')
    OR NEW.hash IS DISTINCT FROM encode(sha256(convert_to(NEW.text, 'UTF8')), 'hex')
  THEN
    RAISE EXCEPTION 'a line must follow the last one';
  END IF;
  IF (body->>'kind' IN ('promise', 'policy', 'moved', 'arrived', 'restored') OR body->>'rebound' = 'true')
    AND NOT pg_has_role(current_user, (SELECT relowner FROM pg_class WHERE oid = TG_RELID), 'MEMBER')
  THEN
    RAISE EXCEPTION 'only the owner of the ledger may do that' USING ERRCODE = 'insufficient_privilege';
  END IF;
  RETURN NEW;
END
$$
"""
