"""At most k records of each person, as SQL that every engine computes alike.

    p     who a record is about, as text; NULL where nobody is named
    w     its codes, as few whole numbers: code by code, mixed radix
    o     1, 2, … among the records of one person with the same codes
    h     SHA-256 of "key/w/o/p", its first 16 hexadecimal digits, with the first 20 digits of the key

Of each person, the k records with the smallest h are kept: a uniform sample without replacement, since every
record has a hash of its own.

PRIVACY: what is kept of a person depends on the key and on the codes of that person's own records. Records
with the same codes are interchangeable, so the order of a file, the number of threads and everybody else make
no difference: tables that differ in one person keep the same records of all others. That holds for any
key, known or not; a secret one keeps people from choosing which of their records are used.
"""

import re
from collections.abc import Sequence
from math import prod

from sidelight.data.engines.base import ValueKind
from sidelight.data.engines.sql_encoding import Dialect

_MOST = 2**62
"""Codes are written as one whole number until it could exceed this."""
_KEY_DIGITS = 20
"""Of the key, 80 bits are used: then most texts fit into one block of SHA-256, which takes half the time."""
_WHOLE = 2**53
"""Real numbers below this have the digits of a whole number, if they are one."""


def person_of(sql: Dialect, x: str, kind: ValueKind | None) -> tuple[str, str]:
    """Who a record is about, as text, NULL if nobody is named; and whether x says it in a way we cannot read.

    Text is taken as it is, and blank text names nobody. Whole numbers are their digits, in whatever type.
    """
    if kind == "text":
        text = sql.as_text(x)
        return f"CASE WHEN TRIM({text}) = '' THEN NULL ELSE {text} END", "FALSE"
    if kind == "integer":
        return sql.as_text(x), "FALSE"
    if kind in ("real", "decimal"):
        number = sql.decimal(x) if kind == "decimal" else f"CAST({x} AS {sql.double})"
        value = f"NULLIF({number}, {sql.number(float('nan'))})"
        is_whole = f"({value} = FLOOR({value}) AND ABS({value}) < {sql.number(_WHOLE)})"
        if kind == "decimal":
            # PRIVACY: the nearest real number may be whole where it is not, and somebody else's.
            is_whole = f"({is_whole} AND {x} = FLOOR({x}))"
        text = sql.as_text(f"CAST({value} AS BIGINT)")
        return f"CASE WHEN {is_whole} THEN {text} END", f"({value} IS NOT NULL AND NOT {is_whole})"
    return f"CAST(NULL AS {sql.varchar})", f"({x} IS NOT NULL)"


def packed_sql(encoded: str, shape: Sequence[int]) -> str:
    """SELECT p and w0, w1, … of every record that ``encoded`` selects; w0 is −1 where a value was refused."""
    first, *others = (_packed(places, shape) for places in _words(shape))
    refused = " OR ".join(["pu", *(f"a{place} < 0" for place in range(len(shape)))])
    words = [f"CASE WHEN {refused} THEN -1 ELSE {first} END", *others]
    named = ", ".join(f"{word} AS w{i}" for i, word in enumerate(words))
    return f"SELECT p, {named} FROM ({encoded}) AS encoded"


def word_names(shape: Sequence[int]) -> list[str]:
    """The columns w0, w1, … of ``packed_sql``."""
    return [f"w{i}" for i in range(len(_words(shape)))]


def kept_sql(
    sql: Dialect, packed: str, shape: Sequence[int], *, records: int, key: str, is_held: bool = False
) -> str:
    """SELECT the codes a0, a1, … of at most ``records`` records of each person.

    ``packed`` stands after FROM, and has the columns of ``packed_sql``. Where it ``is_held``, reading it
    thrice is quick, and only people with more records than that are ranked.
    """
    w = ", ".join(word_names(shape))
    named = f"{packed} AS packed(p, {w})"
    few = many = f"SELECT p, {w} FROM {named}"
    if is_held:
        too_many = f"SELECT p FROM {named} WHERE p IS NOT NULL GROUP BY p HAVING COUNT(*) > {records}"
        many += f" WHERE p IN ({too_many})"
        # A record that names nobody is a person of its own.
        few += f" WHERE p IS NULL OR p NOT IN ({too_many})"
    kept = f"SELECT {w} FROM ({_ranked(sql, many, w, key=key)}) AS ranked WHERE r <= {records}"
    kept += f" UNION ALL SELECT {w} FROM ({few}) AS few" if is_held else " OR p IS NULL"
    codes = ", ".join(
        f"{code} AS a{place}"
        for i, places in enumerate(_words(shape))
        for place, code in _unpacked(sql, f"w{i}", places, shape)
    )
    return f"SELECT {codes} FROM ({kept}) AS kept"


def _ranked(sql: Dialect, packed: str, w: str, *, key: str) -> str:
    """The rank r of each record among its person's, by hash."""
    assert re.fullmatch("[0-9a-f]+", key)
    # Of records with the same codes, how many came before: which of them is which makes no difference.
    number = f"ROW_NUMBER() OVER (PARTITION BY p ORDER BY {w}) - RANK() OVER (PARTITION BY p ORDER BY {w})"
    numbered = f"SELECT p, {w}, {number} + 1 AS o FROM ({packed}) AS packed"
    parts = [*map(sql.as_text, [*w.split(", "), "o"]), "p"]
    text = f" || {sql.text('/')} || ".join([sql.text(key[:_KEY_DIGITS]), *parts])
    hashed = f"SELECT p, {w}, {sql.sha256(text)} AS h FROM ({numbered}) AS numbered"
    # Two records of one person with the same h are told apart by their codes: nothing is left to chance.
    rank = f"ROW_NUMBER() OVER (PARTITION BY p ORDER BY h, {w})"
    return f"SELECT p, {w}, {rank} AS r FROM ({hashed}) AS hashed"


def _words(shape: Sequence[int]) -> list[list[int]]:
    """The places of the codes that each whole number holds."""
    words: list[list[int]] = [[]]
    for place, size in enumerate(shape):
        if prod(shape[p] for p in words[-1]) * size >= _MOST:
            words.append([])
        words[-1].append(place)
    return words


def _packed(places: Sequence[int], shape: Sequence[int]) -> str:
    packed = "CAST(0 AS BIGINT)"
    for place in places:
        packed = f"({packed} * {shape[place]} + a{place})"
    return packed


def _unpacked(sql: Dialect, word: str, places: Sequence[int], shape: Sequence[int]) -> list[tuple[int, str]]:
    codes, below = [], 1
    for place in reversed(places):
        code = f"({sql.quotient(word, below)} % {shape[place]})"
        codes.append((place, sql.code(code, shape[place])))
        below *= shape[place]
    return codes[::-1]
