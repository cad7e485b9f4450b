"""Frames of any library, with any of its types: what came in comes out, in type and in meaning.

A schema is drafted from a public frame, written and read again. The records of the frame are encoded, decoded
into a frame of the same library, and that frame is encoded once more: its types are those that came in, and
its codes are those that it was made from.
"""

import datetime as dt
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from sidelight.data.schema import Schema
from sidelight.data.table import Table

RECORDS = 24
LABELS = ["b", "a", "ü 1", "Z"]
ZONES = ["UTC", "Europe/Berlin", "America/New_York"]
START = dt.datetime(2019, 3, 4, 5, 6, 7)


def with_holes(values: st.SearchStrategy, *, holes: bool) -> st.SearchStrategy:
    kept = st.lists(st.none() | values if holes else values, min_size=RECORDS, max_size=RECORDS)
    return kept.filter(lambda found: sum(one is not None for one in found) > 2)


MOMENTS = st.integers(0, 5_000_000).map(lambda minutes: START + dt.timedelta(minutes=minutes))
KINDS = {
    "integer": st.integers(-100, 100),
    "real": st.integers(-4000, 4000).map(lambda n: n / 8),
    "decimal": st.integers(-9999, 9999).map(lambda n: Decimal(n) / 100),
    "truth": st.booleans(),
    "text": st.sampled_from(LABELS),
    "ordered": st.sampled_from(LABELS),
    "date": MOMENTS.map(dt.datetime.date),
    "moment": MOMENTS,
    "zoned": MOMENTS,
    "clock": MOMENTS.map(dt.datetime.time),
}


def pandas_series(kind, values, dtype, zone):
    import pandas as pd

    if kind == "ordered":
        return pd.Series(pd.Categorical(values, LABELS, ordered=True))
    if kind == "zoned":
        localised = pd.Series(values, dtype="datetime64[ns]").dt.tz_localize("UTC").dt.tz_convert(zone)
        return localised.astype(f"datetime64[{dtype}, {zone}]")
    if kind in ("moment", "date"):
        return pd.Series([None if v is None else pd.Timestamp(v) for v in values]).astype(
            f"datetime64[{dtype}]"
        )
    return pd.Series(values, dtype=dtype)


PANDAS = {
    "integer": ["int8", "Int16", "int64", "Int64", "float64"],
    "real": ["float32", "float64", "Float64"],
    "truth": ["boolean", "bool"],
    "text": ["string", "category", "object"],
    "ordered": ["category"],
    "date": ["s", "ns"],
    "moment": ["s", "ms", "us", "ns"],
    "zoned": ["s", "us", "ns"],
}
WITHOUT_HOLES = {"int8", "int64", "bool"}


def pandas_frame(columns):
    import pandas as pd

    return pd.DataFrame({name: pandas_series(*column) for name, column in columns.items()})


def pandas_types(frame):
    return {name: str(dtype) for name, dtype in frame.dtypes.items()} | {
        f"{name} in order": (list(frame[name].cat.categories), frame[name].cat.ordered)
        for name, dtype in frame.dtypes.items()
        if str(dtype) == "category" and frame[name].cat.ordered
    }


ARROW = {
    "integer": ["int8", "int16", "int32", "int64"],
    "real": ["float", "double"],
    "decimal": ["decimal"],
    "truth": ["bool"],
    "text": ["string", "large_string", "dictionary"],
    "date": ["date32"],
    "moment": ["timestamp[s]", "timestamp[ms]", "timestamp[us]", "timestamp[ns]"],
    "zoned": ["timestamp[us]"],
    "clock": ["time64[us]"],
}


def arrow_frame(columns):
    made = {}
    for name, (kind, values, dtype, zone) in columns.items():
        if kind == "decimal":
            made[name] = pa.array(values, pa.decimal128(12, 2))
        elif dtype == "dictionary":
            made[name] = pa.array(values, pa.string()).dictionary_encode()
        elif kind == "zoned":
            made[name] = pa.array(values, pa.timestamp("us", zone))
        else:
            made[name] = pa.array(values, pa.type_for_alias(dtype))
    return pa.table(made)


POLARS = {
    "integer": ["Int8", "Int32", "Int64"],
    "real": ["Float32", "Float64"],
    "truth": ["Boolean"],
    "text": ["String", "Categorical"],
    "ordered": ["Enum"],
    "date": ["Date"],
    "moment": ["ms", "us", "ns"],
    "zoned": ["us"],
    "clock": ["Time"],
}


def polars_frame(columns):
    import polars as pl

    made = []
    for name, (kind, values, dtype, zone) in columns.items():
        if kind == "ordered":
            of_type = pl.Enum(LABELS)
        elif kind in ("moment", "zoned"):
            of_type = pl.Datetime(dtype, zone if kind == "zoned" else None)
        else:
            of_type = getattr(pl, dtype)
        naive = pl.Series(name, values, dtype=pl.Datetime(dtype) if kind == "zoned" else of_type)
        made.append(
            naive.dt.replace_time_zone("UTC").dt.convert_time_zone(zone) if kind == "zoned" else naive
        )
    return pl.DataFrame(made)


SPARK = {
    "integer": ["tinyint", "smallint", "int", "bigint"],
    "real": ["float", "double"],
    "decimal": ["decimal(12,2)"],
    "truth": ["boolean"],
    "text": ["string"],
    "date": ["date"],
    "moment": ["timestamp_ntz"],
}

LIBRARIES = {
    "pandas": (PANDAS, pandas_frame, pandas_types),
    "pyarrow": (ARROW, arrow_frame, lambda table: table.schema.types),
    "polars": (POLARS, polars_frame, lambda frame: frame.schema),
}


@st.composite
def columns_of(draw, types):
    """Columns of random kinds, each in a random type that its library has for it, with or without holes."""
    found = {}
    for name in ("x", "y", "z")[: draw(st.integers(1, 3))]:
        kind = draw(st.sampled_from(sorted(types)))
        dtype = draw(st.sampled_from(types[kind]))
        holes = dtype not in WITHOUT_HOLES and draw(st.booleans())
        values = draw(with_holes(KINDS[kind], holes=holes))
        found[name] = (kind, values, dtype, draw(st.sampled_from(ZONES)))
    return found


def round_trip(frame):
    """The schema drafted from a frame, its codes, and the frame made of them."""
    schema = Schema.from_toml(Schema.draft(frame).to_toml())
    table = Table.read(frame, schema)
    codes = np.asarray(table.codes())
    made = Table.of_codes(schema.domain, codes, schema=schema, kind=table.kind).to_frame(seed=3)
    return schema, codes, made


@pytest.mark.slow
@pytest.mark.parametrize("library", list(LIBRARIES))
def test_what_came_in_comes_out(library):
    types, make, types_of = LIBRARIES[library]

    @settings(max_examples=25)
    @given(columns_of(types))
    def holds(columns):
        frame = make(columns)

        schema, codes, made = round_trip(frame)

        assert types_of(made) == types_of(frame)
        again = np.asarray(Table.read(made, schema).codes())
        assert again.tolist() == codes.tolist()

    holds()


@pytest.mark.spark
@pytest.mark.slow
@settings(max_examples=4)
@given(columns_of(SPARK))
def test_what_came_in_comes_out_of_spark(spark, columns):
    assume(len(columns) > 1)
    declared = ", ".join(f"{name} {dtype}" for name, (_, _, dtype, _) in columns.items())
    lines = list(zip(*(values for _, values, _, _ in columns.values()), strict=True))
    frame = spark.createDataFrame(lines, declared)

    schema, codes, made = round_trip(frame)

    assert made.dtypes == frame.dtypes
    again = np.asarray(Table.read(made, schema).codes())
    assert sorted(again.tolist()) == sorted(codes.tolist())
