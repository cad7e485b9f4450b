"""Opening a table, wherever it is: files, frames, relations, a cluster, a database.

Opening reads names and types alone. CSV files are read as text, every field of them, and
the schema's types are applied afterwards: ``01``, ``1.0`` and ``true`` stay what they are
where labels are text. An empty CSV field is a missing value, a quoted empty one is empty text.

A path is one file, whatever its name looks like. Only where there is no such file, ``*``, ``?`` and
``[…]`` are a pattern, which is expanded here and never by DuckDB; the files that match are read in the
order of their names.
"""

import csv
import glob
import gzip
import os
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sidelight.data import frames
from sidelight.data.engines.duckdb import VIEW, DuckDBSource, connect, literal, silent_errors
from sidelight.data.engines.own_folder import PlainNames
from sidelight.data.engines.postgres import PostgresSource
from sidelight.data.engines.spark import SparkSource
from sidelight.data.engines.sql_encoding import SqlSource
from sidelight.data.schema import Schema
from sidelight.errors import DataError
from sidelight.sources import is_postgres, source_name

_CSV = (".csv", ".csv.gz", ".tsv", ".tsv.gz")
_PARQUET = (".parquet", ".pq")
_DELIMITERS = {";": "semicolons", "\t": "tabs", "|": "bars", ",": "commas"}

_AS_IT_IS = "hive_partitioning = false, union_by_name = false, filename = false"
"""A folder called age=3 is a folder, not a column."""

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
        if is_postgres(text):
            return PostgresSource(text)
        if text.startswith("spark:"):
            return SparkSource.of_table(text.removeprefix("spark:"))
        if source_name(text) != text:  # an address of another kind
            raise DataError(f"{source_name(text)} cannot be read: a table must be {_ACCEPTED}.")
        return _open_files(text)
    kind = frames.kind_of(source)
    if kind is None:
        raise DataError(f"a table must be {_ACCEPTED}; got {type(source).__name__}.")
    if kind == "spark":
        return SparkSource(source)
    if kind == "duckdb":
        return _open_relation(source)
    return _open_frame(source, kind, schema)


def describe(source: Any) -> str:
    """The table as a message may name it."""
    if isinstance(source, (str, Path)):
        return source_name(source)
    kind = frames.kind_of(source)
    return f"the {kind} table" if kind else "the table"


def _open_frame(frame: Any, kind: str, schema: Schema | None) -> DuckDBSource:
    table, names, extra = frames.to_arrow(frame, schema)
    if not names:
        raise DataError(f"{describe(frame)} has no column that the schema names.")
    connection = connect()
    with silent_errors():
        rows = connection.register(VIEW, table).table(VIEW)
    return DuckDBSource(rows, kind=kind, names=names, extra=extra, owner=connection)


def _open_relation(relation: Any) -> DuckDBSource:
    return DuckDBSource(relation, kind="duckdb", names=relation.columns, is_large=True)


def files_of(text: str) -> list[str]:
    """The file of this name; where there is none, those that match it as a pattern, by name."""
    paths = [text] if os.path.isfile(text) else sorted(glob.glob(text, recursive=True))
    return [path for path in paths if os.path.isfile(path)]


def _open_files(text: str) -> DuckDBSource:
    paths = files_of(text)
    if not paths:
        what = "no file matches" if glob.has_magic(text) else "there is no file"
        raise DataError(f"{what} {source_name(text)!r}.")
    if all(path.lower().endswith(_PARQUET) for path in paths):
        return _open_parquet(paths)
    if all(path.lower().endswith(_CSV) for path in paths):
        return _open_csv(paths)
    raise DataError(f"{text!r} must end in one of {', '.join((*_CSV, *_PARQUET))}; a glob in one kind only.")


def _open_parquet(paths: Sequence[str]) -> DuckDBSource:
    from pyarrow import parquet

    metadata = []
    with silent_errors():
        for path in paths:
            with open(path, "rb") as file:  # a name could read as the address of a store in the network
                metadata.append(parquet.read_metadata(file))
    names = _same_names([tuple(m.schema.to_arrow_schema().names) for m in metadata], paths)
    values = sum(m.num_rows for m in metadata) * len(names)
    is_large = values > _LARGE_VALUES
    about = {"kind": "file.parquet", "names": names, "is_large": is_large}
    is_alike = all(m.schema.equals(metadata[0].schema) for m in metadata)
    # PRIVACY: DuckDB would read all files in the first one's types, and one record can change a file's.
    return _view("read_parquet", paths, _AS_IT_IS, apart=not is_alike, **about)


def _open_csv(paths: Sequence[str]) -> DuckDBSource:
    names = _same_names([_header(path) for path in paths], paths)
    columns = ", ".join(f"'c{place}': 'VARCHAR'" for place in range(len(names)))
    options = (
        f"header = true, auto_detect = false, columns = {{{columns}}}, "
        f"delim = {literal(_delimiter(paths[0]))}, "
        f"quote = '\"', escape = '\"', allow_quoted_nulls = false, strict_mode = true, {_AS_IT_IS}"
    )
    is_large = sum(Path(path).stat().st_size for path in paths) > _LARGE_CSV
    return _view("read_csv", paths, options, kind="file.csv", names=names, is_large=is_large)


def _view(
    reader: str, paths: Sequence[str], options: str, *, apart: bool = False, **about: Any
) -> DuckDBSource:
    """All files as one view; with ``apart``, also each by itself, in its own types."""
    plain = PlainNames(paths)
    listed = ", ".join(literal(path) for path in plain.paths)
    connection = connect()
    with silent_errors():
        connection.execute(f"CREATE TEMP VIEW {VIEW} AS SELECT * FROM {reader}([{listed}], {options})")
        parts = []
        for place, path in enumerate(plain.paths if apart else ()):
            name = f"{VIEW}_{place}"
            made = f"CREATE TEMP VIEW {name} AS SELECT * FROM {reader}([{literal(path)}], {options})"
            connection.execute(made)
            parts.append(connection.table(name).set_alias(name))
        source = DuckDBSource(connection.table(VIEW), owner=connection, parts=parts, **about)
    plain.kept_by(source)
    return source


def _header(path: str) -> tuple[str, ...]:
    """The column names on the first line, which are public. Python reads nothing else of the file."""
    own = _delimiter(path)
    opener = gzip.open if path.lower().endswith(".gz") else open
    try:
        with opener(path, "rt", encoding="utf-8-sig", newline="") as file:
            names = next(csv.reader(file, delimiter=own), [])
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or "it is damaged"
        raise DataError(f"{path} cannot be read: {reason}.") from None
    except (UnicodeDecodeError, csv.Error):
        raise DataError(f"{path} is not text in UTF-8; save it in that encoding.") from None
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
