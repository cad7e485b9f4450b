"""Columns of a table, whatever holds it: a mapping, a data frame, or a CSV or Parquet file."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sidelight.errors import DataError


def read_columns(table: Any, names: Sequence[str]) -> dict[str, NDArray[Any]]:
    """These columns as arrays, in the order of the records.

    >>> read_columns({"age": [30, 40], "sex": ["f", "m"]}, ["age"])["age"].tolist()
    [30, 40]
    """
    if isinstance(table, (str, Path)):
        table = _read_file(Path(table), names)
    if isinstance(table, Mapping):
        _check_names(names, list(table))
        columns = {name: np.asarray(table[name]) for name in names}
    else:
        columns = _from_frame(table, names)
    lengths = {column.shape for column in columns.values()}
    if len(lengths) != 1 or any(column.ndim != 1 for column in columns.values()):
        raise DataError("the columns must be lists of one length; nothing was charged.")
    return columns


def numbers(column: NDArray[Any], name: str) -> NDArray[np.float64]:
    """A column of numbers; anything missing or unreadable is refused."""
    try:
        values = column.astype(np.float64)
    except (TypeError, ValueError):
        raise DataError(f"column {name!r} holds values that are not numbers; nothing was charged.") from None
    if np.isnan(values).any():
        raise DataError(f"column {name!r} has missing values; fill or drop them first. Nothing was charged.")
    return values


def _read_file(path: Path, names: Sequence[str]) -> Any:
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet

    if not path.exists():
        raise DataError(f"there is no file {str(path)!r}.")
    try:
        if path.suffix == ".parquet":
            _check_names(names, pyarrow.parquet.read_schema(path).names)
            return pyarrow.parquet.read_table(path, columns=list(names))
        table = pyarrow.csv.read_csv(path)
    except (pa.ArrowInvalid, UnicodeDecodeError):
        # PRIVACY: the parser's own message quotes the line that it could not read.
        raise DataError(f"{str(path)!r} cannot be read as a table: use CSV or Parquet.") from None
    return table


def _from_frame(table: Any, names: Sequence[str]) -> dict[str, NDArray[Any]]:
    import narwhals as nw

    try:
        frame = nw.from_native(table)
    except TypeError:
        raise DataError(f"a {type(table).__name__} is not a table that can be read.") from None
    if isinstance(frame, nw.LazyFrame):
        frame = frame.select(*names).collect()
    _check_names(names, frame.columns)
    return {name: frame[name].to_numpy() for name in names}


def _check_names(names: Sequence[str], present: Sequence[str]) -> None:
    for name in names:
        if name not in present:
            listed = ", ".join(repr(column) for column in present)
            raise DataError(f"there is no column {name!r}; the table has {listed}.")
