"""``sidelight discover``: what it finds goes into the schema file, with its price; all else there stays."""

import json

import numpy as np
import pytest

import commands
from sidelight.data.schema import Schema
from sidelight.privacy.sql_ledger import open_ledger

SCHEMA = """# Visits to the clinic.
[unit]
relation = "add-or-remove"
person = "who"
records = 2

# A comment of mine.
[columns.sex]
kind = "integer"
low = 0
high = 1
"""
PAID = ["visits.csv", "--schema", "visits.toml", "--ledger", "visits.ledger"]


def sidelight(*args, folder):
    done = commands.sidelight(*args, folder=folder)
    return done.returncode, done.said, done.stdout


@pytest.fixture
def folder(tmp_path):
    draw = np.random.default_rng(3)
    lines = [f"p{i},{i % 2},d{draw.integers(4)},{draw.integers(100)}" for i in draw.integers(0, 2000, 6000)]
    (tmp_path / "visits.csv").write_text("who,sex,drug,cost\n" + "\n".join([*lines, "p1,1,secret,5"]) + "\n")
    (tmp_path / "visits.toml").write_text(SCHEMA)
    opened = ["ledger", "open", "visits.ledger", "--epsilon", 3, "--delta", 1e-9, "--person", "who"]
    assert sidelight(*opened, "--unit", "add-or-remove", folder=tmp_path)[0] == 0
    return tmp_path


def test_labels_edges_and_records_go_into_the_schema_and_a_release_uses_them(folder):
    asked = ["discover", *PAID, "--epsilon", 0.8]
    for more in (["--column", "drug"], ["--column", "cost", "--bounds", 0, 100, "--bins", 4], ["--records"]):
        code, said, _ = sidelight(*asked, *more, folder=folder)
        assert code == 0, said
        assert "secret" not in said

    text = (folder / "visits.toml").read_text()
    assert text.startswith("# Visits to the clinic.\n[unit]\n# About 95% of the people")
    assert "# A comment of mine.\n[columns.sex]" in text
    assert "ε = 0.8 at δ = 1e-09 was paid for it" in text
    schema = Schema.from_toml(text)
    assert schema.column("drug").labels == ("d0", "d1", "d2", "d3")
    assert len(schema.column("cost").edges) == 5
    assert 4 <= schema.unit.records <= 12
    assert len(list(open_ledger(folder / "visits.ledger").runs())) == 3
    released = ["release", *PAID, "--epsilon", 0.5]
    code, said, _ = sidelight(*released, "--workload", "2-way", "--yes", folder=folder)
    assert code == 0, said
    assert '"person": "who"' in (folder / "release" / "release.json").read_text()


def test_what_was_found_may_go_to_another_file_and_to_a_program(folder):
    asked = ["discover", "visits.csv", "--schema", "visits.toml", "--delta", 1e-9, "--epsilon", 1, "--json"]

    code, said, told = sidelight(*asked, "--column", "drug", "--out", "new.toml", folder=folder)

    assert code == 0, said
    assert set(json.loads(told)["labels"]) == {"d0", "d1", "d2", "d3"}
    assert (folder / "visits.toml").read_text() == SCHEMA
    assert (folder / "new.toml").read_text().startswith(SCHEMA)
    assert Schema.read(folder / "new.toml").column("drug").declared == 4


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ([], "--column, or ask for --records"),
        (["--column", "drug", "--records"], "--column, or ask for --records"),
        (["--column", "who"], "cannot be an attribute"),
        (["--column", "drug", "--out", "no/such/folder.toml"], "the schema cannot be made"),
        (["--column", "drug", "--epsilon", "9"], "visits"),
    ],
)
def test_bad_input_costs_nothing(folder, more, said):
    asked = ["discover", *PAID, "--epsilon", 0.8]

    code, told, _ = sidelight(*asked, *more, folder=folder)

    assert code in (2, 3)
    assert said in told
    assert not list(open_ledger(folder / "visits.ledger").runs())
    assert (folder / "visits.toml").read_text() == SCHEMA
