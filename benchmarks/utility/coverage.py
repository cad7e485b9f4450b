"""Do error bars fit? Intervals of nominally 95% against exact counts, expected errors against actual ones.

    python benchmarks/utility/coverage.py --releases made/          makes what is missing, then the summary
    python benchmarks/utility/coverage.py --releases made/ --data titanic --mechanisms aim mst
    python benchmarks/utility/coverage.py --releases made/ --again  judges all releases again
    python benchmarks/utility/coverage.py                           the summary alone, from the results

Every mechanism on ten tables, one seed each; ε = 0.1, 1 and 10 in turns from table to table and from
mechanism to mechanism. Three seeds and all three ε on the two smallest tables, and of MST and AIM on the
three tables that were not looked at. All three-way marginals, δ = 1e-9, models of 5 MB at most.
No constant of error bars was chosen on TAXI, Georgia (public: California) and NIST's Texas. (Two releases of
Georgia, MWEM's and LADDER's, were looked at before intervals were made to reach further up.)

Releases are made through the front door, with 2% of the budget for measured quality, and are kept in a
folder. Error bars are fitted again from what a release tells, so a change of theirs needs no new releases. A
release that is in the folder, and a row that is in ``results/coverage.csv``, are never repeated. Of each
release all one-way marginals are judged, and 40 of the two- and of the three-way ones, drawn with its seed.

A row gives, by degree: the share of intervals that hold the exact count, over cells of at least 1% of the
records; half an interval's mean width over the mean error; and said over actual error of a marginal
(Σ|exact − released| / n): its median, its quantiles, and the share of marginals where it is from 0.5 to 2,
of all and of those with 8 cells or more. (The error of a table of two cells is one number. Even where its
expectation is known exactly, it is between half and twice that in 58% of draws. So the row has the share that
could be reached, too: that of tables whose errors are drawn by the very law that is said of them.) Exact
counts are used: the figures are PRIVATE.
"""

import argparse
import csv
import sys
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
from pairs import load

import sidelight as sl
from experiment import RESULTS, coded_table, columns, described
from sidelight.cli.demo import survey
from sidelight.data.table import Table
from sidelight.errors import SettingError
from sidelight.mean_errors import MeanErrors, NoisyMeans
from sidelight.privacy.budget import Rho
from sidelight.releases.release import Release
from sidelight.testing import SeededNoise
from sidelight.uncertainty.calibration import calibrated
from sidelight.uncertainty.chance import Chance
from sidelight.uncertainty.count_errors import CountErrors
from sidelight.uncertainty.error_bars import ErrorBars
from tables import income

PATH = RESULTS / "coverage.csv"
DELTA = 1e-9
EPSILONS = (0.1, 1.0, 10.0)
SAMPLED = 40
"""Marginals of two and of three attributes that are judged, each."""
DRAWS = 100
"""Of a table's errors, by the law that is said of them."""
SMALL = ("titanic", "czech", "demo")
SEEN = (*SMALL, "nist-ma-national", "acs", "adult025", "salary")
UNSEEN = ("nist-tx-national", "acs-ga", "taxi")
SETTINGS: dict[str, dict[str, Any]] = {
    "aperture": {"max_model_mb": 5, "oversized": "skip"},
    "aim": {"max_model_mb": 5, "oversized": "skip"},
    "jam": {"max_model_mb": 5, "oversized": "skip"},
    "mst": {"max_model_mb": 5, "oversized": "skip"},
    "mwem": {},
    "mwem-pub": {},
    "pmw-pub": {},
    "hdmm": {},
    "dualquery": {"max_rounds": 60, "oracle_nodes": 1},
    "barak": {},
    "ladder": {},
}
ALONE = ("aim", "mst", "mwem", "hdmm", "dualquery", "barak", "ladder")
"""Mechanisms without public data."""
OFTEN = ("aim", "mst")
"""Mechanisms with three seeds and all ε on tables that were not looked at."""
LEFT_OUT = {
    # What would take minutes each, or what the mechanism refuses.
    "czech": ("aperture", "jam", "mwem-pub", "pmw-pub", "dualquery"),
    "titanic": ("barak",),
    "demo": ("barak",),
    "nist-ma-national": ("barak", "dualquery", "hdmm"),
    "nist-tx-national": ("barak", "dualquery", "hdmm"),
    "acs": ("barak", "dualquery"),
    "acs-ga": ("barak", "dualquery"),
    "adult025": ("barak", "dualquery", "hdmm"),
    "salary": ("barak", "dualquery", "hdmm"),
    "taxi": ("barak", "dualquery", "hdmm"),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--releases", type=Path, help="folder of releases; without one, only the summary")
    parser.add_argument("--data", nargs="+", choices=SEEN + UNSEEN, default=SEEN + UNSEEN)
    parser.add_argument("--mechanisms", nargs="+", choices=list(SETTINGS), default=list(SETTINGS))
    parser.add_argument("--again", action="store_true", help="judge releases again that were judged before")
    parser.add_argument("--minutes", type=float, default=13.0, help="start no further release after these")
    asked = parser.parse_args()

    rows = _read()
    if asked.releases is not None:
        stop = time.monotonic() + 60 * asked.minutes
        for cell in cells(asked.data, asked.mechanisms):
            if time.monotonic() > stop:
                break
            if asked.again or key(cell) not in rows:
                try:
                    made = made_or_kept(cell, asked.releases)
                except SettingError as refused:
                    print(*cell.values(), f"refused: {refused}", flush=True)
                    continue
                rows[key(cell)] = cell | judged(made, tables(cell["data"])[0], seed=cell["seed"])
                _write(rows)
                print(*cell.values(), flush=True)
    tell(list(rows.values()))


def cells(data: Any, mechanisms: Any) -> Iterator[dict[str, Any]]:
    """All that was asked for, the small tables first."""
    for row, name in enumerate(SEEN + UNSEEN):
        for column, mechanism in enumerate(SETTINGS):
            if name in data and mechanism in mechanisms and mechanism not in LEFT_OUT[name]:
                is_often = name in SMALL[:2] or (name in UNSEEN and mechanism in OFTEN)
                for epsilon in EPSILONS if is_often else (EPSILONS[(row + column) % 3],):
                    for seed in range(3 if is_often else 1):
                        yield {"data": name, "mechanism": mechanism, "epsilon": epsilon, "seed": seed}


def made_or_kept(cell: dict[str, Any], folder: Path) -> Release:
    """The release of a cell, from the folder or made anew."""
    path = folder / "_".join(map(str, cell.values()))
    if not (path / "release.json").exists():
        private, public = tables(cell["data"])
        mechanism = cell["mechanism"]
        schema = private.schema or sl.Schema.from_domain(private.domain)
        made = sl.release(
            private, schema=schema, public=None if mechanism in ALONE else public,
            epsilon=cell["epsilon"], delta=DELTA, mechanism=mechanism, workload="3-way",
            noise=SeededNoise(cell["seed"]), progress=False, **SETTINGS[mechanism],
        )  # fmt: skip
        made.save(path)
    return sl.Release.load(path)


def fitted(release: Release) -> CountErrors:
    """The release's error bars, fitted to its measured quality by today's rule."""
    model, card, quality = release.model, release.card, release.quality
    assert quality is not None
    asked = MeanErrors.of(card.workload.attribute_sets, model.domain, Rho)
    assert asked is not None
    by_degree: dict[str, Any] = dict(quality.degrees)
    means = [
        by_degree[f"{part.name}-way"] if part.kind == "degree" else quality.attributes[part.name]
        for part in asked.sets
    ]
    measured = NoisyMeans(
        tuple(one.error * model.total for one in means),
        tuple(one.standard_error * model.total for one in means),
    )
    told = model, release.measurements, card.model_error
    public = card.unit.total_is_public
    guess = CountErrors(*told, total_is_public=public, chance=chance_of(release))
    calibration = calibrated(guess.parts, asked, measured, model.domain, model.total)
    return CountErrors(*told, calibration, total_is_public=public)


def chance_of(release: Release) -> Chance | None:
    """How far public data are off by chance, where the number of records is public."""
    model, card = release.model, release.card
    if card.public is None or card.model_error is None:
        return None
    about = card.model_error.told_by_public or ()
    records = {attr: number for attr, number in card.public.columns.items() if attr in about}
    return Chance(model.domain, model.total, release.measurements, records)


def judged(release: Release, private: Table, *, seed: int) -> dict[str, Any]:
    """Coverage, widths, and said over actual errors, by degree."""
    rng = np.random.default_rng(seed)
    found: dict[str, Any] = {"records": private.records}
    errors = fitted(release)
    for degree in (1, 2, 3):
        wanted = list(sl.Workload.marginals(private.domain, degree=degree).attribute_sets)
        if degree > 1 and len(wanted) > SAMPLED:
            wanted = [wanted[place] for place in rng.choice(len(wanted), SAMPLED, replace=False)]
        held = [np.zeros((3, 0))]
        said, actual, cells, reachable = [], [], [], []
        for attrs in wanted:
            bars, exact = errors.bars(attrs), np.asarray(private.count(attrs), dtype=np.float64)
            interval = bars.interval(0.95)
            if interval is None:
                continue
            low, high = interval
            said.append(bars.expected_error)
            actual.append(float(np.abs(exact - bars.estimate).sum()) / private.records)
            cells.append(exact.size)
            reachable.append(within_if_so(bars, rng))
            rows = np.stack(
                [(low <= exact) & (exact <= high), (high - low) / 2, np.abs(exact - bars.estimate)]
            )
            held.append(rows[:, exact >= 0.01 * private.records])
        cover, width, error = np.concatenate(held, axis=1)
        ratio = np.array(said) / np.maximum(actual, 1e-9)
        wide = ratio[np.array(cells, dtype=int) >= 8]
        found |= {
            f"{degree}_cells": cover.size,
            f"{degree}_held": _mean(cover),
            f"{degree}_width": _mean(width) / max(_mean(error), 1e-9),
            f"{degree}_actual": _mean(np.array(actual)),
            f"{degree}_marginals": ratio.size,
            f"{degree}_median": np.median(ratio) if ratio.size else np.nan,
            f"{degree}_low": np.quantile(ratio, 0.05) if ratio.size else np.nan,
            f"{degree}_high": np.quantile(ratio, 0.95) if ratio.size else np.nan,
            f"{degree}_within": _mean((ratio > 0.5) & (ratio < 2)),
            f"{degree}_reachable": _mean(np.array(reachable)),
            f"{degree}_wide_marginals": wide.size,
            f"{degree}_wide_within": _mean((wide > 0.5) & (wide < 2)),
        }
    return found


def within_if_so(bars: ErrorBars, rng: np.random.Generator) -> float:
    """The chance that said is within half and twice the actual error, if errors are as said, and sum to 0."""
    variance = np.asarray(bars.standard_error, dtype=np.float64).reshape(-1) ** 2
    drawn = rng.standard_normal((DRAWS, variance.size)) * np.sqrt(variance)
    drawn -= drawn.sum(axis=1, keepdims=True) * variance / max(variance.sum(), 1e-300)
    actual = np.abs(drawn).sum(axis=1)
    return float(((actual > actual.mean() / 2) & (actual < 2 * actual.mean())).mean())


def _mean(values: np.ndarray) -> float:
    return float(values.mean()) if values.size else np.nan


def tell(rows: list[dict[str, Any]]) -> None:
    """The summary: for every mechanism, over its releases."""
    for name, kept in (("all tables", SEEN + UNSEEN), ("tables not looked at", UNSEEN)):
        made = [row for row in rows if row["data"] in kept]
        mine = [row for row in made if float(row["3_cells"])]
        print(
            f"\n{name}, {len(mine)} releases; one-, two-, three-way: intervals that hold; median of said over"
        )
        print(
            "actual error; share of tables within 0.5 to 2 (the share that could be reached), and of those "
            "with 8 cells or more"
        )
        for mechanism in (*SETTINGS, "all"):
            some = [row for row in mine if mechanism in (row["mechanism"], "all")]
            if some:
                print(f"| {mechanism}, {len(some)} |", " | ".join(_summed(some, d) for d in (1, 2, 3)), "|")
        print(f"{len(made) - len(mine)} more releases have no intervals")


def _summed(rows: list[dict[str, Any]], degree: int) -> str:
    def pooled(what: str, weight: str) -> float:
        values, weights = (np.array([float(row[f"{degree}_{w}"]) for row in rows]) for w in (what, weight))
        known = np.isfinite(values) & (weights > 0)
        return 100 * float(np.average(values[known], weights=weights[known])) if known.any() else np.nan

    medians = np.array([float(row[f"{degree}_median"]) for row in rows])
    within, reachable = pooled("within", "marginals"), pooled("reachable", "marginals")
    return (
        f"{pooled('held', 'cells'):.0f}%; {np.nanmedian(medians):.2f}; "
        f"{within:.0f}% ({reachable:.0f}%), {pooled('wide_within', 'wide_marginals'):.0f}%"
    )


def key(cell: dict[str, Any]) -> tuple[str, ...]:
    return tuple(str(cell[name]) for name in ("data", "mechanism", "epsilon", "seed"))


def _read() -> dict[tuple[str, ...], dict[str, Any]]:
    if not PATH.exists():
        return {}
    with PATH.open(newline="", encoding="utf-8") as file:
        return {key(row): dict(row) for row in csv.DictReader(file)}


def _write(rows: dict[tuple[str, ...], dict[str, Any]]) -> None:
    with PATH.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, fieldnames=list(next(reversed(rows.values()))))
        writer.writeheader()
        for row in rows.values():
            short = {k: f"{v:.4g}" for k, v in row.items() if isinstance(v, float) and k != "epsilon"}
            writer.writerow(row | short)


@cache
def tables(data: str) -> tuple[Table, Table | None]:
    """Private and public."""
    if data.startswith("acs"):
        return (income("GA"), income("CA")) if data == "acs-ga" else (income("PA"), income("OH"))
    if data == "demo":
        private, public, schema = survey()
        return Table.read(private, schema), Table.read(public, schema)
    if data == "czech":
        codes = columns("czech_autoworkers")
        return coded_table(codes, dict.fromkeys(described("czech_autoworkers"), 2)), None
    return load(data)


if __name__ == "__main__":
    main()
