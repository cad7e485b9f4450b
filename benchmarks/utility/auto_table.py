"""What ``mechanism="auto"`` takes in every comparison that is kept, and how far that is from the best.

    python benchmarks/utility/auto_table.py            every row
    python benchmarks/utility/auto_table.py --above    only rows above 1.05

Runs nothing: all errors are read from benchmarks/results. A row is a table with its workload, ε and public
data; an error is the mean over seeds. The ratio is auto's error over that of the best single mechanism which
takes the row, at the settings that were run: so auto is compared with other numbers of rounds, too. A row
where auto's own settings were not run uses the nearest that were, and says so with "~". Seeds differ from
file to file; where several mechanisms are within noise of each other, the best of them is lucky, and the
ratio is a little too large.

    marginals, δ > 0     jam_grid.csv, aperture_cells.csv (with and without public data), auto_small.csv
    ranges, δ > 0        mwem_ranges.csv, zCDP
    δ = 0                mwem_ranges.csv, pure; mwem_contingency_*.csv; mwem_cubes.csv

No kept result has public data beside ranges, or beside δ = 0: there auto's choice is untested. HDMM was not
run on ranges; the SVD bound on all matrix mechanisms stands for it, and is below what it can reach.
"""

import argparse
import csv
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from pairs import private_name

from experiment import RESULTS, mean_and_error
from sidelight.mechanisms.choice import pure_rounds

BAR = 1.05
LIMITS = {"5.0": "", "80.0": " 80 MB", "0.0": ""}


@dataclass(frozen=True)
class Row:
    """One comparison: the mean error of every mechanism, and which of them auto takes."""

    kind: str
    data: str
    epsilon: float
    errors: Mapping[str, float]
    auto: str
    is_near: bool = False
    """Whether auto's settings differ from those that were run."""

    @property
    def best(self) -> str:
        return min(self.errors, key=self.errors.__getitem__)

    @property
    def ratio(self) -> float:
        return self.errors[self.auto] / self.errors[self.best]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--above", action="store_true", help=f"only rows above {BAR}")
    asked = parser.parse_args()
    rows = [*with_public(), *without_public(), *small(), *ranges(), *contingency(), *cubes()]
    print(f"{'':24s} {'data':28s} {'ε':>6s}  {'auto':22s} {'error':>9s}  {'best':26s} {'error':>9s}  ratio")
    for row in rows:
        if row.ratio > BAR or not asked.above:
            auto = row.auto + (" ~" if row.is_near else "")
            print(
                f"{row.kind:24s} {row.data:28s} {row.epsilon:6g}  {auto:22s} {row.errors[row.auto]:9.4g}  "
                f"{row.best:26s} {row.errors[row.best]:9.4g}  {row.ratio:.3f}"
            )
    print()
    for kind in dict.fromkeys(row.kind for row in rows):
        ratios = [row.ratio for row in rows if row.kind == kind]
        above = sum(ratio > BAR for ratio in ratios)
        print(f"{kind:24s} {len(ratios):3d} rows, {above:3d} above {BAR}, largest {max(ratios):.3f}")


def with_public() -> Iterator[Row]:
    """JAM's pairs and others: APERTURE beside AIM, JAM, PMW-Pub and the public table itself."""
    grid, ours = lines("jam_grid.csv"), lines("aperture_cells.csv")
    cells = dict.fromkeys((line["data"], line["epsilon"]) for line in ours if line["public"] == "all")
    for data, epsilon in cells:
        rivals = means(
            (
                line
                for line in grid
                if line["data"] in (data, private_name(data))
                and (line["epsilon"] == epsilon or line["mechanism"] == "public")
            ),
            lambda line: line["mechanism"] + LIMITS[line["limit_mb"]],
        )
        own = means((line for line in ours if _is(line, data, "all", epsilon)), lambda _: "aperture")
        yield Row("3-way, public", data, float(epsilon), rivals | own, "aperture")


def without_public() -> Iterator[Row]:
    """The same private tables alone: APERTURE beside AIM."""
    grid, ours = lines("jam_grid.csv"), lines("aperture_cells.csv")
    cells = dict.fromkeys((line["data"], line["epsilon"]) for line in ours if line["public"] == "none")
    for data, epsilon in cells:
        rivals = means(
            (
                line
                for line in grid
                if (line["mechanism"], line["data"], line["epsilon"]) == ("aim", private_name(data), epsilon)
            ),
            lambda line: line["mechanism"] + LIMITS[line["limit_mb"]],
        )
        own = means((line for line in ours if _is(line, data, "none", epsilon)), lambda _: "aperture")
        yield Row("3-way, alone", private_name(data), float(epsilon), rivals | own, "aperture")


def small() -> Iterator[Row]:
    """Tables of 64 cells (auto_small.py)."""
    for (data, epsilon), group in grouped(lines("auto_small.csv"), "data", "epsilon"):
        errors = means(group, lambda line: line["mechanism"])
        yield Row("3-way, small, alone", data, float(epsilon), errors, "aperture")


def ranges() -> Iterator[Row]:
    """2,000 random ranges: MWEM's settings, and the SVD bound, which HDMM nears (docs/papers/hdmm.md)."""
    for (data, epsilon), group in grouped(lines("mwem_ranges.csv"), "data", "epsilon"):
        errors = {
            name: math.sqrt(error)
            for name, error in means(group, lambda line: line["mechanism"], value="squared_error").items()
        }
        errors["HDMM at best (SVD bound)"] = errors.pop("SVD bound")
        yield Row("ranges, δ > 0", data, float(epsilon), errors, "MWEM, zCDP, T=20")
        pure = {name: error for name, error in errors.items() if "pure" in name}
        yield Row("ranges, δ = 0", data, float(epsilon), pure, "MWEM, pure, T=10", is_near=True)


def contingency() -> Iterator[Row]:
    """Binary tables in pure ε, by relative entropy; auto's MWEM has 10 to 40 rounds and 100 passes."""
    kept = lines("mwem_contingency_small.csv") + lines("mwem_contingency_large.csv")
    for (data, degree, epsilon), group in grouped(kept, "table", "degree", "epsilon"):
        errors = means(group, lambda line: line["mechanism"], value="relative_entropy")
        near = min(
            (name for name in errors if name.startswith("MWEM, T=") and name.count(",") == 1),
            key=lambda name: abs(int(name.rpartition("=")[2]) - pure_rounds(float(epsilon))),
        )
        kind = f"{degree}-way, binary, δ = 0"
        yield Row(kind, data, float(epsilon), errors, near, is_near=True)


def cubes() -> Iterator[Row]:
    """All cuboids of ADULT's categorical attributes in pure ε."""
    for (epsilon,), group in grouped(lines("mwem_cubes.csv"), "epsilon"):
        errors = means(group, lambda line: line["mechanism"], value="mean")
        auto = f"MWEM, T={pure_rounds(float(epsilon))}"
        yield Row("cuboids, δ = 0", "adult", float(epsilon), errors, auto, is_near=True)


def _is(line: Mapping[str, str], data: str, public: str, epsilon: str) -> bool:
    return (line["data"], line["public"], line["epsilon"]) == (data, public, epsilon)


def lines(name: str) -> list[dict[str, str]]:
    with (RESULTS / name).open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))


def grouped(
    found: Iterable[dict[str, str]], *by: str
) -> Iterable[tuple[tuple[str, ...], list[dict[str, str]]]]:
    groups: dict[tuple[str, ...], list[dict[str, str]]] = {}
    for line in found:
        groups.setdefault(tuple(line[name] for name in by), []).append(line)
    return groups.items()


def means(
    found: Iterable[Mapping[str, str]], name: Callable[[Mapping[str, str]], str], *, value: str = "error"
) -> dict[str, float]:
    """The mean error of each mechanism; one that refused the row is not in it."""
    errors: dict[str, list[float]] = {}
    for line in found:
        errors.setdefault(name(line), []).append(float(line[value]))
    return {
        each: mean_and_error(values)[0]
        for each, values in errors.items()
        if not any(math.isnan(one) for one in values)
    }


if __name__ == "__main__":
    main()
