"""What is sampled from a column of any kind lies in the bin it was drawn from, in the type declared."""

import datetime as dt

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from encoding import encode_value
from sidelight.data.columns.column import CategoricalColumn, Column, IntegerColumn, RealColumn
from sidelight.data.columns.moment_columns import DateColumn, DatetimeColumn, TimeColumn
from sidelight.data.decode import decode
from sidelight.data.schema import Schema
from sidelight.errors import SchemaError

days = st.dates(dt.date(1850, 1, 1), dt.date(2150, 1, 1))
moments = st.datetimes(dt.datetime(1850, 1, 1), dt.datetime(2150, 1, 1)).map(
    lambda m: m.replace(microsecond=0)
)
outsides = st.sampled_from(["refuse", "other"])


@st.composite
def dates(draw):
    low, high = sorted([draw(days), draw(days)])
    by = draw(st.sampled_from([*DateColumn.periods, None]))
    if by == "weekday":
        high += dt.timedelta(days=7)
    bins = draw(st.integers(1, min(40, (high - low).days + 1))) if by is None else None
    return DateColumn("x", low, high, by, bins, missing=draw(st.booleans()), outside=draw(outsides))


@st.composite
def datetimes(draw):
    zone = draw(st.sampled_from([None, "UTC", "Asia/Tokyo", "America/New_York"]))
    by = draw(st.sampled_from([*DatetimeColumn.periods, None]))
    bounds = sorted([draw(days), draw(days)] if by in ("weekday", "hour") else [draw(moments), draw(moments)])
    bins = None if by is not None else min(7, int((bounds[1] - bounds[0]).total_seconds()) + 1)
    if by == "weekday":
        bounds[1] += dt.timedelta(days=7)
    return DatetimeColumn("x", *bounds, by, bins, zone=zone, missing=draw(st.booleans()))


@st.composite
def times(draw):
    inner = sorted(set(draw(st.lists(st.integers(1, 86399), max_size=5))))
    edges = ["00:00", *(str(dt.timedelta(seconds=s)).rjust(8, "0") for s in inner), "24:00"]
    return draw(st.sampled_from([TimeColumn("x", missing=True), TimeColumn("x", edges=tuple(edges))]))


@st.composite
def reals(draw):
    decimals = draw(st.integers(0, 6))
    low = draw(st.floats(-1e6, 1e6))
    width = draw(st.floats(1e-3, 1e6))
    try:
        return RealColumn("x", low, low + width, draw(st.integers(1, 30)), decimals=decimals)
    except SchemaError:
        return RealColumn("x", low, low + width, 1, missing=True)


columns = st.one_of(dates(), datetimes(), times(), reals())


@settings(max_examples=40)
@given(columns, st.integers(0, 2**32))
def test_a_sampled_value_is_read_as_the_code_it_was_drawn_for(column: Column, seed: int):
    codes = np.arange(column.size).repeat(3)
    codes = codes[:: max(1, len(codes) // 60)]

    drawn = decode(Schema((column,)), codes[:, None], seed=seed)

    wanted = [code if code < column.declared else None for code in codes.tolist()]
    found = [
        None if value is None else encode_value(column, value) for value in drawn.column("x").to_pylist()
    ]
    if getattr(column, "zone", None) == "America/New_York":  # an hour a year that no clock shows
        assert sum(a != b for a, b in zip(wanted, found, strict=True)) <= 3
    else:
        assert found == wanted


@settings(max_examples=40)
@given(columns)
def test_a_column_of_any_kind_is_written_and_read_back_equal(column: Column):
    schema = Schema((column,))

    assert Schema.from_toml(schema.to_toml()) == schema


@settings(max_examples=20)
@given(st.floats(-1e9, 1e9), st.integers(0, 4), st.integers(0, 2**32))
def test_decimals_are_written_in_so_many_digits(low, decimals, seed):
    column = RealColumn("x", low, low + 1000.0, 8, decimals=decimals)
    codes = np.arange(8).repeat(20)[:, None]

    drawn = decode(Schema((column,)), codes, seed=seed)

    for value in drawn.column("x").to_pylist():
        assert len(repr(value).partition(".")[2]) <= max(decimals, 1)
        assert value == round(value, decimals)


@pytest.mark.parametrize(("high", "decimals"), [(8e6, 0), (8000.0, 0), (800.0, 1), (8.0, 3), (0.08, 5)])
def test_undeclared_decimals_follow_from_the_width_of_a_bin(high, decimals):
    column = RealColumn("x", 0.0, high, 8)
    codes = np.arange(8).repeat(200)

    drawn = decode(Schema((column,)), codes[:, None], seed=1).column("x").to_numpy()

    assert (drawn == np.round(drawn, decimals)).all()
    assert (drawn != np.round(drawn, decimals - 1)).any()
    assert (np.minimum(np.searchsorted(column.bounds, drawn, side="right") - 1, 7) == codes).all()


def test_bins_too_narrow_for_decimals_keep_every_digit():
    column = RealColumn("x", 1e15, 1e15 + 2, 2)

    drawn = decode(Schema((column,)), np.array([[0], [1]]), seed=1).column("x").to_numpy()

    assert column.sampled_decimals is None
    assert (np.searchsorted(column.bounds, drawn, side="right") - 1 == [0, 1]).all()


def test_the_types_that_come_out_are_those_declared():
    schema = Schema.from_toml(
        """
        [columns.day]
        kind = "date"
        low = 2020-01-01
        high = 2020-12-31
        by = "weekday"
        [columns.moment]
        kind = "datetime"
        low = 2020-01-01
        high = 2020-12-31T12:00:00
        by = "month"
        [columns.zoned]
        kind = "datetime"
        low = 2020-01-01
        high = 2020-12-31
        by = "hour"
        zone = "Europe/Berlin"
        [columns.clock]
        kind = "time"
        """
    )
    codes = np.zeros((2, 4), dtype=np.int64)

    types = decode(schema, codes, seed=1).schema.types

    assert types == [pa.date32(), pa.timestamp("us"), pa.timestamp("us", "Europe/Berlin"), pa.time64("us")]
    assert schema.domain.shape == (7, 12, 24, 24)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("kind = 'date'\nlow = 2020-01-01\nhigh = 2019-01-01\nby = 'day'", "low must not be above high"),
        ("kind = 'date'\nlow = 2020-01-01\nhigh = 2020-01-03\nby = 'weekday'", "at least seven days"),
        ("kind = 'date'\nlow = 2020-01-01\nhigh = 2020-01-03", "either by .* or bins"),
        ("kind = 'date'\nlow = 2020-01-01\nhigh = 2020-01-03\nby = 'hour'", "by must be one of"),
        ("kind = 'date'\nlow = 'soon'\nhigh = 2020-01-03\nby = 'day'", "bounds must be dates"),
        ("kind = 'date'\nlow = 0001-01-01\nhigh = 9999-01-03\nby = 'day'", "more than 1,048,576"),
        ("kind = 'date'\nedges = [2020-01-01, 2020-01-01]", "edges must increase"),
        (
            "kind = 'date'\nlow = 2020-01-01\nhigh = 2020-12-31\nby = 'day'\nformat = 'iso'",
            "format must be one",
        ),
        (
            "kind = 'datetime'\nlow = 2020-01-01\nhigh = 2020-12-31\nby = 'day'\nzone = 'Mars'",
            "zone must name",
        ),
        ("kind = 'time'\nedges = ['10:00', '25:00']", "bounds must be times"),
        (
            "kind = 'real'\nlow = 0.0\nhigh = 1.0\nbins = 20\ndecimals = 1",
            "a bin holds no number of 1 decimals",
        ),
        ("kind = 'real'\nlow = 0.0\nhigh = 1.0\nbins = 2\ndecimals = -1", "decimals must be"),
        ("kind = 'categorical'\nlabels = ['10115']\nprefix = 3", "longer than prefix"),
        ("kind = 'categorical'\nlabels = ['a']\naliases = { b = ['c'] }", "which is no label"),
        (
            "kind = 'categorical'\nlabels = ['a', 'b']\naliases = { b = ['a'] }",
            "already stands for something",
        ),
        ("kind = 'categorical'\nlabels = ['a']\nmissing_texts = ['NA']", "needs missing = true"),
    ],
)
def test_what_cannot_be_is_refused_by_name(text, message):
    with pytest.raises(SchemaError, match=message):
        Schema.from_toml(f"[columns.x]\n{text}")


def test_ordered_labels_and_prefixes_are_declared():
    column = CategoricalColumn("x", ("mild", "severe"), ordered=True, prefix=6)

    assert Schema.from_toml(Schema((column,)).to_toml()).columns == (column,)
    assert IntegerColumn("n", low=1, high=3).ends == (1, 3)
