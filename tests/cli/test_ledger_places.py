"""A ledger is moved, compared, backed up and restored from the command line."""

import json
import shutil

import numpy as np
import pytest

from commands import sidelight
from sidelight.privacy.sql_ledger import SqlLedger


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A ledger that has paid for one release."""
    monkeypatch.setenv("SIDELIGHT_STATE", str(tmp_path / "state"))
    rows = np.random.default_rng(1).integers(0, [4, 2], size=(400, 2))
    (tmp_path / "people.csv").write_text("age,sex\n" + "".join(f"{a},{s}\n" for a, s in rows))
    column = '[columns.{}]\nkind = "integer"\nlow = 0\nhigh = {}\n'
    (tmp_path / "people.toml").write_text(column.format("age", 3) + column.format("sex", 1))
    done = sidelight("ledger", "open", "l.ledger", "--epsilon", "3", "--delta", "1e-9", folder=tmp_path)
    assert done.returncode == 0
    release(tmp_path, "first")
    return tmp_path


def release(folder, out, ledger="l.ledger"):
    done = sidelight(
        "release", "people.csv", "--schema", "people.toml", "--ledger", ledger, "--epsilon", "0.5",
        "--mechanism", "mwem", "--workload", "1-way", "--set", "rounds=1", "--out", out, "--quiet",
        "--project", "flu", folder=folder,
    )  # fmt: skip
    assert done.returncode == 0, done.said


def test_a_moved_ledger_goes_on_and_both_are_proved_the_same(folder):
    moved = sidelight("ledger", "move", "l.ledger", "new.ledger", folder=folder)
    compared = sidelight("ledger", "compare", "l.ledger", "new.ledger", folder=folder)
    back = sidelight("ledger", "compare", "new.ledger", "l.ledger", folder=folder)

    assert moved.returncode == compared.returncode == 0
    assert "the second holds all" in compared.stdout
    assert back.returncode == 2
    assert "is missing in the second" in back.stderr
    release(folder, "second", "new.ledger")
    refused = sidelight("ledger", "close", "l.ledger", "x", folder=folder)
    assert refused.returncode == 2
    assert "was moved to new.ledger" in refused.stderr


def test_a_restored_ledger_is_charged_for_the_releases_it_lacks(folder):
    assert sidelight("ledger", "backup", "l.ledger", "l.backup", folder=folder).returncode == 0
    SqlLedger.open(folder / "l.ledger").set_policy({"most": {"month": 1.0}})
    release(folder, "second")
    spent = SqlLedger.open(folder / "l.ledger").spent
    (folder / "l.ledger").unlink()

    refused = sidelight("ledger", "restore", "l.backup", "l.ledger", folder=folder)
    done = sidelight(
        "ledger", "restore", "l.backup", "l.ledger", "--release", "first", "--release", "second", "--yes",
        "--json", folder=folder,
    )  # fmt: skip

    assert refused.returncode == 2
    assert "this machine saw line" in refused.stderr
    assert done.returncode == 0, done.said
    told = json.loads(done.stdout)
    assert len(told["entered"]) == 1  # the backup knew the first
    ledger = SqlLedger.open(folder / "l.ledger")
    assert ledger.spent == spent
    assert ledger.runs()[1].purpose.project == "flu"
    ledger.verify()
    release(folder, "third")


def test_a_policy_holds_again_once_the_ledger_is_restored(folder):
    SqlLedger.open(folder / "l.ledger").set_policy({"most": {"release": 0.1}})
    sidelight("ledger", "backup", "l.ledger", "l.backup", folder=folder)

    sidelight("ledger", "restore", "l.backup", "new.ledger", "--release", "first", folder=folder)

    assert SqlLedger.open(folder / "new.ledger").policy.release == 0.1


def test_a_release_of_another_ledger_is_not_charged_and_nothing_is_written(folder):
    sidelight("ledger", "backup", "l.ledger", "l.backup", folder=folder)
    sidelight("ledger", "open", "other.ledger", "--epsilon", "3", "--delta", "1e-9", folder=folder)
    release(folder, "others", "other.ledger")

    done = sidelight("ledger", "restore", "l.backup", "new.ledger", "--release", "others", folder=folder)

    assert done.returncode == 2
    assert "was paid from the ledger of 'other'" in done.stderr
    assert not (folder / "new.ledger").exists()


def test_a_ledger_is_verified_against_releases(folder, monkeypatch):
    shutil.copy(folder / "l.ledger", folder / "older")
    release(folder, "second")
    monkeypatch.setenv("SIDELIGHT_STATE", "")

    both = ["--release", "first", "--release", "second"]
    whole = sidelight("ledger", "verify", "l.ledger", *both, folder=folder)
    older = sidelight("ledger", "verify", "older", *both, folder=folder)

    assert whole.returncode == 0
    assert older.returncode == 2
    assert "which it once held" in older.stderr
