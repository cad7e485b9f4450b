"""One strong relation among none: what intervals say of it, and of the tables beside it.

    python benchmarks/utility/one_relation.py            prints, and keeps results/one_relation.csv

A made-up table of 11,000 records: eight attributes of 4 to 14 values, all independent but for two, of which
one is a function of the other in nine records of ten. LADDER looks at all pairs before it plans what else to
measure; AIM and MST look before they select, and count neighbouring values together. All two-way
tables, δ = 1e-9, three seeds. A row gives the share of nominal 95% intervals that hold the exact count, over
cells of at least 1% of the records: of tables that were measured, of those left to the model, and of the
related pair; how many tables were left, and whether the pair was; and the pair's error as it was said and as
it is, in shares of the records. The table has one seed, and noise another. Exact counts are used, of nobody.
"""

import csv
import itertools
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np

import sidelight as sl
from experiment import RESULTS, coded_table
from sidelight.data.table import Table
from sidelight.testing import SeededNoise

PATH = RESULTS / "one_relation.csv"
SIZES = {"a": 12, "b": 14, "c": 8, "d": 4, "e": 13, "f": 6, "g": 11, "h": 4}
RELATED = ("e", "f")
RECORDS = 11_000
MECHANISMS = ("ladder", "aim", "mst")
EPSILONS = (0.3, 1.0)
SEEDS = range(3)


def made_up(seed: int = 0) -> Table:
    """Independent attributes, but for one pair."""
    rng = np.random.default_rng(seed)
    columns = {}
    for attr, size in SIZES.items():
        shares = rng.dirichlet(np.full(size, 2.0))
        columns[attr] = rng.choice(size, RECORDS, p=shares)
    one, other = RELATED
    follows = rng.random(RECORDS) < 0.9
    columns[other] = np.where(follows, columns[one] % SIZES[other], columns[other])
    return coded_table(columns, SIZES)


def judged(release: sl.Release, table: Table) -> dict[str, int | float]:
    """What the intervals of measured and of other tables hold, and what is said of the related pair."""
    held: dict[str, list[bool]] = {"measured": [], "left": [], "related": []}
    left = 0
    for attrs in itertools.combinations(SIZES, 2):
        bars, exact = release.error_bars(attrs), np.asarray(table.count(attrs), dtype=np.float64)
        low, high = bars.interval()
        inside = ((low <= exact) & (exact <= high))[exact >= 0.01 * RECORDS].tolist()
        left += bars.source == "model"
        held["left" if bars.source == "model" else "measured"] += inside
        held["related"] += inside if attrs == RELATED else []
    bars = release.error_bars(RELATED)
    actual = np.abs(np.asarray(table.count(RELATED)) - bars.estimate).sum() / RECORDS
    shares = {f"{name}_held": float(np.mean(found)) if found else np.nan for name, found in held.items()}
    said = {"left": left, "related_is_left": bars.source == "model"}
    return said | shares | {"related_said": bars.expected_error, "related_actual": float(actual)}


def main() -> None:
    table, rows = made_up(), []
    for mechanism, epsilon, seed in itertools.product(MECHANISMS, EPSILONS, SEEDS):
        release = sl.release(
            table, schema=sl.Schema.from_domain(SIZES), epsilon=epsilon, delta=1e-9, mechanism=mechanism,
            workload="2-way", noise=SeededNoise(seed), progress=False,
        )  # fmt: skip
        row = {"mechanism": mechanism, "epsilon": epsilon, "seed": seed} | judged(release, table)
        rows.append({key: f"{one:.3g}" if isinstance(one, float) else one for key, one in row.items()})
        print(*(f"{key} {one}" for key, one in rows[-1].items()), flush=True)
    with PATH.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main()
