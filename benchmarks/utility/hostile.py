"""APERTURE and JAM with public tables that lie, beside AIM and APERTURE without public data.

    python benchmarks/utility/hostile.py                                    seed 0 of everything
    python benchmarks/utility/hostile.py --seeds 3 --mechanisms aperture aperture-none
    python benchmarks/utility/hostile.py --print                            only the table, from the results
    python benchmarks/utility/hostile.py --print --brief                    ratios alone, a line for each lie
    python benchmarks/utility/hostile.py --print --of aperture-before       the same for another mechanism

The lies are in hostile_tables.py; a lie's seed is the run's, so three seeds are three lies of each kind.
JAM takes one table: two public tables are given to it as one. A cell that is in the results already is never
repeated, and AIM's cells are taken from jam_grid.csv where they are there. All 3-way marginals, models of
5 MB, δ = 1e-9. A name that ends in "-before" says that the sources of commit 09c2d84 ran, before APERTURE had
an arbiter.

Every cell's ratio is to the best of AIM, JAM and APERTURE without public data, each by its mean over seeds.
The bar is for cells that an arbiter can resolve: 2Δ₁/ε of its share of the budget is below 5% of n.
"""

import argparse
import math
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from hostile_tables import LIES, Lie, as_one_table, hostile
from jam_grid import DELTA, Answers, mechanism_of
from pairs import load, private_name

from experiment import RESULTS, curator_of, mean_and_error
from resumable import read, run_cells
from sidelight.evaluation.workload_errors import workload_error
from sidelight.mechanisms.aperture.aperture import Aperture
from sidelight.mechanisms.base import Outcome
from sidelight.privacy.budget import Budget
from sidelight.privacy.unit import Unit
from sidelight.queries.workload import Workload

DATA = ("adult025", "fire", "income-pa-oh", "employment-2018-2015", "titanic")
EPSILONS = (1.0, 0.1, 10.0, 0.03)
"""In the order of running: what tells most comes first."""
LIMIT_MB = 5.0
BEFORE = "-before"
ALONE = ("aim", "aperture-none", "aperture-none" + BEFORE)
"""Mechanisms that see no public data; their cells carry the lie "none"."""
MECHANISMS = (*ALONE, "jam", "aperture", "aperture" + BEFORE)
PATH = RESULTS / "hostile.csv"

ARBITER_SHARE = 0.02
"""Share of the budget that an arbiter takes, unless APERTURE says otherwise."""
RESOLVED = 0.05
"""The bar is for cells whose resolution is below this share of n."""
BAR = 1.05


@dataclass(frozen=True)
class Compared:
    """One cell: APERTURE's errors over seeds, and those of AIM, JAM and APERTURE without public data."""

    data: str
    epsilon: float
    lie: str
    ours: list[float]
    rivals: list[list[float]]
    is_resolved: bool
    """Whether the arbiter can tell 5% of n apart."""

    @property
    def ratio(self) -> float:
        """To the best rival."""
        return mean_and_error(self.ours)[0] / min(mean_and_error(r)[0] for r in self.rivals if r)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data", nargs="+", default=list(DATA), choices=DATA)
    parser.add_argument("--lies", nargs="+", default=list(LIES), choices=list(LIES))
    parser.add_argument("--epsilons", nargs="+", type=float, default=list(EPSILONS))
    parser.add_argument("--mechanisms", nargs="+", choices=MECHANISMS,
                        default=["aim", "aperture-none", "aperture", "jam"])  # fmt: skip
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--print", action="store_true", help="only the table, from the results")
    parser.add_argument(
        "--brief", action="store_true", help="with --print: ratios alone, a line for each lie"
    )
    parser.add_argument("--of", default="aperture", choices=MECHANISMS, help="whose table")
    asked = parser.parse_args()
    if asked.print:
        print_table(asked.of, brief=asked.brief)
    else:
        run_cells(PATH, cells(asked), measure)


def cells(asked: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """What was asked for and is not known from another grid; all of one seed before the next."""
    known = read(RESULTS / "jam_grid.csv")
    for seed in range(asked.seeds):
        for mechanism in sorted(asked.mechanisms, key=MECHANISMS.index):
            for epsilon in asked.epsilons:
                for lie in ["none"] if mechanism in ALONE else asked.lies:
                    for data in asked.data:
                        is_known = _errors(known, **_aim_cell(data, epsilon), seed=seed)
                        if mechanism != "aim" or not is_known:
                            yield {
                                "data": data, "lie": lie, "mechanism": mechanism, "epsilon": epsilon,
                                "seed": seed,
                            }  # fmt: skip


def measure(data: str, lie: str, mechanism: str, epsilon: float, seed: int) -> dict[str, float]:
    """One cell: the model's error, and CPU seconds with the fit to public data."""
    private, _ = load(data)
    workload = Workload.marginals(private.domain, degree=3)
    curator = curator_of(private, Budget(epsilon=epsilon, delta=DELTA).rho(), seed=seed)
    fit_seconds, began = 0.0, time.process_time()
    release: Outcome
    if mechanism.startswith("aperture"):
        prior, fit_seconds = _prior(data, lie, seed)
        began = time.process_time()
        release = _aperture().run(curator, workload, public=prior)
    else:
        public = None if lie == "none" else as_one_table(_lie(data, lie, seed))
        release = mechanism_of(mechanism, LIMIT_MB).run(curator, workload, public=public)
    seconds = time.process_time() - began
    return {
        "error": workload_error(private, Answers(release.model, workload), workload, total=private.records),
        "fit_cpu_seconds": fit_seconds,
        "run_cpu_seconds": seconds,
    }


def _aperture() -> Aperture:
    return Aperture(max_model_mb=LIMIT_MB, oversized="skip")


@cache
def _lie(data: str, lie: str, seed: int) -> Lie:
    private, public = load(data)
    another, _ = load("fire" if data == "titanic" else "titanic")
    return hostile(lie, private, public, other=another, seed=seed)


@cache
def _prior(data: str, lie: str, seed: int) -> tuple[Any, float]:
    """APERTURE's public model of a lie, and the CPU seconds that it took; the same for every ε.

    Two tables are given as they are: how much each counts follows from a run's answers.
    """
    if lie == "none":
        return None, 0.0
    public, domain = _lie(data, lie, seed), load(data)[0].domain
    if isinstance(public, list):
        return public, 0.0
    closure = Workload.marginals(domain, degree=3).closure(domain)
    began = time.process_time()
    prior = _aperture().prior(public, domain, closure)
    return prior, time.process_time() - began


def resolution(epsilon: float) -> float:
    """What an arbiter can tell apart, in records: 2Δ₁/ε_a where ε_a²/8 is its share of ρ."""
    share = getattr(Aperture(), "contest_share", ARBITER_SHARE)
    rho = float(Budget(epsilon=epsilon, delta=DELTA).rho())
    return 2 * Unit("replace").l1 / math.sqrt(8 * share * rho)


def print_table(of: str, *, brief: bool) -> None:
    """The errors of APERTURE and its rivals in every cell, or ratios alone; how many are above the bar."""
    found = list(compared(of))
    if brief:
        _print_ratios(found)
    else:
        print(f"| data | ε | lie | {of} | AIM | JAM | none | ratio | resolved |")
        print("|---" * 9 + "|")
        for one in found:
            shown = " | ".join(map(_shown, [one.ours, *one.rivals]))
            mark = "yes" if one.is_resolved else ""
            print(f"| {one.data} | {one.epsilon:g} | {one.lie} | {shown} | {one.ratio:.3f} | {mark} |")
    for is_resolved in (True, False):
        if ratios := [one.ratio for one in found if one.is_resolved == is_resolved]:
            mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
            which = "that the arbiter can resolve" if is_resolved else "below its resolution"
            print(
                f"\n{len(ratios)} cells {which}: {sum(r > BAR for r in ratios)} above {BAR}, "
                f"largest {max(ratios):.3f}, geometric mean {mean:.3f}"
            )


def compared(of: str) -> Iterator[Compared]:
    """Every cell that was run, beside its rivals."""
    lines, known = read(PATH), read(RESULTS / "jam_grid.csv")
    none = "aperture-none" + (BEFORE if of.endswith(BEFORE) else "")
    for data in DATA:
        n = load(data)[0].records
        for epsilon in sorted(EPSILONS):
            is_resolved = resolution(epsilon) < RESOLVED * n
            for lie in LIES:
                cell = {"data": data, "epsilon": epsilon}
                ours = _errors(lines, **cell, lie=lie, mechanism=of)
                rivals = [
                    _errors(known, **_aim_cell(data, epsilon)) + _errors(lines, **cell, mechanism="aim"),
                    _errors(lines, **cell, lie=lie, mechanism="jam"),
                    _errors(lines, **cell, mechanism=none),
                ]
                if ours and any(rivals):
                    yield Compared(data, epsilon, lie, ours, rivals, is_resolved)


def _print_ratios(found: Sequence[Compared]) -> None:
    """A line for each lie, a column for each table and ε; in brackets where the arbiter cannot tell."""
    columns = list(dict.fromkeys((one.data, one.epsilon) for one in found))
    told = {(one.lie, one.data, one.epsilon): one for one in found}
    print("| lie | " + " | ".join(f"{data}, {epsilon:g}" for data, epsilon in columns) + " |")
    print("|---" * (1 + len(columns)) + "|")
    for lie in LIES:
        cells = [told.get((lie, *column)) for column in columns]
        shown = [_ratio_shown(one) if one else "" for one in cells]
        print(f"| {lie} | " + " | ".join(shown) + " |")


def _ratio_shown(one: Compared) -> str:
    if not one.is_resolved:
        return f"({one.ratio:.2f})"
    return f"**{one.ratio:.2f}**" if one.ratio > BAR else f"{one.ratio:.2f}"


def _aim_cell(data: str, epsilon: float) -> dict[str, Any]:
    """AIM's cell of jam_grid.csv."""
    return {"data": private_name(data), "mechanism": "aim", "limit_mb": LIMIT_MB, "epsilon": epsilon}


def _errors(lines: Sequence[dict[str, str]], **where: Any) -> list[float]:
    wanted = {name: str(value) for name, value in where.items()}
    return [float(line["error"]) for line in lines if all(line[k] == v for k, v in wanted.items())]


def _shown(errors: list[float]) -> str:
    if not errors:
        return ""
    mean, error = mean_and_error(errors)
    return f"{mean:.4f}" if len(errors) == 1 else f"{mean:.4f} ± {error:.4f} ({len(errors)})"


if __name__ == "__main__":
    main()
