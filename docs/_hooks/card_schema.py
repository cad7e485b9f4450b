"""The JSON Schema of a release's card, made from its dataclasses and the text under each of their fields.

python docs/_hooks/card_schema.py    writes docs/reference/card.schema.json
"""

import ast
import inspect
import json
import textwrap
from collections.abc import Mapping
from dataclasses import is_dataclass
from datetime import datetime
from fractions import Fraction
from pathlib import Path
from types import NoneType
from typing import Any, Literal, get_args, get_origin

from sidelight.privacy.event import Event
from sidelight.releases.card import DERIVED, Card
from sidelight.releases.typed_json import is_required, is_union, types_of

PUBLISHED = Path(__file__).resolve().parents[1] / "reference" / "card.schema.json"
_FRACTION = {"type": "string", "pattern": "^-?[0-9]+(/[0-9]+)?$"}
_SINGLE: dict[Any, dict[str, Any]] = {
    Any: {},
    NoneType: {"type": "null"},
    str: {"type": "string"},
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    float: {"type": "number"},
    Fraction: _FRACTION,
    datetime: {"type": "string", "format": "date-time"},
    Event: {
        "type": "object",
        "description": "One spending: its kind, on what, at what cost in ρ or ε. The rest is the kind's own.",
        "properties": {
            "event": {"type": "string"},
            "what": {"type": "string"},
            "cost": {
                "type": "object",
                "properties": {"rho": _FRACTION, "epsilon": _FRACTION},
                "additionalProperties": False,
            },
        },
        "required": ["event", "what", "cost"],
    },
}


def text() -> str:
    """What the published file holds."""
    return json.dumps(card_schema(), ensure_ascii=False, indent=1) + "\n"


def card_schema() -> dict[str, Any]:
    """The schema of what ``Card.as_json`` writes."""
    named: dict[str, Any] = {}
    _schema(Card, named)
    card = named.pop("Card")
    card["required"].insert(0, "version")  # a card without one is of the time before there were versions
    for name, told in DERIVED.items():
        said = inspect.getdoc(getattr(Card, name)) or ""
        card["properties"][name] = {**_schema(told, named), "description": said, "readOnly": True}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "The card of a sidelight release",
        **card,
        "$defs": dict(sorted(named.items())),
    }


def _schema(kind: Any, named: dict[str, Any]) -> dict[str, Any]:
    """The schema of one type; those of dataclasses go into ``named``."""
    origin, inside = get_origin(kind), get_args(kind)
    if is_union(kind):
        return {"anyOf": [_schema(one, named) for one in inside]}
    if origin is Literal:
        return {"enum": list(inside)}
    if origin is tuple:
        return {"type": "array", "items": _schema(inside[0], named)}
    if origin in (dict, Mapping):
        return {"type": "object", "additionalProperties": _schema(inside[1], named)}
    if kind not in _SINGLE and is_dataclass(kind):
        assert isinstance(kind, type)
        if kind.__name__ not in named:
            named[kind.__name__] = {}  # so that a type may hold its own kind
            named[kind.__name__] = _object(kind, named)
        return {"$ref": f"#/$defs/{kind.__name__}"}
    return _SINGLE[kind]


def _object(kind: type, named: dict[str, Any]) -> dict[str, Any]:
    said = _said_of_fields(kind)
    return {
        "type": "object",
        "description": (inspect.getdoc(kind) or "").partition("\n")[0],
        "properties": {
            name: _schema(told, named) | ({"description": said[name]} if name in said else {})
            for name, (told, _) in types_of(kind).items()
        },
        "required": [name for name, (_, field) in types_of(kind).items() if is_required(field)],
        "additionalProperties": False,
    }


def _said_of_fields(kind: type) -> dict[str, str]:
    """The text under each field of a dataclass, which Python itself does not keep."""
    (tree,) = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
    assert isinstance(tree, ast.ClassDef)
    said = {}
    for above, below in zip(tree.body, tree.body[1:], strict=False):
        match above, below:
            case (
                ast.AnnAssign(target=ast.Name(id=name)),
                ast.Expr(value=ast.Constant(value=str(text))),
            ):
                said[name] = " ".join(text.split())
    return said


if __name__ == "__main__":
    PUBLISHED.write_text(text(), encoding="utf-8")
