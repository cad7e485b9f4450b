"""Spends a second of a team: 1, 8 and 32 writers on one ledger, in PostgreSQL and in an SQLite file.

    python benchmarks/speed/ledger_team.py    three minutes; writes benchmarks/results/ledger_team.json

A spend is a payment and the draw that uses it up: two transactions, each on disk (fsync) before the next
begins. Writers are threads of up to 8 processes, each with a ledger and a run of its own, and spend for 10
seconds without a pause. Beside them, as many writers make the same two commits without sidelight: two rows of
the same size under the same lock, by psycopg alone. The server is tests/postgres_server.py's, on the same
machine, with fsync on. In the time that passes.
"""

import json
import os
import secrets
import subprocess
import sys
import tempfile
import time
from fractions import Fraction
from pathlib import Path

HERE = Path(__file__).resolve()
sys.path[:0] = [str(HERE.parent.parent), str(HERE.parents[2] / "tests")]

SECONDS = 10.0
WRITERS = (1, 8, 32)
PROCESSES = 8
MANY = 10**6
"""Spends that a run may make."""


def spender(where: str):
    from sidelight.privacy.event import Gaussian
    from sidelight.privacy.sql_ledger import SqlLedger

    ledger = SqlLedger.open(where)
    allotment = ledger.promise.budget.rho() / 100
    event = Gaussian.at(allotment / MANY, what="age × sex × education", l2_squared=Fraction(2))
    run = ledger.begin(allotment, label="a run")

    def spend() -> None:
        assert ledger.draw(ledger.append(event, run=run), run=run)

    return spend


def bare(where: str):
    import psycopg

    address, _, table = where.partition("#")
    connection = psycopg.connect(address)
    row = "x" * 700

    def spend() -> None:
        for _ in range(2):
            connection.execute("SELECT pg_advisory_xact_lock(7)")
            connection.execute(
                f"INSERT INTO {table} SELECT coalesce(max(line), 0) + 1, 'run', %s, 'hash' FROM {table}",
                (row,),
            )
            connection.commit()

    return spend


def work(kind: str, where: str, threads: int, go: str) -> None:
    """One process: spend as soon as the file ``go`` says when to stop; print how long each spend took."""
    import threading

    took: list[list[float]] = [[] for _ in range(threads)]
    ready = threading.Barrier(threads + 1)

    def spend(mine: list[float]) -> None:
        once = {"ledger": spender, "bare": bare}[kind](where)
        ready.wait()
        while not os.path.exists(go):
            time.sleep(0.001)
        until = float(Path(go).read_text())
        while (began := time.time()) < until:
            once()
            mine.append(time.time() - began)

    writers = [threading.Thread(target=spend, args=(mine,)) for mine in took]
    for writer in writers:
        writer.start()
    ready.wait()
    print("ready", flush=True)
    for writer in writers:
        writer.join()
    print(json.dumps([one for mine in took for one in mine]), flush=True)


def measured(kind: str, where: str, writers: int) -> dict[str, float]:
    """Spends a second of so many writers together, and how long one of them waits."""
    processes = min(PROCESSES, writers)
    with tempfile.TemporaryDirectory() as folder:
        go = Path(folder) / "go"
        started = [
            subprocess.Popen(
                [sys.executable, str(HERE), kind, where, str(writers // processes), str(go)],
                stdout=subprocess.PIPE, text=True, env=os.environ | {"OMP_NUM_THREADS": "1"},
            )
            for _ in range(processes)
        ]  # fmt: skip
        for one in started:
            assert one.stdout is not None
            assert one.stdout.readline() == "ready\n"
        whole = Path(folder) / "whole"
        whole.write_text(str(time.time() + SECONDS))
        whole.rename(go)
        took = sorted(wait for one in started for wait in json.loads(one.communicate()[0]))
    return {
        "spends a second": round(len(took) / SECONDS, 1),
        "median milliseconds": round(1000 * took[len(took) // 2], 1),
        "95% within milliseconds": round(1000 * took[int(0.95 * len(took))], 1),
    }


def main() -> None:
    if len(sys.argv) > 1:
        work(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4])
        return
    import postgres_server
    from experiment import RESULTS, machine
    from sidelight.privacy.budget import Budget
    from sidelight.privacy.promise import Promise
    from sidelight.privacy.sql_ledger import SqlLedger
    from sidelight.privacy.unit import Unit

    promise = Promise(Budget(epsilon=1.0, delta=1e-9), Unit("replace"), "team")
    figures: dict[str, dict[str, dict[str, float]]] = {}
    with postgres_server.running(fsync="on") as server, tempfile.TemporaryDirectory() as folder:
        for writers in WRITERS:
            name = f"team_{secrets.token_hex(4)}"
            places = {"postgresql": f"{server.url}#{name}", "sqlite": str(Path(folder) / name)}
            found = {}
            for kind, where in places.items():
                SqlLedger.create(where, promise)
                found[kind] = measured("ledger", where, writers)
                SqlLedger.open(where)  # verifies every line
            server.run(f"CREATE TABLE {name} (line int PRIMARY KEY, run text, text text, hash text)")
            found["two bare commits"] = measured("bare", f"{server.url}#{name}", writers)
            found["postgresql / bare"] = round(
                found["postgresql"]["spends a second"] / found["two bare commits"]["spends a second"], 3
            )
            figures[f"{writers} writers"] = found
            print(writers, json.dumps(found), flush=True)
    results = {"machine": machine(), "seconds": SECONDS, **figures}
    (RESULTS / "ledger_team.json").write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
