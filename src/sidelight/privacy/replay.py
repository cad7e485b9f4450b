"""A whole chain of ledger lines read again: every sum is done anew, and the first wrong line is refused."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from sidelight.errors import LedgerError, SidelightError
from sidelight.privacy.accountant import check_fits
from sidelight.privacy.budget import Budget, Cost, Tally, added
from sidelight.privacy.chain import Line, Sums, is_apart
from sidelight.privacy.policy import Policy, check_limits, policy_of
from sidelight.privacy.promise import Promise
from sidelight.privacy.standing import Standing

_UNREADABLE = (SidelightError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""The errors that a line raises, when it is read, whose text was made by something else."""


@dataclass
class _Run:
    allotment: Cost
    aside: Tally
    sums: Sums = field(default_factory=lambda: Sums(open_runs=1))
    unused: dict[int, int] = field(default_factory=dict)
    """Payments for which nothing was drawn yet: from the number of the payment's line to its answer's."""
    tickets: set[str] = field(default_factory=set)


class Replay:
    """Reads lines in order, does every sum again, and refuses the first line that does not follow."""

    def __init__(self) -> None:
        self.promise: Promise | None = None
        self.last: Line | None = None
        self._total = Sums()
        self._told_of: Tally | None = None
        self._total_told: dict[str, Any] = {}
        self._runs: dict[str, _Run] = {}
        self._approved: dict[str, str] = {}
        """The last run of each plan that was approved, by the plan's digest."""
        self._policy: Policy | None = None
        self._standing = Standing()
        self._costs: dict[str, tuple[Cost, Tally]] = {}

    def read(self, line: Line) -> None:
        """Check the next line; LedgerError says which one is wrong, and how."""
        number = self.last.number + 1 if self.last else 1
        if line.number != number:
            raise LedgerError(f"line {number} is missing.")
        if line.body.get("previous") != (self.last.hash if self.last else ""):
            raise LedgerError(f"line {number} does not follow line {number - 1}: the chain is broken.")
        if self.promise is None:
            self.promise = line.promise
            of_run = Sums()
        else:
            try:
                of_run = self._follow(line, self.promise)
            except _UNREADABLE as error:
                raise LedgerError(f"line {number} cannot be: {error}") from error
        if line.body.get("of_run") != of_run.as_json() or line.body.get("total") != self._told():
            raise LedgerError(f"the sums in line {number} are wrong.")
        self.last = line

    def _follow(self, line: Line, promise: Promise) -> Sums:
        """Apply one line to the sums; gives those of its run."""
        budget = promise.budget
        assert self.last is not None
        if self.last.kind == "moved" and line.kind != "arrived" and (self.last.is_end or not line.is_end):
            raise LedgerError("the ledger was moved before, and goes on elsewhere.")
        if line.kind in ("policy", "table", "moved", "arrived", "restored"):
            if line.run:
                raise LedgerError("it belongs to a run.")
            self._follow_apart(line, self.last, promise)
            return Sums()
        if line.kind == "begin":
            if line.run in self._runs or not line.run:
                raise LedgerError(f"run {line.run!r} begins twice.")
            self._approve(line)
            run = self._runs[line.run] = _Run(line.allotment, budget.tally(line.allotment))
            self._total = self._total.begun(run.aside)
            if not budget.admits(self._total.tally):
                raise LedgerError("more is set aside than was promised.")
            if self._policy is not None and self._policy.refusal(
                promise, self._standing, line.allotment, line.purpose, now=line.when
            ):
                raise LedgerError("the ledger's policy did not allow it.")
            self._standing.begin(line)
            return run.sums
        run = self._runs[line.run]
        if not run.sums.open_runs:
            raise LedgerError(f"run {line.run!r} is closed.")
        if line.kind == "event":
            self._pay(line, run, promise)
        elif line.kind == "draw":
            self._draw(line, run)
        elif line.kind == "close":
            self._total = self._total.closed(run.aside, run.sums)
            run.sums = run.sums.ended()
            self._standing.hold(line.run, run.sums.spent(run.allotment))
            run.unused.clear()  # nobody draws for a closed run
            run.tickets.clear()
        else:
            raise LedgerError(f"unknown kind {line.kind!r}.")
        return run.sums

    def _approve(self, line: Line) -> None:
        """Refuse a run whose purpose cannot be read, or whose approval another run has used."""
        approval = line.purpose.approval
        if approval is not None:
            earlier = self._runs.get(self._approved.get(approval.digest, ""))
            if earlier is not None and (earlier.sums.open_runs or earlier.sums.events):
                raise LedgerError("its approval served another run before.")
            self._approved[approval.digest] = line.run

    def _follow_apart(self, line: Line, last: Line, promise: Promise) -> None:
        """Check a line that belongs to no run and spends nothing."""
        if line.kind == "table" and not line.marks:
            raise LedgerError("it marks no table.")
        if line.kind == "policy":
            self._policy = policy_of(line)
            if self._policy is not None:
                check_limits(self._policy, promise)
        if line.kind == "moved" and not (line.body.get("to") and line.body.get("token")):
            raise LedgerError("it does not say where the ledger was moved to.")
        if (line.kind == "arrived" or line.is_end) and (
            last.kind != "moved" or last.is_end or line.body.get("token") != last.body.get("token")
        ):
            raise LedgerError("it arrived from elsewhere than it was moved from.")

    def _pay(self, line: Line, run: _Run, promise: Promise) -> None:
        budget = promise.budget
        cost, tally = self._cost(line, budget)
        nth = run.sums.paid_for if line.nth is None else line.nth
        if is_apart(nth, cost, run.sums, run.allotment) != line.is_apart:
            raise LedgerError("it charges the promise where the allotment should pay, or the reverse.")
        if line.is_apart:
            self._total = self._total.counted_apart(tally)
            if not budget.admits(self._total.tally):
                raise LedgerError("more is paid again than was promised.")
            if self._policy is not None and self._policy.refusal_again(
                promise, self._standing, cost, run=line.run
            ):
                raise LedgerError("the ledger's policy did not allow to pay again.")
            self._standing.hold(line.run, added(self._standing.held(line.run), cost))
            run.sums = run.sums.charged_apart(cost, repeats=nth < run.sums.paid_for)
        else:
            rest = run.sums.rest(run.allotment)
            if type(cost) is not type(run.allotment) or cost.value > rest.value:
                check_fits(line.event, rest, of=run.allotment)  # which says why
            run.sums = run.sums.charged(tally)
            self._total = self._total.counted()
        if line.nth is not None:
            run.unused[line.number] = nth

    def _draw(self, line: Line, run: _Run) -> None:
        # PRIVACY: one payment, one draw. This is what a copied or cut journal cannot get around.
        nth = run.unused.pop(line.body["payment"], None)
        if nth is None or nth != line.nth:
            raise LedgerError("it draws for what was not paid for, or was drawn already.")
        ticket = line.body["ticket"]
        if not isinstance(ticket, str) or not ticket or ticket in run.tickets:
            raise LedgerError("its ticket is missing, or was used before.")
        run.tickets.add(ticket)

    def _cost(self, line: Line, budget: Budget) -> tuple[Cost, Tally]:
        """The cost of an event, once its noise was checked.

        Most events of a run have the same noise and the same cost. Each such pair is checked once, which
        halves the time that a long ledger takes to open.
        """
        plain = line.body["event"]
        same = repr([item for item in plain.items() if item[0] != "what"])
        # An event must also say in words what it paid for; reading it refuses one that does not.
        if same not in self._costs or not isinstance(plain.get("what"), str):
            cost = line.event.cost
            self._costs[same] = cost, budget.tally(cost)
        return self._costs[same]

    def _told(self) -> dict[str, Any]:
        """The ledger's sums in their plain form; its fractions are told anew only where they changed."""
        if self._told_of is not self._total.tally:
            self._total_told = self._total.as_json()
            self._told_of = self._total.tally
        self._total_told |= {"events": self._total.events, "open": self._total.open_runs}
        return self._total_told


def replayed(lines: Iterable[Line], *, where: str, head: str | None = None) -> tuple[Promise, Line]:
    """Check all lines, and that one of them is ``head``; gives the promise and the last line."""
    replay, holds_head = Replay(), head is None
    try:
        for line in lines:
            replay.read(line)
            holds_head = holds_head or line.hash == head
    except LedgerError as error:
        raise LedgerError(f"{where} is refused: {error}") from error
    if replay.promise is None or replay.last is None:
        raise LedgerError(f"{where} holds no lines: its creation was interrupted, or it was emptied.")
    if not holds_head:
        raise LedgerError(f"{where} is refused: it lacks the line with hash {head}, which it once held.")
    return replay.promise, replay.last
