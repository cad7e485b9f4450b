"""How far synthetic records are from the weighted records that they are sampled from, and how long it takes.

    python benchmarks/utility/sampled_error.py

The model is a support: 200,000 records drawn from a public part of ADULT, one value in ten of each attribute
drawn anew from its own marginal, weights exponential. For each number of synthetic records, systematic
rounding (before) and rounding by exchange (after): the mean L1 distance between their one-, two- and
three-way marginals and the model's, as a share of the records, and the seconds of one processor.
Writes ``benchmarks/results/sampled_error.json``.
"""

import json
import sys
import time
from itertools import combinations
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
from numpy.typing import NDArray
from pairs import load

from experiment import RESULTS
from sidelight.models.exchange import closest_counts
from sidelight.models.rounding import round_to
from sidelight.models.support import Support

DRAWN = 200_000
REDRAWN = 0.1
RECORDS = (1_000, 32_384, 300_000)
DEGREES = {"one": 1, "two": 2, "three": 3}


def main() -> None:
    support = model()
    found: dict[str, Any] = {"weighted_records": len(support.records), "records": {}}
    for records in RECORDS:
        found["records"][str(records)] = {
            "before": measured(support, records, exchanged=False),
            "after": measured(support, records, exchanged=True),
        }
    text = json.dumps(found, indent=1)
    (RESULTS / "sampled_error.json").write_text(text + "\n", encoding="utf-8")
    print(text)


def model() -> Support:
    """Weighted records like those that a mechanism with public data leaves behind."""
    _, public = load("adult025")
    codes = np.asarray(public.codes())
    rng = np.random.default_rng(0)
    drawn = codes[rng.integers(len(codes), size=DRAWN)]
    for column in range(drawn.shape[1]):
        where = np.flatnonzero(rng.random(DRAWN) < REDRAWN)
        drawn[where, column] = codes[rng.integers(len(codes), size=where.size), column]
    records, counts = np.unique(drawn, axis=0, return_counts=True)
    weights = counts * rng.exponential(size=len(records))
    return Support(public.domain, records, weights, float(weights.sum()))


def measured(support: Support, records: int, *, exchanged: bool) -> dict[str, float]:
    rng = np.random.default_rng(1)
    start = time.process_time()
    if exchanged:
        counts = closest_counts(support.domain, support.records, support.weights, records, rng)
    else:
        counts = round_to(support.weights, records, rng)
    seconds = time.process_time() - start
    distances = {name: round(distance(support, counts, degree), 5) for name, degree in DEGREES.items()}
    return distances | {"seconds": round(seconds, 2)}


def distance(support: Support, counts: NDArray[np.int64], degree: int) -> float:
    """The mean L1 distance to the model over all marginals of that degree, as a share of the records."""
    excess = counts - support.weights * (counts.sum() / support.total)
    marginals = list(combinations(support.domain.attrs, degree))
    found = [np.abs(np.bincount(support.cells(attrs), weights=excess)).sum() for attrs in marginals]
    return float(np.mean(found) / counts.sum())


if __name__ == "__main__":
    main()
