"""The promise: what it means before it is made, in words that must be confirmed, and only once."""

import stat
from dataclasses import replace

import pytest
from stage import promised, table

from sidelight.data.schema import Schema
from sidelight.privacy.sql_ledger import SqlLedger
from sidelight.privacy.unit import Unit

SAID = {"epsilon": "1", "delta": "1e-9", "relation": "replace", "name": "people"}


@pytest.fixture
def curator(stage):
    browser = stage.browser()
    browser.post("/projects", {"title": "People"})
    place = stage.place()
    (place.path / "private.csv").write_text(table(50, 1))
    (place.path / "public.csv").write_text(table(600, 2))
    browser.post("/p/people/sources", {"private": "private.csv", "records": "2,986"})
    browser.post("/p/people/sources/add", {"source": "public.csv"})
    browser.post("/p/people/schema/draft", {"draft_public": "public.csv"})
    assert stage.work() == [0]
    return browser


def make(curator, confirmed=None, **said):
    given = SAID | said
    shown = given if confirmed is None else SAID | confirmed
    hidden = {f"said_{key}": shown[key] for key in ("epsilon", "delta", "relation")}
    return curator.post("/p/people/promise", {**given, **hidden, "do": "make", "confirm": "yes"} | said)


def is_open(stage):
    return (stage.place().path / "people.ledger").exists()


def test_the_page_says_what_an_epsilon_means(curator):
    page = curator.get("/p/people/promise?epsilon=2&relation=add-or-remove").text

    assert "Once all of ε = 2 is spent" in page
    assert "of those who are in the table" in page
    assert "1e-07" in page  # δ for about 2,986 records
    assert 'class="chosen"><th scope="row">2</th>' in page


def test_the_promise_about_people_names_no_number_of_records(curator, stage):
    path = stage.place().schema
    schema = replace(Schema.read(path), unit=Unit("replace", records=3, person="patient_id"))
    path.write_text(schema.to_toml())

    assert make(curator).status_code == 303

    page = curator.get("/p/people/promise").text
    assert "all records of one patient_id; each release uses as many of them as its schema says" in page
    assert "one record of each patient_id" not in page
    assert Schema.read(path).unit.records == 3


def test_the_promise_is_made_once_and_stands_in_ledger_and_schema(curator, stage):
    assert make(curator, relation="add-or-remove").status_code == 303

    ledger = SqlLedger.open(stage.place().path / "people.ledger")
    assert (ledger.promise.budget.epsilon, ledger.promise.unit.relation) == (1.0, "add-or-remove")
    assert Schema.read(stage.place().schema).unit.relation == "add-or-remove"
    assert stat.S_IMODE((stage.place().path / "people.ledger").stat().st_mode) == 0o600
    assert "can never be changed" in curator.get("/p/people/promise").text

    origin = ledger.origin
    assert make(curator, epsilon="9").status_code == 422
    assert SqlLedger.open(stage.place().path / "people.ledger").origin == origin


def test_it_must_be_confirmed_and_in_the_words_that_were_shown(curator, stage):
    unticked = curator.post("/p/people/promise", {**SAID, "do": "make"})
    changed = make(curator, confirmed={"epsilon": "0.1"})
    other_unit = make(curator, confirmed={"relation": "add-or-remove"})

    assert [unticked.status_code, changed.status_code, other_unit.status_code] == [422] * 3
    assert "You changed the promise" in changed.text
    assert not is_open(stage)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("epsilon", "0"),
        ("epsilon", "-1"),
        ("epsilon", "much"),
        ("epsilon", "inf"),
        ("epsilon", "nan"),
        ("delta", "1"),
        ("delta", "-1e-9"),
        ("delta", "x"),
        ("name", ""),
        ("name", "postgresql://bob:4711@db/x"),
        ("name", "a\x1bb"),
    ],
)
def test_what_cannot_be_promised_is_said_at_its_field(curator, stage, field, value):
    answer = make(curator, **{field: value})

    assert answer.status_code == 422
    assert f'id="{field}-wrong"' in answer.text
    assert not is_open(stage)


def test_a_promise_that_protects_little_must_be_meant(curator, stage):
    asked = make(curator, epsilon="20")
    assert "Think twice" in asked.text
    assert not is_open(stage)

    assert make(curator, epsilon="20", doubts="yes").status_code == 303


def test_a_ledger_that_is_there_can_be_used_if_it_says_the_same(curator, stage):
    from commands import sidelight

    for name, unit in (("own.ledger", "replace"), ("other.ledger", "add-or-remove")):
        sidelight("ledger", "open", name, "--epsilon", 1, "--delta", "1e-9", "--unit", unit,
                  folder=stage.place().path)  # fmt: skip

    refused = curator.post("/p/people/promise/use", {"ledger": "other.ledger"})
    assert refused.status_code == 422
    assert "The ledger promises" in refused.text
    assert curator.post("/p/people/promise/use", {"ledger": "nowhere.ledger"}).status_code == 422
    assert curator.post("/p/people/promise/use", {"ledger": "own.ledger"}).status_code == 303
    assert stage.place().project().ledger == "own.ledger"


def test_two_who_promise_at_once_make_one_promise(curator, stage):
    other = stage.again().browser("curator", "Grace Hopper")
    promised(curator)
    late = make(other)

    assert late.status_code == 422
    assert stage.place().project().ledger == "people.ledger"
