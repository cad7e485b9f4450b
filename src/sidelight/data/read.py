"""Opening a table, wherever it is: files, frames, relations, a cluster, a database.

Opening reads names and types alone. CSV files are read as text, every field of them, and
the schema's types are applied afterwards: ``01``, ``1.0`` and ``true`` stay what they are
where labels are text. An empty CSV field is a missing value, a quoted empty one is empty text.
"""

import csv
import glob
import gzip
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from sidelight.data import frames
from sidelight.data.engines.duckdb import VIEW, DuckDBSource, connect, literal, silent_errors
from sidelight.data.engines.postgres import PREFIXES, PostgresSource
from sidelight.data.engines.spark import SparkSource
from sidelight.data.engines.sql import SqlSource
from sidelight.data.schema import Schema
from sidelight.errors import DataError

_CSV = (".csv", ".csv.gz", ".tsv", ".tsv.gz")
_PARQUET = (".parquet", ".pq")
_DELIMITERS = {";": "semicolons", "\t": "tabs", "|": "bars", ",": "commas"}

_LARGE_CSV = 1 << 30
_LARGE_VALUES = 200_000_000
"""Beyond this a file's codes stay on disk: in memory they would take as many bytes or more."""

_ACCEPTED = (
    "a path or glob of .csv or .parquet files, a pandas, polars or pyarrow table, a DuckDB relation, "
    'a Spark DataFrame, "spark:table" or "postgresql://…#table"'
)


def open_source(source: Any, schema: Schema | None = None) -> SqlSource:
    """The table behind ``source``; of a frame, only the columns that the schema names are converted."""
    if isinstance(source, (str, Path)):
        text = str(source)
        if text.startswith(PREFIXES):
            return PostgresSource(text)
        if text.startswith("spark:"):
            return SparkSource.of_table(text.removeprefix("spark:"))
        return _open_files(text)
    kind = frames.kind_of(source)
    if kind is None:
        raise DataError(f"a table must be {_ACCEPTED}; got {type(source).__name__}.")
    if kind == "spark":
        return SparkSource(source)
    if kind == "duckdb":
        return _open_relation(source)
    return _open_frame(source, kind, None if schema is None else set(schema.domain.attrs))


def describe(source: Any) -> str:
    """The table in words that may stand in a message: a path, never the address of a database."""
    if isinstance(source, (str, Path)):
        text = str(source)
        return f"the table {text.partition('#')[2]!r}" if text.startswith(PREFIXES) else text
    kind = frames.kind_of(source)
    return f"the {kind} table" if kind else "the table"


def _open_frame(frame: Any, kind: str, wanted: Collection[str] | None) -> DuckDBSource:
    table, names, extra = frames.to_arrow(frame, wanted)
    if not names:
        raise DataError(f"{describe(frame)} has no column that the schema names.")
    connection = connect()
    with silent_errors():
        rows = connection.register(VIEW, table).table(VIEW)
    return DuckDBSource(rows, kind=kind, names=names, extra=extra, owner=connection)


def _open_relation(relation: Any) -> DuckDBSource:
    return DuckDBSource(relation, kind="duckdb", names=relation.columns, is_large=True)


def _open_files(text: str) -> DuckDBSource:
    paths = [text] if Path(text).is_file() else sorted(glob.glob(text, recursive=True))
    paths = [path for path in paths if Path(path).is_file()]
    if not paths:
        what = "no file matches" if glob.has_magic(text) else "there is no file"
        raise DataError(f"{what} {text!r}.")
    if all(path.lower().endswith(_PARQUET) for path in paths):
        return _open_parquet(paths)
    if all(path.lower().endswith(_CSV) for path in paths):
        return _open_csv(paths)
    raise DataError(f"{text!r} must end in one of {', '.join((*_CSV, *_PARQUET))}; a glob in one kind only.")


def _open_parquet(paths: Sequence[str]) -> DuckDBSource:
    from pyarrow import parquet

    with silent_errors():
        metadata = [parquet.read_metadata(path) for path in paths]
    names = _same_names([tuple(m.schema.to_arrow_schema().names) for m in metadata], paths)
    connection = connect()
    listed = ", ".join(literal(path) for path in paths)
    with silent_errors():
        connection.execute(f"CREATE TEMP VIEW {VIEW} AS SELECT * FROM read_parquet([{listed}])")
        rows = connection.table(VIEW)
    values = sum(m.num_rows for m in metadata) * len(names)
    is_large = values > _LARGE_VALUES
    return DuckDBSource(rows, kind="file.parquet", names=names, is_large=is_large, owner=connection)


def _open_csv(paths: Sequence[str]) -> DuckDBSource:
    names = _same_names([_header(path) for path in paths], paths)
    connection = connect()
    listed = ", ".join(literal(path) for path in paths)
    columns = ", ".join(f"'c{place}': 'VARCHAR'" for place in range(len(names)))
    options = (
        f"header = true, auto_detect = false, columns = {{{columns}}}, "
        f"delim = {literal(_delimiter(paths[0]))}, "
        "quote = '\"', escape = '\"', allow_quoted_nulls = false, strict_mode = true"
    )
    with silent_errors():
        connection.execute(f"CREATE TEMP VIEW {VIEW} AS SELECT * FROM read_csv([{listed}], {options})")
        rows = connection.table(VIEW)
    is_large = sum(Path(path).stat().st_size for path in paths) > _LARGE_CSV
    return DuckDBSource(rows, kind="file.csv", names=names, is_large=is_large, owner=connection)


def _header(path: str) -> tuple[str, ...]:
    """The names on the first line: public, and all that Python itself reads."""
    own = _delimiter(path)
    opener = gzip.open if path.lower().endswith(".gz") else open
    try:
        with opener(path, "rt", encoding="utf-8-sig", newline="") as file:
            names = next(csv.reader(file, delimiter=own), [])
    except (OSError, UnicodeDecodeError, csv.Error):
        raise DataError(f"{path} cannot be read as text in UTF-8.") from None
    if not names:
        raise DataError(f"{path} is empty: it has not even a line of column names.")
    if len(names) == 1:
        for delimiter, word in _DELIMITERS.items():
            if delimiter != own and delimiter in names[0]:
                raise DataError(
                    f"{path} seems to be separated by {word}: read with {_DELIMITERS[own]} it has one column "
                    f"only. Write it with {_DELIMITERS[own]}, or load it into a frame first."
                )
    return tuple(names)


def _delimiter(path: str) -> str:
    return "\t" if ".tsv" in Path(path).name.lower() else ","


def _same_names(found: Sequence[tuple[str, ...]], paths: Sequence[str]) -> tuple[str, ...]:
    for names, path in zip(found, paths, strict=True):
        if names != found[0]:
            raise DataError(f"{path} and {paths[0]} do not have the same columns in the same order.")
    return found[0]
