"""The marks of a table (``privacy/marks.py``): what they are taken of.

    records <schema>   the codes of all records, in order, under that schema: tables in memory
    file               the bytes of all files, in the order of their names
    name               a table of a database or a cluster, by its name

Records in a database or a cluster are not looked at, so that changes there go unnoticed; a DuckDB relation
and a Spark DataFrame have no name, and no mark.

PRIVACY: these functions look at all of a private table, and what they return tells it apart from any other.
It goes into ledgers and checkpoints, under their keys, and nowhere else.
"""

from collections.abc import Iterable, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from sidelight.data.engines.base import smallest_dtype
from sidelight.data.read import files_of
from sidelight.data.table import Table
from sidelight.privacy.marks import Marks
from sidelight.sources import is_postgres, source_name

_AT_ONCE = 1 << 24
"""Bytes or codes that are digested at a time."""


def marks_of(table: Table, source: Any, key: str) -> Marks:
    """The marks of a table that was read from ``source``."""
    columns = table.columns_in_memory()
    if columns is None:
        return marks_of_source(source, key)
    schema = "" if table.schema is None else f" {table.schema.fingerprint[:16]}"
    return {**marks_of_source(source, key), f"records{schema}": _of_codes(columns, table.domain.shape, key)}


def marks_of_source(source: Any, key: str) -> Marks:
    """The marks of a source whose records are not in memory: files by their bytes, tables by their names."""
    if not isinstance(source, str | Path):
        return {}
    text = str(source)
    if is_postgres(text) or text.startswith("spark:"):
        return {"name": digest([source_name(text).encode()], key)}
    files = files_of(text)
    return {"file": digest(_bytes_of(files), key)} if files else {}


def digest(parts: Iterable[bytes | memoryview], key: str) -> str:
    """One digest of all parts, in order, under the key."""
    hashed = blake2b(digest_size=16, key=bytes.fromhex(key))
    for part in parts:
        hashed.update(part)
    return hashed.hexdigest()


def _of_codes(columns: Sequence[npt.NDArray[np.integer]], shape: Sequence[int], key: str) -> str:
    def parts() -> Iterable[bytes | memoryview]:
        for column, size in zip(columns, shape, strict=True):
            # In the type that belongs to the domain, so that equal codes have equal digests.
            kind = smallest_dtype(size).newbyteorder("<")
            for start in range(0, len(column), _AT_ONCE):
                yield np.ascontiguousarray(column[start : start + _AT_ONCE], dtype=kind).data
            yield f"/{size},{len(column)};".encode()

    return digest(parts(), key)


def _bytes_of(paths: Sequence[str]) -> Iterable[bytes]:
    for path in paths:
        size = 0
        with open(path, "rb") as file:
            while block := file.read(_AT_ONCE):
                size += len(block)
                yield block
        yield f"/{size};".encode()
