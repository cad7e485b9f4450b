"""APERTURE without public data beside AIM, from kept results: nothing is run.

    python benchmarks/utility/alone_table.py

All marginals of a degree, δ = 1e-9. The ratio is APERTURE's mean error over AIM's, each over the seeds that
were run; the bar is 1.02. Runs are those of ``auto_runs.py``, and AIM's of ``jam_grid.py`` on large tables.
"""

import statistics
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from auto_runs import KEPT_OUT
from pairs import private_name

from experiment import RESULTS
from resumable import read

BAR = 1.02
Row = tuple[str, str, float]


def errors() -> dict[str, dict[Row, dict[str, float]]]:
    """The error of every run of either mechanism, by row and seed."""
    found: dict[str, dict[Row, dict[str, float]]] = {"aperture": {}, "aim": {}}
    for line in read(RESULTS / "auto_runs.csv"):
        if line["mechanism"] in found and line["workload"].endswith("-way") and float(line["delta"]) > 0:
            row = line["data"], line["workload"], float(line["epsilon"])
            found[line["mechanism"]].setdefault(row, {})[line["seed"]] = float(line["error"])
    for line in read(RESULTS / "jam_grid.csv"):
        if line["mechanism"] == "aim" and line["limit_mb"] == "5.0":
            row = private_name(line["data"]), "3-way", float(line["epsilon"])
            found["aim"].setdefault(row, {}).setdefault(line["seed"], float(line["error"]))
    return found


def main() -> None:
    found, ratios = errors(), list[float]()
    print("| table | workload | ε | APERTURE | AIM | ratio | seeds |\n|---|---|---|---|---|---|---|")
    for row in sorted(found["aperture"].keys() & found["aim"].keys()):
        ours, theirs = (statistics.fmean(found[name][row].values()) for name in ("aperture", "aim"))
        ratios.append(ours / theirs)
        data, workload, epsilon = row
        seeds = f"{len(found['aperture'][row])}, {len(found['aim'][row])}"
        name = f"{data}, kept out" if data in KEPT_OUT else data
        told = f"{name} | {workload} | {epsilon:g} | {ours:.4g} | {theirs:.4g} | {ratios[-1]:.3f} | {seeds}"
        print(f"| {told} |")
    above = sum(ratio > BAR for ratio in ratios)
    mean = statistics.geometric_mean(ratios)
    print(f"\n{len(ratios)} rows: geometric mean {mean:.3f}, {above} above {BAR}, largest {max(ratios):.3f}.")


if __name__ == "__main__":
    main()
