"""Some records of a public table, as they stand in it."""

import pyarrow as pa
import pytest
from pyarrow import csv, parquet

from sidelight.data.drafting.public_sample import public_sample
from sidelight.data.reading.file_format import FileFormat
from sidelight.data.schema import Schema
from sidelight.data.schema_edit import rewritten
from sidelight.data.table import Table
from sidelight.errors import DataError, SchemaError
from sidelight.public.source import WeightedRecords
from sidelight.releases.public_data import one_way_counts, read_public, whole_records

TABLE = pa.table({"id": list(range(500)), "name": [f"0{i % 7}" for i in range(500)]})


def test_records_of_a_file_are_text_and_few(tmp_path):
    csv.write_csv(TABLE, tmp_path / "old.csv")
    drawn, total = public_sample(str(tmp_path / "old.csv"), records=100)
    again, _ = public_sample(str(tmp_path / "old.csv"), records=100)

    assert (drawn.num_rows, total, drawn.column_names) == (100, 500, ["id", "name"])
    assert set(drawn["name"].to_pylist()) <= {f"0{i}" for i in range(7)}
    assert len(set(drawn["id"].to_pylist())) == 100
    assert drawn.equals(again)


def test_a_typed_table_keeps_its_types_and_a_small_one_all_records(tmp_path):
    parquet.write_table(TABLE, tmp_path / "old.parquet")
    drawn, total = public_sample(str(tmp_path / "old.parquet"), records=10_000)

    assert total == drawn.num_rows == 500
    assert drawn.schema.field("id").type == pa.int64()


def test_a_file_of_another_encoding_is_read_as_it_is_declared(tmp_path):
    (tmp_path / "old.csv").write_bytes("a;b\ncafé;1,5\n".encode("latin-1"))
    file = FileFormat(encoding="latin-1", delimiter=";", decimal=",")
    drawn, _ = public_sample(str(tmp_path / "old.csv"), records=5, file=file)

    assert drawn.to_pydict() == {"a": ["café"], "b": ["1,5"]}


def test_what_is_no_file_is_refused():
    with pytest.raises(DataError):
        public_sample("nowhere.csv", records=5)


A = "[columns.a]\n# mine\nkind = 'categorical'\nlabels = ['x', 'y']\n"
B = "[columns.b]\nkind = 'integer'\nlow = 0\nhigh = 2\n"
SCHEMA = Schema.from_toml(A + B)


def test_public_counts_by_attribute_and_as_records():
    table = read_public(pa.table({"a": ["x", "y", "y"], "b": [0, 1, 1]}), SCHEMA)
    partly = read_public(pa.table({"b": [2, 2]}), SCHEMA)
    weighted = WeightedRecords(
        SCHEMA.domain, Table.of_codes(SCHEMA.domain, table.codes()).codes(), [1.0, 2.0, 2.0]
    )

    assert {k: v.tolist() for k, v in one_way_counts([table, partly], SCHEMA.domain).items()} == {
        "a": [1, 2],
        "b": [1, 2, 2],
    }
    assert whole_records(partly, SCHEMA.domain) is None
    assert whole_records([partly, table], SCHEMA.domain).count(("a",)).tolist() == [1, 2]
    assert whole_records(weighted, SCHEMA.domain).count(("a",)) == pytest.approx([0.2, 0.8])


def test_a_rewritten_file_keeps_comments_of_tables_that_stay():
    text = f"# head\n{A}\n{B}"
    other = Schema.from_toml(text.replace("high = 2", "high = 9"))

    made = rewritten(text, other)

    assert Schema.from_toml(made) == other
    assert "# mine" in made
    fewer = Schema(other.columns[1:])
    assert Schema.from_toml(rewritten(text, fewer)) == fewer
    assert Schema.from_toml(rewritten("nonsense [", other)) == other


@pytest.mark.parametrize(
    ("keys", "key"),
    [
        ("kind = 'integer'\nlow = 9\nhigh = 0", "low"),
        ("kind = 'integer'\nlow = 0.5\nhigh = 1", "low"),
        ("kind = 'real'\nlow = 0\nhigh = 1", "bins"),
        ("kind = 'real'\nedges = [1.0, 0.0]", "edges"),
        ("kind = 'categorical'\nlabels = ['a', 'a']", "labels"),
        ("kind = 'date'\nlow = 'x'\nhigh = 2020-01-01\nby = 'day'", "low"),
        ("kind = 'integer'\nlow = 0\nhigh = 9\noutside = 'never'", "outside"),
    ],
)
def test_an_error_knows_its_column_and_its_key(keys, key):
    with pytest.raises(SchemaError) as wrong:
        Schema.from_toml(f"[columns.age]\n{keys}\n")

    assert (wrong.value.column, wrong.value.key) == ("age", key)
