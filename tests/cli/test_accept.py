"""``release --accept`` and ``plan --accept`` as a person meets them: exit codes, words, charges."""

import json

import numpy as np
import pytest

import sidelight as sl
from commands import sidelight

PASSES = '[[criterion]]\ntables = "2-way"\nat_most = 1.5\n'
FAILS = '[[criterion]]\ntables = [["age", "work"]]\nat_most = 0.3\n'
SCHEMA = """
[columns.age]
kind = "integer"
low = 0
high = 3
bins = 4
[columns.work]
kind = "categorical"
labels = ["yes", "no"]
"""


@pytest.fixture
def folder(tmp_path):
    draw = np.random.default_rng(0)
    rows = [f"{age},{'yes' if age < 2 else 'no'}" for age in draw.choice(4, 3000, p=[0.7, 0.1, 0.1, 0.1])]
    (tmp_path / "people.csv").write_text("\n".join(["age,work", *rows]) + "\n")
    (tmp_path / "people.toml").write_text(SCHEMA)
    (tmp_path / "passes.toml").write_text(PASSES)
    (tmp_path / "fails.toml").write_text(FAILS)
    opened = sidelight("ledger", "open", "p.ledger", "--epsilon", 9, "--delta", "1e-9", folder=tmp_path)
    assert opened.returncode == 0, opened.stderr
    return tmp_path


def release(folder, accept, *more, out="out"):
    return sidelight(
        "release", "people.csv", "--schema", "people.toml", "--ledger", "p.ledger", "--epsilon", 2,
        "--workload", "2-way", "--mechanism", "mwem", "--set", "rounds=1", "--set", "passes=0",
        "--quality-share", 0.2, "--out", out, "--accept", accept, *more, folder=folder,
    )  # fmt: skip


def spent(folder):
    return json.loads(sidelight("ledger", "show", "p.ledger", "--json", folder=folder).stdout)["spent"]


def test_a_release_that_keeps_its_criteria_ends_with_0(folder):
    done = release(folder, "passes.toml")

    assert done.returncode == 0, done.stderr
    assert "passed: 2-way tables" in done.stderr
    assert "Accepted: every criterion passed (at 95% confidence each)." in done.stderr


def test_a_release_that_does_not_is_written_all_the_same_and_ends_with_4(folder):
    done = release(folder, "fails.toml", "--json")

    assert done.returncode == 4, done.stderr
    card = json.loads(done.stdout)["card"]
    assert card["acceptance"]["verdict"] in ("failed", "cannot tell")
    assert (
        json.loads((folder / "out" / "release.json").read_text())["card"]["acceptance"] == card["acceptance"]
    )
    assert not (folder / "out.checkpoint").exists()


def test_message_card_and_report_say_that_a_release_is_not_accepted(folder):
    done = release(folder, "fails.toml")
    shown = sidelight("report", "out", "--to", "report.html", folder=folder)

    assert (done.returncode, shown.returncode) == (4, 0), done.stderr + shown.stderr
    assert "wrote out" in done.stderr
    card = sl.Release.load(folder / "out").card
    for text in (
        done.stderr,
        card.acceptance.sentence,
        (folder / "report.html").read_text(encoding="utf-8"),
    ):
        assert "Not accepted: " in text
        assert "Accepted: every" not in text


def test_bad_criteria_end_with_2_and_cost_nothing(folder):
    (folder / "bad.toml").write_text('[[criterion]]\ntables = [["age", "shoe size"]]\nat_most = 0.1\n')
    (folder / "tiny.toml").write_text('[[criterion]]\ntables = "1-way"\nat_most = 0.0001\n')

    for accept, says in (
        ("bad.toml", "unknown attribute 'shoe size'"),
        ("tiny.toml", "least threshold"),
        ("nowhere.toml", "nowhere.toml"),
    ):
        refused = release(folder, accept)
        assert refused.returncode == 2, refused.stderr
        assert says in refused.stderr
    assert spent(folder) == 0
    assert not (folder / "out").exists()


def test_a_plan_says_how_well_each_criterion_can_be_told(folder):
    asked = (
        "plan",
        "--schema",
        "people.toml",
        "--ledger",
        "p.ledger",
        "--workload",
        "2-way",
        "--accept",
        "fails.toml",
    )

    little, much = (sidelight(*asked, "--epsilon", epsilon, folder=folder) for epsilon in (0.1, 2))

    assert little.returncode == much.returncode == 0, little.stderr
    for planned in (little, much):
        assert "accept     age × work: at most 30%. Noise moves it by at most " in planned.stdout
    least = [
        int(planned.stdout.split("in a table of ")[1].split(" ")[0].replace(",", ""))
        for planned in (little, much)
    ]
    assert least[0] > 5 * least[1]
    assert spent(folder) == 0


def test_a_plan_that_knows_how_many_records_there_are_refuses_what_the_release_would(folder):
    (folder / "low.toml").write_text('[[criterion]]\ntables = "2-way"\nat_most = 0.0001\n')
    asked = ["plan", "--schema", "people.toml", "--epsilon", 2, "--delta", "1e-9", "--workload", "2-way"]

    unknown, known = (
        sidelight(*asked, "--accept", "low.toml", *more, folder=folder) for more in ([], ["--records", 3000])
    )

    assert unknown.returncode == 0, unknown.stderr
    assert "it can be told in a table of" in unknown.stdout
    assert known.returncode == 2
    assert "cannot be told with this budget" in known.stderr
    assert "the least threshold for 3,000 records is" in known.stderr
