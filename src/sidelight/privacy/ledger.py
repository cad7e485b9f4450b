"""One dataset's spending, for ever: a promise, and then lines that are only ever added.

A run *begins* by setting its whole allotment aside, pays for each event out of it, and gives
the rest back when it *closes*. An open run counts with all of its allotment: a crash costs
budget, never privacy. Just before noise is drawn, its payment is *used up*, once for ever, in a line
of its own: whoever comes later, with an older or a copied journal, must pay again, out of what the
promise has left. ``MemoryLedger`` is here; ``sql_ledger.SqlLedger`` keeps lines on disk.
"""

import sys
import threading
import traceback
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any, Protocol

from sidelight.errors import UnrecordedWarning
from sidelight.privacy.budget import Cost, Tally
from sidelight.privacy.chain import Line, promise_line
from sidelight.privacy.chained_ledger import ChainedLedger
from sidelight.privacy.event import Event
from sidelight.privacy.marks import Marks
from sidelight.privacy.pages import MemoryPages, Pages
from sidelight.privacy.policy import Policy
from sidelight.privacy.promise import Promise as Promise
from sidelight.privacy.purpose import Purpose
from sidelight.privacy.replay import replayed
from sidelight.privacy.runs import Payment, RunSummary


class Ledger(Protocol):
    """One dataset's spending. Lines are added, never edited; each holds the last one's hash."""

    @property
    def promise(self) -> Promise:
        """What was promised when the ledger was created."""
        ...

    @property
    def tally(self) -> Tally:
        """What counts against the promise; ``Budget.epsilon_of`` converts it to ε.

        An open run counts with its whole allotment, a closed one with what its events cost.
        """
        ...

    @property
    def spent(self) -> Fraction:
        """What ``tally`` takes from ``Budget.capacity``."""
        ...

    @property
    def left(self) -> Fraction:
        """What ``Budget.capacity`` has left after ``spent``; at least 0."""
        ...

    @property
    def head(self) -> str:
        """The hash of the last line. Kept in a release, it proves later that no line went missing."""
        ...

    @property
    def origin(self) -> str:
        """The hash of the first line, which holds the promise: no other ledger has it."""
        ...

    @property
    def key(self) -> str:
        """The key of this ledger's marks. PRIVACY: it is never published, nor shown."""
        ...

    def for_table(self, marks: Marks) -> None:
        """Name the table of the next runs by its marks: ``begin`` records them, or refuses another table."""
        ...

    def has_other_schema(self, marks: Marks) -> bool:
        """Whether its table was seen under schemas, and never under the one that these marks are of."""
        ...

    def is_same_table(self, run: str, marks: Marks) -> bool | None:
        """Whether these are marks of the table that a run was about; None where they cannot be compared."""
        ...

    def rebind(self, marks: Marks) -> None:
        """From now on, recognise the ledger's table by these marks."""
        ...

    @property
    def policy(self) -> Policy | None:
        """Which runs are allowed; None where the promise alone decides."""
        ...

    def set_policy(self, policy: Policy | Mapping[str, Any] | str | Path | None) -> None:
        """From now on, allow only what this policy does; None withdraws it. Either is a line."""
        ...

    @property
    def largest_allowed(self) -> float | None:
        """The largest ε that the policy allows a run now, whatever is left; None where it sets no limit."""
        ...

    def require(self, allotment: Cost, purpose: Purpose | None = None) -> None:
        """BudgetExhausted or PolicyError if ``begin`` would refuse this run now; nothing is set aside."""
        ...

    def begin(
        self, allotment: Cost, *, label: str, run: str | None = None, purpose: Purpose | None = None
    ) -> str:
        """Set an allotment aside, all of it or BudgetExhausted and none of it; gives the run's id.

        To find the run again after a crash, write down an id (``new_run``) first, and pass it as ``run``.
        ``purpose`` is what the ledger's policy looks at, with who asked for the run and who approved it; a
        run that the policy does not allow is a PolicyError.
        """
        ...

    def append(self, event: Event, *, run: str, nth: int | None = None) -> int:
        """Pay for the run's nth answer, by default the next one; gives the number of the payment's line.

        It comes out of the run's allotment; for an answer that was paid for before, out of the promise
        itself. All of it, or BudgetExhausted and nothing. Returns once it is on disk.
        """
        ...

    def draw(self, payment: int, *, run: str, ticket: str | None = None) -> str | None:
        """Mark a payment as drawn for, once; gives a ticket, or None if it was marked before.

        Called just before noise is drawn; returns once it is on disk. ``ticket`` is given for an output that
        was drawn earlier, if an older copy has replaced the ledger since.
        """
        ...

    def payments(self, run: str) -> tuple[Payment, ...]:
        """What the run paid for, in order, and what was drawn for it."""
        ...

    def require_again(self, costs: Iterable[Cost], *, run: str) -> None:
        """BudgetExhausted if the promise cannot pay for all of these in addition to what is set aside."""
        ...

    def close(self, run: str) -> None:
        """Give back what the run did not spend. Closing twice is closing once."""
        ...

    def allotment(self, run: str) -> Cost:
        """What the run set aside."""
        ...

    def run(self, run: str) -> RunSummary:
        """One run, summed up."""
        ...

    def knows(self, run: str) -> bool:
        """Whether the run began here."""
        ...

    def is_open(self, run: str) -> bool:
        """Whether the run may still pay for events."""
        ...

    def events(self, run: str | None = None) -> Iterator[Event]:
        """What was paid for, in order: by one run, or by all."""
        ...

    def runs(self) -> tuple[RunSummary, ...]:
        """Every run, in the order in which they began."""
        ...

    def verify(self, *, head: str | None = None) -> None:
        """Read every line again; LedgerError says which one is wrong.

        With the ``head`` that a release kept, also that the ledger still holds that line:
        without it, lines missing at the end cannot be seen.
        """
        ...


class MemoryLedger(ChainedLedger):
    """A ledger that ends with the process: for experiments, and for a single release.

    >>> from sidelight.privacy.budget import Budget, Epsilon
    >>> from sidelight.privacy.unit import Unit
    >>> ledger = MemoryLedger(Promise(Budget(epsilon=1.0, delta=0.0), Unit("replace"), "adult"))
    >>> run = ledger.begin(Epsilon(Fraction(1, 4)), label="a first look")
    >>> ledger.left
    Fraction(3, 4)
    >>> ledger.close(run)
    >>> ledger.left
    Fraction(1, 1)
    """

    def __init__(self, promise: Promise) -> None:
        self.promise = promise
        self.where = "in memory"
        self._known = promise_line(promise)
        self._pages = MemoryPages([self._known])
        self._lock = threading.RLock()

    @classmethod
    def of_lines(cls, lines: Sequence[Line]) -> "MemoryLedger":
        """A ledger in memory that goes on after these lines, once all of them are verified."""
        promise, last = replayed(lines, where="in memory")
        ledger = cls(promise)
        ledger._pages = MemoryPages([])
        for line in lines:
            ledger._pages.add(line)
        ledger._known = last
        return ledger

    @contextmanager
    def _transaction(self, *, to_write: bool) -> Iterator[Pages]:
        with self._lock:
            yield self._pages


_OURS = str(Path(__file__).resolve().parent.parent)
"""Where our own code is."""


def warn_unrecorded() -> None:
    """Warn that privacy is about to be spent and no ledger records it, at the line that called us."""
    frames = [frame.f_code.co_filename for frame, _ in traceback.walk_stack(sys._getframe())]
    ours = max(place for place, name in enumerate(frames) if name.startswith(_OURS))
    warnings.warn(
        "this spending is recorded nowhere: without a ledger, nothing adds it to what else is spent on the "
        "table. Name one with ledger=… or --ledger; sl.Ledger.open(…) or `sidelight ledger open` makes it.",
        UnrecordedWarning,
        stacklevel=ours + 2,
    )
