"""All 455 three-way marginals of ADULT: one pass against one ``ravel_multi_index`` + ``bincount`` each.

Both get columns that are already coded; the plain way gets them as int64, which suits it best.
The two take turns, so that a busy machine slows both alike; medians and the median of the paired
ratios are reported. Then ten times the records, resampled.

    OMP_NUM_THREADS=1 python benchmarks/speed/count.py
"""

import itertools
import json
import os
import platform
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from sidelight.data.domain import Domain
from sidelight.data.table import Table

ROOT = Path(__file__).resolve().parents[2]
DATA = Path(os.environ.get("SIDELIGHT_DATA", ROOT.parent / "shared" / "data"))
RESULT = ROOT / "benchmarks" / "results" / "count.json"


def plainly(
    domain: Domain, columns: dict[str, np.ndarray], marginals: list[tuple[str, ...]]
) -> list[np.ndarray]:
    answers = []
    for attrs in marginals:
        shape = domain.project(attrs).shape
        cells = np.ravel_multi_index([columns[attr] for attr in attrs], shape)
        answers.append(np.bincount(cells, minlength=domain.size(attrs)).reshape(shape))
    return answers


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def compare(
    domain: Domain, codes: np.ndarray, marginals: list[tuple[str, ...]], repeats: int
) -> dict[str, float]:
    wide = {attr: codes[:, i].astype(np.int64) for i, attr in enumerate(domain.attrs)}
    table = Table.of_codes(domain, [np.ascontiguousarray(codes[:, i]) for i in range(codes.shape[1])])
    for one, other in zip(plainly(domain, wide, marginals), table.count_many(marginals), strict=True):
        assert np.array_equal(one, other)
    pairs = [
        (seconds(lambda: plainly(domain, wide, marginals)), seconds(lambda: table.count_many(marginals)))
        for _ in range(repeats)
    ]
    plain, ours = zip(*pairs, strict=True)
    return {
        "records": len(codes),
        "plain_ms": round(1e3 * statistics.median(plain), 2),
        "ours_ms": round(1e3 * statistics.median(ours), 2),
        "plain_fastest_ms": round(1e3 * min(plain), 2),
        "ours_fastest_ms": round(1e3 * min(ours), 2),
        "times_faster": round(statistics.median(p / o for p, o in pairs), 2),
        "times_faster_fastest": round(min(plain) / min(ours), 2),
    }


def main() -> None:
    domain = Domain.of(json.loads((DATA / "jam_adult.domain.json").read_text()))
    table = pq.read_table(DATA / "jam_adult.priv.parquet")
    codes = np.column_stack([table[attr].to_numpy() for attr in domain.attrs])
    marginals = list(itertools.combinations(domain.attrs, 3))
    ten = codes[np.random.default_rng(0).integers(0, len(codes), 10 * len(codes))]
    once, tenfold = compare(domain, codes, marginals, 25), compare(domain, ten, marginals, 5)
    result = {
        "what": f"{len(marginals)} three-way marginals of ADULT ({len(domain)} attributes), one core",
        "machine": {"cpus": os.cpu_count(), "python": platform.python_version(), "numpy": np.__version__},
        "target": "4 times faster; ten times the records at most ten times the time",
        "once": once,
        "tenfold": tenfold,
        "growth": round(tenfold["ours_fastest_ms"] / once["ours_fastest_ms"], 2),
    }
    RESULT.parent.mkdir(parents=True, exist_ok=True)
    RESULT.write_text(json.dumps(result, indent=2) + "\n")
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
