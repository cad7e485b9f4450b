"""Ways to change one record, what can hold the change, and what of the others it moved.

A neighbour is made as people make tables: the library that holds it may well give the whole column another
type. What ``read`` then says of every *other* record must be what it said before.
"""

import csv
import gzip
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np

Columns = Mapping[str, Sequence[Any]]
Hold = Callable[[Columns, Path], Any]
Read = Callable[[Any], Sequence[Any]]

ODD: dict[str, Any] = {
    "missing": None,
    "not a number": math.nan,
    "infinite": math.inf,
    "minus infinite": -math.inf,
    "huge": 1e308,
    "subnormal": 5e-324,
    "minus zero": -0.0,
    "real and whole": 1.0,
    "real": 1.5,
    "whole": 2,
    "beyond 64 bits": 2**70,
    "beyond a double": 10**400,
    "of thousands of digits": 10**5000,
    "single precision": np.float32(0.1),
    "decimal": Decimal("1.50"),
    "precise decimal": Decimal("1.0000000000000000000001"),
    "boolean": True,
    "text": "x",
    "empty text": "",
    "blank text": "  ",
    "long text": "x" * 5000,
    "text with spaces": " 1 ",
    "text with a tab": "\t1",
    "text with a line break": "1\n",
    "text with a quote": 'a"b',
    "leading zeros": "01",
    "a real number as text": "1.0",
    "an exponent as text": "1E3",
    "huge as text": "1e400",
    "tiny as text": "1e-400",
    "nan as text": "NaN",
    "infinity as text": "-Infinity",
    "truth as text": "TRUE",
    "hexadecimal": "0x10",
    "underscores": "1_000",
    "digits of another script": "٣",
    "not ASCII": "ünï",
    "half a surrogate pair": "\udcff",
    "a date": date(2020, 1, 1),
    "a timestamp": datetime(2020, 1, 1, 10, 30),
    "a fraction of a second": datetime(2020, 1, 1, 10, 30, 0, 500),
    "a date as text": "2020-01-01",
    "a timestamp as text": "2020-01-01 10:30:00",
    "bytes": b"1",
    "a list": [1],
    "a duration": timedelta(1),
    "a complex number": 1 + 1j,
}


class CannotHoldError(Exception):
    """Such a table does not exist."""


def held(make: Callable[[], Any]) -> Any:
    """The table; or CannotHoldError, where the library itself refuses to make it."""
    try:
        return make()
    except Exception as error:  # libraries refuse in many ways, and none of them is ours
        raise CannotHoldError from error


def kept(columns: Columns, found: Columns) -> None:
    """CannotHoldError where the library did not hold what it was given: 1 beside a date becomes 1970-01-02.

    One record may be altered, the odd one.
    """
    for name, column in columns.items():
        if sum(not _is_kept(a, b) for a, b in zip(column, found[name], strict=True)) > 1:
            raise CannotHoldError


def _is_kept(given: Any, found: Any) -> bool:
    if isinstance(given, bool) != isinstance(found, (bool, np.bool_)) and not isinstance(found, str):
        return False
    if isinstance(given, date) and isinstance(found, date):
        return str(found).removesuffix(" 00:00:00") == str(given).removesuffix(" 00:00:00")
    if isinstance(found, bytes):
        found = found.decode()
    if found is given:
        return True
    try:
        return str(found).lower() == str(given).lower() or bool(found == given)
    except (TypeError, ValueError):  # pandas.NA equals nothing; long numbers are not printed
        return False


def as_lists(columns: Columns, folder: Path) -> Any:
    return {name: list(column) for name, column in columns.items()}


def as_arrays(columns: Columns, folder: Path) -> Any:
    table = held(lambda: {name: np.asarray(column) for name, column in columns.items()})
    kept(columns, {name: list(column) for name, column in table.items()})
    return table


def as_pandas(columns: Columns, folder: Path) -> Any:
    import pandas

    table = held(lambda: pandas.DataFrame({name: list(column) for name, column in columns.items()}))
    kept(columns, {name: table[name].tolist() for name in columns})
    return table


def as_categories(columns: Columns, folder: Path) -> Any:
    import pandas

    made = {name: held(lambda c=column: pandas.Categorical(list(c))) for name, column in columns.items()}
    kept(columns, {name: column.tolist() for name, column in made.items()})
    return pandas.DataFrame(made)


def as_nullable(columns: Columns, folder: Path) -> Any:
    table = held(lambda: as_pandas(columns, folder).convert_dtypes())
    kept(columns, {name: table[name].tolist() for name in columns})
    return table


def as_polars(columns: Columns, folder: Path) -> Any:
    import polars

    table = held(lambda: polars.DataFrame({n: list(c) for n, c in columns.items()}, strict=False))
    kept(columns, {name: table.get_column(name).to_list() for name in columns})
    return table


def as_arrow(columns: Columns, folder: Path) -> Any:
    import pyarrow as pa

    table = held(lambda: pa.table({name: list(column) for name, column in columns.items()}))
    kept(columns, {name: table.column(name).to_pylist() for name in columns})
    return table


def as_dictionaries(columns: Columns, folder: Path) -> Any:
    table = as_arrow(columns, folder)
    for place, name in enumerate(columns):
        encoded = held(table.column(place).dictionary_encode)
        table = table.set_column(place, name, encoded)
    return table


def as_parquet(columns: Columns, folder: Path) -> Any:
    import pyarrow.parquet

    held(lambda: pyarrow.parquet.write_table(as_arrow(columns, folder), folder / "held.parquet"))
    return folder / "held.parquet"


def as_parquet_by_pandas(columns: Columns, folder: Path) -> Any:
    import pyarrow.parquet

    path = folder / "held.parquet"
    held(lambda: as_pandas(columns, folder).to_parquet(path))
    found = pyarrow.parquet.read_table(path)
    kept(columns, {name: found.column(name).to_pylist() for name in columns})
    return path


def as_relation(columns: Columns, folder: Path) -> Any:
    import duckdb

    return held(lambda: duckdb.from_arrow(as_arrow(columns, folder)))


def as_csv(columns: Columns, folder: Path) -> Any:
    return _write_csv(columns, folder / "held.csv", ",")


def as_tsv(columns: Columns, folder: Path) -> Any:
    return _write_csv(columns, folder / "held.tsv", "\t")


def as_csv_gz(columns: Columns, folder: Path) -> Any:
    path = folder / "held.csv.gz"
    path.write_bytes(gzip.compress(Path(as_csv(columns, folder)).read_bytes()))
    return path


def _write_csv(columns: Columns, path: Path, delimiter: str) -> Path:
    def write() -> None:
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, delimiter=delimiter)
            writer.writerow(columns)
            for line in zip(*columns.values(), strict=True):
                # An empty field is a missing value, an empty text stands in quotes.
                writer.writerow(["" if value is None else str(value) for value in line])

    held(write)
    return path


HOLDERS: dict[str, Hold] = {
    "lists": as_lists,
    "arrays": as_arrays,
    "pandas": as_pandas,
    "categories": as_categories,
    "nullable": as_nullable,
    "polars": as_polars,
    "arrow": as_arrow,
    "dictionaries": as_dictionaries,
    "parquet": as_parquet,
    "parquet by pandas": as_parquet_by_pandas,
    "relation": as_relation,
    "csv": as_csv,
    "tsv": as_tsv,
    "csv.gz": as_csv_gz,
}


def neighbours(
    columns: Columns, changed: str, *, everywhere: bool = True
) -> Iterator[tuple[str, int, dict[str, list[Any]]]]:
    """Every odd value, or another record's, in the first, a middle and the last record; or in turns."""
    size = len(columns[changed])
    places = (0, size // 2, size - 1)
    for turn, (name, value) in enumerate((ODD | {"a duplicate": columns[changed][1]}).items()):
        for place in places if everywhere else (places[turn % 3],):
            copy = {each: list(column) for each, column in columns.items()}
            copy[changed][place] = value
            yield name, place, copy


def moved(
    read: Read, hold: Hold, columns: Columns, changed: str, folder: Path, *, everywhere: bool = True
) -> list[str]:
    """Changes of one record after which another one is read otherwise, or the table is refused.

    ``read`` gives what is made of each record, in their order, and must admit every record: what has no
    place has a declared one.
    """
    before = list(read(hold(columns, folder)))
    found = []
    tried = 0
    for name, place, neighbour in neighbours(columns, changed, everywhere=everywhere):
        try:
            table = hold(neighbour, folder)
        except CannotHoldError:
            continue
        tried += 1
        try:
            after = list(read(table))
        except Exception as error:  # noqa: BLE001  # a refusal and a crash are both another outcome
            found.append(f"{name} in record {place}: {type(error).__name__}: {error}")
            continue
        if len(after) != len(before):
            found.append(f"{name} in record {place}: another number of records")
        elif any(a != b for i, (a, b) in enumerate(zip(before, after, strict=True)) if i != place):
            found.append(f"{name} in record {place}")
    assert tried > 1, "this holder holds next to nothing: is it broken?"
    return found
