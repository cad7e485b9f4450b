"""How a table is recognised: by marks, which are digests under a key (``privacy/marks.py`` compares them).

    records <schema>   of tables in memory: the codes of all records under that schema, in whatever order, and
                       who they are about, where a column says so
    file               of files: their bytes, in the order of the files' names
    name               of a table in a database or on a cluster: its name

A file that is read into memory has the first two. A table in a database is recognised by its name alone, so
changes to it go unnoticed. A DuckDB relation, and a Spark or Dask DataFrame, have no name, and so no mark.

PRIVACY: these functions read all of a private table, and a mark distinguishes it from any other table. Marks
go into ledgers and checkpoints, under their keys, and nowhere else.
"""

from collections.abc import Iterable, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from sidelight._memory import blocks
from sidelight.data.reading.read import files_of
from sidelight.data.table import Table
from sidelight.privacy.marks import RECORDS, Marks
from sidelight.sources import is_postgres, source_name

_AT_ONCE = 1 << 24
"""Bytes or codes that are digested at a time."""


def marks_of(table: Table, source: Any, key: str) -> Marks:
    """The marks of a table that was read from ``source``."""
    columns = table.columns_in_memory()
    if columns is None:
        return marks_of_source(source, key)
    schema = "" if table.schema is None else f" {table.schema.fingerprint[:16]}"
    shape = table.domain.shape
    people = table.people_in_memory()
    if people is not None:
        # All records, and not those that a run keeps: which these are depends on the run's own key.
        columns, shape = [*columns, _of_people(people, key)], (*shape, 0)
    return {**marks_of_source(source, key), f"{RECORDS}{schema}": _of_codes(columns, shape, key)}


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
    """A digest that does not depend on the order of records: a sum of scrambled records."""
    total, records = 0, len(columns[0]) if columns else 0
    salts = [int(digest([str(place).encode()], key)[:16], 16) for place in range(len(columns))]
    for some in blocks(records, _AT_ONCE // max(len(columns), 1)):
        scrambled = np.zeros(len(range(records)[some]), dtype=np.uint64)
        for column, salt in zip(columns, salts, strict=True):
            scrambled = _scramble((scrambled ^ np.uint64(salt)) + column[some].astype(np.uint64))
        total = (total + int(scrambled.sum(dtype=np.uint64))) % 2**64
    return digest([f"{total};{records};{tuple(shape)}".encode()], key)


def _of_people(people: Any, key: str) -> npt.NDArray[np.uint64]:
    """A number for each record that tells people apart; the same for all who are not named."""
    together = people.unify_dictionaries().combine_chunks()
    names = [name.as_py() for name in together.dictionary]
    numbers = np.array([0, *(int(digest([name.encode()], key)[:16], 16) for name in names)], dtype=np.uint64)
    found: npt.NDArray[np.uint64] = numbers[np.asarray(together.indices.fill_null(-1)) + 1]
    return found


def _scramble(numbers: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Steele, Lea and Flood's mix of 64 bits (2014), which tells neighbouring numbers far apart."""
    numbers = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    numbers = (numbers ^ (numbers >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return numbers ^ (numbers >> np.uint64(31))


def _bytes_of(paths: Sequence[str]) -> Iterable[bytes]:
    for path in paths:
        size = 0
        with open(path, "rb") as file:
            while block := file.read(_AT_ONCE):
                size += len(block)
                yield block
        yield f"/{size};".encode()
