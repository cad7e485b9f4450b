"""What ``mechanism="auto"`` takes in every comparison that is kept, and how far that is from the best.

    python benchmarks/utility/auto_table.py            every row
    python benchmarks/utility/auto_table.py --above    only rows above 1.05
    python benchmarks/utility/auto_table.py --markdown the summary and the rows above, for the guide

Runs nothing: all errors are read from benchmarks/results. A row is a table with its workload, ε and public
data; an error is the mean over seeds. The ratio is auto's error over that of the best single mechanism which
takes the row, at the settings that were run: so auto is compared with other numbers of rounds, too. ± is the
standard error of the ratio, by the spread over seeds; 0 where there was one. "!" marks rows of tables that
were not looked at while the rule was made. "Thanks to ladder" are rows that are within the bar, and would
not be if that mechanism did not exist. Where several mechanisms are within noise of each other, the best
of them is lucky, and the ratio is a little too large.

    public data, marginals, δ > 0      jam_grid.csv, aperture_cells.csv, families.csv
    drawn tables of 10 to 100 columns  wide.csv
    all others                         auto_runs.csv; AIM's rows of jam_grid.csv on large tables beside it
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

from auto_runs import DELTA, KEPT_OUT, ROWS, auto, name_of
from pairs import load, private_name

from experiment import RESULTS, mean_and_error
from sidelight.data.domain import Domain
from sidelight.data.table import Table
from sidelight.mechanisms.by_size import Size
from sidelight.mechanisms.choice import choose
from sidelight.privacy.budget import Budget
from sidelight.privacy.unit import Unit
from sidelight.queries.workload import Workload
from wide_tables import wide

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
    spreads: Mapping[str, float] = field(default_factory=dict)
    """Standard errors of the means, where there were several seeds."""
    seeds: int = 1
    """The fewest of auto and the best."""

    def is_thanks_to(self, name: str) -> bool:
        """Whether it is within the bar, and no other mechanism than this one would be."""
        others = [error for each, error in self.errors.items() if each.split(",")[0] != name]
        return self.ratio <= BAR and min(others) > BAR * self.errors[self.auto]

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
    parser.add_argument("--markdown", action="store_true", help="the summary alone, as a table")
    asked = parser.parse_args()
    rows = [*with_public(), *run(), *drawn()]
    if not asked.markdown:
        print(
            f"{'':22s} {'data':22s} {'ε':>6s}  {'auto':38s} {'error':>8s}  {'best':38s} {'error':>8s}  ratio"
        )
    for row in () if asked.markdown else rows:
        if row.ratio > BAR or not asked.above:
            out = "!" if row.data in KEPT_OUT else " "
            print(
                f"{row.kind:22s} {out}{row.data:21s} {row.epsilon:6g}  {row.auto:38s} "
                f"{row.errors[row.auto]:8.4g}  {row.best:38s} {row.errors[row.best]:8.4g}  "
                f"{row.ratio:.3f} ± {row.spread:.2f}"
            )
    print()
    summary(rows, markdown=asked.markdown)
    if asked.markdown:
        above(rows)


def summary(rows: list[Row], *, markdown: bool) -> None:
    """How many rows are above the bar, by kind, and for tables that were kept out."""
    if markdown:
        print(
            "| rows | number | thanks to ladder | above 1.05 | beyond twice the spread | largest | kept out |"
        )
        print("|---|---|---|---|---|---|---|")
    for kind in dict.fromkeys(row.kind for row in rows):
        of_kind = [row for row in rows if row.kind == kind]
        beyond = [row for row in of_kind if row.ratio > BAR]
        clearly = sum(row.ratio - 2 * row.spread > BAR for row in beyond)
        out = [row.ratio for row in of_kind if row.data in KEPT_OUT]
        unseen = f"{sum(ratio > BAR for ratio in out)} of {len(out)}, {max(out):.2f}" if out else "none"
        largest = max(row.ratio for row in of_kind)
        thanks = sum(row.is_thanks_to("ladder") for row in of_kind)
        if markdown:
            numbers = (kind, len(of_kind), thanks, len(beyond), clearly, f"{largest:.2f}", unseen)
            print(f"| {' | '.join(map(str, numbers))} |")
        else:
            print(
                f"{kind:22s} {len(of_kind):3d} rows, {thanks:3d} within thanks to ladder, {len(beyond):3d} "
                f"above {BAR}, {clearly:3d} of them beyond twice the spread, largest {largest:.3f}; "
                f"kept out: {unseen}"
            )


def above(rows: list[Row]) -> None:
    """The rows above the bar beyond twice the spread, as a table."""
    print("\n| | table | ε | auto | best | ratio |\n|---|---|---|---|---|---|")
    for row in rows:
        if row.ratio - 2 * row.spread > BAR:
            out = ", kept out" if row.data in KEPT_OUT else ""
            print(
                f"| {row.kind} | {row.data}{out} | {row.epsilon:g} | {row.auto} | {row.best} | "
                f"{row.ratio:.2f} ± {row.spread:.2f} |"
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
        private, public = load(data)
        took = chosen(private.domain, 3, float(epsilon), records=private.records, public=public)
        every = others | rivals | own
        if took in every:
            yield Row("3-way, public", data, float(epsilon), every, took)


def run() -> Iterator[Row]:
    """All that auto_runs.py ran: small, large and wide tables, marginals and ranges, δ > 0 and δ = 0."""
    kept: dict[tuple[str, ...], list[dict[str, str]]] = {}
    for line in lines("auto_runs.csv"):
        key = line["data"], line["workload"], str(float(line["delta"])), str(float(line["epsilon"]))
        kept.setdefault(key, []).append(line)
    grid = [
        line for line in lines("jam_grid.csv") if line["mechanism"] == "aim" and line["limit_mb"] == "5.0"
    ]
    for data, several in ROWS.items():
        for rows in several:
            for epsilon in rows.epsilons:
                group = kept.get((data, rows.workload, str(rows.delta), str(epsilon)), [])
                if (rows.kind, rows.workload) == ("large", "3-way"):
                    seeds = {line["seed"] for line in group if line["mechanism"] == "aim"}
                    group = group + [
                        line
                        for line in grid
                        if (line["data"], float(line["epsilon"])) == (data, epsilon)
                        and line["seed"] not in seeds
                    ]
                errors, spreads = means(group, mechanism_of), means(group, mechanism_of, part=1)
                if len(errors) < 2:  # what auto would take need not be planned
                    continue
                took = name_of(auto(data, rows.workload, epsilon, rows.delta))
                if took in errors:
                    delta = "δ = 0" if rows.delta == 0 else "δ > 0"
                    kind = ", ".join(dict.fromkeys([rows.workload, rows.kind, delta]))
                    yield Row(kind, data, epsilon, errors, took, spreads=spreads)


def mechanism_of(line: Mapping[str, str]) -> str:
    return line["mechanism"]


def drawn() -> Iterator[Row]:
    """Made-up tables of 10 to 100 columns, all pairs, ε = 1; alone, and beside their public table."""
    for columns in (10, 41, 100):
        found = [
            line
            for line in lines("wide.csv")
            if (line["workload"], line["attributes"]) == ("2-way", str(columns))
        ]
        every = means(found, mechanism_of)
        helped = every.pop("aperture", None)
        alone = {name.removesuffix(" alone"): error for name, error in every.items()}
        made = wide(columns, records=100)
        took = chosen(made.private.domain, 2, 1.0, records=150_000)
        if took in alone:
            yield Row("2-way, drawn", f"drawn{columns}", 1.0, alone, took)
        if helped is not None:
            took = chosen(made.private.domain, 2, 1.0, records=150_000, public=made.public)
            every = alone | {"aperture": helped}
            yield Row("2-way, drawn, public", f"drawn{columns}", 1.0, every, took)


def chosen(domain: Domain, degree: int, epsilon: float, *, records: int, public: Table | None = None) -> str:
    """The name of what is chosen for all marginals of a degree, at δ = 1e-9."""
    return choose(
        domain, Workload.marginals(domain, degree=degree), budget=Budget(epsilon=epsilon, delta=DELTA),
        public=public, settings={}, size=Size(records, Unit("replace")),
    ).mechanism.name  # fmt: skip


def _is(line: Mapping[str, str], data: str, public: str, epsilon: str) -> bool:
    return (line["data"], line["public"], line["epsilon"]) == (data, public, epsilon)


def lines(name: str) -> list[dict[str, str]]:
    with (RESULTS / name).open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))


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
