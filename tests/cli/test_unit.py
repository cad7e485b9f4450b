"""The unit on the command line: schema and ledger say the same, or nothing is read."""

import pytest

import commands
from sidelight.privacy.sql_ledger import open_ledger

FIVE = '[unit]\nrelation = "add-or-remove"\nrecords = 5\n'
COLUMNS = (
    '[columns.a]\nkind = "integer"\nlow = 0\nhigh = 2\n[columns.b]\nkind = "integer"\nlow = 0\nhigh = 1\n'
)


def sidelight(*args, folder):
    done = commands.sidelight(*args, folder=folder)
    return done.returncode, done.said


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "people.csv").write_text("a,b\n" + "0,1\n2,0\n1,1\n" * 100)
    (tmp_path / "five.toml").write_text(FIVE + COLUMNS)
    (tmp_path / "silent.toml").write_text(COLUMNS)
    opened = ["ledger", "open", "people.ledger", "--epsilon", 5, "--delta", 1e-9]
    assert sidelight(*opened, folder=tmp_path)[0] == 0
    return tmp_path


@pytest.mark.parametrize(
    "command",
    [
        ["release", "people.csv", "--ledger", "people.ledger", "--epsilon", 1, "--workload", "2-way"],
        ["release", "people.csv", "--ledger", "people.ledger", "--epsilon", 1, "--dry-run"],
        ["plan", "--ledger", "people.ledger", "--epsilon", 1, "--workload", "2-way"],
        ["plan", "--epsilon", 1, "--delta", 1e-9, "--workload", "2-way", "--unit", "replace"],
        ["screen", "people.csv", "--public", "people.csv", "--ledger", "people.ledger", "--epsilon", 1],
    ],
)
def test_a_schema_of_another_unit_is_refused_before_anything_is_read(folder, command):
    code, said = sidelight(*command, "--schema", "five.toml", folder=folder)
    assert code == 2
    assert "the schema declares 'add-or-remove' of up to 5 records a person" in said
    assert not list(open_ledger(folder / "people.ledger").runs())
    assert not (folder / "release").exists()


def test_a_schema_that_says_nothing_of_the_unit_takes_the_ledgers(folder):
    opened = ["ledger", "open", "five.ledger", "--epsilon", 5, "--delta", 1e-9, "--unit", "add-or-remove"]
    assert sidelight(*opened, "--records", 5, folder=folder)[0] == 0
    asked = ["release", "people.csv", "--ledger", "five.ledger", "--epsilon", 1, "--workload", "2-way"]
    for name in ("five", "silent"):
        # To the ledger these are two schemas.
        assert sidelight(*asked, "--schema", f"{name}.toml", "--out", name, "--yes", folder=folder)[0] == 0
        assert '"records": 5' in (folder / name / "release.json").read_text()
