"""Commands that once paid before they were refused, or stopped: they are refused, and nothing is charged."""

import json

import pytest

import commands
from sidelight.privacy.sql_ledger import open_ledger

ONE = 2**20
COLUMNS = (
    '[columns.age]\nkind = "integer"\nlow = 0\nhigh = 7\n[columns.sex]\nkind = "integer"\nlow = 0\nhigh = 1\n'
)


def linear(attr, shape, numerators):
    return {"query": "linear", "attrs": [attr], "shape": shape, "numerators": numerators}


WORKLOADS = {
    "linear": [
        linear("age", [8], [ONE * (i % 3 - 1) // 2 for i in range(8)]),
        linear("sex", [2], [ONE, -ONE]),
    ],
    "constant": [linear("age", [8], [ONE] * 8), linear("sex", [2], [ONE, ONE])],
    "short": [linear("age", [8], [ONE, -ONE]), linear("sex", [2], [ONE, 0])],
    "none": [linear("sex", [2], [])],
    "floats": [linear("age", [8], [0.5] * 7 + [0.1])],
    "zeros": [linear("age", [8], [0] * 8)],
    "beyond": [linear("sex", [2], [ONE + 1, 0])],
    "another shape": [linear("sex", [1, 2], [ONE, 0])],
    "total as a coefficient": [{"query": "fourier", "attrs": []}, {"query": "fourier", "attrs": ["sex"]}],
    "a coefficient twice": [{"query": "fourier", "attrs": ["sex", "sex"]}],
    "a wide coefficient": [{"query": "fourier", "attrs": ["age"]}],
    "two codes for one": [{"query": "cell", "attrs": ["age"], "values": [1, 2]}],
    "a code that is not there": [{"query": "cell", "attrs": ["age"], "values": [9]}],
    "a range of text": [{"query": "range", "bounds": [["age", "x", 2]]}],
    "half a range": [{"query": "range", "bounds": [["age", 0]]}],
    "weights far apart": [{"attrs": ["age"], "weight": 1e300}, {"attrs": ["sex"], "weight": 1e-300}],
    "the total": [{"attrs": []}],
}
REFUSED = [
    *((workload, "mwem", 0.5, ()) for workload in WORKLOADS if workload != "linear"),
    ("linear", "mwem", 0.02, ()),
    ("linear", "mwem", 0.02, ("--set", "candidates=queries")),
    *(("linear", mechanism, 0.5, ()) for mechanism in ("aim", "aperture", "barak")),
    *(("2-way", mechanism, 1e-9, ()) for mechanism in ("mwem", "aperture", "barak")),
    ("2-way", "aim", 1e-9, ("--set", "rounds_per_attribute=1000")),
    ("2-way", "mwem", 1e-4, ()),
    ("2-way", "mwem", 1e-300, ("--set", "accounting=pure")),
    ("2-way", "barak", 0.5, ()),
]


def sidelight(*args, folder):
    done = commands.sidelight(*args, folder=folder)
    return done.returncode, done.said


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "people.csv").write_text("age,sex\n" + "0,1\n7,0\n3,1\n" * 300)
    (tmp_path / "people.toml").write_text(COLUMNS)
    opened = ["ledger", "open", "people.ledger", "--epsilon", 5, "--delta", 1e-9]
    assert sidelight(*opened, folder=tmp_path)[0] == 0
    return tmp_path


def release(folder, *more, epsilon=0.5, out="out"):
    asked = ["release", "people.csv", "--schema", "people.toml", "--ledger", "people.ledger"]
    return sidelight(*asked, "--epsilon", epsilon, "--out", out, *more, folder=folder)


@pytest.mark.parametrize(("workload", "mechanism", "epsilon", "more"), REFUSED)
def test_what_public_facts_tell_is_refused_and_nothing_is_charged(folder, workload, mechanism, epsilon, more):
    asked = workload
    if workload in WORKLOADS:
        asked = "workload.json"
        (folder / asked).write_text(json.dumps(WORKLOADS[workload]))
    code, said = release(folder, "--workload", asked, "--mechanism", mechanism, *more, epsilon=epsilon)
    assert code == 2, said
    assert said.startswith("error: ")
    book = open_ledger(folder / "people.ledger")
    assert book.spent == 0
    assert not list(book.runs())
    assert not (folder / "out").exists()
    assert not (folder / "out.checkpoint").exists()


@pytest.mark.parametrize("out", ["/proc/x", "people.csv/x", "people.csv"])
def test_a_folder_that_cannot_be_written_is_refused_and_nothing_is_charged(folder, out):
    code, said = release(folder, "--workload", "2-way", out=out)
    assert code == 2, said
    assert not list(open_ledger(folder / "people.ledger").runs())


def test_the_private_file_as_public_data_is_refused_and_nothing_is_charged(folder):
    (folder / "again.csv").symlink_to(folder / "people.csv")
    code, said = release(folder, "--workload", "2-way", "--public", "again.csv")
    assert code == 2
    assert "given as public data, too" in said
    asked = [
        "mean",
        "people.csv",
        "--value",
        "age",
        "--bounds",
        0,
        7,
        "--epsilon",
        1,
        "--ledger",
        "people.ledger",
    ]
    code, said = sidelight(*asked, "--public", "again.csv", folder=folder)
    assert code == 2
    assert "given as public data, too" in said
    asked = ["screen", "people.csv", "--schema", "people.toml", "--public", "again.csv", "--epsilon", 1]
    code, said = sidelight(*asked, "--ledger", "people.ledger", "--workload", "2-way", folder=folder)
    assert code == 2
    assert "given as public data, too" in said
    assert not list(open_ledger(folder / "people.ledger").runs())


def test_a_good_command_is_still_charged(folder):
    (folder / "workload.json").write_text(json.dumps(WORKLOADS["linear"]))
    assert release(folder, "--workload", "workload.json", epsilon=2)[0] == 0
    assert open_ledger(folder / "people.ledger").spent > 0
