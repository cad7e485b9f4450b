"""Public tables as they are: other columns, other labels, other bins, weights."""

import math

import numpy as np
import pyarrow as pa
import pytest

from cards import card_of
from sidelight.data.columns.column import IntegerColumn, RealColumn
from sidelight.data.columns.intervals import covered, interval_of
from sidelight.data.schema import Schema
from sidelight.data.table import Table
from sidelight.errors import DataError, PublicDataNote, PublicDataWarning, SchemaError
from sidelight.models.histogram import Histogram
from sidelight.public.source import WeightedRecords
from sidelight.releases.plan import plan
from sidelight.releases.public_data import read_public, records_by_attribute, told_of
from sidelight.releases.release import Release
from sidelight.releases.run import release
from sidelight.reports.report import render
from sidelight.testing import SeededNoise

COLUMNS = """
[columns.age]
kind = "integer"
edges = [0, 20, 40, 60, 100]

[columns.sex]
kind = "categorical"
labels = ["female", "male"]

[columns.region]
kind = "categorical"
labels = ["north", "south"]
missing = true
"""
SCHEMA = Schema.from_toml(COLUMNS)
WHOLE = {
    "age": [3, 25, 70, 71],
    "sex": ["female", "male", "male", "female"],
    "region": ["north", None, "south", "south"],
}


def with_rules(rules: str) -> Schema:
    return Schema.from_toml(COLUMNS + rules)


def test_a_table_that_fits_is_read_as_ever():
    found = read_public(pa.table(WHOLE), SCHEMA)

    assert isinstance(found, Table)
    assert found.count(("age",)).tolist() == [1, 1, 0, 2]


def test_columns_may_be_absent_extra_and_in_another_order():
    found = read_public(pa.table({"hat": [1, 2], "sex": ["male", "male"], "age": [3, 59]}), SCHEMA)

    assert found.domain.attrs == ("age", "sex")
    assert found.count(("age", "sex")).tolist() == [[0, 1], [0, 0], [0, 1], [0, 0]]
    assert records_by_attribute(found, SCHEMA.domain) == {"age": 2, "sex": 2, "region": 0.0}


def test_a_table_with_no_column_of_the_schema_is_refused():
    with pytest.raises(DataError, match=r"none of the schema's columns|no column that the schema names"):
        read_public(pa.table({"hat": [1]}), SCHEMA)


def test_unknown_labels_are_left_open_and_counted():
    table = pa.table(WHOLE | {"sex": ["F", "male", "M", "female"]})

    with pytest.warns(PublicDataWarning, match=r"2 of 4 values of 'sex' .*'F', 'M'.*\[public.map.sex\]"):
        found = read_public(table, SCHEMA)

    assert isinstance(found, WeightedRecords)
    assert found.count(("sex",)).tolist() == [1, 1]
    assert found.count(("age",)).tolist() == [1, 1, 0, 2]
    assert found.count(("age", "sex")).tolist() == [[0, 0], [0, 1], [0, 0], [1, 0]]
    assert records_by_attribute(found, SCHEMA.domain) == {"age": 4, "sex": 2, "region": 4}


def test_values_that_may_not_be_missing_are_left_open():
    with pytest.warns(PublicDataWarning, match=r"1 of 4 values of 'age' .*missing"):
        found = read_public(pa.table(WHOLE | {"age": [3, None, 70, 71]}), SCHEMA)

    assert found.count(("region", "age")).sum() == 3
    assert found.count(("region",)).tolist() == [1, 2, 1]  # missing = true: a category like any other


def test_a_map_says_which_labels_are_meant():
    schema = with_rules(
        '[public.map.sex]\n"1" = "male"\n"2" = "female"\n[public.map.region]\n"9" = "missing"'
    )

    found = read_public(pa.table(WHOLE | {"sex": [1, 2, 2, 2], "region": ["9", "9", "north", "9"]}), schema)

    assert isinstance(found, Table)
    assert found.count(("sex",)).tolist() == [3, 1]
    assert found.count(("region",)).tolist() == [1, 0, 3]


def test_a_value_that_stands_for_several_labels_is_dealt_out_evenly():
    schema = with_rules('[public.map.sex]\n"x" = ["female", "male"]')

    found = read_public(pa.table({"sex": ["x"] * 100 + ["male"] * 10}), schema)

    assert found.count(("sex",)).tolist() == [50, 60]


def test_finer_bins_are_summed_and_coarser_ones_spread():
    ages = ["0-4"] * 10 + ["15–19"] * 10 + ["[20, 40)"] * 8 + ["30 to 49"] * 40 + ["80+"] * 5

    found = read_public(pa.table({"age": ages}), SCHEMA)

    assert found.count(("age",)).tolist() == [20, 8 + 20, 20, 5]


def test_bins_are_found_where_other_values_are_allowed():
    schema = Schema((IntegerColumn("age", edges=(0, 20, 100), outside="other"),))

    with pytest.warns(PublicDataNote, match=r"33.3% .*'age' lie outside its bounds or cannot be read, and"):
        found = read_public(pa.table({"age": ["5-9", "20-24", "none"]}), schema)

    assert found.count(("age",)).tolist() == [1, 1, 1]


def test_dealing_out_is_the_same_every_time():
    table = pa.table({"age": ["10-69"] * 31, "sex": ["male"] * 31})

    first, again = (read_public(table, SCHEMA).codes() for _ in range(2))

    assert np.array_equal(first, again)


def test_weights_come_from_the_column_that_the_schema_names():
    schema = with_rules('[public]\nweight = ["hhwt", "perwt"]')

    found = read_public(pa.table({"perwt": [3.0, 1.0], "sex": ["male", "female"]}), schema)

    assert found.count(("sex",)).tolist() == [1.0, 3.0]
    assert found.records == pytest.approx(1.6)
    assert isinstance(read_public(pa.table({"sex": ["male"]}), schema), Table)


@pytest.mark.parametrize("weights", [[1.0, -1.0], [math.nan, 1.0], [0.0, 0.0]])
def test_weights_that_are_none_are_refused(weights):
    with pytest.raises(DataError, match="weights in 'w' must be numbers of at least 0"):
        read_public(pa.table({"w": weights, "sex": ["male", "female"]}), with_rules('[public]\nweight = "w"'))


@pytest.mark.parametrize(
    ("rules", "match"),
    [
        ('[public.map.sex]\n"1" = "man"', "maps '1' to 'man', which is no label .* female, male"),
        ('[public.map.hat]\n"1" = "male"', "names no column of the schema; it has age, sex, region"),
        ("[public.map.sex]", "is empty"),
        ('[public.map.sex]\n"1" = []', "empty list"),
        ('[public.map]\nsex = "male"', "must hold tables"),
        ("[public]\nweight = 3", "must be a column's name"),
        ('[public]\nweight = "age"', "is a column of the schema"),
        ("[public]\nwieght = 3", "may say weight"),
    ],
)
def test_rules_that_make_no_sense_are_refused(rules, match):
    with pytest.raises(SchemaError, match=match):
        with_rules(rules)


def test_rules_are_written_and_read_again_and_are_no_part_of_the_fingerprint():
    schema = with_rules('[public]\nweight = "w"\n[public.map.age]\n"young" = ["0–19", "20–39"]\n"1" = "0–19"')

    again = Schema.from_toml(schema.to_toml())

    assert again.public == schema.public
    assert again.public.weight == ("w",)
    assert schema.fingerprint == SCHEMA.fingerprint


def test_records_that_another_schema_encoded_are_encoded_anew():
    finer = Schema((IntegerColumn("age", low=0, high=99), SCHEMA.column("sex")))
    coarse = Schema((IntegerColumn("age", edges=(0, 40, 100)), SCHEMA.column("sex")))
    codes = np.stack([np.arange(100), np.arange(100) % 2], axis=1)

    summed = read_public(Table.of_codes(finer.domain, codes, schema=finer), SCHEMA)
    spread = read_public(Table.of_codes(coarse.domain, codes // (100, 1) + (1, 0), schema=coarse), SCHEMA)

    assert summed.count(("age",)).tolist() == [20, 20, 20, 40]
    assert spread.count(("age",))[:2].sum() == 0
    assert spread.count(("age",))[3] == pytest.approx(100 * 40 / 60, abs=20)


def test_several_tables_are_counted_together_and_told_of():
    found = read_public([pa.table(WHOLE), pa.table({"age": [3, 4]})], SCHEMA)

    told = records_by_attribute(found, SCHEMA.domain)

    assert list(told_of(told)) == ["6 records tell of age", "4 records tell of sex, region"]


def test_a_stream_can_be_read_although_it_does_not_fit():
    stream = pa.table({"sex": ["male", "F"]}).to_reader()

    with pytest.warns(PublicDataWarning):
        found = read_public(stream, SCHEMA)

    assert found.count(("sex",)).tolist() == [0, 1]


@pytest.mark.parametrize("lazy", [False, True])
def test_polars_frames_are_read_in_part_too(lazy):
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame({"hat": [1, 2], "age": ["5-9", "70-79"]})

    found = read_public(frame.lazy() if lazy else frame, SCHEMA)

    assert found.count(("age",)).tolist() == [1, 0, 0, 1]


def test_pandas_frames_and_files_are_read_in_part_too(tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"sex": ["male", None], "age": [5, 70]})
    frame.to_csv(tmp_path / "public.csv", index=False)

    for source in (frame, tmp_path / "public.csv"):
        with pytest.warns(PublicDataWarning, match="missing"):
            found = read_public(source, SCHEMA)
        assert found.count(("age",)).tolist() == [1, 0, 0, 1]
        assert found.count(("sex",)).tolist() == [0, 1]


@pytest.mark.parametrize(
    ("text", "whole", "real"),
    [
        ("20-24", (20, 25), (20, 24)),
        ("[20, 25]", (20, 26), (20, 25)),
        ("(20, 25)", (21, 25), (20, 25)),
        ("-5--1", (-5, 0), (-5, -1)),
        ("$10,000 to 19,999", (10000, 20000), (10000, 19999)),
        ("85 and over", (85, math.inf), (85, math.inf)),
        (">= 85", (85, math.inf), (85, math.inf)),
        ("under 5", (-math.inf, 5), (-math.inf, 5)),
        ("25", None, None),
        ("2020-01-31", None, None),
        ("male", None, None),
    ],
)
def test_intervals_as_people_write_them(text, whole, real):
    assert interval_of(text, whole=True) == whole
    assert interval_of(text, whole=False) == real


def test_an_interval_beyond_the_bounds_covers_nothing():
    assert covered(RealColumn("x", low=0, high=10, bins=2), "20-30") is None
    assert covered(RealColumn("x", low=0, high=10, bins=2), "5-30").tolist() == [0.0, 5.0]


def test_a_release_of_another_schema_serves_as_public_data(toy_release):
    sample = read_public(toy_release, SCHEMA)

    assert sample.domain.attrs == ("age", "sex")
    assert sample.records == round(toy_release.total)


@pytest.fixture
def toy_release():
    schema = Schema((IntegerColumn("age", low=0, high=99), SCHEMA.column("sex")))
    model = Histogram.uniform(schema.domain, total=400.0)
    return Release(model, (), card_of(model), schema)


def test_a_bin_may_be_mapped_by_its_label():
    schema = with_rules('[public.map.age]\n"young" = ["0–19", "20–39"]\n"old" = "60–99"')

    found = read_public(pa.table({"age": ["young"] * 10 + ["old"] * 3}), schema)

    assert found.count(("age",)).tolist() == [5, 5, 0, 3]


def test_a_plan_says_how_many_records_a_mechanism_leaves_out():
    open_values = pa.table(WHOLE | {"sex": ["F", "male", "male", "female"]})
    asked = {"schema": SCHEMA, "public": open_values, "epsilon": 1.0, "delta": 1e-9, "workload": "1-way"}

    with pytest.warns(PublicDataWarning):
        notes = plan(mechanism="pmw-pub", **asked).notes
    with pytest.warns(PublicDataWarning):
        others = plan(mechanism="aperture", **asked).notes

    assert any("uses 3 of 4, and leaves out those" in note for note in notes)
    assert not any("leaves out" in note for note in others)


TAILS = Schema.from_toml("""
[columns.admitted]
kind = "date"
low = 2024-01-01
high = 2024-12-31
by = "month"
outside = "clamp"

[columns.age]
kind = "integer"
edges = [0, 50, 100]
missing = true
missing_texts = ["999"]
outside = "clamp"

[columns.ward]
kind = "categorical"
labels = ["medicine", "surgery"]
outside = "other"
missing = true
""")


def with_tails(**columns):
    usual = {"admitted": ["2024-05-01"] * 200, "age": [30] * 200, "ward": ["surgery"] * 200}
    return pa.table(usual | columns)


def parts(share, inside, outside):
    return [outside] * round(200 * share) + [inside] * round(200 * (1 - share))


@pytest.mark.parametrize("is_mapped", [False, True])
def test_a_column_with_nothing_inside_the_schema_is_left_out(is_mapped):
    schema = (
        TAILS if not is_mapped else Schema.from_toml(TAILS.to_toml() + '[public.map.age]\n"young" = "0–49"')
    )
    table = with_tails(admitted=["2019-03-01"] * 200, ward=["3"] * 200)

    with pytest.warns(PublicDataWarning) as said:
        found = read_public(table, schema)

    assert found.domain.attrs == ("age",)
    texts = [str(one.message) for one in said]
    assert any("100% of the public values of 'admitted' lie outside its bounds" in text for text in texts)
    assert any("100% of the public values of 'ward' are none of its labels" in text for text in texts)
    assert not any(issubclass(one.category, PublicDataNote) for one in said)
    assert (
        list(told_of(records_by_attribute(found, schema.domain)))[-1] == "nothing is told of admitted, ward"
    )


@pytest.mark.parametrize(("share", "kind"), [(0.02, PublicDataNote), (0.5, PublicDataWarning)])
@pytest.mark.parametrize("weighted", [False, True])
def test_what_lies_outside_is_said_and_goes_where_the_schema_says(share, kind, weighted):
    schema = Schema.from_toml(TAILS.to_toml() + ('[public]\nweight = "w"' if weighted else ""))
    columns = {"age": parts(share, 30, 101), "ward": parts(share, "surgery", "3"), "w": [1] * 200}

    with pytest.warns(PublicDataWarning) as said:
        found = read_public(with_tails(**columns), schema)

    outside = round(200 * share)
    assert found.count(("age",)).tolist() == [200 - outside, outside, 0]
    assert found.count(("ward",)).tolist() == [0, 200 - outside, outside, 0]
    assert {one.category for one in said} == {kind}
    assert sorted(str(one.message).split(": ", 1)[1].split(",")[0] for one in said) == [
        f"{100 * share:g}% of the public values of 'age' lie outside its bounds",
        f"{100 * share:g}% of the public values of 'ward' are none of its labels",
    ]


def test_what_lies_outside_is_on_the_card_and_in_the_report(tmp_path):
    lines = zip(*with_tails(age=parts(0.1, 30, 101)).to_pydict().values(), strict=True)
    public = tmp_path / "old.csv"
    public.write_text("\n".join(["admitted,age,ward", *(",".join(map(str, line)) for line in lines), ""]))

    with pytest.warns(PublicDataNote, match=r"old\.csv: 10% of the public values of 'age'"):
        made = release(
            with_tails(), schema=TAILS, public=public, epsilon=1, delta=1e-9, workload="1-way",
            mechanism="pmw-pub", rounds=1, noise=SeededNoise(1), progress=False,
        )  # fmt: skip
    made.save(tmp_path / "made")
    kept = Release.load(tmp_path / "made")

    said = "10% of the public values of 'age' lie outside its bounds, and were clamped to the nearest bin."
    assert kept.card.public.remarks == (said,)
    assert said.replace("'", "&#39;") in render(kept)
    assert "old.csv" not in render(kept)


def test_a_rare_value_outside_and_a_missing_one_are_not_worth_a_word(recwarn):
    table = with_tails(age=[101, *[999] * 30, *[30] * 169], ward=parts(0.9, "surgery", None))

    found = read_public(table, TAILS)

    assert found.count(("age",)).tolist() == [169, 1, 30]
    assert not [one for one in recwarn if issubclass(one.category, PublicDataWarning)]


def test_values_that_are_mapped_to_other_are_not_outside(recwarn):
    schema = Schema.from_toml(TAILS.to_toml() + '[public.map.ward]\n"3" = "other"')

    found = read_public(with_tails(ward=parts(0.6, "surgery", "3")), schema)

    assert found.count(("ward",)).tolist() == [0, 80, 120, 0]
    assert not [one for one in recwarn if issubclass(one.category, PublicDataWarning)]


def test_a_table_with_nothing_inside_the_schema_is_refused():
    with pytest.warns(PublicDataWarning), pytest.raises(DataError, match="tells nothing"):
        read_public(pa.table({"ward": ["3"] * 5}), TAILS)


def test_constraints_on_the_columns_that_are_there_hold_where_another_is_absent():
    rules = '[[constraint]]\norder = ["age", "size"]\nviolated = "refuse"\n'
    size = '[columns.size]\nkind = "integer"\nlow = 0\nhigh = 99\n'
    table = pa.table({"age": [3, 50], "size": [9, 4]})

    with pytest.warns(PublicDataWarning, match="1 of 2 values of 'size' have no place"):
        found = read_public(table, Schema.from_toml(COLUMNS + size + rules))

    assert records_by_attribute(found, found.domain) == {"age": 2, "size": 1}
