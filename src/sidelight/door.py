"""Pay, write, look, draw: the order that every door to private data keeps.

A door makes an event, charges it to the run's accountant, writes it to the ledger, and only
then looks at private data and draws the noise that the event paid for. A crash costs
budget, never privacy. With a checkpoint, a paid output is journalled before it is used.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from sidelight.errors import CheckpointError
from sidelight.journal import Journal
from sidelight.privacy.accountant import Accountant
from sidelight.privacy.budget import Cost
from sidelight.privacy.event import Event
from sidelight.privacy.ledger import Ledger
from sidelight.privacy.noise import NoiseSource, SystemNoise
from sidelight.privacy.promise import agreed_unit
from sidelight.privacy.unit import Unit
from sidelight.progress import Progress, Silent


class Door:
    """What all curators share: an allotment, a ledger, a source of noise, and the order of things."""

    def __init__(
        self,
        *,
        allotment: Cost,
        unit: Unit,
        ledger: Ledger,
        run: str | None = None,
        noise: NoiseSource | None = None,
        journal: Journal | None = None,
        progress: Progress | None = None,
    ) -> None:
        self.unit = agreed_unit(asked=unit, promise=ledger.promise)
        self._accountant = Accountant(allotment)
        self._ledger = ledger
        self._run = run if run is not None else ledger.begin(allotment, label="a run")
        self._noise = noise if noise is not None else SystemNoise()
        self._journal = journal if journal is not None else Journal.in_memory(self._run)
        self._progress = progress if progress is not None else Silent()
        self._already_paid = tuple(ledger.events(self._run))
        if len(self._already_paid) > len(self._journal.outputs) + 1:
            raise CheckpointError(
                "the ledger has paid for outputs that this checkpoint does not hold: it is an old copy. "
                "Resume from the newest one."
            )

    @property
    def allotment(self) -> Cost:
        """What this run may spend in all."""
        return self._accountant.allotment

    @property
    def remaining(self) -> Cost:
        """What this run may still spend."""
        return self._accountant.remaining

    @property
    def events(self) -> tuple[Event, ...]:
        """What this run has spent, in order."""
        return self._accountant.events

    @property
    def progress(self) -> Progress:
        """Where phases and rounds are told."""
        return self._progress

    def _pay_then(self, event: Event, look_and_draw: Callable[[], NDArray[np.int64]]) -> NDArray[np.int64]:
        """Pay, write, look, draw; or answer from the journal what was paid for before."""
        index = len(self._accountant.events)
        self._accountant.charge(event)
        if index < len(self._already_paid):
            self._same(event, self._already_paid[index])
        else:
            self._ledger.append(event, run=self._run)
        if index < len(self._journal.outputs):
            paid_event, output = self._journal.outputs[index]
            self._same(event, paid_event)
            return output
        if index < len(self._already_paid) and not self._ledger.is_open(self._run):
            raise CheckpointError(
                "this run was closed in its ledger before the checkpoint held all that it paid for; "
                "it cannot go on. Start a new run in a new folder."
            )
        output = look_and_draw()
        self._journal.append(event, output)
        return output

    def _same(self, event: Event, before: Event) -> None:
        if event != before:
            raise CheckpointError(
                f"the checkpoint went on with {before.what!r} where this run asks for {event.what!r}: "
                "it was made with another version or other settings. Name a new folder."
            )

    def _tell(self, what: str) -> None:
        left = float(self.remaining) / float(self.allotment)
        self._progress.step(f"{what}, {left:.0%} of the budget left", share=1 - left)
        if not self.remaining:
            self._progress.turn("fit")  # all that a mechanism can still do
