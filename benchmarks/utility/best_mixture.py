"""Best-mixture error of public tables, exact and bracketed, with the time that each takes.

The figures come from exact private answers: they are PRIVATE for a real private table.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from experiment import RESULTS
from resumable import run_cells
from sidelight.data.table import Table
from sidelight.evaluation.screening import best_mixture_error
from tables import employment, income


def main() -> None:
    def tables(name: str) -> tuple[Table, Table]:
        if name.startswith("MA"):
            return employment(2018), employment(int(name[-4:]))
        return income(name[:2]), income(name[-2:])

    def work(name: str, method: str) -> dict[str, float]:
        private, public = tables(name)
        found = best_mixture_error(private, public, workload="3-way", method=method)
        return {"low": found.low, "high": found.high, "steps": found.steps}

    names = [f"PA from {state}" for state in ("OH", "NY", "CA", "SC")]
    names += [f"MA 2018 from {year}" for year in (2015, 2017)]
    run_cells(
        RESULTS / "best_mixture.csv",
        [{"name": name, "method": method} for method in ("exact", "bracketed") for name in names],
        work,
    )


if __name__ == "__main__":
    main()
