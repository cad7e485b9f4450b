"""How large a report is, and how long it takes to build.

    OMP_NUM_THREADS=1 python benchmarks/speed/report.py   seconds; writes benchmarks/results/report_speed.json

Tables of 15, 100 and 200 attributes with 2 to 40 values each and 20,000 records, drawn from a chain in which
each attribute leans on the one before. Factored MWEM measures as many two-way marginals as there are
attributes, up to 60; the report is then built five times from the release in memory. The first time, which
also compiles the template, is told apart. Processor time is told too, since the machine may be shared.
"""

import json
import statistics
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from experiment import RESULTS, machine
from sidelight.data.domain import Domain
from sidelight.data.schema import Schema
from sidelight.data.table import Table
from sidelight.mechanisms.mwem import MWEM
from sidelight.queries.workload import Workload
from sidelight.releases.release import Release
from sidelight.releases.run import release
from sidelight.reports.report import MOST_BYTES, report
from sidelight.testing import SeededNoise

TIMES = 5
RECORDS = 20_000


def chain(attributes: int) -> Table:
    """Coded records in which half of each attribute's values follow the attribute before."""
    rng = np.random.default_rng(attributes)
    sizes = [int(size) for size in rng.choice([2, 3, 5, 8, 12, 20, 40], attributes)]
    columns = [rng.integers(0, sizes[0], RECORDS)]
    for size in sizes[1:]:
        own = rng.integers(0, size, RECORDS)
        columns.append(np.where(rng.random(RECORDS) < 0.5, columns[-1] % size, own))
    domain = Domain.of({f"attribute {index:03}": size for index, size in enumerate(sizes)})
    return Table.of_codes(domain, np.stack(columns, axis=1))


def released(attributes: int) -> Release:
    table = chain(attributes)
    pairs = [table.domain.attrs[index : index + 2] for index in range(attributes - 1)]
    mwem = MWEM(rounds=min(attributes, 60), model="components", max_component_cells=2**16, passes=10)
    return release(
        table, schema=Schema.from_domain(table.domain), epsilon=3.0, delta=1e-9, mechanism=mwem,
        workload=Workload(pairs), noise=SeededNoise(1), progress=False,
    )  # fmt: skip


def main() -> None:
    figures = {}
    with tempfile.TemporaryDirectory() as folder:
        for attributes in (15, 100, 200):
            made = released(attributes)
            taken, worked = [], []
            for _ in range(TIMES):
                start, busy = time.perf_counter(), time.process_time()
                written = report(made, Path(folder) / "report.html")
                taken.append(time.perf_counter() - start)
                worked.append(time.process_time() - busy)
            size = written.stat().st_size
            assert size < MOST_BYTES
            figures[f"{attributes} attributes"] = {
                "measurements": len(made.measurements),
                "bytes": size,
                "first seconds": round(taken[0], 3),
                "median seconds": round(statistics.median(taken[1:]), 3),
                "median processor seconds": round(statistics.median(worked[1:]), 3),
            }
    results = {"machine": machine(), "reports": figures}
    (RESULTS / "report_speed.json").write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
