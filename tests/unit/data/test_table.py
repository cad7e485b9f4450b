import itertools
from datetime import datetime

import numpy as np
import pyarrow as pa
import pytest

from sidelight.data.columns.column import CategoricalColumn, IntegerColumn, RealColumn
from sidelight.data.domain import Domain
from sidelight.data.reading import frames
from sidelight.data.schema import Schema
from sidelight.data.table import Table
from sidelight.errors import DataError, SettingError

DOMAIN = Domain.of({"a": 3, "b": 2})
SCHEMA = Schema(
    (
        CategoricalColumn("sex", ("f", "m"), outside="other", other_label="x"),
        IntegerColumn("age", low=0, high=99, bins=5, missing=True),
        RealColumn("income", low=0.0, high=1.0, bins=4),
        CategoricalColumn("works", (False, True), missing=True),
    )
)
RECORDS = pa.table(
    {
        "sex": ["f", "m", "other sex", "m"],
        "age": [3, None, 99, 40],
        "income": [0.0, 0.25, 1.0, 0.6],
        "works": [True, False, None, True],
    }
)


@pytest.mark.parametrize(
    "codes",
    [
        np.array([[0, 1], [2, 0], [2, 0]]),
        np.asfortranarray(np.array([[0, 1], [2, 0], [2, 0]], dtype=np.uint8)),
        {"b": [1, 0, 0], "a": [0, 2, 2]},
        [np.array([0, 2, 2]), np.array([1, 0, 0])],
    ],
    ids=["records", "columns in memory", "mapping", "list of columns"],
)
def test_codes_come_as_records_or_as_columns(codes):
    table = Table.of_codes(DOMAIN, codes)

    assert table.records == 3
    assert table.count(("a", "b")).tolist() == [[0, 1], [0, 0], [2, 0]]
    assert table.count(("b",)).tolist() == [2, 1]


def test_codes_that_fit_are_not_copied():
    codes = np.zeros((10, 2), dtype=np.uint8, order="F")

    table = Table.of_codes(DOMAIN, codes)

    assert all(np.shares_memory(column, codes) for column in table._engine.columns)


@pytest.mark.parametrize(
    ("codes", "message"),
    [
        (np.array([[0, 2]]), "'b' holds codes outside 0 to 1"),
        (np.array([[-1, 0]]), "'a' holds codes outside 0 to 2"),
        (np.array([[0.0, 1.0]]), "integer codes"),
        (np.array([[0, 1, 1]]), "2 attributes"),
        (np.array([0, 1]), "records by attributes"),
        ({"a": [0]}, "no codes are given for 'b'"),
        ({"a": [0, 1], "b": [0]}, "as many as the others"),
    ],
)
def test_codes_outside_the_domain_are_refused(codes, message):
    with pytest.raises(DataError, match=message):
        Table.of_codes(DOMAIN, codes)


def test_an_empty_coded_table_counts_zero():
    table = Table.of_codes(DOMAIN, np.zeros((0, 2), dtype=np.uint8))

    assert table.count(("a", "b")).tolist() == [[0, 0]] * 3
    assert int(table.count(())) == 0


def test_many_marginals_of_a_skewed_table_agree_with_counting_each_plainly():
    rng = np.random.default_rng(5)
    sizes = {"a": 2, "b": 7, "c": 4, "d": 30, "e": 3, "f": 11}
    domain = Domain.of(sizes)
    codes = np.column_stack(
        [
            np.where(rng.random(70_000) < 0.15 * i, 0, rng.integers(0, m, 70_000))
            for i, m in enumerate(sizes.values())
        ]
    )
    marginals = [m for k in range(5) for m in itertools.permutations(domain.attrs, k)][::7]
    marginals.append(domain.attrs)

    counted = Table.of_codes(domain, codes).count_many(marginals)

    for attrs, counts in zip(marginals, counted, strict=True):
        places = domain.index(attrs)
        shape = domain.project(attrs).shape
        cells = np.zeros(len(codes), dtype=np.int64)
        for place in places:
            cells = cells * domain.shape[place] + codes[:, place]
        expected = np.bincount(cells, minlength=domain.size(attrs)).reshape(shape)
        np.testing.assert_array_equal(counts, expected, err_msg=str(attrs))


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow", "duckdb"])
def test_a_frame_comes_back_as_the_kind_that_came_in(kind):
    if kind in ("pandas", "polars"):
        pytest.importorskip(kind)
    frame = frames.from_arrow(RECORDS, kind)

    table = Table.read(frame, SCHEMA)
    back = table.to_frame(seed=1)

    assert table.kind == kind
    assert type(back) is type(frame)
    again = Table.read(back, SCHEMA)
    np.testing.assert_array_equal(again.codes(), table.codes())


def test_labels_types_and_units_come_back():
    decoded = Table.read(RECORDS, SCHEMA).decode(seed=1)

    assert decoded.schema.types == [pa.string(), pa.int64(), pa.float64(), pa.bool_()]
    assert decoded["sex"].to_pylist() == ["f", "m", "x", "m"]
    assert decoded["works"].to_pylist() == [True, False, None, True]
    assert decoded["age"].null_count == 1
    assert 0 <= decoded["age"][0].as_py() <= 19


def test_whole_numbers_beside_missing_ones_stay_whole_in_pandas():
    pytest.importorskip("pandas")

    frame = Table.read(RECORDS, SCHEMA).to_frame("pandas", seed=1)

    assert str(frame["age"].dtype) == "Int64"
    assert str(frame["works"].dtype) == "boolean"


def test_decoding_is_repeated_by_its_seed():
    table = Table.read(RECORDS, SCHEMA)

    assert table.decode(seed=1).equals(table.decode(seed=1))
    assert not table.decode(seed=1).equals(table.decode(seed=2))


def test_a_coded_table_decodes_to_its_codes():
    table = Table.of_codes(DOMAIN, np.array([[0, 1], [2, 0]]))

    assert table.to_frame(seed=0).to_pydict() == {"a": [0, 2], "b": [1, 0]}


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_what_is_written_to_a_file_is_read_back(tmp_path, ending):
    table = Table.read(RECORDS, SCHEMA)
    path = tmp_path / f"a{ending}"

    frames.write_file(table.decode(seed=1), path)

    np.testing.assert_array_equal(Table.read(path, SCHEMA).codes(), table.codes())


def test_moments_of_whole_seconds_are_written_without_a_fraction(tmp_path):
    noon, later = datetime(2020, 1, 31, 12), datetime(2020, 1, 31, 12, 0, 0, 500_000)
    held = {
        "whole": pa.array([noon, None], pa.timestamp("us")),
        "part": pa.array([noon, later], pa.timestamp("us")),
        "clock": pa.array([noon.time(), later.replace(microsecond=0).time()], pa.time64("us")),
    }

    frames.write_file(pa.table(held), tmp_path / "a.csv")

    assert (tmp_path / "a.csv").read_text(encoding="utf-8").splitlines() == [
        '"whole","part","clock"',
        "2020-01-31 12:00:00,2020-01-31 12:00:00.000000,12:00:00",
        ",2020-01-31 12:00:00.500000,12:00:00",
    ]


def test_unknown_kinds_and_endings_are_refused(tmp_path):
    table = Table.read(RECORDS, SCHEMA)

    with pytest.raises(SettingError, match="kind must be one of"):
        table.to_frame("excel", seed=1)
    with pytest.raises(SettingError, match="must end in"):
        frames.write_file(RECORDS, tmp_path / "a.xlsx")


@pytest.mark.parametrize("outside", ["clamp", "other"])
@pytest.mark.parametrize(("low", "high"), [(-5, 3), (2**53 - 4, 2**53 - 1)])
def test_whole_numbers_have_the_codes_of_the_same_numbers_as_decimals_and_as_text(low, high, outside):
    column = IntegerColumn(
        "x", low=low, high=high, missing=True, missing_texts=("999", "-9"), outside=outside
    )
    values = [None, -(2**63), -(2**53), -9, -5, -4, 0, 3, 4, 999, 2**53 - 1, 2**53, 2**53 + 1, 2**63 - 1]
    written = [None if value is None else str(value) for value in values]
    arrays = [pa.array(values, pa.int64()), pa.array(values, pa.decimal128(20, 0)), pa.array(written)]

    whole, *others = (Table.read(pa.table({"x": a}), Schema((column,))).codes().tolist() for a in arrays)

    assert others == [whole, whole]
    assert whole[values.index(low if low < 0 else high)] == [0 if low < 0 else high - low]
