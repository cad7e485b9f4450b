"""A table that is not in memory is read as often as the plan said, and no more."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sidelight as sl
from sidelight.data.engines.duckdb import DuckDBSource
from sidelight.data.table import Table
from sidelight.releases.plan import Plan
from sidelight.testing import SeededNoise

SIZES = {"a": 4, "b": 3, "c": 2, "d": 5}
SCHEMA = sl.Schema.from_domain(SIZES)


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(1)
    return pa.table({name: rng.integers(0, size, 500) for name, size in SIZES.items()})


@pytest.fixture
def reads(monkeypatch):
    """Every statement that reads the private file, as it is sent."""
    seen = []
    monkeypatch.setattr("sidelight.data.reading.read._LARGE_VALUES", 0)
    for name in ("fetch", "stream"):
        whole = getattr(DuckDBSource, name)

        def noted(self, sql, whole=whole):
            seen.append(sql)
            return whole(self, sql)

        monkeypatch.setattr(DuckDBSource, name, noted)
    return seen


@pytest.mark.parametrize("unit", ["replace", "add-or-remove"])
@pytest.mark.parametrize("quality", [0.02, 0.0])
@pytest.mark.parametrize("mechanism", ["aim", "mst", "mwem", "hdmm", "ladder", "jam", "pmw-pub", "aperture"])
def test_a_file_is_read_as_often_as_the_plan_says(reads, tmp_path, table, mechanism, quality, unit):
    pq.write_table(table, tmp_path / "t.parquet")
    asked = {
        "schema": SCHEMA, "epsilon": 1.0, "delta": 1e-9, "workload": "3-way", "mechanism": mechanism,
        "unit": unit, "quality_share": quality, "bins": "as declared",
        "public": Table.read(table, SCHEMA) if mechanism in ("jam", "pmw-pub") else None,
    }  # fmt: skip
    planned = Plan.of(**asked)
    reads.clear()

    sl.release(tmp_path / "t.parquet", **asked, noise=SeededNoise(3), progress=False)

    assert len(reads) == planned.passes if quality else len(reads) <= planned.passes
    assert planned.passes == (2 if quality else 3)


def test_counts_that_do_not_fit_in_memory_are_counted_again_and_the_plan_says_so(monkeypatch):
    asked = {"schema": SCHEMA, "epsilon": 1.0, "delta": 1e-9, "mechanism": "aim"}
    assert Plan.of(**asked).passes == 2

    monkeypatch.setattr("sidelight.curator.curator._CACHE_BYTES", 100)

    assert Plan.of(**asked).passes is None
