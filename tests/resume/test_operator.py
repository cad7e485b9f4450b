"""Charged for all that was drawn, always: whatever is copied, cut, deleted, put back, closed or killed."""

import os
import shutil
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

sys.path.insert(0, str(Path(__file__).resolve().parent))
from office import ANSWERS, Office

from sidelight.curator.door import Door
from sidelight.privacy.chained_ledger import Ledger

MEMORY = Path("/dev/shm")
some = st.integers(0, 63)
"""Which of the folders, snapshots or runs there are."""


class Operator(RuleBasedStateMachine):
    """Does one thing after another to checkpoint folders and runs."""

    kind = "memory"

    def __init__(self):
        super().__init__()
        where = MEMORY if os.access(MEMORY, os.W_OK) else None
        self.home = Path(tempfile.mkdtemp(dir=where))
        self.office = Office(self.home, self.kind)
        self.names = 0

    def teardown(self):
        shutil.rmtree(self.home)

    def name(self):
        self.names += 1
        return f"folder{self.names:03}"

    def pick(self, which):
        folders = [folder for folder in self.office.folders() if self.office.journal(folder).exists()]
        return folders[which % len(folders)]

    def has_folder(self):
        return any(self.office.journal(folder).exists() for folder in self.office.folders())

    @invariant()
    def charged_for_all_that_was_drawn(self):
        self.office.check()

    @rule(stops_after=st.one_of(st.none(), st.integers(1, ANSWERS)))
    def begin(self, stops_after):
        self.office.work(self.home / self.name(), stops_after=stops_after)

    @rule(dies_at=st.integers(0, 60))
    def begin_and_die(self, dies_at):
        self.office.work(self.home / self.name(), dies_at=dies_at)

    @precondition(has_folder)
    @rule(which=some, stops_after=st.one_of(st.none(), st.integers(1, ANSWERS)))
    def resume(self, which, stops_after):
        self.office.work(self.pick(which), stops_after=stops_after)

    @precondition(has_folder)
    @rule(which=some, dies_at=st.integers(0, 40))
    def resume_and_die(self, which, dies_at):
        self.office.work(self.pick(which), dies_at=dies_at)

    @precondition(has_folder)
    @rule(which=some, other=some, stops_after=st.integers(1, ANSWERS))
    def two_at_a_time(self, which, other, stops_after):
        """Another process runs from its folder while this one is counting."""
        overtaking = self.pick(other)

        def meanwhile():
            self.office.work(overtaking, stops_after=stops_after)

        self.office.work(self.pick(which), meanwhile=meanwhile)

    @precondition(has_folder)
    @rule(which=some)
    def copy(self, which):
        self.office.copy(self.pick(which), self.name())

    @precondition(has_folder)
    @rule(which=some, lines=st.integers(1, ANSWERS))
    def cut_lines(self, which, lines):
        self.office.cut(self.pick(which), lines=lines)

    @precondition(has_folder)
    @rule(which=some, bytes_=st.integers(1, 400))
    def cut_bytes(self, which, bytes_):
        self.office.cut(self.pick(which), bytes_=bytes_)

    @precondition(has_folder)
    @rule(which=some)
    def keep(self, which):
        self.office.keep(self.pick(which))

    @precondition(lambda self: self.office.snapshots and self.has_folder())
    @rule(which=some, snapshot=some)
    def put_back(self, which, snapshot):
        snapshots = self.office.snapshots
        self.office.put_back(self.pick(which), snapshots[snapshot % len(snapshots)])

    @precondition(has_folder)
    @rule(which=some)
    def delete(self, which):
        self.office.delete(self.pick(which))

    @precondition(lambda self: self.office.ledger().runs())
    @rule(which=some)
    def close(self, which):
        ledger = self.office.ledger()
        runs = ledger.runs()
        ledger.close(runs[which % len(runs)].id)


class OperatorOfAFile(Operator):
    """The same, and the ledger is a file."""

    kind = "sqlite"


QUICK = settings(max_examples=25, stateful_step_count=12, derandomize=True, deadline=None)
LONG = settings(
    max_examples=500, stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck)
)
FINDING = settings(QUICK, max_examples=300, stateful_step_count=20, phases=[Phase.generate], database=None)


def test_an_operator_is_charged_for_every_draw():
    run_state_machine_as_test(Operator, settings=QUICK)


def test_an_operator_of_a_file_is_charged_for_every_draw():
    run_state_machine_as_test(OperatorOfAFile, settings=settings(QUICK, max_examples=6))


@pytest.mark.slow
@pytest.mark.parametrize("machine", [Operator, OperatorOfAFile])
def test_a_tireless_operator_is_charged_for_every_draw(machine):
    examples = LONG.max_examples if machine is Operator else LONG.max_examples // 5
    run_state_machine_as_test(machine, settings=settings(LONG, max_examples=examples))


# --- planted faults ----------------------------------------------------------------------------------------


@contextmanager
def takes_nothing_up():
    """A draw that the ledger does not hear of."""
    tickets = (f"ticket {number}" for number in range(10**9))
    with mock.patch.object(Ledger, "draw", side_effect=tickets):
        yield


@contextmanager
def draws_first():
    """Noise that is drawn before its payment is used up."""

    def pay_then(door, event, look, draw, **_):
        nth = len(door._accountant.events)
        door._accountant.charge(event)
        if nth < len(door._journal.outputs):
            return door._replayed(event, nth)
        payment = door._paid(event, nth)
        output = draw(look())
        door._journal.append(event, output, door._ticket(payment, event, nth))
        return output

    with mock.patch.object(Door, "_pay_then", pay_then):
        yield


@contextmanager
def trusts_the_ledgers_events():
    """What the ledger has an event for counts as paid, however often it is drawn: as it once was."""
    tickets = (f"ticket {number}" for number in range(10**9))
    resume = Door._resume

    def trusting(door, payments):
        resume(door, payments)
        paid = {payment.nth: payment for payment in payments}
        door._paid = lambda event, nth: paid[nth].line if nth in paid else Door._paid(door, event, nth)
        door._ticket = lambda payment, event, nth, ticket=None: (
            door._ledger.draw(payment, run=door._run, ticket=ticket) or next(tickets)
        )

    with mock.patch.object(Door, "_resume", trusting):
        yield


@contextmanager
def pays_out_of_the_allotment_only_once():
    """An answer that is paid for again costs nothing."""
    append = Ledger.append

    def cheaply(ledger, event, *, run, nth):
        before = [payment for payment in ledger.payments(run) if payment.nth == nth]
        return before[0].line if before else append(ledger, event, run=run, nth=nth)

    def drawing(ledger, payment, *, run, ticket=None):
        return draw(ledger, payment, run=run, ticket=ticket) or next(tickets)

    draw, tickets = Ledger.draw, (f"ticket {number}" for number in range(10**9))
    with (
        mock.patch.object(Ledger, "append", cheaply),
        mock.patch.object(Ledger, "draw", drawing),
    ):
        yield


@pytest.mark.parametrize(
    "fault",
    [takes_nothing_up, draws_first, trusts_the_ledgers_events, pays_out_of_the_allotment_only_once],
    ids=lambda fault: fault.__name__,
)
def test_a_planted_fault_is_found(fault):
    with fault(), pytest.raises(AssertionError, match=r"not charged|two outputs|paid twice"):
        run_state_machine_as_test(Operator, settings=FINDING)
