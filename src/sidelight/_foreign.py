"""Reading files that somebody else wrote: size and nesting are checked before they are parsed.

A schema, a workload, a release or a prior may come from a stranger. A file of some kilobytes can ask for
any amount of memory or time: compressed zeros, lists in lists, numbers of a million digits. So a reader
asks here first. ``SIDELIGHT_MAX_MB`` raises the limits for people who trust where a file comes from.

>>> parse_json('{"attrs": ["age"]}')
{'attrs': ['age']}
>>> parse_json("[" * 100000 + "]" * 100000)
Traceback (most recent call last):
sidelight._foreign.ForeignError: it holds lists within lists, more than 64 deep
"""

import json
import os
import tomllib
from pathlib import Path
from typing import Any

from sidelight.errors import SettingError

_DEPTH = 64
"""Most lists or objects within each other; what sidelight writes has fewer than ten."""
_MOST_MB = 2048
_GROWTH = 32
"""A parsed text takes up to about this many times its bytes: an empty list is two characters."""


class ForeignError(ValueError):
    """What is wrong with a file, in words that the caller puts into its own message."""


def most_bytes() -> int:
    """Most memory that the content of a foreign file may take."""
    given = os.environ.get("SIDELIGHT_MAX_MB", "")
    if not given:
        return _MOST_MB << 20
    if not given.isascii() or not given.isdecimal() or not 0 < len(given) < 10:
        raise SettingError("SIDELIGHT_MAX_MB must be a whole number of megabytes, such as 4096.")
    return int(given) << 20


def check_size(size: int, what: str) -> None:
    """Refuse what would take more memory than ``most_bytes``."""
    if size > most_bytes():
        raise ForeignError(
            f"{what} would take {_mb(size)} MB of memory, more than {_mb(most_bytes())} MB. If you trust "
            f"where it comes from, set SIDELIGHT_MAX_MB={_mb(size)} or more"
        )


def read_text(path: Path) -> str:
    """The text of a UTF-8 file, unless it is too long to parse. An OSError is not caught here."""
    size = path.stat().st_size
    check_size(size * _GROWTH, f"{path.name}, once it is parsed,")
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise ForeignError("it is not text in UTF-8") from None


def parse_json(text: str | bytes) -> Any:
    """The value that a JSON text holds."""
    try:
        value = json.loads(text)
    except RecursionError:
        raise _too_deep() from None
    except ValueError:  # also a number of thousands of digits, and bytes that are no text
        raise ForeignError("it is not JSON: it was cut off or edited") from None
    _check_depth(value)
    return value


def parse_toml(text: str) -> dict[str, Any]:
    """The table that a TOML text holds."""
    try:
        tree = tomllib.loads(text)
    except RecursionError:
        raise _too_deep() from None
    except tomllib.TOMLDecodeError as error:
        raise ForeignError(f"it is not valid TOML: {error}") from None
    except ValueError:
        raise ForeignError("it holds a number or a date that cannot be") from None
    _check_depth(tree)
    return tree


def _check_depth(value: Any) -> None:
    """Refuse values nested too deeply for recursive code."""
    level = [value]
    for _ in range(_DEPTH):
        level = [part for whole in level for part in _parts(whole)]
        if not level:
            return
    raise _too_deep()


def _parts(value: Any) -> list[Any]:
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [part for part in inside if isinstance(part, (dict, list))]


def _too_deep() -> ForeignError:
    return ForeignError(f"it holds lists within lists, more than {_DEPTH} deep")


def _mb(size: int) -> int:
    return -(-size // (1 << 20))
