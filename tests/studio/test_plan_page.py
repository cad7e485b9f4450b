"""What is asked for: kept, rehearsed on public data, frozen into a plan."""

import json
from dataclasses import replace

import pytest
from stage import ASK, planned, prepared, promised

from sidelight.data.schema import UNSAID, Schema
from sidelight.progress import progress_of
from sidelight.studio import tasks
from sidelight.studio.jobs import Jobs
from sidelight.studio.plans import Plans
from sidelight.studio.routes import ADDRESSES


@pytest.fixture
def curator(stage):
    return prepared(stage)


def latest(stage):
    return Plans(stage.place()).latest()


def test_a_plan_says_what_the_command_says(curator, stage):
    from commands import sidelight

    planned(curator, tables_1="2-way", at_most_1="80")
    plan = latest(stage)
    done = sidelight(
        "release", "private.csv", "--schema", "schema.toml", "--ledger", "people.ledger", "--epsilon", 0.4,
        "--workload", "2-way", "--mechanism", "mst", "--accept", ".studio/plans/1/accept.toml",
        "--dry-run", "--json", folder=stage.place().path,
    )  # fmt: skip
    told = json.loads(done.stdout)

    assert plan.made().digest == told.pop("digest")
    assert dict(plan.made().facts) == told
    page = curator.get("/p/people/plan").text
    assert plan.made().digest in page
    assert "It is accepted if" in page


@pytest.mark.parametrize(
    ("field", "ask"),
    [
        ("epsilon", {"epsilon": "0"}),
        ("epsilon", {"epsilon": "much"}),
        ("workload", {"workload": "none"}),
        ("picked", {"workload": "picked", "picked": ""}),
        ("picked", {"workload": "picked", "picked": "age × nobody"}),
        ("picked", {"workload": "picked", "picked": "age × sex = heavy"}),
        ("quality_percent", {"quality_percent": "100"}),
        ("mechanism", {"mechanism": "magic"}),
        ("mechanism", {"mechanism": "jam"}),
        ("mechanism", {"with_public": "yes"}),
        ("at_most_1", {"tables_1": "2-way", "at_most_1": "x"}),
        ("tables_1", {"tables_1": "nobody", "at_most_1": "5"}),
        ("tables_2", {"tables_2": "9-way", "at_most_2": "5"}),
    ],
)
def test_what_is_wrong_is_said_at_its_field(curator, stage, field, ask):
    answer = curator.post("/p/people/plan", ASK | ask)

    assert answer.status_code == 422
    assert f'id="{field}-wrong"' in answer.text
    assert latest(stage) is None


def test_picked_tables_have_weights(curator, stage):
    planned(curator, workload="picked", picked="age × sex = 2\nward")

    workload = json.loads((latest(stage).folder / "workload.json").read_text())
    assert [(one["attrs"], one["weight"]) for one in workload] == [(["age", "sex"], 2.0), (["ward"], 1.0)]
    assert "age × sex = 2\nward" in curator.get("/p/people/plan").text


def test_a_plan_is_frozen_and_says_what_has_changed_since(curator, stage):
    planned(curator)
    digest = latest(stage).made().digest
    schema = stage.place().schema
    schema.write_text(schema.read_text().replace("bins = 8", "bins = 4"))

    assert "Something has changed since" in curator.get("/p/people/plan").text
    assert latest(stage).made().digest == digest
    planned(curator)
    assert latest(stage).number == "2"
    assert latest(stage).made().digest != digest
    assert "Something has changed since" not in curator.get("/p/people/plan").text


def test_a_double_click_makes_one_plan(curator, stage):
    for _ in range(3):
        assert curator.post("/p/people/plan", ASK).status_code == 303
    stage.work()

    assert [plan.number for plan in Plans(stage.place()).all()] == ["1"]


def test_a_plan_that_cannot_be_made_says_why(curator, stage):
    curator.post("/p/people/plan", ASK | {"mechanism": "barak"})
    assert stage.work() == [2]

    page = curator.get("/p/people/plan").text
    assert "The plan cannot be made like this" in page
    assert latest(stage).stage() == "wrong"


def test_a_plan_that_the_ledger_cannot_pay_for_says_so(curator):
    planned(curator, epsilon="1.5")

    assert "The ledger cannot pay for this" in curator.get("/p/people/plan").text


def test_a_rehearsal_is_played_and_drawn(curator, stage):
    assert curator.post("/p/people/plan/rehearse", ASK | {"on": "public/old.csv"}).status_code == 303
    assert stage.work() == [0]

    page = curator.get("/p/people/plan").text
    assert 'class="curve"' in page
    assert "data-slider='[[0.1, " in page
    assert "ε = 0.4: off by" in page
    assert "Played for another schema" not in page

    curator.post("/p/people/plan", ASK | {"workload": "1-way"})
    stage.work()
    assert "Played for another schema" in curator.get("/p/people/plan").text


def test_a_rehearsal_is_played_with_the_ledgers_own_delta_and_unit(curator, stage, monkeypatch):
    played = {}
    monkeypatch.setattr("sidelight.studio.tasks.play", lambda _, **asked: played.update(asked))
    (stage.place().path / "people.ledger").unlink()
    stage.place().save(replace(stage.place().project(), ledger=None))
    promised(curator, delta="0", relation="add-or-remove")
    said = Schema.read(stage.place().schema)
    stage.place().schema.write_text(replace(said, unit=UNSAID).to_toml())

    curator.post("/p/people/plan/rehearse", ASK | {"mechanism": "auto"})
    tasks.rehearse(stage.place(), Jobs(stage.place()).latest("rehearse").request, progress_of(wanted=False))

    assert played["delta"] == 0
    assert played["unit"].relation == "add-or-remove"


def test_a_rehearsal_that_cannot_be_played_says_why(curator, stage):
    (stage.place().path / "public" / "old.csv").write_text("sex,age,ward\nF,1,north\n")
    curator.post("/p/people/plan/rehearse", ASK)
    assert stage.work() == [2]

    assert "too few to rehearse on" in curator.get("/p/people/plan").text


def test_a_plan_page_says_what_is_missing(stage):
    curator = stage.browser()
    curator.post("/projects", {"title": "People"})

    page = curator.get("/p/people/plan").text
    for words in ("Name the private table", "Make the schema", "Make the promise"):
        assert words in page
    assert curator.get("/p/people/release").status_code == 200
    assert curator.get("/p/people/approve").status_code == 200
    assert curator.get("/p/people/ledger").status_code == 200
    assert curator.get("/p/people/explore").status_code == 200


def test_a_rehearsal_without_public_data_is_refused_in_words(curator, stage):
    curator.post("/p/people/sources/remove", {"source": "public/old.csv"})

    answer = curator.post("/p/people/plan/rehearse", {**ASK, "with_public": ""})

    assert answer.status_code == 422
    assert "Name a public table first" in answer.text
    assert not stage.pending


@pytest.mark.parametrize("form", [{}, ASK], ids=["nothing", "a plan"])
def test_no_address_fails_in_an_empty_project(stage, form):
    curator = stage.browser()
    curator.post("/projects", {"title": "People"})
    for address in (one for one in ADDRESSES if one.path != "/leave"):
        path = address.path.format(project="people", release="release-1", job="20260101-000000-000000-abcd")

        answer = curator.get(path) if address.method == "GET" else curator.post(path, form)

        assert answer.status_code < 500, address.path
        assert not stage.pending
