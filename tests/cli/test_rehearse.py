"""``sidelight rehearse`` as a person runs it."""

import json

import numpy as np
import pytest

from commands import sidelight


@pytest.fixture
def folder(tmp_path):
    draw = np.random.default_rng(0)
    rows = [f"{age},{'yes' if age < 2 else 'no'}" for age in draw.choice(4, 1000, p=[0.7, 0.1, 0.1, 0.1])]
    (tmp_path / "old.csv").write_text("\n".join(["age,work", *rows]) + "\n")
    (tmp_path / "few.csv").write_text("\n".join(["age,work", *rows[:50]]) + "\n")
    assert sidelight("schema", "draft", "old.csv", "--out", "people.toml", folder=tmp_path).returncode == 0
    return tmp_path


def rehearse(folder, *more, public="old.csv"):
    return sidelight(
        "rehearse", "--public", public, "--schema", "people.toml", "--workload", "2-way", "--runs", 1, *more,
        folder=folder,
    )  # fmt: skip


def test_several_epsilons_may_follow_one_another_and_the_answer_is_printed(folder):
    done = rehearse(
        folder, "--epsilon", 0.1, 1, 10, "--mechanism", "aim", "--accuracy", 0.1, "--svg", "r.svg"
    )

    assert done.returncode == 0, done.stderr
    assert [line.split()[2] for line in done.stdout.splitlines() if line.startswith("  ε = ")] == [
        "0.1",
        "1",
        "10",
    ]
    assert "aim: an error of 0.1 takes about ε = " in done.stdout
    assert "Your private table will differ more" in done.stderr
    assert (folder / "r.svg").read_text(encoding="utf-8").startswith("<svg")
    assert not list(folder.glob("*.ledger"))


def test_as_json_the_errors_and_the_answer_are_numbers(folder):
    done = rehearse(folder, "--epsilon", 10, "--accuracy", 0.00001, "--json")

    assert done.returncode == 0, done.stderr
    facts = json.loads(done.stdout)
    assert facts["played"][0]["mechanism"] == "auto (ladder)"
    assert facts["epsilon_for_accuracy"] == {"auto (ladder)": None}
    assert facts["cannot_know"]


def test_an_accuracy_that_no_epsilon_reaches_is_said_to_be_out_of_reach(folder):
    done = rehearse(folder, "--epsilon", 0.01, "--mechanism", "aim", "--accuracy", 0.001)

    assert "aim: no ε up to 0.01 reaches 0.001" in done.stdout


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (("--epsilon", 0), "epsilon must be a finite number above 0"),
        (("--accuracy", 0), "accuracy must be a finite number above 0"),
        (("--accuracy", 5), "--accuracy must be below 2 (200%)"),
        (("--mechanism", "best"), "mechanism must be one of"),
        (("--svg", "nowhere/r.svg"), "nowhere"),
    ],
)
def test_bad_input_ends_with_2(folder, more, says):
    refused = rehearse(folder, *more)

    assert refused.returncode == 2, refused.stderr
    assert says in refused.stderr


def test_too_small_a_public_table_ends_with_2(folder):
    refused = rehearse(folder, "--epsilon", 1, public="few.csv")

    assert refused.returncode == 2
    assert "too few to rehearse on" in refused.stderr


def test_a_single_column_that_public_data_lack_is_told_as_one(folder):
    ages = [line.split(",")[0] for line in (folder / "old.csv").read_text().splitlines()]
    (folder / "ages.csv").write_text("\n".join(ages) + "\n")

    done = rehearse(folder, "--workload", "1-way", "--epsilon", 1, "--mechanism", "aim", public="ages.csv")

    assert done.returncode == 0, done.stderr
    assert "tells nothing of work, so tables with it are not played" in done.stderr
