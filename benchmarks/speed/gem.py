"""GEM-Pub on jam_adult: seconds a round and of a whole run, on a processor or a GPU.

    python benchmarks/speed/gem.py --device cpu --rounds 5 150 --stop-after 15 --public-steps 100
    python benchmarks/speed/gem.py --device cuda --rounds 5 150

B = 1000 rows, ε = 1, all 455 three-way marginals; the paper's network (latent 512, two layers of 1024) unless
``--small`` asks for our default. Needs NumPy and torch, and ``src`` on the path. The table is jam_adult where
its files are (``SIDELIGHT_DATA``), else a made-up one with as many values and records; the result says which.
``seconds`` are on the clock, ``cpu_seconds`` those of the processors. With ``--stop-after`` a run of so many
rounds is left after the first few: a round costs the same from the ninth on, where a step has as many
marginals as it may have. Adds its lines to ``benchmarks/results/gem.json``, or writes ``$OUT/gem.json`` where
OUT is set.
"""

import argparse
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
import torch

from experiment import BENCHMARKS, RESULTS, curator_of
from sidelight.data.domain import Domain
from sidelight.data.table import Table
from sidelight.fit.generator import Generator
from sidelight.mechanisms.gem.gem_pub import GEMPub
from sidelight.privacy.budget import Budget
from sidelight.queries.workload import Workload

SIZES = (2, 2, 5, 6, 7, 9, 15, 16, 16, 32, 32, 32, 32, 32, 42)
"""Numbers of values of jam_adult's attributes."""
RECORDS = 32_384, 4_096
"""Private and public records of a made-up table."""
PAPER = {"latent": 512, "width": 1024, "layers": 2}


class EnoughRounds(Exception):
    """The rounds asked for are over."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--rounds", type=int, nargs="+", default=[5])
    parser.add_argument("--forms", nargs="+", choices=("gem", "margnet"), default=["gem", "margnet"])
    parser.add_argument("--public-steps", type=int, default=2000)
    parser.add_argument("--stop-after", type=int, default=None, help="leave a run after so many rounds")
    parser.add_argument("--small", action="store_true", help="our default network instead of the paper's")
    asked = parser.parse_args()
    name, private, public = tables()
    workload = Workload.marginals(private.domain, degree=3)
    lines = []
    for form in asked.forms:
        for rounds in asked.rounds:
            mechanism = GEMPub(
                rounds=rounds, form=form, device=asked.device, public_steps=asked.public_steps,
                **({} if asked.small else PAPER),
            )  # fmt: skip
            facts = {"table": name, "small": asked.small, "device": device(asked.device)}
            lines.append(facts | one_run(mechanism, private, public, workload, asked.stop_after))
            print(json.dumps(lines[-1]), flush=True)
            keep(lines[-1:])


def one_run(
    mechanism: GEMPub, private: Table, public: Table, workload: Workload, stop_after: int | None
) -> dict[str, Any]:
    """Seconds of the start, of a round and of all, and the error where the run came to its end."""
    budget = Budget(epsilon=1.0, delta=1e-9)
    curator = curator_of(private, budget.rho(), seed=0)
    ends = [(time.perf_counter(), time.process_time())]
    train = Generator.train

    def timed(*given: Any, **how: Any) -> list[float]:
        losses = train(*given, **how)
        ends.append((time.perf_counter(), time.process_time()))
        if stop_after is not None and len(ends) == stop_after + 2:
            raise EnoughRounds
        return losses

    outcome = None
    Generator.train = timed  # type: ignore[method-assign, assignment]
    try:
        outcome = mechanism.run(curator, workload, public=public)
        whole = time.perf_counter() - ends[0][0]
    except EnoughRounds:
        whole = None
    finally:
        Generator.train = train  # type: ignore[method-assign]
    (start, start_cpu), *rounds = np.diff(np.array(ends), axis=0).tolist()
    late = np.mean(rounds[mechanism.at_once :] or rounds, axis=0)
    found = {
        "form": mechanism.form,
        "rounds": mechanism.rounds,
        "rounds_run": len(rounds),
        "batch": mechanism.batch,
        "width": mechanism.width,
        "public_steps": mechanism.public_steps,
        "seconds": None if whole is None else round(whole, 2),
        "start_seconds": round(start, 2),
        "start_cpu_seconds": round(start_cpu, 2),
        "seconds_a_round": round(float(late[0]), 3),
        "cpu_seconds_a_round": round(float(late[1]), 3),
    }
    if outcome is not None:
        gaps = [np.abs(outcome.count(q.attrs) - private.count(q.attrs)).sum() for q in workload]
        found["error"] = round(float(np.mean(gaps)) / private.records, 4)
    return found


def tables() -> tuple[str, Table, Table]:
    """Private and public records, and what they are."""
    folder = Path(os.environ.get("SIDELIGHT_DATA", BENCHMARKS.parents[1] / "shared" / "data"))
    try:
        import pyarrow.parquet as pq

        sizes = json.loads((folder / "jam_adult.domain.json").read_text(encoding="utf-8"))
        found = []
        for name in ("jam_adult.priv", "jam_adult.pub025"):
            columns = pq.read_table(folder / f"{name}.parquet")
            codes = np.stack([columns[attr].to_numpy() for attr in sizes], axis=1)
            found.append(Table.of_codes(Domain.of(sizes), codes))
    except (ImportError, OSError):
        domain = Domain.of({f"x{place}": size for place, size in enumerate(SIZES)})
        return "made up", made_up(domain, RECORDS[0], 1), made_up(domain, RECORDS[1], 2)
    return "jam_adult", found[0], found[1]


def made_up(domain: Domain, records: int, seed: int) -> Table:
    """Every attribute tells of one hidden thing, with skew."""
    rng = np.random.default_rng(seed)
    hidden = rng.beta(1, 3, records)
    columns = [
        np.minimum((np.clip(hidden + rng.normal(0, 0.1, records), 0, 0.999) * size).astype(int), size - 1)
        for size in domain.shape
    ]
    return Table.of_codes(domain, np.stack(columns, axis=1))


def device(asked: str) -> str:
    """The processor's threads, or the card's name."""
    return torch.cuda.get_device_name() if asked == "cuda" else f"cpu, {torch.get_num_threads()} threads"


def keep(lines: list[dict[str, Any]]) -> None:
    """Add lines to the results, in place of earlier ones of the same run."""
    path = Path(os.environ["OUT"]) / "gem.json" if "OUT" in os.environ else RESULTS / "gem.json"
    told = json.loads(path.read_text(encoding="utf-8"))["runs"] if path.exists() else []
    key = ("table", "small", "device", "form", "rounds", "public_steps")
    fresh = [tuple(line[name] for name in key) for line in lines]
    kept = [line for line in told if tuple(line[name] for name in key) not in fresh]
    about = {"torch": torch.__version__, "numpy": np.__version__, "runs": kept + lines}
    path.write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
