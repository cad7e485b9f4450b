"""Data frames in and out: which kind came in, its columns as Arrow, and the same kind out.

A file or a database table comes back as a pyarrow table.
"""

from collections.abc import Callable, Sequence
from datetime import time
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np

from sidelight._check import brief
from sidelight._extras import need
from sidelight._files import named, writing
from sidelight.data.columns.column import CategoricalColumn, Column
from sidelight.data.columns.moment import EARLIEST, LATEST, text_of_clock, text_of_seconds
from sidelight.data.columns.moment_columns import DateColumn, MomentColumn
from sidelight.data.columns.value import NO_TEXT, text_of
from sidelight.data.engines import spark
from sidelight.data.engines.dask import brought_here
from sidelight.data.reading.each import Each
from sidelight.data.schema import Schema
from sidelight.errors import DataError, SettingError

_RUN = r"\A([=+\-@\t\r\n＝＋－＠])"
"""First characters that make a spreadsheet run a cell as a formula, wide characters included."""
KINDS = ("pandas", "polars", "pyarrow", "duckdb", "spark", "dask")


def kind_of(frame: Any) -> str | None:
    """The kind of a frame; None if it is of no kind that we know."""
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
    if root == "dask" and name == "DataFrame":
        return "dask"
    return "arrow" if hasattr(frame, "__arrow_c_stream__") else None


def columns_of(frame: Any) -> tuple[list[str], Callable[[int], Any]]:
    """The names of a frame's columns, and each one by its place, as the frame holds it."""
    kind = kind_of(frame)
    if kind in ("pandas", "dask"):
        here = frame if kind == "pandas" else brought_here(frame)
        return [str(name) for name in here.columns], lambda place: here.iloc[:, place]
    if kind == "polars":
        collected = frame.collect() if type(frame).__name__ == "LazyFrame" else frame
        return list(collected.columns), collected.to_series
    table = _arrow_table(frame)
    return list(table.column_names), table.column


def collected(frame: Any, places: Sequence[int]) -> list[Any]:
    """These columns of a Spark frame, brought here in one go: a second one might have another order."""
    with spark.silent_errors():
        asked = frame.toDF(*[f"c{i}" for i in range(len(frame.columns))]).select(*[f"c{i}" for i in places])
        # By way of pandas a whole number beside a missing one would be real.
        return list(spark.brought_here(asked).columns)


def to_arrow(
    frame: Any, schema: Schema | None, person: str | None = None
) -> tuple[Any, tuple[str, ...], tuple[str, ...]]:
    """The schema's columns (all, without one) as pyarrow, named by position; their names; the other names.

    ``person`` is a column that says who each record is about.

    PRIVACY: a column whose type does not say what its values are (a pandas column of objects, say) is read
    value by value, for what the schema declares. Arrow would infer one type for all of them from all of them.
    """
    import pyarrow as pa

    names, column_at = columns_of(frame)
    declared = {} if schema is None else {column.name: column for column in schema.columns}
    arrays, kept, extra = [], [], []
    for place, name in enumerate(names):
        if schema is not None and name not in declared and name != person:
            extra.append(name)
            continue
        column = column_at(place)
        array = _typed(column, declared.get(name))
        if array is None and name == person:
            array = people_of(Each(column))
        if array is None and schema is None:
            array = _inferred(column, name)
        arrays.append(_read_each(column, declared[name]) if array is None else _plain(array))
        kept.append(name)
    fields = [f"c{place}" for place in range(len(kept))]
    return pa.Table.from_arrays(arrays, names=fields), tuple(kept), tuple(extra)


def sheet_to_arrow(
    names: Sequence[str], columns: Sequence[list[Any]], schema: Schema | None, person: str | None = None
) -> tuple[Any, tuple[str, ...], tuple[str, ...]]:
    """Like ``to_arrow``, for columns whose values have types of their own; without a schema, as text."""
    import pyarrow as pa

    declared = {} if schema is None else {column.name: column for column in schema.columns}
    arrays, kept, extra = [], [], []
    for name, column in zip(names, columns, strict=True):
        if name in declared:
            arrays.append(_read_each(column, declared[name]))
        elif name == person:
            arrays.append(people_of(Each(column)))
        elif schema is None:
            arrays.append(Each(column).texts(_plain_text))
        else:
            extra.append(name)
            continue
        kept.append(name)
    fields = [f"c{place}" for place in range(len(kept))]
    return pa.Table.from_arrays(arrays, names=fields), tuple(kept), tuple(extra)


def _plain_text(value: object) -> str | None:
    """A value of PUBLIC data as text; a time of day too, which is no text to a column of labels."""
    return value.isoformat() if isinstance(value, time) else text_of(value)


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
    if kind == "dask":
        return need("dask.dataframe", "to make a Dask frame").from_pandas(_to_pandas(table), npartitions=1)
    if kind in ("pyarrow", "arrow", "codes", "postgres") or kind.startswith("file."):
        return table
    raise SettingError(f"kind must be one of {', '.join(map(repr, KINDS))}; got {kind!r}.")


def check_file(path: str | Path, *, safe_cells: bool = False) -> None:
    """Refuse a path that ``write_file`` could not write, before the records are made."""
    ending = named(path, "the table").suffix.lower()
    if ending not in (".csv", ".parquet", ".pq"):
        raise SettingError(f"the file must end in .csv or .parquet; got {brief(str(path))}.")
    if safe_cells and ending != ".csv":
        raise SettingError(f"safe cells are for .csv files, which spreadsheets open; got {brief(str(path))}.")


def write_file(table: Any, path: str | Path, *, safe_cells: bool = False) -> None:
    """Write a pyarrow table as .csv or .parquet, by the name's ending; whole, or not at all.

    Spreadsheets run what begins with =, +, -, @ or a tab, also from a CSV file. With ``safe_cells`` such
    texts, names of columns included, are written after an apostrophe; numbers stay as they are.
    """
    check_file(path, safe_cells=safe_cells)
    with writing(path, "the table") as file:
        if Path(path).suffix.lower() == ".csv":
            from pyarrow import csv

            table = _in_seconds(table)
            csv.write_csv(_with_safe_cells(table) if safe_cells else table, file)
        else:
            from pyarrow import parquet

            parquet.write_table(table, file, compression="zstd")


def _in_seconds(table: Any) -> Any:
    """The same table, with moments of whole seconds in a type that is written without a fraction."""
    import pyarrow as pa

    def cast(column: Any) -> Any:
        try:
            if pa.types.is_timestamp(column.type):
                return column.cast(pa.timestamp("s", column.type.tz))
            return column.cast(pa.time32("s")) if pa.types.is_time(column.type) else column
        except pa.ArrowInvalid:  # some have a fraction
            return column

    return pa.Table.from_arrays([cast(column) for column in table.columns], names=table.column_names)


def _with_safe_cells(table: Any) -> Any:
    """The same table, with an apostrophe before each text that a spreadsheet would run."""
    import pyarrow as pa
    from pyarrow import compute

    def safe(texts: Any) -> Any:
        return compute.replace_substring_regex(texts, pattern=_RUN, replacement=r"'\1")

    columns = [safe(column) if pa.types.is_string(column.type) else column for column in table.columns]
    return pa.Table.from_arrays(columns, names=safe(pa.array(table.column_names)).to_pylist())


def _arrow_table(frame: Any) -> Any:
    import pyarrow as pa

    if isinstance(frame, pa.Table):
        return frame
    if isinstance(frame, pa.RecordBatchReader):
        return frame.read_all()
    try:
        return pa.table(frame)
    except (pa.ArrowException, TypeError, ValueError):
        # PRIVACY: what Arrow says may quote values; a column alone, such as a pandas Series, ends here.
        raise DataError(
            f"{type(frame).__name__} is no table with named columns; give a data frame."
        ) from None


def _typed(column: Any, declared: Column | None) -> Any:
    """The column as Arrow, where its type is one that says what every value is; otherwise None."""
    import pyarrow as pa

    root = type(column).__module__.partition(".")[0]
    try:
        if root == "pandas":
            if column.dtype == object or hasattr(column.dtype, "categories"):
                return None
            column = pa.chunked_array([pa.Array.from_pandas(column)])
        elif root == "polars":
            column = column.to_arrow()
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return None
    if isinstance(declared, MomentColumn):
        moments = _moments(column, declared)
        if moments is not None:
            return moments
    return column if _is_simple(column.type) else None


def _moments(column: Any, declared: MomentColumn) -> Any:
    """Typed dates and times in whole seconds, in a type that DuckDB reads; None if of another type."""
    import pyarrow as pa

    kind = column.type
    if pa.types.is_time(kind) and declared.value_kind == "time":
        return column.cast(pa.time64("ns")).cast(pa.time32("s"), safe=False)
    is_zoned = pa.types.is_timestamp(kind) and kind.tz is not None
    offsets = declared.offsets if isinstance(declared, DateColumn) else None
    is_read = pa.types.is_date(kind) or (
        pa.types.is_timestamp(kind) and (not is_zoned or offsets is not None)
    )
    if not is_read or declared.value_kind == "time":
        return None
    whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    is_null = np.asarray(whole.is_null())
    # Floors, and has every year that Arrow has.
    moments = whole.cast(pa.timestamp(kind.unit)) if is_zoned else whole
    seconds = moments.to_numpy(zero_copy_only=False).astype("datetime64[s]").astype(np.int64)
    if is_zoned and offsets is not None:
        starts, shifts = np.array(offsets, dtype=np.int64).T
        seconds = seconds + shifts[np.maximum(np.searchsorted(starts, seconds, side="right") - 1, 0)]
    # PRIVACY: DuckDB stops at years it cannot hold; the first second beyond our years is as good.
    near = np.clip(np.where(is_null, 0, seconds), EARLIEST - 1, LATEST + 1)
    return pa.array(near.astype("datetime64[s]"), mask=is_null)


def _is_simple(kind: Any) -> bool:
    """Whether DuckDB reads every value of this Arrow type, and none of them can make it stop."""
    from pyarrow import types

    if types.is_dictionary(kind):
        return _is_simple(kind.value_type)
    numbers = (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal128)
    texts = (types.is_string, types.is_large_string, types.is_string_view)
    return any(is_such(kind) for is_such in (*numbers, *texts, types.is_null))


def _read_each(column: Any, declared: Column) -> Any:
    """The column as Arrow text, each value by itself; SQL reads it as it reads a file of text."""
    if declared.value_kind == "text":
        assert isinstance(declared, CategoricalColumn)  # the only columns of text
        return Each(column).texts(text_of if declared.prefix is None else declared.text_of)
    written = {"time": text_of_clock, "date": text_of_seconds, "datetime": text_of_seconds}
    write = written.get(declared.value_kind, text_of)

    def meaning(value: object) -> str | None:
        if isinstance(value, (str, bytes)):
            return text_of(value)  # which SQL reads as it reads a file
        number = declared.number_of(value)
        if number is None:
            return NO_TEXT
        return None if number != number else write(number)

    return Each(column).texts(meaning)


def people_of(column: Each) -> Any:
    """Who each record is about, as Arrow text: text as it is, whole numbers as their digits."""

    def meaning(value: object) -> str | None:
        text = text_of(value)
        if text is not None and (text == NO_TEXT or not _names_somebody(value)):
            raise DataError(
                "the column that says who each record is about holds values that are neither text nor whole "
                "numbers; correct the table. Nothing was charged."
            )
        return text

    return column.texts(meaning)


def _names_somebody(value: object) -> bool:
    """Whether a value is text or a whole number; as in ``sql_people.person_of``, for values one by one."""
    if isinstance(value, float | np.floating | Decimal):
        number = float(value)
        # PRIVACY: beyond, two numbers may have one text, and two people would share the records of one.
        return number == value and number.is_integer() and abs(number) < 2**53
    return isinstance(value, str | int | np.integer) and not isinstance(value, bool)


def _inferred(column: Any, name: str) -> Any:
    """A column of PUBLIC data, for a draft of a schema: Arrow may say what it holds."""
    import pyarrow as pa

    try:
        if hasattr(column, "iloc"):
            column = pa.Array.from_pandas(column)
        elif hasattr(column, "to_arrow"):
            column = column.to_arrow()
        return column if isinstance(column, pa.ChunkedArray) else pa.chunked_array([column])
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
