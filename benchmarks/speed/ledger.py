"""How long a ledger takes to open as it grows, and to spend from.

    OMP_NUM_THREADS=1 python benchmarks/speed/ledger.py   a minute; writes benchmarks/results/ledger_open.json

Opening: every line is read, hashed, and added up again. Runs of 30 rounds each, a selection and a measurement
a round, each paid and drawn, written straight into an SQLite file; then the file is opened three times, in
processor time. Opening refuses whatever ``sidelight ledger verify`` refuses.

Spending: the median of an event's payment, of the line that takes it up, and of its journal, each on disk
before the next begins, in the time that passes.
"""

import json
import secrets
import sys
import tempfile
import time
from fractions import Fraction
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import numpy as np

from experiment import RESULTS, machine
from sidelight.curator.journal import Journal
from sidelight.privacy.budget import Budget, cost_to_json
from sidelight.privacy.chain import Line, Sums
from sidelight.privacy.chained_ledger import new_run
from sidelight.privacy.event import Exponential, Gaussian
from sidelight.privacy.promise import Promise
from sidelight.privacy.sql_ledger import SqlLedger
from sidelight.privacy.unit import Unit

ROUNDS = 30


def grown(path: Path, runs: int) -> int:
    """A ledger of so many closed runs; gives how many lines it has."""
    ledger = SqlLedger.create(path, Promise(Budget(epsilon=10.0, delta=1e-9), Unit("replace"), "grown"))
    budget = ledger.promise.budget
    allotment = budget.rho() / (runs + 1)
    cost = allotment / (2 * ROUNDS)
    events = (
        Exponential.at(cost, what="455 candidates", sensitivity=Fraction(2), candidates=455),
        Gaussian.at(cost, what="age × sex × education", l2_squared=Fraction(2)),
    )
    with ledger._transaction(to_write=True) as pages:
        last = pages.last()
        assert last is not None
        total = last.total
        for _ in range(runs):
            run, of_run = new_run(), Sums(open_runs=1)
            total = total.begun(budget.tally(allotment))
            facts = {"label": "a run", "allotment": cost_to_json(allotment)}
            last = Line.after(last, "begin", facts, total=total, run=run, of_run=of_run)
            pages.add(last)
            for event in events * ROUNDS:
                of_run, total = of_run.charged(budget.tally(event.cost)), total.counted()
                nth = of_run.paid_for - 1
                paid = {"event": event.as_json(), "place": nth}
                last = Line.after(last, "event", paid, total=total, run=run, of_run=of_run)
                pages.add(last)
                drawn = {"payment": last.number, "place": nth, "ticket": secrets.token_hex(16)}
                last = Line.after(last, "draw", drawn, total=total, run=run, of_run=of_run)
                pages.add(last)
            total = total.closed(budget.tally(allotment), of_run)
            last = Line.after(last, "close", {}, total=total, run=run, of_run=of_run.ended())
            pages.add(last)
    return last.number


def spending(folder: Path, events: int) -> dict[str, float]:
    """Median milliseconds that each step of an event waits for its disk."""
    ledger = SqlLedger.create(folder / "spent", Promise(Budget(epsilon=1, delta=1e-9), Unit("replace"), "x"))
    cost = ledger.promise.budget.rho() / events
    event = Gaussian.at(cost, what="age × sex × education", l2_squared=Fraction(2))
    run = ledger.begin(ledger.promise.budget.rho(), label="a run")
    answer, taken = np.arange(1000), []
    with Journal.open(folder / "run", run=run, settings={}) as journal:
        for nth in range(events):
            start = time.perf_counter()
            payment = ledger.append(event, run=run, nth=nth)
            paid = time.perf_counter()
            ticket = ledger.draw(payment, run=run)
            drawn = time.perf_counter()
            journal.append(event, answer, str(ticket))
            taken.append((paid - start, drawn - paid, time.perf_counter() - drawn))
    steps = ("payment", "draw", "journal")
    return dict(zip(steps, np.round(1000 * np.median(taken, axis=0), 2).tolist(), strict=True))


def main() -> None:
    figures = {}
    with tempfile.TemporaryDirectory() as folder:
        for runs in (16, 161, 480):
            path = Path(folder) / f"{runs}.ledger"
            lines = grown(path, runs)
            taken = []
            for _ in range(3):
                start = time.process_time()
                SqlLedger.open(path)
                taken.append(time.process_time() - start)
            figures[f"{lines} lines"] = {
                "seconds": round(min(taken), 3),
                "microseconds a line": round(1e6 * min(taken) / lines, 1),
                "bytes": path.stat().st_size,
            }
        waited = spending(Path(folder), 200)
    results = {"machine": machine(), "opening": figures, "milliseconds an event": waited}
    (RESULTS / "ledger_open.json").write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
