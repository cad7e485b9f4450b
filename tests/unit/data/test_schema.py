import pytest

from sidelight.data.columns.column import CategoricalColumn, IntegerColumn, RealColumn
from sidelight.data.schema import Schema
from sidelight.errors import SchemaError
from sidelight.privacy.unit import Unit

TEXT = """
[unit]
relation = "add-or-remove"
records = 3

[columns.sex]
kind = "categorical"
labels = ["female", "male"]
missing = true
outside = "other"

[columns.age]
kind = "integer"
low = 0
high = 99
bins = 20

[columns.income]
kind = "real"
edges = [0.0, 1.5, 200000]
outside = "clamp"
"""


def test_a_toml_file_says_columns_sizes_and_unit(tmp_path):
    path = tmp_path / "people.toml"
    path.write_text(TEXT)

    schema = Schema.read(path)

    assert schema.unit == Unit("add-or-remove", records=3)
    assert schema.domain.sizes == {"sex": 4, "age": 20, "income": 2}
    assert schema.column("income") == RealColumn("income", edges=(0.0, 1.5, 200000.0), outside="clamp")


def test_what_is_written_is_read_back_equal(tmp_path):
    schema = Schema.from_toml(TEXT)

    schema.write(tmp_path / "again.toml")

    assert Schema.read(tmp_path / "again.toml") == schema


def test_notes_are_comments_and_do_not_change_the_fingerprint():
    plain = Schema((IntegerColumn("age", low=0, high=9),))
    noted = Schema((IntegerColumn("age", low=0, high=9, note="years\nlast birthday"),), note="head")

    assert "# years\n# last birthday" in noted.to_toml()
    assert noted == plain
    assert noted.fingerprint == plain.fingerprint
    assert noted.fingerprint != Schema((IntegerColumn("age", low=0, high=8),)).fingerprint


def test_a_coded_table_has_one_value_a_code():
    schema = Schema.from_domain({"age": 32, "sex": 2})

    assert schema.domain.shape == (32, 2)
    assert schema.column("sex").code_labels() == (0, 1)


def test_codes_are_labels_then_other_then_missing():
    column = CategoricalColumn("sex", ("f", "m"), missing=True, outside="other")

    assert column.code_labels() == ("f", "m", "other", "missing")
    assert (column.other_code, column.missing_code) == (2, 3)


def test_integer_bins_cover_every_whole_number_once():
    column = IntegerColumn("age", low=0, high=99, bins=7)

    assert column.bounds[0] == 0
    assert column.bounds[-1] == 100
    assert column.declared == 7


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[columns", "not valid TOML"),
        ("", "no columns"),
        ("[column.a]\nkind='real'", "unknown key 'column'"),
        ("columns = 3", "must be tables"),
        ("[columns]\na = 3", "must be a table"),
        ("[columns.a]\nkind = 'duration'", "kind must be one of"),
        ("[columns.a]\nkind = 'number'", "got 'number'. Did you mean 'real'?"),
        ("[columns.a]\nkind = 'Numeric'", "Did you mean 'real'?"),
        ("[columns.a]\nkind = 'int'", "Did you mean 'integer'?"),
        ("[columns.a]\nkind = 'category'", "Did you mean 'categorical'?"),
        ("[columns.a]\nkind = 'bool'", "Did you mean 'categorical'?"),
        ("[columns.a]\nkind = 'real'\nlow = 0\nhigh = 1\nbin = 3", "unknown key 'bin'"),
        ("[columns.a]\nkind = 'real'\nlow = 0\nhigh = 1", "how many bins"),
        ("[columns.a]\nkind = 'real'\nlow = 1\nhigh = 0\nbins = 3", "must increase"),
        ("[columns.a]\nkind = 'real'\nlow = 0\nhigh = inf\nbins = 3", "finite numbers"),
        ("[columns.a]\nkind = 'real'\nlow = 0.0\nhigh = 1.0\nbins = 0", "at least 1"),
        ("[columns.a]\nkind = 'real'\nlow = -1.7e308\nhigh = 1.7e308\nbins = 3", "too far apart"),
        ("[columns.a]\nkind = 'real'\nlow = 1\nedges = [0, 1]", "leave out low, high and bins"),
        ("[columns.a]\nkind = 'real'\nlow = 1", "either low and high, or edges"),
        ("[columns.a]\nkind = 'real'\nedges = 1", "must be a list"),
        ("[columns.a]\nkind = 'integer'\nedges = [0, 0, 1]", "must increase"),
        ("[columns.a]\nkind = 'integer'\nlow = 0\nhigh = 1.5", "whole numbers"),
        ("[columns.a]\nkind = 'integer'\nlow = 0\nhigh = 9007199254740993", "below 2\\^53"),
        ("[columns.a]\nkind = 'integer'\nlow = 5\nhigh = 4", "must not be above"),
        ("[columns.a]\nkind = 'integer'\nlow = 0\nhigh = 4\nbins = 9", "only 5 whole numbers"),
        ("[columns.a]\nkind = 'categorical'\nlabels = []", "at least one label"),
        ("[columns.a]\nkind = 'categorical'\nlabels = ['x', 'x']", "appears twice"),
        ("[columns.a]\nkind = 'categorical'\nlabels = ['x', 1]", "one type"),
        ("[columns.a]\nkind = 'categorical'\nlabels = [nan]", "finite"),
        ("[columns.a]\nkind = 'categorical'\nlabels = [[1]]", "finite"),
        ("[columns.a]\nkind = 'categorical'\nlabels = ['x']\noutside = 'clamp'", "outside must be one of"),
        ("[columns.a]\nkind = 'categorical'\nlabels = ['x']\nmissing = 1", "missing must be true or false"),
        ("[columns.a]\nkind = 'categorical'\nlabels = ['other']\noutside = 'other'", "other_label"),
        ("[columns.a]\nkind = 'categorical'\nlabels = ['x']\nother_label = 'y'", "needs outside"),
        (
            "[columns.a]\nkind = 'categorical'\nlabels = [1]\noutside='other'\nother_label = 'y'",
            "labels' type",
        ),
        (
            "[unit]\nrelation = 'swap'\n[columns.a]\nkind = 'integer'\nlow = 0\nhigh = 1",
            "unit must be one of",
        ),
        ("[unit]\nrecords = 0\n[columns.a]\nkind = 'integer'\nlow = 0\nhigh = 1", "records must be"),
        ("[unit]\nk = 0\n[columns.a]\nkind = 'integer'\nlow = 0\nhigh = 1", "unknown key 'k'"),
        ("unit = 3\n[columns.a]\nkind = 'integer'\nlow = 0\nhigh = 1", "must be a table"),
    ],
)
def test_a_wrong_schema_says_what_is_wrong(text, message):
    with pytest.raises(SchemaError, match=message):
        Schema.from_toml(text)


def test_an_absent_schema_file_says_how_to_make_one(tmp_path):
    with pytest.raises(SchemaError, match="schema draft"):
        Schema.read(tmp_path / "nothing.toml")


def test_column_names_must_be_distinct():
    with pytest.raises(SchemaError, match="'a' appears twice"):
        Schema((IntegerColumn("a", low=0, high=1), IntegerColumn("a", low=0, high=2)))


def test_text_that_no_file_can_hold_is_refused():
    with pytest.raises(SchemaError, match="null characters"):
        CategoricalColumn("a", ("x\0",))
    with pytest.raises(SchemaError, match="null characters"):
        IntegerColumn("\ud800", low=0, high=1)


def test_an_unknown_column_is_named_with_the_known_ones():
    with pytest.raises(SchemaError, match="'b'; the schema has a"):
        Schema.from_domain({"a": 2}).column("b")
