"""What one person can change."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

from sidelight import _check
from sidelight.errors import SettingError

Relation = Literal["replace", "add-or-remove"]
AUTO = "auto"
"""In place of a number of records: as many as public data suggest."""
MOST_RECORDS = 2**31
"""Most records of one person: squares of it must fit beside noise in 64 bits."""


@dataclass(frozen=True)
class Unit:
    """What one person can change; every sensitivity follows from it (spec 1.5).

    ``replace``: both tables have n records, and one person's records (at most
    ``records`` of them) take other values. n is public.
    ``add-or-remove``: one person's records are there or not. n is private: it is
    measured, never read.

    With ``person``, a column says whose record each is, and at most ``records`` of each person are kept
    (``data/people.py``). Under ``replace`` a person with few records may then take the place of one with
    many: the number of people is public, that of records is private.

    **Why two relations bound the third.** Let a person's kept records move an answer by a = Σ q(r), at most k
    records of them, and those of the person in their place by b. A norm of a − b is convex in how often each
    kind of record occurs, on either side. So it is largest where each side has no record, or k records of one
    kind: k q(r) − k q(s) is the largest move under ``replace``, k q(r) under ``add-or-remove``.

    >>> Unit("replace").l1, Unit("replace").l2_squared
    (2, 2)
    >>> Unit("add-or-remove", records=3).l1, Unit("add-or-remove", records=3).l2_squared
    (3, 9)
    >>> Unit("replace", person="patient_id").relations
    ('replace', 'add-or-remove')
    """

    relation: Relation = "replace"
    records: int = 1
    """k: the most records of one person. Trusted without ``person``, and enforced with it."""
    person: str | None = None
    """The column that says who a record is about. It is read as text, and is no attribute."""
    missing_person: Literal["refuse", "own"] = "refuse"
    """Whether a table with records that name nobody is refused, or each of them is a person of its own."""

    def __post_init__(self) -> None:
        _check.one_of(("replace", "add-or-remove"), unit=self.relation)
        _check.one_of(("refuse", "own"), missing_person=self.missing_person)
        _check.positive_integer(records=self.records)
        if self.records > MOST_RECORDS:
            raise SettingError(
                f"records of one person must be at most {MOST_RECORDS:,}; got {_check.brief(self.records)}."
            )
        if self.person is not None and not (isinstance(self.person, str) and self.person):
            raise SettingError(
                f"person must be the name of one column, as text; got {_check.brief(self.person)}. If two "
                "columns together say who somebody is, make one of them first."
            )
        if self.person is None and (self.is_auto or self.missing_person != "refuse"):
            said = f"records = {AUTO!r}" if self.is_auto else "missing_person"
            raise SettingError(f"{said} needs person, the column that says who a record is about.")

    @classmethod
    def of(cls, unit: "Unit | str") -> "Unit":
        """A unit, from itself or from its relation's name."""
        return unit if isinstance(unit, Unit) else cls(unit)  # type: ignore[arg-type]  # __post_init__ checks

    @classmethod
    def said(cls, **facts: Any) -> "Unit":
        """The unit of these fields, in which ``records`` may be "auto"."""
        return AutoUnit(**facts | {"records": 1}) if facts.get("records") == AUTO else cls(**facts)

    @property
    def is_auto(self) -> bool:
        """Whether ``records`` is still to be chosen."""
        return False

    def with_records(self, records: int) -> "Unit":
        """The same unit with this many records a person."""
        return Unit(self.relation, records, self.person, self.missing_person)

    @property
    def promised(self) -> "Unit":
        """What a ledger promises. Where k is enforced, it is no part of that: runs may differ in it."""
        return self if self.person is None else Unit(self.relation, person=self.person)

    @property
    def relations(self) -> tuple[Relation, ...]:
        """The relations whose sensitivities bound this unit's, each with ``records`` records a person."""
        is_both = self.relation == "replace" and self.person is not None
        return ("replace", "add-or-remove") if is_both else (self.relation,)

    @property
    def total_is_public(self) -> bool:
        """Whether the number of records may be read without paying."""
        return self.relation == "replace" and self.person is None

    @property
    def hides_presence(self) -> bool:
        """Whether the promise also covers that a person is in the table, beside what their records say.

        >>> Unit("replace", person="patient_id").hides_presence, Unit("add-or-remove").hides_presence
        (False, True)
        """
        return self.relation == "add-or-remove"

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
        >>> Unit("replace").scalar(5, 6), Unit("replace", person="id").scalar(5, 6)
        (Fraction(1, 1), Fraction(6, 1))
        """
        moves = {
            "replace": Fraction(high) - Fraction(low),
            "add-or-remove": max(abs(Fraction(low)), abs(Fraction(high))),
        }
        return self.records * max(moves[relation] for relation in self.relations)

    def spelled(self, *, any_records: bool = False) -> str:
        """The unit in a message; with ``any_records``, as a ledger promises it, which leaves k to each run.

        >>> Unit("add-or-remove", records=5).spelled()
        "'add-or-remove' of up to 5 records a person"
        >>> Unit("replace", records=3, person="patient_id").spelled()
        "'replace' of a person by 'patient_id', up to 3 records each"
        >>> Unit("replace", person="patient_id").spelled(any_records=True)
        "'replace' of a person by 'patient_id', however many records are used"
        """
        who = "one record" if self.records == 1 else f"up to {self.records} records"
        if self.person is not None:
            who = "however many records are used" if any_records else f"{who} each"
            return f"{self.relation!r} of a person by {self.person!r}, {who}"
        return f"{self.relation!r} of {who} a person"

    def describe(self) -> str:
        """The promise in words.

        >>> Unit("add-or-remove", records=3, person="patient_id").describe()
        'adding or removing one person (up to 3 records of each patient_id are used; the numbers of people \
and of records are private)'
        """
        if self.person is not None:
            used = "one record" if self.records == 1 else f"up to {self.records} records"
            used += f" of each {self.person} {'is' if self.records == 1 else 'are'} used"
            if self.missing_person == "own":
                used += ", and a record without one counts as a person"
            return (
                f"replacing one person ({used}; the number of people is public, that of records is private)"
                if self.relation == "replace"
                else f"adding or removing one person ({used}; the numbers of people and of records are "
                "private)"
            )
        who = "one record" if self.records == 1 else f"up to {self.records} records of one person"
        return (
            f"replacing {who} (the number of records is public)"
            if self.relation == "replace"
            else f"adding or removing {who} (the number of records is private)"
        )

    def as_json(self) -> dict[str, Any]:
        """The unit in plain values; what says nothing is left out."""
        plain: dict[str, Any] = {"relation": self.relation, "records": self.records}
        if self.person is not None:
            plain |= {"person": self.person, "missing_person": self.missing_person}
        return plain

    @classmethod
    def from_json(cls, plain: dict[str, Any]) -> "Unit":
        """The unit that ``as_json`` wrote."""
        named = {name: plain[name] for name in ("person", "missing_person") if name in plain}
        return cls(plain["relation"], plain["records"], **named)


@dataclass(frozen=True)
class AutoUnit(Unit):
    """A unit whose ``records`` are to be chosen from public data; until then, one of each person is used."""

    @property
    def is_auto(self) -> bool:
        return True
