"""One version of sidelight beside another: error, processor time and peak memory with the same seeds.

    python benchmarks/speed/before_after.py ../before/src                    this checkout against that one
    python benchmarks/speed/before_after.py ../before/src --limit 80 --only aperture --seeds 0 1

Runs AIM, JAM, MWEM, PMW-Pub and APERTURE on ADULT (private split, public sample pub025), ε = 1, all three-way
marginals. Each run has a process of its own with one thread, and both versions take turns. ``error`` is the
mean L1 distance to the exact marginals as a share of n; ``seconds`` are processor seconds of the run alone;
``peak_mb`` is the most resident memory above what the process held before the run (Linux). Prints a table;
writes nothing. Noise is seeded: nothing made here is a private release.
"""

import argparse
import importlib
import json
import os
import subprocess
import sys
import time
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

MECHANISMS = ("aim", "jam", "mwem", "pmw-pub", "aperture")
SIZED = ("aim", "jam", "aperture")
"""Those with a size limit."""
EPSILON, DELTA = 1.0, 1e-9
HERE = Path(__file__).resolve()
DATA = Path(os.environ.get("SIDELIGHT_DATA", HERE.parents[3] / "shared" / "data"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("before", type=Path, help="the src folder of another checkout")
    parser.add_argument("--only", nargs="+", choices=MECHANISMS, default=list(MECHANISMS))
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    parser.add_argument("--limit", type=float, default=5.0, help="size limit in MB")
    parser.add_argument("--epsilon", type=float, default=EPSILON)
    parser.add_argument("--one", help="a run, as JSON: do it here and print what was found")
    asked = parser.parse_args()
    if asked.one:
        print(json.dumps(one(**json.loads(asked.one))))
        return
    versions = {"before": asked.before, "after": HERE.parents[2] / "src"}
    found: dict[tuple[str, int], dict[str, dict[str, float]]] = {}
    print("mechanism seed | error before, after, equal? | seconds before, after, ratio | MB before, after")
    for name in asked.only:
        for seed in asked.seeds:
            run = {"mechanism": name, "seed": seed, "limit_mb": asked.limit, "epsilon": asked.epsilon}
            pair = found[name, seed] = {
                version: in_a_process(source, run) for version, source in versions.items()
            }
            print(_line(f"{name:9}{seed:5}", pair["before"], pair["after"]), flush=True)
    for name in asked.only:
        mean = {
            version: {
                what: float(np.mean([found[name, seed][version][what] for seed in asked.seeds]))
                for what in ("error", "seconds", "peak_mb")
            }
            for version in versions
        }
        print(_line(f"{name:9} mean", mean["before"], mean["after"]))


def _line(label: str, before: dict[str, float], after: dict[str, float]) -> str:
    same = "equal" if before["error"] == after["error"] else "differ"
    return (
        f"{label} | {before['error']:.6f} {after['error']:.6f} {same:6} | {before['seconds']:6.1f} "
        f"{after['seconds']:6.1f} {after['seconds'] / before['seconds']:5.2f} | "
        f"{before['peak_mb']:6.1f} {after['peak_mb']:6.1f}"
    )


def in_a_process(source: Path, run: dict[str, Any]) -> dict[str, float]:
    """A run with the sidelight of this src folder."""
    threads = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, str(HERE), ".", "--one", json.dumps(run)],
        env={**os.environ, **threads, "PYTHONPATH": str(source.resolve())},
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def one(mechanism: str, seed: int, limit_mb: float, epsilon: float) -> dict[str, float]:
    """Error, seconds and memory of one run, with the sidelight that is on the path."""
    private, public = (_table(part) for part in ("priv", "pub025"))
    _run(mechanism, *(_few(table) for table in (private, public)), seed, limit_mb, epsilon)  # loads libraries
    before = _resident()
    began = time.process_time()
    model = _run(mechanism, private, public, seed, limit_mb, epsilon)
    seconds = time.process_time() - began
    peak = _resident(most=True) - before
    asked = list(combinations(private.domain.attrs, 3))
    errors = [np.abs(private.count(attrs) - model.count(attrs)).sum() / private.records for attrs in asked]
    return {"error": float(np.mean(errors)), "seconds": seconds, "peak_mb": peak}


def _run(mechanism: str, private: Any, public: Any, seed: int, limit_mb: float, epsilon: float) -> Any:
    from sidelight.mechanisms.registry import mechanism_of
    from sidelight.privacy.budget import Budget
    from sidelight.privacy.ledger import MemoryLedger
    from sidelight.privacy.promise import Promise
    from sidelight.privacy.unit import Unit
    from sidelight.queries.workload import Workload
    from sidelight.testing import SeededNoise

    sized = {"max_model_mb": limit_mb, "oversized": "skip"} if mechanism in SIZED else {}
    recipe: Any = mechanism_of(mechanism, sized)
    unit = Unit("replace")
    ledger = MemoryLedger(Promise(Budget(epsilon=1e9, delta=DELTA), unit, "experiment"))
    rho = Budget(epsilon=epsilon, delta=DELTA).rho()
    curator = _curator_type()(private, allotment=rho, unit=unit, ledger=ledger, noise=SeededNoise(seed))
    given = None if recipe.public_data == "unused" else public
    return recipe.run(curator, Workload.marginals(private.domain, degree=3), public=given).model


def _curator_type() -> Any:
    """The curator, which older versions keep elsewhere."""
    try:
        module: Any = importlib.import_module("sidelight.curator.curator")
    except ImportError:
        module = importlib.import_module("sidelight.curator")
    return module.Curator


def _table(part: str) -> Any:
    from sidelight.data.domain import Domain
    from sidelight.data.table import Table

    described = json.loads((DATA / "jam_adult.domain.json").read_text(encoding="utf-8"))
    sizes = {attr: one if isinstance(one, int) else one["size"] for attr, one in described.items()}
    columns = pq.read_table(DATA / f"jam_adult.{part}.parquet")
    codes = np.stack([columns[attr].to_numpy() for attr in sizes], axis=1)
    return Table.of_codes(Domain.of(sizes), codes)


def _few(table: Any) -> Any:
    """A small table, to warm up with."""
    domain = table.domain.project(sorted(table.domain.attrs, key=lambda attr: table.domain.sizes[attr])[:4])
    columns = [table.domain.attrs.index(attr) for attr in domain.attrs]
    return type(table).of_codes(domain, table.codes()[:500][:, columns])


def _resident(*, most: bool = False) -> float:
    """Resident memory in MB: now, and from now on counted anew; or the most since then."""
    if not most:
        Path("/proc/self/clear_refs").write_text("5")
    wanted = "VmHWM:" if most else "VmRSS:"
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(wanted)) / 1024


if __name__ == "__main__":
    main()
