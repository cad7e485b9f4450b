"""A ledger that is restored from a backup is charged for all that a release spent."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import sidelight as sl
from sidelight.data.schema import Schema
from sidelight.errors import LedgerError
from sidelight.privacy.ledger import MemoryLedger
from sidelight.privacy.moving import back_up, read_backup
from sidelight.privacy.sql_ledger import SqlLedger
from sidelight.progress import Silent
from sidelight.releases.card import PaidAgain
from sidelight.releases.recovering import charge, restore

DRAW = np.random.default_rng(0)
PEOPLE = pd.DataFrame({"a": DRAW.integers(0, 3, 400), "b": DRAW.integers(0, 2, 400)})
SCHEMA = Schema.from_domain({"a": 3, "b": 2})


@pytest.fixture(autouse=True)
def state(tmp_path, monkeypatch):
    monkeypatch.setenv("SIDELIGHT_STATE", str(tmp_path / "state"))


class Nightly(Silent):
    """Makes a backup after so many steps of a run: 0 as soon as the mechanism begins."""

    def __init__(self, folder, after):
        self.folder, self.after = folder, after

    def _tick(self):
        if self.after == 0:
            back_up(self.folder / "people.ledger", self.folder / "night.backup")
        self.after -= 1

    def phase(self, name):
        if name == "mst":
            self._tick()
        return super().phase(name)

    def step(self, what, *, share):
        if what:  # of counting, only the share is told
            self._tick()


@pytest.mark.parametrize(("after", "policy"), [(0, None), (2, {"most": {"month": 1.0}})])
def test_a_run_that_was_open_in_the_backup_is_charged_whole_and_ends(tmp_path, after, policy):
    ledger = SqlLedger.open(tmp_path / "people.ledger", epsilon=1.0, delta=1e-6, policy=policy)
    release = sl.release(
        PEOPLE, schema=SCHEMA, epsilon=1.0, workload="2-way", mechanism="mst", ledger=ledger,
        progress=Nightly(tmp_path, after),
    )  # fmt: skip
    release.save(tmp_path / "release")
    run, paid, spent = release.card.ledger.run, list(ledger.events()), ledger.spent
    (tmp_path / "people.ledger").unlink()

    restored = restore(
        tmp_path / "night.backup", tmp_path / "new.ledger", releases=[tmp_path / "release"], is_confirmed=True
    )

    book = restored.ledger
    assert restored.entered == (run,)
    assert not book.is_open(run)
    book.close(run)
    assert list(book.events(run)) == paid
    assert book.spent == spent
    assert (book.policy is None) == (policy is None)
    book.verify()
    with pytest.raises(sl.BudgetExhausted):
        sl.release(PEOPLE, schema=SCHEMA, epsilon=1.0, workload="2-way", mechanism="mst", ledger=book)


def test_answers_that_were_paid_for_again_since_the_backup_are_charged_apart(tmp_path):
    ledger = SqlLedger.open(tmp_path / "people.ledger", epsilon=2.0, delta=1e-6)
    release = sl.release(
        PEOPLE, schema=SCHEMA, epsilon=1.0, workload="2-way", mechanism="mst", ledger=ledger,
        progress=Nightly(tmp_path, 1),
    )  # fmt: skip
    more = release.card.events[0].cost.value
    card = replace(release.card, spent=release.card.spent + more, paid_again=PaidAgain(events=1, cost=more))
    book = MemoryLedger.of_lines(read_backup(tmp_path / "night.backup")[1])

    assert charge(book, [card]) == [card.ledger.run]

    run = book.run(card.ledger.run)
    assert (run.spent.value, run.repeats, run.is_open) == (card.spent, 1, False)
    assert book.spent == ledger.spent + more
    assert charge(book, [card]) == []
    book.verify()
    with pytest.raises(LedgerError, match="is closed, and its release says that it spent more"):
        charge(book, [replace(card, spent=card.spent + more, paid_again=PaidAgain(events=2, cost=2 * more))])
