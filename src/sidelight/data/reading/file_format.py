"""How the text of a file is written: its encoding, what separates fields, the decimal mark, the sheet.

PRIVACY: all of it is declared, in ``[file]`` of a schema or by the call, and none of it is found out from a
private file: one record must not decide how the others are read.
"""

import codecs
from dataclasses import dataclass

from sidelight._check import brief
from sidelight.errors import SchemaError


@dataclass(frozen=True)
class FileFormat:
    """The format of a CSV or Excel file: all there is to know besides its columns.

    >>> FileFormat(delimiter=";", decimal=",").decimal
    ','
    """

    encoding: str = "utf-8"
    """Any encoding that Python knows, such as latin-1 or cp1252."""
    delimiter: str | None = None
    """The character between fields; by default a comma, or a tab in .tsv files."""
    decimal: str = "."
    """The decimal mark of numbers in a CSV file: a point or a comma."""
    sheet: str | None = None
    """Which sheet of an Excel file; the first one unless declared."""

    def __post_init__(self) -> None:
        try:
            object.__setattr__(self, "encoding", codecs.lookup(self.encoding).name)
        except (LookupError, TypeError, ValueError):
            raise SchemaError(
                f"[file]: encoding must be one such as utf-8 or latin-1; got {brief(self.encoding)}."
            ) from None
        is_one = isinstance(self.delimiter, str) and len(self.delimiter) == 1
        if self.delimiter is not None and (not is_one or self.delimiter in '"\r\n\0'):
            raise SchemaError(f"[file]: delimiter must be one character; got {brief(self.delimiter)}.")
        if self.decimal not in (".", ","):
            raise SchemaError(f'[file]: decimal must be "." or ","; got {brief(self.decimal)}.')
        if self.decimal == self.delimiter:
            raise SchemaError(
                "[file]: delimiter and decimal are the same character; no number could be told apart."
            )
        if self.sheet is not None and not isinstance(self.sheet, str):
            raise SchemaError(f"[file]: sheet must be a name; got {brief(self.sheet)}.")

    @property
    def is_utf8(self) -> bool:
        """Whether engines read the file as it is."""
        return self.encoding in ("utf-8", "ascii", "utf-8-sig")


def undecodable(path: str, encoding: str, opener: object = open) -> int | None:
    """At which byte, from 0, a file is no longer text of this encoding; None if all of it is.

    PRIVACY: where it fails is told to whoever holds the file, and never which bytes or letters stand there.
    """
    decoder = codecs.getincrementaldecoder(encoding)()
    before = 0
    with opener(path, "rb") as file:  # type: ignore[operator]  # open, or gzip.open
        while True:
            some = file.read(1 << 20)
            kept = len(decoder.getstate()[0])
            try:
                decoder.decode(some, final=not some)
            except UnicodeDecodeError as error:
                return before - kept + error.start
            before += len(some)
            if not some:
                return None


def marked_encoding(path: str, opener: object = open) -> str | None:
    """The encoding that a mark at a file's beginning names; None where there is no such mark.

    PRIVACY: the mark stands before the names of columns, and says nothing of any record.
    """
    with opener(path, "rb") as file:  # type: ignore[operator]  # open, or gzip.open
        start = file.read(4)
    # UTF-32 first: its mark begins with that of UTF-16.
    marks = {codecs.BOM_UTF32_LE: "utf-32", codecs.BOM_UTF32_BE: "utf-32"}
    marks |= {codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16", codecs.BOM_UTF8: "utf-8"}
    return next((name for mark, name in marks.items() if start.startswith(mark)), None)
