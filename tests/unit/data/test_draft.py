import datetime as dt

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv

from sidelight.data.columns.column import LARGEST, CategoricalColumn, IntegerColumn, RealColumn
from sidelight.data.drafting.draft import _whole_numbers, draft
from sidelight.data.reading.file_format import FileFormat
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
        IntegerColumn("age", 10, 79, 14, outside="clamp"),
        RealColumn("income", 0.0, 800.0, 32, outside="clamp", decimals=1),
        CategoricalColumn("works", (False, True)),
        IntegerColumn("years", 0, 59, 30, missing=True, outside="clamp", dtype="pyarrow:double"),
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
    table = pa.table({"job": [f"job {'abcdefgh'[i % 8]}{i % 1000}" for i in range(3000)] + ["job a0"] * 5})

    drafted = draft(table)

    column = drafted.schema.column("job")
    assert column.outside == "other"
    assert column.declared == 256
    assert "job a0" in column.code_labels()
    assert "only the commonest" in drafted.remarks[0]


def test_codes_of_many_values_are_told_apart_by_their_first_characters():
    codes = [f"{letter}{i:02d}.{j}" for letter in "ABC" for i in range(30) for j in range(9)] * 3

    column = Schema.draft(pa.table({"icd": codes})).column("icd")

    assert column.prefix == 3
    assert column.declared == 90
    assert Table.read(pa.table({"icd": ["A01.7", "Z99.9"]}), Schema((column,))).codes().ravel().tolist() == [
        1,
        90,
    ]


def test_identifiers_and_free_text_are_left_out_by_name_and_reason():
    table = pa.table(
        {
            "patient": [f"p{i}" for i in range(100)],
            "visit_id": list(range(500, 600)),
            "story": [f"came in on day {i} with pain in the knee" for i in range(100)],
            "age": list(range(100)),
        }
    )

    drafted = draft(table)

    assert drafted.schema.domain.attrs == ("age",)
    assert [line.split(":")[0] for line in drafted.remarks] == [
        f"column {n!r}" for n in table.column_names[:3]
    ]
    assert '[unit] person = "patient"' in drafted.remarks[0]
    assert "Left out: 'story': it seems to be free text" in drafted.schema.to_toml()


def test_an_identifier_of_people_with_several_records_is_left_out():
    draw = np.random.default_rng(1)
    table = pa.table(
        {
            "patient_id": [f"P{who:05}" for who in draw.integers(0, 700, 2000)],
            "case_no": draw.integers(0, 700, 2000),
            "paid": draw.integers(0, 700, 2000),
            "ward_id": draw.integers(0, 20, 2000),
        }
    )

    drafted = draft(table)

    assert drafted.schema.domain.attrs == ("paid", "ward_id")
    assert '[unit] person = "patient_id"' in drafted.remarks[0]


def test_a_few_odd_texts_among_numbers_or_dates_are_named(tmp_path):
    path = tmp_path / "a.csv"
    lines = [f"{i},2019-02-{1 + i % 28:02},0{i},{'word' * (i % 9)}{i},{i}.5" for i in range(60)]
    path.write_text("age,day,code,text,paid\n" + "\n".join([*lines, *lines, "?,2019-02-29,x,y,."]) + "\n")

    drafted = draft(path)

    age, day, paid = drafted.remarks
    assert age.startswith("column 'age': drafted as text: nearly all of its values are numbers, but not '?'.")
    assert "--missing '?'" in age
    assert "dates, but not '2019-02-29'" in day
    assert "numbers, but not '.'" in paid
    again = draft(path, missing=["?", "2019-02-29", "."])
    kinds = [column.kind for column in again.schema.columns]
    assert kinds == ["integer", "date", "categorical", "categorical", "real"]


def test_texts_for_missing_values_are_found_and_declared(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("n,word,day\n1,NA,2020-01-01\n2.5,null,N/A\n-,x, - \n,y,\nn/a,?,2020-02-01\n")

    drafted = draft(path, missing=["?"])

    n, word, day = drafted.schema.columns
    assert (n.kind, n.missing_texts, n.decimals) == ("real", ("-", "n/a"), 1)
    assert (word.labels, word.missing_texts) == (("x", "y"), ("?", "NA", "null"))
    assert (day.kind, day.missing_texts) == ("date", ("-", "N/A"))
    codes = Table.read(path, drafted.schema).codes()
    assert (codes[2:, 0] == n.missing_code).all()
    assert codes[:, 1].tolist() == [2, 2, 0, 1, 2]
    assert (codes[1:4, 2] == day.missing_code).all()
    assert any("'?', 'NA', 'null' are read as missing" in line for line in drafted.remarks)


def test_labels_that_differ_only_in_case_and_spaces_are_one():
    table = pa.table({"sex": ["F"] * 5 + ["f"] * 3 + [" F "] + ["m"] * 4 + ["M"]})

    column = Schema.draft(table).column("sex")

    assert column.labels == ("F", "m")
    assert column.aliases == (("F", (" F ", "f")), ("m", ("M",)))
    assert Table.read(table, Schema((column,))).count(("sex",)).tolist() == [9, 5]


def test_a_label_with_needless_spaces_is_an_alias_even_if_it_is_the_commonest():
    column = Schema.draft(pa.table({"sex": [" m"] * 5 + ["M"] * 2 + ["f"]})).column("sex")

    assert (column.labels, column.aliases) == (("M", "f"), (("M", (" m",)),))


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["2020-01-05", "2020-02-29"], ("date", "ymd", "day")),
        (["31.12.2019", "1.2.2021"], ("date", "dmy", "month")),
        (["12/31/1999", "2/1/2021"], ("date", "mdy", "year")),
        (["2020-01-05T10:30", "2020-02-29 11:00:00"], ("datetime", "ymd", "day")),
        (["10:30", "23:59:59"], ("time", None, "hour")),
        (["2020-01-05", "2020-02-30"], ("categorical", None, None)),
    ],
)
def test_dates_are_drafted_as_dates(texts, expected):
    table = pa.table({"when": texts})

    column = Schema.draft(table).column("when")

    assert (column.kind, getattr(column, "format", None), getattr(column, "by", None)) == expected
    assert Table.read(table, Schema((column,))).records == 2


def test_typed_dates_are_drafted_and_an_ambiguous_order_is_said():
    table = pa.table(
        {
            "day": pa.array([1, 4000], pa.date32()),
            "instant": pa.array([0, 10**9], pa.timestamp("s", "UTC")),
            "clock": pa.array([0, 5], pa.time32("s")),
            "doubtful": ["1/2/2020", "3/4/2020"],
        }
    )

    drafted = draft(table)

    assert [c.kind for c in drafted.schema.columns] == ["date", "datetime", "time", "date"]
    assert drafted.schema.column("instant").zone == "UTC"
    assert [remark.split(",")[0] for remark in drafted.remarks] == [
        "column 'day': its bounds", "column 'instant': its bounds", "column 'doubtful': its bounds"
    ]  # fmt: skip
    assert (
        "1970-01-01 to 1980-12-31, are those of the public dates. If yours are of other years"
        in drafted.remarks[0]
    )
    assert "Day and month cannot be told apart in the text; check its format." in drafted.remarks[2]
    assert Table.read(table, drafted.schema).records == 2


@pytest.mark.parametrize("kind", ["frame", "file", "many"])
def test_numbers_with_a_long_tail_are_said_to_need_edges_of_their_own(tmp_path, kind, monkeypatch):
    """As costs of a hospital have: of nine bins of 20,000, the first held nearly everybody."""
    rng = np.random.default_rng(0)
    costs = np.round(np.minimum(rng.lognormal(7.5, 1.6, 2000), 1e6), 2)
    table = pa.table({"cost": costs, "age": rng.integers(0, 100, 2000)})
    if kind != "frame":
        csv.write_csv(table, tmp_path / "a.csv")
    if kind == "many":
        monkeypatch.setattr("sidelight.data.drafting.public_survey._MOST_COUNTED", 10)

    drafted = draft(table if kind == "frame" else tmp_path / "a.csv")

    (remark,) = drafted.remarks
    share = (costs < costs.min() + (costs.max() - costs.min()) / 10).mean()
    assert remark.startswith(f"column 'cost': {int(100 * share)}% of its values lie in the lowest tenth")
    assert "write edges of your own" in remark


def test_what_the_first_records_suggest_must_hold_for_all(tmp_path, monkeypatch):
    monkeypatch.setattr("sidelight.data.drafting.public_survey.FIRST", 10)
    path = tmp_path / "a.csv"
    path.write_text("n,zip\n" + "1,1\n" * 40 + "x,01\n")

    schema = Schema.draft(path)

    assert schema.column("n").labels == ("1", "x")
    assert schema.column("zip").labels == ("01", "1")


def test_other_encodings_delimiters_and_decimal_marks_are_declared_and_kept_in_the_schema(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes("größe;ort\n1,75;Köln\n1,80;Aßlar\n".encode("latin-1"))
    file = FileFormat(encoding="latin-1", delimiter=";", decimal=",")

    schema = Schema.draft(path, file=file)

    assert schema.column("größe").decimals == 2
    assert schema.column("ort").labels == ("Aßlar", "Köln")
    again = Schema.from_toml(schema.to_toml())
    assert again == schema
    assert Table.read(path, again).codes().tolist() == [[0, 1], [1, 0]]


def test_a_file_that_is_not_text_is_refused_by_the_byte_where_it_fails(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(b"name\n" + b"x\n" * 1000 + b"secret\xff\n")
    schema = Schema((CategoricalColumn("name", ("x",), outside="other"),))

    for read in (lambda: Table.read(path, schema), lambda: schema.check(path), lambda: Schema.draft(path)):
        with pytest.raises(DataError, match="fails at byte 2,011") as refused:
            read()
        assert "secret" not in str(refused.value)


def test_an_excel_sheet_is_drafted_and_read_value_by_value(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.create_sheet("people")
    sheet = book["people"]
    for line in [["age", "when", "word"], [30, dt.date(2020, 1, 5), "x"], [41, dt.date(2020, 3, 1), None]]:
        sheet.append(line)
    sheet.append([52, "NA", 7])
    book.save(tmp_path / "a.xlsx")

    schema = Schema.draft(tmp_path / "a.xlsx", file=FileFormat(sheet="people"))

    assert [c.kind for c in schema.columns] == ["categorical", "date", "categorical"]
    assert schema.file.sheet == "people"
    assert Table.read(tmp_path / "a.xlsx", schema).codes()[:, 2].tolist() == [1, 2, 0]
    with pytest.raises(DataError, match="no sheet 'persons'; it has"):
        Schema.draft(tmp_path / "a.xlsx", file=FileFormat(sheet="persons"))


def test_infinite_and_constant_numbers_do_not_break_the_draft():
    table = pa.table({"x": [0.5, 1.5, float("inf")], "c": [2.5, 2.5, float("nan")]})

    schema = Schema.draft(table)

    assert schema.column("x").outside == "clamp"
    assert schema.column("c") == CategoricalColumn("c", (2.5,), missing=True)
    assert Table.read(table, schema).records == 3


def test_a_draft_of_nothing_usable_is_refused():
    with pytest.raises(SchemaError, match="no column that a release can be about"):
        Schema.draft(pa.table({"lists": pa.array([[1]])}))
    with pytest.raises(DataError, match=r"has no records, .* write the schema by hand"):
        Schema.draft(pa.table({"a": pa.array([], pa.string()), "n": pa.array([], pa.int64())}))
    with pytest.raises(DataError, match="appears twice"):
        Schema.draft(pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"]))
    with pytest.raises(SettingError, match="bins"):
        Schema.draft(pa.table({"a": [1]}), bins=0)


def test_a_check_asks_whether_a_column_named_as_an_identifier_says_who_is_who():
    table = pa.table({"age": [1, 2], "patient_id": ["a", "b"], "note": ["x", "y"]})
    schema = Schema((IntegerColumn("age", 0, 9, 2),))

    told = {misfit.column: str(misfit) for misfit in schema.check(table)}

    assert told["patient_id"].endswith('declare [unit] person = "patient_id".')
    assert told["note"].endswith("left out.")


def test_a_check_finds_absent_columns_and_wrong_values_at_once():
    schema = Schema(
        (CategoricalColumn("a", ("x",)), IntegerColumn("b", low=0, high=1), RealColumn("c", 0.0, 1.0, 2))
    )

    found = schema.check(pa.table({"a": ["x", "y"], "c": [0.5, None]}))

    assert [(misfit.column, misfit.what) for misfit in found] == [
        ("b", "absent"),
        ("a", "outside"),
        ("c", "missing"),
    ]


def test_a_misfit_leads_to_texts_for_missing_values_and_to_aliases():
    columns = (
        IntegerColumn("stay", 0, 99, missing=True),
        RealColumn("cost", 0.0, 9.0, 3, outside="clamp"),
        CategoricalColumn("sex", ("F", "M")),
    )
    table = pa.table({"stay": ["12", "unasked"], "cost": ["unasked", "1"], "sex": ["f ", "M"]})

    told = {misfit.column: str(misfit) for misfit in Schema(columns).check(table)}

    assert 'such as NA stands for a missing value, declare missing_texts = ["NA"].' in told["stay"]
    assert 'declare missing = true and missing_texts = ["NA"].' in told["cost"]
    assert "aliases of a label, where case, blanks or spelling alone differ" in told["sex"]
    assert "aliases" not in told["stay"]
    assert "unasked" not in " ".join(told.values())


@pytest.mark.parametrize(
    ("low", "high", "bins", "first", "last"),
    [
        (0, 100, 32, "0–4", "95–100"),  # no percentage above 100 is drawn
        (3, 96, 32, "0–4", "95–99"),
        (17, 88, 32, "10–14", "85–89"),
        (-37, 41, 8, "-40–-21", "40–59"),
        (0, 999, 32, "0–49", "950–999"),
        (1, 40, 4, "0–9", "30–40"),
        (0, 1, 1, "0–1", "0–1"),
        (0, 2, 1, "0–2", "0–2"),
        (0, 40, 40, "0–1", "38–40"),
    ],
)
def test_whole_numbers_get_bins_of_one_round_width(low, high, bins, first, last):
    column = _whole_numbers("n", low, high, bins, {})

    widths = np.diff(column.bounds)
    assert (column.code_labels()[0], column.code_labels()[-1]) == (first, last)
    assert len(set(widths[:-1])) <= 1
    assert widths[-1] in (widths[0], widths[0] + 1)
    assert column.declared <= bins
    assert column.bounds[0] <= low < high < column.bounds[-1]


def test_the_largest_whole_numbers_are_drafted_too():
    column = _whole_numbers("n", -LARGEST, LARGEST, 32, {})

    assert (column.first, column.last) == (-LARGEST, LARGEST)


@pytest.mark.parametrize(
    ("low", "high", "bins", "width"),
    [
        (0.13, 0.87, 32, 0.025),
        (12.5, 6871.25, 32, 250.0),
        (-3.7, 912.25, 8, 200.0),
        (1e-9, 3.3e-9, 32, 1e-10),
        (-1e300, 1.5e300, 32, 1e299),
        (0.25, 99.5, 1, 100.0),
    ],
)
def test_real_numbers_get_bins_of_one_round_width(low, high, bins, width):
    column = Schema.draft(pa.table({"x": [low, high, (low + high) / 2 + high / 1024]}), bins=bins).column("x")

    assert column.ends[0] <= low
    assert column.ends[1] >= high
    assert column.declared <= bins
    np.testing.assert_allclose(np.diff(column.bounds), width, rtol=1e-6)
    assert abs(column.ends[0] / width - round(column.ends[0] / width)) < 1e-6


def test_numbers_with_a_decimal_comma_are_text_with_a_remark(tmp_path):
    path = tmp_path / "public.csv"
    path.write_text("paid;code;none\n3,5;01;2\n4,25;02;3\n1;03;4\n")

    drafted = draft(str(path), file=FileFormat(delimiter=";"))

    assert [remark for remark in drafted.remarks if "comma" in remark] == [
        "column 'paid': taken for text: its values are numbers with a comma. If that is a decimal mark, "
        "draft again with decimal = ',' (--decimal ,)."
    ]


def test_the_bins_of_a_draft_are_at_most_so_many_and_those_of_dates_are_periods():
    ages = pa.table(
        {"age": list(range(17, 90)), "day": [dt.date(2024, 1, 1) + dt.timedelta(5 * i) for i in range(73)]}
    )

    age, day = draft(ages, bins=10).schema.columns

    assert age.declared <= 10
    assert len(set(np.diff(age.bounds))) == 1
    assert (day.by, day.declared) == ("week", 52)
