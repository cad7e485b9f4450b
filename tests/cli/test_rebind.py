"""A ledger refuses another table, in every command that spends, until somebody says that it is its own."""

import contextlib
import json

import pytest

from commands import sidelight

TOML = (
    '[columns.age]\nkind = "integer"\nlow = 0\nhigh = 7\n[columns.sex]\nkind = "integer"\nlow = 0\nhigh = 1\n'
)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "people.toml").write_text(TOML)
    lines = [f"{age},{sex}" for age in range(8) for sex in (0, 1)] * 20
    (tmp_path / "people.csv").write_text("age,sex\n" + "\n".join(lines) + "\n")
    (tmp_path / "others.csv").write_text("age,sex\n" + "\n".join([*lines[:-1], "0,0"]) + "\n")
    with contextlib.chdir(tmp_path):
        assert sidelight("ledger", "open", "l.ledger", "--epsilon", 3, "--delta", "1e-9")[0] == 0
        yield tmp_path


def release(table, out):
    return sidelight(
        "release", table, "--schema", "people.toml", "--ledger", "l.ledger", "--epsilon", 0.5,
        "--workload", "2-way", "--mechanism", "mwem", "--set", "rounds=2", "--out", out, "--quiet",
    )  # fmt: skip


def mean(table):
    return sidelight(
        "mean", table, "--value", "age", "--bounds", 0, 7, "--epsilon", 0.1, "--ledger", "l.ledger"
    )


def screen(table):
    return sidelight(
        "screen", table, "--schema", "people.toml", "--public", "old.csv", "--epsilon", 0.1,
        "--workload", "1-way", "--ledger", "l.ledger",
    )  # fmt: skip


def spent():
    return json.loads(sidelight("ledger", "show", "l.ledger", "--json")[1])["spent"]


@pytest.mark.parametrize("command", [lambda table: release(table, "again"), mean, screen])
def test_every_spending_on_another_table_is_refused(folder, command):
    (folder / "old.csv").write_bytes((folder / "people.csv").read_bytes())
    assert release("people.csv", "out")[0] == 0
    before = spent()

    code, _, said = command("others.csv")

    assert code == 2
    assert "another table" in said
    assert "rebind" in said
    assert spent() == before
    assert command("people.csv")[0] == 0


def test_a_corrected_table_is_accepted_once_somebody_says_so(folder):
    assert mean("people.csv")[0] == 0
    before = spent()

    code, _, said = sidelight("ledger", "rebind", "l.ledger", "others.csv", "--schema", "people.toml")

    assert code == 0
    assert "others.csv" in said
    assert spent() == before
    assert mean("others.csv")[0] == 0
    assert release("others.csv", "out")[0] == 0
    assert mean("people.csv")[0] == 2


def test_what_is_left_is_shown_and_which_run_holds_some_back(folder):
    from sidelight.privacy.budget import Rho
    from sidelight.privacy.sql_ledger import open_ledger

    ledger = open_ledger("l.ledger")
    assert "left   at most ε = 3 for one more release\n" in sidelight("ledger", "show", "l.ledger")[1]

    run = ledger.begin(Rho(ledger.left / 2), label="half")
    shown = sidelight("ledger", "show", "l.ledger")[1]
    assert "left   at most ε = 2" in shown
    assert f"beside what {run} set aside" in shown

    ledger.begin(Rho(ledger.left), label="the rest")
    assert "left   nothing, beside" in sidelight("ledger", "show", "l.ledger")[1]


def test_rebinding_to_what_is_not_there_is_refused(folder):
    code, _, said = sidelight("ledger", "rebind", "l.ledger", "nowhere.csv")

    assert code == 2
    assert "no file 'nowhere.csv'" in said
