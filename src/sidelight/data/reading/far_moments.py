"""Parquet files with moments so far away that DuckDB cannot hold them.

DuckDB counts microseconds, and a file may count milliseconds: one value of 300,000 years would stop it, and
one record would decide whether a table is read at all. The statistics in the file tell where there may be
such values. Of such a file a copy is read in which they are moved to just beyond the years that schemas know:
there, too, they are values outside.
"""

import uuid
from typing import Any

import numpy as np

from sidelight.data.columns.moment import EARLIEST, LATEST
from sidelight.data.engines.own_folder import own_folder

_MOST = 2**63 // 1000
"""Milliseconds from 1970 that DuckDB can count in microseconds."""
_AT_ONCE = 1 << 17


def has_far_moments(metadata: Any) -> bool:
    """Whether some column of milliseconds may hold a value that DuckDB cannot."""
    return any(_may_be_far(metadata, place) for place in _places_of_milliseconds(metadata))


def nearer_copy(path: str) -> str:
    """A copy of the file, in a folder that only this user may enter, without such values."""
    import pyarrow as pa
    from pyarrow import parquet

    copy = own_folder() / f"{uuid.uuid4().hex}.parquet"
    with open(path, "rb") as file:
        found = parquet.ParquetFile(file)
        with parquet.ParquetWriter(copy, found.schema_arrow) as writer:
            for batch in found.iter_batches(_AT_ONCE):
                columns = [_nearer(column) for column in batch.columns]
                writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=batch.schema))
    return str(copy)


def _places_of_milliseconds(metadata: Any) -> list[int]:
    kinds = (metadata.schema.column(place).logical_type.to_json() for place in range(metadata.num_columns))
    return [place for place, kind in enumerate(kinds) if "Timestamp" in kind and "milliseconds" in kind]


def _may_be_far(metadata: Any, place: int) -> bool:
    for group in range(metadata.num_row_groups):
        found = metadata.row_group(group).column(place).statistics
        if found is None or not found.has_min_max:
            return bool(metadata.row_group(group).num_rows)
        if min(found.min_raw, -found.max_raw) <= -_MOST:
            return True
    return False


def _nearer(column: Any) -> Any:
    import pyarrow as pa

    if not (pa.types.is_timestamp(column.type) and column.type.unit == "ms"):
        return column
    is_null = column.is_null().to_numpy(zero_copy_only=False)
    number = column.cast(pa.int64()).fill_null(0).to_numpy()
    near = np.clip(number, 1000 * (EARLIEST - 1), 1000 * (LATEST + 1))
    return pa.array(near, mask=is_null).cast(column.type)
