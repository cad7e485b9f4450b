"""What one person can change."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from sidelight import _check
from sidelight.errors import SettingError

Relation = Literal["replace", "add-or-remove"]
MOST_RECORDS = 2**31
"""Most records of one person: squares of it must fit beside noise in 64 bits."""


@dataclass(frozen=True)
class Unit:
    """What one person can change; every sensitivity follows from it (spec 1.5).

    ``replace``: both tables have n records, and one person's records (at most
    ``records`` of them) take other values. n is public.
    ``add-or-remove``: one person's records are there or not. n is private: it is
    measured, never read.

    >>> Unit("replace").l1, Unit("replace").l2_squared
    (2, 2)
    >>> Unit("add-or-remove", records=3).l1, Unit("add-or-remove", records=3).l2_squared
    (3, 9)
    """

    relation: Relation = "replace"
    records: int = 1

    def __post_init__(self) -> None:
        _check.one_of(("replace", "add-or-remove"), unit=self.relation)
        _check.positive_integer(records=self.records)
        if self.records > MOST_RECORDS:
            raise SettingError(
                f"records of one person must be at most {MOST_RECORDS:,}; got {_check.brief(self.records)}."
            )

    @classmethod
    def of(cls, unit: "Unit | str") -> "Unit":
        """A unit, from itself or from its relation's name."""
        return unit if isinstance(unit, Unit) else cls(unit)  # type: ignore[arg-type]  # __post_init__ checks

    @property
    def total_is_public(self) -> bool:
        """Whether the number of records may be read without paying."""
        return self.relation == "replace"

    @property
    def l1(self) -> int:
        """How far a marginal's counts can move in L1: k records leave one cell, and k enter another."""
        return self.records * (2 if self.relation == "replace" else 1)

    @property
    def l2_squared(self) -> int:
        """How far a marginal's counts can move in L2, squared: all k records may share a cell."""
        return self.records**2 * (2 if self.relation == "replace" else 1)

    def scalar(self, low: Fraction | int, high: Fraction | int) -> Fraction:
        """How far a sum of values in [low, high], one value a record, can move.

        >>> Unit("replace").scalar(-1, 1), Unit("add-or-remove").scalar(-1, 1)
        (Fraction(2, 1), Fraction(1, 1))
        """
        if self.relation == "replace":
            return self.records * (Fraction(high) - Fraction(low))
        return self.records * max(abs(Fraction(low)), abs(Fraction(high)))

    def spelled(self) -> str:
        """The unit in a message.

        >>> Unit("add-or-remove", records=5).spelled()
        "'add-or-remove' of up to 5 records a person"
        """
        who = "one record" if self.records == 1 else f"up to {self.records} records"
        return f"{self.relation!r} of {who} a person"

    def describe(self) -> str:
        """The promise in words."""
        who = "one record" if self.records == 1 else f"up to {self.records} records of one person"
        return (
            f"replacing {who} (the number of records is public)"
            if self.relation == "replace"
            else f"adding or removing {who} (the number of records is private)"
        )
