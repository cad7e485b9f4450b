"""Tables of few values whose relations are strong: does planned noise find them?

    python benchmarks/utility/strong_relations.py                     all that is missing
    python benchmarks/utility/strong_relations.py --only ladder --seeds 3
    python benchmarks/utility/strong_relations.py --again ladder      these mechanisms anew
    python benchmarks/utility/strong_relations.py --table             prints what is kept, in Markdown

Made-up tables of 7 to 12 attributes of 2 to 16 values, whose relations are known: two equal columns among
independent ones, a chain of copies, a survey, nothing but independent columns, and three columns of which no
pair is related. KEPT_OUT, a nested classification, classes of people, and a tree of random tables, did not
decide about LADDER's look (docs/papers/ladder.md says what was seen of them). All two-way or all three-way
marginals at δ = 1e-9; one record is replaced, and n is public. The error is the mean of ‖q(D) − q(A)‖₁/n. A
table has one seed for each n, and noise has another.

Rows of ``ladder-before`` are of the version that planned all noise beforehand, without a look; they are kept
to be compared with, and cannot be made again by this script. ``--table`` compares errors with those of
APERTURE or AIM, whichever is closer on a row: the geometric mean of the ratios, and in brackets the largest.
"""

import argparse
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
from numpy.typing import NDArray

from experiment import RESULTS, coded_table, curator_of, mean_and_error
from resumable import drop, read, run_cells
from sidelight.data.table import Table
from sidelight.evaluation.workload_errors import workload_error
from sidelight.mechanisms.registry import mechanism_of
from sidelight.privacy.budget import Budget
from sidelight.queries.workload import Workload

PATH = RESULTS / "strong_relations.csv"
MECHANISMS = ("ladder", "aperture", "aim", "mst")
POINTS = ((500, 1.0), (500, 3.0), (2_000, 0.3), (2_000, 1.0), (2_000, 3.0), (5_000, 0.1), (5_000, 0.3),
          (5_000, 1.0), (20_000, 0.1), (20_000, 1.0))  # fmt: skip
"""n and ε."""
Codes = dict[str, NDArray[Any]]
Draw = np.random.Generator


def _shares(draw: Draw, values: int) -> NDArray[np.float64]:
    return draw.dirichlet(np.full(values, 2.0))


def _independent(draw: Draw, records: int, sizes: tuple[int, ...]) -> Codes:
    return {
        f"x{place}": draw.choice(values, records, p=_shares(draw, values))
        for place, values in enumerate(sizes)
    }


def _given(draw: Draw, by: NDArray[Any], values: int, evenness: float) -> NDArray[Any]:
    """A column drawn from a random table of chances, by another."""
    chances = draw.dirichlet(np.full(values, evenness), int(by.max()) + 1).cumsum(axis=1)
    drawn = (draw.random(by.size)[:, None] > chances[by]).sum(axis=1)
    return np.minimum(drawn, values - 1)


def independent(draw: Draw, records: int) -> Codes:
    """Eight columns that have nothing to do with each other."""
    return _independent(draw, records, (8, 4, 6, 5, 3, 7, 2, 4))


def equal(draw: Draw, records: int) -> Codes:
    """Two equal columns among independent ones."""
    found = _independent(draw, records, (8, 4, 6, 5, 3, 7, 2, 4))
    return found | {"x7": found["x0"]}


def chain(draw: Draw, records: int) -> Codes:
    """Each column copies the one before in nine records of ten."""
    found = {"x0": draw.choice(5, records, p=_shares(draw, 5))}
    for place in range(1, 8):
        afresh = draw.choice(5, records, p=_shares(draw, 5))
        found[f"x{place}"] = np.where(draw.random(records) < 0.9, found[f"x{place - 1}"], afresh)
    return found


def survey(draw: Draw, records: int) -> Codes:
    """Ages decide about work, schooling and households, work and schooling about incomes."""
    age = draw.choice(8, records, p=(0.16, 0.14, 0.13, 0.13, 0.14, 0.13, 0.1, 0.07))
    retired = draw.random(records) < np.array([0, 0, 0, 0, 0.02, 0.15, 0.85, 0.98])[age]
    student = draw.random(records) < np.array([0.7, 0.15, 0.03, 0, 0, 0, 0, 0])[age]
    employed = draw.choice(3, records, p=(0.72, 0.12, 0.16))
    work = np.where(retired, 4, np.where(student, 3, employed))
    schooling = np.minimum(draw.binomial(4, np.array([0.3, 0.6, 0.6, 0.55, 0.5, 0.45, 0.4, 0.35])[age]), 4)
    level = np.array([2.2, 2.6, 0.6, 0.4, 1.4])[work] + 0.6 * schooling
    income = np.clip(np.round(level + draw.normal(0, 0.7, records)), 0, 5).astype(int)
    alone = np.array([0.3, 0.3, 0.2, 0.15, 0.2, 0.3, 0.4, 0.6])[age]
    household = np.where(draw.random(records) < alone, 0, 1 + draw.binomial(3, 0.4, records))
    return {
        "age": age, "work": work, "schooling": schooling, "income": income, "household": household,
        "sex": draw.integers(0, 2, records), "region": draw.choice(7, records, p=_shares(draw, 7)),
        "health": np.clip(draw.binomial(4, 0.15 + 0.07 * age), 0, 4),
    }  # fmt: skip


def triple(draw: Draw, records: int) -> Codes:
    """One column is the sum of two others, modulo 4; no pair is related."""
    found = _independent(draw, records, (4, 4, 4, 5, 3, 6, 2))
    even = {f"x{place}": draw.integers(0, 4, records) for place in range(2)}
    return found | even | {"x2": (even["x0"] + even["x1"]) % 4}


def nested(draw: Draw, records: int) -> Codes:
    """A place of 16, its county of 8, its state of 3, and what depends on the state alone."""
    found = _independent(draw, records, (16, 8, 3, 6, 5, 4, 2, 3))
    found["x1"] = found["x0"] // 2
    found["x2"] = np.minimum(found["x1"] // 3, 2)
    return found | {"x3": _given(draw, found["x2"], 6, 0.5)}


def classes(draw: Draw, records: int) -> Codes:
    """Twelve columns of 2 to 4 values, each decided by which of four classes a person is in."""
    of = draw.choice(4, records, p=(0.4, 0.3, 0.2, 0.1))
    return {f"x{place}": _given(draw, of, 2 + place % 3, 0.4) for place in range(12)}


def tree(draw: Draw, records: int) -> Codes:
    """Nine columns, each drawn from a random table of chances, by one of those before."""
    sizes = (6, 4, 8, 3, 5, 2, 10, 4, 6)
    found = [draw.choice(sizes[0], records, p=_shares(draw, sizes[0]))]
    for values in sizes[1:]:
        found.append(_given(draw, found[draw.integers(len(found))], values, 0.4))
    return {f"x{place}": codes for place, codes in enumerate(found)}


TABLES: dict[str, Callable[[Draw, int], Codes]] = {
    made.__name__: made for made in (independent, equal, chain, survey, triple, nested, classes, tree)
}
KEPT_OUT = ("nested", "classes", "tree")


@cache
def table_of(name: str, records: int) -> Table:
    """The table of this name and so many records; its relations are the same for every n."""
    codes = TABLES[name](np.random.default_rng(7), records)
    sizes = {attr: int(column.max()) + 1 for attr, column in codes.items()}
    return coded_table(codes, sizes)


def measure(
    data: str, records: int, degree: int, epsilon: float, mechanism: str, seed: int
) -> dict[str, float]:
    table = table_of(data, records)
    workload, recipe = Workload.marginals(table.domain, degree=degree), mechanism_of(mechanism, {})
    curator = curator_of(table, recipe.allotment(Budget(epsilon=epsilon, delta=1e-9)), seed=seed)
    release = recipe.run(curator, workload)
    return {"error": workload_error(table, release, workload, total=records)}


def cells(asked: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """What is to be run; all of one seed before the next."""
    for seed in range(asked.seeds):
        for data in asked.data:
            for records, epsilon in POINTS:
                for degree in asked.degree:
                    for mechanism in asked.only:
                        yield {
                            "data": data, "records": records, "degree": degree, "epsilon": epsilon,
                            "mechanism": mechanism, "seed": seed,
                        }  # fmt: skip


def ratios(name: str, data: str, degree: int) -> list[float]:
    """The error of a mechanism at every n and ε, over that of the closer of APERTURE and AIM."""
    errors: dict[tuple[str, str, str], list[float]] = {}
    for line in read(PATH):
        if (line["data"], line["degree"]) == (data, str(degree)):
            key = line["records"], line["epsilon"], line["mechanism"]
            errors.setdefault(key, []).append(float(line["error"]))
    means = {key: mean_and_error(values)[0] for key, values in errors.items()}
    return [
        means[n, epsilon, name] / min(means[n, epsilon, other] for other in ("aperture", "aim"))
        for n, epsilon, mechanism in means
        if mechanism == name
    ]


def print_table() -> None:
    """How far LADDER, as it was and as it is, and MST are from the closer of APERTURE and AIM."""
    names = ("ladder-before", "ladder", "mst")
    print(f"| | {' | '.join(f'{name}, {degree}-way' for degree in (3, 2) for name in names)} |")
    print("|---" * 7 + "|")
    for data in TABLES:
        found = [ratios(name, data, degree) for degree in (3, 2) for name in names]
        told = [f"{np.exp(np.mean(np.log(one))):.2f} ({max(one):.2f})" for one in found]
        print(f"| {data}{', kept out' if data in KEPT_OUT else ''} | {' | '.join(told)} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", choices=TABLES, nargs="*", default=list(TABLES))
    parser.add_argument("--degree", type=int, choices=(2, 3), nargs="*", default=[3, 2])
    parser.add_argument("--only", nargs="*", default=MECHANISMS, help="these mechanisms alone")
    parser.add_argument("--again", nargs="*", default=[], help="mechanisms to be run anew")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--table", action="store_true", help="print what is kept, and run nothing")
    asked = parser.parse_args()
    if asked.table:
        print_table()
        return
    wanted = list(cells(asked))
    if asked.again:
        drop(PATH, [cell for cell in wanted if cell["mechanism"] in asked.again])
    run_cells(PATH, wanted, measure)


if __name__ == "__main__":
    main()
