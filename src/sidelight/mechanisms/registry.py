"""Mechanisms by the names that people type; each module is imported when it is asked for."""

import difflib
import importlib
from dataclasses import fields
from typing import Any

from sidelight.errors import SettingError
from sidelight.mechanisms.base import Mechanism

_WHERE = {
    "aperture": "sidelight.mechanisms.aperture.aperture:Aperture",
    "jam": "sidelight.mechanisms.jam:JAM",
    "aim": "sidelight.mechanisms.aim:AIM",
    "mst": "sidelight.mechanisms.mst:MST",
    "hdmm": "sidelight.mechanisms.hdmm.hdmm:HDMM",
    "mwem": "sidelight.mechanisms.mwem:MWEM",
    "mwem-pub": "sidelight.mechanisms.mwem_pub:MWEMPub",
    "pmw-pub": "sidelight.mechanisms.pmw_pub:PMWPub",
    "barak": "sidelight.mechanisms.barak:Barak",
}


def names() -> tuple[str, ...]:
    """All mechanisms, in the order of the guide that helps to choose one."""
    return tuple(_WHERE)


def mechanism_of(asked: Mechanism | str, settings: dict[str, Any] | None = None) -> Mechanism:
    """The mechanism of that name with these settings; a mechanism itself is handed through."""
    if isinstance(asked, Mechanism):
        if settings:
            raise SettingError(
                f"settings {', '.join(settings)} belong into {type(asked).__name__}(…) itself."
            )
        return asked
    if asked not in _WHERE:
        raise SettingError(
            f"mechanism must be one of {', '.join(_WHERE)}; got {asked!r}.{_hint(asked, _WHERE)}"
        )
    module, _, name = _WHERE[asked].partition(":")
    kind: type[Mechanism] = getattr(importlib.import_module(module), name)
    known = {field.name for field in fields(kind)}
    for given in settings or {}:
        if given not in known:
            raise SettingError(
                f"mechanism {asked!r} has no setting {given!r}; it has {', '.join(sorted(known))}."
                + _hint(given, known)
            )
    return kind(**(settings or {}))


def _hint(word: str, known: Any) -> str:
    close = difflib.get_close_matches(word, list(known), n=1)
    return f" Did you mean {close[0]!r}?" if close else ""
