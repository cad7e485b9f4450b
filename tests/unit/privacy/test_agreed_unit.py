"""Call, schema and ledger say one unit, or nothing happens."""

import copy
import itertools
import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import sidelight as sl
from sidelight.curator.curator import Curator
from sidelight.errors import SettingError
from sidelight.evaluation.screening import screen
from sidelight.privacy.budget import Budget
from sidelight.privacy.ledger import MemoryLedger
from sidelight.privacy.promise import Promise, agreed_unit
from sidelight.privacy.statement import Statement
from sidelight.privacy.unit import Unit
from sidelight.progress import Silent
from sidelight.releases.run import run

FIVE, ONE = Unit("add-or-remove", records=5), Unit()
COLUMNS = (
    '[columns.a]\nkind = "integer"\nlow = 0\nhigh = 2\n[columns.b]\nkind = "integer"\nlow = 0\nhigh = 1\n'
)
UNITS = (None, ONE, Unit("add-or-remove"), FIVE, Unit("replace", records=5))


def promise(unit: Unit) -> Promise:
    return Promise(Budget(epsilon=1.0, delta=1e-9), unit, "people")


@pytest.mark.parametrize(("asked", "declared", "promised"), list(itertools.product(UNITS, repeat=3)))
def test_what_two_of_three_say_must_be_equal(
    asked: Unit | None, declared: Unit | None, promised: Unit | None
) -> None:
    said = {unit for unit in (asked, declared, promised) if unit is not None}
    book = None if promised is None else promise(promised)
    if len(said) > 1:
        with pytest.raises(SettingError, match="Nothing was read and nothing was charged"):
            agreed_unit(asked=asked, declared=declared, promise=book)
    else:
        assert agreed_unit(asked=asked, declared=declared, promise=book) == (said.pop() if said else Unit())


def test_a_refusal_names_both_units() -> None:
    with pytest.raises(SettingError) as refused:
        agreed_unit(declared=FIVE, promise=promise(ONE))
    assert "the ledger promises 'replace' of one record a person" in str(refused.value)
    assert "the schema declares 'add-or-remove' of up to 5 records a person" in str(refused.value)


def test_a_ledger_about_people_is_not_said_to_promise_a_number_of_records() -> None:
    declared = Unit("add-or-remove", records=3, person="patient_id")
    book = promise(Unit("replace", person="patient_id"))

    with pytest.raises(SettingError) as refused:
        agreed_unit(declared=declared, promise=book)

    said = "the ledger promises 'replace' of a person by 'patient_id', however many records are used, but"
    assert said in str(refused.value)
    assert "up to 3 records each" in str(refused.value)
    assert "as many of them as its schema says" in book.protects
    assert "one record" not in book.protects


def test_a_ledger_about_people_is_opened_from_python(tmp_path: Path) -> None:
    made = sl.Ledger.open(tmp_path / "people.ledger", epsilon=1.0, delta=1e-9, person="patient_id")

    assert made.promise.unit == Unit("replace", person="patient_id")
    assert made.promise.protects in made._repr_html_()
    assert Statement.of(made).as_json()["records"] is None
    with pytest.raises(SettingError, match="person is for a new ledger"):
        sl.Ledger.open(tmp_path / "people.ledger", person="patient_id")


def test_a_schema_file_without_a_unit_declares_none() -> None:
    silent = sl.Schema.from_toml(COLUMNS)
    said = sl.Schema.from_toml('[unit]\nrelation = "replace"\n' + COLUMNS)
    assert silent.declared_unit is None
    assert said.declared_unit == ONE
    assert silent.unit == said.unit == ONE
    assert silent.fingerprint == said.fingerprint  # what was released before is recognised still


@pytest.mark.parametrize(
    "again",
    [
        lambda schema: sl.Schema.from_toml(schema.to_toml()),
        lambda schema: schema.with_impossible({"a": [0], "b": [1]}),
        lambda schema: replace(schema, note="a note"),
        lambda schema: pickle.loads(pickle.dumps(schema)),  # our own bytes
        copy.deepcopy,
    ],
)
@pytest.mark.parametrize("head", ["", '[unit]\nrelation = "replace"\n', "[unit]\nrecords = 5\n"])
def test_whether_a_schema_declares_a_unit_outlives_copying(again: object, head: str) -> None:
    schema = sl.Schema.from_toml(head + COLUMNS)
    assert again(schema).declared_unit == schema.declared_unit  # type: ignore[operator]


def test_a_unit_that_is_put_into_a_schema_is_declared() -> None:
    assert replace(sl.Schema.from_toml(COLUMNS), unit=Unit()).declared_unit == Unit()
    assert sl.Schema.from_domain({"a": 2}, unit="replace").declared_unit == Unit()
    assert sl.Schema.from_domain({"a": 2}).declared_unit is None


def people() -> pa.Table:
    draw = np.random.default_rng(1)
    return pa.table({"a": draw.integers(0, 3, 300), "b": draw.integers(0, 2, 300)})


def five() -> sl.Schema:
    return sl.Schema.from_toml('[unit]\nrelation = "add-or-remove"\nrecords = 5\n' + COLUMNS)


def test_no_door_opens_under_another_unit_than_its_ledger_promises() -> None:
    book = MemoryLedger(promise(ONE))
    asked = {"schema": five(), "epsilon": 0.5, "ledger": book, "workload": "2-way"}
    with pytest.raises(SettingError, match="the schema declares"):
        sl.release(people(), **asked)
    with pytest.raises(SettingError, match="the schema declares"):
        sl.Synthesizer(schema=five(), epsilon=0.5, ledger=book, workload="2-way").fit(people())
    with pytest.raises(SettingError, match="the schema declares"):
        screen(people(), {"other": people()}, **asked)
    with pytest.raises(SettingError, match="this call asks for"):
        sl.mixed_mean([sl.Group([1.0], epsilon=0.1)], bounds=(0, 1), unit=FIVE, ledger=book, alone=True)
    table = sl.Table.read(people(), five())
    with pytest.raises(SettingError, match="this call asks for"):
        Curator(table, allotment=Budget(epsilon=0.1, delta=0.0).pure(), unit=FIVE, ledger=book)
    plan = sl.Plan.of(schema=five(), epsilon=0.5, delta=1e-9, workload="2-way")
    with pytest.raises(SettingError, match="this call asks for"):
        run(plan, people(), ledger=book, progress=Silent())
    assert not list(book.runs())


def test_what_the_schema_leaves_out_is_the_ledgers() -> None:
    book = MemoryLedger(promise(FIVE))
    made = sl.release(
        people(), schema=sl.Schema.from_toml(COLUMNS), epsilon=0.5, ledger=book, workload="2-way",
        mechanism="mwem", rounds=1,
    )  # fmt: skip
    assert made.card.unit == Unit("add-or-remove", records=5)
    assert sl.Schema.from_toml(made.schema.to_toml()).declared_unit is None
