"""Who each value is about, and at most k values of each person.

PRIVACY: which values are kept of a person depends on a key and on that person's own values, and not on
anybody else (``data/engines/kept_records.py``). The key is drawn anew for every answer, and forgotten.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sidelight.data.engines.kept_records import Word, kept_of_named
from sidelight.data.reading.each import Each
from sidelight.data.reading.frames import people_of
from sidelight.errors import DataError
from sidelight.privacy.unit import Unit


def names_of(column: Each) -> Any:
    """Who each value is about, as Arrow text; blank text names nobody."""
    from pyarrow import compute

    people = people_of(column)
    is_blank = compute.equal(compute.utf8_trim(people, " "), "")
    return compute.if_else(is_blank, None, people)


def require_named(people: Any, unit: Unit, what: str) -> None:
    """Refuse values that are about nobody, unless the unit takes each of them for a person of its own."""
    if people.null_count and unit.missing_person == "refuse":
        # PRIVACY: told before anything is paid, to the person who holds the table, without value or count.
        raise DataError(
            f"{what} has records without {unit.person!r}, which says who they are about; remove them, or "
            'declare missing_person = "own" in the unit. Nothing was charged.'
        )


def kept_values(people: Any, words: Sequence[Word], unit: Unit, key: str) -> NDArray[np.bool_]:
    """Whether each value is kept: at most ``unit.records`` of each person."""
    import pyarrow as pa

    names = pa.chunked_array([people.cast(pa.string())]).dictionary_encode()
    return kept_of_named(names, words, records=unit.records, key=key)


def words_of_numbers(values: NDArray[np.float64]) -> list[Word]:
    """Real numbers as whole ones, by which equal values are recognised.

    >>> words_of_numbers(np.array([0.0, 1.0]))[0].tolist()
    [0, 1072693248]
    """
    bits = np.ascontiguousarray(values, dtype=np.float64).view(np.uint64)
    halves = bits >> np.uint64(32), bits & np.uint64(2**32 - 1)
    return [half.astype(np.int64) for half in halves]
