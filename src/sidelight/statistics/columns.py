"""Columns of a table, whatever holds it: a mapping, a data frame, or a CSV or Parquet file.

PRIVACY: every record is read by itself, by what was declared and never by the type that its column happens
to have: one odd record would change that type, and with it how everybody is read. Files of text are read as
text, every field of them. What one value means, ``data/columns/value.py`` says.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from sidelight._check import hint, is_number
from sidelight.data.columns.column import LARGEST
from sidelight.data.columns.value import NO_TEXT, is_missing, moment_of, number_of, text_of
from sidelight.data.reading.each import Each
from sidelight.data.reading.file_format import FileFormat
from sidelight.errors import DataError, SettingError

Missing = float | Literal["refuse"]
"""The number that stands for a value that is missing or no number; or such a value is refused."""

CellKind = Literal["text", "number", "boolean", "date"]


def read_columns(table: Any, names: Sequence[str], file: FileFormat | None = None) -> dict[str, Each]:
    """These columns, in the order of the records; ``file`` says how a file of text is written.

    >>> read_columns({"age": [30, "40"], "sex": ["f", "m"]}, ["age"])["age"].values
    [30, '40']
    """
    if isinstance(table, (str, Path)) or type(table).__name__ == "DuckDBPyRelation":
        columns = _from_source(table, names, FileFormat() if file is None else file)
    elif isinstance(table, Mapping):
        _check_names(names, list(table))
        columns = {name: Each(table[name]) for name in names}
    else:
        columns = _from_frame(table, names)
    if len({len(column) for column in columns.values()}) != 1:
        raise DataError("the columns must be lists of one length; nothing was charged.")
    return columns


def numbers(column: Each, who: str, *, missing: Missing = "refuse") -> NDArray[np.float64]:
    """Every record's number; ``missing`` stands for a value that is missing or no number, or it is refused.

    >>> numbers(Each([1, "2.5", None, "x"]), "column 'age'", missing=40.0).tolist()
    [1.0, 2.5, 40.0, 40.0]
    """
    values = column.numbers()
    is_lost = np.isnan(values)
    if missing != "refuse":
        values[is_lost] = missing
    elif is_lost.any():
        # PRIVACY: told before anything is paid, to the person who holds the table, without value or count.
        raise DataError(
            f"{who} has missing values, or values that are not numbers; declare a number that stands for "
            "them (missing, or --missing on the command line), or fill them first. Nothing was charged."
        )
    return values


def check_missing(missing: Missing, low: float, high: float) -> None:
    """Refuse a stand-in for missing values that is no number within the bounds."""
    if missing == "refuse":
        return
    if not is_number(missing) or not low <= missing <= high:
        raise SettingError(
            f"missing must be 'refuse' or a number within the bounds, {low:g} to {high:g}; got {missing!r}."
        )


class Cells:
    """Declared cells, and the one that a value belongs to: by the cells' own type, value by value.

    Text is compared with the value's text (``data/columns/value.py``), numbers and booleans as numbers, dates
    as dates. A value that is missing, or of no declared cell, belongs to none.

    >>> Cells(["1", "2"]).code(2.0), Cells([1, 2]).code("02"), Cells([1, 2]).code("x")
    (1, 1, 2)
    """

    def __init__(self, labels: Sequence[Any]) -> None:
        self.labels = list(labels)
        kinds = {_kind_of(label) for label in self.labels}
        if len(kinds) > 1 or None in kinds:
            raise SettingError(
                "cells must all be of one type: text without null characters, numbers below 2^53, true and "
                "false, or dates without a time zone."
            )
        self._meaning = _MEANINGS[kinds.pop() or "text"] if kinds else text_of
        self._place = {self._meaning(label): place for place, label in enumerate(self.labels)}
        if len(self.labels) < 2 or len(self._place) < len(self.labels):
            raise SettingError(f"cells must be at least two, all different; got {len(self.labels)}.")

    @classmethod
    def of_public(cls, column: Each) -> "Cells":
        """The cells of a public column, in order; of their own type if they share one, else as text."""
        present = [value for value in column.values if not is_missing(value)]
        kinds = {_kind_of(value) for value in present}
        if kinds == {"number"}:
            whole = [int(value) if value == int(value) else float(value) for value in present]
            return cls(sorted(set(whole)))
        if kinds == {"boolean"}:
            return cls(sorted({bool(value) for value in present}))
        return cls(
            sorted({text for text in map(text_of, present) if text is not None and NO_TEXT not in text})
        )

    def __len__(self) -> int:
        return len(self.labels)

    def code(self, value: object) -> int:
        """The place of the value's cell; one past the last for a value of none."""
        meaning = self._meaning(value)
        return len(self.labels) if meaning is None else self._place.get(meaning, len(self.labels))

    def codes(self, column: Each) -> NDArray[np.int64]:
        """The place of each record's cell."""
        return column.codes(self.code)


def _kind_of(label: object) -> CellKind | None:
    if isinstance(label, str):
        return None if NO_TEXT in label else "text"
    if isinstance(label, (bool, np.bool_)):
        return "boolean"
    if isinstance(label, (date, np.datetime64)):
        return None if text_of(label) in (None, NO_TEXT) else "date"
    number = number_of(label)
    return "number" if number is not None and abs(number) <= LARGEST else None


def _as_truth(value: object) -> float | None:
    return number_of(value, is_truth=True)


def _as_date(value: object) -> str | None:
    """The text of a date; text in a file may spell it in any way of ISO 8601."""
    text = text_of(value)
    return None if text is None else moment_of(text) or text


_MEANINGS: dict[CellKind, Callable[[object], Any]] = {
    "text": text_of,
    "number": number_of,
    "boolean": _as_truth,
    "date": _as_date,
}


def _from_source(table: Any, names: Sequence[str], file: FileFormat) -> dict[str, Each]:
    from sidelight.data.engines.duckdb import DuckDBSource
    from sidelight.data.reading.read import describe, open_source

    source = open_source(table, file=file)
    if not isinstance(source, DuckDBSource):
        raise DataError(f"{describe(table)} is in a database; this reads files and frames.")
    _check_names(names, source.names)
    parts = source.columns([source.names.index(name) for name in names])
    comma = source.kind == "file.csv" and file.decimal == ","
    return {
        name: Each.joined([Each(part.column(i), comma=comma) for part in parts])
        for i, name in enumerate(names)
    }


def _from_frame(table: Any, names: Sequence[str]) -> dict[str, Each]:
    from sidelight.data.reading.frames import collected, columns_of, kind_of

    kind = kind_of(table)
    if kind is None:
        raise DataError(f"a {type(table).__name__} is not a table that can be read.")
    if kind == "spark":
        _check_names(names, table.columns)
        columns = collected(table, [table.columns.index(name) for name in names])
        return {name: Each(column) for name, column in zip(names, columns, strict=True)}
    present, column = columns_of(table)
    _check_names(names, present)
    return {name: Each(column(present.index(name))) for name in names}


def _check_names(names: Sequence[str], present: Sequence[str]) -> None:
    for name in names:
        if name not in present:
            listed = ", ".join(repr(column) for column in present)
            raise DataError(f"there is no column {name!r}; the table has {listed}.{hint(name, present)}")
        if list(present).count(name) > 1:
            raise DataError(f"column {name!r} appears twice; rename or drop one of them.")
