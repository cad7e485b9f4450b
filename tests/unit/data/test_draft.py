import pyarrow as pa
import pytest

from sidelight.data.column import CategoricalColumn, IntegerColumn, RealColumn
from sidelight.data.schema import Schema
from sidelight.data.table import Table
from sidelight.errors import DataError, SchemaError, SettingError


def test_each_column_gets_the_kind_that_its_public_values_suggest():
    table = pa.table(
        {
            "sex": ["m", "f", None] * 20,
            "children": [0, 1, 2] * 20,
            "age": list(range(17, 77)),
            "income": [i * 12.5 + 0.1 for i in range(60)],
            "works": [True, False, True] * 20,
            "years": [float(i) if i else None for i in range(60)],
            "nothing": pa.array([None] * 60, pa.string()),
        }
    )

    schema = Schema.draft(table)

    assert schema.columns == (
        CategoricalColumn("sex", ("f", "m"), missing=True),
        CategoricalColumn("children", (0, 1, 2)),
        IntegerColumn("age", 10, 80, 32, outside="clamp"),
        RealColumn("income", 0.0, 800.0, 32, outside="clamp"),
        CategoricalColumn("works", (False, True)),
        IntegerColumn("years", 0, 60, 32, missing=True, outside="clamp"),
        CategoricalColumn("nothing", (), missing=True),
    )
    assert Table.read(table, schema).records == 60


def test_the_draft_says_that_it_must_come_from_public_data_and_invites_editing():
    text = Schema.draft(pa.table({"a": ["x"], "n": [0.5]})).to_toml()

    assert "must never be written from private data" in text
    assert "add any other that may occur" in text
    assert Schema.from_toml(text) == Schema.draft(pa.table({"a": ["x"], "n": [0.5]}))


def test_a_csv_column_is_numeric_only_if_every_field_is(tmp_path):
    path = tmp_path / "a.csv"
    lines = [f"0{i % 10},{i},{i}.5,{'true' if i % 2 else 'False'},{'x' if i == 3 else i}" for i in range(40)]
    path.write_text("zip,n,r,b,m\n" + "\n".join(lines) + "\n,,,,\n")

    schema = Schema.draft(path)

    assert [c.kind for c in schema.columns] == [
        "categorical",
        "integer",
        "real",
        "categorical",
        "categorical",
    ]
    assert schema.column("zip").code_labels()[:2] == ("00", "01")
    assert schema.column("b").code_labels() == (False, True, "missing")
    assert all(c.missing for c in schema.columns)
    assert Table.read(path, schema).records == 41


def test_text_of_very_many_values_keeps_the_commonest_and_has_another_place_for_the_rest():
    schema = Schema.draft(pa.table({"id": [f"p{i}" for i in range(1000)] + ["p7"]}))

    column = schema.column("id")
    assert column.outside == "other"
    assert column.declared == 256
    assert "p7" in column.code_labels()


def test_dates_are_left_out_and_said_so():
    schema = Schema.draft(pa.table({"a": ["x"], "when": pa.array([1], pa.date32())}))

    assert schema.domain.attrs == ("a",)
    assert "Left out: 'when'" in schema.to_toml()


def test_infinite_and_constant_numbers_do_not_break_the_draft():
    table = pa.table({"x": [0.5, 1.5, float("inf")], "c": [2.5, 2.5, float("nan")]})

    schema = Schema.draft(table)

    assert schema.column("x").outside == "clamp"
    assert schema.column("c") == CategoricalColumn("c", (2.5,), missing=True)
    assert Table.read(table, schema).records == 3


def test_a_draft_of_nothing_usable_is_refused():
    with pytest.raises(SchemaError, match="no column of text"):
        Schema.draft(pa.table({"when": pa.array([1], pa.date32())}))
    with pytest.raises(DataError, match="appears twice"):
        Schema.draft(pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"]))
    with pytest.raises(SettingError, match="bins"):
        Schema.draft(pa.table({"a": [1]}), bins=0)
