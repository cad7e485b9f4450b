"""``import sidelight as sl``: the command line's verbs, with the same words."""

import inspect

import pytest
import typer

import sidelight as sl
from sidelight.cli.app import app

PEOPLE = {"age": [20, 30, 40, 50] * 30, "sex": ["f", "m"] * 60}
TOML = """
[columns.age]
kind = "integer"
edges = [0, 25, 45, 100]

[columns.sex]
kind = "categorical"
labels = ["f", "m"]
"""


@pytest.fixture
def schema():
    return sl.Schema.from_toml(TOML)


@pytest.fixture
def table():
    return pytest.importorskip("pyarrow").table(PEOPLE)


@pytest.mark.parametrize("verb", ["plan", "release", "screen", "report", "evaluate", "rehearse", "prior"])
def test_every_verb_of_the_command_line_is_a_function(verb):
    assert callable(getattr(sl, verb))


@pytest.mark.parametrize("verb", ["plan", "release", "screen", "rehearse"])
def test_options_and_arguments_have_the_same_words(verb):
    command = typer.main.get_command(app).commands[verb]
    given = {one.name for one in command.params} - {"as_json", "quiet", "help"}
    # Arguments of the command line's own: files to write, where to stop, and how --set is spelled.
    own = {"table", "out", "dry_run", "yes", "settings", "more", "svg", "accuracy"}
    words = set(inspect.signature(getattr(sl, verb)).parameters) | {"ledger"}

    assert given - own <= words


def test_a_plan_says_in_words_what_it_would_do(schema, table):
    planned = sl.plan(
        schema=schema, epsilon=1, delta=1e-9, workload="2-way", public=table.drop_columns(["sex"])
    )

    assert repr(planned) == "Plan(aperture, ε = 1 at δ = 1e-09, 1 queries about 2 attributes)"
    assert "public     120 records tell of age\npublic     nothing is told of sex" in str(planned)


def test_a_ledger_is_opened_in_one_call_and_shows_itself(tmp_path, schema, table):
    made = sl.Ledger.open(tmp_path / "people.ledger", epsilon=2, delta=1e-9)

    sl.release(
        table, schema=schema, epsilon=0.5, ledger=made, workload="2-way", mechanism="mst", progress=False
    )

    shown = repr(sl.Ledger.open(tmp_path / "people.ledger"))
    assert shown.startswith("Ledger('people', ε = 0.")
    assert "of 2 spent, 1 run, kept in " in shown
    with pytest.raises(sl.SidelightError, match="both epsilon and delta"):
        sl.Ledger.open(tmp_path / "other.ledger", epsilon=2)
    with pytest.raises(sl.SidelightError, match="exists already"):
        sl.Ledger.open(tmp_path / "people.ledger", epsilon=2, delta=1e-9)


def test_a_prior_a_report_and_a_screening(tmp_path, schema, table):
    fitted = sl.prior(table, schema=schema, workload="2-way", out=tmp_path / "prior")
    release = sl.release(
        table.slice(0, 90), schema=schema, public=tmp_path / "prior", epsilon=1, delta=1e-9,
        workload="2-way", progress=False,
    )  # fmt: skip

    assert fitted.records == 120
    assert sl.report(release, tmp_path / "r.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    (found,) = sl.screen(table.slice(0, 90), table, schema=schema, epsilon=1, workload="1-way")
    assert found.name == "public 1"


def test_one_word_for_the_number_of_records():
    for draws in (sl.Release.sample, sl.Synthesizer.sample):
        assert list(inspect.signature(draws).parameters)[1] == "records"


@pytest.mark.parametrize("use", [sl.rehearse, lambda public, **said: sl.screen(public, public, **said)])
def test_uses_that_need_every_column_say_which_is_absent(schema, table, use):
    with pytest.raises(sl.SidelightError, match=r"tells nothing of sex|private table is given as public"):
        use(table.drop_columns(["sex"]), schema=schema, epsilon=1.0, workload="1-way")
