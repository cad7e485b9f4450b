"""``import sidelight as sl``: the command line's verbs, with the same words."""

import inspect
from dataclasses import fields

import pytest
import typer

import sidelight as sl
from sidelight.cli.app import app
from sidelight.data.domain import Domain
from sidelight.data.schema import Schema
from sidelight.errors import SettingError, SidelightError, TooLargeError, WorkloadError
from sidelight.mechanisms import registry
from sidelight.statistics.terms import Terms

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
    # Arguments of the command line's own: files to write and to read, where to stop, how --set is spelled;
    # and of a plan, whom the ledger's policy is to be asked about.
    own = {"table", "out", "dry_run", "yes", "settings", "more", "svg", "accuracy", "approval"}
    own |= {"project", "approved_by"} if verb == "plan" else set()
    words = set(inspect.signature(getattr(sl, verb)).parameters) | {"ledger"}
    words |= {field.name for field in fields(Terms)} if verb == "screen" else set()

    assert given - own <= words


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda given, table, schema: sl.plan(**given | {"schema": {"age": 3}}), "got dict. Schema.draft"),
        (lambda given, table, schema: sl.plan(**given | {"workload": 2}), "a workload is a name such as"),
        (lambda given, table, schema: sl.release(table["age"], **given), "give a data frame"),
        (lambda given, table, schema: sl.evaluate(table, table), "got Table as the release"),
        (lambda given, table, schema: sl.release(table, noise=1, **given), "noise must be None.* got 1"),
        (
            lambda given, table, schema: sl.release(table, **given).answer("sex", where="sex=f"),
            "where must say what columns are, such as .* got 'sex=f'",
        ),
    ],
    ids=["schema", "workload", "one column", "evaluate", "noise", "where"],
)
def test_an_argument_of_a_wrong_type_is_told_in_a_sentence(call, told, table, schema):
    given = {
        "schema": schema, "epsilon": 1, "delta": 1e-9, "workload": "1-way", "mechanism": "mst",
    }  # fmt: skip

    with pytest.raises(SidelightError, match=told):
        call(given, table, schema)


def test_an_evaluation_is_marked_private_wherever_it_is_shown(table, schema):
    release = sl.release(table, schema=schema, epsilon=1, delta=1e-9, workload="1-way", mechanism="mst")

    found = sl.evaluate(release, table, workload="1-way")

    assert repr(found).startswith("PRIVATE")
    assert str(found).startswith("PRIVATE")


def test_a_plan_says_in_words_what_it_would_do(schema, table):
    planned = sl.plan(
        schema=schema, epsilon=1, delta=1e-9, workload="2-way", public=table.drop_columns(["sex"])
    )

    assert repr(planned) == "Plan(aperture, ε = 1 at δ = 1e-09, 1 query about 2 attributes)"
    assert "public     120 records tell of age\npublic     nothing is told of sex" in str(planned)


def test_a_plan_says_whether_its_ledger_can_pay(tmp_path, schema):
    book = sl.Ledger.open(tmp_path / "people.ledger", epsilon=1, delta=1e-9)

    def said(**more):
        return str(sl.plan(schema=schema, workload="2-way", **more))

    assert "\nledger     can pay for it\n" in said(epsilon=0.5, ledger=book, records=100) + "\n"
    assert "\nledger     CANNOT pay for it\n" in said(epsilon=2, ledger=book) + "\n"
    assert "\nledger " not in said(epsilon=0.5, delta=1e-9)
    book.set_policy({"approval": {"by": ["ada"], "needed": 1}})
    assert "\nledger     can pay for it, but its policy does not allow it: " in said(epsilon=0.5, ledger=book)
    assert "\nledger     can pay for it\n" in said(epsilon=0.5, ledger=book, approved_by="ada") + "\n"


@pytest.mark.parametrize("mechanism", ["hdmm", "aim", "aperture", "mst"])
def test_a_plan_refuses_a_pair_of_25_million_cells_with_its_size_and_what_to_do(mechanism):
    large = Schema.from_domain(Domain.of({"a": 5000, "b": 5000, "c": 3}))

    with pytest.raises(TooLargeError, match=r"a × b.* 191 MB.*oversized='skip'"):
        sl.plan(schema=large, epsilon=1, delta=1e-9, workload="2-way", mechanism=mechanism)


def test_a_plan_refuses_all_triples_of_200_attributes_and_says_how_many_there_are():
    many = Schema.from_domain(Domain.of({f"x{place}": 3 for place in range(200)}))

    with pytest.raises(WorkloadError, match=r"1,313,400 marginals of 3.*19,900"):
        sl.plan(schema=many, epsilon=1, delta=1e-9, workload="3-way", mechanism="aim")


def test_a_plan_of_pure_epsilon_says_its_cost_once(schema):
    def cost(**more):
        lines = str(sl.plan(schema=schema, epsilon=0.5, workload="2-way", **more)).splitlines()
        return next(line for line in lines if line.startswith("cost"))

    assert cost(delta=0) == "cost       ε = 0.5 at δ = 0"
    pure = cost(delta=1e-9, mechanism="ladder", accounting="pure")
    assert pure == "cost       ε = 0.5 at δ = 1e-09, paid as pure ε = 0.5"
    assert cost(delta=1e-9, mechanism="mst") == "cost       ε = 0.5 at δ = 1e-09, ρ = 0.0039532"


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


def test_a_misspelt_argument_is_guessed_among_those_of_the_call_too(schema, table):
    own = set(inspect.signature(sl.release).parameters) - {"private", "settings"}
    assert set(registry._BESIDES) == own

    with pytest.raises(SettingError, match=r"no setting 'wokload'.* Did you mean 'workload'\?"):
        sl.release(table, schema=schema, epsilon=1, delta=1e-9, mechanism="aim", wokload="2-way")
    with pytest.raises(SettingError, match=r"no setting 'acept'.* Did you mean 'accept'\?"):
        sl.release(table, schema=schema, epsilon=1, delta=1e-9, workload="2-way", acept={})
