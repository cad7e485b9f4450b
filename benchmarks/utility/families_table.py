"""Prints the table over all families, from kept results, and draws its figure; runs nothing.

    python benchmarks/utility/families_table.py [--epsilon 1]

One line a mechanism, one column a pair of tables: mean error over all three-way marginals, behind it the
largest error of one cell, and processor seconds. From ``families.csv``; where that has no run of a mechanism,
from ``jam_grid.csv`` (AIM, JAM, PMW-Pub) or ``aperture_cells.csv``, which keep no largest error. Several
seeds are averaged. The best of a column is bold. Networks trained on a GPU say so: their seconds are those of
the processor beside it. Writes ``docs/images/families.svg``: ADULT, error against ε.
"""

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from pairs import private_name

from experiment import FIGURES, RESULTS, mean_and_error
from plot import line_plot
from resumable import read

MECHANISMS = (
    "aperture", "jam", "pmw-pub", "gem-pub-5", "gem-pub-50", "gem-pub-2021-5", "aim", "gem", "gem-2021",
    "mst", "hdmm", "dualquery",
)  # fmt: skip
"""Those with public data first."""
DATA = (
    "titanic", "adult025", "fire", "salary", "taxi", "nist-ma-national", "income-pa-oh",
    "employment-2018-2015",
)  # fmt: skip
LIMIT = "5.0"
"""Model size limit of the kept graphical models, in MB."""


@dataclass(frozen=True)
class Found:
    """What is kept of one mechanism on one pair at one ε."""

    error: float
    spread: float
    largest: float | None
    seconds: float
    is_gpu: bool = False

    def __str__(self) -> str:
        largest = "" if self.largest is None else f" ({self.largest:.3f})"
        return f"{self.error:.3f}{largest}, {self.seconds:.0f} s{' + GPU' if self.is_gpu else ''}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epsilon", type=float, default=1.0)
    asked = parser.parse_args()
    table = {name: {data: found(name, data, asked.epsilon) for data in DATA} for name in MECHANISMS}
    shown = [data for data in DATA if any(table[name][data] for name in MECHANISMS)]
    print("| | " + " | ".join(shown) + " |\n|---|" + "---|" * len(shown))
    for name, line in table.items():
        if any(line[data] for data in shown):
            print(f"| {name} | " + " | ".join(_cell(table, name, data) for data in shown) + " |")
    series = {
        name: [
            (epsilon, cell.error, cell.spread)
            for epsilon in (0.1, 1.0, 10.0)
            if (cell := found(name, "adult025", epsilon)) is not None
        ]
        for name in MECHANISMS
    }
    drawn = {name: points for name, points in series.items() if points}
    line_plot(
        FIGURES / "families.svg", drawn, "ADULT, all three-way marginals", "ε", "mean error of a marginal",
        log_x=True, log_y=True,
    )  # fmt: skip


def found(name: str, data: str, epsilon: float) -> Found | None:
    """The mean over all seeds that are kept; None where nothing is."""
    own = [
        line
        for line in read(RESULTS / "families.csv")
        if (line["mechanism"], line["data"], float(line["epsilon"])) == (name, data, epsilon)
    ]
    if own:
        largest, _ = mean_and_error(float(line["max_error"]) for line in own)
        return _mean(own, largest, "cpu_seconds", is_gpu=own[0]["device"] == "cuda")
    if name == "aperture":
        kept = [
            line
            for line in read(RESULTS / "aperture_cells.csv")
            if (line["data"], line["public"], float(line["epsilon"])) == (data, "all", epsilon)
        ]
        return _mean(kept, None, "run_cpu_seconds") if kept else None
    kept = [
        line
        for line in read(RESULTS / "jam_grid.csv")
        if line["mechanism"] == name
        and line["data"] in (data, private_name(data))
        and float(line["epsilon"]) == epsilon
        and line["limit_mb"] in (LIMIT, "0.0")
        and line["error"] != "nan"
    ]
    return _mean(kept, None, "run_seconds") if kept else None


def _mean(
    lines: Sequence[Mapping[str, str]], largest: float | None, seconds: str, *, is_gpu: bool = False
) -> Found:
    error, spread = mean_and_error(float(line["error"]) for line in lines)
    took, _ = mean_and_error(float(line[seconds]) for line in lines)
    return Found(error, spread, largest, took, is_gpu)


def _cell(table: Mapping[str, Mapping[str, Found | None]], name: str, data: str) -> str:
    here = table[name][data]
    if here is None:
        return "–"
    best = min(line[data].error for line in table.values() if line[data] is not None)  # type: ignore[union-attr]
    return f"**{here}**" if here.error == best else str(here)


if __name__ == "__main__":
    main()
