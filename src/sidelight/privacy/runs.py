"""One run of a ledger, read from its lines: what it paid for, what was drawn for it, and the sum."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from sidelight.privacy.approval import Approval
from sidelight.privacy.budget import Cost
from sidelight.privacy.chain import Line
from sidelight.privacy.event import Event
from sidelight.privacy.purpose import Purpose


@dataclass(frozen=True)
class RunSummary:
    """One run of a ledger, for people to read."""

    id: str
    label: str
    allotment: Cost
    spent: Cost
    """The cost that it paid in all, out of its allotment and out of the promise itself."""
    is_open: bool
    events: int
    """How many payments it made."""
    repeats: int
    """How many payments paid again for an answer that was lost, as in a crash."""
    when: str
    """When it began, in UTC."""
    purpose: Purpose = field(default_factory=Purpose)
    ended: str | None = None
    """When it was closed, in UTC; None while it is open."""

    @property
    def approval(self) -> Approval | None:
        """Who asked for it, and who approved which plan; None where nobody said."""
        return self.purpose.approval

    def has_used(self, digest: str) -> bool:
        """Whether it was begun as the plan of this digest, unless it is closed and paid for nothing."""
        return (
            self.approval is not None and self.approval.digest == digest and (self.is_open or self.events > 0)
        )

    def as_json(self) -> dict[str, str | int | float | bool]:
        """Plain values for people and programs; of its purpose, what was said."""
        said = {"project": self.purpose.project, "approved_by": ", ".join(self.purpose.approved_by)}
        if self.approval is not None:
            said |= {"asked_by": self.approval.asked_by, "digest": self.approval.digest}
        return {
            "run": self.id,
            "label": self.label,
            "began": self.when,
            "open": self.is_open,
            "events": self.events,
            "again": self.repeats,
            "allotted": float(self.allotment),
            "spent": float(self.spent),
            "currency": type(self.allotment).__name__.lower(),
            **{name: told for name, told in said.items() if told},
        }


@dataclass(frozen=True)
class Payment:
    """One payment of a run, and whether noise was drawn for it."""

    line: int
    """The number of its line, by which ``Ledger.draw`` knows it."""
    nth: int
    """For which of the run's answers: 0 for the first, then 1, 2, …"""
    event: Event
    ticket: str | None
    """The ticket of its draw; None before the draw. Empty in ledgers of format 1, which had no tickets: there
    every payment counts as drawn."""


def summary_of(first: Line, last: Line) -> RunSummary:
    """A run, by its first line and its last."""
    allotment, sums = first.allotment, last.of_run
    return RunSummary(
        id=first.run,
        label=str(first.body["label"]),
        allotment=allotment,
        spent=sums.spent(allotment),
        is_open=bool(sums.open_runs),
        events=sums.events,
        repeats=sums.repeats,
        when=first.when,
        purpose=first.purpose,
        ended=None if sums.open_runs else last.when,
    )


def payments_of(lines: Iterable[Line]) -> tuple[Payment, ...]:
    """The payments in a run's lines, and which of them were drawn."""
    paid: dict[int, Line] = {}
    nth_of: dict[int, int] = {}
    tickets: dict[int, str | None] = {}
    for line in lines:
        if line.kind == "event":
            paid[line.number] = line
            nth_of[line.number] = len(nth_of) if line.nth is None else line.nth
            tickets[line.number] = "" if line.nth is None else None
        elif line.kind == "draw":
            tickets[line.body["payment"]] = line.body["ticket"]
    return tuple(Payment(number, nth_of[number], paid[number].event, tickets[number]) for number in paid)
