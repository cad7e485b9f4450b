"""Some records of a PUBLIC table as they stand in it, to look at a schema beside real values."""

from typing import Any

from sidelight import _check
from sidelight.data.engines.duckdb import VIEW, DuckDBSource, silent_errors
from sidelight.data.reading.file_format import FileFormat
from sidelight.data.reading.read import open_source
from sidelight.errors import DataError

_SEED = 7
"""Draws the records; it protects nobody."""


def public_sample(public: Any, *, records: int, file: FileFormat | None = None) -> tuple[Any, int]:
    """At most so many records, drawn at random, as a pyarrow table of raw values; and how many there are.

    Values of CSV and Excel files are text, as their fields are.
    """
    _check.positive_integer(records=records)
    source = open_source(public, file=file)
    if not isinstance(source, DuckDBSource):
        raise DataError("records are drawn from files, frames or DuckDB relations: save a public file first.")
    total = int(source.fetch(f"SELECT COUNT(*) AS n FROM {VIEW}")[0][0])
    drawn = f"SELECT * FROM {VIEW} USING SAMPLE reservoir({records} ROWS) REPEATABLE ({_SEED})"
    with silent_errors(source.explain):
        rows = source.run(drawn)
        table = rows.to_arrow_table() if hasattr(rows, "to_arrow_table") else rows.fetch_arrow_table()
    return table.rename_columns(list(source.names)), total
