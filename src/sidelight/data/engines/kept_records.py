"""At most k records of each person: which ones, and how NumPy finds them.

    p       who a record is about, as text; a record that names nobody is a person of its own
    w       its codes, as few whole numbers below 2⁶²: code by code, mixed radix
    o       1, 2, … among the records of one person with the same codes
    a, b    of each person: the first 8 hexadecimal digits of the SHA-256 of "key/p", and the next 8
    h       (… ((w₀ mod P) a + ⌊w₀/P⌋) a + … + o + b)⁵ modulo P = 2³¹ − 1: a polynomial in a of all w and o

Of each person, the k records with the smallest h are kept: a uniform sample without replacement, as far as a
hash can be random. Of equal h the smaller w come first, then the smaller o: nothing is left to chance. Of the
key, 20 hexadecimal digits are used.
``sql_people`` computes the same as SQL, for records that stay in a database or on a cluster.

PRIVACY: what is kept of a person depends on the key and on the codes of that person's own records. Records
with the same codes are interchangeable, so the order of a file, the number of threads and everybody else make
no difference: tables that differ in one person keep the same records of all others. That holds for any
key, known or not; a secret one keeps people from choosing which of their records are used.
"""

from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from sidelight.data.engines.base import Codes, smallest_dtype

Word = npt.NDArray[np.int64]

KEY_DIGITS = 20
"""Digits of the key that are used: 80 bits."""
MODULUS = 2**31 - 1
"""P: a prime whose square fits into 63 bits. 5 does not divide P − 1, so the fifth power loses nothing."""
_MOST = 2**62
"""Codes are written as one whole number until it could reach this."""


def words_of(shape: Sequence[int]) -> list[list[int]]:
    """The places of the codes that each whole number w holds.

    >>> words_of([2**20, 2**20, 2**20, 2**20])
    [[0, 1, 2], [3]]
    """
    words: list[list[int]] = [[]]
    for place, size in enumerate(shape):
        if prod(shape[p] for p in words[-1]) * size >= _MOST:
            words.append([])
        words[-1].append(place)
    return words


def packed(columns: Sequence[npt.NDArray[Any]], shape: Sequence[int]) -> list[Word]:
    """The codes of every record, as few whole numbers."""
    found = []
    for places in words_of(shape):
        word = np.zeros(len(columns[0]) if columns else 0, dtype=np.int64)
        for place in places:
            word *= shape[place]
            np.add(word, columns[place], out=word, casting="unsafe")
        found.append(word)
    return found


def unpacked(words: Sequence[Word], shape: Sequence[int], wanted: Iterable[int]) -> list[Codes]:
    """The codes at the places that are wanted, one array an attribute.

    >>> words = packed([np.array([2, 0]), np.array([1, 4])], [3, 5])
    >>> [codes.tolist() for codes in unpacked(words, [3, 5], [1, 0])]
    [[1, 4], [2, 0]]
    """
    found: dict[int, Codes] = {}
    places_wanted = list(wanted)
    for word, places in zip(words, words_of(shape), strict=True):
        below = 1
        for place in reversed(places):
            if place in places_wanted:
                rest = word // below
                code = rest - rest // shape[place] * shape[place]
                found[place] = code.astype(smallest_dtype(shape[place]))
            below *= shape[place]
    return [found[place] for place in places_wanted]


def kept_of_named(names: Any, words: Sequence[Word], *, records: int, key: str) -> npt.NDArray[np.bool_]:
    """Whether each record is kept; ``names`` says who it is about, as a dictionary of Arrow text.

    >>> import pyarrow as pa
    >>> names = pa.chunked_array([["a", "a", None, "a", None]]).dictionary_encode()
    >>> int(kept_of_named(names, [np.arange(5)], records=2, key="00").sum())
    4
    """
    import pyarrow as pa

    together = names.unify_dictionaries().combine_chunks()
    number = np.asarray(together.indices.fill_null(-1))
    records_of = np.bincount(number[number >= 0], minlength=len(together.dictionary))
    many = np.flatnonzero(records_of > records)
    # Whoever has few records keeps all of them, and so does who names nobody.
    kept = (number < 0) | (records_of[number] <= records) if many.size else np.ones(len(number), np.bool_)
    places = np.flatnonzero(~kept)
    own = [word[places] for word in words]
    order = np.lexsort((*own[::-1], number[places]))
    people = together.dictionary.take(pa.array(many))
    kept[places[order]] = is_kept(
        people, records_of[many], [word[order] for word in own], records=records, key=key
    )
    return kept


def kept_of_sorted(batches: Iterable[Any], *, records: int, key: str) -> Iterator[list[Word]]:
    """The words of the records that are kept, from Arrow batches of p, w0, w1, … sorted by all of them.

    Records that name nobody come first.
    """
    import pyarrow as pa

    left = None
    for batch in batches:
        table = pa.Table.from_batches([batch])
        if left is not None:
            table = pa.concat_tables([left, table]).combine_chunks()
        nameless = table.column("p").null_count
        if nameless:
            yield _words(table.slice(0, nameless))
            table = table.slice(nameless)
        starts = _starts(table)
        # The last person may have more records in the next batch.
        done, left = table.slice(0, starts[-1]), table.slice(starts[-1])
        if done.num_rows:
            yield _kept_of_table(done, starts, records=records, key=key)
    if left is not None and left.num_rows:
        yield _kept_of_table(left, np.array([0, left.num_rows]), records=records, key=key)


def _starts(table: Any) -> Word:
    """The places at which another person begins; 0 is the first, unless there are no records."""
    from pyarrow import compute

    people = table.column("p")
    is_other = compute.not_equal(people.slice(1), people.slice(0, max(len(people) - 1, 0)))
    return np.append(0, np.flatnonzero(np.asarray(is_other)) + 1)


def _words(table: Any) -> list[Word]:
    return [table.column(name).to_numpy() for name in table.column_names[1:]]


def _kept_of_table(table: Any, starts: Word, *, records: int, key: str) -> list[Word]:
    """The same of whole people, who begin at all of these places but the last, where the table ends."""
    import pyarrow as pa

    words = _words(table)
    people = table.column("p").take(pa.array(starts[:-1]))
    kept = is_kept(people, np.diff(starts), words, records=records, key=key)
    return [word[kept] for word in words]


def is_kept(
    people: Any, lengths: Word, words: Sequence[Word], *, records: int, key: str
) -> npt.NDArray[np.bool_]:
    """Whether each record is kept; records stand person by person, and those of one person by their words.

    ``people`` names each person once, as Arrow text, and ``lengths`` says how many records each has.
    """
    import pyarrow as pa

    has_many = lengths > records
    kept = np.ones(int(lengths.sum()), dtype=np.bool_)
    if not has_many.any():
        return kept
    many = lengths[has_many]
    places = np.flatnonzero(np.repeat(has_many, lengths))
    own = [word[places] for word in words]
    starts = np.repeat(np.cumsum(many) - many, many)
    person = np.repeat(np.arange(many.size), many)
    number = _number_among_equals(own, starts)
    names = people.take(pa.array(np.flatnonzero(has_many))).to_pylist()
    a, b = _numbers(names, key)
    hashed = _hash(own, number, a[person], b[person])
    rank = person * (MODULUS + 1) + hashed
    # Stable: records of equal rank stay in the order of their words.
    order = np.argsort(rank, kind="stable")
    # Whoever has the i-th place before sorting has it afterwards, with other records.
    is_first = np.arange(places.size) - starts < records
    kept[places] = False
    kept[places[order[is_first]]] = True
    return kept


def _number_among_equals(words: Sequence[Word], starts: Word) -> Word:
    """1, 2, … among records of one person with the same words, which stand side by side."""
    places = np.arange(starts.size)
    is_new = places == starts
    for word in words:
        is_new[1:] |= word[1:] != word[:-1]
    return np.asarray(places - np.maximum.accumulate(np.where(is_new, places, 0)) + 1)


def _numbers(people: Sequence[str], key: str) -> tuple[Word, Word]:
    """The numbers a and b of each person."""
    secret = f"{key[:KEY_DIGITS]}/".encode()
    digests = b"".join(sha256(secret + person.encode()).digest()[:8] for person in people)
    a, b = np.frombuffer(digests, dtype=">u4").astype(np.int64).reshape(-1, 2).T % MODULUS
    return a, b


def _hash(words: Sequence[Word], number: Word, a: Word, b: Word) -> Word:
    z = np.zeros_like(number)
    for word in words:
        above = word // MODULUS
        z = (z * a + (word - above * MODULUS)) % MODULUS
        z = (z * a + above) % MODULUS
    z = (z * a + number + b) % MODULUS
    squared = z * z % MODULUS
    return np.asarray(squared * squared % MODULUS * z % MODULUS)
