"""Public data in part: what is a public table worth that lacks columns, or leaves values open?

    OMP_NUM_THREADS=1 python benchmarks/utility/public_in_part.py        a minute of CPU time

The demo's survey (General Social Survey; private 2006, public 1994 to 2004), all pairs, ε = 0.3, δ = 1e-9, at
most 10 MB of model, three seeds. The settings are the mechanisms' own: nothing was tuned on this. Errors are
the mean over all pairs of the L1 distance to the exact counts, divided by n; kept in
results/public_in_part.csv. ``partial.py`` compares absent columns on other data.
"""

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np

from experiment import RESULTS, mean_and_error
from resumable import run_cells
from sidelight.cli.demo import survey
from sidelight.data.table import Table
from sidelight.evaluation.workload_errors import workload_error
from sidelight.public.source import UNKNOWN, WeightedRecords
from sidelight.queries.workload import Workload
from sidelight.releases.run import release
from sidelight.testing import SeededNoise

SEEDS, EPSILON = 3, 0.3
ABSENT = {"all columns": 0, "without 1 column": 1, "without 3 columns": 3, "without 6 columns": 6}
OPEN = "a third of values open"
NONE = "no public data"

private, public, SCHEMA = survey()
PRIVATE, PUBLIC = Table.read(private, SCHEMA), Table.read(public, SCHEMA)


def given(what: str, seed: int) -> Any:
    """The public data of one case; which columns are absent, and which values open, follows from the seed."""
    rng = np.random.default_rng(seed)
    if what == NONE:
        return None
    codes = PUBLIC.codes().astype(np.int32)
    if what == OPEN:
        codes[rng.random(codes.shape) < 1 / 3] = UNKNOWN
        return WeightedRecords(SCHEMA.domain, codes)
    kept = np.sort(rng.permutation(len(SCHEMA.domain))[ABSENT[what] :])
    return Table.of_codes(SCHEMA.domain.project([SCHEMA.domain.attrs[k] for k in kept]), codes[:, kept])


def work(mechanism: str, public: str, seed: int) -> dict[str, float]:
    made = release(
        PRIVATE, schema=SCHEMA, public=given(public, seed), mechanism=mechanism, workload="2-way",
        epsilon=EPSILON, delta=1e-9, noise=SeededNoise(seed), progress=False, max_model_mb=10.0,
    )  # fmt: skip
    pairs = Workload.marginals(SCHEMA.domain, degree=2)
    return {"error": workload_error(PRIVATE, made.model, pairs, total=PRIVATE.records)}


def main() -> None:
    cells = [
        {"mechanism": mechanism, "public": what, "seed": seed}
        for seed in range(SEEDS)
        for mechanism in ("aperture", "jam")
        for what in (NONE, *ABSENT, OPEN)
        if not (mechanism == "jam" and what == NONE)
    ]
    lines = run_cells(RESULTS / "public_in_part.csv", cells, work)
    for mechanism in ("aperture", "jam"):
        for what in (NONE, *ABSENT, OPEN):
            found = [
                float(one["error"]) for one in lines if (one["mechanism"], one["public"]) == (mechanism, what)
            ]
            if found:
                mean, error = mean_and_error(found)
                print(f"{mechanism:9} {what:24} {mean:.3f} ± {error:.3f}")


if __name__ == "__main__":
    main()
