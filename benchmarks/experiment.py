"""What the experiments share: data, curators with repeatable noise, and small result files.

Every result carries the machine's processor count and the versions that made it, and no more. Noise is
seeded, so that a figure can be drawn again; nothing made here is a private release.
"""

import csv
import json
import math
import os
import platform
import statistics
import sys
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sidelight.curator.curator import Curator
from sidelight.data.domain import Domain
from sidelight.data.table import Table
from sidelight.privacy.budget import Budget, Cost
from sidelight.privacy.ledger import MemoryLedger
from sidelight.privacy.promise import Promise
from sidelight.privacy.unit import Unit
from sidelight.testing import SeededNoise

BENCHMARKS = Path(__file__).resolve().parent
RESULTS = BENCHMARKS / "results"
FIGURES = BENCHMARKS.parent / "docs" / "images"


def data_folder() -> Path:
    """Where the real data sets are: SIDELIGHT_DATA, or beside the repository."""
    named = os.environ.get("SIDELIGHT_DATA")
    folder = Path(named) if named else BENCHMARKS.parent.parent / "shared" / "data"
    if not folder.is_dir():
        sys.exit("The real data sets are absent: set SIDELIGHT_DATA to the folder that holds them.")
    return folder


def columns(name: str, wanted: Sequence[str] | None = None) -> dict[str, NDArray[Any]]:
    """Columns of a data set, as arrays."""
    import pyarrow.parquet as pq

    table = pq.read_table(data_folder() / f"{name}.parquet", columns=wanted)
    return {column: np.asarray(table.column(column).to_pylist()) for column in table.column_names}


def described(name: str) -> dict[str, Any]:
    """The public description of a data set: kinds, values and bounds."""
    text = (data_folder() / f"{name}.domain.json").read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text)
    return found


def coded_table(codes: Mapping[str, NDArray[Any]], sizes: Mapping[str, int]) -> Table:
    """A table of codes over the named attributes."""
    matrix = np.stack([codes[name] for name in sizes], axis=1)
    return Table.of_codes(Domain.of(sizes), matrix)


def curator_of(table: Table, cost: Cost, *, seed: int, unit: Unit | None = None) -> Curator:
    """A curator with repeatable noise and a ledger in memory."""
    who = unit if unit is not None else Unit("replace")
    ledger = MemoryLedger(Promise(Budget(epsilon=1e9, delta=1e-9), who, "experiment"))
    return Curator(table, allotment=cost, unit=who, ledger=ledger, noise=SeededNoise(seed))


def mean_and_error(values: Iterable[float]) -> tuple[float, float]:
    """The mean and its standard error; both are infinite as soon as one value is."""
    listed = list(values)
    if not all(map(math.isfinite, listed)):
        return math.inf, math.inf
    spread = statistics.stdev(listed) / math.sqrt(len(listed)) if len(listed) > 1 else 0.0
    return statistics.fmean(listed), spread


def machine() -> dict[str, Any]:
    """What a reader needs to place a time: processors and versions."""
    packages = ("numpy", "scipy")
    return {
        "processors": os.cpu_count(),
        "python": platform.python_version(),
        **{package: version(package) for package in packages},
    }


def write_rows(name: str, rows: Sequence[Mapping[str, Any]]) -> Path:
    """A CSV of results, with the machine in its first line, as a comment."""
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        file.write(f"# {json.dumps(machine())}\n")
        writer = csv.DictWriter(file, fieldnames=list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(
            {k: f"{v:.6g}" if isinstance(v, float) else v for k, v in row.items()} for row in rows
        )
    return path


def summarise(
    rows: Sequence[Mapping[str, Any]], *, by: Sequence[str], value: str
) -> dict[tuple[Any, ...], tuple[float, float]]:
    """Mean and standard error of a column, for each combination of the others."""
    groups: dict[tuple[Any, ...], list[float]] = {}
    for row in rows:
        groups.setdefault(tuple(row[name] for name in by), []).append(float(row[value]))
    return {key: mean_and_error(values) for key, values in groups.items()}
