"""Data frames in and out: which kind came in, its columns as Arrow, and the same kind out.

A file or a database table comes back as a pyarrow table.
"""

from collections.abc import Collection
from pathlib import Path
from typing import Any

from sidelight._extras import need
from sidelight.errors import DataError, SettingError

KINDS = ("pandas", "polars", "pyarrow", "duckdb", "spark")


def kind_of(frame: Any) -> str | None:
    """Which frame this is; None if it is none that we know."""
    root = type(frame).__module__.partition(".")[0].lstrip("_")
    name = type(frame).__name__
    if root == "pandas" and name == "DataFrame":
        return "pandas"
    if root == "polars" and name in ("DataFrame", "LazyFrame"):
        return "polars"
    if root == "pyarrow" and name in ("Table", "RecordBatch", "RecordBatchReader"):
        return "pyarrow"
    if root == "duckdb" and name == "DuckDBPyRelation":
        return "duckdb"
    if root == "pyspark" and name == "DataFrame":
        return "spark"
    return "arrow" if hasattr(frame, "__arrow_c_stream__") else None


def to_arrow(
    frame: Any, wanted: Collection[str] | None = None
) -> tuple[Any, tuple[str, ...], tuple[str, ...]]:
    """The ``wanted`` columns (all, if None) as pyarrow, named by position; their names; the other names."""
    import pyarrow as pa

    is_pandas = kind_of(frame) == "pandas"
    table: Any = None if is_pandas else _native_table(frame)
    names = [str(name) for name in (frame.columns if is_pandas else table.column_names)]
    arrays, kept, extra = [], [], []
    for place, name in enumerate(names):
        if wanted is not None and name not in wanted:
            extra.append(name)
            continue
        array = _from_pandas(frame.iloc[:, place], name) if is_pandas else table.column(place)
        arrays.append(_plain(array))
        kept.append(name)
    fields = [f"c{place}" for place in range(len(kept))]
    return pa.Table.from_arrays(arrays, names=fields), tuple(kept), tuple(extra)


def from_arrow(table: Any, kind: str) -> Any:
    """The pyarrow ``table`` as a frame of this kind."""
    if kind == "pandas":
        return _to_pandas(table)
    if kind == "polars":
        return need("polars", "to make a polars frame").from_arrow(table)
    if kind == "duckdb":
        return need("duckdb", "to make a DuckDB relation").from_arrow(table)
    if kind == "spark":
        return _to_spark(table)
    if kind in ("pyarrow", "arrow", "codes", "postgres") or kind.startswith("file."):
        return table
    raise SettingError(f"kind must be one of {', '.join(map(repr, KINDS))}; got {kind!r}.")


def write_file(table: Any, path: str | Path) -> None:
    """Write a pyarrow table as .csv or .parquet, by the name's ending."""
    ending = Path(path).suffix.lower()
    if ending == ".csv":
        from pyarrow import csv

        csv.write_csv(table, str(path))
    elif ending in (".parquet", ".pq"):
        from pyarrow import parquet

        parquet.write_table(table, str(path), compression="zstd")
    else:
        raise SettingError(f"the file must end in .csv or .parquet; got {str(path)!r}.")


def _native_table(frame: Any) -> Any:
    import pyarrow as pa

    kind = kind_of(frame)
    if kind == "polars":
        import narwhals as nw

        native = nw.from_native(frame)
        return (native.collect() if isinstance(native, nw.LazyFrame) else native).to_arrow()
    if isinstance(frame, pa.Table):
        return frame
    if isinstance(frame, pa.RecordBatchReader):
        return frame.read_all()
    return pa.table(frame)


def _from_pandas(column: Any, name: str) -> Any:
    import pyarrow as pa

    try:
        return pa.chunked_array([pa.Array.from_pandas(column)])
    except (pa.ArrowException, TypeError):
        # Arrow's own message quotes the value.
        raise DataError(
            f"column {name!r} holds values of several types; convert it to text, or to numbers, first."
        ) from None


def _plain(array: Any) -> Any:
    """The same values in a type that DuckDB reads: no dictionaries, no half floats, no empty type."""
    import pyarrow as pa

    if pa.types.is_dictionary(array.type):
        array = array.cast(array.type.value_type)
    if pa.types.is_float16(array.type):
        return array.cast(pa.float32())
    return array.cast(pa.int8()) if pa.types.is_null(array.type) else array


def _to_pandas(table: Any) -> Any:
    """A pandas frame in which whole numbers stay whole, and booleans boolean, beside missing values."""
    pandas = need("pandas", "to make a pandas frame")
    import pyarrow as pa

    frame = table.to_pandas()
    nullable = {pa.int64(): "Int64", pa.bool_(): "boolean"}
    for name, column in zip(table.column_names, table.columns, strict=True):
        if column.null_count and column.type in nullable:
            frame[name] = pandas.array(column.to_pylist(), dtype=nullable[column.type])
    return frame


def _to_spark(table: Any) -> Any:
    sql = need("pyspark.sql", "to make a Spark frame")
    session = sql.SparkSession.getActiveSession()
    if session is None:
        raise SettingError("there is no active Spark session in which to make a frame.")
    if int(need("pyspark", "to make a Spark frame").__version__.partition(".")[0]) >= 4:
        return session.createDataFrame(table)
    return session.createDataFrame(_to_pandas(table))
