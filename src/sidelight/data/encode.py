"""Value to code and back.

Whole tables are encoded by SQL (engines/sql.py); here is the same meaning for one value (value.py),
which the contract tests compare every engine with, and decoding:

    label      itself, in its own type
    bin        a point of it, uniform, drawn from ``seed``: whole numbers for integer columns
    other      ``other_label``; for numbers a missing value
    missing    a missing value
"""

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from sidelight.data.column import CategoricalColumn, Column, IntegerColumn, NumericColumn
from sidelight.data.schema import Schema
from sidelight.data.value import number_of, text_of
from sidelight.errors import DataError


def encode_value(column: Column, value: object) -> int:
    """The code of one value.

    >>> encode_value(IntegerColumn("age", low=0, high=99, bins=20), 7)
    1
    >>> encode_value(IntegerColumn("age", low=0, high=99, outside="clamp"), "1e3")
    99
    """
    if column.value_kind == "text":
        text = text_of(value)
        if text is None:
            return _missing(column)
        assert isinstance(column, CategoricalColumn)  # the only columns of text
        return column.labels.index(text) if text in column.labels else _outside(column)
    number = number_of(value, is_truth=column.value_kind == "boolean")
    if number is None:
        return _outside(column)
    if math.isnan(number):
        return _missing(column)
    if isinstance(column, CategoricalColumn):
        return column.labels.index(number) if number in column.labels else _outside(column)
    assert isinstance(column, NumericColumn)  # there are no other columns
    if column.outside != "clamp" and not _is_inside(column, number):
        return _outside(column)
    return int(np.searchsorted(column.bounds[1:-1], number, side="right"))


def decode(schema: Schema, codes: npt.NDArray[np.integer], *, seed: int) -> Any:
    """The records as a pyarrow table of original labels, types and units."""
    import pyarrow as pa

    # One stream of numbers a column: a column decodes alike whatever its neighbours are.
    columns = [
        decode_column(column, codes[:, place], np.random.default_rng((seed, place)))
        for place, column in enumerate(schema.columns)
    ]
    return pa.Table.from_arrays(columns, names=[column.name for column in schema.columns])


def decode_column(column: Column, codes: npt.NDArray[np.integer], rng: np.random.Generator) -> Any:
    """One column's codes as a pyarrow array."""
    import pyarrow as pa

    types = {"text": pa.string(), "integer": pa.int64(), "real": pa.float64(), "boolean": pa.bool_()}
    wanted = types[column.value_kind]
    if isinstance(column, CategoricalColumn):
        values = [*column.labels]
        values += [column.other_label] if column.outside == "other" else []  # type: ignore[list-item]  # None is null
        dictionary = pa.array([*values, None], type=wanted)
        return dictionary.take(pa.array(np.minimum(codes.astype(np.int64), len(values))))
    assert isinstance(column, NumericColumn)  # there are no other columns
    is_null = codes >= column.declared
    bins = np.where(is_null, 0, codes).astype(np.int64)
    if isinstance(column, IntegerColumn):
        whole = rng.integers(column.bounds[bins], column.bounds[bins + 1])
        return pa.array(whole, type=wanted, mask=is_null)
    low, high = column.bounds[bins], column.bounds[bins + 1]
    points = low + (high - low) * rng.random(len(bins))
    # Rounding may reach the upper edge, which is in the next bin.
    points = np.where(points >= high, np.nextafter(high, low), points)
    return pa.array(points, type=wanted, mask=is_null)


def _is_inside(column: NumericColumn, number: float) -> bool:
    if isinstance(column, IntegerColumn):
        return column.first <= number <= column.last and number == math.floor(number)
    return bool(column.bounds[0] <= number <= column.bounds[-1])


def _missing(column: Column) -> int:
    if column.missing_code is None:
        raise DataError(f"column {column.name!r} does not allow missing values.")
    return column.missing_code


def _outside(column: Column) -> int:
    if column.other_code is None:
        raise DataError(f"column {column.name!r} does not allow values outside the schema.")
    return column.other_code
