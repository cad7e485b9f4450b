"""Disks fill up, pages rot, clocks jump, networks fail: a release survives it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))
import faults

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform != "linux", reason="needs fork and tmpfs")]

SCRIPT = Path(__file__).with_name("fault_table.py")
KEPT = Path(__file__).resolve().parents[2] / "benchmarks" / "results" / "faults.json"
PAGE = Path(__file__).resolve().parents[2] / "docs" / "guides" / "faults.md"


def injected(tmp_path, *names, planted=None):
    """What the script tells of these faults."""
    told = tmp_path / "told.json"
    env = os.environ | {} if planted is None else os.environ | {"SIDELIGHT_PLANTED": planted}
    command = [sys.executable, str(SCRIPT), "--json", str(told), *names]
    done = subprocess.run(command, capture_output=True, text=True, env=env, timeout=900, check=False)
    rows = json.loads(told.read_text()) if told.exists() else pytest.fail(done.stderr[-3000:])
    skipped = [row["skipped"] for row in rows if row["skipped"]]
    if skipped:
        pytest.skip(skipped[0])
    return rows


@pytest.mark.parametrize("fault", ["disk-full", "page", "clock", "two", "postgres-gone", "table"])
def test_nothing_is_lost_and_nothing_is_spent_twice(fault, tmp_path):
    (row,) = injected(tmp_path, fault)

    assert row["injected"] > 5
    assert row["again"] == 0
    assert row["wrong"] == []


@pytest.mark.parametrize("fault", faults.FOUND_BY)
def test_a_planted_fault_is_found(fault, tmp_path):
    (row,) = injected(tmp_path, fault, planted=fault)

    assert row["wrong"] != []


def test_the_guide_shows_the_figures_that_are_kept():
    shown = PAGE.read_text(encoding="utf-8")

    for row in json.loads(KEPT.read_text(encoding="utf-8")):
        assert row["wrong"] == []
        counts = f"| {row['injected']} | {row['stopped']} | {row['again']} | 0 |"
        assert any(
            line.startswith(f"| {row['fault']} |") and line.endswith(counts) for line in shown.splitlines()
        )
