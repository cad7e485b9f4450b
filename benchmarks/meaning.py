"""What ε means, as a picture: how often an accuser is right, against how often he is wrong.

    python benchmarks/meaning.py        a second; writes docs/images/meaning.svg and results/meaning.csv

Nothing is measured: the bound follows from ρ (``sidelight.privacy.meaning``), and ρ from ε at δ = 10⁻⁹. On
the line "guessing" nothing is learned.
"""

import csv
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import numpy as np

from experiment import FIGURES, RESULTS
from plot import line_plot
from sidelight.privacy.budget import Budget
from sidelight.privacy.meaning import most_caught

DELTA = 1e-9
EPSILONS = (0.1, 0.5, 1, 2, 5, 10)
FALSE = [0.001, *np.arange(0.01, 0.5, 0.01), 0.5]


def main() -> None:
    lines = {}
    for epsilon in reversed(EPSILONS):
        rho = float(Budget(epsilon=epsilon, delta=DELTA).rho())
        lines[f"ε = {epsilon:g}"] = [(float(f), most_caught(rho, false=float(f)), 0.0) for f in FALSE]
    with (RESULTS / "meaning.csv").open("w", newline="", encoding="utf-8") as out:
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(["epsilon", "false", "caught"])
        for name, points in lines.items():
            writer.writerows([name.removeprefix("ε = "), f"{f:.3f}", f"{t:.6f}"] for f, t, _ in points)
    lines["guessing"] = [(float(f), float(f), 0.0) for f in FALSE]
    line_plot(
        FIGURES / "meaning.svg",
        lines,
        "What an accuser can reach",
        "accused wrongly (share of the innocent)",
        "found (share of the others), at most",
    )


if __name__ == "__main__":
    main()
