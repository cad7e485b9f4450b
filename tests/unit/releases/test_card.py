"""The card: typed, the same after it was written and read, and refused where it cannot be."""

import importlib.util
import json
import re
from dataclasses import fields, is_dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import get_type_hints

import numpy as np
import pytest

from sidelight._foreign import ForeignError
from sidelight.data.schema import Schema
from sidelight.data.table import Table
from sidelight.errors import ReleaseError
from sidelight.mechanisms.registry import mechanism_of, names
from sidelight.releases.card import VERSION, Card, PaidAgain
from sidelight.releases.release import Release
from sidelight.releases.run import release
from sidelight.reports.report import render
from sidelight.testing import SeededNoise
from torched import torched

OLD = Path(__file__).parent / "version_0"
VERSION_1 = Path(__file__).parent / "version_1"
HOOK = Path(__file__).resolve().parents[3] / "docs" / "_hooks" / "card_schema.py"
SIZES = {"a": 2, "b": 2, "c": 2}
ASKED = {
    "aperture": {"max_rounds": 2},
    "jam": {"rounds": 3},
    "aim": {},
    "mst": {},
    "hdmm": {},
    "ladder": {},
    "gem": {"rounds": 2, "steps": 3, "batch": 8, "latent": 2, "width": 4},
    "gem-pub": {"rounds": 2, "steps": 3, "batch": 8, "latent": 2, "width": 4, "public_steps": 3},
    "dualquery": {"max_rounds": 3, "queries_per_round": 5},
    "mwem": {"rounds": 2, "workload": [("a", "b"), ("c",)]},
    "mwem-pub": {"rounds": 2},
    "pmw-pub": {"rounds": 2},
    "barak": {"unit": "add-or-remove"},
}


def table(seed, records):
    rng = np.random.default_rng(seed)
    first = rng.integers(0, 2, records)
    codes = np.stack([first, (first + (rng.random(records) < 0.2)) % 2, rng.integers(0, 2, records)], axis=1)
    return Table.of_codes(Schema.from_domain(SIZES).domain, codes)


@pytest.fixture(scope="module")
def cards():
    """One card of every mechanism."""
    made = {}
    for name, settings in ASKED.items():
        if torched(name) and importlib.util.find_spec("torch") is None:
            continue
        has_public = mechanism_of(name).public_data != "unused"
        made[name] = release(
            table(1, 300), schema=Schema.from_domain(SIZES), epsilon=1, delta=1e-6, mechanism=name,
            public=table(2, 200) if has_public else None, noise=SeededNoise(3), progress=False,
            **({"workload": "2-way"} | settings),
        ).card  # fmt: skip
    return made


@pytest.fixture(scope="module")
def schema():
    """The module that makes the schema."""
    spec = importlib.util.spec_from_file_location("card_schema", HOOK)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def as_read(card, **changes):
    """The card's JSON as a file would give it, with changes."""
    return json.loads(json.dumps(card.as_json())) | changes


# --- as values -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [pytest.param(name, marks=torched(name)) for name in ASKED])
def test_a_card_is_the_same_after_it_was_written_and_read(cards, name):
    card = cards[name]

    again = Card.from_json(as_read(card))

    assert again == card
    assert again.as_json() == card.as_json()


def test_every_mechanism_of_the_registry_is_tried_here():
    assert set(ASKED) == set(names())


def test_a_card_shows_itself_in_one_line(cards):
    assert repr(cards["jam"]).startswith("Card(jam, ε = ")
    assert "\n" not in repr(cards["jam"])
    assert len(repr(cards["jam"])) < 120


def test_what_follows_from_other_facts_is_never_believed(cards):
    edited = as_read(cards["mwem"], promise="(0, 0)-differential privacy", epsilon_spent=0.0, warning=None)

    card = Card.from_json(edited)

    assert card.promise == cards["mwem"].promise
    assert card.promise.startswith("(1, 1e-06)-differential privacy under replacing one record")
    assert 0.99 < card.epsilon_spent <= 1
    assert card.warning.startswith("NOT PRIVATE")


def test_what_was_paid_again_is_part_of_what_was_spent(cards):
    card = cards["aim"]
    more = PaidAgain(events=1, cost=Fraction(1, 100))

    paid = replace(card, spent=card.spent + more.cost, paid_again=more)

    assert paid.epsilon_spent > card.epsilon_spent
    with pytest.raises(ReleaseError, match="do not add up"):
        replace(card, paid_again=more)


def test_a_setting_that_was_left_to_the_mechanism_is_told_as_it_was_chosen(cards):
    assert mechanism_of("aim").settings()["estimator"] == mechanism_of("mwem").settings()["model"] == "auto"
    assert cards["aim"].settings["estimator"] == "tree"
    assert cards["mwem"].settings["model"] == "histogram"


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=torched(name)) for name in names() if name != "aperture"]
)
def test_every_published_mechanism_states_its_papers(cards, name):
    assert cards[name].papers == mechanism_of(name).papers != ()
    assert all(1990 < paper.year < 2030 and len(paper.title) > 20 for paper in cards[name].papers)


# --- cards of other versions -------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["mwem-pure", "aim", "jam", "pmw-pub", "aperture"])
def test_a_card_without_a_version_is_read(name):
    plain = json.loads((OLD / f"{name}.json").read_text(encoding="utf-8"))

    card = Card.from_json(plain)

    assert card.version == VERSION
    assert card.mechanism == plain["mechanism"]
    assert card.epsilon_spent == pytest.approx(plain["epsilon_spent"], abs=1e-12)
    assert card.promise == plain["promise"]
    assert [event.as_json() for event in card.events] == plain["events"]
    assert card.papers == mechanism_of(card.mechanism).papers
    if name in ("jam", "pmw-pub"):
        assert card.public.disagreements[0].attrs == tuple(plain["public_error"][0]["attrs"])
    if name == "aperture":
        moved = {one.attrs: one.moved for one in card.aperture.marginals}
        assert moved == {
            tuple(one["attrs"]): pytest.approx(one["error"], abs=1e-6) for one in plain["public_error"]
        }
    assert Card.from_json(as_read(card)) == card


def test_a_card_without_a_version_by_an_unknown_mechanism_has_no_papers():
    plain = json.loads((OLD / "aim.json").read_text(encoding="utf-8"))

    assert Card.from_json(plain | {"mechanism": "from the future"}).papers == ()


@pytest.mark.parametrize("name", ["jam", "aperture"])
def test_a_card_of_version_1_is_read(cards, name):
    plain = json.loads((VERSION_1 / f"{name}.json").read_text(encoding="utf-8"))

    card = Card.from_json(plain)

    assert card.version == VERSION
    assert card.noise_is_private is plain["private"] is False
    assert card.schema_fingerprint == plain["schema"]
    assert [event.as_json() for event in card.events] == plain["events"]
    assert Card.from_json(as_read(card)) == card


@pytest.mark.parametrize("then", [OLD, VERSION_1], ids=lambda folder: folder.name)
def test_a_folder_of_an_earlier_version_is_loaded_reported_and_saved_again(tmp_path, then):
    old = Release.load(then / "mwem")

    again = Release.load(old.save(tmp_path / "out"))

    assert again.card == old.card
    assert render(again) == render(old)
    assert (tmp_path / "out" / "workload.json").read_text() == (then / "mwem" / "workload.json").read_text()


@pytest.mark.parametrize("version", [3, 99, "1", None, 1.0, True, [1], -1])
def test_a_card_of_an_unknown_version_is_refused_with_what_to_do(cards, version):
    with pytest.raises(ReleaseError, match=r"versions up to 2\. Update sidelight"):
        Card.from_json(as_read(cards["mwem"], version=version))


# --- cards that somebody edited ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"mechanism": 3}, "card.mechanism must be a text; got 3"),
        ({"epsilon": True}, "card.epsilon must be a finite number; got True"),
        ({"epsilon": float("nan")}, "card.epsilon must be a finite number"),
        ({"epsilon": 10**400}, "card.epsilon must be a finite number"),
        ({"noise_is_private": 1}, "card.noise_is_private must be true or false"),
        ({"spent": "1e9"}, "card.spent must be a fraction such as"),
        ({"spent": "1/0"}, "card.spent must be a fraction such as"),
        ({"created": "yesterday"}, "card.created must be a moment such as"),
        ({"accounting": "creative"}, "card.accounting must be 'zcdp' or 'pure'; got 'creative'"),
        ({"settings": []}, "card.settings must be an object"),
        ({"notes": "none"}, "card.notes must be a list"),
        ({"notes": [1]}, r"card.notes\[0\] must be a text"),
        ({"unit": {"relation": "replace", "records": 0}}, "card.unit cannot be: records must be"),
        ({"ledger": {"name": "x", "run": "1"}}, "card.ledger has no head"),
        ({"model_error": {"levels": {"met": "many"}, "trials": {}}}, "card.model_error.levels.met must be"),
        ({"model_error": {"levels": {"some": 1}, "trials": {}}}, "must be 'met' or 'unmet'; got 'some'"),
        ({"workload": {"queries": 1, "marginals": 1, "attribute_sets": [], "asked": 7}}, "asked must be"),
        ({"stranger": 1}, "card holds 'stranger', which this sidelight does not know"),
    ],
)  # fmt: skip
def test_a_card_that_was_edited_is_refused_and_the_place_is_named(cards, changes, told):
    with pytest.raises(ForeignError, match=told):
        Card.from_json(as_read(cards["mwem"], **changes))


@pytest.mark.parametrize("plain", [None, [], "card", 7])
def test_what_is_no_object_is_no_card(plain):
    with pytest.raises(ForeignError, match="must be an object"):
        Card.from_json(plain)


def test_every_fact_without_a_default_must_be_there(cards):
    plain = as_read(cards["mwem"])
    required = {
        "mechanism",
        "settings",
        "unit",
        "epsilon",
        "spent",
        "events",
        "ledger",
        "schema_fingerprint",
        "created",
    }

    for name in required:
        with pytest.raises(ForeignError, match=f"card has no {name}"):
            Card.from_json({key: value for key, value in plain.items() if key != name})


# --- the published schema ------------------------------------------------------------------------------


def wrongs(schema, value, whole, where="card"):
    """What a value has against a schema: as much of JSON Schema as ours uses."""
    if "$ref" in schema:
        yield from wrongs(whole["$defs"][schema["$ref"].rpartition("/")[2]], value, whole, where)
    if "anyOf" in schema and not any(not list(wrongs(one, value, whole)) for one in schema["anyOf"]):
        yield f"{where}: none of anyOf"
    if "enum" in schema and value not in schema["enum"]:
        yield f"{where}: {value!r} is none of {schema['enum']}"
    kinds = {
        "object": dict, "array": list, "string": str, "boolean": bool, "integer": int,
        "number": (int, float), "null": type(None),
    }  # fmt: skip
    kind = schema.get("type")
    if kind and (not isinstance(value, kinds[kind]) or (isinstance(value, bool) and kind != "boolean")):
        yield f"{where}: {value!r} is no {kind}"
        return
    if "pattern" in schema and not re.search(schema["pattern"], value):
        yield f"{where}: {value!r} is not like {schema['pattern']}"
    for name in schema.get("required", ()):
        if name not in value:
            yield f"{where}: no {name}"
    if kind == "object":
        others = schema.get("additionalProperties", {})
        for name, inner in value.items():
            inside = schema.get("properties", {}).get(name, others)
            if inside is False:
                yield f"{where}: {name} is not allowed"
            else:
                yield from wrongs(inside, inner, whole, f"{where}.{name}")
    if kind == "array":
        for place, inner in enumerate(value):
            yield from wrongs(schema["items"], inner, whole, f"{where}[{place}]")


def test_the_published_schema_is_that_of_the_card(schema):
    assert schema.PUBLISHED.read_text(encoding="utf-8") == schema.text(), (
        "docs/reference/card.schema.json is out of date: run python docs/_hooks/card_schema.py"
    )


@pytest.mark.parametrize("name", [pytest.param(name, marks=torched(name)) for name in ASKED])
def test_real_cards_meet_the_published_schema(cards, name, schema):
    published = json.loads(schema.PUBLISHED.read_text(encoding="utf-8"))

    assert list(wrongs(published, as_read(cards[name]), published)) == []


@pytest.mark.parametrize(
    "changes",
    [
        {"version": 3},
        {"epsilon": "1"},
        {"private": "yes"},
        {"spent": 0.5},
        {"stranger": 1},
        {"unit": {"relation": "sometimes", "records": 1}},
        {"rounds": [{"marginal": ["a"], "source": "nowhere", "stddev": 1}]},
        {"events": [{"event": "gaussian"}]},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_the_published_schema_refuses_what_is_no_card(cards, changes, schema):
    published = json.loads(schema.PUBLISHED.read_text(encoding="utf-8"))

    assert list(wrongs(published, as_read(cards["jam"], **changes), published))


def test_every_field_of_the_card_says_what_it_is(schema):
    described = schema.card_schema()

    assert [name for name, told in described["properties"].items() if not told.get("description")] == []


def test_every_part_of_the_card_is_frozen():
    def parts(kind, seen):
        for told in get_type_hints(kind).values():
            for inner in (told, *getattr(told, "__args__", ())):
                if isinstance(inner, type) and is_dataclass(inner) and inner not in seen:
                    seen.add(inner)
                    parts(inner, seen)
        return seen

    found = parts(Card, {Card})
    assert len(found) > 8
    assert all(kind.__dataclass_params__.frozen for kind in found)
    assert fields(Card)[0].name == "version"
