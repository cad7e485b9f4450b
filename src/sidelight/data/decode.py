"""Codes back to values.

    label      itself, in its own type
    bin        a point of it, uniform, drawn from ``seed``: a whole number for an integer column, so many
               decimals for a real one as it declares or its narrowest bin needs, a whole day or
               second for dates and times; of a weekday or an hour of the day any one between the column's
               bounds
    other      ``other_label``; for numbers, dates and times a missing value
    missing    a missing value

Values become codes in ``engines/sql_encoding.py``; ``columns/value.py`` and ``columns/moment.py`` say what a
value means.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from sidelight.data.columns.column import BinnedColumn, CategoricalColumn, IntegerColumn, RealColumn
from sidelight.data.columns.moment import DAY, Offsets
from sidelight.data.columns.moment_columns import DatetimeColumn, MomentColumn
from sidelight.data.schema import Schema

Points = npt.NDArray[np.int64] | npt.NDArray[np.float64]
"""A number for each record: of a real column as it is, of other columns a whole one."""


def decode(schema: Schema, codes: npt.NDArray[np.integer], *, seed: int) -> Any:
    """The records as a pyarrow table of original labels, types and units."""
    import pyarrow as pa

    from sidelight.data.constrained_draws import Drawn, determine, make_hold

    codes = determine(schema.constraints, schema.columns, codes)
    drawn: dict[str, Drawn] = {}
    for place, column in enumerate(schema.columns):
        if isinstance(column, BinnedColumn):
            # One stream of numbers a column: a column decodes alike whatever its neighbours are.
            rng = np.random.default_rng((seed, place))
            is_null = codes[:, place] >= column.declared
            bins = np.where(is_null, 0, codes[:, place]).astype(np.int64)
            drawn[column.name] = Drawn(column, bins, points(column, bins, rng), is_null)
    make_hold(schema.constraints, drawn, np.random.default_rng((seed, len(schema.columns))))
    arrays = []
    for place, column in enumerate(schema.columns):
        if isinstance(column, CategoricalColumn):
            arrays.append(labels_of(column, codes[:, place]))
        else:
            one = drawn[column.name]
            arrays.append(written(one.column, one.points, one.is_null))
    return pa.Table.from_arrays(arrays, names=[column.name for column in schema.columns])


def labels_of(column: CategoricalColumn, codes: npt.NDArray[np.integer]) -> Any:
    """The label of each code, as a pyarrow array."""
    import pyarrow as pa

    types = {"text": pa.string(), "integer": pa.int64(), "real": pa.float64(), "boolean": pa.bool_()}
    values = [*column.labels]
    values += [column.other_label] if column.outside == "other" else []  # type: ignore[list-item]  # None is null
    dictionary = pa.array([*values, None], type=types[column.value_kind])
    return dictionary.take(pa.array(np.minimum(codes.astype(np.int64), len(values))))


def points(column: BinnedColumn, bins: npt.NDArray[np.int64], rng: np.random.Generator) -> Points:
    """A point of each of these bins, uniform among those that the column can hold."""
    if isinstance(column, RealColumn):
        return _real_points(column, bins, rng)
    if isinstance(column, MomentColumn):
        return _moments(column, bins, rng)
    assert isinstance(column, IntegerColumn)  # there are no other columns
    return rng.integers(column.bounds[bins], column.bounds[bins + 1])


def written(column: BinnedColumn, found: Points, is_null: npt.NDArray[np.bool_]) -> Any:
    """Points in the column's own type, as a pyarrow array."""
    import pyarrow as pa

    if not isinstance(column, MomentColumn):
        return pa.array(
            found, type=pa.float64() if isinstance(column, RealColumn) else pa.int64(), mask=is_null
        )
    if column.value_kind == "time":
        return pa.array(found.astype(np.int32), mask=is_null).cast(pa.time32("s")).cast(pa.time64("us"))
    if column.value_kind == "date":
        return pa.array((found // DAY).astype(np.int32), mask=is_null).cast(pa.date32())
    offsets = column.offsets if isinstance(column, DatetimeColumn) else None
    if offsets is None:
        return pa.array(found.astype("datetime64[s]"), mask=is_null).cast(pa.timestamp("us"))
    instants = _instants(found.astype(np.int64), offsets).astype("datetime64[s]")
    zoned = pa.timestamp("us", column.zone)  # type: ignore[attr-defined]  # it has offsets, so it has a zone
    return pa.array(instants, mask=is_null).cast(pa.timestamp("us")).cast(zoned)


def _instants(walls: npt.NDArray[np.int64], offsets: Offsets) -> npt.NDArray[np.int64]:
    """When the clock on the wall showed this; of an hour that no clock showed, an hour beside."""
    starts, shifts = np.array(offsets, dtype=np.int64).T
    found = walls
    # Libraries disagree about the years after 2037, so reading and writing use one list of offsets.
    for _ in range(3):
        found = walls - shifts[np.maximum(np.searchsorted(starts, found, side="right") - 1, 0)]
    return found


def _real_points(
    column: RealColumn, bins: npt.NDArray[np.int64], rng: np.random.Generator
) -> npt.NDArray[np.float64]:
    if column.sampled_decimals is not None:
        first, last = (steps[bins] for steps in column.steps)
        steps = np.minimum(first + np.floor(rng.random(len(bins)) * (last - first + 1)), last)
        rounded: npt.NDArray[np.float64] = steps / 10.0**column.sampled_decimals
        return rounded
    low, high = column.bounds[bins], column.bounds[bins + 1]
    found = low + (high - low) * rng.random(len(bins))
    # Rounding may reach the upper edge, which is in the next bin.
    return np.where(found >= high, np.nextafter(high, low), found)


def _moments(
    column: MomentColumn, bins: npt.NDArray[np.int64], rng: np.random.Generator
) -> npt.NDArray[np.int64]:
    if not column.is_circular:
        # Bounds are whole steps, days or seconds.
        low, high = column.bounds[bins] // column.step, column.bounds[bins + 1] // column.step
        return rng.integers(low, high) * column.step
    first, beyond = int(column.ends[0]) // DAY, int(column.ends[1] + 1) // DAY
    if column.by == "hour":
        days = rng.integers(first, beyond, size=len(bins))
        return days * DAY + bins * 3600 + rng.integers(0, 3600, size=len(bins))
    nearest = first + (bins - first - 3) % 7  # the first such weekday; 1970 began on a Thursday
    days = nearest + 7 * rng.integers(0, (beyond - 1 - nearest) // 7 + 1)
    return days * DAY + (0 if column.step == DAY else rng.integers(0, DAY, size=len(bins)))
