"""A process that dies in the middle of a release: the ledger never understates what may have been seen."""

import os
import signal
import subprocess
import sys
import time
from fractions import Fraction

import numpy as np
import pytest

from sidelight.data.domain import Domain
from sidelight.data.schema import Schema
from sidelight.privacy.budget import Budget
from sidelight.privacy.promise import Promise
from sidelight.privacy.sql_ledger import SqlLedger, open_ledger
from sidelight.privacy.unit import Unit
from sidelight.releases.run import release

pytestmark = pytest.mark.slow

CHILD = """
import sys, time
import numpy as np
import sidelight as sl
import sidelight.curator.journal as journal

write = journal.Journal.append
def slow(self, event, output, ticket):
    time.sleep(0.01)
    write(self, event, output, ticket)
    print("journalled", flush=True)
    time.sleep(0.01)
journal.Journal.append = slow
folder, checkpoint = sys.argv[1:]
codes = np.load(folder + "/codes.npy")
schema = sl.Schema.from_domain({"a": 3, "b": 4, "c": 5})
table = sl.Table.of_codes(schema.domain, codes)
sl.release(table, schema=schema, epsilon=0.5, mechanism="mwem", workload="2-way", rounds=20,
           ledger=folder + "/t.ledger", checkpoint=checkpoint or None, progress=False)
"""


def prepare(folder):
    rng = np.random.default_rng(0)
    np.save(
        folder / "codes.npy", np.stack([rng.integers(0, k, 500) for k in (3, 4, 5)], axis=1).astype(np.uint8)
    )
    SqlLedger.create(folder / "t.ledger", Promise(Budget(epsilon=1.0, delta=1e-9), Unit("replace"), "t"))


def run_and_kill(folder, checkpoint, *, outputs, moment):
    """Kill the run a moment after it has journalled so many outputs."""
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, str(folder), str(checkpoint)], stdout=subprocess.PIPE, env=os.environ
    )
    for _ in range(outputs):
        child.stdout.readline()
    time.sleep(moment)
    child.send_signal(signal.SIGKILL)
    child.wait()
    child.stdout.close()


def test_a_killed_run_counts_in_full_until_it_is_closed(tmp_path):
    prepare(tmp_path)

    run_and_kill(tmp_path, tmp_path / "cp", outputs=7, moment=0.013)

    ledger = open_ledger(tmp_path / "t.ledger")
    (run,) = ledger.runs()
    journal = (tmp_path / "cp" / "journal.jsonl").read_bytes()
    outputs = journal.count(b"\n") - 1
    assert run.is_open
    assert ledger.spent == run.allotment.value
    assert len(tuple(ledger.events(run.id))) >= outputs > 0
    ledger.close(run.id)
    assert ledger.spent == sum((event.cost.value for event in ledger.events()), Fraction(0))


def test_a_killed_run_resumes_and_pays_only_for_what_a_kill_lost(tmp_path):
    quiet, disturbed = tmp_path / "quiet", tmp_path / "disturbed"
    schema = Schema.from_domain({"a": 3, "b": 4, "c": 5})
    for folder in (quiet, disturbed):
        folder.mkdir()
        prepare(folder)
    for outputs, moment in ((1, 0.0), (3, 0.012), (5, 0.02), (2, 0.007)):
        run_and_kill(disturbed, disturbed / "cp", outputs=outputs, moment=moment)
    totals, again = [], []
    for folder in (quiet, disturbed):
        table = _table(folder, schema.domain)
        made = release(
            table, schema=schema, epsilon=0.5, mechanism="mwem", workload="2-way", rounds=20,
            ledger=folder / "t.ledger", checkpoint=folder / "cp", progress=False,
        )  # fmt: skip
        ledger = open_ledger(folder / "t.ledger")
        (run,) = ledger.runs()
        path = {payment.nth: payment.event for payment in ledger.payments(run.id)}  # the last one of each
        assert made.events == tuple(path.values())
        assert made.card.spent == ledger.spent
        totals.append(ledger.spent)
        again.append(run.repeats)

    event = made.events[0].cost.value
    assert again[0] == 0
    assert again[1] <= 4  # one for each kill that came between a draw and its journal
    assert totals[1] == totals[0] + again[1] * event


def _table(folder, domain: Domain):
    from sidelight.data.table import Table

    return Table.of_codes(domain, np.load(folder / "codes.npy"))
