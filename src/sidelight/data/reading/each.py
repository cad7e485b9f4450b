"""A column of any container (list, NumPy, pandas, polars, Arrow) as single values, each in its own type.

Equal values are kept once, with an index for each record, so that each meaning is worked out once.

PRIVACY: nothing here gives a column a type. ``value`` says what a value means, and sees one at a time.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from sidelight.data.columns.value import number_of, text_of
from sidelight.errors import DataError

Places = npt.NDArray[np.int64]


class NoValue:
    """Stands for a value of a type that no column can hold, such as a list."""


class Each:
    """The values of a list, an array, a series or an Arrow column, each in its record's own type.

    >>> Each([1, 1.0, "1", None, 1]).values
    [1, 1.0, '1', None]
    """

    def __init__(self, column: Any, *, comma: bool = False) -> None:
        if isinstance(column, (str, bytes)) or not isinstance(column, Iterable):
            raise DataError(f"a column must be a list of values; got a {type(column).__name__}.")
        self._numbers: npt.NDArray[Any] | None = None
        """Set where every record holds a number: then no value needs to be looked at by itself."""
        self._found: tuple[list[Any], Places] | None = None
        self._comma = comma
        """Whether text has a comma before the decimals of a number."""
        plain = _plain(column)
        if isinstance(plain, np.ndarray):
            self._numbers = plain
        else:
            self._found = plain

    @classmethod
    def joined(cls, parts: Sequence["Each"]) -> "Each":
        """The records of several columns, one after the other."""
        if len(parts) == 1:
            return parts[0]
        whole = cls([], comma=parts[0]._comma)
        values: list[Any] = []
        places: list[Places] = []
        for part in parts:
            places.append(part._distinct[1] + len(values))
            values += part.values
        whole._found = values, np.concatenate(places)
        return whole

    def __len__(self) -> int:
        return len(self._numbers) if self._numbers is not None else len(self._distinct[1])

    @property
    def values(self) -> list[Any]:
        """The distinct values."""
        return self._distinct[0]

    @property
    def places(self) -> Places:
        """For each record, which of the distinct values it has."""
        return self._distinct[1]

    def numbers(self) -> npt.NDArray[np.float64]:
        """Every record's number; NaN where the value is missing or is not a number."""
        if self._numbers is not None:
            return self._numbers.astype(np.float64)
        found = self.read(_number_with_comma if self._comma else number_of)
        return np.array([np.nan if number is None else number for number in found], dtype=np.float64)[
            self._distinct[1]
        ]

    def codes(self, meaning: Callable[[object], int]) -> Places:
        """Every record's code, where ``meaning`` gives the code of one value."""
        return np.array(self.read(meaning), dtype=np.int64)[self._distinct[1]]

    def texts(self, meaning: Callable[[object], str | None]) -> Any:
        """Every record's text as an Arrow array, where ``meaning`` gives the text of one value."""
        import pyarrow as pa

        texts = pa.array(self.read(meaning), type=pa.large_string())
        return texts.take(pa.array(self._distinct[1]))

    def read(self, meaning: Callable[[object], Any]) -> list[Any]:
        """The meaning of each distinct value."""
        return [meaning(value) for value in self.values]

    @cached_property
    def _distinct(self) -> tuple[list[Any], Places]:
        if self._found is not None:
            return self._found
        assert self._numbers is not None
        values, places = np.unique(self._numbers, return_inverse=True)
        return values.tolist(), places.astype(np.int64)


def with_point(text: str) -> str:
    """A number with a comma before its decimals, with a point there instead; a point becomes a comma.

    >>> with_point("3,5"), with_point("1.000,5")
    ('3.5', '1,000.5')
    """
    return text.translate({44: 46, 46: 44})


def _number_with_comma(value: object) -> float | None:
    """The number that text such as 3,5 spells; 1.000,5 is none, since who knows what the point is."""
    return number_of(with_point(value) if isinstance(value, str) else value)


def _plain(column: Any) -> npt.NDArray[Any] | tuple[list[Any], Places]:
    """An array of numbers; or the distinct values, and for each record the index of its value."""
    root = type(column).__module__.partition(".")[0]
    if root == "pandas":
        return _of_pandas(column)
    if root == "pyarrow":
        return _of_arrow(column)
    if root == "polars":
        # Arrow has no such types; of all others it has every value, and Python does not (the year 10,000).
        is_odd = str(column.dtype) in ("Object", "Int128", "UInt128")
        return _of_list(column.to_list()) if is_odd else _of_arrow(column.to_arrow())
    if isinstance(column, np.ndarray):
        return _of_numpy(column)
    return _of_list(list(column))


def _of_list(values: list[Any]) -> npt.NDArray[Any] | tuple[list[Any], Places]:
    if set(map(type, values)) == {float}:
        return np.array(values, dtype=np.float64)
    distinct: dict[tuple[type, Any], int] = {}
    places = np.empty(len(values), dtype=np.int64)
    for place, value in enumerate(values):
        try:
            # By type too: 1, 1.0 and True are equal, and are not the same text.
            places[place] = distinct.setdefault((type(value), value), len(distinct))
        except TypeError:  # cannot be hashed: a list, and the like
            places[place] = distinct.setdefault((NoValue, None), len(distinct))
    return [NoValue() if kind is NoValue else value for kind, value in distinct], places


def _of_numpy(array: npt.NDArray[Any]) -> npt.NDArray[Any] | tuple[list[Any], Places]:
    if array.ndim != 1:
        raise DataError(f"a column must be one list of values; got {array.ndim} dimensions.")
    if isinstance(array, np.ma.MaskedArray):
        return _of_list(array.tolist())
    if array.dtype.kind in "biuf":
        return array
    if array.dtype.kind in "MUS":
        values, places = np.unique(array, return_inverse=True)
        # S is how NumPy holds text in bytes, numbers among them if one record was bytes.
        found = [text_of(value) for value in values] if array.dtype.kind == "S" else list(values)
        return found, places.astype(np.int64)
    return _of_list(array.tolist() if array.dtype.kind == "O" else list(array))


def _of_pandas(column: Any) -> npt.NDArray[Any] | tuple[list[Any], Places]:
    if hasattr(column.dtype, "categories"):
        labels = Each(column.dtype.categories)
        values, places = labels._distinct
        codes = np.asarray(column.cat.codes if hasattr(column, "cat") else column.codes, dtype=np.int64)
        return [*values, None], np.append(places, len(values))[codes]  # a missing value has the code −1
    if isinstance(column.dtype, np.dtype) and column.dtype.kind != "O":
        return _of_numpy(column.to_numpy())
    return _of_list(column.tolist())


def _of_arrow(column: Any) -> npt.NDArray[Any] | tuple[list[Any], Places]:
    import pyarrow as pa

    kinds = pa.types
    if kinds.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    kind = column.type
    is_moment = kinds.is_date(kind) or (kinds.is_timestamp(kind) and kind.tz is None)
    is_number = kinds.is_integer(kind) or kinds.is_floating(kind) or kinds.is_boolean(kind)
    if is_number and not column.null_count:
        return column.to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]  # pyarrow is untyped
    is_bytes = kinds.is_binary(kind) or kinds.is_large_binary(kind)
    is_plain = is_number or is_moment or is_bytes or kinds.is_decimal(kind) or _is_text(kind)
    if not (is_plain or kinds.is_null(kind)):
        is_there = column.is_valid().to_numpy(zero_copy_only=False).astype(np.int64)
        return [None, NoValue()], is_there
    if kinds.is_null(kind):
        return [None], np.zeros(len(column), dtype=np.int64)
    encoded = column.dictionary_encode()
    # Python has no dates beyond the year 9999, and pandas none beyond 2262: NumPy has them all.
    found = encoded.dictionary
    values = list(found.to_numpy(zero_copy_only=False)) if is_moment else _python_values(found)
    places = encoded.indices.fill_null(len(values)).to_numpy(zero_copy_only=False)
    return [*values, None], places.astype(np.int64)


def _python_values(dictionary: Any) -> list[Any]:
    try:
        return dictionary.to_pylist()  # type: ignore[no-any-return]  # pyarrow is untyped
    except UnicodeDecodeError:
        # PRIVACY: Python's own message quotes the bytes.
        raise DataError("the table holds text that is not UTF-8; nothing was charged.") from None


def _is_text(kind: Any) -> bool:
    import pyarrow as pa

    tests = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    return any(is_text(kind) for is_text in tests)
