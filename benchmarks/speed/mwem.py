"""How long factored MWEM takes on wide tables.

    OMP_NUM_THREADS=1 python benchmarks/speed/mwem.py        writes benchmarks/results/mwem_speed.json

Three settings, after section 3.2 of Hardt, Ligett and McSherry, who report 19 s, 80 s and "negligible" (they
do not give their workloads):

- 1,000 independent binary attributes with shares between 0.1 and 0.9, 10,000 records. Workload: all 1,000
  one-way marginals and 1,000 random two-way marginals; 30 rounds.
- ADULT binarised to 27 attributes by fixed public thresholds (below), 48,842 records. Workload: all 2,925
  three-way marginals; 30 rounds; components of at most 2^16 cells.
- The same with 50 more attributes that are independent fair coins; the workload stays.

Times are for the whole run: counting, selecting, measuring, estimating, with exact noise.
"""

import gc
import json
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from fractions import Fraction
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from experiment import RESULTS, columns, curator_of, machine
from sidelight.data.domain import Domain
from sidelight.data.table import Table
from sidelight.mechanisms.mwem import MWEM
from sidelight.privacy.budget import Rho
from sidelight.queries.workload import Workload

TIMES = 10
RHO = Rho(Fraction(1, 10))

# Each binary attribute of ADULT is one question; none of the thresholds was chosen by looking at counts.
QUESTIONS = {
    "age": [("age", ">=", 30), ("age", ">=", 40), ("age", ">=", 50), ("age", ">=", 60)],
    "education-num": [("education-num", ">=", 9), ("education-num", ">=", 10), ("education-num", ">=", 13)],
    "hours-per-week": [
        ("hours-per-week", ">=", 35),
        ("hours-per-week", ">=", 41),
        ("hours-per-week", ">=", 50),
    ],
    "capital-gain": [("capital-gain", ">=", 1), ("capital-gain", ">=", 5000)],
    "capital-loss": [("capital-loss", ">=", 1)],
    "workclass": [("workclass", "=", "Private"), ("workclass", "=", "?")],
    "marital-status": [
        ("marital-status", "=", "Married-civ-spouse"),
        ("marital-status", "=", "Never-married"),
    ],
    "occupation": [
        ("occupation", "=", "Prof-specialty"),
        ("occupation", "=", "Exec-managerial"),
        ("occupation", "=", "Craft-repair"),
        ("occupation", "=", "Sales"),
    ],
    "relationship": [("relationship", "=", "Husband"), ("relationship", "=", "Own-child")],
    "race": [("race", "=", "White")],
    "sex": [("sex", "=", "Male")],
    "native-country": [("native-country", "=", "United-States")],
    "income": [("income", "=", ">50K")],
}


def binary_adult() -> tuple[Domain, np.ndarray]:
    """27 binary attributes of ADULT."""
    adult = columns("adult")
    asked = [question for questions in QUESTIONS.values() for question in questions]
    codes = [
        adult[column] >= value if relation == ">=" else adult[column] == value
        for column, relation, value in asked
    ]
    domain = Domain.of({f"{column} {relation} {value}": 2 for column, relation, value in asked})
    return domain, np.stack(codes, axis=1).astype(np.uint8)


def with_coins(domain: Domain, codes: np.ndarray, number: int) -> Table:
    """The same table with more attributes, each an independent fair coin."""
    coins = np.random.default_rng(1).integers(0, 2, (len(codes), number), dtype=np.uint8)
    wider = Domain.of({**domain.sizes, **{f"coin{i}": 2 for i in range(number)}})
    return Table.of_codes(wider, np.concatenate([codes, coins], axis=1))


def independent(attributes: int, records: int) -> Table:
    rng = np.random.default_rng(2)
    shares = rng.uniform(0.1, 0.9, attributes)
    codes = (rng.random((records, attributes)) < shares).astype(np.uint8)
    return Table.of_codes(Domain.of({f"a{i}": 2 for i in range(attributes)}), codes)


def seconds(runs: Mapping[str, Callable[[int], object]]) -> dict[str, dict[str, list[float]]]:
    """Wall and processor seconds of each run.

    The runs take turns, forwards and backwards, so that a busy machine and what a run leaves behind weigh on
    all alike.
    """
    taken: dict[str, dict[str, list[float]]] = {name: {"wall": [], "processor": []} for name in runs}
    for seed in range(TIMES):
        for name, run in list(runs.items())[:: 1 if seed % 2 == 0 else -1]:
            gc.collect()
            wall, processor = time.perf_counter(), time.process_time()
            run(seed)
            taken[name]["wall"].append(round(time.perf_counter() - wall, 3))
            taken[name]["processor"].append(round(time.process_time() - processor, 3))
    return taken


def main() -> None:
    wide = independent(1000, 10_000)
    one_way = Workload.marginals(wide.domain, degree=1)
    two_way = Workload.random_marginals(wide.domain, degree=2, number=1000, seed=3)
    either = Workload([*one_way.queries, *two_way.queries])
    domain, codes = binary_adult()
    assert len(domain) == 27
    three_way = Workload.marginals(domain, degree=3)
    adult, wider_adult = Table.of_codes(domain, codes), with_coins(domain, codes, 50)
    mwem = MWEM(rounds=30, model="components", max_component_cells=2**16)
    taken = seconds(
        {
            "1000 independent binary attributes": lambda seed: MWEM(rounds=30).run(
                curator_of(wide, RHO, seed=seed), either
            ),
            "ADULT, 27 binary attributes": lambda seed: mwem.run(
                curator_of(adult, RHO, seed=seed), three_way
            ),
            "ADULT, 27 binary attributes and 50 coins": lambda seed: mwem.run(
                curator_of(wider_adult, RHO, seed=seed), three_way
            ),
        }
    )
    alone, wider = (statistics.median(times["processor"]) for times in list(taken.values())[1:])
    results = {
        "machine": machine(),
        "seconds": taken,
        "50 independent attributes add": f"{wider / alone - 1:+.1%} of processor time",
    }
    (RESULTS / "mwem_speed.json").write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
