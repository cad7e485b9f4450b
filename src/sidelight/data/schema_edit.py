"""A schema's TOML text, changed in one of its tables; all else stays as people wrote it, comments included.

Lines of keys that keep their values stay letter by letter. A comment on a line that changes stays with it.
"""

import re
import textwrap

from sidelight._foreign import ForeignError, parse_toml
from sidelight.data.columns.column import Column
from sidelight.data.schema import Schema
from sidelight.data.schema_toml import parse, render, table_of, table_of_unit
from sidelight.errors import SchemaError

_KEY = re.compile(r"\s*([A-Za-z0-9_-]+)\s*=")
_TOKEN = re.compile(r"""\"(?:\\.|[^\"\\])*\"|'[^']*'|(#[^\n]*)""")
"""A TOML string, in which a # is a letter like any other; or a comment."""


def with_column(text: str, column: Column) -> str:
    """A schema's text in which this column's table is changed, or added at the end; all else stays."""
    return _with_table(text, table_of(column))


def with_records(text: str, records: int, note: str) -> str:
    """A schema's text whose unit uses so many records of each person; all else stays."""
    unit = parse(text).unit.with_records(records)
    return _with_table(text, table_of_unit(unit, "\n".join(textwrap.wrap(note, 100))))


def rewritten(text: str, schema: Schema) -> str:
    """A schema's text, changed to declare this schema: comments on what stays are kept."""
    try:
        before = {column.name: column for column in parse(text).columns}
    except SchemaError:
        return render(schema)
    changed = text
    for column in schema.columns:
        if before.get(column.name) != column:
            changed = with_column(changed, column)
    return if_it_declares(changed, schema)


def if_it_declares(text: str, schema: Schema) -> str:
    """The text, if it declares this schema; otherwise the schema written anew."""
    try:
        is_so = parse(text) == schema
    except SchemaError:
        is_so = False
    # A file may declare its columns in a way of its own; then all of it is written anew.
    return text if is_so else render(schema)


def _with_table(text: str, table: list[str]) -> str:
    """The text with this table, whose first line is its header."""
    lines = text.splitlines()
    starts = [place for place, line in enumerate(lines) if line.split("#")[0].strip() == table[0]]
    if not starts:
        # Before the first [[impossible]], say, there may be comments that belong to it: so at the end.
        return "\n".join([*lines, *[""] * bool(lines), *table]) + "\n"
    (start,) = starts
    after = range(start + 1, len(lines))
    end = next((place for place in after if lines[place].lstrip().startswith("[")), len(lines))
    while end > start + 1 and lines[end - 1].lstrip().startswith("#"):
        end -= 1  # comments above the next table are its own
    body = lines[start + 1 : end]
    while body and not body[-1].strip():
        body.pop()
    rest = lines[end:]
    try:
        changed = _changed(body, table[1:])
    except ForeignError:  # a value is written over several lines in a way that is not told apart here
        changed = table[1:]
    return "\n".join([*lines[: start + 1], *changed, *[""] * bool(rest), *rest]) + "\n"


def _changed(body: list[str], table: list[str]) -> list[str]:
    """The lines of a table, changed to say what ``table`` says; a comment of ``table`` comes first."""
    note = [line for line in table if line.startswith("#")]
    wanted = {key: lines for key, lines in _statements(table) if key is not None}
    made = []
    for key, lines in _statements(body):
        if key is None:
            made += lines
            continue
        told = wanted.pop(key, [])
        if told and parse_toml("\n".join(told)) == parse_toml("\n".join(lines)):
            made += lines
            continue
        comments = [found[1] for found in _TOKEN.finditer("\n".join(lines)) if found[1]]
        if len(comments) == len(told) == len(lines) == 1:
            made.append(f"{told[0]}  {comments[0]}")
        else:
            made += [*comments, *told]
    return [*note, *made, *(line for lines in wanted.values() for line in lines)]


def _statements(lines: list[str]) -> list[tuple[str | None, list[str]]]:
    """Each key with the lines of its value, which may be several; comments and blank lines without a key."""
    found: list[tuple[str | None, list[str]]] = []
    depth = 0
    for line in lines:
        if depth > 0:
            found[-1][1].append(line)
        else:
            key = _KEY.match(line)
            found.append((key[1] if key else None, [line]))
        plain = _TOKEN.sub("", line)
        depth += sum(plain.count(mark) for mark in "[{") - sum(plain.count(mark) for mark in "]}")
    return found
