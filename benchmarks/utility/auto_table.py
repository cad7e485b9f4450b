"""What ``mechanism="auto"`` takes in every comparison that is kept, and how far that is from the best.

    python benchmarks/utility/auto_table.py            every row
    python benchmarks/utility/auto_table.py --above    only rows above 1.05

Runs nothing: all errors are read from benchmarks/results. A row is a table with its workload, ε and public
data; an error is the mean over seeds. The ratio is auto's error over that of the best single mechanism which
takes the row, at the settings that were run: so auto is compared with other numbers of rounds, too. ± is the
standard error of the ratio, by the spread over seeds; 0 where there was one. A row where auto's own settings
were not run uses the nearest that were, and says so with "~". Seeds differ from file to file; where several
mechanisms are within noise of each other, the best of them is lucky, and the ratio is a little too large.

    marginals, δ > 0     jam_grid.csv, aperture_cells.csv (with and without public data), families.csv,
                         auto_small.csv
    ranges, δ > 0        auto_ranges.csv
    δ = 0                auto_small.csv; mwem_ranges.csv, pure; mwem_cubes.csv

No kept result has public data beside ranges, or beside δ = 0: there auto's choice is untested.
"""

import argparse
import csv
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from auto_small import auto, table_of
from pairs import private_name

from experiment import RESULTS, mean_and_error
from sidelight.data.domain import Domain
from sidelight.mechanisms.by_size import Size, rounds_of
from sidelight.privacy.budget import Budget
from sidelight.privacy.unit import Unit
from sidelight.queries.workload import Workload

BAR = 1.05
CUBES = Domain.of(dict.fromkeys("abcdefgh", 2))
"""As many attributes as mwem_cubes.py asks about; their sizes do not matter here."""
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
    spreads: Mapping[str, float] = field(default_factory=dict)
    """Standard errors of the means, where there were several seeds."""

    @property
    def best(self) -> str:
        return min(self.errors, key=self.errors.__getitem__)

    @property
    def ratio(self) -> float:
        return self.errors[self.auto] / self.errors[self.best]

    @property
    def spread(self) -> float:
        """The standard error of the ratio."""
        if self.auto == self.best:
            return 0.0
        parts = [self.spreads.get(name, 0.0) / self.errors[name] for name in (self.auto, self.best)]
        return self.ratio * math.hypot(*parts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--above", action="store_true", help=f"only rows above {BAR}")
    asked = parser.parse_args()
    rows = [*with_public(), *without_public(), *small(), *ranges(), *pure_ranges(), *cubes()]
    print(f"{'':24s} {'data':28s} {'ε':>6s}  {'auto':22s} {'error':>9s}  {'best':26s} {'error':>9s}  ratio")
    for row in rows:
        if row.ratio > BAR or not asked.above:
            auto = row.auto + (" ~" if row.is_near else "")
            print(
                f"{row.kind:24s} {row.data:28s} {row.epsilon:6g}  {auto:22s} {row.errors[row.auto]:9.4g}  "
                f"{row.best:26s} {row.errors[row.best]:9.4g}  {row.ratio:.3f} ± {row.spread:.2f}"
            )
    print()
    for kind in dict.fromkeys(row.kind for row in rows):
        of_kind = [row for row in rows if row.kind == kind]
        above = [row for row in of_kind if row.ratio > BAR]
        clearly = sum(row.ratio - 2 * row.spread > BAR for row in above)
        print(
            f"{kind:24s} {len(of_kind):3d} rows, {len(above):3d} above {BAR}, {clearly:3d} of them by more "
            f"than twice the spread, largest {max(row.ratio for row in of_kind):.3f}"
        )


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
        others = means(
            (line for line in lines("families.csv") if (line["data"], line["epsilon"]) == (data, epsilon)),
            lambda line: line["mechanism"],
        )
        own = means((line for line in ours if _is(line, data, "all", epsilon)), lambda _: "aperture")
        yield Row("3-way, public", data, float(epsilon), others | rivals | own, "aperture")


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
    """Small and binary tables, with δ > 0 and in pure ε (auto_small.py)."""
    kept = lines("auto_small.csv")
    for (data, degree, delta, epsilon), group in grouped(kept, "data", "degree", "delta", "epsilon"):
        errors, spreads = means(group, name_of), means(group, name_of, part=1)
        table = table_of(data)
        workload = Workload.marginals(table.domain, degree=int(degree))
        budget = Budget(epsilon=float(epsilon), delta=float(delta))
        took = "auto" if budget.is_pure else auto(table, workload, budget).name
        if took in errors:
            kind = f"{degree}-way, small, δ {'= 0' if budget.is_pure else '> 0'}"
            yield Row(kind, data, budget.epsilon, errors, took, spreads=spreads)


def ranges() -> Iterator[Row]:
    """2,000 random ranges: MWEM and HDMM (auto_ranges.py)."""
    for (data, epsilon), group in grouped(lines("auto_ranges.csv"), "data", "epsilon"):
        errors, spreads = means(group, name_of), means(group, name_of, part=1)
        if "auto" in errors:
            yield Row("ranges, δ > 0", data, float(epsilon), errors, "auto", spreads=spreads)


def pure_ranges() -> Iterator[Row]:
    """The same in pure ε, where auto plays ten rounds."""
    for (data, epsilon), group in grouped(lines("mwem_ranges.csv"), "data", "epsilon"):
        pure = [line for line in group if "pure" in line["mechanism"]]
        errors = means(pure, name_of, value="squared_error")
        yield Row("ranges, δ = 0", data, float(epsilon), _rooted(errors), "MWEM, pure, T=10")


def _rooted(errors: Mapping[str, float]) -> dict[str, float]:
    return {name: math.sqrt(error) for name, error in errors.items()}


def cubes() -> Iterator[Row]:
    """All cuboids of ADULT's categorical attributes in pure ε."""
    for (epsilon,), group in grouped(lines("mwem_cubes.csv"), "epsilon"):
        errors = means(group, lambda line: line["mechanism"], value="mean")
        budget, size = Budget(epsilon=float(epsilon), delta=0.0), Size(48_842, Unit("replace"))
        wanted = rounds_of(CUBES, Workload.cuboids(CUBES), budget, size)
        run = [name for name in errors if name.startswith("MWEM, T=") and name.count(",") == 1]
        near = min(run, key=lambda name: abs(int(name.rpartition("=")[2]) - wanted))
        yield Row("cuboids, δ = 0", "adult", budget.epsilon, errors, near, is_near=True)


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


def name_of(line: Mapping[str, str]) -> str:
    return line["mechanism"]


def means(
    found: Iterable[Mapping[str, str]],
    name: Callable[[Mapping[str, str]], str],
    *,
    value: str = "error",
    part: int = 0,
) -> dict[str, float]:
    """The mean error of each mechanism, or (part 1) its standard error; one that refused is not in it."""
    errors: dict[str, list[float]] = {}
    for line in found:
        errors.setdefault(name(line), []).append(float(line[value]))
    return {
        each: mean_and_error(values)[part]
        for each, values in errors.items()
        if not any(math.isnan(one) for one in values)
    }


if __name__ == "__main__":
    main()
