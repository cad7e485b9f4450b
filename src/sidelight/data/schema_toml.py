"""A schema as TOML text, and back.

Everything that has a meaning is written, defaults left out, so that equal schemas have
equal texts: ``Schema.fingerprint`` is a hash of that text.
"""

import re
from collections.abc import Mapping
from dataclasses import fields
from datetime import date, time
from itertools import pairwise
from typing import Any

from sidelight._check import brief, hint
from sidelight._foreign import ForeignError, parse_toml
from sidelight.data.columns.column import CategoricalColumn, Column, IntegerColumn, RealColumn
from sidelight.data.columns.constraints import Constraint, Determines, Order, Sum
from sidelight.data.columns.moment_columns import DateColumn, DatetimeColumn, TimeColumn
from sidelight.data.columns.public_rules import PublicRules
from sidelight.data.domain import Combination
from sidelight.data.reading.file_format import FileFormat
from sidelight.data.schema import UNSAID, Schema
from sidelight.errors import SchemaError, SettingError
from sidelight.privacy.unit import AUTO, Unit

KINDS: dict[str, type[Column]] = {
    kind.kind: kind
    for kind in (CategoricalColumn, IntegerColumn, RealColumn, DateColumn, DatetimeColumn, TimeColumn)
}
_OTHER_NAMES = {
    **dict.fromkeys(("number", "numeric", "float", "double", "decimal", "continuous"), "real"),
    **dict.fromkeys(("int", "count", "whole", "discrete"), "integer"),
    **dict.fromkeys(("text", "string", "str", "label", "labels", "factor", "nominal", "enum"), "categorical"),
    **dict.fromkeys(("bool", "boolean", "binary", "ordinal"), "categorical"),
    "timestamp": "datetime",
}
"""Kinds by the names that other tools give them."""
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
    _refuse_unknown(tree, ("unit", "file", "columns", "impossible", "constraint", "public"), "the schema")
    columns = tree.get("columns", {})
    if not isinstance(columns, dict):
        raise SchemaError("the schema's columns must be tables such as [columns.age].")
    return Schema(
        tuple(column_of(name, keys) for name, keys in columns.items()),
        _unit(tree["unit"]) if "unit" in tree else UNSAID,
        impossible=_impossible(tree.get("impossible", [])),
        constraints=_constraints(tree.get("constraint", [])),
        file=_file(tree.get("file", {})),
        public=PublicRules.of(tree.get("public", {})),
    )


def render(schema: Schema, *, notes: bool = True, unit: bool = False, public: bool = True) -> str:
    """The schema as TOML. A unit is written if the schema declares it, or if ``unit`` is true."""
    lines = _comment(schema.note) if notes else []
    if unit or schema.says_unit:
        lines += table_of_unit(schema.unit)
    if schema.file != FileFormat():
        written = {f.name: getattr(schema.file, f.name) for f in fields(schema.file)}
        usual = FileFormat()
        lines += [*[""] * bool(lines), "[file]"]
        lines += [
            f"{key} = {_value(value)}" for key, value in written.items() if value != getattr(usual, key)
        ]
    for column in schema.columns:
        lines += [*[""] * bool(lines), *table_of(column, notes=notes)]
    for constraint in schema.constraints:
        lines += ["", "[[constraint]]"]
        lines += [
            f"{key} = {_table(v) if key == 'map' else _value(v)}" for key, v in constraint.said().items()
        ]
        lines += [f"violated = {_value(constraint.violated)}"] * (constraint.violated != "keep")
    for combination in schema.impossible:
        lines += ["", "[[impossible]]"]
        said = zip(combination.attrs, combination.values, strict=True)
        lines += [f"{_key(attr)} = {_value(labels)}" for attr, labels in said]
    if public:
        lines += _public(schema.public)
    return "\n".join(lines) + "\n"


def table_of(column: Column, *, notes: bool = True) -> list[str]:
    """The lines that declare one column."""
    lines = [f"[columns.{_key(column.name)}]", *(_comment(column.note) if notes else [])]
    lines.append(f"kind = {_value(column.kind)}")
    return lines + [
        f"{key} = {_table(value) if key == 'aliases' else _value(value)}"
        for key, value in declared(column).items()
    ]


def _public(rules: PublicRules) -> list[str]:
    lines = ["", "[public]", f"weight = {_value(rules.weight)}"] if rules.weight else []
    for name, values in rules.map.items():
        lines += ["", f"[public.map.{_key(name)}]"]
        for value, targets in values.items():
            lines.append(f"{_text(value)} = {_value(targets[0] if len(targets) == 1 else targets)}")
    return lines


def declared(column: Column) -> dict[str, Any]:
    """A column's declaration, in the order people write it; kind and defaults are left out."""
    own = [f for f in fields(column) if not f.kw_only] + [f for f in fields(column) if f.kw_only]
    said = {f.name: (getattr(column, f.name), f.default) for f in own if f.name not in _UNWRITTEN}
    return {key: value for key, (value, default) in said.items() if not _same(value, default)}


def _same(value: object, default: object) -> bool:
    return type(value) is type(default) and value == default


def column_of(name: str, keys: Any) -> Column:
    """The column that a table of a schema file declares: its kind, and that kind's own keys."""
    if not isinstance(keys, dict):
        raise SchemaError(f"column {brief(name)} must be a table such as [columns.age].")
    kind = KINDS.get(str(keys.get("kind")))
    if kind is None:
        listed, said = ", ".join(map(repr, KINDS)), keys.get("kind")
        meant = _OTHER_NAMES.get(str(said).lower())
        guess = f" Did you mean {meant!r}?" if meant else hint(str(said).lower(), KINDS)
        raise SchemaError(f"column {brief(name)}: kind must be one of {listed}; got {brief(said)}.{guess}")
    known = [f.name for f in fields(kind) if f.name not in _UNWRITTEN]
    _refuse_unknown(keys, ("kind", *known), f"column {brief(name)}")
    said = {key: value for key, value in keys.items() if key != "kind"}
    for key in ("labels", "edges", "missing_texts"):
        if key in said:
            if not isinstance(said[key], list):
                raise SchemaError(f"column {brief(name)}: {key} must be a list; got {brief(said[key])}.")
            said[key] = tuple(said[key])
    if "aliases" in said:
        said["aliases"] = _aliases(name, said["aliases"])
    return kind(name, **said)


def _aliases(name: str, said: Any) -> tuple[tuple[str, tuple[str, ...]], ...]:
    if not isinstance(said, dict) or not all(isinstance(spellings, list) for spellings in said.values()):
        raise SchemaError(
            f'column {brief(name)}: aliases must list other texts of labels, such as {{ F = ["f", "fem"] }}.'
        )
    return tuple((label, tuple(spellings)) for label, spellings in said.items())


def _impossible(listed: Any) -> tuple[Combination, ...]:
    if not isinstance(listed, list) or not all(isinstance(said, dict) for said in listed):
        raise SchemaError("impossible combinations must be tables: [[impossible]], in double brackets.")
    return tuple(Combination.of(said) for said in listed)


def _unit(keys: Any) -> Unit:
    if not isinstance(keys, dict):
        raise SchemaError("the schema's unit must be a table: [unit].")
    _refuse_unknown(keys, ("relation", "records", "person", "missing_person"), "[unit]")
    try:
        return Unit.said(**keys)
    except (SettingError, TypeError) as error:
        raise SchemaError(f"[unit]: {error}") from error


def table_of_unit(unit: Unit, note: str = "") -> list[str]:
    """The lines that declare a unit; what concerns people is left out where no column names them."""
    said = unit.as_json() | ({"records": AUTO} if unit.is_auto else {})
    return ["[unit]", *_comment(note), *(f"{key} = {_value(value)}" for key, value in said.items())]


def _constraints(listed: Any) -> tuple[Constraint, ...]:
    if not isinstance(listed, list) or not all(isinstance(said, dict) for said in listed):
        raise SchemaError("constraints must be tables: [[constraint]], in double brackets.")
    return tuple(one for said in listed for one in constraints_of(said))


def constraints_of(declared: Mapping[str, Any]) -> list[Constraint]:
    """The constraints that one [[constraint]] declares: an order of three columns is two of them."""
    said = dict(declared)
    violated = said.pop("violated", "keep")
    shapes = {("order",), ("column", "determines", "map"), ("sum", "total")}
    if tuple(sorted(said)) not in {tuple(sorted(shape)) for shape in shapes}:
        raise SchemaError(
            "a [[constraint]] must have the keys order; or column, determines and map; or sum and total (and "
            f"violated, if need be); got {', '.join(map(brief, said)) or 'none'}."
        )
    for key in ("order", "sum"):
        if key in said and not (isinstance(said[key], list) and all(isinstance(n, str) for n in said[key])):
            raise SchemaError(f"[[constraint]]: {key} must list columns; got {brief(said[key])}.")
    if "order" in said:
        if len(said["order"]) < 2:
            raise SchemaError("[[constraint]]: order must list two columns or more.")
        return [Order(a, b, violated=violated) for a, b in pairwise(said["order"])]
    if "sum" in said:
        return [Sum(tuple(said["sum"]), said["total"], violated=violated)]
    if not isinstance(said["map"], dict):
        raise SchemaError('[[constraint]]: map must give a label for each, such as { A = "north" }.')
    return [Determines(said["column"], said["determines"], tuple(said["map"].items()), violated=violated)]


def _file(keys: Any) -> FileFormat:
    if not isinstance(keys, dict):
        raise SchemaError("how files are written must be a table: [file].")
    _refuse_unknown(keys, tuple(f.name for f in fields(FileFormat)), "[file]")
    return FileFormat(**keys)


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
    if isinstance(value, (date, time)):
        return value.isoformat()
    return repr(value)


def _table(pairs: tuple[tuple[str, Any], ...]) -> str:
    return f"{{ {', '.join(f'{_key(label)} = {_value(spellings)}' for label, spellings in pairs)} }}"


def _text(text: str) -> str:
    """A basic TOML string: quotes, backslashes and control characters escaped."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + _CONTROL.sub(lambda found: f"\\u{ord(found[0]):04X}", escaped) + '"'
