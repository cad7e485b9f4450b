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
import shutil
import uuid
import weakref
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sidelight.data.engines.dask import DaskSource, brought_here
from sidelight.data.engines.duckdb import VIEW, DuckDBSource, connect, literal, silent_errors
from sidelight.data.engines.own_folder import PlainNames, own_folder, unlink
from sidelight.data.engines.postgres import PostgresSource
from sidelight.data.engines.spark import SparkSource
from sidelight.data.engines.sql_encoding import SqlSource
from sidelight.data.reading import frames
from sidelight.data.reading.far_moments import has_far_moments, nearer_copy
from sidelight.data.reading.file_format import FileFormat, marked_encoding, undecodable
from sidelight.data.reading.sheets import ENDINGS, read_sheet
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
    'a Spark or Dask DataFrame, "spark:table" or "postgresql://…#table"'
)


def open_table(source: Any, schema: Schema, person: str | None = None) -> SqlSource | DaskSource:
    """The table behind ``source``, to be counted where it is."""
    if frames.kind_of(source) == "dask":
        return DaskSource(source, frames.to_arrow)
    return open_source(source, schema, person)


def open_source(
    source: Any, schema: Schema | None = None, person: str | None = None, file: FileFormat | None = None
) -> SqlSource:
    """The table behind ``source``; of a frame, only the columns that the schema names are converted.

    A Dask DataFrame, which knows no SQL, is brought here; ``open_table`` leaves it where it is. ``person`` is
    a further column, which says who each record is about; ``file`` says how a file is written, if not as the
    schema does.
    """
    if file is None:
        file = FileFormat() if schema is None else schema.file
    if isinstance(source, (str, Path)):
        text = str(source)
        if is_postgres(text):
            return PostgresSource(text)
        if text.startswith("spark:"):
            return SparkSource.of_table(text.removeprefix("spark:"))
        if source_name(text) != text:  # an address of another kind
            raise DataError(f"{source_name(text)} cannot be read: a table must be {_ACCEPTED}.")
        return _open_files(text, file, schema, person)
    kind = frames.kind_of(source)
    if kind is None:
        raise DataError(f"a table must be {_ACCEPTED}; got {type(source).__name__}.")
    if kind == "dask":
        source = brought_here(source)
    if kind == "spark":
        return SparkSource(source)
    if kind == "duckdb":
        return _open_relation(source)
    return _open_frame(source, kind, schema, person)


def describe(source: Any) -> str:
    """The table as a message may name it."""
    if isinstance(source, (str, Path)):
        return source_name(source)
    kind = frames.kind_of(source)
    return f"the {kind} table" if kind else "the table"


def _open_frame(frame: Any, kind: str, schema: Schema | None, person: str | None) -> DuckDBSource:
    table, names, extra = frames.to_arrow(frame, schema, person)
    if not names:
        raise DataError(f"{describe(frame)} has no column that the schema names.")
    return _registered(table, kind=kind, names=names, extra=extra)


def _registered(table: Any, **about: Any) -> DuckDBSource:
    connection = connect()
    with silent_errors():
        rows = connection.register(VIEW, table).table(VIEW)
    return DuckDBSource(rows, owner=connection, **about)


def _open_relation(relation: Any) -> DuckDBSource:
    return DuckDBSource(relation, kind="duckdb", names=relation.columns, is_large=True)


def files_of(text: str) -> list[str]:
    """The file of this name; where there is none, those that match it as a pattern, by name."""
    paths = [text] if os.path.isfile(text) else sorted(glob.glob(text, recursive=True))
    return [path for path in paths if os.path.isfile(path)]


def _open_files(text: str, file: FileFormat, schema: Schema | None, person: str | None) -> DuckDBSource:
    paths = files_of(text)
    if not paths and os.path.isdir(text):
        raise DataError(f"{text!r} is a folder; name a file in it, or several as in {text}/*.parquet.")
    if not paths:
        what = "no file matches" if glob.has_magic(text) else "there is no file"
        raise DataError(f"{what} {source_name(text)!r}.")
    if all(path.lower().endswith(_PARQUET) for path in paths):
        return _open_parquet(paths)
    if all(path.lower().endswith(_CSV) for path in paths):
        return _open_csv(paths, file)
    if len(paths) == 1 and paths[0].lower().endswith(ENDINGS):
        table, names, extra = frames.sheet_to_arrow(*read_sheet(paths[0], file.sheet), schema, person)
        return _registered(table, kind="file.xlsx", names=names, extra=extra)
    endings = ", ".join((*_CSV, *_PARQUET, *ENDINGS))
    raise DataError(f"{text!r} must end in one of {endings}; a glob in one kind only, .xlsx one at a time.")


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
    with silent_errors():
        near = [
            nearer_copy(path) if has_far_moments(m) else path for path, m in zip(paths, metadata, strict=True)
        ]
    # PRIVACY: DuckDB would read all files in the first one's types, and one record can change a file's.
    source = _view("read_parquet", near, _AS_IT_IS, apart=not is_alike, **about)
    copies = [made for made, path in zip(near, paths, strict=True) if made != path]
    weakref.finalize(source, unlink, copies, os.getpid()).atexit = False
    return source


def _open_csv(paths: Sequence[str], file: FileFormat) -> DuckDBSource:
    names = _same_names([_header(path, file) for path in paths], paths)
    columns = ", ".join(f"'c{place}': 'VARCHAR'" for place in range(len(names)))
    options = (
        f"header = true, auto_detect = false, columns = {{{columns}}}, "
        f"delim = {literal(_delimiter(paths[0], file))}, "
        f"quote = '\"', escape = '\"', allow_quoted_nulls = false, strict_mode = true, {_AS_IT_IS}"
    )
    is_large = sum(Path(path).stat().st_size for path in paths) > _LARGE_CSV
    plain = list(paths) if file.is_utf8 else [_in_utf8(path, file) for path in paths]
    source = _view("read_csv", plain, options, kind="file.csv", names=names, is_large=is_large)
    if file.is_utf8:
        source.explain = lambda: _where_not_text(paths, file)
    else:
        weakref.finalize(source, unlink, plain, os.getpid()).atexit = False
    return source


def _in_utf8(path: str, file: FileFormat) -> str:
    """A copy of the file in UTF-8, in a folder that only this user may enter; removed with the source."""
    copy = own_folder() / f"{uuid.uuid4().hex}.csv"
    try:
        with (
            _opener(path)(path, "rt", encoding=file.encoding, newline="") as text,
            copy.open("w", encoding="utf-8", newline="") as made,
        ):
            shutil.copyfileobj(text, made, 1 << 20)
    except UnicodeError:
        copy.unlink(missing_ok=True)
        raise DataError(_where_not_text([path], file) or f"{path} is not text in {file.encoding}.") from None
    except (OSError, EOFError, zlib.error):
        copy.unlink(missing_ok=True)
        raise DataError(f"{path} cannot be read as text in {file.encoding}: it is damaged.") from None
    return str(copy)


def _where_not_text(paths: Sequence[str], file: FileFormat) -> str | None:
    """Which file is not text, and from which byte on; None where the trouble is another."""
    for path in paths:
        try:
            place = undecodable(path, file.encoding, _opener(path))
        except (OSError, EOFError, zlib.error):
            return None
        if place is not None:
            likely = marked_encoding(path, _opener(path)) or "latin-1"
            return (
                f"{path} is not text in {file.encoding}: it fails at byte {place:,}. Name its encoding "
                f'(encoding = "{likely}" in [file] of the schema; --encoding for a draft), or save it as '
                "UTF-8."
            )
    return None


def _opener(path: str) -> Any:
    return gzip.open if path.lower().endswith(".gz") else open


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


def _header(path: str, file: FileFormat) -> tuple[str, ...]:
    """The column names on the first line, which are public. Python reads nothing else of the file."""
    own = _delimiter(path, file)
    encoding = "utf-8-sig" if file.is_utf8 else file.encoding
    try:
        with _opener(path)(path, "rt", encoding=encoding, newline="") as text:
            names = next(csv.reader(text, delimiter=own), [])
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or "it is damaged"
        raise DataError(f"{path} cannot be read: {reason}.") from None
    except (UnicodeError, csv.Error):
        message = f"{path} is not text in {file.encoding}; save it in that encoding."
        raise DataError(_where_not_text([path], file) or message) from None
    if not names:
        raise DataError(f"{path} is empty: it has not even a line of column names.")
    if len(names) == 1:
        for delimiter, word in _DELIMITERS.items():
            if delimiter != own and delimiter in names[0]:
                raise DataError(
                    f"{path} seems to be separated by {word}: read with {_DELIMITERS.get(own, own)} it has "
                    f"one column only. Declare delimiter = {delimiter!r} in [file] of the schema, or give "
                    "--delimiter to a draft. [file] is about private and public files alike: if they differ, "
                    "save one as Parquet."
                )
    return tuple(names)


def _delimiter(path: str, file: FileFormat) -> str:
    if file.delimiter is not None:
        return file.delimiter
    return "\t" if ".tsv" in Path(path).name.lower() else ","


def _same_names(found: Sequence[tuple[str, ...]], paths: Sequence[str]) -> tuple[str, ...]:
    for names, path in zip(found, paths, strict=True):
        if names != found[0]:
            raise DataError(f"{path} and {paths[0]} do not have the same columns in the same order.")
    return found[0]
