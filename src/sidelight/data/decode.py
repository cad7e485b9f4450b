"""Codes back to values.

    label      itself, in its own type
    bin        a point of it, uniform, drawn from ``seed``: whole numbers for integer columns
    other      ``other_label``; for numbers a missing value
    missing    a missing value

Values become codes in ``engines/sql_encoding.py``; what a value means, ``value.py`` says.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from sidelight.data.column import CategoricalColumn, Column, IntegerColumn, NumericColumn
from sidelight.data.schema import Schema


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
