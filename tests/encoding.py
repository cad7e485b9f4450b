"""The code of a single value, in Python: what the encoding in SQL is compared with, engine by engine."""

import math

import numpy as np

from sidelight.data.column import CategoricalColumn, Column, IntegerColumn, NumericColumn
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
