"""A workload of all pairs beside one of all triples, on a wide table: whose pairs are better?

    python benchmarks/utility/pairs_and_triples.py                          41 attributes, ε = 1, seed 0
    python benchmarks/utility/pairs_and_triples.py --attributes 20 --seeds 3 --mechanisms aperture aim
    python benchmarks/utility/pairs_and_triples.py --print                  only the table, from the results

Who asks for pairs must not get worse pairs than who asks for triples, beyond what seeds do. The table is
made: three people of the same rank by age are put side by side, one of each of three surveys (ACS employment
in Massachusetts, 17 attributes; ADULT, 15; ACS income in Pennsylvania, 9). So attributes of one survey depend
on each other as they do there, and those of two surveys by age. Every attribute has at most 8 values:
neighbouring codes are put together. The public table is made the same way of the surveys' public tables:
2015, ADULT's with a quarter of the bias, and Ohio. Models of 5 MB, δ = 1e-9.
"""

import argparse
import sys
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
from jam_grid import DELTA, Answers, mechanism_of
from numpy.typing import NDArray
from pairs import load

from experiment import RESULTS, curator_of, mean_and_error
from resumable import read, run_cells
from sidelight.data.domain import Domain
from sidelight.data.table import Table
from sidelight.evaluation.workload_errors import workload_error
from sidelight.mechanisms.aperture.aperture import Aperture
from sidelight.mechanisms.base import Mechanism
from sidelight.privacy.budget import Budget
from sidelight.queries.workload import Workload

SURVEYS = {"employment-2018-2015": "AGEP", "adult025": "age", "income-pa-oh": "AGEP"}
"""Each with its attribute of age."""
RECORDS = 20_000
MOST_VALUES = 8
LIMIT_MB = 5.0
DEGREES = {"pairs": 2, "triples": 3}
MECHANISMS = ("aperture", "aperture-none", "aim", "aperture-before", "aperture-none-before")
PATH = RESULTS / "pairs_and_triples.csv"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--attributes", type=int, default=41)
    parser.add_argument("--epsilons", nargs="+", type=float, default=[1.0])
    parser.add_argument("--mechanisms", nargs="+", default=["aperture-none", "aperture"], choices=MECHANISMS)
    parser.add_argument("--workloads", nargs="+", default=list(DEGREES), choices=list(DEGREES))
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--print", action="store_true", help="only the table, from the results")
    asked = parser.parse_args()
    if asked.print:
        print_table()
    else:
        run_cells(PATH, cells(asked), measure)


def cells(asked: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """What was asked for; all of one seed before the next."""
    for seed in range(asked.seeds):
        for epsilon in asked.epsilons:
            for mechanism in asked.mechanisms:
                for workload in asked.workloads:
                    yield {
                        "attributes": asked.attributes, "workload": workload, "mechanism": mechanism,
                        "epsilon": epsilon, "seed": seed,
                    }  # fmt: skip


def measure(attributes: int, workload: str, mechanism: str, epsilon: float, seed: int) -> dict[str, float]:
    """One run: errors of the pairs and of the triples, and CPU seconds."""
    private, public = wide(attributes)
    asked = Workload.marginals(private.domain, degree=DEGREES[workload])
    curator = curator_of(private, Budget(epsilon=epsilon, delta=DELTA).rho(), seed=seed)
    began = time.process_time()
    sees_public = mechanism in ("aperture", "aperture-before")
    release = _recipe(mechanism).run(curator, asked, public=public if sees_public else None)
    seconds = time.process_time() - began
    errors = {}
    for name, degree in DEGREES.items():
        judged = Workload.marginals(private.domain, degree=degree)
        model = Answers(release.model, judged)
        errors[f"{name}_error"] = workload_error(private, model, judged, total=private.records)
    return errors | {"cpu_seconds": seconds}


def _recipe(mechanism: str) -> Mechanism:
    if mechanism == "aim":
        return mechanism_of("aim", LIMIT_MB)
    return Aperture(max_model_mb=LIMIT_MB, oversized="skip")


@cache
def wide(attributes: int) -> tuple[Table, Table]:
    """The private and the public table: so many attributes, taken in turn from the three surveys."""
    sizes: dict[tuple[int, str], int] = {}
    for name in SURVEYS:
        for turn, (attr, size) in enumerate(load(name)[0].domain.sizes.items()):
            sizes[turn, f"{name.split('-')[0]}.{attr}"] = min(size, MOST_VALUES)
    kept = sorted(range(len(sizes)), key=lambda column: list(sizes)[column])[:attributes]
    domain = Domain.of({list(sizes)[column][1]: list(sizes.values())[column] for column in kept})
    sides = []
    for side in (0, 1):
        surveys = [
            _by_age(load(name)[side], age, seed=place) for place, (name, age) in enumerate(SURVEYS.items())
        ]
        sides.append(Table.of_codes(domain, np.concatenate(surveys, axis=1)[:, kept]))
    return sides[0], sides[1]


def _by_age(table: Table, age: str, *, seed: int) -> NDArray[np.int64]:
    """So many records of a survey, ordered by age and otherwise at random; in few values each."""
    rng = np.random.default_rng(seed)
    drawn = table.codes()[rng.choice(table.records, RECORDS, replace=table.records < RECORDS)].astype(
        np.int64
    )
    drawn = drawn[np.argsort(drawn[:, table.domain.attrs.index(age)], kind="stable")]
    sizes = np.array(table.domain.shape)
    return np.where(sizes > MOST_VALUES, drawn * MOST_VALUES // sizes, drawn)


def print_table() -> None:
    """Mean errors over seeds; the last column is what asking for triples would have made of the pairs."""
    lines = read(PATH)
    print("| attributes | mechanism | ε | pairs, asked for pairs | pairs, asked for triples | ratio |")
    print("|---" * 6 + "|")
    for key in dict.fromkeys((line["attributes"], line["mechanism"], line["epsilon"]) for line in lines):
        runs = [line for line in lines if (line["attributes"], line["mechanism"], line["epsilon"]) == key]
        found = {
            name: [float(run["pairs_error"]) for run in runs if run["workload"] == name] for name in DEGREES
        }
        if all(found.values()):
            means = {name: mean_and_error(errors) for name, errors in found.items()}
            shown = " | ".join(f"{mean:.4f} ± {error:.4f}" for mean, error in means.values())
            print(f"| {' | '.join(key)} | {shown} | {means['pairs'][0] / means['triples'][0]:.3f} |")


if __name__ == "__main__":
    main()
