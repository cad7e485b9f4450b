"""At most k records of each person, as SQL: those that ``kept_records`` names, in every engine alike."""

import re
from collections.abc import Sequence

from sidelight.data.engines.base import ValueKind
from sidelight.data.engines.kept_records import KEY_DIGITS, MODULUS, words_of
from sidelight.data.engines.sql_encoding import Dialect

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
    first, *others = (_packed(places, shape) for places in words_of(shape))
    refused = " OR ".join(["pu", *(f"a{place} < 0" for place in range(len(shape)))])
    words = [f"CASE WHEN {refused} THEN -1 ELSE {first} END", *others]
    named = ", ".join(f"{word} AS w{i}" for i, word in enumerate(words))
    return f"SELECT p, {named} FROM ({encoded}) AS encoded"


def word_names(shape: Sequence[int]) -> list[str]:
    """The columns w0, w1, … of ``packed_sql``."""
    return [f"w{i}" for i in range(len(words_of(shape)))]


def kept_sql(sql: Dialect, packed: str, shape: Sequence[int], *, records: int, key: str) -> str:
    """SELECT the codes a0, a1, … of at most ``records`` records of each person.

    ``packed`` stands after FROM, and has the columns of ``packed_sql``.
    """
    w = ", ".join(word_names(shape))
    ranked = _ranked(sql, f"{packed} AS packed(p, {w})", word_names(shape), key=key)
    # A record that names nobody is a person of its own.
    kept = f"SELECT {w} FROM ({ranked}) AS ranked WHERE r <= {records} OR p IS NULL"
    return codes_sql(sql, f"({kept}) AS kept", shape)


def codes_sql(sql: Dialect, words: str, shape: Sequence[int]) -> str:
    """SELECT the codes a0, a1, … of records that are there as words w0, w1 and so on."""
    codes = ", ".join(
        f"{code} AS a{place}"
        for i, places in enumerate(words_of(shape))
        for place, code in _unpacked(sql, f"w{i}", places, shape)
    )
    return f"SELECT {codes} FROM {words}"


def _ranked(sql: Dialect, packed: str, words: Sequence[str], *, key: str) -> str:
    """The rank r of each record among its person's, by hash."""
    assert re.fullmatch("[0-9a-f]+", key)
    w = ", ".join(words)
    # Of records with the same codes, how many came before: which of them is which makes no difference.
    number = (
        f"ROW_NUMBER() OVER (PARTITION BY p ORDER BY {w}) - RANK() OVER (PARTITION BY p ORDER BY {w}) + 1"
    )
    digits = sql.sha256(f"{sql.text(key[:KEY_DIGITS] + '/')} || p")
    z = "CAST(0 AS BIGINT)"
    for word in words:
        z = f"(({z} * a + {word} % {MODULUS}) % {MODULUS} * a + {sql.quotient(word, MODULUS)}) % {MODULUS}"
    layers = [
        f"{number} AS o, {digits} AS x",
        f"{sql.hexadecimal_number('LEFT(x, 8)')} % {MODULUS} AS a, "
        f"{sql.hexadecimal_number('RIGHT(x, 8)')} % {MODULUS} AS b",
        f"({z} * a + o + b) % {MODULUS} AS z",
        f"z * z % {MODULUS} AS y",
        f"y * y % {MODULUS} * z % {MODULUS} AS h",
    ]
    relation = packed
    for depth, layer in enumerate(layers):
        # Each is worked out once.
        relation = f"(SELECT *, {layer} FROM {relation}{sql.fence}) AS hashed{depth}"
    rank = f"ROW_NUMBER() OVER (PARTITION BY p ORDER BY h, {w}, o)"
    return f"SELECT p, {w}, {rank} AS r FROM {relation}"


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
