"""Bad input is refused in words, before anything is charged, and no message holds a private value."""

import gzip
from datetime import date

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from sidelight.data.columns.column import CategoricalColumn, IntegerColumn, RealColumn
from sidelight.data.columns.moment_columns import DateColumn, DatetimeColumn
from sidelight.data.reading.file_format import FileFormat
from sidelight.data.schema import Schema
from sidelight.data.table import Table
from sidelight.errors import DataError, SettingError

SCHEMA = Schema((CategoricalColumn("sex", ("f", "m")), IntegerColumn("age", low=0, high=99)))
SECRET = "4711"


def refused(source, schema=SCHEMA, **settings):
    with pytest.raises(DataError) as caught:
        Table.read(source, schema, **settings)
    assert SECRET not in str(caught.value)
    return str(caught.value)


def write(path, text):
    path.write_text(text)
    return path


def test_a_missing_file_is_named(tmp_path):
    assert "there is no file" in refused(tmp_path / "nothing.csv")
    assert "no file matches" in refused(str(tmp_path / "*.csv"))


def test_an_unknown_ending_is_refused_with_the_known_ones(tmp_path):
    assert ".csv" in refused(write(tmp_path / "a.xlsx", "x"))


def test_an_empty_file_and_a_table_without_records_are_refused(tmp_path):
    assert "is empty" in refused(write(tmp_path / "a.csv", ""))
    assert "no records" in refused(write(tmp_path / "b.csv", "sex,age\n"))
    assert "no records" in refused(
        pa.table({"sex": pa.array([], pa.string()), "age": pa.array([], pa.int64())})
    )


@pytest.mark.parametrize(("delimiter", "word"), [(";", "semicolons"), ("\t", "tabs"), ("|", "bars")])
def test_a_wrong_delimiter_is_recognised(tmp_path, delimiter, word):
    path = write(tmp_path / "a.csv", f"sex{delimiter}age\nf{delimiter}{SECRET}\n")

    assert word in refused(path)


def test_a_tab_separated_file_is_read_by_its_name(tmp_path):
    table = Table.read(write(tmp_path / "a.tsv", "sex\tage\nf\t3\n"), SCHEMA)

    assert table.codes().tolist() == [[0, 3]]


def test_a_compressed_csv_is_read(tmp_path):
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(b"sex,age\nf,3\n"))

    assert Table.read(tmp_path / "a.csv.gz", SCHEMA).codes().tolist() == [[0, 3]]


@pytest.mark.parametrize(
    "damage", [lambda file: file[:4], lambda file: file[:15], lambda file: file[:10] + b"\xff" * 9]
)
def test_a_damaged_compressed_csv_is_refused_as_damaged(tmp_path, damage):
    (tmp_path / "a.csv.gz").write_bytes(damage(gzip.compress(b"sex,age\nf,3\n")))

    with pytest.raises(DataError, match="cannot be read: it is damaged"):
        Table.read(tmp_path / "a.csv.gz", SCHEMA)


def test_an_absent_column_is_named_and_an_extra_one_left_out(tmp_path):
    assert "'age'" in refused(pa.table({"sex": ["f"], "name": [SECRET]}))
    assert "'age'" in refused(write(tmp_path / "a.csv", f"sex,name\nf,{SECRET}\n"))

    table = Table.read(pa.table({"name": [SECRET], "age": [7], "sex": ["m"]}), SCHEMA)

    assert table.codes().tolist() == [[1, 7]]


def test_a_frame_without_any_column_of_the_schema_is_refused():
    assert "no column" in refused(pa.table({"name": [SECRET]}))


def test_duplicate_column_names_are_refused(tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame([["f", 1, 2]], columns=["sex", "age", "age"])
    arrow = pa.Table.from_arrays([pa.array(["f"]), pa.array([1]), pa.array([2])], names=["sex", "age", "age"])

    assert "'age' appears twice" in refused(frame)
    assert "'age' appears twice" in refused(arrow)
    assert "'age' appears twice" in refused(write(tmp_path / "a.csv", "sex,age,age\nf,1,2\n"))


@pytest.mark.parametrize("engine", ["numpy", "duckdb"])
def test_values_outside_the_schema_are_refused_by_column_alone(tmp_path, engine):
    labels = refused(pa.table({"sex": ["f", SECRET], "age": [1, 2]}), engine=engine)
    bounds = refused(pa.table({"sex": ["f", "m"], "age": [1, int(SECRET)]}), engine=engine)
    fraction = refused(pa.table({"sex": ["f"], "age": [1.5]}), engine=engine)
    text = refused(write(tmp_path / "a.csv", f"sex,age\nf,{SECRET}x\n"), engine=engine)

    assert "'sex' has values outside the labels" in labels
    assert "'age' has values outside the bounds" in bounds
    assert "'age' has values outside the bounds" in fraction
    assert "'age' has values outside the bounds" in text
    assert "'sex'" not in bounds


def test_a_word_among_clamped_numbers_is_refused_without_advice_to_clamp():
    schema = Schema.from_toml("[columns.age]\nkind = 'integer'\nlow = 0\nhigh = 9\noutside = 'clamp'")

    with pytest.raises(DataError, match="are not numbers") as refusal:
        Table.read(pa.table({"age": ["7", "99", SECRET + "x"]}), schema)

    assert 'outside = "other"' in str(refusal.value)
    assert '"clamp"' not in str(refusal.value)
    assert SECRET not in str(refusal.value)


@pytest.mark.parametrize("engine", ["numpy", "duckdb"])
def test_missing_values_are_refused_where_they_are_not_declared(engine):
    message = refused(pa.table({"sex": ["f", None], "age": [1, 2]}), engine=engine)

    assert "'sex' has missing values" in message
    assert "missing = true" in message


def test_nan_is_missing_and_infinity_is_outside():
    schema = Schema((RealColumn("x", low=0.0, high=1.0, bins=2),))

    assert "missing values" in refused(pa.table({"x": [0.5, float("nan")]}), schema)
    assert "not finite" in refused(pa.table({"x": [0.5, float("inf")]}), schema)


def test_several_misfits_are_told_at_once():
    message = refused(pa.table({"sex": ["x", None], "age": [-1, 2]}))

    assert message.count("column") == 3


def test_real_numbers_and_dates_have_a_text_and_lists_have_none():
    schema = Schema((CategoricalColumn("x", ("1", "0.5", "1970-01-02"), missing=True),))
    date = pa.array([1], pa.date32())

    assert Table.read(pa.table({"x": date}), schema).codes().tolist() == [[2]]
    assert Table.read(pa.table({"x": [1.0, 0.5, None]}), schema).codes().tolist() == [[0], [1], [3]]
    assert "outside the labels" in refused(pa.table({"x": [1.5]}), schema)
    assert "outside the labels" in refused(pa.table({"x": [[1]]}), schema)


def test_a_damaged_or_ragged_file_is_refused_without_its_text(tmp_path):
    (tmp_path / "a.parquet").write_bytes(b"PAR1 not really")
    ragged = write(tmp_path / "a.csv", f"sex,age\nf,1\nm,2,{SECRET}\n")

    assert "could not be read" in refused(tmp_path / "a.parquet")
    assert "could not be read" in refused(ragged)


def test_a_file_that_is_not_text_is_refused(tmp_path):
    (tmp_path / "a.csv").write_bytes(b"\xff\xfe\x00sex")

    assert "UTF-8" in refused(tmp_path / "a.csv")


def test_files_of_one_glob_must_have_the_same_columns(tmp_path):
    write(tmp_path / "a.csv", "sex,age\nf,1\n")
    write(tmp_path / "b.csv", "age,sex\n1,f\n")

    assert "same columns" in refused(str(tmp_path / "*.csv"))


def test_a_pandas_column_of_mixed_types_is_read_value_by_value():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"sex": ["f", "m"], "age": pandas.Series([1, "2"], dtype=object)})

    assert Table.read(frame, SCHEMA).codes().tolist() == [[0, 1], [1, 2]]
    frame.loc[1, "age"] = SECRET
    assert "'age' has values outside the bounds" in refused(frame)


def test_what_is_no_table_is_refused_with_what_is():
    assert "pandas" in refused(42)
    assert "pandas" in refused([[1, 2]])


def test_an_engine_that_cannot_count_a_source_is_refused():
    with pytest.raises(SettingError, match="'numpy' or 'duckdb'"):
        Table.read(pa.table({"sex": ["f"], "age": [1]}), SCHEMA, engine="postgres")
    with pytest.raises(SettingError, match="engine must be one of"):
        Table.read(pa.table({"sex": ["f"], "age": [1]}), SCHEMA, engine="sqlite")


def test_a_postgres_address_without_a_table_is_refused_without_its_password():
    message = refused("postgresql://someone:4711@host/db")

    assert "#" in message


def test_labels_that_look_like_numbers_stay_text_in_a_csv(tmp_path):
    schema = Schema((CategoricalColumn("x", ("01", "1", "1.0", "true", "TRUE", "")),))
    path = write(tmp_path / "a.csv", 'x\n01\n1\n1.0\ntrue\nTRUE\n""\n')

    assert Table.read(path, schema).codes().ravel().tolist() == [0, 1, 2, 3, 4, 5]


def test_an_empty_csv_field_is_missing(tmp_path):
    schema = Schema((CategoricalColumn("x", ("a",), missing=True), IntegerColumn("y", low=0, high=1)))

    table = Table.read(write(tmp_path / "a.csv", "x,y\n,0\na,1\n"), schema)

    assert table.codes().tolist() == [[1, 0], [0, 1]]


def test_a_label_cannot_become_sql():
    nasty = "'; DROP TABLE sidelight_source; --"
    schema = Schema((CategoricalColumn(nasty, (nasty, "x")),))

    table = Table.read(pa.table({nasty: [nasty, "x", nasty]}), schema)

    assert table.count((nasty,)).tolist() == [2, 1]


def test_an_encoded_table_is_passed_on_if_it_has_the_same_domain():
    table = Table.read(pa.table({"sex": ["f"], "age": [1]}), SCHEMA)

    assert Table.read(table, SCHEMA) is table
    with pytest.raises(DataError, match="another schema"):
        Table.read(table, Schema.from_domain({"a": 2}))


def test_check_says_what_does_not_fit_without_values_or_counts():
    table = pa.table({"sex": ["f", SECRET, None], "age": [1, 2, 3], "name": [SECRET] * 3})

    misfits = SCHEMA.check(table)

    assert {(m.column, m.what, m.is_fatal) for m in misfits} == {
        ("name", "extra", False),
        ("sex", "missing", True),
        ("sex", "outside", True),
    }
    assert SECRET not in " ".join(map(str, misfits))
    assert SCHEMA.check(pa.table({"sex": ["f"], "age": [1]})) == []


def test_check_names_absent_columns_and_still_looks_at_the_values_of_others():
    misfits = SCHEMA.check(pa.table({"age": [1000]}))

    assert [(m.column, m.what) for m in misfits] == [("sex", "absent"), ("age", "outside")]


def test_categories_of_pandas_and_polars_are_their_labels():
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    sex = ["m", "f"]

    one = Table.read(pandas.DataFrame({"sex": pandas.Categorical(sex), "age": [1, 2]}), SCHEMA)
    two = Table.read(
        polars.DataFrame({"sex": polars.Series(sex, dtype=polars.Categorical), "age": [1, 2]}), SCHEMA
    )

    np.testing.assert_array_equal(one.codes(), two.codes())
    assert one.codes().tolist() == [[1, 1], [0, 2]]


def test_parquet_and_frames_give_the_same_codes(tmp_path):
    table = pa.table({"sex": ["f", "m", "m"], "age": [1, 2, 99]})
    pyarrow.parquet.write_table(table, tmp_path / "a.parquet")

    from_file = Table.read(tmp_path / "a.parquet", SCHEMA)

    assert from_file.kind == "file.parquet"
    np.testing.assert_array_equal(from_file.codes(), Table.read(table, SCHEMA).codes())


@pytest.mark.parametrize("far", [2**62, -(2**62), 2**63 - 1, -(2**63) + 1, 10**16])
@pytest.mark.parametrize("has_statistics", [True, False])
def test_one_moment_beyond_what_duckdb_can_hold_does_not_stop_a_file(tmp_path, far, has_statistics):
    column = DatetimeColumn(
        "seen", date(2020, 1, 1), date(2020, 12, 31), "month", outside="other", missing=True
    )
    moments = pa.array([far, 1_580_000_000_000, None], pa.int64()).cast(pa.timestamp("ms"))
    path = tmp_path / "a.parquet"
    pyarrow.parquet.write_table(pa.table({"seen": moments}), path, write_statistics=has_statistics)

    counts = Table.read(path, Schema((column,))).count(("seen",))

    assert (
        counts.tolist()
        == Table.read(pa.table({"seen": moments}), Schema((column,))).count(("seen",)).tolist()
    )
    assert (counts[0], counts[column.other_code], counts[column.missing_code]) == (1, 1, 1)


@pytest.mark.parametrize(
    ("encoding", "advised"), [("utf-16", "utf-16"), ("utf-32", "utf-32"), ("latin-1", "latin-1")]
)
def test_a_file_that_is_no_utf8_is_advised_the_encoding_that_its_mark_names(encoding, advised, tmp_path):
    path = tmp_path / "people.csv"
    path.write_text("größe,b\n1,2\n", encoding=encoding)
    schema = Schema.from_domain({"größe": 3, "b": 3})

    with pytest.raises(DataError, match=f'encoding = "{advised}" in'):
        Table.read(str(path), schema)

    told = Schema(schema.columns, file=FileFormat(encoding=advised))
    assert Table.read(str(path), told).records == 1


@pytest.mark.parametrize("outside", ["refuse", "clamp"])
def test_a_misfit_names_the_settings_for_other_ways_to_write_dates_and_numbers(outside):
    day = DateColumn("day", "2024-01-01", "2024-12-31", "month", outside=outside)
    schema = Schema((day, RealColumn("paid", 0.0, 9.0, 3, outside=outside)))

    first, second = schema.check(pa.table({"day": ["31.12.2024"], "paid": ["3,5"]}))

    assert 'if it is written as 31.12.2024, declare "dmy"' in first.message
    assert 'declare decimal = "," in [file]' in second.message
    # PRIVACY: what is said depends on the schema, not on which value did not fit.
    assert schema.check(pa.table({"day": ["soon"], "paid": ["much"]})) == [first, second]
