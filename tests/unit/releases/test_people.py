"""A release about people with many records: what is used, what is said, and what is refused for nothing."""

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

import sidelight as sl
from sidelight.curator.curator import Curator
from sidelight.data.schema import Schema
from sidelight.data.table import Table
from sidelight.errors import CheckpointError, DataError, LedgerError, SchemaError, SettingError
from sidelight.privacy.budget import Budget
from sidelight.privacy.ledger import MemoryLedger
from sidelight.privacy.promise import Promise
from sidelight.privacy.unit import Unit

# Much ε, so that noise hides nothing of which records were kept.
pytestmark = pytest.mark.filterwarnings("ignore:ε = 50 is above 10:sidelight.errors.PrivacyWarning")

COLUMNS = {"ward": 4, "sex": 2}
DRAW = np.random.default_rng(4)
IDS = np.concatenate([np.zeros(1000, dtype=int), DRAW.integers(1, 100, 500)])
VISITS = pa.table({"who": [f"p{i}" for i in IDS], "ward": np.where(IDS, IDS % 4, 3), "sex": IDS % 2})
UNIT = Unit("add-or-remove", 2, "who")


def schema(unit: Unit = UNIT) -> Schema:
    return Schema.from_domain(COLUMNS, unit=unit)


def release(table=VISITS, *, unit: Unit = UNIT, **asked):
    asked = {"epsilon": 50.0, "workload": "2-way", "mechanism": "mwem", "progress": False} | asked
    asked |= {"epsilon": 2.0} if "ledger" in asked else {"delta": 1e-9}
    return sl.release(table, schema=schema(unit), rounds=2, **asked)


@pytest.mark.parametrize("relation", ["replace", "add-or-remove"])
def test_a_thousand_records_of_one_person_count_as_k(relation):
    made = release(unit=Unit(relation, 2, "who"))

    people = len(set(IDS.tolist()))
    assert people < made.total < 2 * people + 60  # of 1,500 records
    assert "up to 2 records of each who are used" in made.card.promise
    assert made.card.unit.person == "who"
    assert any("total" in event.what for event in made.card.events)
    assert sl.Release is type(made)


def test_the_column_of_people_is_no_attribute():
    made = release()

    assert made.model.domain.attrs == ("ward", "sex")
    assert made.sample(5, seed=1).column_names == ["ward", "sex"]


def test_a_curator_takes_no_table_whose_records_were_not_bounded():
    ledger = MemoryLedger(Promise(Budget(epsilon=1.0, delta=1e-9), UNIT, "people"))
    whole = Table.read(VISITS, schema(), unit=UNIT)
    three = UNIT.with_records(3)

    for table in (whole, Table.read(VISITS, schema()), whole.keeping(three, "00")):
        with pytest.raises(SettingError, match="records were kept"):
            Curator(table, allotment=ledger.promise.budget.rho(), unit=UNIT, ledger=ledger)

    Curator(whole.keeping(UNIT, "00"), allotment=ledger.promise.budget.rho(), unit=UNIT, ledger=ledger)


# The nearest real numbers of two people may be one: they must not share the records of one person.
FAR = [Decimal(2**53), Decimal(2**53 + 1)] * 750
FINE = [Decimal("1"), Decimal("1.00000000000000000001")] * 750
WITH_DECIMALS = [
    *(VISITS.to_pandas().assign(who=names) for names in (FAR, FINE, [Decimal("1e30")] * 1500)),
    *(VISITS.set_column(0, "who", pa.array(names, pa.decimal128(38, 20))) for names in (FAR, FINE)),
]


@pytest.mark.parametrize(
    ("table", "said"),
    [
        (VISITS.drop_columns(["who"]), "is not in the table"),
        (VISITS.set_column(0, "who", pa.array([None] + ["p"] * 1499)), "missing values"),
        (VISITS.set_column(0, "who", pa.array([0.5] + [1.0] * 1499)), "neither text nor whole numbers"),
        (VISITS.set_column(0, "who", pa.array([True] * 1500)), "neither text nor whole numbers"),
        *((table, "neither text nor whole numbers") for table in WITH_DECIMALS),
        (VISITS.append_column("who", VISITS.column("who")), "appears twice"),
        (Table.of_codes(schema().domain, np.zeros((3, 2), dtype=int)), "already encoded, without 'who'"),
        (
            Table.read(
                VISITS.append_column("whom", VISITS.column("who")), schema(), unit=Unit(person="whom")
            ),
            "already encoded, without 'who'",
        ),
    ],
)
def test_a_table_that_does_not_say_who_is_who_is_refused_for_nothing(table, said, tmp_path):
    ledger = tmp_path / "visits.ledger"
    sl.SqlLedger.create(ledger, Promise(Budget(epsilon=10.0, delta=1e-9), UNIT, "visits"))

    with pytest.raises(DataError, match=said) as caught:
        release(table, ledger=ledger)

    assert "0.5" not in str(caught.value)
    assert not list(sl.SqlLedger.open(ledger).runs())


def test_records_that_name_nobody_are_people_of_their_own_where_that_is_declared():
    table = pa.table({"who": [None] * 400, "ward": [1] * 400, "sex": [0] * 400})

    made = release(table, unit=Unit("add-or-remove", 2, "who", "own"))

    assert 350 < made.total < 450
    assert "a record without one counts as a person" in made.card.promise


def test_an_attribute_cannot_say_who_is_who():
    with pytest.raises(SchemaError, match="cannot be an attribute too"):
        Schema.from_domain({"who": 3}, unit=UNIT)
    with pytest.raises(SchemaError, match="cannot be an attribute too"):
        sl.release(
            VISITS,
            schema=Schema.from_domain(COLUMNS),
            unit=Unit("replace", person="sex"),
            epsilon=1,
            delta=1e-9,
        )


@pytest.mark.parametrize(
    ("unit", "said"),
    [
        ('person = ["a", "b"]', "one column"),
        ('person = "who"\nrecords = 0', "at least 1"),
        ('records = "auto"', "needs person"),
        ('person = "who"\npeople = 3', "unknown key"),
    ],
)
def test_a_schema_whose_unit_makes_no_sense_is_refused(unit, said):
    with pytest.raises(SchemaError, match=said):
        Schema.from_toml(f'[unit]\n{unit}\n[columns.a]\nkind = "integer"\nlow = 0\nhigh = 1\n')


@pytest.mark.parametrize("records", [3, "auto"])
def test_a_schema_with_people_survives_its_file(records):
    declared = schema(Unit.said(relation="replace", records=records, person="who", missing_person="own"))

    again = Schema.from_toml(declared.to_toml())

    assert again == declared
    assert again.fingerprint == declared.fingerprint != schema().fingerprint


def test_public_data_with_people_say_how_many_records_to_use():
    auto = Unit.said(relation="replace", records="auto", person="who")
    ids = [f"q{i}" for i in range(100) for _ in range(1 + 3 * (i < 20) + 90 * (i < 3))]
    public = pa.table({"who": ids, "ward": [1] * len(ids), "sex": [0] * len(ids)})

    planned = sl.Plan.of(schema=schema(auto), epsilon=1, delta=1e-9, workload="2-way", public=public)

    assert planned.unit == Unit("replace", 4, "who")
    for without in (None, public.drop_columns(["who"])):
        with pytest.raises(SettingError, match="needs public data with the column 'who'"):
            sl.Plan.of(schema=schema(auto), epsilon=1, delta=1e-9, workload="2-way", public=without)


def test_releases_from_one_ledger_may_use_different_numbers_of_records(tmp_path):
    ledger = tmp_path / "visits.ledger"
    sl.SqlLedger.create(ledger, Promise(Budget(epsilon=10.0, delta=1e-9), UNIT, "visits"))

    release(ledger=ledger)
    with pytest.warns(sl.PrivacyWarning, match="another schema"):
        release(ledger=ledger, unit=UNIT.with_records(4))

    shuffled = VISITS.take(DRAW.permutation(1500))
    release(shuffled, ledger=ledger)  # the same people in another order
    renamed = VISITS.set_column(0, "who", pa.array([f"q{i}" for i in IDS]))
    with pytest.raises(LedgerError):
        release(renamed, ledger=ledger)
    with pytest.raises(SettingError, match="ledger promises"):
        release(ledger=ledger, unit=Unit("add-or-remove", 2))


def test_every_run_of_a_ledger_keeps_the_same_records(tmp_path, monkeypatch):
    keys = []
    keeping = Table.keeping

    def watched(table, unit, key):
        keys.append(key)
        return keeping(table, unit, key)

    monkeypatch.setattr(Table, "keeping", watched)
    ledger, folder = tmp_path / "visits.ledger", tmp_path / "run"
    sl.SqlLedger.create(ledger, Promise(Budget(epsilon=10.0, delta=1e-9), UNIT, "visits"))

    first = release(ledger=ledger, checkpoint=folder)
    again = release(ledger=ledger, checkpoint=folder)
    release(ledger=ledger)
    release()

    assert keys[0] == keys[1] == keys[2] != keys[3]
    assert first.total == again.total
    assert (folder / "key").stat().st_mode & 0o077 == 0
    assert keys[0] not in (folder / "key").read_text()
    changed = VISITS.set_column(0, "who", pa.array(["p"] * 1500))
    with pytest.raises((CheckpointError, LedgerError)):
        release(changed, ledger=ledger, checkpoint=folder)


def test_means_and_screens_say_what_to_do_instead():
    with pytest.raises(SettingError, match="must say who its values are about"):
        sl.mixed_mean([sl.Group([1.0, 2.0], epsilon=1.0)], bounds=(0, 3), unit=UNIT, alone=True)
    for unit in (UNIT, UNIT.with_records(1)):
        asked = {"schema": schema(unit), "workload": "2-way", "epsilon": 1.0}
        with pytest.raises(
            SettingError, match=r"person = 'who', whatever its records, it is private.*rehearse"
        ):
            sl.best_mixture_error(VISITS, VISITS.slice(9), **asked)


def test_a_rehearsal_plays_records_that_were_kept():
    ids = [f"q{i}" for i in range(300) for _ in range(1 + (i < 60))]
    public = pa.table({"who": ids, "ward": [i % 4 for i in range(360)], "sex": [i % 2 for i in range(360)]})
    auto = Unit.said(relation="replace", records="auto", person="who")
    asked = {"epsilon": 5.0, "workload": "2-way", "mechanism": "mwem", "runs": 1, "progress": False}

    two, twenty = (
        sl.rehearse(public, schema=schema(unit), **asked).played[0].errors[0]
        for unit in (auto, Unit("replace", 20, "who"))
    )

    assert two < twenty


def test_checking_a_table_says_that_it_lacks_its_people_without_refusing_a_public_one():
    misfits = schema().check(VISITS.drop_columns(["who"]))

    assert [(misfit.column, misfit.is_fatal) for misfit in misfits] == [("who", False)]
    assert not schema().check(VISITS)
