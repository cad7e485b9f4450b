"""A team on one PostgreSQL ledger: many spenders, lost connections and killed processes lose nothing."""

import os
import random
import secrets
import signal
import subprocess
import sys
import threading
import time
from fractions import Fraction

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", ".."))
import cut_proxy
from sidelight.errors import LedgerUnavailableError
from sidelight.privacy import sql_location
from sidelight.privacy.budget import Budget
from sidelight.privacy.event import Gaussian
from sidelight.privacy.pages import Pen
from sidelight.privacy.promise import Promise
from sidelight.privacy.sql_ledger import SqlLedger
from sidelight.privacy.unit import Unit

BUDGET = Budget(epsilon=1.0, delta=1e-9)
PROMISE = Promise(BUDGET, Unit("replace"), "people")
TENTH = BUDGET.rho() / 10
EVENT = Gaussian.at(TENTH, what="age", l2_squared=Fraction(2))


@pytest.fixture
def address(postgres):
    return f"{postgres.url}#team_{secrets.token_hex(6)}"


@pytest.fixture
def network(postgres):
    if not cut_proxy.is_reached_by_a_socket(postgres.url):
        pytest.skip("SIDELIGHT_POSTGRES is not reached by a socket, which this test stands in between of")
    with cut_proxy.network_to(postgres.url) as found:
        yield found


# --- a network that fails at the worst moment
# ----------------------------------------------------------------


@pytest.mark.parametrize("heard", [True, False], ids=["answer lost", "commit lost"])
@pytest.mark.parametrize("step", ["begin", "append", "draw", "close"])
def test_a_connection_lost_at_a_commit_writes_a_line_once(network, step, heard):
    net, url = network
    ledger = SqlLedger.create(f"{url}#cut_{secrets.token_hex(4)}", PROMISE)
    run = payment = None
    for name in ("begin", "append", "draw", "close"):
        if name == step:
            net.cut_at(net.COMMIT, heard=heard)
        if name == "begin":
            run = ledger.begin(TENTH * 2, label="a run")
        elif name == "append":
            payment = ledger.append(EVENT, run=run)
        elif name == "draw":
            assert ledger.draw(payment, run=run)
        else:
            ledger.close(run)

    assert net.cuts == 1
    with ledger._transaction(to_write=False) as pages:
        assert [line.kind for line in pages.lines()] == ["promise", "begin", "event", "draw", "close"]
    (paid,) = ledger.payments(run)
    assert (paid.line, ledger.spent) == (payment, TENTH.value)
    ledger.verify()


def test_a_ledger_that_did_not_look_would_write_twice(network, monkeypatch):
    net, url = network
    ledger = SqlLedger.create(f"{url}#twice_{secrets.token_hex(4)}", PROMISE)
    run = ledger.begin(TENTH * 2, label="a run")
    monkeypatch.setattr(Pen, "is_kept", lambda *_: False)

    net.cut_at(net.COMMIT, heard=True)
    ledger.append(EVENT, run=run)

    assert ledger.run(run).events == 2


def test_a_ledger_waits_for_its_database_to_come_back(network):
    net, url = network
    ledger = SqlLedger.create(f"{url}#down_{secrets.token_hex(4)}", PROMISE)
    back = threading.Timer(0.5, lambda: None)

    with net.down():
        spending = threading.Thread(target=lambda: ledger.begin(TENTH, label="patient"))
        spending.start()
        back.start()
        back.join()
        assert spending.is_alive()
    spending.join(30)

    assert [run.label for run in ledger.runs()] == ["patient"]


def test_patience_ends_with_an_error_that_can_be_tried_again_later(network, monkeypatch):
    net, url = network
    ledger = SqlLedger.create(f"{url}#gone_{secrets.token_hex(4)}", PROMISE)
    monkeypatch.setattr(sql_location, "PATIENCE", 0.2)

    with net.down(), pytest.raises(LedgerUnavailableError, match="postgresql: postgres#gone_"):
        ledger.begin(TENTH, label="impatient")

    assert ledger.runs() == ()


def test_a_forked_process_makes_a_connection_of_its_own(address):
    ledger = SqlLedger.create(address, PROMISE)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            ledger.begin(TENTH, label="child")
            code = 0
        finally:
            os._exit(code)
    for _ in range(3):
        ledger.close(ledger.begin(TENTH, label="parent"))
    _, status = os.waitpid(child, 0)

    assert os.waitstatus_to_exitcode(status) == 0
    assert sorted(run.label for run in ledger.runs()) == ["child", "parent", "parent", "parent"]
    ledger.verify()


def test_a_server_that_would_forget_commits_is_told_not_to(postgres):
    with postgres.database(
        "synchronous_commit = off", "default_transaction_isolation = 'serializable'"
    ) as url:
        ledger = SqlLedger.create(f"{url}#kept", PROMISE)

        with ledger._transaction(to_write=True) as pages:
            said = [
                pages._connection.exec_driver_sql(f"SHOW {name}").scalar()
                for name in ("synchronous_commit", "transaction_isolation")
            ]

    assert said == ["on", "read committed"]


# --- many at once ----------------------------------------------------------------------------------------

PROCESSES, THREADS, CRUMBS = 8, 4, 203

SPEND_UNTIL_REFUSED = """
import os, pathlib, sys, threading, time
from fractions import Fraction
from sidelight.errors import BudgetExhausted
from sidelight.privacy.event import Gaussian
from sidelight.privacy.sql_ledger import SqlLedger

crumbs, go = int(sys.argv[2]), pathlib.Path(sys.argv[3])
runs = [0] * int(sys.argv[4])

def spend(place):
    ledger = SqlLedger.open(sys.argv[1])
    crumb, name = ledger.promise.budget.rho() / crumbs, f"{os.getpid()}/{place}"
    event = Gaussian.at(crumb, what=name, l2_squared=Fraction(2))
    while not go.exists():
        time.sleep(0.001)
    try:
        while True:
            run = ledger.begin(crumb, label=name)
            assert ledger.draw(ledger.append(event, run=run), run=run)
            ledger.close(run)
            runs[place] += 1
    except BudgetExhausted:
        pass

spenders = [threading.Thread(target=spend, args=(place,)) for place in range(len(runs))]
for spender in spenders: spender.start()
for spender in spenders: spender.join()
print(sum(runs), flush=True)
"""


def started(script, *arguments):
    return subprocess.Popen(
        [sys.executable, "-c", script, *map(str, arguments)],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "OMP_NUM_THREADS": "1"},
    )


@pytest.mark.slow
@pytest.mark.parametrize("kills", [False, True], ids=["undisturbed", "connections killed"])
def test_32_spenders_of_8_processes_spend_all_of_it_and_not_a_crumb_more(postgres, address, tmp_path, kills):
    SqlLedger.create(address, PROMISE)
    arguments = (address, CRUMBS, tmp_path / "go", THREADS)
    racers = [started(SPEND_UNTIL_REFUSED, *arguments) for _ in range(PROCESSES)]
    chance, killed = random.Random(1), 0

    try:
        (tmp_path / "go").touch()
        while kills and any(racer.poll() is None for racer in racers):
            # Whoever is in a transaction, or waits for its turn; not the tests' own connection.
            found = postgres.run(
                "SELECT pid FROM pg_stat_activity WHERE state IS DISTINCT FROM 'idle' AND "
                "pid <> pg_backend_pid() AND backend_type = 'client backend'"
            )
            if found:
                killed += postgres.run(f"SELECT pg_terminate_backend({chance.choice(found)[0]})")[0][0]
            time.sleep(0.02)
        runs = [int(racer.communicate(timeout=300)[0]) for racer in racers]
    finally:
        for racer in racers:
            racer.kill()
            racer.communicate()

    ledger = SqlLedger.open(address)  # verifies every line
    done = ledger.runs()
    assert sum(runs) == len(done) == CRUMBS
    assert ledger.spent == BUDGET.capacity
    assert {(run.events, run.repeats, run.is_open) for run in done} == {(1, 0, False)}
    assert not kills or killed > 20


@pytest.mark.slow
def test_a_process_killed_while_it_holds_the_lock_keeps_nobody_waiting(address):
    ledger = SqlLedger.create(address, PROMISE)
    script = """
import signal, sys
from sidelight.privacy.sql_ledger import SqlLedger
ledger = SqlLedger.open(sys.argv[1])
def stop(pen):
    print("locked", flush=True)
    signal.pause()
ledger._change(stop)
"""
    doomed = started(script, address)
    assert doomed.stdout.readline() == "locked\n"

    doomed.kill()
    run = ledger.begin(TENTH, label="the next one")

    assert doomed.wait(timeout=30) == -signal.SIGKILL
    doomed.communicate()
    assert ledger.is_open(run)
    ledger.verify()
