"""Numbers and truths that text spells, as SQL: what ``value`` reads, in every engine alike.

Nearly all numbers are written plainly, such as 42 or -3.75: it takes little to see that, and nothing else is
asked of such a text. Only what is left is trimmed and compared with everything that a number may look like.
"""

from typing import TYPE_CHECKING

from sidelight.data.columns.column import CategoricalColumn, Column
from sidelight.data.columns.value import TRUTHS

if TYPE_CHECKING:
    from sidelight.data.engines.sql_encoding import Dialect

_PLAIN = "^-?[0-9]+([.][0-9]+)?$"
_PLAIN_COMMA = "^-?[0-9]+(,[0-9]+)?$"
_NUMBER = "^[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)(e[+-]?[0-9]+)?$"  # of text in lower case; no backslashes
_ABOVE, _BELOW = ("inf", "+inf", "infinity", "+infinity"), ("-inf", "-infinity")
_TRUE, _FALSE = (tuple(text for text, truth in TRUTHS.items() if truth == is_true) for is_true in (1, 0))


def layers(sql: "Dialect", column: Column, x: str, i: int, *, comma: bool) -> list[list[str]]:
    """Layer by layer: n{i}, the number that plain text spells; of other text o{i}, trimmed, and t{i}."""
    text = sql.as_text(x)
    plain = f"CAST(NULL AS {sql.double})"
    if column.value_kind != "boolean":
        is_plain = sql.matches(text, _PLAIN_COMMA if comma else _PLAIN)
        special = [spelling for _, spellings in _spelled(column) for spelling in spellings]
        special += [token for token in column.missing_texts if token[-1:].isdigit()]
        if special:
            is_plain = f"({is_plain} AND NOT {sql.one_of(text, special)})"
        number = f"REPLACE({text}, ',', '.')" if comma else text
        plain = f"CASE WHEN {is_plain} THEN {sql.parse(number)} END"
    lower = f"LOWER(o{i})"
    if comma:
        lower = f"TRANSLATE({lower}, ',.', '.,')"  # and 1.000,5 is no number: who knows what the point is
    return [
        [f"{plain} AS n{i}"],
        [f"CASE WHEN n{i} IS NULL THEN TRIM({text}) END AS o{i}"],
        [f"{lower} AS t{i}"],
    ]


def value_of_text(sql: "Dialect", column: Column, i: int) -> tuple[str, str]:
    """The number that text spells, NULL for a missing value; and whether there is text that spells none."""
    t, trimmed = f"t{i}", f"o{i}"
    if column.value_kind == "boolean":
        is_read = sql.one_of(t, (*_TRUE, *_FALSE))
        value = (
            f"CASE WHEN {sql.one_of(t, _TRUE)} THEN {sql.number(1)} WHEN {is_read} THEN {sql.number(0)} END"
        )
    else:
        is_number = sql.matches(t, _NUMBER)
        is_read = f"({sql.one_of(t, (*_ABOVE, *_BELOW))} OR {is_number})"
        value = (
            f"CASE WHEN {sql.one_of(t, _ABOVE)} THEN {sql.number(float('inf'))} "
            f"WHEN {sql.one_of(t, _BELOW)} THEN {sql.number(float('-inf'))} "
            f"WHEN {is_number} THEN {sql.parse(t)} END"
        )
    is_missing = f"({t} IS NULL OR {sql.one_of(t, ('', 'nan'))})"
    for number, spellings in _spelled(column):
        is_alias = sql.one_of(trimmed, spellings)
        value = f"CASE WHEN {is_alias} THEN {sql.number(number)} ELSE {value} END"
        is_read = f"({is_read} OR {is_alias})"
    if column.missing_texts:
        is_token = sql.one_of(trimmed, column.missing_texts)
        value = f"CASE WHEN {is_token} THEN NULL ELSE {value} END"
        is_missing = f"({is_missing} OR {is_token})"
    is_unread = f"CASE WHEN n{i} IS NULL THEN (NOT {is_missing} AND NOT {is_read}) ELSE FALSE END"
    return f"CASE WHEN n{i} IS NULL THEN {value} ELSE n{i} END", is_unread


def _spelled(column: Column) -> list[tuple[float, list[str]]]:
    """The labels that are numbers or truths, and the texts that they may be spelled by besides."""
    if not isinstance(column, CategoricalColumn):
        return []
    found: dict[float, list[str]] = {}
    for spelling, code in column.spellings.items():
        found.setdefault(float(column.labels[code]), []).append(spelling)
    return list(found.items())
