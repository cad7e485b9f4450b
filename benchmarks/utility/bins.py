"""``bins="auto"`` against ``"as declared"``: errors at the schema's own resolution.

    OMP_NUM_THREADS=1 python benchmarks/utility/bins.py [--data income] [--only aim mst] [--seeds 3]
    OMP_NUM_THREADS=1 python benchmarks/utility/bins.py --data income+oh nist-ma+national --only aperture
    python benchmarks/utility/bins.py --table

income: ACS income 2018, Pennsylvania, 9 attributes, ages by the year and weekly hours by the hour. nist:
NIST's ACS excerpt, national 2019, 13 attributes, ages by the year, incomes by 2,000 dollars. adult: UCI's
training part, 13 attributes, ages and hours as they are, gains by 200 and losses by 50 dollars. All three-way
marginals are asked for, without public data; δ = 1e-9, one record is replaced. Errors are the mean of
‖q(D) − q(A)‖₁/n over all marginals of one, two and three attributes, each at full resolution. The rule's
constants were chosen on income, seed 0; nist and adult were not looked at.

With public data (income+oh: Pennsylvania beside Ohio; nist-ma+national: Massachusetts beside the nation)
values stay as they are declared. "in groups" is what they would lose otherwise: the public table in the same
groups, and within a group the public shares, as far from them towards the noisy answers as noise allows.
"""

import argparse
import dataclasses
import statistics
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
import pyarrow.parquet as pq

import sidelight as sl
from experiment import RESULTS, curator_of, data_folder, described
from resumable import read, run_cells
from sidelight.data.grouping import Grouping, Groups, sum_by_groups
from sidelight.data.table import Table
from sidelight.evaluation.workload_errors import workload_error
from sidelight.measurement import Measurement
from sidelight.mechanisms.bins import _SHARE, _WORTHWHILE, Bins, join
from sidelight.mechanisms.registry import mechanism_of
from sidelight.models.refined import Refined
from sidelight.privacy.budget import Budget
from sidelight.queries.query import Marginal
from sidelight.testing import SeededNoise

PATH = RESULTS / "bins.csv"
EPSILONS = (0.1, 1.0, 10.0)
BINS = ("as declared", "auto")
MECHANISMS = ("mst", "aim", "mwem", "aperture")


def frame(name: str) -> Any:
    return pq.read_table(data_folder() / f"{name}.parquet").to_pandas()


def steps(values: Any, low: int, high: int, step: int = 1) -> tuple[Any, int]:
    """Codes of whole numbers between public bounds, and how many codes there are."""
    return (np.clip(values, low, high) - low) // step, (high - low) // step + 1


def labels(values: Any, listed: list[Any]) -> tuple[Any, int]:
    """Codes of listed values."""
    return values.astype(str).map({str(label): code for code, label in enumerate(listed)}), len(listed)


def coded(codes: dict[str, tuple[Any, int]], people: Any) -> Table:
    domain = sl.Domain.of({name: size for name, (_, size) in codes.items()})
    matrix = np.stack([np.asarray(column).astype(np.int64) for column, _ in codes.values()], axis=1)
    return Table.of_codes(domain, matrix[people])


def income(state: str = "PA") -> Table:
    people = frame("acs_income_2018")
    codes = {"AGEP": steps(people["AGEP"], 17, 94), "WKHP": steps(people["WKHP"], 1, 99)}
    for name in ("SCHL", "COW", "MAR", "RELP", "SEX", "RAC1P", "PINCP_GT_50K"):
        codes[name] = labels(people[name], sorted(people[name].unique()))
    return coded(codes, people["STATE"].astype(str).to_numpy() == state)


def nist(where: str = "national") -> Table:
    people = frame(f"nist_acs_{where}2019")
    said = described("nist_acs")
    income = people["PINCP"].fillna(0).clip(0, 199_999) // 2_000
    codes = {
        "AGEP": steps(people["AGEP"].fillna(0), 0, 95),
        "NOC": (people["NOC"].clip(0, 7).fillna(8), 9),
        "PINCP": (income.where(people["PINCP"].notna(), 100), 101),
    }
    for name in (
        "SEX",
        "MSP",
        "HISP",
        "RAC1P",
        "HOUSING_TYPE",
        "OWN_RENT",
        "INDP_CAT",
        "EDU",
        "DVET",
        "DREM",
    ):
        codes[name] = labels(people[name], said[name]["values"])
    return coded(codes, slice(None))


def adult() -> Table:
    people = frame("adult")
    codes = {
        "age": steps(people["age"], 17, 90),
        "hours-per-week": steps(people["hours-per-week"], 1, 99),
        "capital-gain": steps(people["capital-gain"], 0, 19_999, 200),
        "capital-loss": steps(people["capital-loss"], 0, 3_999, 50),
    }
    for name in people.columns:
        if name not in codes and name not in ("split", "fnlwgt", "education-num"):
            codes[name] = labels(people[name], sorted(people[name].unique()))
    return coded(codes, (people["split"] == "train").to_numpy())


DATA = {"income": income, "nist": nist, "adult": adult}
PUBLIC = {
    "income+oh": (income, lambda: income("OH")),
    "nist-ma+national": (lambda: nist("ma"), nist),
}
IN_GROUPS = "in groups"


@cache
def tables_of(data: str) -> tuple[Table, Table | None]:
    """The private table, and the public one where there is one."""
    if data in PUBLIC:
        private, public = PUBLIC[data]
        return private(), public()
    return DATA[data](), None


def cells(data: list[str], only: list[str], seeds: int) -> Iterator[dict[str, Any]]:
    for seed in range(seeds):
        for name in data:
            for mechanism in only:
                for epsilon in EPSILONS:
                    for bins in (BINS[0], IN_GROUPS) if name in PUBLIC else BINS:
                        cell = {"data": name, "mechanism": mechanism, "epsilon": epsilon, "seed": seed}
                        yield {**cell, "bins": bins}


def measure(data: str, mechanism: str, epsilon: float, seed: int, bins: str) -> dict[str, float]:
    private, public = tables_of(data)
    if bins == IN_GROUPS:
        return in_groups(data, mechanism, epsilon, seed)
    settings = {} if mechanism.startswith("mwem") else {"oversized": "skip"}
    released = sl.release(
        private, schema=sl.Schema.from_domain(private.domain), epsilon=epsilon, delta=1e-9, public=public,
        mechanism=mechanism, bins=bins, noise=SeededNoise(seed), progress=False, quality_share=0, **settings,
    )  # fmt: skip
    errors = {
        f"error_{degree}": sl.evaluate(released, private, workload=f"{degree}-way").workload_error
        for degree in (1, 2, 3)
    }
    groups = [len(grouped.starts) for grouped in released.card.groups]
    return {**errors, "groups": max(groups, default=0)}


def in_groups(data: str, mechanism: str, epsilon: float, seed: int) -> dict[str, float]:
    """As ``Bins.run`` without public data, but for the public table and its shares within a group."""
    private, public = tables_of(data)
    assert public is not None
    domain, workload = private.domain, sl.Workload.marginals(private.domain, degree=3)
    recipe = mechanism_of(mechanism, {"oversized": "skip"})
    bins = Bins.of("auto", sl.Schema.from_domain(domain), workload, recipe, None)
    assert bins is not None
    curator = curator_of(private, recipe.allotment(Budget(epsilon=epsilon, delta=1e-9)), seed=seed)
    k = bins.number(private.records, curator.allotment, curator.unit)
    wide = [attr for attr in bins.joinable if domain.sizes[attr] > _WORTHWHILE * k]
    cost = curator.allotment.split(_SHARE)[0] / len(wide)
    made = {attr: curator.measure(Marginal((attr,)), cost) for attr in wide}
    groups = {attr: join(made[attr].answer, bins.joinable[attr], groups=k) for attr in wide}
    grouping = Grouping(domain, groups)
    codes = [np.array(grouping.of(attr))[public.codes()[:, i]] for i, attr in enumerate(domain.attrs)]
    with curator.in_groups(grouping):
        helping = Table.of_codes(grouping.domain, np.stack(codes, axis=1))
        outcome = recipe.run(curator, workload, public=helping)
    shares = {attr: towards(made[attr], public.count((attr,)), groups[attr]) for attr in wide}
    model = dataclasses.replace(outcome, model=Refined(outcome.model, grouping, shares))
    errors = {
        f"error_{degree}": workload_error(
            private, model, sl.Workload.marginals(domain, degree=degree), total=private.records
        )
        for degree in (1, 2, 3)
    }
    return {**errors, "groups": k}


def towards(made: Measurement, public: Any, groups: Groups) -> Any:
    """Each value's share of its group: from the public shares, as far towards the answers as noise allows."""
    of = np.array(groups)
    known = np.asarray(public, dtype=np.float64) + 0.5
    known /= sum_by_groups(known, [groups])[of]
    mean = np.maximum(sum_by_groups(made.answer, [groups]), 0.0)[of] * known
    off = made.answer - mean
    freedom = np.maximum(np.bincount(groups) - 1, 1)
    spread = np.maximum(sum_by_groups(off**2, [groups]) / freedom - made.stddev**2, 0.0)
    refined = np.maximum(mean + (spread / (spread + made.stddev**2))[of] * off, 1e-3 * (mean + made.stddev))
    return refined / sum_by_groups(refined, [groups])[of]


def table() -> None:
    """Mean errors with and without groups, and their ratio; at the end the geometric mean of all ratios."""
    kept: dict[tuple[str, str, float], dict[str, list[list[float]]]] = {}
    for line in read(PATH):
        row = kept.setdefault((line["data"], line["mechanism"], float(line["epsilon"])), {})
        row.setdefault(line["bins"], []).append([float(line[f"error_{degree}"]) for degree in (1, 2, 3)])
    print("| data | mechanism | ε | seeds | 1-way | 2-way | 3-way |")
    print("|---|---|---|---|---|---|---|")
    ratios = []
    for (data, mechanism, epsilon), by_bins in sorted(kept.items()):
        pair = BINS[0], IN_GROUPS if data in PUBLIC else BINS[1]
        if set(by_bins) != set(pair):
            continue
        declared, auto = (np.mean(by_bins[bins], axis=0) for bins in pair)
        shown = [f"{a:.3f} → {b:.3f} ({b / a:.2f})" for a, b in zip(declared, auto, strict=True)]
        if data not in PUBLIC:
            ratios.append(auto / declared)
        print(f"| {data} | {mechanism} | {epsilon:g} | {len(by_bins[pair[1]])} | {' | '.join(shown)} |")
    means = [statistics.geometric_mean(of_degree) for of_degree in np.transpose(ratios)]
    print(
        f"\n{len(ratios)} rows without public data; geometric means {means}; largest {np.max(ratios, axis=0)}"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", choices=[*DATA, *PUBLIC], nargs="*", default=list(DATA))
    parser.add_argument("--only", nargs="*", default=list(MECHANISMS))
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--table", action="store_true", help="print what is kept, and run nothing")
    asked = parser.parse_args()
    if not asked.table:
        run_cells(PATH, cells(asked.data, asked.only, asked.seeds), measure)
    table()
