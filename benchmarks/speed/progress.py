"""What the progress bars cost: the processor time of a step and of a drawing, and their share of a run.

    OMP_NUM_THREADS=1 python benchmarks/speed/progress.py      half a minute; writes results/progress.json

Bars are drawn at a fixed rate by a thread of their own: their share of a run is what one drawing takes times
the drawings a second, plus the steps. Whole runs with and without bars vary too much to be compared, so each
part is timed alone: as many bars as a release shows, on a terminal of 160 columns.
"""

import io
import json
import os
import statistics
import sys
import time
from contextlib import redirect_stderr
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from experiment import RESULTS, machine
from sidelight.cli.demo import WITH, released_survey, survey
from sidelight.privacy.budget import Budget
from sidelight.privacy.ledger import MemoryLedger
from sidelight.privacy.promise import Promise
from sidelight.progress import _REFRESHES, Bars, Silent
from sidelight.testing import SeededNoise

TIMES = 300


class Terminal(io.StringIO):
    """Takes what a terminal would show."""

    def isatty(self) -> bool:
        return True


class Counting(Silent):
    """Says nothing, and counts what it is told."""

    steps = 0

    def step(self, what: str, *, share: float) -> None:
        self.steps += 1


def of_the_bars() -> tuple[float, float]:
    """Seconds of a step, and of a drawing."""
    os.environ["COLUMNS"] = "160"
    steps, drawings = [], []
    with redirect_stderr(Terminal()):
        bars = Bars()
        with bars.phase("aperture"), bars.phase("count"):
            bars.turn("fit")
            for number in range(TIMES):
                began = time.thread_time()
                bars.step(f"round {number}: measured workstat × educ, 50% of the budget left", share=0.5)
                steps.append(time.thread_time() - began)
                began = time.thread_time()
                bars._bars.refresh()
                drawings.append(time.thread_time() - began)
    return statistics.median(steps), statistics.median(drawings)


def of_a_run() -> tuple[float, int]:
    """Seconds of the demo's release with public data, and how many steps it tells."""
    private, public, schema = survey()
    book = MemoryLedger(Promise(Budget(epsilon=1.0, delta=1e-9), schema.unit, "survey"))
    told = Counting()
    began = time.process_time()
    released_survey(
        WITH, private, public, schema, epsilon=1.0, ledger=book, progress=told, noise=SeededNoise(1)
    )
    return time.process_time() - began, told.steps


def main() -> None:
    step, drawing = of_the_bars()
    seconds, steps = of_a_run()
    figures = {
        "machine": machine(),
        "step_seconds": round(step, 7),
        "drawing_seconds": round(drawing, 5),
        "drawings_a_second": _REFRESHES,
        "run_seconds": round(seconds, 1),
        "run_steps": steps,
        "share_of_the_run": round(drawing * _REFRESHES + steps * step / seconds, 4),
    }
    (RESULTS / "progress.json").write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
