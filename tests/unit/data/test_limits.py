"""A schema is a stranger's text: it is refused before it takes memory or time, in a sentence."""

import tracemalloc

import pytest

from sidelight.data.columns.column import LONGEST, MOST_CODES, CategoricalColumn, IntegerColumn
from sidelight.data.impossible import MOST_COMBINATIONS
from sidelight.data.schema import MOST_COLUMNS, Schema
from sidelight.errors import SchemaError

WHOLE = '[columns.a]\nkind = "integer"\nlow = 0\nhigh = {}\n'
REAL = '[columns.a]\nkind = "real"\nlow = 0.0\nhigh = {}\n'


@pytest.fixture(autouse=True)
def small():
    """No refusal takes memory to speak of. Counted by Python, so that what ran before makes no difference."""
    tracemalloc.start()
    yield
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 300 * 2**20


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (WHOLE.format(2**53 - 2), "one for each whole number"),
        (WHOLE.format(MOST_CODES), "bins, one for each whole number"),
        (WHOLE.format(2**53 - 2) + "bins = 1000000000000\n", "1,000,000,000,000 bins, more than"),
        (REAL.format(1) + "bins = 2000000000\n", "2,000,000,000 bins, more than"),
        (REAL.format("9" * 400) + "bins = 2\n", "bounds must be finite numbers"),
        (WHOLE.format("9" * 5000), "holds a number"),
        (WHOLE.format("0x" + "f" * 6000), "bounds must be whole numbers"),
        ("x = " + "[" * 100_000 + "]" * 100_000, "lists within lists"),
        ("a." * 5000 + "a = 1", "lists within lists"),
        ('[columns.a]\nkind = "categorical"\nlabels = [' + "[" * 60 + "]" * 60 + "]\n", "numeric label"),
        (f'[columns.a]\nkind = "categorical"\nlabels = ["{"x" * (LONGEST + 1)}"]\n', "is longer than"),
        (f'[columns.{"x" * (LONGEST + 1)}]\nkind = "categorical"\nlabels = ["x"]\n', "is longer than"),
        ("[unit]\nrecords = 99999999999999999999\n" + WHOLE.format(4), "at most 2,147,483,648"),
    ],
)
def test_what_would_not_fit_is_refused_before_it_is_made(text, said):
    with pytest.raises(SchemaError) as refused:
        Schema.from_toml(text)

    assert said in str(refused.value)
    assert len(str(refused.value)) < 1000


def test_as_many_labels_columns_and_combinations_as_the_limits_say():
    labels = tuple(map(str, range(MOST_CODES)))
    columns = tuple(IntegerColumn(f"c{place}", low=0, high=1) for place in range(MOST_COLUMNS))

    assert CategoricalColumn("a", labels).size == MOST_CODES
    assert IntegerColumn("a", low=1, high=MOST_CODES).size == MOST_CODES
    assert len(Schema(columns).domain) == MOST_COLUMNS
    with pytest.raises(SchemaError, match="labels, more than"):
        CategoricalColumn("a", (*labels, "one more"))
    with pytest.raises(SchemaError, match="4,097 columns, more than 4,096"):
        Schema((*columns, IntegerColumn("one more", low=0, high=1)))
    with pytest.raises(SchemaError, match="impossible combinations, more than 1,000"):
        Schema(columns).with_impossible(*({"c0": [0], "c1": [1]} for _ in range(MOST_COMBINATIONS + 1)))


def test_impossible_combinations_of_a_long_column_are_read_in_one_go():
    """Each used to list every label anew, and the search for a record to try every one of them."""
    schema = Schema((IntegerColumn("a", low=0, high=2**17), IntegerColumn("b", low=0, high=1)))

    declared = schema.with_impossible(*({"a": [code], "b": [0]} for code in range(100)))

    assert len(declared.domain.impossible) == 100


def test_a_net_of_impossible_combinations_is_searched_for_a_bounded_time():
    net = [
        {f"b{i}": list(range(9)), f"b{(i + 7) % 30}": list(range(1, 10)), f"b{(i + 3) % 30}": [0, 2, 4, 6, 8]}
        for i in range(30)
    ]

    schema = Schema(tuple(IntegerColumn(f"b{i}", low=0, high=9) for i in range(30))).with_impossible(*net)

    assert len(schema.impossible) == 30


def test_combinations_that_leave_nothing_are_still_found():
    schema = Schema((IntegerColumn("a", low=0, high=500), IntegerColumn("b", low=0, high=1)))

    with pytest.raises(SchemaError, match="exclude every record"):
        schema.with_impossible({"a": list(range(501)), "b": [0]}, {"a": list(range(501)), "b": [1]})


def test_a_schema_file_that_is_too_long_is_not_parsed(tmp_path, monkeypatch):
    monkeypatch.setenv("SIDELIGHT_MAX_MB", "1")
    (tmp_path / "long.toml").write_text("# " + "x" * 50_000 + "\n" + WHOLE.format(4))

    with pytest.raises(SchemaError, match="SIDELIGHT_MAX_MB=2 or more"):
        Schema.read(tmp_path / "long.toml")

    monkeypatch.setenv("SIDELIGHT_MAX_MB", "2")
    assert Schema.read(tmp_path / "long.toml").domain.shape == (5,)
