"""Mechanisms by the names that people type; each module is imported when it is asked for."""

import importlib
from dataclasses import fields
from typing import Any

from sidelight import _check
from sidelight.errors import SettingError
from sidelight.mechanisms.base import Mechanism

AUTO = "auto"
"""Asks for the mechanism that mechanisms/choice.py takes."""
_WHERE = {
    "aperture": "sidelight.mechanisms.aperture.aperture:Aperture",
    "jam": "sidelight.mechanisms.jam:JAM",
    "aim": "sidelight.mechanisms.aim:AIM",
    "mst": "sidelight.mechanisms.mst:MST",
    "hdmm": "sidelight.mechanisms.hdmm.hdmm:HDMM",
    "ladder": "sidelight.mechanisms.ladder.ladder:Ladder",
    "gem": "sidelight.mechanisms.gem.gem:GEM",
    "gem-pub": "sidelight.mechanisms.gem.gem_pub:GEMPub",
    "dualquery": "sidelight.mechanisms.dualquery:DualQuery",
    "mwem": "sidelight.mechanisms.mwem:MWEM",
    "mwem-pub": "sidelight.mechanisms.mwem_pub:MWEMPub",
    "pmw-pub": "sidelight.mechanisms.pmw_pub:PMWPub",
    "barak": "sidelight.mechanisms.barak:Barak",
}


_BESIDES = (
    "schema", "epsilon", "delta", "public", "unit", "mechanism", "workload", "ledger", "checkpoint", "noise",
    "progress", "quality_share", "accept", "bins", "reuse", "project", "approved_by",
)  # fmt: skip
"""Parameters of ``sl.release`` that are no settings; a setting with nearly such a name was meant for one."""


def names() -> tuple[str, ...]:
    """All mechanisms, in the order of the guide that helps to choose one."""
    return tuple(_WHERE)


def mechanism_of(asked: Mechanism | str, settings: dict[str, Any] | None = None) -> Mechanism:
    """The mechanism of that name with these settings; a ready mechanism is returned as it is."""
    if isinstance(asked, Mechanism):
        if settings:
            raise SettingError(
                f"give the settings {', '.join(settings)} to {type(asked).__name__}(…) itself."
            )
        return asked
    if asked not in _WHERE:
        raise SettingError(
            f"mechanism must be one of {', '.join((AUTO, *_WHERE))}; got {asked!r}."
            f"{_check.hint(asked, (AUTO, *_WHERE))}"
        )
    module, _, name = _WHERE[asked].partition(":")
    kind: type[Mechanism] = getattr(importlib.import_module(module), name)
    _check.known(f"mechanism {asked!r}", settings or {}, [field.name for field in fields(kind)], _BESIDES)
    return kind(**(settings or {}))
