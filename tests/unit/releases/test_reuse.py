"""Noisy answers of an earlier release are used again if they are about the same records, and only then."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import sidelight as sl
from sidelight.errors import LedgerError, SettingError
from sidelight.reports.report import render
from sidelight.testing import SeededNoise

SCHEMA = sl.Schema.from_domain({"age": 4, "sex": 2})
WAYS = {
    "hdmm": {},
    "mwem": {"rounds": 2},
    "aim": {},
    "mst": {},
    "jam": {"rounds": 2},
}


def people(path, *, changed=False):
    rows = np.random.default_rng(1).integers(0, [4, 2], size=(5000, 2))
    rows[0] = [3, 1] if changed else [0, 0]
    path.write_text("age,sex\n" + "".join(f"{age},{sex}\n" for age, sex in rows))
    return path


@pytest.fixture
def table(tmp_path):
    return people(tmp_path / "people.csv")


@pytest.fixture
def ledger(tmp_path):
    return sl.Ledger.open(tmp_path / "l.ledger", epsilon=5, delta=1e-9)


def released(table, ledger, mechanism="hdmm", *, schema=SCHEMA, **more):
    public = pa.table({"age": [0, 1, 2, 3], "sex": [0, 1, 0, 1]}) if mechanism == "jam" else None
    return sl.release(
        table, schema=schema, ledger=ledger, epsilon=0.5, mechanism=mechanism, public=public,
        workload="2-way", quality_share=0, progress=False, **WAYS[mechanism], **more,
    )  # fmt: skip


@pytest.mark.parametrize("mechanism", WAYS)
def test_earlier_answers_are_used_again_and_cost_nothing(table, ledger, mechanism, tmp_path):
    # HDMM's answers are residuals, which it alone can hold.
    by = "hdmm" if mechanism == "hdmm" else "aim"
    first = released(table, ledger, by)
    first.save(tmp_path / "first")
    before = ledger.spent

    second = released(table, ledger, mechanism, reuse=tmp_path / "first")

    (told,) = second.card.reused
    assert (told.run, told.mechanism) == (first.card.ledger.run, by)
    lent = sum(made.answer.size for made in first.measurements)
    # MWEM averages what it measures again; the others take all that there is.
    again = [made for made in first.measurements if made.query in {one.query for one in second.measurements}]
    used = sum(made.answer.size for made in again) if mechanism == "mwem" else lent
    assert (told.answers, told.of) == (used, lent)
    # What it charged is what its own events cost.
    assert ledger.spent - before == sum(event.cost.value for event in second.card.events)
    again = sl.Release.load(second.save(tmp_path / "second") or tmp_path / "second")
    assert again.card.reused == second.card.reused


def test_an_earlier_answer_counts_as_used_only_if_it_was(table, ledger, tmp_path):
    """APERTURE averages what it measures again; the pair that it does not measure is left."""
    asked = {"schema": SCHEMA, "ledger": ledger, "epsilon": 0.5, "mechanism": "aperture"}
    # MST measures both attributes and the pair, whatever the noise.
    first = sl.release(table, **asked | {"mechanism": "mst", "epsilon": 2}, workload="2-way", progress=False)
    singles = [made for made in first.measurements if len(made.query.attrs) == 1]
    assert len(singles) < len(first.measurements)
    plan = sl.plan(**asked, workload="1-way", reuse=first)
    second = sl.release(table, **asked, workload="1-way", reuse=first, progress=False)

    (told,) = second.card.reused
    lent = sum(made.answer.size for made in first.measurements)
    assert told.of == lent
    assert told.answers == sum(made.answer.size for made in singles)
    assert f"used again, free of charge: {told.answers} of {lent} noisy answers" in told.sentence
    assert any(note.startswith(f"Up to {lent} noisy answers") for note in plan.notes)
    assert f"{told.answers} noisy answers (of {lent}) of the release of" in render(second)


def test_two_answers_of_one_number_are_closer_than_one(table, ledger):
    first = released(table, ledger)
    alone, both = (released(table, ledger, reuse=reuse) for reuse in (None, first))

    errors = [one.answer(["age", "sex"])["standard_error"].to_numpy().mean() for one in (alone, both)]
    assert errors[1] == pytest.approx(errors[0] / 2**0.5, rel=0.05)


def test_no_noise_counts_twice_where_releases_reused_each_other(table, ledger):
    first = released(table, ledger)
    second, beside = (released(table, ledger, reuse=first) for _ in range(2))
    third = released(table, ledger, reuse=second)

    # The second holds what the first told, averaged with its own; so does the third.
    (told,) = released(table, ledger, reuse=[first, second, third]).card.reused
    assert told.run == third.card.ledger.run
    assert set(told.holds) == {first.card.ledger.run, second.card.ledger.run}
    with pytest.raises(SettingError, match="whose noise would count twice"):
        released(table, ledger, reuse=[second, beside])


def test_a_planted_mismatch_of_one_record_is_refused_and_costs_nothing(table, ledger):
    first = released(table, ledger)
    spent = ledger.spent
    people(table, changed=True)
    ledger.rebind({})  # somebody says that the ledger's table is another now

    with pytest.raises(LedgerError, match="table has changed since, so its answers are about other records"):
        released(table, ledger, reuse=first)
    assert ledger.spent == spent


def test_answers_of_another_table_ledger_schema_or_unit_are_refused(table, ledger, tmp_path):
    first = released(table, ledger)
    spent = ledger.spent
    other = sl.Ledger.open(tmp_path / "other.ledger", epsilon=5, delta=1e-9)
    with pytest.raises(SettingError, match="this ledger did not pay for it"):
        released(table, other, reuse=first)
    with pytest.raises(SettingError, match="reuse needs the ledger that paid"):
        released(table, None, delta=1e-9, reuse=first)

    finer = sl.Schema.from_domain({"age": 5, "sex": 2})
    with pytest.raises(SettingError, match="another schema"):
        released(table, ledger, schema=finer, reuse=first)

    of_three = replace(first, card=replace(first.card, unit=sl.Unit("replace", 3)))
    with pytest.raises(SettingError, match="made under"):
        released(table, ledger, reuse=of_three)

    seeded = released(table, other, noise=SeededNoise(1))
    with pytest.raises(SettingError, match="seeded"):
        released(table, other, reuse=seeded)
    assert ledger.spent == spent


def test_the_same_records_of_each_person_are_kept_by_every_run_of_a_ledger(tmp_path, monkeypatch):
    from sidelight.data.table import Table

    kept = []
    keeping = Table.keeping
    monkeypatch.setattr(Table, "keeping", lambda *given: kept.append(given[2]) or keeping(*given))
    frame = pa.table({"who": [f"p{place // 5}" for place in range(500)], "age": [0, 1, 2, 3, 3] * 100})
    (tmp_path / "visits.csv").write_text(
        "who,age\n" + "".join(f"{one['who']},{one['age']}\n" for one in frame.to_pylist())
    )
    unit = sl.Unit("add-or-remove", 2, "who")
    ledger = sl.Ledger.open(tmp_path / "l.ledger", epsilon=5, delta=1e-9, unit=unit)
    schema = sl.Schema.from_domain({"age": 4})
    asked = {"schema": schema, "ledger": ledger, "epsilon": 0.5, "mechanism": "hdmm", "workload": "1-way"}

    first = sl.release(tmp_path / "visits.csv", **asked, progress=False)
    sl.release(tmp_path / "visits.csv", **asked, reuse=first, progress=False)

    assert len(kept) == 2
    assert kept[0] == kept[1]
