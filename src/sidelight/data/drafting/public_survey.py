"""The facts about the columns of a PUBLIC table that a draft of a schema needs, in a few passes by DuckDB.

The first records suggest what the text of each column spells. One pass over all records finds bounds, and
about how many distinct values there are. A second pass counts each distinct text of the columns that have
not too many of them: whatever else is asked about such a column is asked of its texts, not of all records.
Columns of more texts take a few further passes, all of them together. However long the table is, only its
beginning and the texts that are counted are brought here.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, time
from typing import Any

from sidelight.data.columns.moment import Format
from sidelight.data.columns.value import TRUTHS
from sidelight.data.drafting.spelling import Spelled, Spelling, spelling_of
from sidelight.data.engines.base import ValueKind
from sidelight.data.engines.duckdb import DuckDBSource, connect, literal, silent_errors
from sidelight.data.reading.file_format import FileFormat

MISSING = ("", "na", "n/a", "null", "-")
"""Texts that stand for a missing value unless a person says otherwise, in lower case."""
FIRST = 10_000
"""Records that suggest what a column holds."""
FREE = 0.3
"""Share of distinct texts from which on a column may be free text."""
MOST_LABELS = 256
"""Columns with more distinct texts get no label for each."""
_MOST_COUNTED = 1 << 16
"""Columns of about as many distinct texts are counted text by text."""
_MOST_TOGETHER = 60
"""Columns whose texts are counted in one pass: SQL tells about 64 of them apart."""
_PREFIXES, _LONGEST_PREFIX = 100, 6
"""Most prefixes of a column of codes, and most characters of one."""

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
    kind: ValueKind
    """The type that holds it; text in a file."""
    spelling: Spelling
    """The kind of its values, whatever type holds them."""
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
    """Mean number of spaces in a text, where there are many texts."""
    is_code: bool = False
    """Whether each of many texts has a digit, no space, and at most twelve characters."""
    prefix: int | None = None
    """How many first characters tell codes apart into few groups; None where there are no such codes."""
    labels: Mapping[Any, int] = field(default_factory=dict)
    """How often each value occurs, or each prefix, where there are few."""
    in_lowest_tenth: float = 0.0
    """Share of the first numbers that lie in the lowest tenth between low and high."""

    @property
    def spelled(self) -> Spelled:
        return self.spelling.spelled


@dataclass(frozen=True)
class _Asked:
    """The subject: the records of a table, or the distinct texts of a column, each n times."""

    run: Callable[[str], Any]
    relation: str
    """Has the columns c0, c1, … and n."""


class PublicSurvey:
    """A public table, asked about all of its columns at once."""

    def __init__(self, source: DuckDBSource, *, file: FileFormat, missing: Iterable[str] = ()) -> None:
        self._source = source
        self._comma = source.kind == "file.csv" and file.decimal == ","
        self._reads_numbers = source.kind.startswith("file.") and source.kind != "file.parquet"
        """Only in text files are numbers and truths text; a frame has types for them."""
        self._given = tuple(dict.fromkeys(text.strip().lower() for text in missing))
        self._tokens = tuple(dict.fromkeys((*MISSING, *self._given)))
        names = ", ".join(f"c{place}" for place in range(len(source.names)))
        texts = [f"CAST(c{place} AS VARCHAR) AS c{place}" for place in self._texts]
        # Labels of a type of their own are texts, too.
        replaced = f" REPLACE ({', '.join(texts)})" if texts else ""
        relation = f"(SELECT *{replaced}, 1 AS n FROM {source.relation} AS raw({names})) AS public"
        self._records = _Asked(source.run, relation)
        self._counted: dict[int, _Asked] = {}
        """The columns whose texts were counted."""
        self._is_short = True
        """Whether the first records are all of them, and distinct values are counted one by one."""

    def columns(self) -> list[Seen | None]:
        """Every column in its order; None for one of a type that no schema has."""
        suggested = self._suggest()
        texts = {place: seen for place, seen in suggested.items() if seen.kind == "text"}
        typed = {place: seen for place, seen in suggested.items() if seen.kind != "text"}
        asked = {place: {"distinct": self._distinct(f"c{place}")} for place in texts}
        asked |= {place: self._questions(place, seen) for place, seen in typed.items()}
        answers = self._ask(typed, asked)
        found = {place: _answered(seen, answers[place]) for place, seen in typed.items()}
        self._count_texts([place for place in texts if answers[place]["distinct"] <= _MOST_COUNTED])
        found |= self._check(texts)
        # What the first records suggested may not hold for all of them.
        failed = {place: Seen(s.name, s.kind, Spelling()) for place, s in found.items() if s.distinct < 0}
        found |= self._check(failed)
        found |= self._look_closer(found)
        found |= self._list_prefixes(found)
        found |= self._look_for_tails(found)
        return [found.get(place) for place in range(len(self._source.names))]

    def commonest(self, place: int, most: int) -> list[str]:
        """The commonest texts of a column."""
        asked, x = self._counted.get(place, self._records), f"c{place}"
        listed = f"SELECT {x} AS x, SUM(n) AS m FROM {asked.relation} WHERE NOT ({self._is_token(x)})"
        return [line[0] for line in self._run(f"{listed} GROUP BY 1 ORDER BY m DESC, x LIMIT {most}", asked)]

    @property
    def _texts(self) -> list[int]:
        return [place for place, kind in enumerate(self._source.types) if kind == "text"]

    def _suggest(self) -> dict[int, Seen]:
        listed = ", ".join(f"c{place}" for place in self._texts) or "1"
        lines = self._run(f"SELECT {listed} FROM {self._records.relation} LIMIT {FIRST}")
        self._is_short = len(lines) < FIRST
        samples = dict(zip(self._texts, zip(*lines, strict=True), strict=False)) if lines else {}
        found = {}
        for place, (name, kind) in enumerate(zip(self._source.names, self._source.types, strict=True)):
            if kind == "text":
                values = [text for text in samples.get(place, ()) if text is not None]
                about = {"numbers": self._reads_numbers, "comma": self._comma}
                found[place] = Seen(name, kind, spelling_of(values, self._tokens, **about))
            elif kind is not None and kind in _TYPES:
                found[place] = Seen(name, kind, Spelling(_TYPES[kind]))
        return found

    def _count_texts(self, places: Sequence[int]) -> None:
        """Count every distinct text of these columns, in one pass."""
        connection = connect()
        for start in range(0, len(places), _MOST_TOGETHER):
            some = places[start : start + _MOST_TOGETHER]
            listed = ", ".join(f"c{place}" for place in some)
            sets = ", ".join(f"(c{place})" for place in some)
            counted = (
                f"SELECT {listed}, GROUPING({listed}) AS w, SUM(n)::BIGINT AS n FROM {self._records.relation}"
            )
            with silent_errors(self._source.explain):
                table = self._source.table(f"{counted} GROUP BY GROUPING SETS ({sets})")
                connection.register(f"counted_{start}", table)
            for i, place in enumerate(reversed(some)):
                # GROUPING has a 0 for the one column that was grouped by.
                which = (1 << len(some)) - 1 - (1 << i)
                own = f"(SELECT c{place}, n FROM counted_{start} WHERE w = {which}) AS own"
                self._counted[place] = _Asked(connection.sql, own)

    def _check(self, suggested: Mapping[int, Seen]) -> dict[int, Seen]:
        answers = self._ask(suggested, {place: self._questions(place, s) for place, s in suggested.items()})
        return {place: _answered(seen, answers[place]) for place, seen in suggested.items()}

    def _distinct(self, x: str) -> str:
        return f"COUNT(DISTINCT {x})" if self._is_short else f"approx_count_distinct({x})"

    def _questions(self, place: int, seen: Seen) -> dict[str, str]:
        """For ``_answered``; c is the text, k whether it stands for a missing value, and v the value."""
        x, v, is_token = f"c{place}", f"v{place}", f"k{place}"
        asked = {"records": self._number(place, "n"), "distinct": self._distinct(v)}
        asked["present"] = self._number(place, f"CASE WHEN {v} IS NOT NULL THEN n END")
        if seen.kind == "text":
            asked["tokens"] = f"map_keys(histogram(CASE WHEN {is_token} THEN {x} END))"
            asked["stated"] = self._number(place, f"CASE WHEN NOT {is_token} THEN n END")
        if seen.spelled in ("number", "date", "time"):
            finite = f"CASE WHEN isfinite({v}) THEN {v} END" if seen.kind in ("text", "real") else v
            bounded = finite if seen.spelled == "number" else v
            asked |= {"low": f"MIN({bounded})", "high": f"MAX({bounded})"}
        if seen.spelled == "number" and seen.kind != "integer":
            digits = " ".join(f"WHEN round({v}, {d}) = {v} THEN {d}" for d in range(5))
            asked["decimals"] = f"MAX(CASE WHEN {v} IS NULL THEN 0 {digits} ELSE 9 END)"
        if seen.spelled == "number" and seen.kind == "text":
            # A leading zero is that of a code.
            is_code = f"CASE WHEN contains({x}, '0') THEN regexp_matches(TRIM({x}), '^[+-]?0[0-9]') END"
            asked["is_code"] = f"COALESCE(BOOL_OR({is_code}), FALSE)"
        if seen.spelled == "date":
            asked["has_time"] = f"BOOL_OR({v} <> date_trunc('day', {v}))"
        return asked

    def _look_closer(self, found: Mapping[int, Seen]) -> dict[int, Seen]:
        """The labels of columns that have few; of texts that have many, what they look like."""
        asked: dict[int, dict[str, str]] = {}
        for place, seen in found.items():
            v = f"v{place}"
            is_few = seen.distinct <= 1.2 * MOST_LABELS
            if is_few and (seen.spelled in ("text", "truth") or (seen.spelled == "number" and seen.is_whole)):
                asked[place] = {"labels": self._listed(place, v)}
            if seen.spelled == "text" and not is_few:
                is_code = f"LENGTH({v}) <= 12 AND regexp_matches({v}, '^[^ ]*[0-9][^ ]*$')"
                asked[place] = {"is_code": f"BOOL_AND({is_code})"} | {
                    f"prefixes_{k}": self._distinct(f"LEFT({v}, {k})") for k in range(1, _LONGEST_PREFIX + 1)
                }
            if seen.spelled == "text" and (not is_few or seen.distinct > FREE * seen.present):
                spaces = f"n * (LENGTH({v}) - LENGTH(REPLACE({v}, ' ', '')))"
                asked[place]["spaces"] = f"COALESCE(SUM({spaces}), 0)"
        answers = self._ask(found, asked)
        return {place: _looked_at(found[place], answers[place]) for place in asked}

    def _number(self, place: int, records: str) -> str:
        """How many records these are, by their numbers n."""
        return f"COALESCE(SUM({records}), 0)" if place in self._counted else f"COUNT({records})"

    def _listed(self, place: int, value: str) -> str:
        """Every value, and how often it occurs."""
        # Of texts that were counted, several may have the same value.
        return f"list(({value}, n))" if place in self._counted else f"map_entries(histogram({value}))"

    def _list_prefixes(self, found: Mapping[int, Seen]) -> dict[int, Seen]:
        cut = {place: seen for place, seen in found.items() if seen.prefix is not None}
        asked = {p: {"labels": self._listed(p, f"LEFT(v{p}, {seen.prefix})")} for p, seen in cut.items()}
        answers = self._ask(found, asked)
        return {place: replace(seen, labels=_summed(answers[place]["labels"])) for place, seen in cut.items()}

    def _look_for_tails(self, found: Mapping[int, Seen]) -> dict[int, Seen]:
        """How many of the first numbers are small, beside the largest: incomes and costs have long tails."""
        asked = {}
        for place, seen in found.items():
            if seen.spelled == "number" and seen.low is not None and seen.high is not None:
                tenth = float(seen.low) + (float(seen.high) - float(seen.low)) / 10
                asked[place] = {
                    "below": self._number(place, f"CASE WHEN v{place} < {tenth!r} THEN n END"),
                    "of": self._number(place, f"CASE WHEN v{place} IS NOT NULL THEN n END"),
                }
        first = f"(SELECT * FROM {self._records.relation} LIMIT {FIRST}) AS first_records"
        answers = self._ask(found, asked, _Asked(self._records.run, first))
        return {
            place: replace(found[place], in_lowest_tenth=float(told["below"]) / max(float(told["of"]), 1.0))
            for place, told in answers.items()
        }

    def _ask(
        self,
        seen: Mapping[int, Seen],
        asked: Mapping[int, dict[str, str]],
        records: _Asked | None = None,
    ) -> dict[int, dict[str, Any]]:
        """Questions about several columns: of those that were counted each by itself, others in one pass.

        Of columns that are not in ``seen``, only the raw c can be asked about: values take time.
        """
        alone = [[place] for place in asked if place in self._counted]
        together = [place for place in asked if place not in self._counted]
        found: dict[int, dict[str, Any]] = {}
        for places in (*alone, together) if together else alone:
            where = self._counted.get(places[0], records or self._records)
            relation = where.relation
            # One SELECT within the other, so that every value is worked out once.
            for layer in filter(None, self._layers(seen, places)):
                relation = f"(SELECT *, {', '.join(layer)} FROM {relation}) AS prepared"
            listed = ", ".join(sql for place in places for sql in asked[place].values())
            answers = iter(self._run(f"SELECT {listed} FROM {relation}", where)[0])
            found |= {place: {name: next(answers) for name in asked[place]} for place in places}
        return found

    def _layers(self, seen: Mapping[int, Seen], places: Sequence[int]) -> list[list[str]]:
        """What a text spells (s), whether it stands for a missing value (k), and the value (v)."""
        spelled, is_token, values = [], [], []
        for place in filter(seen.__contains__, places):
            one, x, value = seen[place], f"c{place}", f"s{place}"
            if one.kind != "text":
                values.append(f"{_typed(one, x)} AS v{place}")
                continue
            if one.spelled == "text":
                is_missing, value = self._is_token(x), x
            else:
                spelled.append(f"{self._spelled(one, x)} AS {value}")
                # Text that spells something is rarely a token as well: it takes less to look for that first.
                both = "".join(f" OR {value} = {self._spelled(one, literal(text))}" for text in self._given)
                is_missing = f"CASE WHEN {value} IS NULL{both} THEN {self._is_token(x)} ELSE FALSE END"
            is_token.append(f"({is_missing}) AS k{place}")
            values.append(f"CASE WHEN NOT k{place} THEN {value} END AS v{place}")
        return [spelled, is_token, values]

    def _spelled(self, seen: Seen, x: str) -> str:
        """What text spells, in SQL; NULL where it does not spell what it should."""
        t = f"TRIM({x})"
        if seen.spelled == "number":
            written = f"TRANSLATE({t}, ',.', '.,')" if self._comma else t
            return f"TRY_CAST({written} AS DOUBLE)"
        if seen.spelled == "date":
            return _moment_in(t, seen.spelling.order)
        if seen.spelled == "time":
            return f"TRY_CAST({t} AS TIME)"
        return f"CASE WHEN {self._source.dialect.one_of(f'LOWER({t})', list(TRUTHS))} THEN LOWER({t}) END"

    def _is_token(self, x: str) -> str:
        return f"{x} IS NULL OR {self._source.dialect.one_of(f'LOWER(TRIM({x}))', self._tokens)}"

    def _run(self, sql: str, where: _Asked | None = None) -> list[Any]:
        with silent_errors(self._source.explain):
            found: list[Any] = (where or self._records).run(sql).fetchall()
        return found


def _answered(seen: Seen, answers: Mapping[str, Any]) -> Seen:
    is_wrong = seen.kind == "text" and (answers["present"] < answers["stated"] or answers.get("is_code"))
    decimals = answers.get("decimals", 0)
    return replace(
        seen,
        present=int(answers["present"]),
        has_missing=answers["present"] < answers["records"],
        tokens=tuple(sorted(answers.get("tokens") or ())),
        distinct=-1 if is_wrong else answers["distinct"],
        low=_moment(answers.get("low")),
        high=_moment(answers.get("high")),
        is_whole=seen.spelled == "number" and decimals == 0,
        decimals=decimals if seen.spelled == "number" and decimals is not None and decimals < 9 else None,
        has_time=bool(answers.get("has_time")),
    )


def _looked_at(seen: Seen, answers: Mapping[str, Any]) -> Seen:
    if "labels" in answers:
        labels = _summed(answers["labels"])
        seen = replace(seen, labels=labels, distinct=len(labels))
    if "spaces" in answers:
        seen = replace(seen, spaces=float(answers["spaces"]) / max(seen.present, 1))
    if answers.get("is_code"):
        counts = [answers[f"prefixes_{k}"] for k in range(1, _LONGEST_PREFIX + 1)]
        few = [count for count in counts if count <= _PREFIXES]
        # A further character that tells nothing more, such as a point, is left out.
        shortest = next((k for k, count in enumerate(few, start=1) if count >= 0.95 * few[-1]), None)
        seen = replace(seen, is_code=True, prefix=shortest)
    return seen


def _summed(listed: Iterable[Any] | None) -> dict[Any, int]:
    """How often each value occurs; missing ones are left out."""
    found: dict[Any, int] = {}
    for one in listed or ():
        value, often = one.values() if isinstance(one, dict) else one
        if value is not None:
            found[value] = found.get(value, 0) + int(often)
    return found


def _typed(seen: Seen, x: str) -> str:
    """A value that has a type of its own, in SQL; NULL where it is missing."""
    if seen.spelled == "number":
        return f"NULLIF(CAST({x} AS DOUBLE), 'nan'::DOUBLE)"
    if seen.spelled == "date":
        # Without the extension for zones, an instant is what the clock in Greenwich showed.
        held = f"CAST({x} AS {'TIMESTAMPTZ' if seen.kind == 'instant' else 'TIMESTAMP'})"
        plain = f"make_timestamp(epoch_us({held}))" if seen.kind == "instant" else held
        return f"CASE WHEN isfinite({held}) THEN {plain} END"
    return x


def _moment_in(t: str, order: Format) -> str:
    if order == "ymd":
        return f"TRY_CAST({t} AS TIMESTAMP)"
    day = {"dmy": "%d-%m-%Y", "mdy": "%m-%d-%Y"}[order]
    forms = ", ".join(literal(day + clock) for clock in ("", " %H:%M", " %H:%M:%S"))
    return f"try_strptime(TRANSLATE(REPLACE({t}, 'T', ' '), './', '--'), [{forms}])"


def _moment(bound: Any) -> Any:
    return bound.replace(microsecond=0) if isinstance(bound, (datetime, time)) else bound
