"""What a draft of a schema needs to know about the columns of a PUBLIC table, in a few passes by DuckDB.

The first records suggest what the text of each column spells: numbers, truths, dates, times or words. One
pass over all records then checks every suggestion and finds bounds and the number of distinct values; another
one lists the labels of columns that have few. However long the table is, only its beginning is brought here.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, time
from typing import Any, Literal

from sidelight.data.columns.moment import Format, clock_of, seconds_of
from sidelight.data.columns.value import TRUTHS, number_of
from sidelight.data.engines.base import ValueKind
from sidelight.data.engines.duckdb import DuckDBSource, literal, silent_errors
from sidelight.data.reading.file_format import FileFormat

Spelled = Literal["text", "number", "truth", "date", "time"]
"""What values are, in whatever type they are held."""

MISSING = ("", "na", "n/a", "null", "-")
"""Texts that stand for a missing value unless a person says otherwise, in lower case."""
FIRST = 10_000
"""Records that suggest what a column holds."""
MOST_LABELS = 256
_MOST_ODD = 5
"""Most texts that are taken for oddities in a column of numbers or dates."""
"""Columns with more distinct texts get no label for each."""

_TYPES: dict[ValueKind, Spelled] = {
    "integer": "number",
    "real": "number",
    "decimal": "number",
    "boolean": "truth",
    "date": "date",
    "timestamp": "date",
    "instant": "date",
    "time": "time",
}


@dataclass(frozen=True)
class Seen:
    """One public column."""

    name: str
    spelled: Spelled
    kind: ValueKind
    """The type that holds it; text in a file."""
    order: Format = "ymd"
    is_sure: bool = True
    """Whether the order of day and month is beyond doubt."""
    present: int = 0
    """How many values are not missing."""
    has_missing: bool = False
    tokens: tuple[str, ...] = ()
    """Texts that were taken for missing values."""
    distinct: int = 0
    low: Any = None
    high: Any = None
    is_whole: bool = False
    decimals: int | None = None
    """Most decimals of a number; None if there are more than four."""
    has_time: bool = False
    spaces: float = 0.0
    """Mean number of spaces in a text."""
    is_code: bool = False
    """Whether every text has a digit, no space, and at most twelve characters."""
    labels: Mapping[Any, int] = field(default_factory=dict)
    """How often each value occurs, where there are few."""
    nearly: Literal["", "numbers", "dates"] = ""
    """What a text would spell if it were not for a few odd ones."""
    odd: tuple[str, ...] = ()
    """Those few."""


class PublicSurvey:
    """A public table, asked about all of its columns at once."""

    def __init__(self, source: DuckDBSource, *, file: FileFormat, missing: Iterable[str] = ()) -> None:
        self._source = source
        self._comma = source.kind == "file.csv" and file.decimal == ","
        self._reads_numbers = source.kind.startswith("file.") and source.kind != "file.parquet"
        """Only in text files are numbers and truths text; a frame has types for them."""
        given = (text.strip().lower() for text in missing)
        self._tokens = tuple(dict.fromkeys((*MISSING, *given)))
        names = ", ".join(f"c{place}" for place in range(len(source.names)))
        self._relation = f"{source.relation} AS raw({names})"
        self._is_short = True
        """Whether the first records are all of them, and distinct values are counted one by one."""

    def columns(self) -> list[Seen | None]:
        """Every column in its order; None for one of a type that no schema has."""
        suggested = self._suggest()
        found = self._check(suggested)
        # What the first records suggested may not hold for all of them.
        failed = {place: Seen(s.name, "text", s.kind) for place, s in found.items() if s.distinct < 0}
        found |= self._check(failed)
        found = self._with_labels(found)
        return [found.get(place) for place in range(len(self._source.names))]

    def common(self, place: int, most: int, prefix: int | None = None) -> list[str]:
        """The commonest texts of a column, or the commonest prefixes."""
        x = f"CAST(c{place} AS VARCHAR)"
        value = x if prefix is None else f"LEFT({x}, {prefix})"
        seen = f"{x} IS NOT NULL AND NOT ({self._is_token(x)})"
        asked = f"SELECT {value} FROM {self._relation} WHERE {seen} GROUP BY 1 ORDER BY COUNT(*) DESC, 1"
        return [line[0] for line in self._ask(f"{asked} LIMIT {most}")]

    def prefixes(self, place: int) -> list[int]:
        """About how many distinct prefixes there are, of one character, of two, and so on."""
        asked = ", ".join(f"approx_count_distinct(LEFT(CAST(c{place} AS VARCHAR), {k}))" for k in range(1, 7))
        return [int(number) for number in self._ask(f"SELECT {asked} FROM {self._relation}")[0]]

    def _suggest(self) -> dict[int, Seen]:
        held = self._source.types
        texts = [place for place, kind in enumerate(held) if kind == "text"]
        listed = ", ".join(f"CAST(c{place} AS VARCHAR)" for place in texts) or "1"
        lines = self._ask(f"SELECT {listed} FROM {self._relation} LIMIT {FIRST}")
        self._is_short = len(lines) < FIRST
        samples = dict(zip(texts, zip(*lines, strict=True), strict=True)) if lines and texts else {}
        found = {}
        for place, kind in enumerate(held):
            name = self._source.names[place]
            if kind == "text":
                values = [v for v in samples.get(place, ()) if v is not None]
                found[place] = self._suggest_text(name, values)
            elif kind is not None and kind in _TYPES:
                found[place] = Seen(name, _TYPES[kind], kind)
        return found

    def _suggest_text(self, name: str, values: Sequence[str]) -> Seen:
        said = {value.strip() for value in values if value.strip().lower() not in self._tokens}
        if said and self._reads_numbers:
            if all(text.lower() in TRUTHS for text in said) and not all(_is_plain(text) for text in said):
                return Seen(name, "truth", "text")
            numbers = {text.translate({44: 46, 46: 44}) for text in said} if self._comma else said
            if all(number_of(text) is not None and _is_plain(text) for text in numbers):
                return Seen(name, "number", "text")
        if said and all(clock_of(text) is not None for text in said):
            return Seen(name, "time", "text")
        orders: list[Format] = [
            order
            for order in ("ymd", "dmy", "mdy")
            if said and all(seconds_of(t, order) is not None for t in said)
        ]
        if orders:
            return Seen(name, "date", "text", order=orders[0], is_sure=len(orders) == 1)
        return self._nearly(name, said)

    def _nearly(self, name: str, said: set[str]) -> Seen:
        """Text of which all but a few distinct values are numbers or dates: a person should look at those."""
        most = min(_MOST_ODD, len(said) // 10)
        numbers = {text: text.translate({44: 46, 46: 44}) if self._comma else text for text in said}
        words = [text for text, number in numbers.items() if number_of(number) is None]
        # A leading zero is that of a code: such a column is text.
        is_plain = all(_is_plain(number) for text, number in numbers.items() if text not in words)
        if self._reads_numbers and is_plain and 0 < len(words) <= most:
            return Seen(name, "text", "text", nearly="numbers", odd=tuple(sorted(words)))
        for order in ("ymd", "dmy", "mdy"):
            words = [text for text in said if seconds_of(text, order) is None]
            if 0 < len(words) <= most:
                return Seen(name, "text", "text", nearly="dates", odd=tuple(sorted(words)))
        return Seen(name, "text", "text")

    def _check(self, suggested: Mapping[int, Seen]) -> dict[int, Seen]:
        if not suggested:
            return {}
        asked = [item for place, seen in suggested.items() for item in self._questions(place, seen)]
        # One SELECT within the other, so that every value is worked out once.
        values = [f"{self._value(place, seen)} AS v{place}" for place, seen in suggested.items()]
        texts = [place for place, seen in suggested.items() if seen.kind == "text"]
        values += [
            item for place in texts for item in (f"({self._is_token(f'c{place}')}) AS k{place}", f"c{place}")
        ]
        prepared = f"SELECT {', '.join(values)} FROM {self._relation}"
        answers = iter(self._ask(f"SELECT {', '.join(asked)} FROM ({prepared}) AS prepared")[0])
        return {place: self._answered(seen, answers) for place, seen in suggested.items()}

    def _questions(self, place: int, seen: Seen) -> list[str]:
        """Eleven for each column, in the order in which ``_answered`` takes them."""
        x, v, token = f"c{place}", f"v{place}", f"k{place}"
        is_text = seen.kind == "text"
        count = "COUNT(DISTINCT" if self._is_short else "approx_count_distinct("
        found = [
            f"COUNT(CASE WHEN NOT {token} THEN 1 END)" if is_text else "0",
            f"COUNT({v})",
            f"COUNT(*) - COUNT({v})",
            f"map_keys(histogram({x}) FILTER (WHERE {token} AND {x} IS NOT NULL))" if is_text else "NULL",
            f"{count} {v})",
        ]
        if seen.spelled in ("text", "truth"):
            length = f"LENGTH({v})"
            is_code = f"{length} <= 12 AND regexp_matches({v}, '^[^ ]*[0-9][^ ]*$')"
            shape = [f"AVG({length} - LENGTH(REPLACE({v}, ' ', '')))", f"BOOL_AND({is_code})"]
            return [*found, *["NULL"] * 4, *(shape if seen.spelled == "text" else ["NULL"] * 2)]
        if seen.spelled == "number":
            finite = f"CASE WHEN abs({v}) <> 'inf'::DOUBLE THEN {v} END"
            digits = " ".join(f"WHEN round({v}, {d}) = {v} THEN {d}" for d in range(5))
            most = "0" if seen.kind == "integer" else f"MAX(CASE WHEN {v} IS NULL THEN 0 {digits} ELSE 9 END)"
            zeros = (
                f"COALESCE(BOOL_OR(regexp_matches(TRIM({x}), '^[+-]?0[0-9]')), FALSE)" if is_text else "FALSE"
            )
            return [*found, f"MIN({finite})", f"MAX({finite})", most, zeros, *["NULL"] * 2]
        has_time = f"BOOL_OR({v} <> date_trunc('day', {v}))" if seen.spelled == "date" else "TRUE"
        return [*found, f"MIN({v})", f"MAX({v})", has_time, "FALSE", *["NULL"] * 2]

    def _answered(self, seen: Seen, answers: Any) -> Seen:
        stated, present, missing, tokens, distinct, low, high, fact, is_wrong, spaces, is_code = (
            next(answers) for _ in range(11)
        )
        if seen.kind == "text" and (present < stated or is_wrong):
            distinct = -1  # not all of it is what it seemed to be
        return Seen(
            seen.name, seen.spelled, seen.kind, seen.order, seen.is_sure,
            present=int(present), has_missing=missing > 0,
            tokens=tuple(sorted(tokens or ())), distinct=int(distinct),
            low=_moment(low), high=_moment(high),
            is_whole=seen.spelled == "number" and fact == 0,
            decimals=int(fact) if seen.spelled == "number" and fact is not None and fact < 9 else None,
            has_time=seen.spelled == "date" and bool(fact),
            spaces=float(spaces or 0), is_code=bool(is_code),
            nearly=seen.nearly, odd=seen.odd,
        )  # fmt: skip

    def _with_labels(self, found: Mapping[int, Seen]) -> dict[int, Seen]:
        few = [
            place for place, seen in found.items() if seen.distinct <= 1.2 * MOST_LABELS and _has_labels(seen)
        ]
        if not few:
            return dict(found)
        asked = ", ".join(f"histogram({self._value(place, found[place])})" for place in few)
        answers = self._ask(f"SELECT {asked} FROM {self._relation}")[0]
        labelled = dict(found)
        for place, labels in zip(few, answers, strict=True):
            seen = found[place]
            labelled[place] = Seen(**{**vars(seen), "labels": labels or {}, "distinct": len(labels or {})})
        return labelled

    def _value(self, place: int, seen: Seen) -> str:
        """The value of a record in SQL; NULL where it is missing, or not what it should be."""
        x = f"c{place}"
        if seen.kind != "text":
            if seen.spelled == "number":
                return f"NULLIF(CAST({x} AS DOUBLE), 'nan'::DOUBLE)"
            if seen.spelled == "date":
                # Without the extension for zones, an instant is what the clock in Greenwich showed.
                zoned = f"CAST({x} AS TIMESTAMPTZ)"
                held = zoned if seen.kind == "instant" else f"CAST({x} AS TIMESTAMP)"
                plain = f"make_timestamp(epoch_us({held}))" if seen.kind == "instant" else held
                return f"CASE WHEN isfinite({held}) THEN {plain} END"
            return x
        there = f"CASE WHEN NOT ({self._is_token(x)}) THEN {{}} END"
        t = f"TRIM({x})"
        if seen.spelled == "number":
            written = f"TRANSLATE({t}, ',.', '.,')" if self._comma else t
            return there.format(f"TRY_CAST({written} AS DOUBLE)")
        if seen.spelled == "date":
            return there.format(_moment_in(t, seen.order))
        if seen.spelled == "time":
            return there.format(f"TRY_CAST({t} AS TIME)")
        if seen.spelled == "truth":
            return there.format(f"CASE WHEN {_one_of(f'LOWER({t})', TRUTHS)} THEN LOWER({t}) END")
        return there.format(f"CAST({x} AS VARCHAR)")

    def _is_token(self, x: str) -> str:
        return f"{x} IS NULL OR {_one_of(f'LOWER(TRIM({x}))', self._tokens)}"

    def _ask(self, sql: str) -> list[Any]:
        with silent_errors(self._source.explain):
            found: list[Any] = self._source.run(sql).fetchall()
        return found


def _has_labels(seen: Seen) -> bool:
    return seen.spelled in ("text", "truth") or (seen.spelled == "number" and seen.is_whole)


def _is_plain(text: str) -> bool:
    """Whether it is a number as numbers are written: a leading zero is that of a code."""
    body = text.lstrip("+-")
    return not (body[:1] == "0" and body[1:2].isdigit()) and (body[:1].isdigit() or body[:1] == ".")


def _moment_in(t: str, order: Format) -> str:
    if order == "ymd":
        return f"TRY_CAST({t} AS TIMESTAMP)"
    day = {"dmy": "%d-%m-%Y", "mdy": "%m-%d-%Y"}[order]
    forms = ", ".join(literal(day + clock) for clock in ("", " %H:%M", " %H:%M:%S"))
    return f"try_strptime(TRANSLATE(REPLACE({t}, 'T', ' '), './', '--'), [{forms}])"


def _one_of(expression: str, texts: Iterable[str]) -> str:
    return f"{expression} IN ({', '.join(map(literal, texts))})"


def _moment(bound: Any) -> Any:
    return bound.replace(microsecond=0) if isinstance(bound, (datetime, time)) else bound
