"""What a release says of itself on the command line: first how good it is, then what it cost."""

import json

import numpy as np
import pytest

from commands import sidelight

COLUMN = '[columns.{}]\nkind = "integer"\nlow = 0\nhigh = 2\n'
NAMES = "abcdef"


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(0)
    rows = "\n".join(",".join(map(str, row)) for row in rng.integers(0, 3, (500, 6)))
    (tmp_path / "p.csv").write_text(f"{','.join(NAMES)}\n{rows}\n")
    (tmp_path / "p.toml").write_text("".join(map(COLUMN.format, NAMES)))
    assert sidelight("ledger", "open", "l", "--epsilon", 3, "--delta", "1e-9", folder=tmp_path)[0] == 0
    return tmp_path


def release(folder, *more):
    return sidelight(
        "release", "p.csv", "--schema", "p.toml", "--ledger", "l", "--epsilon", 1, "--workload", "2-way",
        "--mechanism", "mwem", "--set", "rounds=2", "--out", "out", *more, folder=folder,
    )  # fmt: skip


def test_the_first_closing_line_says_how_good_the_release_is(folder):
    done = release(folder)

    lines = done.stderr.splitlines()
    assert done.returncode == 0, done.stderr
    assert lines[0].startswith("2-way tables are off by ")
    assert "% of records on average; " in lines[0]
    assert lines[1].startswith("wrote out: mwem, ε = 1 spent.")


def test_what_was_never_measured_is_named(folder):
    said = release(folder).stderr

    # Two rounds measure four attributes at most.
    assert "Never measured: " in said
    assert "no more than a guess" in said
    assert " of the workload's 15 marginals" in said


def test_the_json_card_holds_quality_meaning_and_what_was_not_measured(folder):
    card = json.loads(release(folder, "--json").stdout)["card"]

    assert set(card["quality"]["degrees"]) == {"1-way", "2-way"}
    assert set(card["quality"]["attributes"]) == set(NAMES)
    assert "finds at most" in card["meaning"]
    assert len(card["unmeasured"]["attributes"]) >= 2


def test_quality_can_be_switched_off(folder):
    done = release(folder, "--quality-share", 0)

    assert done.returncode == 0, done.stderr
    assert "off by" not in done.stderr


@pytest.mark.parametrize("share", ["1", "-0.5", "nan", "1e-18", "0.999"])
def test_a_share_that_is_none_is_refused_and_nothing_is_charged(folder, share):
    done = release(folder, f"--quality-share={share}")

    assert done.returncode == 2
    assert "quality_share" in done.stderr
    assert json.loads(sidelight("ledger", "show", "l", "--json", folder=folder).stdout)["spent"] == 0


def test_a_plan_says_what_epsilon_means_how_well_quality_will_be_known_and_what_will_not_be_measured(folder):
    done = sidelight(
        "plan", "--schema", "p.toml", "--epsilon", 1, "--delta", "1e-9", "--workload", "2-way",
        "--mechanism", "mwem", "--set", "rounds=2", folder=folder,
    )  # fmt: skip

    assert "means      somebody who accuses wrongly in 5% of cases finds at most 7.5%" in done.stdout
    assert "quality    0.02 of the budget measures the mean error of a table to ± " in done.stdout
    assert "records (95%), ± 10% of a table of " in done.stdout
    assert "At most 2 of the workload's 15 marginals can be measured" in done.stdout


def test_an_answer_about_what_was_never_measured_says_so(folder):
    name = json.loads(release(folder, "--json").stdout)["card"]["unmeasured"]["attributes"][0]

    answered = sidelight("answer", "out", name, "--json", folder=folder)

    assert {cell["source"] for cell in json.loads(answered.stdout)} == {"unmeasured"}
