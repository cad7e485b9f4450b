"""One dataset's spending, for ever: a promise, and then lines that are only ever added.

A run *begins* by setting its whole allotment aside, pays for each event out of it, and gives
the rest back when it *closes*. An open run counts with all of its allotment: a crash costs
budget, never privacy. Just before noise is drawn, its payment is *used up*, once for ever, in a line
of its own: whoever comes later, with an older or a copied journal, must pay again, out of what the
promise has left.
"""

import secrets
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from types import MappingProxyType
from typing import Any, Self, TypeVar

from sidelight._check import count_of
from sidelight.errors import LedgerError, PolicyError, SettingError
from sidelight.privacy.accountant import check_fits
from sidelight.privacy.budget import Cost, Epsilon, Rho, Tally, added, cost_to_json
from sidelight.privacy.chain import Line, Sums, is_apart
from sidelight.privacy.event import Event
from sidelight.privacy.marks import Marks, is_other_schema, same_table
from sidelight.privacy.pages import Pages, Pen
from sidelight.privacy.policy import Policy, check_limits, policy_of
from sidelight.privacy.promise import Promise, cannot_draw_again, exhausted
from sidelight.privacy.purpose import Purpose
from sidelight.privacy.replay import replayed
from sidelight.privacy.runs import Payment, RunSummary, payments_of, summary_of
from sidelight.privacy.standing import Standing

T = TypeVar("T")
_CURRENCY: dict[type[Cost], str] = {Rho: "ρ", Epsilon: "ε"}


def new_run() -> str:
    """An id that no other run has."""
    return secrets.token_hex(8)


class Ledger(ABC):
    """One dataset's spending, whatever keeps its lines: these are added, never edited.

    Each change reads a handful of lines and adds one.
    """

    promise: Promise
    """The promise with which the ledger was created."""
    where: str
    """Where it is kept, as messages say it."""
    _known: Line
    """A line that this process knows to be on disk."""
    _marks: Marks = MappingProxyType({})
    """The marks of the table that the next runs are about, if ``for_table`` gave them."""

    @abstractmethod
    def _transaction(self, *, to_write: bool) -> AbstractContextManager[Pages]:
        """Pages that nobody else can change meanwhile; on leaving, added lines are on disk."""

    def _change(self, decide: Callable[[Pen], T]) -> T:
        """Look, decide and write in one transaction."""
        with self._transaction(to_write=True) as pages:
            pen = self._pen(pages)
            decided = decide(pen)
        self._known = pen.last
        return decided

    def _look(self, read: Callable[[Pages], T]) -> T:
        """Read in one transaction."""
        with self._transaction(to_write=False) as pages:
            return read(pages)

    def _pen(self, pages: Pages) -> Pen:
        """A pen behind the last line; refused where lines are missing, or nothing may be added."""
        known, last = pages.at_and_last(self._known.number)
        # PRIVACY: an older copy put in the file's place would forget what was spent.
        if last is None or known is None or known.hash != self._known.hash:
            raise LedgerError(f"{self.where} lost lines that were there before; nothing was charged.")
        if last.kind == "moved":
            # PRIVACY: two ledgers that go on from one promise could spend it twice.
            raise LedgerError(
                f"{self.where} was moved to {last.body.get('to')} on {last.when[:10]}, and goes on there. "
                "Use that ledger; nothing was charged."
            )
        return Pen(pages, last)

    @property
    def key(self) -> str:
        """The key of this ledger's marks. PRIVACY: it is never published, nor shown."""
        return self._change(lambda pen: pen.pages.key())

    @property
    def policy(self) -> Policy | None:
        """Which runs are allowed; None where the promise alone decides."""
        return self._look(lambda pages: about(pages).policy)

    @property
    def largest_allowed(self) -> float | None:
        """The largest ε that the policy allows a run now, whatever is left; None where it sets no limit."""

        def look(pages: Pages) -> float | None:
            policy = about(pages).policy
            if policy is None:
                return None
            return policy.largest(self.promise, Standing.of(pages.ends()), now=pages.now())

        return self._look(look)

    def set_policy(self, policy: Policy | Mapping[str, Any] | str | Path | None) -> None:
        """From now on, allow only what this policy does; None withdraws it. Either is a line."""
        rules = None if policy is None else Policy.of(policy)
        if rules is not None:
            check_limits(rules, self.promise)
        facts = {"policy": None if rules is None else rules.as_json()}
        self._change(lambda pen: pen.write("policy", facts, of_run=Sums()))

    def for_table(self, marks: Marks) -> None:
        """Name the table of the next runs by its marks: ``begin`` records them, or refuses another table."""
        self._marks = dict(marks)

    def has_other_schema(self, marks: Marks) -> bool:
        """Whether its table was seen under schemas, and never under the one that these marks are of."""
        return is_other_schema(marks, self._look(lambda pages: about(pages).marks))

    def is_same_table(self, run: str, marks: Marks) -> bool | None:
        """Whether these are marks of the table that a run was about; None where they cannot be compared."""

        def look(pages: Pages) -> Marks:
            begun, _ = self._ends(pages, run)
            known: Marks = {}
            for line in pages.lines(""):
                if line.kind == "table" and line.number < begun.number:
                    known = line.marks
            return known

        return same_table(marks, self._look(look))

    def rebind(self, marks: Marks) -> None:
        """From now on, recognise the ledger's table by these marks."""
        facts = {"marks": dict(marks), "rebound": True}
        self._change(lambda pen: pen.write("table", facts, of_run=Sums()))

    def _bind(self, pen: Pen, known: Marks) -> None:
        """Let the ledger know its table; another table is refused."""
        if same_table(self._marks, known) is False:
            raise LedgerError(
                f"{self.where} keeps the spending of another table, or this one has changed since. The "
                "budget of one table must not pay for another: open a ledger for this one. If it is the same "
                "table, corrected or continued, say so: `sidelight ledger rebind LEDGER TABLE --schema "
                "SCHEMA`, which gives no budget back. Nothing was charged."
            )
        told = {**known, **self._marks}
        if told != known:
            pen.write("table", {"marks": told}, of_run=Sums())

    def require(self, allotment: Cost, purpose: Purpose | None = None) -> None:
        """BudgetExhausted or PolicyError if ``begin`` would refuse this run now; nothing is set aside."""

        def look(pages: Pages) -> None:
            self._with_aside(_last_of(pages, self.where).total, allotment)
            self._allow(pages, about(pages).policy, allotment, purpose or Purpose())

        self._look(look)

    def _with_aside(self, before: Sums, allotment: Cost) -> Sums:
        """The sums with this allotment set aside, or BudgetExhausted."""
        if not allotment:
            raise SettingError("an allotment must be above 0; got 0.")
        budget = self.promise.budget
        total = before.begun(budget.tally(allotment))
        if not budget.admits(total.tally):
            raise exhausted(
                self.promise,
                before.tally,
                allotment,
                events=before.events,
                open_runs=before.open_runs,
                where=self.where,
            )
        return total

    def _allow(self, pages: Pages, policy: Policy | None, allotment: Cost, purpose: Purpose) -> None:
        """PolicyError if its approval was used before, or the ledger's policy does not allow this run."""
        if purpose.approval is not None:
            digest = purpose.approval.digest
            for earlier in (summary_of(*ends) for ends in pages.ends()):
                # PRIVACY: whoever approved a plan approved its cost once.
                if earlier.has_used(digest):
                    raise PolicyError(
                        f"the plan with digest {digest[:12]}… was carried out before, by run {earlier.id} of "
                        f"{self.where}: an approval serves one run. Resume that run; or make the plan again, "
                        "which gives it another digest, and have it approved. Nothing was read and nothing "
                        "was charged."
                    )
        if policy is not None:
            standing = Standing.of(pages.ends())
            refusal = policy.refusal(self.promise, standing, allotment, purpose, now=pages.now())
            if refusal is not None:
                raise refusal

    def begin(
        self, allotment: Cost, *, label: str, run: str | None = None, purpose: Purpose | None = None
    ) -> str:
        """Set an allotment aside, all of it or BudgetExhausted and none of it; gives the run's id.

        To find the run again after a crash, write down an id (``new_run``) first, and pass it as ``run``.
        ``purpose`` is what the ledger's policy looks at, with who asked for the run and who approved it; a
        run that the policy does not allow is a PolicyError.
        """
        named = new_run() if run is None else run
        meant = Purpose() if purpose is None else purpose

        def decide(pen: Pen) -> str:
            pages = pen.pages
            # PRIVACY: two runs of one name would be counted as one.
            if not named or pages.first(named) is not None:
                raise LedgerError(f"run {named!r} of {self.where} has begun already; nothing was set aside.")
            total, known = self._with_aside(pen.last.total, allotment), about(pages)
            self._allow(pages, known.policy, allotment, meant)
            self._bind(pen, known.marks)
            facts = {"label": label, "allotment": cost_to_json(allotment), **meant.as_json()}
            pen.write("begin", facts, total=total, run=named, of_run=Sums(open_runs=1))
            return named

        return self._change(decide)

    def append(self, event: Event, *, run: str, nth: int | None = None) -> int:
        """Pay for the run's nth answer, by default the next one; gives the number of the payment's line.

        It comes out of the run's allotment; for an answer that was paid for before, out of the promise
        itself. All of it, or BudgetExhausted and nothing. Returns once it is on disk.
        """
        budget = self.promise.budget

        def decide(pen: Pen) -> int:
            allotment, of_run = self._open(pen.pages, run, "nothing was charged")
            place = of_run.paid_for if nth is None else nth
            facts = {"event": event.as_json(), "place": place}
            before = pen.last.total
            if is_apart(place, event.cost, of_run, allotment):
                total = before.counted_apart(budget.tally(event.cost))
                if not budget.admits(total.tally):
                    raise cannot_draw_again(self.promise, before.tally, [event.cost], run=run)
                self._allow_again(pen.pages, event.cost, run)
                of_run = of_run.charged_apart(event.cost, repeats=place < of_run.paid_for)
                facts["apart"] = True
            else:
                check_fits(event, of_run.rest(allotment), of=allotment)
                total, of_run = before.counted(), of_run.charged(budget.tally(event.cost))
            return pen.write("event", facts, total=total, run=run, of_run=of_run).number

        return self._change(decide)

    def _allow_again(self, pages: Pages, cost: Cost, run: str) -> None:
        """PolicyError if the ledger's policy does not allow a run to pay again for what it lost."""
        policy = about(pages).policy
        if policy is not None:
            refusal = policy.refusal_again(self.promise, Standing.of(pages.ends()), cost, run=run)
            if refusal is not None:
                raise refusal

    def draw(self, payment: int, *, run: str, ticket: str | None = None) -> str | None:
        """Mark a payment as drawn for, once; gives a ticket, or None if it was marked before.

        Called just before noise is drawn; returns once it is on disk. ``ticket`` is given for an output that
        was drawn earlier, if an older copy has replaced the ledger since.
        """

        def decide(pen: Pen) -> str | None:
            pages = pen.pages
            _, of_run = self._open(pages, run, "nothing was drawn")
            # A ticket that is brought here may stand anywhere; a new one, after its payment.
            since = list(pages.lines(run, after=0 if ticket is not None else payment - 1))
            paid = next((line for line in since if line.number == payment), None)
            if paid is None or paid.kind != "event":
                raise LedgerError(f"run {run!r} of {self.where} made no payment in line {payment}.")
            draws = [line.body for line in since if line.kind == "draw"]
            if ticket is not None and any(draw["ticket"] == ticket for draw in draws):
                return ticket  # another copy of the journal has brought it here
            # PRIVACY: whoever finds the payment used up must pay for a draw of their own.
            if paid.nth is None or any(draw["payment"] == payment for draw in draws):
                return None
            given = secrets.token_hex(16) if ticket is None else ticket
            facts = {"place": paid.nth, "payment": payment, "ticket": given}
            pen.write("draw", facts, run=run, of_run=of_run)
            return given

        return self._change(decide)

    def payments(self, run: str) -> tuple[Payment, ...]:
        """The payments of the run, in order, and which of them were drawn."""

        def look(pages: Pages) -> list[Line]:
            self._state(pages, run)
            return list(pages.lines(run))

        return payments_of(self._look(look))

    def require_again(self, costs: Iterable[Cost], *, run: str) -> None:
        """BudgetExhausted if the promise cannot pay for all of these in addition to what is set aside."""
        wanted, budget = list(costs), self.promise.budget
        if not wanted:
            return

        def look(pages: Pages) -> None:
            before = _last_of(pages, self.where).total.tally
            if not budget.admits(sum(map(budget.tally, wanted), start=before)):
                raise cannot_draw_again(self.promise, before, wanted, run=run)
            self._allow_again(pages, added(*wanted), run)

        self._look(look)

    def close(self, run: str) -> None:
        """Give back what the run did not spend. Closing twice is closing once."""

        def decide(pen: Pen) -> None:
            allotment, of_run = self._state(pen.pages, run)
            if of_run.open_runs:
                total = pen.last.total.closed(self.promise.budget.tally(allotment), of_run)
                pen.write("close", {}, total=total, run=run, of_run=of_run.ended())

        self._change(decide)

    def _open(self, pages: Pages, run: str, otherwise: str) -> tuple[Cost, Sums]:
        """The allotment of an open run, and its sums."""
        allotment, of_run = self._state(pages, run)
        if not of_run.open_runs:
            raise LedgerError(f"run {run!r} of {self.where} is closed; {otherwise}.")
        return allotment, of_run

    def _state(self, pages: Pages, run: str) -> tuple[Cost, Sums]:
        """The allotment of a run, and its sums."""
        first, last = self._ends(pages, run)
        return first.allotment, last.of_run

    def _ends(self, pages: Pages, run: str) -> tuple[Line, Line]:
        """The first line of a run, and the last."""
        ends = next(pages.ends(run), None) if run else None
        if ends is None:
            raise LedgerError(f"{self.where} holds no run {run!r}.")
        return ends

    def _last(self) -> Line:
        return self._look(lambda pages: _last_of(pages, self.where))

    @property
    def tally(self) -> Tally:
        """The sum that counts against the promise; ``Budget.epsilon_of`` converts it to ε.

        An open run counts with its whole allotment, a closed one with what its events cost.
        """
        return self._last().total.tally

    @property
    def spent(self) -> Fraction:
        """The part of ``Budget.capacity`` that ``tally`` takes."""
        return self.tally.priced

    @property
    def left(self) -> Fraction:
        """The part of ``Budget.capacity`` that ``spent`` leaves; at least 0."""
        return max(Fraction(0), self.promise.budget.capacity - self.spent)

    @property
    def head(self) -> str:
        """The hash of the last line. Kept in a release, it proves later that no line went missing."""
        return self._last().hash

    @property
    def origin(self) -> str:
        """The hash of the first line, which holds the promise: no other ledger has it."""
        first = self._look(lambda pages: pages.at(1))
        if first is None:
            raise LedgerError(f"{self.where} holds no lines.")
        return first.hash

    def allotment(self, run: str) -> Cost:
        """The allotment of the run."""
        return self._look(lambda pages: self._state(pages, run)[0])

    def run(self, run: str) -> RunSummary:
        """One run, summed up."""
        return self._look(lambda pages: summary_of(*self._ends(pages, run)))

    def knows(self, run: str) -> bool:
        """Whether the run began here."""
        return bool(run) and self._look(lambda pages: pages.first(run)) is not None

    def is_open(self, run: str) -> bool:
        """Whether the run may still pay for events."""
        return self._look(lambda pages: bool(self._state(pages, run)[1].open_runs))

    def events(self, run: str | None = None) -> Iterator[Event]:
        """The events that were paid for, in order: by one run, or by all."""

        def look(pages: Pages) -> list[Line]:
            if run is not None:
                self._state(pages, run)
            return [line for line in pages.lines(run) if line.kind == "event"]

        # The transaction is over by now, so a slow reader keeps no writer waiting.
        return (line.event for line in self._look(look))

    def runs(self) -> tuple[RunSummary, ...]:
        """Every run, in the order in which they began."""
        return self._look(lambda pages: tuple(summary_of(first, last) for first, last in pages.ends()))

    def verify(self, *, head: str | None = None) -> None:
        """Read every line again; LedgerError says which one is wrong.

        With the ``head`` that a release kept, also that the ledger still holds that line:
        without it, lines missing at the end cannot be seen.
        """
        self._look(lambda pages: replayed(pages.lines(), where=self.where, head=head))

    def __copy__(self) -> Self:
        # PRIVACY: a copy would not hear of what the original spends; a table has one ledger.
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self

    def __repr__(self) -> str:
        budget = self.promise.budget
        used = budget.epsilon_of(self.tally)
        return (
            f"Ledger({self.promise.shown!r}, ε = {used:.4g} of {budget.epsilon:g} spent, "
            f"{count_of(len(self.runs()), 'run')}, kept in {self.where})"
        )

    def _repr_html_(self) -> str:
        from sidelight._html import table

        budget, tally = self.promise.budget, self.tally
        facts = [
            ("promise", f"ε = {budget.epsilon:g}, δ = {budget.delta:g}"),
            ("unit", self.promise.protects),
            ("used", f"ε = {budget.epsilon_of(tally):.4g}"),
            ("left", f"{float(self.left / budget.capacity):.0%} of the budget"),
            ("kept", self.where),
        ]
        runs = [
            (run.when, run.label, "open" if run.is_open else "closed", f"{run.events:,}",
             f"{float(run.spent):.4g} of {float(run.allotment):.4g}", _CURRENCY[type(run.allotment)])
            for run in self.runs()
        ]  # fmt: skip
        return table(
            f"The ledger of {self.promise.shown}",
            facts,
            columns=("began", "run", "state", "events", "spent", "in"),
            rows=runs,
            share=float(self.spent / budget.capacity),
        )


@dataclass(frozen=True)
class About:
    """The state of the whole ledger, by its lines that belong to no run."""

    marks: Marks
    policy: Policy | None


def about(pages: Pages) -> About:
    """The marks of the ledger's table and its policy, as they are now."""
    marks: Marks = {}
    policy: Policy | None = None
    for line in pages.lines(""):
        if line.kind == "table":
            marks = line.marks
        elif line.kind == "policy":
            policy = policy_of(line)
    return About(marks, policy)


def _last_of(pages: Pages, where: str) -> Line:
    last = pages.last()
    if last is None:
        raise LedgerError(f"{where} holds no lines.")
    return last
