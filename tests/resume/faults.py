"""What is changed inside a run that will be killed: steady noise always, a fault where a test plants one."""

import json
import os
import secrets
import signal
import sqlite3
import sys
from collections.abc import Callable
from typing import Any


def steady_noise(notes: str = "drawn.jsonl") -> None:
    """Make noise a function of how many outputs were paid for before, so that runs can be compared.

    Every draw that is made is noted in a file of its own, whatever the ledger says of it.
    """
    from sidelight.curator.door import Door
    from sidelight.testing import SeededNoise

    pay, drawn = Door._pay_then, os.open(notes, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)

    def steadily(door: Any, event: Any, look: Any, draw: Any, **more: Any) -> Any:
        def noted(exact: Any) -> Any:
            os.write(drawn, json.dumps(event.as_json()).encode() + b"\n")
            return draw(exact)

        door._noise = SeededNoise(len(door._accountant.events))
        return pay(door, event, look, noted, **more)

    Door._pay_then = steadily  # type: ignore[method-assign]  # a test's own process


def effects(die_at: int | None, act: Callable[[], None] | None = None) -> list[str]:
    """Note what leaves a trace on disk, just before it does; die before the one with this number, or act."""
    from sidelight.curator.journal import Journal

    seen: list[str] = []

    def comes(effect: str) -> bool:
        arrived = len(seen) == die_at
        seen.append(effect)
        if arrived and act is not None:
            act()
        return arrived and act is None

    def die() -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    def on_audit(name: str, args: tuple[Any, ...]) -> None:
        writes = name == "open" and isinstance(args[2], int) and args[2] & (os.O_WRONLY | os.O_RDWR)
        if (writes or name in ("os.mkdir", "os.rename", "os.rmdir", "os.remove")) and comes(
            f"{name} {args[0]}"
        ):
            die()

    def on_statement(text: str) -> None:
        if text.startswith(("INSERT", "COMMIT")) and comes(text.split()[0]):
            die()

    connect, fsync, write = sqlite3.connect, os.fsync, Journal._write

    def connected(*args: Any, **options: Any) -> sqlite3.Connection:
        connection = connect(*args, **options)
        connection.set_trace_callback(on_statement)
        return connection

    def synced(file: int) -> None:
        if comes("fsync"):
            die()
        fsync(file)

    def half_written(journal: Any, entry: Any) -> None:
        if comes("half of a journal's line"):
            os.pwrite(journal._file.fileno(), b'{"event": {"cost": {"rho": "1/1', journal._end)
            die()
        write(journal, entry)

    sys.addaudithook(on_audit)
    sqlite3.connect = connected  # type: ignore[assignment]
    os.fsync = synced
    Journal._write = half_written  # type: ignore[method-assign]
    return seen


def pays_again() -> None:
    """A resumed run that pays for what the ledger already holds."""
    from sidelight.curator.door import Door

    begin = Door.__init__

    def forgetful(door: Any, *args: Any, **settings: Any) -> None:
        begin(door, *args, **settings)
        door._drawn, door._not_drawn = {}, []

    Door.__init__ = forgetful  # type: ignore[method-assign]


def journals_late() -> None:
    """An output that is used before it is on disk: each is written when the next one comes."""
    from sidelight.curator.journal import Journal

    append, held = Journal.append, []

    def late(journal: Any, *kept: Any) -> None:
        for each in held:
            append(journal, *each)
        held[:] = [kept]

    Journal.append = late  # type: ignore[method-assign]


def pays_late() -> None:
    """An event that is written to the ledger only after its output was drawn and kept."""
    from sidelight.curator.journal import Journal
    from sidelight.privacy.sql_ledger import SqlLedger

    pay, keep, owed = SqlLedger.append, Journal.append, []

    def later(ledger: Any, event: Any, *, run: str, nth: int) -> int:
        owed.append((ledger, event, run, nth))
        return 0

    def keep_then_pay(journal: Any, event: Any, output: Any, ticket: str) -> None:
        keep(journal, event, output, ticket)
        for ledger, due, run, nth in owed:
            draw(ledger, pay(ledger, due, run=run, nth=nth), run=run, ticket=ticket)
        owed.clear()

    draw = SqlLedger.draw
    SqlLedger.append = later  # type: ignore[method-assign]
    SqlLedger.draw = lambda *_, **__: secrets.token_hex(16)  # type: ignore[method-assign]
    Journal.append = keep_then_pay  # type: ignore[method-assign]


def takes_nothing_up() -> None:
    """A draw that the ledger does not hear of: whoever comes next finds its payment and draws once more."""
    from sidelight.privacy.sql_ledger import SqlLedger

    SqlLedger.draw = lambda *_, **__: secrets.token_hex(16)  # type: ignore[method-assign]


def names_its_run_late() -> None:
    """A run that begins in its ledger before any file says which run it is."""
    from sidelight.curator.journal import Journal

    write, held = Journal._write, []

    def late(journal: Any, entry: dict[str, Any]) -> None:
        held.append(entry)
        if "format" not in entry:
            for each in held:
                write(journal, each)
            held.clear()

    Journal._write = late  # type: ignore[method-assign]


def makes_no_room() -> None:
    """Noise that is drawn before there is room to keep it: a full disk loses it."""
    from sidelight.curator.journal import Journal

    Journal.make_room = lambda *_: None  # type: ignore[method-assign]


def looks_nothing_up() -> None:
    """A commit whose answer was lost is made again, without a look whether it was kept."""
    from sidelight.privacy.pages import Pen

    Pen.is_kept = lambda *_: False  # type: ignore[method-assign]


def trusts_its_pages() -> None:
    """A file is read, whatever shape its pages are in."""
    from sidelight.privacy.sql_pages import SqlPages

    SqlPages.is_sound = lambda *_: True  # type: ignore[method-assign]


def takes_a_lost_connection_for_the_last_line() -> None:
    """Lines of Spark by ``collect``, which does not miss those that never came."""
    import pyarrow as pa

    from sidelight.data.engines import spark, spark_counting

    def collected(lines: Any) -> Any:
        found = lines.collect()
        return pa.table({name: [line[i] for line in found] for i, name in enumerate(lines.columns)})

    spark.brought_here = spark_counting.brought_here = collected


FOUND_BY: dict[str, Callable[[], None]] = {
    "journal-full": makes_no_room,
    "postgres": looks_nothing_up,
    "page": trusts_its_pages,
    "spark-network": takes_a_lost_connection_for_the_last_line,
}
"""Which fault of ``fault_table`` must find which planted one."""

PLANTED: dict[str, Callable[[], None]] = {
    "pays again": pays_again,
    "pays late": pays_late,
    "takes nothing up": takes_nothing_up,
    "journals late": journals_late,
    "names its run late": names_its_run_late,
}
