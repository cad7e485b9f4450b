"""The kind that the texts of a PUBLIC column seem to spell: numbers, truths, dates, times or words."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal

from sidelight.data.columns.moment import FORMATS, Format, clock_of, seconds_of
from sidelight.data.columns.value import TRUTHS, number_of
from sidelight.data.reading.each import with_point

Spelled = Literal["text", "number", "truth", "date", "time"]
"""Kinds of values, whatever type holds them."""

_MOST_ODD = 5
"""Most texts that are taken for oddities in a column of numbers or dates."""


@dataclass(frozen=True)
class Spelling:
    """The kind of value that the texts of a column spell."""

    spelled: Spelled = "text"
    order: Format = "ymd"
    is_sure: bool = True
    """Whether the order of day and month is beyond doubt."""
    has_comma: bool = False
    """Whether it is text only because the decimal mark is a comma, and nobody said so."""
    nearly: Literal["", "numbers", "dates"] = ""
    """The kind that the texts would spell, were it not for a few odd ones."""
    odd: tuple[str, ...] = ()
    """The odd texts."""


def spelling_of(texts: Sequence[str], tokens: Collection[str], *, numbers: bool, comma: bool) -> Spelling:
    """The kind that these texts spell; ``tokens`` stand for missing values, in lower case.

    ``numbers``: whether text may spell numbers and truths; ``comma``: whether a comma is their decimal mark.

    >>> spelling_of(["31.12.2023", "NA"], {"na"}, numbers=True, comma=False).order
    'dmy'
    """
    said = {text.strip() for text in texts if text.strip().lower() not in tokens}
    if not said:
        return Spelling()
    written = {text: with_point(text) if comma else text for text in said}
    if numbers:
        if all(text.lower() in TRUTHS for text in said) and not all(map(_is_plain, said)):
            return Spelling("truth")
        if all(number_of(text) is not None and _is_plain(text) for text in written.values()):
            return Spelling("number")
    if all(clock_of(text) is not None for text in said):
        return Spelling("time")
    orders = [order for order in FORMATS if all(seconds_of(text, order) is not None for text in said)]
    if orders:
        return Spelling("date", order=orders[0], is_sure=len(orders) == 1)
    is_number = all(number_of(with_point(text)) is not None for text in said)
    if numbers and not comma and is_number and any("," in text for text in said):
        return Spelling(has_comma=True)
    return _nearly(written, numbers=numbers)


def _nearly(written: dict[str, str], *, numbers: bool) -> Spelling:
    """Text of which all but a few distinct values are numbers or dates: a person should look at those."""
    most = min(_MOST_ODD, len(written) // 10)
    words = [text for text, number in written.items() if number_of(number) is None]
    # A leading zero is that of a code: such a column is text.
    is_plain = all(_is_plain(number) for text, number in written.items() if text not in words)
    if numbers and is_plain and 0 < len(words) <= most:
        return Spelling(nearly="numbers", odd=tuple(sorted(words)))
    for order in FORMATS:
        words = [text for text in written if seconds_of(text, order) is None]
        if 0 < len(words) <= most:
            return Spelling(nearly="dates", odd=tuple(sorted(words)))
    return Spelling()


def _is_plain(text: str) -> bool:
    """Whether it is a number as numbers are written: a leading zero is that of a code."""
    body = text.lstrip("+-")
    return not (body[:1] == "0" and body[1:2].isdigit()) and (body[:1].isdigit() or body[:1] == ".")
