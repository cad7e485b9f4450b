"""How low an error can get without knowing the private records themselves.

    python benchmarks/utility/sampling_floor.py
    python benchmarks/utility/sampling_floor.py --data titanic     that pair alone; the other results stay

The private table is itself a sample of n records: a model that knew its population would still miss each
count by the deviation of a Poisson variable, E|X − λ| = 2 λ^(⌊λ⌋+1) e^(−λ) / ⌊λ⌋!. Summed over the cells of
all 3-way marginals, with λ by APERTURE's model at ε = 10, this is a floor for everything but cells that
were measured directly. Writes ``benchmarks/results/sampling_floor.json``.
"""

import argparse
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
from jam_grid import DELTA
from numpy.typing import NDArray
from pairs import load

from experiment import RESULTS, curator_of
from sidelight.mechanisms.aperture.aperture import Aperture
from sidelight.privacy.budget import Budget
from sidelight.queries.workload import Workload

PAIRS = ("adult025", "titanic", "salary", "fire", "taxi")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", nargs="+", default=list(PAIRS), choices=PAIRS)
    path = RESULTS / "sampling_floor.json"
    found: dict[str, float] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    for name in parser.parse_args().data:
        found[name] = round(floor(name), 4)
    path.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(found, indent=1))


def floor(name: str) -> float:
    """The mean over 3-way marginals of the error of a model that is right about the population."""
    private, public = load(name)
    workload = Workload.marginals(private.domain, degree=3)
    curator = curator_of(private, Budget(epsilon=10.0, delta=DELTA).rho(), seed=0)
    release = Aperture(max_model_mb=5.0, oversized="skip").run(curator, workload, public=public)
    answers = release.model.count_each(workload.attribute_sets)
    return float(np.mean([deviation(counts).sum() for _, counts in answers])) / private.records


def deviation(mean: NDArray[np.float64]) -> NDArray[np.float64]:
    """E|X − λ| of Poisson variables."""
    from scipy.special import gammaln

    safe = np.maximum(mean, 1e-300)
    whole = np.floor(safe)
    return np.asarray(2 * np.exp((whole + 1) * np.log(safe) - safe - gammaln(whole + 1)))


if __name__ == "__main__":
    main()
