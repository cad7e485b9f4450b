"""Range queries by squared error: MWEM against the SVD bound on all matrix mechanisms.

    OMP_NUM_THREADS=1 python benchmarks/utility/mwem_ranges.py

After section 4.1 of Hardt, Ligett and McSherry: ADULT capital-loss, ADULT age × hours, Blood Transfusion
recency × frequency, and monetary, on raw integer values. The paper gives neither T nor the number of ranges:
here 2,000 random ranges, T = 10 and 20 fixed beforehand, five runs. MWEM selects one range at a time;
"pure" is ε-DP with Laplace noise, "zCDP" is (ε, 1/n)-DP with Gaussian noise, as is the bound; one record is
replaced, n is public.
"""

import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from experiment import FIGURES, coded_table, columns, curator_of, described, summarise, write_rows
from plot import line_plot
from sidelight.data.table import Table
from sidelight.evaluation.workload_errors import Errors
from sidelight.mechanisms.mwem import MWEM
from sidelight.privacy.budget import Budget
from sidelight.queries.workload import Workload
from svd_bound import spectrum, squared_error_bound

RANGES = 2000
RUNS = 5
SETTINGS = {
    "capital-loss": ("adult", ("capital-loss",), (0.0125, 0.025, 0.05, 0.1)),
    "age-hours": ("adult", ("age", "hours-per-week"), (0.0125, 0.025, 0.05, 0.1)),
    "recency-frequency": ("blood_transfusion", ("recency_months", "frequency_times"), (0.1, 0.2, 0.4, 0.8)),
    "monetary": ("blood_transfusion", ("monetary_cc",), (0.1, 0.2, 0.4, 0.8)),
}
MECHANISMS = {
    "MWEM, pure, T=10": MWEM(rounds=10, candidates="queries", accounting="pure", model="histogram"),
    "MWEM, pure, T=20": MWEM(rounds=20, candidates="queries", accounting="pure", model="histogram"),
    "MWEM, zCDP, T=20": MWEM(rounds=20, candidates="queries", model="histogram"),
}


def raw_table(file: str, attrs: tuple[str, ...]) -> Table:
    """Integer values, one code each, between the public bounds."""
    about = described(file)
    values = columns(file, list(attrs))
    codes = {attr: values[attr] - about[attr]["min"] for attr in attrs}
    return coded_table(codes, {attr: about[attr]["max"] - about[attr]["min"] + 1 for attr in attrs})


def main() -> None:
    rows = []
    for name, (file, attrs, epsilons) in SETTINGS.items():
        start = time.perf_counter()
        table = raw_table(file, attrs)
        n, cells = table.records, table.domain.size()
        workload = Workload.ranges(table.domain, attrs, number=RANGES, seed=0)
        singular_values = spectrum(workload, table.domain)
        for epsilon in epsilons:
            bound = squared_error_bound(
                singular_values, cells=cells, queries=RANGES, epsilon=epsilon, delta=1 / n
            )
            rows.append(
                {
                    "data": name,
                    "mechanism": "SVD bound",
                    "epsilon": epsilon,
                    "seed": 0,
                    "squared_error": bound,
                }
            )
            for mechanism_name, mechanism in MECHANISMS.items():
                for seed in range(RUNS):
                    cost = mechanism.allotment(Budget(epsilon=epsilon, delta=1 / n))
                    release = mechanism.run(curator_of(table, cost, seed=seed), workload)
                    errors = Errors.of(table, release, workload, total=n)
                    rows.append(
                        {
                            "data": name,
                            "mechanism": mechanism_name,
                            "epsilon": epsilon,
                            "seed": seed,
                            "squared_error": errors.squared_error_per_query,
                        }
                    )
        print(f"{name}: {cells} cells, n = {n}, {time.perf_counter() - start:.0f} s", flush=True)
    write_rows("mwem_ranges", rows)
    draw(rows)


def draw(rows: list[dict]) -> None:
    means = summarise(rows, by=("data", "mechanism", "epsilon"), value="squared_error")
    for name in SETTINGS:
        series: dict[str, list] = {}
        bound = []
        for (data, mechanism, epsilon), (mean, error) in means.items():
            if data != name:
                continue
            print(f"{data:18s} {mechanism:18s} ε={epsilon:<6} {mean:.4g} ± {error:.2g}")
            if mechanism == "SVD bound":
                bound.append((epsilon, mean))
            else:
                series.setdefault(mechanism, []).append((epsilon, mean, error))
        series["SVD bound"] = [(x, y, 0.0) for x, y in bound]
        path = FIGURES / f"mwem_ranges_{name}.svg"
        title = f"{name}: {RANGES} random ranges"
        line_plot(path, series, title, "ε", "squared error per query (counts²)", log_x=True, log_y=True)


if __name__ == "__main__":
    main()
