"""The distinct records among coded ones, in the order of their codes.

A record is one number, its attributes the digits: the 15 attributes of ADULT fit into 64 bits. So nothing is
kept beside the records but a number for each while they are sorted. Records that need more have several.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from sidelight.data.engines.base import Codes, Counts, smallest_dtype

Word = npt.NDArray[np.uint64]


def distinct_records(
    shape: Sequence[int], columns: Sequence[npt.NDArray[Any]], *, records: int
) -> tuple[Codes, Counts]:
    """Each distinct record, and how often it occurs, of columns of codes below ``shape``.

    >>> distinct_records([3, 2], [np.array([2, 0, 2]), np.array([1, 0, 1])], records=3)[0].tolist()
    [[0, 0], [2, 1]]
    """
    parts = _parts(shape)
    packed = [_packed([shape[k] for k in part], [columns[k] for k in part], records) for part in parts]
    words = _sorted(packed)
    is_first = np.zeros(records, dtype=np.bool_)
    is_first[:1] = True
    for word in words:
        is_first[1:] |= word[1:] != word[:-1]
    starts = np.flatnonzero(is_first)
    codes = np.empty((starts.size, len(shape)), dtype=smallest_dtype(max(shape, default=1)), order="F")
    for part, word in zip(parts, words, strict=True):
        rest = word[starts]
        for k in reversed(part):
            codes[:, k] = rest % np.uint64(shape[k])
            rest //= np.uint64(shape[k])
    return codes, np.diff(np.append(starts, records)).astype(np.int64)


def _parts(shape: Sequence[int]) -> list[list[int]]:
    """Attributes in order, as many together as one word holds."""
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
        word += column.astype(np.uint64)
    return word


def _sorted(words: list[Word]) -> list[Word]:
    """All words of each record, by the first, then by the second."""
    if len(words) == 1:
        words[0].sort()
        return words
    order = np.lexsort(words[::-1]) if words else np.empty(0, dtype=np.intp)
    return [word[order] for word in words]
