"""Whoever saw a ledger's later lines refuses an older copy of it."""

import shutil
from fractions import Fraction

import pytest

from sidelight.errors import LedgerError
from sidelight.privacy.budget import Budget
from sidelight.privacy.event import Gaussian
from sidelight.privacy.promise import Promise
from sidelight.privacy.sql_ledger import SqlLedger
from sidelight.privacy.unit import Unit

BUDGET = Budget(epsilon=1.0, delta=1e-9)
PROMISE = Promise(BUDGET, Unit("replace"), "people")


@pytest.fixture
def state(tmp_path, monkeypatch):
    monkeypatch.setenv("SIDELIGHT_STATE", str(tmp_path / "state"))
    return tmp_path / "state"


@pytest.fixture
def path(tmp_path, state):
    SqlLedger.create(tmp_path / "people.ledger", PROMISE)
    return tmp_path / "people.ledger"


def spend(path):
    ledger = SqlLedger.open(path)
    run = ledger.begin(BUDGET.rho() / 4, label="a run")
    ledger.append(Gaussian.at(BUDGET.rho() / 4, what="age", l2_squared=Fraction(2)), run=run)
    ledger.close(run)


def test_a_copy_that_was_put_back_is_refused_and_the_newest_one_is_not(path, tmp_path):
    spend(path)
    shutil.copy(path, tmp_path / "kept")
    spend(path)
    shutil.copy(path, tmp_path / "newest")

    shutil.copy(tmp_path / "kept", path)

    with pytest.raises(
        LedgerError, match=r"lacks line 7, which this machine saw.*ledger restore.*Nothing was charged"
    ):
        SqlLedger.open(path)
    shutil.copy(tmp_path / "newest", path)
    spend(path)


def test_two_copies_cannot_both_be_spent_from(path, tmp_path):
    spend(path)
    other = shutil.copy(path, tmp_path / "copy.ledger")
    spend(path)

    with pytest.raises(LedgerError, match="older copy"):
        SqlLedger.open(other)


def test_a_run_that_is_killed_has_shown_what_it_reserved(path, tmp_path):
    shutil.copy(path, tmp_path / "kept")
    SqlLedger.open(path).begin(BUDGET.rho() / 2, label="killed later")

    shutil.copy(tmp_path / "kept", path)

    with pytest.raises(LedgerError, match="lacks line 2"):
        SqlLedger.open(path)


def test_another_machine_that_saw_nothing_notices_nothing(path, tmp_path, monkeypatch):
    shutil.copy(path, tmp_path / "kept")
    spend(path)
    shutil.copy(tmp_path / "kept", path)

    monkeypatch.setenv("SIDELIGHT_STATE", str(tmp_path / "another machine"))

    assert SqlLedger.open(path).spent == 0


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b'{"line": "7"}', b'{"line": 7, "hash": "x", "when": ""}']
)
def test_a_damaged_memory_is_no_memory(path, state, content):
    for kept in (state / "heads").iterdir():
        kept.write_bytes(content)

    spend(path)

    assert all(b'"line": 4' in kept.read_bytes() for kept in (state / "heads").iterdir())


def test_nothing_is_kept_where_nothing_can_be_or_nobody_wants_it(path, tmp_path, state, monkeypatch):
    (tmp_path / "file").touch()
    for where in (str(tmp_path / "file" / "below"), ""):
        monkeypatch.setenv("SIDELIGHT_STATE", where)
        spend(path)

    assert all(b'"line": 1,' in kept.read_bytes() for kept in (state / "heads").iterdir())


def test_what_is_kept_tells_nothing_and_is_its_owners_alone(path, state):
    spend(path)

    (kept,) = (state / "heads").iterdir()
    assert "people" not in kept.read_text() + kept.name
    assert kept.stat().st_mode & 0o077 == 0


def test_without_being_told_where_it_is_kept_in_the_users_own_folder(path, tmp_path, monkeypatch):
    monkeypatch.delenv("SIDELIGHT_STATE")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "xdg"))
    spend(path)
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    spend(path)

    for folder in ("xdg/sidelight/heads", "home/.local/state/sidelight/heads"):
        assert len(list((tmp_path / folder).iterdir())) == 1
