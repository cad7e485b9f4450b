"""The distinct records among coded ones, in the order of their codes.

A record is packed into one number, its codes the digits: the 15 attributes of ADULT fit into 64 bits. Sorting
then takes one number for each record. Records that need more bits have several numbers.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from sidelight._memory import blocks
from sidelight.data.engines.base import Codes, Counts, smallest_dtype

Word = npt.NDArray[np.uint64]

_AT_ONCE = 1 << 15
"""Records that are unpacked at a time."""


def distinct_records(
    shape: Sequence[int], columns: Sequence[npt.NDArray[Any]], *, records: int
) -> tuple[Codes, Counts]:
    """The distinct records, and how often each occurs; codes of a column are below its size in ``shape``.

    >>> distinct_records([3, 2], [np.array([2, 0, 2]), np.array([1, 0, 1])], records=3)[0].tolist()
    [[0, 0], [2, 1]]
    """
    parts = _parts(shape)
    words = [_packed([shape[k] for k in part], [columns[k] for k in part], records) for part in parts]
    if len(words) == 1:
        words[0].sort()
    else:
        order = _order(words, records)
        words = [word[order] for word in words]
    starts = _starts(words, records)
    return _unpacked(shape, parts, words, starts), np.diff(np.append(starts, records)).astype(np.int64)


def distinct_weights(
    shape: Sequence[int], columns: Sequence[npt.NDArray[Any]], weights: npt.NDArray[np.float64]
) -> tuple[Codes, npt.NDArray[np.float64]]:
    """The distinct records, each with the summed weight of its copies.

    >>> distinct_weights([3], [np.array([2, 0, 2])], np.array([1.0, 2.0, 0.5]))[1]
    array([2. , 1.5])
    """
    parts = _parts(shape)
    words = [_packed([shape[k] for k in part], [columns[k] for k in part], len(weights)) for part in parts]
    order = _order(words, len(weights))
    words = [word[order] for word in words]
    starts = _starts(words, len(weights))
    together = np.add.reduceat(weights[order], starts) if starts.size else np.zeros(0)
    return _unpacked(shape, parts, words, starts), together


def _starts(words: Sequence[Word], records: int) -> npt.NDArray[np.intp]:
    """Indices in sorted records where a new distinct record begins."""
    is_first = np.zeros(records, dtype=np.bool_)
    is_first[:1] = True
    for word in words:
        is_first[1:] |= word[1:] != word[:-1]
    return np.flatnonzero(is_first)


def _unpacked(
    shape: Sequence[int], parts: Sequence[Sequence[int]], words: Sequence[Word], starts: npt.NDArray[np.intp]
) -> Codes:
    """The codes of the records at these indices."""
    codes = np.empty((starts.size, len(shape)), dtype=smallest_dtype(max(shape, default=1)), order="F")
    for some in blocks(starts.size, _AT_ONCE):
        for part, word in zip(parts, words, strict=True):
            rest = word[starts[some]]
            for k in reversed(part):
                codes[some, k] = rest % np.uint64(shape[k])
                rest //= np.uint64(shape[k])
    return codes


def _parts(shape: Sequence[int]) -> list[list[int]]:
    """Attributes in order, grouped so that each group fits into one word."""
    parts: list[list[int]] = []
    room = 0
    for place, size in enumerate(shape):
        if size > room:
            parts.append([])
            room = 2**64
        parts[-1].append(place)
        room //= size
    return parts


def _packed(shape: Sequence[int], columns: Sequence[npt.NDArray[Any]], records: int) -> Word:
    word = np.zeros(records, dtype=np.uint64)
    for size, column in zip(shape, columns, strict=True):
        word *= np.uint64(size)
        np.add(word, column, out=word, casting="unsafe", dtype=np.uint64)
    return word


def _order(words: Sequence[Word], records: int) -> npt.NDArray[np.intp]:
    """The order that sorts records by the first word, then by the second."""
    return np.lexsort(words[::-1]) if words else np.arange(records)
