"""Excel files, by way of openpyxl (extra ``excel``): a sheet as columns of single values.

A cell has a type of its own, so each value is read by itself, as those of a frame are. The first line holds
the names of the columns; lines and columns without any value at the end are not there.
"""

from pathlib import Path
from typing import Any
from zipfile import BadZipFile

from sidelight._check import brief, listed
from sidelight._extras import need
from sidelight.errors import DataError

ENDINGS = (".xlsx", ".xlsm")


def read_sheet(path: str, sheet: str | None) -> tuple[tuple[str, ...], list[list[Any]]]:
    """The names of the columns, and the values of each."""
    openpyxl: Any = need("openpyxl", "to read an Excel file")
    try:
        book = openpyxl.load_workbook(path, read_only=True, data_only=True)
    except (OSError, BadZipFile, KeyError, ValueError, openpyxl.utils.exceptions.InvalidFileException):
        # PRIVACY: a message of openpyxl's may quote what it found.
        raise DataError(
            f"{Path(path).name} cannot be read as an Excel file; save it as .xlsx or as .csv."
        ) from None
    try:
        if sheet is not None and sheet not in book.sheetnames:
            raise DataError(
                f"{Path(path).name} has no sheet {brief(sheet)}; it has {listed(book.sheetnames)}."
            )
        lines = [list(line) for line in book[sheet or book.sheetnames[0]].iter_rows(values_only=True)]
    finally:
        book.close()
    while lines and all(value is None for value in lines[-1]):
        lines.pop()
    if not lines:
        raise DataError(f"{Path(path).name}: the sheet is empty, without even a line of column names.")
    header = lines[0]
    while header and header[-1] is None:
        header.pop()
    if None in header:
        raise DataError(f"{Path(path).name}: column {header.index(None) + 1} has no name in the first line.")
    names = tuple(str(name) for name in header)
    width = len(names)
    if any(value is not None for line in lines[1:] for value in line[width:]):
        raise DataError(f"{Path(path).name} holds values beyond its named columns; name those columns, too.")
    columns = [[line[place] if place < len(line) else None for line in lines[1:]] for place in range(width)]
    return names, columns
