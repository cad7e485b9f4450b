"""How long a ledger takes to open as it grows: every line is read, hashed, and added up again.

    OMP_NUM_THREADS=1 python benchmarks/speed/ledger.py   a minute; writes benchmarks/results/ledger_open.json

Runs of 30 rounds each, a selection and a measurement a round, written straight into an SQLite file; then the
file is opened three times, in processor time. Opening refuses whatever ``sidelight ledger verify`` refuses.
"""

import json
import sys
import tempfile
import time
from fractions import Fraction
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from experiment import RESULTS, machine
from sidelight.privacy.budget import Budget, cost_to_json
from sidelight.privacy.chain import Line, Sums
from sidelight.privacy.event import Exponential, Gaussian
from sidelight.privacy.ledger import new_run
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
                paid = {"event": event.as_json()}
                last = Line.after(last, "event", paid, total=total, run=run, of_run=of_run)
                pages.add(last)
            total = total.closed(budget.tally(allotment), of_run)
            of_run = Sums(of_run.tally, of_run.events)
            last = Line.after(last, "close", {}, total=total, run=run, of_run=of_run)
            pages.add(last)
    return last.number


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
    results = {"machine": machine(), "opening": figures}
    (RESULTS / "ledger_open.json").write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
