"""Who asked for a run and who approved it: an optional part of the line with which the run begins.

    "approval": {"digest": "9f2c…", "asked_by": "Ada Lovelace", "names": ["Grace Hopper"]}

``digest`` is that of the plan that was approved (``releases/plan_digest.py``); ``names`` are those who
approved it, none where no second person was needed. Lines without the field, as older versions wrote them,
are read as before; and since it changes no sum, older versions read lines that have it.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from sidelight._check import brief
from sidelight.errors import SettingError
from sidelight.sources import shown_name

_LONGEST = 80
"""Most characters of a name."""
_DIGEST = re.compile("[0-9a-f]{64}")


@dataclass(frozen=True, kw_only=True)
class Approval:
    """The plan that was asked for, by whom, and who else agreed.

    >>> Approval(digest="0" * 64, asked_by="Ada", names=("Grace",)).sentence
    'asked for by Ada, approved by Grace'
    """

    digest: str
    """The digest of the plan, its schema and its sources: 64 hexadecimal digits."""
    asked_by: str
    names: tuple[str, ...] = ()
    """The people who approved the plan; none where nobody had to."""

    def __post_init__(self) -> None:
        if not isinstance(self.digest, str) or not _DIGEST.fullmatch(self.digest):
            raise SettingError(
                f"an approval names its plan by a digest of 64 hexadecimal digits; got {brief(self.digest)}."
            )
        people = (self.asked_by, *self.names)
        for name in people:
            check_name(name)
        for one, other in combinations(people, 2):
            if same_person(one, other):
                raise SettingError(
                    f"{brief(one)} stands twice in this approval: whoever asked for a run cannot approve it."
                )

    @property
    def sentence(self) -> str:
        """Who asked and who approved, in words."""
        others = f", approved by {', '.join(self.names)}" if self.names else ""
        return f"asked for by {self.asked_by}{others}"

    def as_json(self) -> dict[str, Any]:
        """A plain form."""
        return {"digest": self.digest, "asked_by": self.asked_by, "names": list(self.names)}

    @classmethod
    def from_json(cls, plain: Any) -> "Approval":
        """The approval that ``as_json`` wrote."""
        fields = {"digest", "asked_by", "names"}
        if not isinstance(plain, dict) or plain.keys() != fields or not isinstance(plain["names"], list):
            raise SettingError("an approval has a digest, says who asked (asked_by), and lists names.")
        return cls(digest=plain["digest"], asked_by=plain["asked_by"], names=tuple(plain["names"]))


def check_name(name: object) -> None:
    """Refuse what cannot be a person's name in a ledger: empty, long, on several lines, or an address."""
    if not isinstance(name, str) or not name.strip() or name != name.strip() or len(name) > _LONGEST:
        raise SettingError(
            f"a person's name has 1 to {_LONGEST} characters, without blanks around them; got {brief(name)}."
        )
    if not name.isprintable() or shown_name(name) != name:
        raise SettingError("a person's name is plain text on one line, and no address.")


def require_different(names: Sequence[str], where: str) -> None:
    """Refuse a list of people in which one person stands twice, however they are written."""
    for one, other in combinations(names, 2):
        if same_person(one, other):
            raise SettingError(
                f"{where} names one person twice, as {brief(one)} and {brief(other)}: name each once."
            )


def same_person(one: str, other: str) -> bool:
    """Whether two names are one, whatever their capitals and blanks.

    >>> same_person("Ada  Lovelace", "ada lovelace")
    True
    """
    return " ".join(one.casefold().split()) == " ".join(other.casefold().split())
