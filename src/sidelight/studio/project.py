"""A project: which private table, which public ones, which ledger, and what is to be asked."""

import re
import tomllib
from dataclasses import dataclass, field
from typing import Any, Literal

from sidelight import _check
from sidelight.errors import SettingError
from sidelight.releases.quality import SHARE

WorkloadChoice = Literal["1-way", "2-way", "3-way", "picked"]
_SLUG = re.compile("[a-z0-9]+(?:-[a-z0-9]+)*")
_RELEASE = re.compile("release-[0-9]{1,6}")
_LONGEST = 60


@dataclass(frozen=True, kw_only=True)
class Picked:
    """One table that the release should get right: its columns, and how much it matters."""

    attrs: tuple[str, ...]
    weight: float = 1.0


@dataclass(frozen=True, kw_only=True)
class Threshold:
    """One criterion of acceptance: how far off some tables may be on average."""

    tables: str
    """Such as ``2-way``; or columns, joined by ``×``."""
    at_most: float
    worst: bool = False
    """Whether every attribute's tables must keep it by themselves."""


@dataclass(frozen=True, kw_only=True)
class Ask:
    """The wish for the next release: which answers, and at what price."""

    workload: WorkloadChoice = "2-way"
    picked: tuple[Picked, ...] = ()
    epsilon: float | None = None
    mechanism: str = "auto"
    with_public: bool = True
    """Whether the public tables help."""
    quality_share: float = SHARE
    criteria: tuple[Threshold, ...] = ()
    second_person: bool = False
    """Whether somebody else must approve the plan."""
    project: str = ""
    """The project that the ledger's policy counts the run for; empty where none is named."""
    other_schema: bool = False
    """Whether to go on if the ledger has seen its table under another schema only."""

    def accept(self) -> dict[str, Any] | None:
        """The criteria as ``Plan.of`` takes them; None where there are none."""
        if not self.criteria:
            return None
        return {"criterion": [_criterion(one) for one in self.criteria]}


@dataclass(frozen=True, kw_only=True)
class Project:
    """All that a person chose; the schema is in a file of its own, the one that the command line reads."""

    title: str
    private: str | None = None
    """A path, relative to the project's folder where it lies in it, or the address of a table."""
    public: tuple[str, ...] = ()
    ledger: str | None = None
    """A file or an address, as ``private``; None before the promise is made."""
    records: int | None = None
    """About how many records the private table has, as far as that is public knowledge."""
    ask: Ask = field(default_factory=Ask)


def slug_of(title: str) -> str:
    """The folder of a project with this title.

    >>> slug_of("Patients of St. Mary's, 2026")
    'patients-of-st-mary-s-2026'
    """
    plain = re.sub("[^a-z0-9]+", "-", title.casefold()).strip("-")[:_LONGEST].strip("-")
    return plain or "project"


def is_slug(text: str) -> bool:
    """Whether a text can be the folder of a project: no dots, no slashes."""
    return len(text) <= _LONGEST and _SLUG.fullmatch(text) is not None


def tables_of(text: str) -> str | list[list[str]]:
    """Tables as a person writes them: ``2-way``, or columns joined by × or *, tables by commas.

    >>> tables_of("2-way"), tables_of("age × sex, age")
    ('2-way', [['age', 'sex'], ['age']])
    """
    said = text.strip()
    if re.fullmatch("[0-9]+-way", said):
        return said
    tables = [[name.strip() for name in re.split("[×*]", part) if name.strip()] for part in said.split(",")]
    if not said or not all(tables):
        raise SettingError("name tables as 2-way, or by their columns, such as: age × sex, income")
    return tables


def accept_toml(ask: Ask) -> str | None:
    """The criteria as the file that ``--accept`` takes; None where there are none."""
    if not ask.criteria:
        return None
    lines = []
    for one in ask.criteria:
        said = _criterion(one)
        lines.append("[[criterion]]")
        lines += [f"{key} = {_toml(value)}" for key, value in said.items()] + [""]
    text = "\n".join(lines)
    assert tomllib.loads(text) == ask.accept()
    return text


def _criterion(one: Threshold) -> dict[str, Any]:
    _check.positive(at_most=one.at_most)
    said: dict[str, Any] = {"tables": tables_of(one.tables), "at_most": one.at_most}
    return said | {"worst": "attribute"} if one.worst else said


def _toml(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{escaped}"'
    return repr(value)


def is_release(name: str) -> bool:
    """Whether a folder's name is that of a release; one that is still being written has another."""
    return _RELEASE.fullmatch(name) is not None
