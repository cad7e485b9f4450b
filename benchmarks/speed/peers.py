"""AIM against AIM, or MST against MST: ours, smartnoise-synth's and dpmm's on ADULT, one after the other.

    SMARTNOISE_PYTHON=… DPMM_PYTHON=… python benchmarks/speed/peers.py --mechanism aim [--limit-seconds 1800]
    python benchmarks/speed/peers.py --mechanism mst --data adult_gem_reduced_coded

ε = 1, δ = 1e-9, all 3-way marginals, 80 MB. Each runs in a process of its own with one thread, under the
interpreter of an environment that holds it (ours: this one). Writes ``results/<mechanism>_peers.json`` in
``benchmarks``, with the table's name where it is another one: seconds to fit and to sample as many records as
there were, the workload error of those records, and for a peer that was stopped at the limit, its seconds
until then as a lower bound. Seconds are processor seconds, so that other work on the machine counts as little
as it can. A peer whose interpreter is not named is left out, and its last result stays. A seed that was run
is not run again, unless ``--again`` says so.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np

from experiment import BENCHMARKS, RESULTS, data_folder, machine
from sidelight.data.domain import Domain
from sidelight.data.table import Table
from sidelight.evaluation.workload_errors import workload_error
from sidelight.queries.workload import Workload

DATA = ("adult_aim_coded", "adult_gem_reduced_coded")
"""ADULT, and seven of its attributes."""
EPSILON, DELTA, LIMIT_MB = 1.0, 1e-9, 80.0
PEERS = {
    "smartnoise-synth": ("smartnoise.py", "SMARTNOISE_PYTHON"),
    "dpmm": ("dpmm.py", "DPMM_PYTHON"),
}
ONE_THREAD = {
    **{f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL", "NUMEXPR")},
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false",
    "JAX_PLATFORMS": "cpu",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mechanism", choices=["aim", "mst"], required=True)
    parser.add_argument("--limit-seconds", type=float, default=1800.0, help="processor seconds of a peer")
    parser.add_argument("--patience", type=float, default=7200.0, help="seconds on the clock of a peer")
    parser.add_argument("--limit-gb", type=float, default=14.0, help="memory at which a peer is stopped")
    parser.add_argument("--seeds", type=int, default=3, help="runs of ours, and of peers that take seconds")
    parser.add_argument("--data", choices=DATA, default=DATA[0])
    parser.add_argument("--again", action="store_true", help="run seeds anew that were run before")
    asked = parser.parse_args()

    named = "" if asked.data == DATA[0] else f"_{asked.data}"
    path = RESULTS / f"{asked.mechanism}_peers{named}.json"
    sizes, codes = load(asked.data)
    private = Table.of_codes(Domain.of(sizes), codes)
    scripts = {"sidelight": (sys.executable, "ours.py", [asked.mechanism])}
    for name, (script, variable) in PEERS.items():
        if variable in os.environ:
            scripts[name] = (os.environ[variable], f"{asked.mechanism}_{script}", [])
        else:
            print(f"{name} is left out: {variable} does not name an interpreter", flush=True)
    for name, (python, script, more) in scripts.items():
        runs = [] if asked.again else read(path).get(name, {}).get("runs", [])
        seeds = 1 if asked.mechanism == "aim" and name != "sidelight" else asked.seeds
        for seed in range(len(runs), seeds):
            if not any("stopped" in run for run in runs):
                runs.append(one_run(python, script, private, sizes, codes, asked, [str(seed), *more]))
                keep(path, asked.data, name, runs)


def read(path: Path) -> dict[str, Any]:
    """What is kept."""
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def keep(path: Path, data: str, name: str, runs: list[dict[str, Any]]) -> None:
    """Put runs beside those there are, and compare again."""
    found = read(path)
    found |= {"data": data, "epsilon": EPSILON, "delta": DELTA, "limit_mb": LIMIT_MB, "machine": machine()}
    stopped = [run for run in runs if "stopped" in run]
    result = found[name] = dict(stopped[0]) if stopped else averaged(runs)
    result["runs"] = runs
    ours = found.get("sidelight", {}).get("fit_seconds")
    for peer in PEERS:
        if ours and peer in found:
            took = found[peer].get("fit_seconds", found[peer].get("seconds_at_least"))
            found[peer]["times_ours"] = round(took / ours, 1)
    path.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    print(name, result, flush=True)


def load(data: str) -> tuple[dict[str, int], np.ndarray]:
    """The coded table and its domain."""
    import pyarrow.parquet as pq

    sizes = json.loads((data_folder() / f"{data}.domain.json").read_text(encoding="utf-8"))
    table = pq.read_table(data_folder() / f"{data}.parquet")
    return sizes, np.stack([table[attr].to_numpy() for attr in sizes], axis=1).astype(np.int64)


def one_run(
    python: str,
    script: str,
    private: Table,
    sizes: dict[str, int],
    codes: np.ndarray,
    asked: argparse.Namespace,
    more: list[str] | None = None,
) -> dict[str, Any]:
    """One mechanism, run to its end or to the limit."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        np.save(folder / "codes.npy", codes)
        (folder / "domain.json").write_text(json.dumps(sizes), encoding="utf-8")
        command = [
            python,
            str(BENCHMARKS / "peers" / script),
            name,
            str(EPSILON),
            str(DELTA),
            str(LIMIT_MB),
        ]
        with (folder / "talk.txt").open("w", encoding="utf-8") as talk:
            process = subprocess.Popen(
                [*command, *(more or [])],
                env=os.environ | ONE_THREAD | {"PYTHONUNBUFFERED": "1"},
                stdout=talk,
                stderr=subprocess.STDOUT,
            )
            stopped, spent, peak_mb = watch(process, asked)
        said = (folder / "talk.txt").read_text(encoding="utf-8").strip().splitlines()
        if stopped or process.returncode:
            rounds = sum("Selected" in line for line in said)
            return {
                "stopped": stopped or f"failed: {' '.join(said[-1:])[:200]}",
                "seconds_at_least": round(spent, 1),
                "peak_mb": peak_mb,
                **({"rounds_finished": rounds - 1} if rounds else {}),
            }
        seconds = json.loads((folder / "seconds.json").read_text(encoding="utf-8"))
        records = Table.of_codes(private.domain, np.load(folder / "records.npy"))
        workload = Workload.marginals(private.domain, degree=3)
        return {
            "fit_seconds": round(seconds["fit"], 2),
            "sample_seconds": round(seconds["sample"], 2),
            "error": round(workload_error(private, records, workload, total=private.records), 5),
            "peak_mb": peak_mb,
        }


def watch(process: "subprocess.Popen[bytes]", asked: argparse.Namespace) -> tuple[str, float, int]:
    """Wait for the end: why the process was stopped before ("" if it was not), its seconds, its peak MB."""
    began, spent, peak = time.perf_counter(), 0.0, 0
    while process.poll() is None:
        try:
            status = Path(f"/proc/{process.pid}/status").read_text(encoding="utf-8")
            times = Path(f"/proc/{process.pid}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()
            peak = max([peak, *(int(line.split()[1]) for line in status.splitlines() if "VmHWM" in line)])
            spent = sum(map(int, times[11:13])) / os.sysconf("SC_CLK_TCK")
        except OSError:
            break  # it has just ended
        limits = {
            "time limit": spent > asked.limit_seconds or time.perf_counter() - began > asked.patience,
            "memory limit": peak > asked.limit_gb * 2**20,
        }
        for reason, is_over in limits.items():
            if is_over:
                process.kill()
                process.wait()
                return reason, spent, peak // 1024
        time.sleep(0.5)
    process.wait()
    return "", spent, peak // 1024


def averaged(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """The mean of each figure over seeds."""
    return {key: round(float(np.mean([run[key] for run in runs])), 5) for key in runs[0]}


if __name__ == "__main__":
    main()
