"""Fixtures that every test may use."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings

from sidelight.curator.curator import Curator
from sidelight.curator.journal import Journal
from sidelight.data.domain import Domain
from sidelight.data.table import Table
from sidelight.privacy.budget import Budget, Epsilon, Rho
from sidelight.privacy.chained_ledger import Ledger
from sidelight.privacy.ledger import MemoryLedger
from sidelight.privacy.noise import NoiseSource
from sidelight.privacy.promise import Promise
from sidelight.privacy.unit import Unit
from sidelight.queries.workload import Workload
from sidelight.testing import SeededNoise

sys.path.insert(0, str(Path(__file__).resolve().parent))
import postgres_server
import skips

# A ledger waits for the disk at every line. Nothing of a test has to outlive the machine, so its folders are
# in memory where there is room, and a line takes a hundredth of the time. Its processes inherit that.
MEMORY = Path("/dev/shm")
if "TMPDIR" not in os.environ and os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > 4 << 30:
    os.environ["TMPDIR"] = tempfile.tempdir = str(MEMORY)

# What tests see of their ledgers stays with them; processes that they start inherit it.
_state = tempfile.TemporaryDirectory(prefix="sidelight-state-")
os.environ["SIDELIGHT_STATE"] = _state.name

# A busy machine is no fault of the code: no test is timed.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")


def pytest_configure(config: pytest.Config) -> None:
    """What was skipped is listed; see skips.py."""
    config.pluginmanager.register(skips, "skips")


REPOSITORY = Path(__file__).resolve().parent.parent


def find_shared_data() -> Path | None:
    """The folder of real data sets, where there is one."""
    named = os.environ.get("SIDELIGHT_DATA")
    folder = Path(named) if named else REPOSITORY.parent / "shared" / "data"
    return folder if folder.is_dir() else None


@pytest.fixture(scope="session")
def shared_data() -> Path:
    folder = find_shared_data()
    if folder is None:
        pytest.skip("real data sets are absent: set SIDELIGHT_DATA to the folder that holds them")
    return folder


@pytest.fixture(scope="session")
def postgres() -> Iterator[postgres_server.Server]:
    """A real PostgreSQL, one a process that runs tests, and only where a test asks for it."""
    with postgres_server.running() as server:
        yield server


@pytest.fixture(scope="session")
def spark():
    """One local Spark session for the whole run; it needs Java 17."""
    pytest.importorskip("pyspark")
    java = os.path.join(os.environ["JAVA_HOME"], "bin", "java") if "JAVA_HOME" in os.environ else "java"
    if shutil.which(java) is None:
        pytest.skip("Spark needs Java 17, and there is no java on this machine")
    version = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    if not any(f'"{good}' in version for good in ("17", "21")):
        pytest.skip("Spark needs Java 17 (or 21); another version is installed")
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable  # workers, too, need sidelight
    session = (
        SparkSession.builder.master("local[1]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .getOrCreate()
    )
    yield session
    session.stop()


@dataclass(frozen=True)
class Toy:
    """A small private table with everything a curator needs around it."""

    table: Table
    workload: Workload

    def curator(
        self,
        *,
        unit: Unit | None = None,
        rho: str | None = "1/2",
        epsilon: str | None = None,
        noise: NoiseSource | None = None,
        journal: Journal | None = None,
        ledger: Ledger | None = None,
        run: str | None = None,
    ) -> tuple[Curator, Ledger]:
        who = unit if unit is not None else Unit("replace")
        cost = Epsilon(Fraction(epsilon)) if epsilon is not None else Rho(Fraction(rho or "1/2"))
        book = ledger
        if book is None:
            # A promise large enough for any test's allotment, in either currency.
            book = MemoryLedger(Promise(Budget(epsilon=1e7, delta=1e-9), who, "toy"))
        curator = Curator(
            self.table, allotment=cost, unit=who, ledger=book, run=run,
            noise=noise if noise is not None else SeededNoise(11), journal=journal,
        )  # fmt: skip
        return curator, book


@pytest.fixture(scope="session")
def toy() -> Toy:
    domain = Domain.of({"a": 2, "b": 3, "c": 4})
    rng = np.random.default_rng(1)
    a = rng.integers(0, 2, 600)
    codes = np.stack([a, np.minimum(a + rng.integers(0, 2, 600), 2), rng.integers(0, 4, 600)], axis=1)
    return Toy(Table.of_codes(domain, codes), Workload.marginals(domain, degree=2))
