"""Pay, write, look, draw: the order that every door to private data keeps.

A door makes an event, charges it to the run's accountant, writes it to the ledger, and only then looks at
private data. Just before the noise is drawn, a line of its own in the ledger uses the payment up:
nobody can draw for it again. With a checkpoint, the output is journalled before it is used.

So every draw has a payment of its own on disk before it is made, whatever happens to the journal:

    died before the payment is used up     the next process uses it; nothing is paid twice
    died between that and the journal      the output is lost: it is paid for again, and drawn again
    a copied, cut or restored journal      what it lacks is paid for again, and drawn again
"""

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from sidelight._interrupt import uninterrupted
from sidelight.curator.journal import Journal
from sidelight.errors import CheckpointError
from sidelight.privacy.accountant import Accountant
from sidelight.privacy.budget import Cost
from sidelight.privacy.chained_ledger import Ledger
from sidelight.privacy.event import Event
from sidelight.privacy.noise import NoiseSource, SystemNoise
from sidelight.privacy.promise import agreed_unit
from sidelight.privacy.runs import Payment
from sidelight.privacy.unit import Unit
from sidelight.progress import Progress, Silent

Exact = TypeVar("Exact")


@contextmanager
def _silence() -> Iterator[None]:
    """No warning leaves the block.

    PRIVACY: whether something overflows or is divided by 0 there depends on private data.
    """
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


class Door:
    """The base of all curators: an allotment, a ledger, a source of noise, the order of the four steps."""

    def __init__(
        self,
        *,
        allotment: Cost,
        set_aside: Cost | None = None,
        unit: Unit,
        ledger: Ledger,
        run: str | None = None,
        noise: NoiseSource | None = None,
        journal: Journal | None = None,
        progress: Progress | None = None,
    ) -> None:
        self.unit = agreed_unit(asked=unit, promise=ledger.promise)
        self._accountant = Accountant(allotment, set_aside=set_aside)
        self._before = Fraction(0)
        """The cost of what was asked before ``in_groups`` began."""
        self._ledger = ledger
        self._run = run if run is not None else ledger.begin(allotment, label="a run")
        self._noise = noise if noise is not None else SystemNoise()
        self._journal = journal if journal is not None else Journal.in_memory(self._run)
        self._progress = progress if progress is not None else Silent()
        self._resume(ledger.payments(self._run))

    @property
    def allotment(self) -> Cost:
        """The most that this run may spend, without the part set aside for its end."""
        given = self._accountant.allotment
        return type(given)(given.value - self._before)

    @property
    def remaining(self) -> Cost:
        """The part of the allotment that this run may still spend."""
        return self._accountant.remaining

    @property
    def events(self) -> tuple[Event, ...]:
        """The events that this run has paid for, in order."""
        return self._accountant.events

    @property
    def progress(self) -> Progress:
        """Shows phases and rounds to whoever waits."""
        return self._progress

    def _pay_then(
        self,
        event: Event,
        look: Callable[[], Exact],
        draw: Callable[[Exact], NDArray[np.int64]],
        *,
        numbers: int = 2,
    ) -> NDArray[np.int64]:
        """Pay, write, look, draw; an answer that the journal holds is given from there.

        ``look`` sees private data and may take long: a run that is stopped there pays nothing twice. ``draw``
        does nothing but draw, because an output that is drawn and not yet on disk is lost in a crash; it
        draws at most so many ``numbers``, for which there is room on the disk by then.
        """
        event.require_drawable()  # known beforehand, so it costs nothing to be refused
        nth = len(self._accountant.events)
        self._accountant.charge(event)
        if nth < len(self._journal.outputs):
            return self._replayed(event, nth)
        payment = self._paid(event, nth)
        with _silence():
            exact = look()
        with uninterrupted():
            self._journal.make_room(event, numbers)
            ticket = self._ticket(payment, event, nth)
            # PRIVACY: the ledger has this draw on disk now, and nobody can draw for its payment again.
            with _silence():
                output = draw(exact)
            self._journal.append(event, output, ticket)
        return output

    def _resume(self, payments: tuple[Payment, ...]) -> None:
        """Compare the ledger's run with the journal; refuse if the budget cannot replace lost answers."""
        self._is_open = self._ledger.is_open(self._run)
        self._drawn = {payment.ticket: payment for payment in payments if payment.ticket}
        self._not_drawn = [payment for payment in payments if payment.ticket is None]
        for nth, kept in enumerate(self._journal.outputs):
            payment = self._drawn.get(kept.ticket)
            if payment is not None and (payment.nth, payment.event) != (nth, kept.event):
                raise CheckpointError(
                    "the checkpoint's journal contradicts the ledger: it was edited. Put back the file that "
                    "the run wrote, or name a new folder."
                )
        lacking: dict[int, list[Payment]] = {}
        for payment in payments:
            if payment.nth >= len(self._journal.outputs):
                lacking.setdefault(payment.nth, []).append(payment)
        # An answer with a payment that was never drawn for needs no other. Answers that are drawn again may
        # cost more than before: the least that was paid is a guess, and the ledger decides.
        again = [
            min((payment.event.cost for payment in paid), key=lambda cost: cost.value)
            for paid in lacking.values()
            if all(payment.ticket is not None for payment in paid)
        ]
        if self._is_open:
            self._ledger.require_again(again, run=self._run)

    def _replayed(self, event: Event, nth: int) -> NDArray[np.int64]:
        """The journal's answer; charged again where an older copy has replaced the ledger."""
        kept = self._journal.outputs[nth]
        if event != kept.event:
            raise CheckpointError(
                f"the checkpoint went on with {kept.event.what!r} where this run asks for {event.what!r}: "
                "it was made with another version or other settings. Name a new folder."
            )
        if kept.ticket not in self._drawn:
            self._ticket(self._paid(event, nth), event, nth, ticket=kept.ticket)
        return kept.output

    def _paid(self, event: Event, nth: int) -> int:
        """The line of a payment for the run's nth answer: one not yet drawn for, or else a new one."""
        if not self._is_open:
            raise CheckpointError(
                "this run was closed in its ledger before the checkpoint held all that it paid for; "
                "it cannot go on. Start a new run in a new folder."
            )
        for payment in self._not_drawn:
            if (payment.nth, payment.event) == (nth, event):
                self._not_drawn.remove(payment)
                return payment.line
        return self._ledger.append(event, run=self._run, nth=nth)

    def _ticket(self, payment: int, event: Event, nth: int, *, ticket: str | None = None) -> str:
        """Use the payment up; pay again if another copy of the journal has used it already."""
        while (taken := self._ledger.draw(payment, run=self._run, ticket=ticket)) is None:
            payment = self._ledger.append(event, run=self._run, nth=nth)
        return taken

    def _tell(self, what: str) -> None:
        left = float(self.remaining) / float(self.allotment)
        self._progress.step(f"{what}, {left:.0%} of the budget left", share=1 - left)
        if not self.remaining:
            self._progress.turn("fit")  # all that a mechanism can still do
