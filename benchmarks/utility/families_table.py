"""Prints the table over all families, from kept results, and draws its figure; runs nothing.

    python benchmarks/utility/families_table.py [--epsilon 1]

From ``families.csv``. One line a mechanism, one column a pair of tables: the mean error over all three-way
marginals with its standard error over seeds, in brackets the largest error of one cell, and processor
seconds. The best of a column is bold. Below it, how many seeds there are, and every place where a mechanism
has a smaller mean or largest error than APERTURE. Where a network was trained on a GPU with every seed,
``+ GPU`` says so, and seconds are those of the processor beside it. Writes ``docs/images/families.svg``: both
errors of all mechanisms on all tables.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from experiment import FIGURES, RESULTS, mean_and_error
from plot import dot_plot
from resumable import read

MECHANISMS = (
    "aperture", "jam", "pmw-pub", "gem-pub-5", "gem-pub-50", "aim", "gem", "mst", "hdmm", "dualquery",
)  # fmt: skip
"""Those with public data first."""
NAMES = {
    "titanic": "TITANIC",
    "adult025": "ADULT",
    "fire": "FIRE",
    "salary": "SALARY",
    "taxi": "TAXI",
    "nist-ma-national": "NIST",
    "income-pa-oh": "ACS income",
    "employment-2018-2015": "ACS employment",
}
"""The pairs of tables, and what people call them."""


@dataclass(frozen=True)
class Found:
    """What is kept of one mechanism on one pair at one ε."""

    error: float
    spread: float
    largest: float
    largest_spread: float
    seconds: float
    seeds: int
    is_gpu: bool

    def __str__(self) -> str:
        spread = f" ± {self.spread:.3f}" if self.seeds > 1 else ""
        gpu = " + GPU" if self.is_gpu else ""
        return f"{self.error:.3f}{spread} ({self.largest:.3f}), {self.seconds:.0f} s{gpu}"


Table = Mapping[str, Mapping[str, Found]]
"""By mechanism and pair."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epsilon", type=float, default=1.0)
    epsilon = parser.parse_args().epsilon
    table = {name: dict(line(name, epsilon)) for name in MECHANISMS}
    print("| | " + " | ".join(NAMES.values()) + " |\n|---|" + "---|" * len(NAMES))
    for name in table:
        print(f"| {name} | " + " | ".join(told(table, name, data) for data in NAMES) + " |")
    seeds = Counter(cell.seeds for cells in table.values() for cell in cells.values())
    missing = [f"{name} on {data}" for name, cells in table.items() for data in NAMES if data not in cells]
    print(f"\nCells by their number of seeds: {dict(seeds)}; not run: {', '.join(missing) or 'none'}.")
    print("Closer than aperture: " + ("; ".join(rivals(table)) or "nobody, anywhere") + ".")
    panels = {
        heading: {
            name: {
                NAMES[data]: (getattr(cell, kind), getattr(cell, f"{spread}")) for data, cell in cells.items()
            }
            for name, cells in table.items()
        }
        for heading, kind, spread in (
            ("mean error of a marginal", "error", "spread"),
            ("largest error of a cell", "largest", "largest_spread"),
        )
    }
    dot_plot(FIGURES / "families.svg", panels, f"All three-way marginals, ε = {epsilon:g}, as shares of n")


def line(name: str, epsilon: float) -> Iterator[tuple[str, Found]]:
    """What is kept of a mechanism, pair by pair."""
    kept = [
        each
        for each in read(RESULTS / "families.csv")
        if each["mechanism"] == name and float(each["epsilon"]) == epsilon
    ]
    for data in NAMES:
        if own := [each for each in kept if each["data"] == data]:
            on_cpu = [each for each in own if each["device"] == "cpu"]
            yield (
                data,
                Found(
                    *mean_and_error(float(each["error"]) for each in own),
                    *mean_and_error(float(each["max_error"]) for each in own),
                    mean_and_error(float(each["cpu_seconds"]) for each in on_cpu or own)[0],
                    len(own),
                    is_gpu=not on_cpu,
                ),
            )


def told(table: Table, name: str, data: str) -> str:
    """A cell of the table, bold where it is the best of its column."""
    if data not in table[name]:
        return "–"
    best = min(cells[data].error for cells in table.values() if data in cells)
    here = table[name][data]
    return f"**{here}**" if here.error == best else str(here)


def rivals(table: Table) -> Iterator[str]:
    """Where a mechanism has a smaller error than APERTURE, of either kind."""
    for name, cells in table.items():
        for data, cell in cells.items():
            ours = table["aperture"].get(data)
            if name != "aperture" and ours is not None:
                if cell.error < ours.error:
                    yield f"{name} on {NAMES[data]} by the mean ({cell.error:.3f}, {ours.error:.3f})"
                if cell.largest < ours.largest:
                    yield f"{name} on {NAMES[data]} by the largest ({cell.largest:.4f}, {ours.largest:.4f})"


if __name__ == "__main__":
    main()
