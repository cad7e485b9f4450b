"""Do intervals of nominally 95% hold the exact counts, and how wide are they? Real tables, five mechanisms.

    python benchmarks/utility/coverage.py                                the whole grid, seed by seed
    python benchmarks/utility/coverage.py --data acs --mechanisms pmw-pub --epsilons 1 --seeds 1
    python benchmarks/utility/coverage.py --seeds 0                      the tables alone, from the results

Private and public: ADULT with the unbiased and the most biased public part of JAM's (adult025, adult100),
Pennsylvania with Ohio (acs), titanic; and salary, looked at only once the estimate of model error was
settled. The workload is all 3-way marginals, δ = 1e-9, models of at most 5 MB.

Counted are, for one-, two- and three-way marginals: all cells; cells estimated at 10 records or more; cells
that hold 1% of the records or more; and sums over random boxes, half of the values of each attribute. A row
gives the share of intervals that hold the exact count, the mean half width, and the mean absolute error, in
records: the first should be 0.95, and the second 2.46 times the third if errors were normal and of one size.

A cell that is in the results already is never repeated. Exact counts are used: the figures are PRIVATE.
"""

import argparse
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
from pairs import load

from experiment import RESULTS, curator_of
from resumable import read, run_cells
from sidelight.data.domain import Attrs
from sidelight.data.table import Table
from sidelight.mechanisms.aim import AIM
from sidelight.mechanisms.aperture.aperture import Aperture
from sidelight.mechanisms.base import Mechanism, Outcome
from sidelight.mechanisms.jam import JAM
from sidelight.mechanisms.mwem import MWEM
from sidelight.mechanisms.pmw_pub import PMWPub
from sidelight.privacy.budget import Budget
from sidelight.public.prior import Prior
from sidelight.queries.workload import Workload
from sidelight.uncertainty.error_bars import CountErrors, ErrorBars
from tables import income

PATH = RESULTS / "coverage.csv"
EPSILONS = (0.1, 1.0, 10.0)
DELTA = 1e-9
ORDERS = {"one": 1, "two": 2, "three": 3}
GROUPS = ("all", "ten", "large", "boxes", "large_measured", "large_model")
MECHANISMS: dict[str, Mechanism] = {
    "aperture": Aperture(max_model_mb=5, oversized="skip"),
    "aim": AIM(max_model_mb=5, oversized="skip"),
    "jam": JAM(max_model_mb=5, oversized="skip"),
    "mwem": MWEM(),
    "pmw-pub": PMWPub(),
}
ASKED = {
    "adult025": ("mwem", "aperture", "aim", "jam"),
    "adult100": ("aperture", "jam"),  # the others see no public data, so they are those of adult025
    "acs": ("mwem", "pmw-pub", "aperture", "aim", "jam"),
    "titanic": ("mwem", "aperture", "aim", "jam"),
    "salary": ("mwem", "aperture", "aim", "jam"),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", nargs="+", choices=list(ASKED), default=list(ASKED))
    parser.add_argument("--mechanisms", nargs="+", choices=list(MECHANISMS), default=list(MECHANISMS))
    parser.add_argument("--epsilons", nargs="+", type=float, default=list(EPSILONS))
    parser.add_argument("--seeds", type=int, default=2)
    asked = parser.parse_args()

    run_cells(PATH, cells(asked), measure)
    tell(read(PATH))


def cells(asked: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """What was asked for; all of one seed before the next."""
    for seed in range(asked.seeds):
        for data in asked.data:
            for mechanism in ASKED[data]:
                for epsilon in asked.epsilons if mechanism in asked.mechanisms else ():
                    yield {"data": data, "mechanism": mechanism, "epsilon": epsilon, "seed": seed}


def measure(data: str, mechanism: str, epsilon: float, seed: int) -> dict[str, float]:
    """One release: coverage, half widths and errors of every group."""
    private, public = tables(data)
    workload = Workload.marginals(private.domain, degree=3)
    recipe = MECHANISMS[mechanism]
    curator = curator_of(private, Budget(epsilon=epsilon, delta=DELTA).rho(), seed=seed)
    given: Any = None if recipe.public_data == "unused" else public
    release = recipe.run(curator, workload, public=prior(data) if mechanism == "aperture" else given)
    found: dict[str, float] = dict.fromkeys(("level_met", "level_unmet"), float("nan"))
    if release.model_error is not None:
        found |= {f"level_{kind}": s for kind, s in release.model_error.levels.items()}
    for name, degree in ORDERS.items():
        found |= {f"{name}_{key}": value for key, value in checked(release, private, degree, seed).items()}
    return found


def checked(release: Outcome, private: Table, degree: int, seed: int) -> dict[str, float]:
    """All marginals of one degree against the exact counts."""
    wanted = list(Workload.marginals(private.domain, degree=degree).attribute_sets)
    asked = list(dict.fromkeys([*wanted, *((attr,) for attr in private.domain.attrs)]))
    errors = CountErrors(_Counted(release.model, asked), release.measurements, release.model_error)
    rng = np.random.default_rng(seed)
    groups: dict[str, list[np.ndarray]] = {group: [] for group in GROUPS}
    for attrs, counts in zip(wanted, private.count_many(wanted), strict=True):
        bars, exact = errors.bars(attrs), np.asarray(counts, dtype=np.float64)
        is_large = exact >= 0.01 * private.records
        groups["all"].append(outcome(bars, exact))
        groups["ten"].append(outcome(bars, exact, bars.estimate >= 10))
        groups["large"].append(outcome(bars, exact, is_large))
        groups["large_model" if bars.source == "model" else "large_measured"].append(
            outcome(bars, exact, is_large)
        )
        for _ in range(4):
            sides = [rng.permutation(size) < max(1, size // 2) for size in exact.shape]
            box = np.ix_(*sides)
            mask = np.zeros(exact.shape, dtype=bool)
            mask[box] = True
            groups["boxes"].append(outcome(bars.sum(mask), np.array(exact[mask].sum())))
    found = {}
    for group, parts in groups.items():
        held, width, error = np.concatenate([np.zeros((3, 0)), *parts], axis=1)
        means = (held.mean(), width.mean(), error.mean()) if held.size else (np.nan,) * 3
        found |= {f"{group}_{n}": m for n, m in zip(("coverage", "width", "error"), means, strict=True)}
    return found


def outcome(bars: ErrorBars, exact: np.ndarray, where: np.ndarray | None = None) -> np.ndarray:
    """For each count: whether the interval holds it, half the interval's width, the error."""
    interval = bars.interval(0.95)
    if interval is None:
        return np.zeros((3, 0))
    low, high = interval
    rows = np.stack([(low <= exact) & (exact <= high), (high - low) / 2, np.abs(exact - bars.estimate)])
    return rows.reshape(3, -1) if where is None else rows.reshape(3, -1)[:, where.reshape(-1)]


def tell(lines: list[dict[str, str]]) -> None:
    """Coverage, and half width over mean error, by data, mechanism and ε; means over seeds."""
    for name in ORDERS:
        for group in ("all", "ten", "large", "boxes"):
            print(f"\n{name}-way, {group}: coverage (half width / mean error)")
            for data, mechanisms in ASKED.items():
                for mechanism in mechanisms:
                    shown = [_shown(lines, data, mechanism, eps, f"{name}_{group}") for eps in EPSILONS]
                    print(f"  {data:9} {mechanism:9}", *shown)

    print("\nLowest, median and highest coverage over data and ε; median of half width / mean error")
    for mechanism in MECHANISMS:
        for group in ("large", "boxes"):
            shown = [_range(lines, mechanism, f"{name}_{group}") for name in ORDERS]
            print(f"| {mechanism} | {group} |", " | ".join(shown), "|")


def _range(lines: list[dict[str, str]], mechanism: str, key: str) -> str:
    kept = [line for line in lines if line["mechanism"] == mechanism and line[f"{key}_coverage"] != "nan"]
    coverage = [100 * float(line[f"{key}_coverage"]) for line in kept]
    if not coverage:
        return "-"
    wide = np.median([float(line[f"{key}_width"]) / float(line[f"{key}_error"]) for line in kept])
    return f"{min(coverage):.0f}–{np.median(coverage):.0f}–{max(coverage):.0f}% ({wide:.1f})"


def _shown(lines: list[dict[str, str]], data: str, mechanism: str, epsilon: float, key: str) -> str:
    wanted = {"data": data, "mechanism": mechanism, "epsilon": str(epsilon)}
    kept = [line for line in lines if wanted.items() <= line.items()]
    if not kept:
        return f"{'-':>15}"
    coverage, width, error = (
        np.mean([float(line[f"{key}_{part}"]) for line in kept]) for part in ("coverage", "width", "error")
    )
    return f"{coverage:7.3f} ({width / error:5.1f})"


class _Counted:
    """A model's counts on some attribute sets, all asked in one pass."""

    def __init__(self, model: Any, wanted: list[Attrs]) -> None:
        many = getattr(model, "count_many", None)
        self.domain, self.total = model.domain, model.total
        self._counts = dict(zip(wanted, many(wanted) if many else map(model.count, wanted), strict=True))

    def count(self, attrs: Attrs) -> np.ndarray:
        return self._counts[attrs]


@cache
def tables(data: str) -> tuple[Table, Table]:
    """Private and public."""
    return (income("PA"), income("OH")) if data == "acs" else load(data)


@cache
def prior(data: str) -> Prior:
    """APERTURE's public model, fitted once a run of this script."""
    private, public = tables(data)
    recipe = MECHANISMS["aperture"]
    assert isinstance(recipe, Aperture)
    closure = Workload.marginals(private.domain, degree=3).closure(private.domain)
    return recipe.prior(public, private.domain, closure)


if __name__ == "__main__":
    main()
