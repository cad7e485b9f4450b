"""kill -9 at any moment: the same command goes on, ends with the same release, and has paid for every draw.

A kill in the one moment between a draw and its journal costs one event, paid again, or is refused by the
budget; at every other moment nothing is paid twice. Before every effect on disk, and at random moments, for
every mechanism. Noise is steady in these runs (``faults.steady_noise``), so "the same release" is meant
to the last bit.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))
import faults
import scene

from torched import torched

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and SIGKILL")]

KILLER = Path(__file__).with_name("killer.py")
MEMORY = Path("/dev/shm")  # kill -9 does not ask what a disk still holds, so a disk need not be waited for


def killed(run, how, number, planted=None):
    """What a killer tells after its work."""
    where = MEMORY if os.access(MEMORY, os.W_OK) else None
    single = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    with tempfile.TemporaryDirectory(dir=where) as folder:
        done = subprocess.run(
            [sys.executable, str(KILLER), folder, run, how, str(number), *([planted] if planted else [])],
            capture_output=True, text=True, timeout=900, env=os.environ | single,
        )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


@pytest.mark.parametrize("run", [pytest.param(run, marks=torched(run)) for run in scene.RUNS])
def test_killed_at_random_moments_a_run_ends_as_if_it_had_not_been(run):
    moments = 40 if run in ("mwem", "aperture") else 10

    told = killed(run, "moments", moments)

    assert told["kills"] >= moments
    assert told["expected"]["runs"] == 1
    assert told["expected"]["open"] == 0
    assert told["expected"]["journal is what was paid"]
    assert told["expected"]["release is what was paid"]
    assert told["wrong"] == []
    assert sum(told["again"]) < told["kills"] / 2


# An event has six effects: a stride that shares no factor with six comes to each of them.
@pytest.mark.parametrize(
    ("run", "every"),
    [("mwem", 1), ("aperture", 7), ("jam", 5), pytest.param("gem", 7, marks=torched("gem"))],
)
def test_killed_before_any_effect_a_run_ends_as_if_it_had_not_been(run, every):
    told = killed(run, "effects", every)

    assert {"INSERT", "COMMIT", "fsync", "half of a journal's line"} <= set(told["points"])
    assert told["kills"] >= len(told["points"]) // every
    assert told["expected"]["left behind"] == ["out"]
    assert told["wrong"] == []
    assert set(told["costly"]) == {"half of a journal's line"}


@pytest.mark.parametrize("fault", faults.PLANTED)
def test_a_planted_fault_is_found(fault):
    told = killed("mwem", "effects", 1, planted=fault)

    assert told["kills"] > 0
    assert told["wrong"] != []
