"""The purpose of a run, in its first line in the ledger: which mechanism, which project, who approved it."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from sidelight._check import brief
from sidelight.errors import SettingError
from sidelight.privacy.approval import Approval, require_different
from sidelight.sources import shown_name

_LONGEST = 200
"""Characters of a name."""


@dataclass(frozen=True, kw_only=True)
class Purpose:
    """The purpose of a run, which people and the ledger's policy read."""

    mechanism: str = ""
    """The mechanism's name; else ``mean``, ``quantile``, ``screen`` or ``discover``."""
    project: str | None = None
    approved_by: tuple[str, ...] = ()
    """Who approved this run, by the word of whoever starts it."""
    approval: Approval | None = None
    """Who asked for it and who approved which plan, with the names of ``approved_by``; None if nobody did."""

    def __post_init__(self) -> None:
        for name in (*([] if self.project is None else [self.project]), *self.approved_by):
            if not is_name(name):
                raise SettingError(
                    f"a project or a person needs a name of 1 to {_LONGEST} characters on one line; got "
                    f"{brief(name)}."
                )
        # Whoever is named twice has approved once.
        object.__setattr__(self, "approved_by", tuple(dict.fromkeys(self.approved_by)))
        require_different(self.approved_by, "approved_by")

    @staticmethod
    def of(
        mechanism: str, *, project: str | None = None, approved_by: str | Iterable[str] | None = None
    ) -> "Purpose":
        """A purpose as people give it: one name, several or none."""
        names = [approved_by] if isinstance(approved_by, str) else list(approved_by or ())
        return Purpose(mechanism=mechanism, project=project, approved_by=tuple(names))

    def approved(self, approval: Approval) -> "Purpose":
        """The same purpose, of a plan that was approved; whoever approved it is all that counts."""
        return replace(self, approved_by=approval.names, approval=approval)

    def as_json(self) -> dict[str, Any]:
        """What the run's first line holds beside its label and its allotment: nothing that nobody said.

        >>> Purpose.of("aim", approved_by="A. Ito").as_json()
        {'mechanism': 'aim', 'approval': {'names': ['A. Ito']}}
        """
        told: dict[str, Any] = {}
        if self.mechanism:
            told["mechanism"] = self.mechanism
        if self.project is not None:
            told["project"] = self.project
        if self.approval is not None:
            told["approval"] = self.approval.as_json()
        elif self.approved_by:
            told["approval"] = {"names": list(self.approved_by)}
        return told

    @staticmethod
    def from_json(facts: dict[str, Any]) -> "Purpose":
        """The purpose that a run's first line tells; older lines tell none."""
        mechanism, project = facts.get("mechanism", ""), facts.get("project")
        if not isinstance(mechanism, str) or not isinstance(project, str | None):
            raise SettingError("its mechanism or its project is no text.")
        said = facts.get("approval", {"names": []})
        names_alone = isinstance(said, dict) and said.keys() == {"names"}
        return Purpose(
            mechanism=mechanism,
            project=project,
            approved_by=approvers(facts),
            approval=None if names_alone else Approval.from_json(said),
        )


def approvers(facts: dict[str, Any]) -> tuple[str, ...]:
    """Who approved a run, by its first line.

    >>> approvers({"approval": {"names": ["A. Ito", "B. Okafor"]}}), approvers({})
    (('A. Ito', 'B. Okafor'), ())
    """
    approval = facts.get("approval", {})
    names = approval.get("names", []) if isinstance(approval, dict) else None
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise SettingError("its approval names nobody.")
    return tuple(names)


def is_name(name: object) -> bool:
    """Whether this can name a project or a person: it is shown, so it is short, on one line, no address."""
    return (
        isinstance(name, str)
        and 0 < len(name) <= _LONGEST
        and name == name.strip()
        and name.isprintable()
        and shown_name(name) == name
    )
