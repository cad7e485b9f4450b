"""Networks that fail under a release: to PostgreSQL and to Spark, whose processes are taken away as well."""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
sys.path.insert(0, str(Path(__file__).resolve().parent))
from fault_row import Row, Scene

HERE = Path(__file__).resolve().parent


@contextmanager
def server_and_network() -> Iterator[tuple[Any, Any, str]]:
    """A server, a network that can be cut, and the address that goes through it."""
    import cut_proxy
    import postgres_server

    with postgres_server.running() as server, cut_proxy.network_to(server.url) as (network, url):
        yield server, network, url


def postgres_lost(folder: Path) -> Row:
    row = Row(
        "connection to PostgreSQL lost",
        "cut at each commit of a run: after the server heard it, so that its answer is lost, and before",
    )
    with server_and_network() as (_, network, url):
        base = Scene(folder)
        for heard in (True, False):
            for commit in range(100):
                stage = base.stage(ledger=f"{url}#cut_{int(heard)}_{commit}")
                cuts = network.cuts
                network.cut_at(network.COMMIT, heard=heard, after=commit)
                code = stage.attempt()
                network.up()
                found = base.ended(stage, code)
                if network.cuts == cuts:
                    break  # the run has fewer commits
                row.judge({"commit": commit, "heard": heard}, code, found, base.expected)
    return row


def postgres_gone(folder: Path) -> Row:
    row = Row(
        "PostgreSQL does not come back",
        "the network goes down at a commit, and stays down beyond all patience",
    )
    with server_and_network() as (_, network, url):
        base = Scene(folder)
        for commit in range(0, 40, 3):
            stage = base.stage(ledger=f"{url}#gone_{commit}")
            network.cut_at(network.COMMIT, heard=False, after=commit, stay_down=True)
            code = stage.attempt(spoil=impatient)
            network.up()
            found = base.ended(stage, code)
            row.judge({"commit": commit}, code, found, base.expected)
    return row


def impatient() -> None:
    from sidelight.privacy import sql_location

    sql_location.PATIENCE = 0.3


def table_lost(folder: Path) -> Row:
    row = Row(
        "the private table's database lost", "cut at each statement that reads or counts the private table"
    )
    import cut_proxy
    import postgres_server

    with postgres_server.running() as server:
        base = Scene(folder)
        head, *lines = (base.stage().folder / "private.csv").read_text().splitlines()
        columns = ", ".join(f"{name} text" for name in head.split(","))
        rows = ", ".join(str(tuple(line.split(","))) for line in lines)
        server.run(f"CREATE TABLE people ({columns})", f"INSERT INTO people VALUES {rows}")
        with cut_proxy.network_to(server.url) as (network, url):
            expected = None
            for statement in (None, *range(100)):
                stage = base.stage()
                stage.argv[2] = f"{url}#people"
                if statement is not None:
                    network.cut_at("SELECT", heard=True, after=statement)
                cuts = network.cuts
                code = stage.attempt()
                network.up()
                found = base.ended(stage, code)
                if statement is None:
                    expected = {name: value for name, value in found.items() if name not in ("exit", "said")}
                elif network.cuts == cuts:
                    break
                else:
                    row.judge({"statement": statement}, code, found, expected)
    return row


def spark_lost(folder: Path) -> Row:
    how = "its Java process is killed each time that it is asked something; a new session goes on"
    return _spark(Row("Spark lost", how), folder, "java")


def spark_workers(folder: Path) -> Row:
    how = "a Python worker, then a whole executor, is killed while it encodes, and while it counts"
    return _spark(Row("Spark's workers lost", how), folder, "workers")


def spark_network(folder: Path) -> Row:
    how = (
        "Python's connection to Java is cut at eight commands, for a moment and for good; each result breaks "
        "off, at once and in its middle; the same session goes on"
    )
    return _spark(Row("network to Spark lost", how), folder, script="spark_cut.py")


def spark_memory(folder: Path) -> Row:
    how = (
        "a worker may have no more memory than it has, while it encodes and while it counts: once, and always"
    )
    return _spark(Row("Spark's workers out of memory", how), folder, script="spark_memory.py")


def _spark(row: Row, folder: Path, *faults: str, script: str = "spark_lost.py") -> Row:
    if shutil.which("java") is None:
        row.skipped = "needs Java 17"
        return row
    done = subprocess.run(
        [sys.executable, str(HERE / script), str(folder), *faults],
        capture_output=True,
        text=True,
        timeout=1800,
    )
    if done.returncode:
        row.wrong.append(done.stderr[-2000:])
        return row
    for told in json.loads(done.stdout.splitlines()[-1]):
        row.injected += 1
        row.stopped += told["stopped"]
        row.again += told["again"]
        row.wrong += [] if told["same"] else [told]
    return row
