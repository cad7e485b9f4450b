"""The other families beside AIM, JAM, PMW-Pub and APERTURE: error and time on real tables, three seeds.

    python benchmarks/utility/families.py [--data adult] [--only mst hdmm]

ε = 1, δ = 1e-9, replacement; the workload of each data set is all of its three-way marginals, and for
DualQuery, HDMM and PMW-Pub a random 256 of them (``workload``: the errors of all are taken on those 256, so
that one column can be compared). Public data are the smallest public sample of each set. Writes
``benchmarks/results/families.csv``, line by line; cells that are there are not run again. ``error`` is the
mean of ‖q(D) − q(A)‖₁/n over the 256 marginals, ``max_error`` the largest |q(D) − q(A)|/n of one cell;
seconds are processor seconds.
"""

import argparse
import csv
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
import pyarrow.parquet as pq

from experiment import RESULTS, curator_of, data_folder
from sidelight.data.domain import Domain
from sidelight.data.table import Table
from sidelight.mechanisms.aim import AIM
from sidelight.mechanisms.aperture.aperture import Aperture
from sidelight.mechanisms.base import Mechanism
from sidelight.mechanisms.dualquery import DualQuery
from sidelight.mechanisms.hdmm.hdmm import HDMM
from sidelight.mechanisms.jam import JAM
from sidelight.mechanisms.mst import MST
from sidelight.mechanisms.pmw_pub import PMWPub
from sidelight.privacy.budget import Budget
from sidelight.queries.workload import Workload

PATH = RESULTS / "families.csv"
FIELDS = ["data", "mechanism", "seed", "workload", "error", "max_error", "seconds", "rounds"]
DATA = {
    "adult": ("jam_adult", "jam_adult.priv", "jam_adult.pub025"),
    "titanic": ("jam_titanic", "jam_titanic.priv", "jam_titanic.pub"),
    "fire": ("jam_fire", "jam_fire.priv", "jam_fire.pub"),
    "salary": ("jam_salary", "jam_salary.priv", "jam_salary.pub"),
    "nist-ma": ("nist_acs_coded", "nist_acs_ma2019_coded", "nist_acs_national2019_coded"),
}
MECHANISMS: dict[str, tuple[Mechanism, bool]] = {
    "mst": (MST(oversized="skip"), False),
    "hdmm": (HDMM(), True),
    "dualquery": (DualQuery(), True),
    "aim": (AIM(oversized="skip"), False),
    "jam": (JAM(oversized="skip"), False),
    "pmw-pub": (PMWPub(rounds=50), True),
    "aperture": (Aperture(oversized="skip"), False),
}
"""Each mechanism, and whether it is asked for the 256 marginals alone."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", choices=DATA, nargs="*", default=list(DATA))
    parser.add_argument("--only", choices=MECHANISMS, nargs="*", default=list(MECHANISMS))
    parser.add_argument("--seeds", type=int, default=3)
    asked = parser.parse_args()
    done = {(row["data"], row["mechanism"], row["seed"]) for row in rows()}
    for data in asked.data:
        private, public = tables(data)
        everything = Workload.marginals(private.domain, degree=3)
        judged = Workload.random_marginals(private.domain, degree=3, number=256, seed=0)
        for seed in range(asked.seeds):
            for name in asked.only:
                if (data, name, str(seed)) not in done:
                    mechanism, is_few = MECHANISMS[name]
                    workload = judged if is_few else everything
                    found = one_run(mechanism, private, public, workload, judged, seed)
                    keep({"data": data, "mechanism": name, "seed": seed, "workload": len(workload), **found})


def rows() -> list[dict[str, str]]:
    """What was run before."""
    if not PATH.exists():
        return []
    with PATH.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def keep(row: dict[str, Any]) -> None:
    """Add one line."""
    is_new = not PATH.exists()
    with PATH.open("a", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        if is_new:
            writer.writeheader()
        writer.writerow(row)
    print(row, flush=True)


def tables(data: str) -> tuple[Table, Table]:
    """The private table and a public one, as codes."""
    described, *names = DATA[data]
    sizes = json.loads((data_folder() / f"{described}.domain.json").read_text(encoding="utf-8"))
    found = []
    for name in names:
        columns = pq.read_table(data_folder() / f"{name}.parquet")
        codes = np.stack([columns[attr].to_numpy() for attr in sizes], axis=1)
        found.append(Table.of_codes(Domain.of(sizes), codes))
    return found[0], found[1]


def one_run(
    mechanism: Mechanism, private: Table, public: Table, workload: Workload, judged: Workload, seed: int
) -> dict[str, Any]:
    """Error and time of one run."""
    curator = curator_of(private, Budget(epsilon=1.0, delta=1e-9).rho(), seed=seed)
    began = time.process_time()
    given = None if mechanism.public_data == "unused" else public
    outcome = mechanism.run(curator, workload, public=given)
    seconds = time.process_time() - began
    gaps = [np.abs(outcome.count(q.attrs) - private.count(q.attrs)) / private.records for q in judged]
    return {
        "error": round(float(np.mean([gap.sum() for gap in gaps])), 4),
        "max_error": round(float(max(gap.max() for gap in gaps)), 5),
        "seconds": round(seconds, 1),
        "rounds": len(outcome.measurements) or len(outcome.events),
    }


if __name__ == "__main__":
    main()
