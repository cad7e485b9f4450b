"""``sidelight answer`` tells a count, its error, and what makes it."""

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import cards
from sidelight.cli.app import app
from sidelight.data.table import Table
from sidelight.mechanisms.aim import AIM
from sidelight.releases.release import Release


def sidelight(*args):
    done = CliRunner().invoke(app, [str(arg) for arg in args])
    assert done.exit_code == 0, done.output
    return done


@pytest.fixture
def folder(toy, tmp_path):
    outcome = AIM(rounds_per_attribute=4).run(toy.curator()[0], toy.workload)
    return cards.released(outcome).save(tmp_path / "out")


def without_model_error(folder: Path) -> Path:
    about = json.loads((folder / "release.json").read_text(encoding="utf-8"))
    del about["card"]["model_error"]
    (folder / "release.json").write_text(json.dumps(about), encoding="utf-8")
    return folder


def test_both_parts_of_the_error_stand_beside_the_count(folder):
    done = sidelight("answer", folder, "a")

    for column in ("estimate", "std error", "noise", "model", "low", "high"):
        assert column in done.stdout
    assert "The interval holds the noise, and what the model adds to it" in done.stderr


def test_what_nothing_measured_together_is_told_to_be_the_models(folder):
    done = sidelight("answer", folder, "a", "b", "c")

    assert "Nothing measured these attributes together" in done.stderr


def test_an_older_release_is_told_to_give_noise_alone(folder):
    done = sidelight("answer", without_model_error(folder), "a")

    assert "noise alone" in done.stderr


def test_json_holds_what_the_library_answers(folder):
    cells = json.loads(sidelight("answer", folder, "b", "a", "--json", "--confidence", 0.9).stdout)

    bars = Release.load(folder).error_bars(("b", "a"))
    low, high = bars.interval(0.9)
    assert [cell["low"] for cell in cells] == pytest.approx(low.reshape(-1))
    assert [cell["high"] for cell in cells] == pytest.approx(high.reshape(-1))
    assert [cell["noise_error"] for cell in cells] == pytest.approx(bars.noise_error.reshape(-1))


def test_nothing_private_is_needed_to_answer(folder, toy, monkeypatch):
    """The table may be gone, or changed: the same folder gives the same errors."""
    before = sidelight("answer", folder, "a", "c", "--json").stdout
    monkeypatch.setattr(Table, "count", lambda *_: np.zeros(0))

    assert sidelight("answer", folder, "a", "c", "--json").stdout == before


def test_conditions_groups_and_files(folder, tmp_path):
    shown = sidelight("answer", folder, "b", "--by", "a", "--where", "c=1,2")
    asked = json.loads(sidelight("answer", folder, "b", "--where", "a=1", "--json").stdout)
    written = sidelight("answer", folder, "b", "--where", "a=1", "--to", tmp_path / "t.csv")

    assert "share" in shown.stdout
    assert "where c = " in shown.stdout
    release = Release.load(folder)
    assert [one["estimate"] for one in asked] == pytest.approx(release.count(["a", "b"])[1].tolist())
    assert "wrote 3 counts" in written.stderr
    assert (tmp_path / "t.csv").read_text().splitlines()[0].startswith('"b","estimate"')


def test_a_sample_may_be_conditional_and_says_its_seed(folder, tmp_path):
    done = sidelight(
        "sample", folder, "--records", 30, "--where", "a=1", "--to", tmp_path / "s.csv", "--json"
    )

    about = json.loads(done.stdout)
    assert about["records"] == 30
    lines = (tmp_path / "s.csv").read_text().splitlines()
    assert {line.split(",")[0] for line in lines[1:]} == {"1"}
    again = ["--seed", about["seed"], "--to", tmp_path / "again.csv"]
    sidelight("sample", folder, "--records", 30, "--where", "a=1", *again)
    assert (tmp_path / "again.csv").read_text().splitlines() == lines


@pytest.mark.parametrize("where", ["a", "=1", "a=7", "z=1"])
def test_a_condition_that_cannot_be_read_is_refused(folder, where):
    done = CliRunner().invoke(app, ["answer", str(folder), "b", "--where", where])

    assert done.exit_code != 0
    assert "where" in str(done.exception)


@pytest.mark.parametrize("command", [("sample", "--records", 5), ("answer", "a"), ("report",)])
def test_no_file_is_replaced_unless_that_is_meant(folder, tmp_path, command):
    name, *more = command
    precious = tmp_path / ("page.html" if name == "report" else "people.csv")
    precious.write_text("a,b,c\n0,1,0\n", encoding="utf-8")
    asked = [name, str(folder), *map(str, more), "--to", str(precious)]

    refused = CliRunner().invoke(app, asked)

    assert "exists already" in str(refused.exception.__cause__ or refused.exception)
    assert precious.read_text(encoding="utf-8").startswith("a,b,c\n0,1,0")
    sidelight(*asked, "--overwrite")
    assert not precious.read_text(encoding="utf-8").startswith("a,b,c\n0,1,0")


def test_a_report_replaces_an_earlier_one_only_where_that_is_meant(folder, tmp_path):
    page = tmp_path / "page.html"
    sidelight("report", folder, "--to", page, "--title", "first")
    asked = ["report", str(folder), "--to", str(page), "--title", "second"]

    refused = CliRunner().invoke(app, asked)

    assert "exists already" in str(refused.exception.__cause__ or refused.exception)
    assert "<h1>first</h1>" in page.read_text(encoding="utf-8")
    sidelight(*asked, "--overwrite")
    assert "<h1>second</h1>" in page.read_text(encoding="utf-8")
