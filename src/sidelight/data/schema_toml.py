"""A schema as TOML text, and back.

Everything that has a meaning is written, defaults left out, so that equal schemas have
equal texts: ``Schema.fingerprint`` is a hash of that text.
"""

import re
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from sidelight._check import brief
from sidelight._foreign import ForeignError, parse_toml
from sidelight.data.column import CategoricalColumn, Column, IntegerColumn, RealColumn
from sidelight.data.domain import Combination
from sidelight.data.schema import UNSAID, Schema
from sidelight.errors import SchemaError, SettingError
from sidelight.privacy.unit import Unit

_KINDS: dict[str, type[Column]] = {kind.kind: kind for kind in (CategoricalColumn, IntegerColumn, RealColumn)}
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_WIDTH = 100
_UNWRITTEN = ("name", "note")


def parse(text: str) -> Schema:
    """The schema that ``text`` declares; every mistake is named."""
    try:
        tree = parse_toml(text)
    except ForeignError as error:
        raise SchemaError(f"the schema cannot be read: {error}.") from error
    _refuse_unknown(tree, ("unit", "columns", "impossible"), "the schema")
    columns = tree.get("columns", {})
    if not isinstance(columns, dict):
        raise SchemaError("the schema's columns must be tables such as [columns.age].")
    return Schema(
        tuple(_column(name, keys) for name, keys in columns.items()),
        _unit(tree["unit"]) if "unit" in tree else UNSAID,
        impossible=_impossible(tree.get("impossible", [])),
    )


def render(schema: Schema, *, notes: bool = True, unit: bool = False) -> str:
    """The schema as TOML. A unit is written if the schema declares it, or if ``unit`` is true."""
    lines = _comment(schema.note) if notes else []
    if unit or schema.says_unit:
        lines += ["[unit]", f"relation = {_value(schema.unit.relation)}", f"records = {schema.unit.records}"]
    for column in schema.columns:
        lines += [*[""] * bool(lines), f"[columns.{_key(column.name)}]"]
        if notes:
            lines += _comment(column.note)
        lines.append(f"kind = {_value(column.kind)}")
        lines += [f"{key} = {_value(value)}" for key, value in _declared(column).items()]
    for combination in schema.impossible:
        lines += ["", "[[impossible]]"]
        said = zip(combination.attrs, combination.values, strict=True)
        lines += [f"{_key(attr)} = {_value(labels)}" for attr, labels in said]
    return "\n".join(lines) + "\n"


def _declared(column: Column) -> dict[str, Any]:
    """A column's declaration, in the order people write it; defaults are left out."""
    own = [f for f in fields(column) if not f.kw_only] + [f for f in fields(column) if f.kw_only]
    said = {f.name: (getattr(column, f.name), f.default) for f in own if f.name not in _UNWRITTEN}
    return {key: value for key, (value, default) in said.items() if not _same(value, default)}


def _same(value: object, default: object) -> bool:
    return type(value) is type(default) and value == default


def _column(name: str, keys: Any) -> Column:
    if not isinstance(keys, dict):
        raise SchemaError(f"column {brief(name)} must be a table such as [columns.age].")
    kind = _KINDS.get(str(keys.get("kind")))
    if kind is None:
        listed = ", ".join(map(repr, _KINDS))
        raise SchemaError(
            f"column {brief(name)}: kind must be one of {listed}; got {brief(keys.get('kind'))}."
        )
    known = [f.name for f in fields(kind) if f.name not in _UNWRITTEN]
    _refuse_unknown(keys, ("kind", *known), f"column {brief(name)}")
    said = {key: value for key, value in keys.items() if key != "kind"}
    for key in ("labels", "edges"):
        if key in said:
            if not isinstance(said[key], list):
                raise SchemaError(f"column {brief(name)}: {key} must be a list; got {brief(said[key])}.")
            said[key] = tuple(said[key])
    return kind(name, **said)


def _impossible(listed: Any) -> tuple[Combination, ...]:
    if not isinstance(listed, list) or not all(isinstance(said, dict) for said in listed):
        raise SchemaError("impossible combinations must be tables: [[impossible]], in double brackets.")
    return tuple(Combination.of(said) for said in listed)


def _unit(keys: Any) -> Unit:
    if not isinstance(keys, dict):
        raise SchemaError("the schema's unit must be a table: [unit].")
    _refuse_unknown(keys, ("relation", "records"), "[unit]")
    try:
        return Unit(keys.get("relation", "replace"), keys.get("records", 1))
    except (SettingError, TypeError) as error:
        raise SchemaError(f"[unit]: {error}") from error


def _refuse_unknown(keys: Mapping[str, Any], known: tuple[str, ...], where: str) -> None:
    unknown = [key for key in keys if key not in known]
    if unknown:
        raise SchemaError(
            f"{where} has an unknown key {', '.join(map(brief, unknown[:5]))}; known are {', '.join(known)}."
        )


def _comment(note: str) -> list[str]:
    return [f"# {_CONTROL.sub(' ', line)}".rstrip() for line in note.splitlines()]


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _text(name)


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, tuple):
        items = [_value(item) for item in value]
        flat = f"[{', '.join(items)}]"
        return flat if len(flat) <= _WIDTH else "[\n" + "".join(f"  {item},\n" for item in items) + "]"
    return repr(value)


def _text(text: str) -> str:
    """A basic TOML string: quotes, backslashes and control characters escaped."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + _CONTROL.sub(lambda found: f"\\u{ord(found[0]):04X}", escaped) + '"'
