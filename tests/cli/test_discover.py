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


def test_where_no_label_was_found_nothing_is_written_and_the_price_is_said(folder):
    declared = (
        SCHEMA + '\n[columns.drug]\n# Asked at the desk.\nkind = "categorical"\nlabels = ["d9"]  # old\n'
    )
    (folder / "visits.toml").write_text(declared)

    code, said, _ = sidelight(
        "discover", *PAID, "--column", "drug", "--at-least", 5000, "--epsilon", 0.1, folder=folder
    )

    assert code == 0, said
    assert "0 labels were found" in said
    assert "The schema stays as it is." in said
    assert "was paid for it" in said
    assert "wrote" not in said
    assert (folder / "visits.toml").read_text() == declared
    assert len(list(open_ledger(folder / "visits.ledger").runs())) == 1


def test_comments_of_a_changed_column_stay_and_the_change_is_told(folder):
    own = (
        '\n[columns.drug]  # the first one\n# Asked at the desk.\nkind = "categorical"  # words\n'
        'labels = [\n  "d9",  # "no longer" given\n  "#8",\n]\nmissing = true  # nobody knows\n\n# the end\n'
    )
    (folder / "visits.toml").write_text(SCHEMA + own)

    code, said, _ = sidelight("discover", *PAID, "--column", "drug", "--epsilon", 0.8, folder=folder)

    text = (folder / "visits.toml").read_text()
    assert code == 0, said
    assert Schema.from_toml(text).column("drug").labels == ("d9", "#8", "d0", "d1", "d2", "d3")
    for line in own.splitlines():
        assert line.partition("#")[2].removeprefix('8",') in text
    assert "missing = true  # nobody knows\n" in text
    assert "column 'drug' has 6 labels, and outside = \"other\"" in said
    assert "It is another schema now" in said


def test_without_a_schema_a_new_one_is_begun_with_what_was_found_and_paid(folder):
    (folder / "visits.toml").unlink()
    asked = ["discover", "visits.csv", "--epsilon", 1, "--delta", 1e-9]

    code, said, _ = sidelight(*asked, "--column", "drug", folder=folder)

    assert code == 0, said
    assert "wrote visits.toml, a new schema: column 'drug' has 4 labels" in said
    assert "one person can have more records" in said
    assert "recorded nowhere" in said
    schema = Schema.read(folder / "visits.toml")
    assert schema.column("drug").labels == ("d0", "d1", "d2", "d3")
    assert schema.says_unit
    assert "ε = 1 at δ = 1e-09 was paid for it" in (folder / "visits.toml").read_text()

    before = (folder / "visits.toml").read_bytes()
    code, said, _ = sidelight(*asked, "--column", "cost", "--bounds", 0, 100, folder=folder)
    assert code == 2
    assert "--schema visits.toml" in said
    assert (folder / "visits.toml").read_bytes() == before

    code, said, _ = sidelight(
        *asked, "--schema", "visits.toml", "--column", "cost", "--bounds", 0, 100, folder=folder
    )
    assert code == 0, said
    assert [column.name for column in Schema.read(folder / "visits.toml").columns] == ["drug", "cost"]


def test_a_new_schema_has_the_unit_of_its_ledger(folder):
    asked = ["discover", "visits.csv", "--ledger", "visits.ledger", "--epsilon", 0.8]

    code, said, _ = sidelight(*asked, "--column", "drug", "--out", "new.toml", folder=folder)

    assert code == 0, said
    unit = Schema.read(folder / "new.toml").unit
    assert (unit.relation, unit.person) == ("add-or-remove", "who")


def test_a_new_schema_that_cannot_be_named_or_has_no_column_is_refused_before_anything_is_paid(folder):
    asked = ["discover", "--epsilon", 0.8, "--ledger", "visits.ledger"]

    for more, what in (
        (["visit*.csv", "--column", "drug"], "--out"),
        (["visits.csv", "--records"], "--schema"),
    ):
        code, said, _ = sidelight(*asked, *more, folder=folder)
        assert code == 2
        assert what in said
    assert not list(open_ledger(folder / "visits.ledger").runs())


def test_where_there_is_no_schema_and_no_label_was_found_no_file_is_made(folder):
    asked = ["discover", "visits.csv", "--epsilon", 0.001, "--delta", 1e-9, "--column", "drug"]

    code, said, _ = sidelight(*asked, "--out", "new.toml", folder=folder)

    assert code == 0, said
    assert "nothing was written" in said
    assert not (folder / "new.toml").exists()


def test_without_a_schema_a_person_counts_once_where_their_column_is_named(folder):
    rows = ["who,drug", *(f"p{i},common" for i in range(300)), *["hog,rare"] * 300]
    (folder / "hog.csv").write_text("\n".join(rows) + "\n")
    asked = ["discover", "hog.csv", "--column", "drug", "--epsilon", 3, "--delta", 1e-9]

    code, said, told = sidelight(*asked, "--person", "who", folder=folder)
    assert code == 0, said
    assert "common" in told
    assert "rare" not in told
    assert "nothing says who each record is about" not in said
    assert Schema.read(folder / "hog.toml").unit.person == "who"

    code, said, _ = sidelight(*asked, "--out", "other.toml", folder=folder)
    assert code == 0, said
    assert said.index("one record is protected, not one person") < said.index("labels were found")
    assert "fewer than 10 records is never told" in said


def test_a_misspelt_column_is_guessed_for_nothing(folder):
    code, said, _ = sidelight("discover", *PAID, "--column", "drugg", "--epsilon", 1, folder=folder)

    assert code == 2
    assert "there is no column 'drugg'" in said
    assert "Did you mean 'drug'?" in said
    assert not open_ledger(folder / "visits.ledger").runs()
