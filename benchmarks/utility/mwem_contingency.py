"""Contingency tables by relative entropy: MWEM, with and without a noisy start, against Barak et al.

    OMP_NUM_THREADS=1 python benchmarks/utility/mwem_contingency.py [small] [large]

After section 4.2 of Hardt, Ligett and McSherry. Small tables: mildew (n = 70), rochdale (665), czech
(1,841), all three-way marginals, 100 runs. Large table: in place of NLTCS, whose data may not be kept, 16
attributes of the Massachusetts ACS of 2018 (n = 70,131), each made binary by one public threshold (below);
two-way and three-way marginals, T in {20, 30, 40}, 10 runs. All noise is Laplace and counted in pure ε, for
the replacement of one record. T is fixed beforehand; ε is no smaller than where noise would drown the
counts.
"""

import csv
import sys
import time
from pathlib import Path

import numpy as np
from scipy.stats import entropy

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from experiment import FIGURES, RESULTS, coded_table, columns, curator_of, described, summarise, write_rows
from plot import line_plot
from sidelight.data.table import Table
from sidelight.errors import SettingError
from sidelight.mechanisms.barak import Barak
from sidelight.mechanisms.base import Mechanism
from sidelight.mechanisms.mwem import MWEM
from sidelight.privacy.budget import Epsilon
from sidelight.privacy.unit import Unit
from sidelight.queries.workload import Workload

# Attribute of the ACS, and the codes that count as 1: one public threshold each, from the Census code book.
BINARY = {
    "AGEP": lambda v: v >= 40,
    "SCHL": lambda v: v >= 21,  # bachelor's degree or more
    "MAR": lambda v: v == 1,  # married
    "RELP": lambda v: v <= 1,  # reference person or spouse
    "DIS": lambda v: v == 1,
    "ESP": lambda v: v >= 1,  # in universe
    "CIT": lambda v: v >= 4,  # naturalised, or not a citizen
    "MIG": lambda v: v == 1,  # same house as a year ago
    "MIL": lambda v: (v >= 1) & (v <= 3),  # ever on active duty
    "ANC": lambda v: v <= 2,
    "DEAR": lambda v: v == 1,
    "DEYE": lambda v: v == 1,
    "DREM": lambda v: v == 1,
    "SEX": lambda v: v == 2,
    "RAC1P": lambda v: v == 1,
    "EMPLOYED": lambda v: v == 1,
}
SMALL = {
    "mildew": ("mildew", 4, (0.5, 1.0, 2.0, 4.0)),
    "rochdale": ("rochdale", 6, (0.25, 0.5, 1.0, 2.0)),
    "czech": ("czech_autoworkers", 8, (0.1, 0.25, 0.5, 1.0, 2.0)),
}
LARGE_EPSILONS = {2: (0.02, 0.05, 0.1, 0.3, 1.0), 3: (0.1, 0.3, 1.0)}
SMALL_RUNS, LARGE_RUNS = 100, 10


def small_table(file: str) -> Table:
    sizes = {name: about["size"] for name, about in described(file).items()}
    return coded_table(columns(file, list(sizes)), sizes)


def large_table() -> Table:
    acs = columns("acs_employment_ma_2015_2018", [*BINARY, "YEAR"])
    of_2018 = acs["YEAR"] == 2018
    codes = {name: is_one(acs[name][of_2018]).astype(np.uint8) for name, is_one in BINARY.items()}
    return coded_table(codes, dict.fromkeys(BINARY, 2))


def run(table: Table, name: str, mechanism: Mechanism, workload: Workload, epsilon: float, seed: int) -> dict:
    curator = curator_of(table, Epsilon(epsilon), seed=seed)
    release = mechanism.run(curator, workload)
    attrs = table.domain.attrs
    return {
        "mechanism": name,
        "epsilon": epsilon,
        "seed": seed,
        "relative_entropy": float(entropy(table.count(attrs), release.count(attrs), axis=None)),
    }


def small_mechanisms(rounds: int) -> dict[str, Mechanism]:
    """MWEM replays 30 passes in each round, so Barak is shown with as many, and with five times as many."""
    paper = {"accounting": "pure", "select_share": 0.5, "passes": 30}
    return {
        f"MWEM, T={rounds}": MWEM(rounds=rounds, **paper),
        f"MWEM, T={rounds}, noisy start": MWEM(rounds=rounds, histogram_share=0.5, **paper),
        "Barak, 30 passes": Barak(accounting="pure", passes=30),
        "Barak, 150 passes": Barak(accounting="pure", passes=150),
    }


def large_mechanisms(degree: int) -> dict[str, Mechanism]:
    """The same with 10 and 100 passes; for MWEM, 100 a round are shown on two-way marginals alone."""
    mwem = {"accounting": "pure", "select_share": 0.5}
    found: dict[str, Mechanism] = {f"MWEM, T={T}": MWEM(rounds=T, passes=10, **mwem) for T in (20, 30, 40)}
    if degree == 2:
        found["MWEM, T=40, 100 passes"] = MWEM(rounds=40, passes=100, **mwem)
    found["Barak, 10 passes"] = Barak(accounting="pure", passes=10)
    found["Barak, 100 passes"] = Barak(accounting="pure", passes=100)
    return found


def small(done: list[dict]) -> list[dict]:
    rows = []
    for name, (file, rounds, epsilons) in SMALL.items():
        for mechanism_name, mechanism in small_mechanisms(rounds).items():
            rows += runs(small_table(file), name, 3, mechanism_name, mechanism, epsilons, SMALL_RUNS, done)
    return rows


def large(done: list[dict]) -> list[dict]:
    rows = []
    table = large_table()
    for degree, epsilons in LARGE_EPSILONS.items():
        for name, mechanism in large_mechanisms(degree).items():
            rows += runs(table, "acs16", degree, name, mechanism, epsilons, LARGE_RUNS, done)
    return rows


def runs(
    table: Table,
    table_name: str,
    degree: int,
    name: str,
    mechanism: Mechanism,
    epsilons: tuple[float, ...],
    number: int,
    done: list[dict],
) -> list[dict]:
    """One line of a figure; runs that an earlier call finished are taken from its rows."""
    start = time.perf_counter()
    workload = Workload.marginals(table.domain, degree=degree)
    known = {
        (row["table"], row["degree"], row["mechanism"], row["epsilon"], row["seed"]): row for row in done
    }
    rows = []
    for epsilon in epsilons:
        if refused(table, mechanism, epsilon):
            continue
        for seed in range(number):
            row = known.get((table_name, degree, name, epsilon, seed))
            if row is None:
                found = run(table, name, mechanism, workload, epsilon, seed)
                row = {"table": table_name, "degree": degree, **found}
            rows.append(row)
    print(f"{table_name}, {degree}-way, {name}: {time.perf_counter() - start:.0f} s", flush=True)
    return rows


def finished(part: str) -> list[dict]:
    """The rows of an earlier call; remove the file to run everything again."""
    path = RESULTS / f"mwem_contingency_{part}.csv"
    if not path.exists():
        return []
    with path.open(encoding="utf-8") as file:
        file.readline()
        kinds = {"degree": int, "epsilon": float, "seed": int, "relative_entropy": float}
        return [{k: kinds.get(k, str)(v) for k, v in row.items()} for row in csv.DictReader(file)]


def refused(table: Table, mechanism: Mechanism, epsilon: float) -> bool:
    """Whether MWEM itself refuses, since its noise would exceed n."""
    try:
        mechanism.check_total(table.records, allotment=Epsilon(epsilon), unit=Unit("replace"))
    except SettingError:
        return True
    return False


def draw(rows: list[dict]) -> None:
    means = summarise(rows, by=("table", "degree", "mechanism", "epsilon"), value="relative_entropy")
    for table, degree in dict.fromkeys((row["table"], row["degree"]) for row in rows):
        series: dict[str, list] = {}
        for (t, k, mechanism, epsilon), (mean, error) in means.items():
            if (t, k) == (table, degree):
                series.setdefault(mechanism, []).append((epsilon, mean, error))
                print(f"{t} {k}-way {mechanism:32s} ε={epsilon:<5} RE {mean:.4f} ± {error:.4f}")
        path = FIGURES / f"mwem_contingency_{table}_{degree}way.svg"
        title = f"{table}, all {degree}-way marginals"
        line_plot(path, series, title, "ε (pure)", "relative entropy", log_x=True, log_y=True)


def main() -> None:
    parts = {"small": small, "large": large}
    for part in sys.argv[1:] or parts:
        rows = parts[part](finished(part))
        write_rows(f"mwem_contingency_{part}", rows)
        draw(rows)


if __name__ == "__main__":
    main()
