"""The lines of a ledger: each holds the hash of the one before, and the sums after it.

    promise   the first line: ε, δ, unit and name
    policy    which runs are allowed from here on (``policy.py``); none, where a policy is withdrawn
    table     marks of the table that all of this is about, before its first spending or when it changed
    begin     a run sets its whole allotment aside; its purpose, with who asked for it and who approved
    event     a run pays for one of its answers, out of its allotment
    draw      a payment is used up, once, just before its noise is drawn
    close     a run gives the rest of its allotment back
    moved     the ledger goes on elsewhere: here, nothing may follow but a second such line, once it is there
    arrived   there, what follows ``moved``
    restored  the lines before were put back from a backup; later ones may be lost

The facts of ``begin`` are its ``label``, its ``allotment`` and, of its purpose (``purpose.py``), what was
said: ``mechanism``, ``project``, and ``approval``, an object whose ``names`` say who approved it. Whatever
else stands in ``approval``, such as a digest of what was approved, is hashed with the line and read
elsewhere.

The answers of a run are numbered 0, 1, 2, … in the order in which its mechanism asks for them. A run that
pays for an answer again has lost the one that it drew. It makes that payment *apart*, out of the promise
itself: its allotment pays for each answer once.

A line's text is canonical JSON; its hash is SHA-256 of that text, which holds the previous
line's hash. ``replay.py`` reads a whole chain and refuses the first line that does not follow.

What a chain of hashes cannot show: that lines are missing at its end, or that someone wrote
all of it anew. Both are seen by whoever knows a later hash, so a release keeps its ledger's.
"""

import json
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from fractions import Fraction
from hashlib import sha256
from typing import Any, Literal

from sidelight._foreign import ForeignError, parse_json
from sidelight.errors import LedgerError
from sidelight.privacy.budget import Cost, Rho, Tally, cost_from_json
from sidelight.privacy.event import Event
from sidelight.privacy.promise import Promise
from sidelight.privacy.purpose import Purpose
from sidelight.privacy.rational import parse_fraction

FORMAT = 2
"""The version of these lines; a reader refuses what is newer.

Ledgers of format 1 are read, and go on with today's lines. Their own events do not say
which answer they paid for, and have no draw lines: answers are counted, and every one is taken to be drawn.
"""

Kind = Literal[
    "promise", "policy", "table", "begin", "event", "draw", "close", "moved", "arrived", "restored"
]


@dataclass(frozen=True)
class Sums:
    """The sums after a line, of the whole ledger or of one run."""

    tally: Tally = field(default_factory=Tally)
    """In the ledger, an open run counts with its whole allotment, a closed one with its events; in a run,
    this is what came out of its allotment."""
    events: int = 0
    open_runs: int = 0
    repeats: int = 0
    """How many events of a run paid for an answer that was paid for before."""
    apart: Fraction = Fraction(0)
    """The cost that a run paid out of the promise itself, in its own currency."""

    def as_json(self) -> dict[str, Any]:
        """A plain form, fractions in full; repeats are told where there are any."""
        plain = {
            "rho": str(self.tally.rho),
            "epsilon": str(self.tally.epsilon),
            "priced": str(self.tally.priced),
            "events": self.events,
            "open": self.open_runs,
        }
        return plain | {"repeats": self.repeats, "apart": str(self.apart)} if self.repeats else plain

    @staticmethod
    def from_json(plain: dict[str, Any]) -> "Sums":
        """The sums that ``as_json`` wrote."""
        tally = Tally(*(parse_fraction(plain[name]) for name in ("rho", "epsilon", "priced")))
        repeats, apart = plain.get("repeats", 0), parse_fraction(plain.get("apart", "0"))
        return Sums(tally, plain["events"], plain["open"], repeats, apart)

    @property
    def paid_for(self) -> int:
        """How many answers a run has paid for, each counted once."""
        return self.events - self.repeats

    def begun(self, allotment: Tally) -> "Sums":
        """The ledger's sums after a run set this aside."""
        return Sums(self.tally + allotment, self.events, self.open_runs + 1)

    def counted(self) -> "Sums":
        """The ledger's sums after an event: it was set aside already."""
        return Sums(self.tally, self.events + 1, self.open_runs)

    def counted_apart(self, cost: Tally) -> "Sums":
        """The ledger's sums after an event that no run had set aside."""
        return Sums(self.tally + cost, self.events + 1, self.open_runs)

    def charged(self, cost: Tally) -> "Sums":
        """A run's sums after an event that came out of its allotment."""
        return replace(self, tally=self.tally + cost, events=self.events + 1)

    def charged_apart(self, cost: Cost, *, repeats: bool) -> "Sums":
        """A run's sums after an event that came out of the promise itself."""
        return replace(
            self, events=self.events + 1, repeats=self.repeats + repeats, apart=self.apart + cost.value
        )

    def closed(self, allotment: Tally, run: "Sums") -> "Sums":
        """The ledger's sums after a run gave its rest back."""
        return Sums(self.tally - allotment + run.tally, self.events, self.open_runs - 1)

    def ended(self) -> "Sums":
        """A run's sums after it closed."""
        return replace(self, open_runs=0)

    def rest(self, allotment: Cost) -> Cost:
        """The rest of a run's allotment."""
        return type(allotment)(allotment.value - self._out_of(allotment))

    def spent(self, allotment: Cost) -> Cost:
        """The cost that a run has paid, out of its allotment and apart."""
        return type(allotment)(self._out_of(allotment) + self.apart)

    def _out_of(self, allotment: Cost) -> Fraction:
        return self.tally.rho if isinstance(allotment, Rho) else self.tally.epsilon


@dataclass(frozen=True)
class Line:
    """One line: its text, its hash, and the text as values."""

    number: int
    run: str
    """The run that it belongs to; empty for the promise."""
    text: str
    hash: str
    body: dict[str, Any] = field(repr=False, compare=False)

    @staticmethod
    def after(
        last: "Line | None",
        kind: Kind,
        facts: dict[str, Any],
        *,
        total: Sums,
        run: str = "",
        of_run: Sums,
        now: str | None = None,
    ) -> "Line":
        """The line that follows ``last``, written ``now``."""
        body = {
            **facts,
            "kind": kind,
            "line": last.number + 1 if last else 1,
            "previous": last.hash if last else "",
            "run": run,
            "of_run": of_run.as_json(),
            "total": total.as_json(),
            "when": clock() if now is None else now,
        }
        text = json.dumps(body, sort_keys=True, separators=(",", ":"), allow_nan=False)
        return Line(body["line"], run, text, sha256(text.encode()).hexdigest(), body)

    @staticmethod
    def read(number: int, run: str, text: str, hash: str) -> "Line":
        """A stored line, if its text still has its hash."""
        # A file holds what its bytes say, whatever types its columns declare.
        if not isinstance(number, int) or not all(isinstance(part, str) for part in (run, text, hash)):
            raise LedgerError("a line was edited: its parts are of other types than were written.")
        if sha256(text.encode("utf-8", "surrogatepass")).hexdigest() != hash:
            raise LedgerError(f"line {number} was edited: its text does not have its hash.")
        try:
            body = parse_json(text)
        except ForeignError as error:
            raise LedgerError(f"line {number} cannot be read: {error}.") from error
        if not isinstance(body, dict) or body.get("line") != number or body.get("run") != run:
            raise LedgerError(f"line {number} was moved or edited: its text tells of another line.")
        return Line(number, run, text, hash, body)

    @property
    def kind(self) -> str:
        """The kind of line; see the top of this file."""
        return str(self.body.get("kind"))

    @property
    def when(self) -> str:
        """When it was written, in UTC, such as 2026-11-17T19:30:00.000+00:00."""
        when = self.body.get("when")
        if not isinstance(when, str):
            raise LedgerError(f"line {self.number} does not say when it was written.")
        return when

    @property
    def total(self) -> Sums:
        """The ledger's sums after this line."""
        return Sums.from_json(self.body["total"])

    @property
    def of_run(self) -> Sums:
        """This run's sums after this line."""
        return Sums.from_json(self.body["of_run"])

    @property
    def event(self) -> Event:
        """The event of an event line."""
        return Event.from_json(self.body["event"])

    @property
    def nth(self) -> int | None:
        """For which answer of its run an event line pays or a draw line draws; None in lines of format 1."""
        nth = self.body.get("place")
        if nth is not None and (type(nth) is not int or nth < 0):
            raise LedgerError(f"no run has an answer with the number {nth!r}.")
        return nth

    @property
    def is_apart(self) -> bool:
        """Whether an event was paid out of the promise itself."""
        return self.body.get("apart") is True

    @property
    def allotment(self) -> Cost:
        """The allotment that a begin line set aside."""
        return cost_from_json(self.body["allotment"])

    @property
    def purpose(self) -> Purpose:
        """The purpose of a begin line's run."""
        return Purpose.from_json(self.body)

    @property
    def is_end(self) -> bool:
        """Whether it is the last line of all: the ledger was moved, and has arrived elsewhere."""
        return self.kind == "moved" and self.body.get("arrived") is True

    @property
    def marks(self) -> dict[str, str]:
        """The marks of a table line; none in any other line."""
        marks = self.body.get("marks", {})
        if not isinstance(marks, dict) or not all(isinstance(mark, str) for mark in marks.values()):
            raise LedgerError(f"line {self.number} holds marks that cannot be read.")
        return marks

    @property
    def promise(self) -> Promise:
        """The promise of the first line."""
        version = self.body.get("format")
        if self.number != 1 or self.kind != "promise" or not isinstance(version, int):
            raise LedgerError("the first line holds no promise.")
        if version > FORMAT:
            message = f"it has format {version}, and this sidelight reads up to {FORMAT}: update sidelight."
            raise LedgerError(message)
        return Promise.from_json(self.body)


def clock() -> str:
    """The time now, as lines tell it."""
    return told_time(datetime.now(UTC))


def told_time(when: datetime) -> str:
    """A time in UTC, as lines tell it."""
    return when.astimezone(UTC).isoformat(timespec="milliseconds")


def promise_line(promise: Promise) -> Line:
    """The first line of a new ledger."""
    facts = {**promise.as_json(), "format": FORMAT}
    return Line.after(None, "promise", facts, total=Sums(), of_run=Sums())


def is_apart(nth: int, cost: Cost, run: Sums, allotment: Cost) -> bool:
    """Whether a run pays for its nth answer out of the promise itself.

    It does for an answer that it paid for before. Once there was such an answer, it also does for an event
    that its allotment no longer holds: costs may depend on what was drawn, so answers that are drawn again
    may cost more than those that the allotment paid for.
    """
    if nth > run.paid_for:
        raise LedgerError(f"answer {nth} cannot be paid for before answer {run.paid_for}.")
    if type(cost) is not type(allotment):
        return False  # which is refused in words of its own
    return nth < run.paid_for or (run.repeats > 0 and cost.value > run.rest(allotment).value)
