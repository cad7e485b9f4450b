"""How a ledger's lines are added, whatever keeps them: each change reads a handful of lines and adds one."""

import secrets
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from fractions import Fraction
from types import MappingProxyType
from typing import Any, Self

from sidelight.errors import LedgerError, SettingError
from sidelight.privacy.accountant import check_fits
from sidelight.privacy.budget import Cost, Epsilon, Rho, Tally, cost_to_json
from sidelight.privacy.chain import Line, Sums, is_apart
from sidelight.privacy.event import Event
from sidelight.privacy.marks import Marks, is_other_schema, same_table
from sidelight.privacy.pages import Pages
from sidelight.privacy.promise import Promise, cannot_draw_again, exhausted
from sidelight.privacy.replay import replayed
from sidelight.privacy.runs import Payment, RunSummary, payments_of, summary_of

_CURRENCY: dict[type[Cost], str] = {Rho: "ρ", Epsilon: "ε"}


def new_run() -> str:
    """An id that no other run has."""
    return secrets.token_hex(8)


class ChainedLedger(ABC):
    """A Ledger, whatever keeps its lines. Each change reads a handful of lines and adds one."""

    promise: Promise
    where: str
    """Where it is kept, as messages say it."""
    _known: Line
    """A line that this process knows to be on disk."""
    _marks: Marks = MappingProxyType({})
    """The marks of the table that the next runs are about, if ``for_table`` gave them."""

    @abstractmethod
    def _transaction(self, *, to_write: bool) -> AbstractContextManager[Pages]:
        """Pages that nobody else can change meanwhile; on leaving, added lines are on disk."""

    @contextmanager
    def _writing(self) -> Iterator[tuple[Pages, Line]]:
        """Pages to add to, and the last line."""
        with self._transaction(to_write=True) as pages:
            known, last = pages.at(self._known.number), pages.last()
            # PRIVACY: an older copy put in the file's place would forget what was spent.
            if last is None or known is None or known.hash != self._known.hash:
                raise LedgerError(f"{self.where} lost lines that were there before; nothing was charged.")
            yield pages, last

    @property
    def key(self) -> str:
        with self._writing() as (pages, _):
            return pages.key()

    def for_table(self, marks: Marks) -> None:
        self._marks = dict(marks)

    def has_other_schema(self, marks: Marks) -> bool:
        with self._transaction(to_write=False) as pages:
            about = pages.last("")
        return about is not None and is_other_schema(marks, about.marks)

    def rebind(self, marks: Marks) -> None:
        with self._writing() as (pages, last):
            line = Line.after(last, "table", {"marks": dict(marks)}, total=last.total, of_run=Sums())
            pages.add(line)
        self._known = line

    def _bound(self, pages: Pages, last: Line) -> Line:
        """The last line once the ledger knows its table; another table is refused."""
        about = pages.last("")
        known = {} if about is None else about.marks
        if same_table(self._marks, known) is False:
            raise LedgerError(
                f"{self.where} keeps the spending of another table, or this one has changed since. The "
                "budget of one table must not pay for another: open a ledger for this one. If it is the same "
                "table, corrected or continued, say so: `sidelight ledger rebind LEDGER TABLE --schema "
                "SCHEMA`, which gives no budget back. Nothing was charged."
            )
        told = known | dict(self._marks)
        if told == known:
            return last
        line = Line.after(last, "table", {"marks": told}, total=last.total, of_run=Sums())
        pages.add(line)
        return line

    def require(self, allotment: Cost) -> None:
        self._with_aside(self._last().total, allotment)

    def can_pay(self, allotment: Cost) -> bool:
        budget = self.promise.budget
        return budget.admits(self._last().total.begun(budget.tally(allotment)).tally)

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

    def begin(self, allotment: Cost, *, label: str, run: str | None = None) -> str:
        run = new_run() if run is None else run
        with self._writing() as (pages, last):
            # PRIVACY: two runs of one name would be counted as one.
            if not run or pages.first(run) is not None:
                raise LedgerError(f"run {run!r} of {self.where} has begun already; nothing was set aside.")
            total = self._with_aside(last.total, allotment)
            last = self._bound(pages, last)
            facts = {"label": label, "allotment": cost_to_json(allotment)}
            line = Line.after(last, "begin", facts, total=total, run=run, of_run=Sums(open_runs=1))
            pages.add(line)
        self._known = line
        return run

    def append(self, event: Event, *, run: str, nth: int | None = None) -> int:
        budget = self.promise.budget
        with self._writing() as (pages, last):
            allotment, of_run = self._open(pages, run, "nothing was charged")
            nth = of_run.paid_for if nth is None else nth
            facts = {"event": event.as_json(), "place": nth}
            if is_apart(nth, event.cost, of_run, allotment):
                total = last.total.counted_apart(budget.tally(event.cost))
                if not budget.admits(total.tally):
                    raise cannot_draw_again(self.promise, last.total.tally, [event.cost], run=run)
                of_run = of_run.charged_apart(event.cost, repeats=nth < of_run.paid_for)
                facts["apart"] = True
            else:
                check_fits(event, of_run.rest(allotment), of=allotment)
                total, of_run = last.total.counted(), of_run.charged(budget.tally(event.cost))
            line = Line.after(last, "event", facts, total=total, run=run, of_run=of_run)
            pages.add(line)
        self._known = line
        return line.number

    def draw(self, payment: int, *, run: str, ticket: str | None = None) -> str | None:
        with self._writing() as (pages, last):
            _, of_run = self._open(pages, run, "nothing was drawn")
            paid = pages.at(payment)
            if paid is None or paid.run != run or paid.kind != "event":
                raise LedgerError(f"run {run!r} of {self.where} made no payment in line {payment}.")
            if ticket is not None and any(draw["ticket"] == ticket for draw in _draws(pages, run, after=0)):
                return ticket  # another copy of the journal has brought it here
            # PRIVACY: whoever finds the payment used up must pay for a draw of their own.
            draws = _draws(pages, run, after=payment)
            if paid.nth is None or any(draw["payment"] == payment for draw in draws):
                return None
            ticket = secrets.token_hex(16) if ticket is None else ticket
            facts = {"place": paid.nth, "payment": payment, "ticket": ticket}
            line = Line.after(last, "draw", facts, total=last.total, run=run, of_run=of_run)
            pages.add(line)
        self._known = line
        return ticket

    def payments(self, run: str) -> tuple[Payment, ...]:
        with self._transaction(to_write=False) as pages:
            self._state(pages, run)
            lines = list(pages.lines(run))
        return payments_of(lines)

    def require_again(self, costs: Iterable[Cost], *, run: str) -> None:
        wanted, budget = list(costs), self.promise.budget
        if not wanted:
            return
        before = self._last().total.tally
        if not budget.admits(sum(map(budget.tally, wanted), start=before)):
            raise cannot_draw_again(self.promise, before, wanted, run=run)

    def close(self, run: str) -> None:
        with self._writing() as (pages, last):
            allotment, of_run = self._state(pages, run)
            if not of_run.open_runs:
                return
            total = last.total.closed(self.promise.budget.tally(allotment), of_run)
            line = Line.after(last, "close", {}, total=total, run=run, of_run=of_run.ended())
            pages.add(line)
        self._known = line

    def _open(self, pages: Pages, run: str, otherwise: str) -> tuple[Cost, Sums]:
        """What an open run set aside, and its sums."""
        allotment, of_run = self._state(pages, run)
        if not of_run.open_runs:
            raise LedgerError(f"run {run!r} of {self.where} is closed; {otherwise}.")
        return allotment, of_run

    def _state(self, pages: Pages, run: str) -> tuple[Cost, Sums]:
        """What a run set aside, and its sums."""
        first, last = self._ends(pages, run)
        return first.allotment, last.of_run

    def _ends(self, pages: Pages, run: str) -> tuple[Line, Line]:
        """The first line of a run, and the last."""
        first, last = pages.first(run), pages.last(run)
        if not run or first is None or last is None:
            raise LedgerError(f"{self.where} holds no run {run!r}.")
        return first, last

    def _last(self) -> Line:
        with self._transaction(to_write=False) as pages:
            last = pages.last()
        if last is None:
            raise LedgerError(f"{self.where} holds no lines.")
        return last

    @property
    def tally(self) -> Tally:
        return self._last().total.tally

    @property
    def spent(self) -> Fraction:
        return self.tally.priced

    @property
    def left(self) -> Fraction:
        return max(Fraction(0), self.promise.budget.capacity - self.spent)

    @property
    def head(self) -> str:
        return self._last().hash

    def allotment(self, run: str) -> Cost:
        with self._transaction(to_write=False) as pages:
            return self._state(pages, run)[0]

    def run(self, run: str) -> RunSummary:
        with self._transaction(to_write=False) as pages:
            return summary_of(*self._ends(pages, run))

    def knows(self, run: str) -> bool:
        with self._transaction(to_write=False) as pages:
            return bool(run) and pages.first(run) is not None

    def is_open(self, run: str) -> bool:
        with self._transaction(to_write=False) as pages:
            return bool(self._state(pages, run)[1].open_runs)

    def events(self, run: str | None = None) -> Iterator[Event]:
        with self._transaction(to_write=False) as pages:
            if run is not None:
                self._state(pages, run)
            lines = [line for line in pages.lines(run) if line.kind == "event"]
        # The transaction is over by now, so a slow reader keeps no writer waiting.
        return (line.event for line in lines)

    def runs(self) -> tuple[RunSummary, ...]:
        begun: dict[str, Line] = {}
        latest: dict[str, Line] = {}
        with self._transaction(to_write=False) as pages:
            for line in pages.lines():
                begun.setdefault(line.run, line)
                latest[line.run] = line
        return tuple(summary_of(begun[run], latest[run]) for run in begun if run)

    def verify(self, *, head: str | None = None) -> None:
        with self._transaction(to_write=False) as pages:
            replayed(pages.lines(), where=self.where, head=head)

    def __copy__(self) -> Self:
        # PRIVACY: a copy would not hear of what the original spends; a table has one ledger.
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self

    def __repr__(self) -> str:
        budget = self.promise.budget
        used, number = budget.epsilon_of(self.tally), len(self.runs())
        return (
            f"Ledger({self.promise.shown!r}, ε = {used:.4g} of {budget.epsilon:g} spent, "
            f"{number} {'run' if number == 1 else 'runs'}, kept in {self.where})"
        )

    def _repr_html_(self) -> str:
        from sidelight._html import table

        budget, tally = self.promise.budget, self.tally
        facts = [
            ("promise", f"ε = {budget.epsilon:g}, δ = {budget.delta:g}"),
            ("unit", self.promise.unit.describe()),
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


def _draws(pages: Pages, run: str, *, after: int) -> Iterator[dict[str, Any]]:
    return (line.body for line in pages.lines(run, after=after) if line.kind == "draw")
