"""The schema in a table: drafted, edited with errors at the field, saved as the file that commands read."""

import re

import pytest
from stage import SECRETS, Browser, prepared, table

from sidelight.data.schema import Schema


@pytest.fixture
def curator(stage):
    return prepared(stage)


def schema(stage):
    return Schema.read(stage.place().schema)


def save(curator, name, **fields):
    page = curator.get("/p/people/schema").text
    version = Browser.field(page, "version")
    return curator.post("/p/people/schema/column", {"name": name, "version": version, "do": "save", **fields})


def wrong_at(answer):
    """The fields that the page says something about."""
    return set(re.findall(r'class="wrong" id="(\w+)-wrong"', answer.text))


def test_a_draft_is_the_file_that_the_command_line_writes(curator, stage):
    from commands import sidelight

    told = sidelight("schema", "draft", "public/old.csv", "--bins", 8, folder=stage.place().path)

    assert Schema.from_toml(told.stdout) == Schema.from_toml(stage.place().schema.read_text())
    page = curator.get("/p/people/schema").text
    assert "3 labels: north, south, west" in page
    assert page.count("<svg") >= 3


def test_a_column_is_declared_anew_and_comments_of_others_stay(curator, stage):
    text = stage.place().schema.read_text()
    stage.place().schema.write_text(text.replace("[columns.sex]", "# mine, and to stay\n[columns.sex]"))

    answer = save(curator, "age", kind="integer", low="0", high="99", bins="10", outside="clamp",
                  missing="yes", missing_texts="999\nunknown", note="By decade.")  # fmt: skip

    assert answer.status_code == 303, answer.text
    age = schema(stage).column("age")
    assert (age.low, age.high, age.bins, age.missing_texts) == (0, 99, 10, ("999", "unknown"))
    assert "# mine, and to stay" in stage.place().schema.read_text()
    assert "# By decade." in stage.place().schema.read_text()


@pytest.mark.parametrize(
    ("fields", "at"),
    [
        ({"kind": "integer", "low": "x", "high": "9"}, {"low"}),
        ({"kind": "integer", "low": "0", "high": "nine"}, {"high"}),
        ({"kind": "integer", "low": "a", "high": "b", "bins": "c"}, {"low", "high", "bins"}),
        ({"kind": "integer", "low": "9", "high": "0"}, {"low"}),
        ({"kind": "integer", "low": "0", "high": "9", "bins": "99"}, {"bins"}),
        ({"kind": "integer", "low": "0", "high": "9", "bins": "0"}, {"bins"}),
        ({"kind": "integer"}, {"low"}),
        ({"kind": "integer", "edges": "3, 2, 1"}, {"edges"}),
        ({"kind": "integer", "edges": "1, 2", "low": "0"}, {"edges"}),
        ({"kind": "real", "low": "0", "high": "1"}, {"bins"}),
        ({"kind": "real", "low": "0", "high": "inf", "bins": "3"}, {"high"}),
        ({"kind": "real", "low": "0", "high": "1", "bins": "3", "decimals": "99"}, {"decimals"}),
        ({"kind": "categorical"}, {"labels"}),
        ({"kind": "categorical", "labels": "a\na"}, {"labels"}),
        ({"kind": "categorical", "labels": "1\nx", "label_type": "integer"}, {"labels"}),
        ({"kind": "categorical", "labels": "a\nb", "aliases": "c = d"}, {"aliases"}),
        ({"kind": "categorical", "labels": "a\nb", "aliases": "nonsense"}, {"aliases"}),
        ({"kind": "categorical", "labels": "abc", "prefix": "1"}, {"prefix"}),
        ({"kind": "categorical", "labels": "a", "other_label": "b"}, {"other_label"}),
        ({"kind": "categorical", "labels": "a", "outside": "clamp"}, {"outside"}),
        ({"kind": "date", "low": "2020-01-01", "high": "2021-01-01"}, {"by"}),
        ({"kind": "date", "low": "nonsense", "high": "2021-01-01", "by": "month"}, {"low"}),
        ({"kind": "magic"}, {"kind"}),
    ],
)
def test_what_is_wrong_is_said_at_its_field_and_changes_nothing(curator, stage, fields, at):
    before = stage.place().schema.read_bytes()

    answer = save(curator, "age", **fields)

    assert answer.status_code == 422
    assert wrong_at(answer) == at, answer.text
    assert stage.place().schema.read_bytes() == before
    # What was typed is not lost.
    for value in fields.values():
        assert value.split("\n")[0] in answer.text or value == "magic"


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        ("categorical", {"labels": "0\n1\n2", "label_type": "integer", "ordered": "yes"}),
        ("categorical", {"labels": "true\nfalse", "label_type": "boolean"}),
        (
            "categorical",
            {"labels": "F\nM", "aliases": "F = f, female", "outside": "other", "other_label": "X"},
        ),
        ("categorical", {"labels": "101\n102", "prefix": "3"}),
        ("integer", {"edges": "0, 18, 65, 100", "outside": "clamp"}),
        ("real", {"low": "0", "high": "1.5", "bins": "3", "decimals": "1"}),
        ("date", {"low": "2020-01-01", "high": "2020-12-31", "by": "month", "format": "dmy"}),
        ("datetime", {"low": "2020-01-01", "high": "2020-12-31", "by": "month", "zone": "Europe/Berlin"}),
        ("time", {"low": "00:00", "high": "23:59", "by": "hour"}),
    ],
)
def test_every_kind_is_saved_and_shown_again(curator, stage, kind, fields):
    answer = save(curator, "other", kind=kind, **fields)
    assert answer.status_code == 303, answer.text

    made = schema(stage).column("other")
    assert made.kind == kind
    page = curator.get("/p/people/schema?edit=other").text
    assert f'<option value="{kind}" selected>' in page
    # Saving what is shown changes nothing.
    from sidelight.studio import schema_form

    shown = schema_form.shown(made)
    assert schema_form.column_from("other", kind, shown, made) == made


def test_an_older_form_changes_nothing(curator, stage):
    version = Browser.field(curator.get("/p/people/schema").text, "version")
    assert save(curator, "age", kind="integer", low="0", high="9").status_code == 303
    before = stage.place().schema.read_bytes()

    late = curator.post("/p/people/schema/remove", {"name": "sex", "version": version})

    assert late.headers["location"].endswith("?said=changed")
    assert stage.place().schema.read_bytes() == before


def test_a_column_is_left_out(curator, stage):
    version = Browser.field(curator.get("/p/people/schema").text, "version")
    assert curator.post("/p/people/schema/remove", {"name": "age", "version": version}).status_code == 303
    assert [column.name for column in schema(stage).columns] == ["sex", "ward"]


def test_the_person_column_and_rules(curator, stage):
    def post(what, **fields):
        version = Browser.field(curator.get("/p/people/schema").text, "version")
        return curator.post(f"/p/people/schema/{what}", {"version": version, **fields})

    assert post("person", person="patient_id", unit_records="3").status_code == 303
    assert (schema(stage).unit.person, schema(stage).unit.records) == ("patient_id", 3)
    assert wrong_at(post("person", person="age", unit_records="3")) == set()
    assert post("person", person="age", unit_records="3").status_code == 422
    assert wrong_at(post("person", person="", unit_records="auto")) == {"unit_records"}
    assert wrong_at(post("person", person="", unit_records="many")) == {"unit_records"}

    assert post("rule", shape="impossible", impossible="sex = F\nward = west").status_code == 303
    assert post("rule", shape="determines", names="ward", last="sex", map="north = F").status_code == 303
    assert wrong_at(post("rule", shape="order", names="sex, age")) == {"names"}
    assert wrong_at(post("rule", shape="impossible", impossible="nonsense")) == {"impossible"}
    assert len(schema(stage).constraints) == 1
    page = curator.get("/p/people/schema").text
    assert "never together: sex = F and ward = west" in page
    assert "ward determines sex: north → F" in page
    for rule in ("constraint-0", "impossible-0"):
        assert post("unrule", rule=rule).status_code == 303
    assert (schema(stage).constraints, schema(stage).impossible) == ((), ())


def test_the_file_itself_can_be_edited(curator, stage):
    page = curator.get("/p/people/schema").text
    fields = {"version": Browser.field(page, "version"), "text": "[columns.a]\nkind = 'nonsense'\n"}
    before = stage.place().schema.read_bytes()

    refused = curator.post("/p/people/schema/text", fields)
    assert wrong_at(refused) == {"text"}
    assert stage.place().schema.read_bytes() == before

    text = "# by hand\n[columns.a]\nkind = 'integer'\nlow = 0\nhigh = 3\n"
    assert curator.post("/p/people/schema/text", fields | {"text": text}).status_code == 303
    assert stage.place().schema.read_text() == text


def test_a_check_tells_columns_and_reasons_and_no_value(stage):
    curator = prepared(stage, extra=(f"{SECRETS[0]},{SECRETS[2]},{SECRETS[1]}",))
    curator.post("/p/people/schema/check")
    assert stage.work() == [0]

    page = curator.get("/p/people/schema").text

    assert "2 things do not fit" in page
    assert "column &#39;sex&#39; has values outside the labels" in page
    assert not [secret for secret in SECRETS if secret in page]


def test_a_check_says_that_the_schema_has_changed_since(curator, stage):
    curator.post("/p/people/schema/check")
    stage.work()
    assert "The private table fits the schema" in curator.get("/p/people/schema").text

    save(curator, "sex", kind="categorical", labels="F\nM\nX")
    assert "has changed since the last check" in curator.get("/p/people/schema").text


def test_public_values_without_a_place_are_told(curator, stage):
    save(curator, "ward", kind="categorical", labels="north\nsouth")

    assert "of the public records have no place here" in curator.get("/p/people/schema").text


def test_a_table_that_cannot_be_drafted_from_is_said_to_be_so(stage):
    curator = stage.browser()
    curator.post("/projects", {"title": "People"})
    place = stage.place()
    (place.path / "public.csv").write_text(table(0, 1))
    curator.post("/p/people/sources/add", {"source": "public.csv"})
    curator.post("/p/people/schema/draft", {"draft_public": "public.csv"})
    stage.work()

    assert curator.get("/p/people/schema").status_code == 200
