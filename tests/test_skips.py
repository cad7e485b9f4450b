"""What was skipped is listed with its reason, and CI fails where something skips that could have run."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

import skips

TESTS = Path(__file__).resolve().parent
PLANTED = """
import pytest

def test_one(): pytest.skip("no part called whatnot: install it")
def test_two(): pytest.skip("no Chromium here: install it")
def test_three(): pytest.skip("no part called whatnot: install it")
def test_four(): pass
"""


def outcome_of(folder, *, ci, browser, workers=()):
    """Run the planted tests in a process of their own; a browser is on the path, or is not."""
    (folder / "test_planted.py").write_text(PLANTED, encoding="utf-8")
    (folder / "bin").mkdir()
    if browser:
        program = folder / "bin" / "chromium"
        program.write_text("#!/bin/sh\n", encoding="utf-8")
        program.chmod(0o755)
    environment = {
        "PATH": str(folder / "bin"),
        "PYTHONPATH": os.pathsep.join([str(TESTS), *sys.path]),
        "CI": "true" if ci else "",
    }
    command = [sys.executable, "-m", "pytest", "-q", "-p", "skips", *workers, "test_planted.py"]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("workers", [(), ("-n", "1")], ids=["alone", "workers"])
def test_a_skip_that_no_lack_explains_fails_in_ci(tmp_path, workers):
    done = outcome_of(tmp_path, ci=True, browser=False, workers=workers)

    assert done.returncode == 1, done.stdout + done.stderr
    assert "2  no part called whatnot: install it  ** could have run **" in done.stdout
    assert "1  no Chromium here: install it\n" in done.stdout


def test_elsewhere_it_is_listed_and_nothing_fails(tmp_path):
    done = outcome_of(tmp_path, ci=False, browser=True)

    assert done.returncode == 0, done.stdout + done.stderr
    assert "2  no part called whatnot: install it  (fails in CI)" in done.stdout


def test_a_lack_explains_nothing_where_the_part_is_there(monkeypatch):
    reason = "no Chromium here: install Debian's chromium package"
    monkeypatch.setattr(skips.shutil, "which", lambda name: None)
    assert skips.is_expected(reason)

    monkeypatch.setattr(skips.shutil, "which", lambda name: f"/usr/bin/{name}")
    assert not skips.is_expected(reason)


def said() -> set[str]:
    """Every reason that a test of ours gives for skipping."""
    found = set()
    for path in {*TESTS.rglob("*.py")} - {TESTS / "skips.py", TESTS / "test_skips.py"}:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.add(node.value)
    return found


@pytest.mark.parametrize("lack", skips.LACKS, ids=lambda lack: lack.says)
def test_every_lack_on_the_list_is_one_that_a_test_names(lack):
    assert any(text.startswith(lack.says) for text in said())
