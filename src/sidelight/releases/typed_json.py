"""Frozen dataclasses as JSON and back, by the types of their fields alone.

>>> from sidelight.privacy.unit import Unit
>>> to_json(Unit("replace"))
{'relation': 'replace', 'records': 1, 'person': None, 'missing_person': 'refuse'}
>>> from_json(Unit, {"relation": "replace", "records": 2}, "unit")
Unit(relation='replace', records=2, person=None, missing_person='refuse')
>>> from_json(Unit, {"relation": "replace", "records": "two"}, "unit")
Traceback (most recent call last):
sidelight._foreign.ForeignError: unit.records must be a whole number; got 'two'
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from datetime import datetime
from fractions import Fraction
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from sidelight._check import brief
from sidelight._foreign import ForeignError
from sidelight.errors import SidelightError
from sidelight.privacy.event import Event
from sidelight.privacy.rational import parse_fraction


def to_json(value: Any) -> Any:
    """A value as ``json.dumps`` takes it; ``from_json`` gives back an equal one."""
    match value:
        case Event():
            return value.as_json()
        case Fraction():
            return str(value)
        case datetime():
            return value.isoformat()
        case Mapping():
            return {name: to_json(inner) for name, inner in value.items()}
        case tuple() | list():
            return [to_json(inner) for inner in value]
        case _ if is_dataclass(value):
            return {field.name: to_json(getattr(value, field.name)) for field in fields(value)}
    return value


def from_json(kind: Any, plain: Any, where: str) -> Any:
    """The value of this type that ``to_json`` wrote; ``where`` names it in what is said of another value."""
    origin, inside = get_origin(kind), get_args(kind)
    if kind is Any:
        return plain
    if is_union(kind):
        return _one_of(inside, plain, where)
    if origin is Literal:
        if any(plain == choice and type(plain) is type(choice) for choice in inside):
            return plain
        raise _wrong(" or ".join(repr(choice) for choice in inside), plain, where)
    if origin is tuple:
        listed = _of_type(list, plain, where)
        return tuple(from_json(inside[0], inner, f"{where}[{i}]") for i, inner in enumerate(listed))
    if origin in (dict, Mapping):
        named = _of_type(dict, plain, where)
        return {
            from_json(inside[0], name, f"a name in {where}"): from_json(inside[1], inner, f"{where}.{name}")
            for name, inner in named.items()
        }
    if kind is Event:
        return Event.from_json(_of_type(dict, plain, where))
    if is_dataclass(kind):
        return _dataclass(kind, _of_type(dict, plain, where), where)
    return _single(kind, plain, where)


def is_union(kind: Any) -> bool:
    """Whether a type is ``one | another``."""
    return get_origin(kind) in (Union, UnionType)


@cache
def types_of(kind: type) -> dict[str, tuple[Any, "Field[Any]"]]:
    """A dataclass's fields, each with its type."""
    hints = get_type_hints(kind)
    return {field.name: (hints[field.name], field) for field in fields(kind)}


def is_required(field: "Field[Any]") -> bool:
    """Whether a field has no default."""
    return field.default is MISSING and field.default_factory is MISSING


def _dataclass(kind: Any, plain: dict[str, Any], where: str) -> Any:
    known = types_of(kind)
    for name in plain.keys() - known.keys():
        raise ForeignError(f"{where} holds {brief(name)}, which this sidelight does not know")
    for name, (_, field) in known.items():
        if is_required(field) and name not in plain:
            raise ForeignError(f"{where} has no {name}")
    values = {name: from_json(known[name][0], inner, f"{where}.{name}") for name, inner in plain.items()}
    try:
        return kind(**values)
    except SidelightError as error:
        raise ForeignError(f"{where} cannot be: {str(error).rstrip('.')}") from error


def _one_of(kinds: tuple[Any, ...], plain: Any, where: str) -> Any:
    """The first type that fits; where none does, what the last but None had to say."""
    if plain is None and NoneType in kinds:
        return None
    *firsts, last = (kind for kind in kinds if kind is not NoneType)
    for kind in firsts:
        try:
            return from_json(kind, plain, where)
        except ForeignError:
            pass
    return from_json(last, plain, where)


def _single(kind: Any, plain: Any, where: str) -> Any:
    """A text, a number, a moment."""
    if kind not in _READ:
        return _of_type(kind, plain, where)
    try:
        return _READ[kind](plain)
    except (ArithmeticError, TypeError, ValueError):
        raise _wrong(_WORDS[kind], plain, where) from None


def _finite(plain: Any) -> float:
    if type(plain) not in (int, float) or not math.isfinite(plain):
        raise ValueError
    return float(plain)


def _of_type(kind: Any, plain: Any, where: str) -> Any:
    if type(plain) is not kind:
        raise _wrong(_WORDS[kind], plain, where)
    return plain


def _wrong(expected: str, plain: Any, where: str) -> ForeignError:
    return ForeignError(f"{where} must be {expected}; got {brief(plain)}")


_READ: dict[Any, Callable[[Any], Any]] = {
    float: _finite,
    Fraction: parse_fraction,
    datetime: datetime.fromisoformat,
}
_WORDS: dict[Any, str] = {
    str: "a text",
    bool: "true or false",
    int: "a whole number",
    float: "a finite number",
    list: "a list",
    dict: "an object",
    Fraction: 'a fraction such as "3/20"',
    datetime: 'a moment such as "2026-11-17T09:30:00+00:00"',
}
