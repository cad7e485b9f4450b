"""Do intervals hold on made-up tables: measured ones, those left to the model, with and without quality?

    python benchmarks/utility/intervals.py --releases made/          makes what is missing, then the summary
    python benchmarks/utility/intervals.py --releases made/ --again  judges all releases again
    python benchmarks/utility/intervals.py                           the summary alone, from the results

Five made-up laws, 200 to 20,000 records, ε = 0.1, 1 and 10, five seeds, each with its own records:

- ``survey``: six attributes in a short chain of relations, one of which needs three to be seen; all pairs.
- ``odd``: six attributes, all independent but for two, of which one follows from the other in nine records of
  ten; all pairs.
- ``chain``: seven attributes, each of which follows from the one before in six records of ten; all triples.
- ``classes``: six attributes, four kinds of records with shares of their own, so that all pairs are related a
  little; all triples.
- ``star``: seven attributes, of which six follow from the seventh, in one record of ten to nine of ten; all
  pairs. No constant was chosen on it. (200 and 5,000 records alone.)

AIM, MST and LADDER have no public data. APERTURE and JAM have bad ones, 4,000 records of the same law: each
attribute shuffled by itself (``independent``), or the labels of a third of the attributes permuted. δ = 1e-9.
All one-, two- and three-way tables are judged, beyond the workload, too.

A row is of five seeds together. Of tables that were measured, and of those left to the model, fitted to
measured quality (2% of the budget), and by the same release's guess (as ``quality_share=0`` has it), it has:
the number of cells of at least 1% of the records; the share of nominal 95% intervals that hold there, over
all seeds and in the worst seed; the number of tables; and of said over actual errors the median, and the
share of tables where it is from 0.5 to 2. Exact counts are used, of nobody.
"""

import argparse
import csv
import itertools
import sys
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
from coverage import DELTA, fitted
from hostile_tables import permuted

import sidelight as sl
from experiment import RESULTS
from sidelight.data.domain import Domain
from sidelight.data.table import Table
from sidelight.releases.release import Release
from sidelight.testing import SeededNoise
from sidelight.uncertainty.count_errors import CountErrors

PATH = RESULTS / "intervals.csv"
EPSILONS = (0.1, 1.0, 10.0)
RECORDS = (200, 1_000, 5_000, 20_000)
PUBLIC_RECORDS = 4_000
SEEDS = range(5)
RUNS = (
    ("aim", "none"), ("mst", "none"), ("ladder", "none"),
    ("aperture", "independent"), ("aperture", "permuted"), ("jam", "independent"), ("jam", "permuted"),
)  # fmt: skip
WORKLOADS = {"survey": "2-way", "odd": "2-way", "chain": "3-way", "classes": "3-way", "star": "2-way"}


# ---- the laws ---------------------------------------------------------------------------------------


def survey(rng: np.random.Generator, n: int) -> dict[str, tuple[np.ndarray, int]]:
    age, sex = rng.integers(0, 8, n), rng.integers(0, 2, n)
    edu = np.minimum(4, age // 2 + rng.integers(0, 2, n))
    work = np.where(rng.random(n) < 0.6, (age + sex) % 4, rng.integers(0, 4, n))
    ill = (rng.random(n) < 0.1 + 0.08 * age).astype(int) + (rng.random(n) < 0.3)
    kin = np.minimum(5, rng.geometric(0.5 + 0.1 * sex, n) - 1)
    return {
        "age": (age, 8),
        "edu": (edu, 5),
        "sex": (sex, 2),
        "work": (work, 4),
        "ill": (ill, 3),
        "kin": (kin, 6),
    }


def odd(rng: np.random.Generator, n: int) -> dict[str, tuple[np.ndarray, int]]:
    law = np.random.default_rng(7)
    found = {
        attr: (rng.choice(size, n, p=law.dirichlet(np.full(size, 2.0))), size)
        for attr, size in zip("abcdef", (6, 8, 4, 5, 7, 3), strict=True)
    }
    (one, _), (other, size) = found["b"], found["e"]
    return found | {"e": (np.where(rng.random(n) < 0.9, one % size, other), size)}


def chain(rng: np.random.Generator, n: int) -> dict[str, tuple[np.ndarray, int]]:
    law, found, last = np.random.default_rng(8), {}, np.zeros(n, dtype=int)
    for attr, size in zip("abcdefg", (6, 5, 4, 6, 3, 5, 4), strict=True):
        follows, shares = law.integers(0, size, 8), law.dirichlet(np.full(size, 2.0))
        last = np.where(rng.random(n) < 0.6, follows[last], rng.choice(size, n, p=shares))
        found[attr] = last, size
    return found


def classes(rng: np.random.Generator, n: int) -> dict[str, tuple[np.ndarray, int]]:
    law, kind = np.random.default_rng(9), rng.integers(0, 4, n)
    found = {}
    for attr, size in zip("abcdef", (5, 4, 6, 2, 7, 3), strict=True):
        shares = law.dirichlet(np.full(size, 1.5), 4).cumsum(axis=1)
        found[attr] = (np.minimum((rng.random(n)[:, None] > shares[kind]).sum(axis=1), size - 1), size)
    return found


def star(rng: np.random.Generator, n: int) -> dict[str, tuple[np.ndarray, int]]:
    law, middle = np.random.default_rng(10), rng.integers(0, 6, n)
    found = {"m": (middle, 6)}
    for attr, size, strength in zip(
        "abcdef", (4, 7, 3, 8, 5, 2), (0.1, 0.2, 0.3, 0.5, 0.7, 0.9), strict=True
    ):
        follows, shares = law.integers(0, size, 6), law.dirichlet(np.full(size, 2.0))
        other = rng.choice(size, n, p=shares)
        found[attr] = (np.where(rng.random(n) < strength, follows[middle], other), size)
    return found


LAWS = {"survey": survey, "odd": odd, "chain": chain, "classes": classes, "star": star}


def drawn(law: str, n: int, seed: list[int]) -> Table:
    found = LAWS[law](np.random.default_rng(seed), n)
    return Table.of_codes(
        Domain.of({k: size for k, (_, size) in found.items()}),
        np.stack([codes for codes, _ in found.values()], axis=1),
    )


@cache
def tables(law: str, records: int, public: str, seed: int) -> tuple[Table, Table | None]:
    """Private and public."""
    private = drawn(law, records, [seed, records])
    if public == "none":
        return private, None
    good, rng = drawn(law, PUBLIC_RECORDS, [seed, 1]), np.random.default_rng([seed, 2])
    if public == "independent":
        return private, Table.of_codes(good.domain, rng.permuted(good.codes(), axis=0))
    third = rng.choice(good.domain.attrs, -(-len(good.domain.attrs) // 3), replace=False).tolist()
    return private, permuted(good, third, rng)


# ---- releases, and what their intervals hold --------------------------------------------------------


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--releases", type=Path, help="folder of releases; without one, only the summary")
    parser.add_argument("--laws", nargs="+", choices=list(LAWS), default=list(LAWS))
    parser.add_argument("--mechanisms", nargs="+", default=list(dict.fromkeys(name for name, _ in RUNS)))
    parser.add_argument("--again", action="store_true", help="judge releases again that were judged before")
    parser.add_argument("--minutes", type=float, default=9.0, help="begin no further cell after these")
    asked = parser.parse_args()
    rows = _read()
    stop = time.monotonic() + 60 * asked.minutes
    for cell in cells(asked.laws, asked.mechanisms) if asked.releases is not None else ():
        if time.monotonic() > stop:
            break
        if asked.again or key(cell) not in rows:
            rows[key(cell)] = cell | judged(cell, asked.releases)
            _write(rows)
    tell(list(rows.values()))


def cells(laws: list[str], mechanisms: list[str]) -> Iterator[dict[str, Any]]:
    for law, records, epsilon, (mechanism, public) in itertools.product(laws, RECORDS, EPSILONS, RUNS):
        if mechanism in mechanisms and (law != "star" or records in (200, 5_000)):
            yield {
                "law": law,
                "mechanism": mechanism,
                "public": public,
                "records": records,
                "epsilon": epsilon,
            }


def made_or_kept(cell: dict[str, Any], seed: int, folder: Path) -> Release:
    path = folder / "_".join(map(str, (*cell.values(), seed)))
    if not (path / "release.json").exists():
        private, public = tables(cell["law"], cell["records"], cell["public"], seed)
        made = sl.release(
            private, schema=sl.Schema.from_domain(private.domain), public=public, epsilon=cell["epsilon"],
            delta=DELTA, mechanism=cell["mechanism"], workload=WORKLOADS[cell["law"]],
            noise=SeededNoise(seed), progress=False,
        )  # fmt: skip
        made.save(path)
    return Release.load(path)


CLASSES = [
    f"{degree}_{where}_{how}"
    for degree, where, how in itertools.product((1, 2, 3), ("measured", "left"), ("fitted", "guess"))
]


def judged(cell: dict[str, Any], folder: Path) -> dict[str, Any]:
    """What intervals hold, over all seeds, by degree, by what was measured, and by whether quality was."""
    held: dict[str, list[list[bool]]] = {name: [] for name in CLASSES}
    ratios: dict[str, list[float]] = {name: [] for name in CLASSES}
    for seed in SEEDS:
        release = made_or_kept(cell, seed, folder)
        private, _ = tables(cell["law"], cell["records"], cell["public"], seed)
        told = release.model, release.measurements, release.card.model_error
        errors = {"fitted": fitted(release), "guess": CountErrors(*told, total_is_public=True)}
        for name in CLASSES:
            held[name].append([])
        for degree, (how, one) in itertools.product((1, 2, 3), errors.items()):
            for attrs in itertools.combinations(private.domain.attrs, degree):
                bars, exact = one.bars(attrs), np.asarray(private.count(attrs), dtype=np.float64)
                interval = bars.interval(0.95)
                if interval is None or bars.expected_error is None:
                    continue
                where = "left" if bars.source in ("model", "unmeasured") else "measured"
                inside = (interval[0] <= exact) & (exact <= interval[1])
                held[f"{degree}_{where}_{how}"][-1] += inside[exact >= 0.01 * private.records].tolist()
                actual = float(np.abs(exact - bars.estimate).sum()) / private.records
                ratios[f"{degree}_{where}_{how}"].append(bars.expected_error / max(actual, 1e-9))
    found: dict[str, Any] = {}
    for name in CLASSES:
        ratio, inside = np.array(ratios[name]), [np.mean(one) for one in held[name] if one]
        found |= {
            f"{name}_cells": sum(map(len, held[name])),
            f"{name}_held": np.mean(list(itertools.chain.from_iterable(held[name]))) if inside else np.nan,
            f"{name}_worst": min(inside, default=np.nan),
            f"{name}_tables": ratio.size,
            f"{name}_median": np.median(ratio) if ratio.size else np.nan,
            f"{name}_within": np.mean((ratio > 0.5) & (ratio < 2)) if ratio.size else np.nan,
        }
    return found


def tell(rows: list[dict[str, Any]]) -> None:
    """The summary, for every mechanism and public table, by ε."""
    for laws, how in itertools.product((list(LAWS), ["star"]), ("fitted", "guess")):
        print(f"\n{', '.join(laws)}; {how}; intervals that hold, tables within 0.5 to 2:")
        print("one-, two-, three-way, each measured and left to the model")
        for (mechanism, public), epsilon in itertools.product(RUNS, EPSILONS):
            wanted = (mechanism, public, epsilon)
            some = [row for row in rows if row["law"] in laws and _run(row) == wanted]
            if some:
                shown = [_summed(some, name) for name in CLASSES if name.endswith(how)]
                print(f"| {mechanism}, {public}, {epsilon:g} |", " | ".join(shown), "|")


def _run(row: dict[str, Any]) -> tuple[str, str, float]:
    return row["mechanism"], row["public"], float(row["epsilon"])


def _summed(rows: list[dict[str, Any]], name: str) -> str:
    def pooled(what: str, weight: str) -> str:
        values, weights = (np.array([float(row[f"{name}_{w}"]) for row in rows]) for w in (what, weight))
        known = weights > 0
        return f"{100 * np.average(values[known], weights=weights[known]):.0f}%" if known.any() else "–"

    return f"{pooled('held', 'cells')} {pooled('within', 'tables')}"


def key(cell: dict[str, Any]) -> tuple[str, ...]:
    return tuple(str(cell[name]) for name in ("law", "mechanism", "public", "records", "epsilon"))


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
            short = {k: f"{v:.3g}" for k, v in row.items() if isinstance(v, float) and k != "epsilon"}
            writer.writerow(row | short)


if __name__ == "__main__":
    main()
