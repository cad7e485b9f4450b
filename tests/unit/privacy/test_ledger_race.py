"""Processes that race, and processes that die: the ledger never understates what may have been seen."""

import os
import signal
import subprocess
import sys
import time
from fractions import Fraction

import pytest

from sidelight.errors import BudgetExhausted
from sidelight.privacy.budget import Budget, Rho
from sidelight.privacy.promise import Promise
from sidelight.privacy.sql_ledger import SqlLedger
from sidelight.privacy.unit import Unit

pytestmark = pytest.mark.slow

BUDGET = Budget(epsilon=1.0, delta=1e-9)
PROMISE = Promise(BUDGET, Unit("replace"), "adult")
PROCESSES = 8
CRUMBS = 101
"""How many runs of a racer fit into the promise, exactly."""

OPEN = """
import os, pathlib, signal, sys, time
from fractions import Fraction
from sidelight.errors import BudgetExhausted
from sidelight.privacy.event import Gaussian
from sidelight.privacy.sql_ledger import SqlLedger

ledger = SqlLedger.open(sys.argv[1])
rho = ledger.promise.budget.rho()

def pay(cost, what, run):
    ledger.append(Gaussian.at(cost, what=what, l2_squared=Fraction(2)), run=run)
"""
SPEND_UNTIL_REFUSED = (
    OPEN
    + """
crumb, runs = rho / int(sys.argv[2]), 0
while not pathlib.Path(sys.argv[3]).exists():
    time.sleep(0.001)
try:
    while True:
        run = ledger.begin(crumb, label=str(os.getpid()))
        pay(crumb / 2, str(os.getpid()), run)
        pay(crumb / 2, str(os.getpid()), run)
        ledger.close(run)
        runs += 1
except BudgetExhausted:
    print(runs)
"""
)
BEGIN_PAY_AND_WAIT = (
    OPEN
    + """
run = ledger.begin(rho / 2, label="doomed")
pay(rho / 8, "age", run)
print(run, flush=True)
signal.pause()
"""
)
PAY_UNTIL_KILLED = (
    OPEN
    + """
for number in range(10_000):
    pay(rho / 20_000, str(number), sys.argv[2])
    print(number, flush=True)
"""
)


@pytest.fixture
def child():
    """Starts Python processes, and leaves none behind."""
    children = []

    def start(script, *arguments):
        process = subprocess.Popen(
            [sys.executable, "-c", script, *map(str, arguments)],
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )
        children.append(process)
        return process

    yield start
    for process in children:
        process.kill()
        process.communicate()


def test_eight_processes_that_race_never_overspend_together_and_lose_nothing(tmp_path, child):
    path, go = tmp_path / "adult.ledger", tmp_path / "go"
    SqlLedger.create(path, PROMISE)
    racers = [child(SPEND_UNTIL_REFUSED, path, CRUMBS, go) for _ in range(PROCESSES)]

    go.touch()
    runs = {racer.pid: int(racer.communicate(timeout=120)[0]) for racer in racers}

    ledger = SqlLedger.open(path)  # verifies every line
    assert sum(runs.values()) == len(ledger.runs()) == CRUMBS
    assert ledger.spent == BUDGET.capacity
    events = [event.what for event in ledger.events()]
    assert {pid: events.count(str(pid)) for pid in runs} == {pid: 2 * count for pid, count in runs.items()}


def test_a_process_killed_before_it_closes_leaves_its_whole_allotment_spent(tmp_path, child):
    path = tmp_path / "adult.ledger"
    SqlLedger.create(path, PROMISE)
    doomed = child(BEGIN_PAY_AND_WAIT, path)
    run = doomed.stdout.readline().strip()

    doomed.kill()

    assert doomed.wait(timeout=30) == -signal.SIGKILL
    ledger = SqlLedger.open(path)
    assert ledger.is_open(run)
    assert ledger.spent == BUDGET.capacity / 2
    with pytest.raises(BudgetExhausted, match="1 open run"):
        ledger.begin(BUDGET.rho() / 2 + Rho(Fraction(1, 10**30)), label="too much")
    ledger.close(run)  # a person decides that the run will not go on
    assert ledger.spent == BUDGET.capacity / 8


def test_what_an_append_returned_from_is_there_after_a_kill(tmp_path, child):
    path = tmp_path / "adult.ledger"
    run = SqlLedger.create(path, PROMISE).begin(BUDGET.rho() / 2, label="doomed")
    doomed = child(PAY_UNTIL_KILLED, path, run)
    doomed.stdout.readline()
    time.sleep(0.05)

    doomed.kill()
    told = 1 + len(doomed.stdout.read().splitlines())  # communicate() would miss what readline() read ahead
    assert doomed.wait(timeout=30) == -signal.SIGKILL

    ledger = SqlLedger.open(path)
    kept = [event.what for event in ledger.events(run)]
    assert len(kept) in (told, told + 1)  # perhaps one more was written than was told
    assert kept == [str(number) for number in range(len(kept))]
    assert ledger.spent == BUDGET.capacity / 2
