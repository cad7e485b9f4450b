"""The code of a single value, in Python: what the encoding in SQL is compared with, engine by engine."""

import math

import numpy as np

from sidelight.data.columns.column import BinnedColumn, CategoricalColumn, Column, IntegerColumn
from sidelight.data.columns.moment_columns import MomentColumn
from sidelight.data.columns.value import text_of
from sidelight.errors import DataError


def encode_value(column: Column, value: object) -> int:
    """The code of one value.

    >>> encode_value(IntegerColumn("age", low=0, high=99, bins=20), 7)
    1
    >>> encode_value(IntegerColumn("age", low=0, high=99, outside="clamp"), "1e3")
    99
    """
    if isinstance(column, CategoricalColumn) and column.value_kind == "text":
        return _label(column, column.text_of(value))
    value = text_of(value) if isinstance(value, bytes) else value
    if isinstance(value, str) and value.strip(" ") in column.missing_texts:
        return _missing(column)
    if (
        isinstance(column, CategoricalColumn)
        and isinstance(value, str)
        and value.strip(" ") in column.spellings
    ):
        return column.spellings[value.strip(" ")]
    number = column.number_of(value)
    if number is None:
        return _outside(column)
    if math.isnan(number) or number in column.missing_numbers:
        return _missing(column)
    if isinstance(column, CategoricalColumn):
        return column.labels.index(number) if number in column.labels else _outside(column)
    assert isinstance(column, BinnedColumn)  # there are no other columns
    if column.outside != "clamp" and not _is_inside(column, number):
        return _outside(column)
    if isinstance(column, MomentColumn) and column.is_circular:
        return int(number // 86400 + 3) % 7 if column.by == "weekday" else int(number // 3600) % 24
    return int(np.searchsorted(column.bounds[1:-1], number, side="right"))


def _label(column: CategoricalColumn, text: str | None) -> int:
    if text is None or text in column.missing_texts:
        return _missing(column)
    if text in column.spellings:
        return column.spellings[text]
    return column.labels.index(text) if text in column.labels else _outside(column)


def _is_inside(column: BinnedColumn, number: float) -> bool:
    low, high = column.ends
    return low <= number <= high and (not isinstance(column, IntegerColumn) or number == math.floor(number))


def _missing(column: Column) -> int:
    if column.missing_code is None:
        raise DataError(f"column {column.name!r} does not allow missing values.")
    return column.missing_code


def _outside(column: Column) -> int:
    if column.other_code is None:
        raise DataError(f"column {column.name!r} does not allow values outside the schema.")
    return column.other_code
