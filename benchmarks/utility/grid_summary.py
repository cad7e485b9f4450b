"""The grid as tables and pictures: APERTURE beside its rivals, from jam_grid.csv and aperture_cells.csv.

    python benchmarks/utility/grid_summary.py             JAM's eight pairs: the grid of 48 cells
    python benchmarks/utility/grid_summary.py --others    pairs that are not JAM's
    python benchmarks/utility/grid_summary.py --seeds 2   APERTURE's by this seed alone
    python benchmarks/utility/grid_summary.py --alone     APERTURE without public data, beside AIM
    python benchmarks/utility/grid_summary.py --brief     one line a pair: APERTURE's error and the ratio

Prints one line for each private/public pair and ε: mean errors over seeds, and the ratio of APERTURE's to
the best rival's. Rivals are AIM and JAM under APERTURE's size limit (and at 80 MB, where that was run),
PMW-Pub, the raw public table and APERTURE's own public model. Draws one figure for each pair.
"""

import argparse
import math
import sys
from collections.abc import Mapping
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from jam_grid import EPSILONS
from pairs import JAM, OTHERS, private_name

from experiment import FIGURES, RESULTS, mean_and_error
from plot import line_plot
from resumable import read

LIMIT = 5.0
BAR = 1.02

Found = tuple[float, float, int]
"""Mean, its standard error, and how many seeds."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--others", action="store_true", help="the pairs that are not JAM's")
    parser.add_argument("--seeds", nargs="+", help="count these of APERTURE's seeds alone")
    parser.add_argument("--alone", action="store_true", help="without public data, beside AIM")
    parser.add_argument("--brief", action="store_true", help="one line a pair")
    asked = parser.parse_args()
    others = asked.others
    grid = read(RESULTS / "jam_grid.csv")
    ours = [
        line
        for line in read(RESULTS / "aperture_cells.csv")
        if line["public"] == ("none" if asked.alone else "all")
        and (not asked.seeds or line["seed"] in asked.seeds)
    ]
    if asked.alone:
        _print_alone(grid, ours)
        return
    lines: list[dict[str, str]] = []
    ratios: list[float] = []
    for data in OTHERS if others else JAM:
        found = {epsilon: _cell(grid, ours, data, epsilon) for epsilon in EPSILONS}
        found = {epsilon: cell for epsilon, cell in found.items() if not others or cell["APERTURE"]}
        for epsilon, cell in found.items():
            line = {"data": data, "ε": f"{epsilon:g}"} | {name: _shown(one) for name, one in cell.items()}
            rivals = {name: one for name, one in cell.items() if name not in OURS and one is not None}
            aperture = cell["APERTURE"]
            if aperture is not None and rivals:
                best = min(rivals, key=lambda name: rivals[name][0])
                ratios.append(aperture[0] / rivals[best][0])
                line |= {"best rival": best, "ratio": f"{ratios[-1]:.2f}"}
                line["above the bar"] = _verdict(aperture, rivals[best])
            lines.append(line)
        if not others and not asked.seeds and not asked.brief:
            _draw(data, found)
    if asked.brief:
        _print_brief(lines)
    else:
        _print(lines)
    if ratios:
        _sum_up(ratios)


OURS = ("APERTURE", "sampled")


def _cell(
    grid: list[dict[str, str]], ours: list[dict[str, str]], data: str, epsilon: float
) -> dict[str, Found | None]:
    alone = private_name(data)
    cell = {"epsilon": epsilon, "data": data}
    return {
        "raw": _of(grid, "error", data=data, mechanism="public"),
        "public model": _of(ours, "public_model_error", data=data, limit_mb=LIMIT),
        "AIM": _of(grid, "error", data=alone, mechanism="aim", limit_mb=LIMIT, epsilon=epsilon),
        "JAM": _of(grid, "error", **cell, mechanism="jam", limit_mb=LIMIT),
        "AIM 80": _of(grid, "error", data=alone, mechanism="aim", limit_mb=80.0, epsilon=epsilon),
        "JAM 80": _of(grid, "error", **cell, mechanism="jam", limit_mb=80.0),
        "PMW-Pub": _of(grid, "error", **cell, mechanism="pmw-pub"),
        "APERTURE": _of(ours, "error", **cell, limit_mb=LIMIT),
        "sampled": _of(ours, "sampled_error", **cell, limit_mb=LIMIT),
    }


def _of(lines: list[dict[str, str]], column: str, **where: object) -> Found | None:
    values = [
        float(line[column])
        for line in lines
        if all(line[name] == str(value) for name, value in where.items())
    ]
    return (*mean_and_error(values), len(values)) if values else None


def _shown(found: Found | None) -> str:
    if found is None:
        return ""
    mean, error, seeds = found
    return f"{mean:.4f}" if seeds == 1 or not error else f"{mean:.4f} ± {error:.4f} ({seeds})"


def _verdict(ours: Found, rival: Found) -> str:
    excess = ours[0] - BAR * rival[0]
    if excess <= 0:
        return ""
    return "within 2 s.e." if excess <= 2 * math.hypot(ours[1], BAR * rival[1]) else "yes"


def _print_alone(grid: list[dict[str, str]], ours: list[dict[str, str]]) -> None:
    print("| data | ε | AIM | APERTURE | ratio |\n|---|---|---|---|---|")
    ratios = []
    for data in dict.fromkeys(line["data"] for line in ours):
        for epsilon in EPSILONS:
            where = {"epsilon": epsilon, "limit_mb": LIMIT}
            aim = _of(grid, "error", data=private_name(data), mechanism="aim", **where)
            aperture = _of(ours, "error", data=data, **where)
            if aim is not None and aperture is not None:
                ratios.append(aperture[0] / aim[0])
                shown = f"{_shown(aim)} | {_shown(aperture)} | {ratios[-1]:.2f}"
                print(f"| {private_name(data)} | {epsilon:g} | {shown} |")
    _sum_up(ratios)


def _sum_up(ratios: list[float]) -> None:
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    print(f"\n{len(ratios)} cells; geometric mean of the ratios {mean:.3f}, largest {max(ratios):.3f}")
    print(f"{sum(ratio > BAR for ratio in ratios)} above {BAR}")


def _draw(data: str, found: Mapping[float, Mapping[str, Found | None]]) -> None:
    names = [name for name in next(iter(found.values())) if name != "sampled"]
    series = {
        name: [(eps, one[0], one[1]) for eps, cell in found.items() if (one := cell[name]) is not None]
        for name in names
    }
    line_plot(
        FIGURES / f"grid_{data}.svg",
        {name: points for name, points in series.items() if points},
        f"{data}: all 3-way marginals, {LIMIT:g} MB models",
        "ε (δ = 1e-9)",
        "average workload error",
        log_x=True,
        log_y=True,
    )


def _print_brief(lines: list[dict[str, str]]) -> None:
    epsilons = sorted({line["ε"] for line in lines}, key=float)
    print("| data | " + " | ".join(f"ε = {epsilon}" for epsilon in epsilons) + " |")
    print("|---|" + "---|" * len(epsilons))
    for data in dict.fromkeys(line["data"] for line in lines):
        cells = {line["ε"]: line for line in lines if line["data"] == data}
        shown = [_brief(cells.get(epsilon)) for epsilon in epsilons]
        print(f"| {data} | " + " | ".join(shown) + " |")


def _brief(line: dict[str, str] | None) -> str:
    if line is None or "ratio" not in line:
        return ""
    return f"{float(line['APERTURE'].split()[0]):.3f} ({line['ratio']})"


def _print(lines: list[dict[str, str]]) -> None:
    names = ["data", "ε", "raw", "public model", "AIM", "JAM", "AIM 80", "JAM 80", "PMW-Pub", *OURS]
    names += ["best rival", "ratio", "above the bar"]
    print("| " + " | ".join(names) + " |")
    print("|" + "---|" * len(names))
    for line in lines:
        print("| " + " | ".join(line.get(name, "") for name in names) + " |")


if __name__ == "__main__":
    main()
