"""What once gave answers for free: copies of a checkpoint that leapfrog, and a journal that is cut."""

import contextlib
import json
import shutil
from collections import Counter
from fractions import Fraction
from unittest import mock

import numpy as np
import pyarrow as pa
import pytest

import commands
import sidelight as sl
import sidelight.curator.curator
from sidelight.errors import BudgetExhausted
from sidelight.privacy.promise import Promise
from sidelight.progress import Silent
from sidelight.reports.report import render

SCHEMA = sl.Schema.from_domain({"age": 8, "sex": 2})
ROUNDS = 3
STEPS = 2 * ROUNDS


def people():
    draw = np.random.default_rng(1)
    return pa.table({"age": draw.integers(0, 8, 300), "sex": draw.integers(0, 2, 300)})


class Stop(Silent):
    """Ctrl-C after so many steps that were paid for; of counting, only the share is told."""

    def __init__(self, after):
        self.left = after

    def step(self, what, *, share):
        self.left -= bool(what)
        if what and self.left == 0:
            raise KeyboardInterrupt


@pytest.fixture
def office(tmp_path, monkeypatch):
    """Resumes from a folder up to a step, and notes every draw where noise is made."""
    office = Office(tmp_path)
    for name in ("gaussian", "exponential"):
        monkeypatch.setattr(
            sidelight.curator.curator, name, office.noting(getattr(sidelight.curator.curator, name))
        )
    monkeypatch.setitem(
        sidelight.curator.curator._METHODS,
        "exponential",
        (sidelight.curator.curator._METHODS["exponential"][0], sidelight.curator.curator.exponential),
    )
    return office


class Office:
    def __init__(self, home):
        self.home, self.people, self.drawn = home, people(), []
        self.book = home / "l.ledger"

    def open(self, epsilon):
        promise = Promise(sl.Budget(epsilon=epsilon, delta=1e-9), sl.Unit("replace"), "people")
        sl.SqlLedger.create(self.book, promise)

    def noting(self, draw):
        def noted(noise, exact, event):
            self.drawn.append(event)
            return draw(noise, exact, event)

        return noted

    def go(self, folder, after):
        with contextlib.suppress(KeyboardInterrupt):
            return sl.release(
                self.people, schema=SCHEMA, epsilon=0.5, workload="2-way", ledger=self.book, mechanism="mwem",
                rounds=ROUNDS, checkpoint=self.home / folder, progress=Stop(after),
                quality_share=0,  # so that all steps cost the same
            )  # fmt: skip
        return None

    def check(self):
        ledger = sl.SqlLedger.open(self.book)
        assert Counter(self.drawn) <= Counter(ledger.events())
        drawn = sum((event.cost.value for event in self.drawn), Fraction(0))
        charged = sum((run.spent.value for run in ledger.runs()), Fraction(0))
        assert drawn <= charged <= ledger.spent <= ledger.promise.budget.capacity
        return ledger


def test_copies_that_leapfrog_are_each_charged_in_full(office):
    office.open(2.0)
    office.go("c0", 1)
    for copy in range(1, 4):
        shutil.copytree(office.home / "c0", office.home / f"c{copy}")

    for step in range(2, STEPS + 1):
        for copy in range(4):
            office.go(f"c{copy}", step)
    made = [office.go(f"c{copy}", STEPS + 1) for copy in range(4)]

    ledger = office.check()
    (run,) = ledger.runs()
    assert all(made)
    assert len(office.drawn) == run.events == 4 * (STEPS - 1) + 1
    assert run.repeats == 3 * (STEPS - 1)
    assert float(run.spent) == pytest.approx(float(run.allotment) * run.events / STEPS)
    assert made[-1].card.spent == run.spent.value
    assert made[-1].card.paid_again.events == run.repeats
    assert made[-1].card.epsilon_spent > 0.9
    assert not run.is_open


def test_copies_are_refused_where_the_ledger_holds_one_run_and_no_more(office):
    office.open(0.5)
    office.go("c0", 1)
    shutil.copytree(office.home / "c0", office.home / "c1")
    office.go("c0", 3)
    before = sl.SqlLedger.open(office.book).head

    with pytest.raises(BudgetExhausted, match="pay again for 2 answers"):
        office.go("c1", 3)

    assert office.check().head == before
    assert office.go("c0", STEPS + 1) is not None
    assert office.check().runs()[0].repeats == 0


def test_a_journal_that_is_cut_again_and_again_pays_each_time_until_nothing_is_left(office):
    office.open(1.0)
    office.go("c", 2)
    journal = office.home / "c" / "journal.jsonl"

    def cut_often():
        for _ in range(300):
            journal.write_bytes(b"".join(journal.read_bytes().splitlines(keepends=True)[:-1]))
            office.go("c", 2)

    with pytest.raises(BudgetExhausted, match="pay again for 1 answer"):
        cut_often()

    ledger = office.check()
    (run,) = ledger.runs()
    assert len(office.drawn) == run.events == 2 + run.repeats
    assert 10 < run.repeats < 20  # what ε = 1 holds beside ε = 0.5, in sixths of ε = 0.5


RELEASE = ("release", "p.csv", "--schema", "p.toml", "--ledger", "l", "--epsilon", ".5",
           "--mechanism=mwem", "--workload=1-way", "--set", "rounds=2", "--checkpoint", "c")  # fmt: skip


@pytest.fixture
def folder(tmp_path):
    draw = np.random.default_rng(0)
    rows = "\n".join(",".join(map(str, row)) for row in draw.integers(0, 6, (200, 2)))
    (tmp_path / "p.csv").write_text(f"a,b\n{rows}\n")
    column = '[columns.{}]\nkind = "integer"\nlow = 0\nhigh = 5\n'
    (tmp_path / "p.toml").write_text("".join(map(column.format, "ab")))
    return tmp_path


def cut(folder):
    journal = folder / "c" / "journal.jsonl"
    journal.write_bytes(b"".join(journal.read_bytes().splitlines(keepends=True)[:-1]))


def test_the_command_says_that_it_paid_again(folder):
    commands.sidelight("ledger", "open", "l", "--epsilon", "1", "--delta", "1e-9", folder=folder)
    with mock.patch.object(Silent, "turn", side_effect=KeyboardInterrupt):  # once all is drawn
        assert commands.sidelight(*RELEASE, "--out", "out", "--quiet", folder=folder).returncode == 130
    cut(folder)

    code, _, said = commands.sidelight(*RELEASE, "--out", "out", folder=folder)

    assert code == 0, said
    assert "One answer was drawn more than once" in said
    card = json.loads((folder / "out" / "release.json").read_text())["card"]
    (run,) = sl.SqlLedger.open(folder / "l").runs()
    assert (run.repeats, run.events) == (1, 6)
    assert run.as_json()["again"] == 1
    assert Fraction(card["spent"]) == run.spent.value > run.allotment.value
    assert card["epsilon_spent"] > 0.5
    assert "for draws that are not in this release" in render(sl.Release.load(folder / "out"))


def test_the_command_says_what_to_do_where_it_cannot_pay_again(folder):
    commands.sidelight("ledger", "open", "l", "--epsilon", "0.5", "--delta", "1e-9", folder=folder)
    with mock.patch.object(Silent, "turn", side_effect=KeyboardInterrupt):
        commands.sidelight(*RELEASE, "--out", "out", "--quiet", folder=folder)
    cut(folder)

    code, _, said = commands.sidelight(*RELEASE, "--out", "out", folder=folder)

    assert code == 3
    (run,) = sl.SqlLedger.open(folder / "l").runs()
    assert f"sidelight ledger close LEDGER {run.id}" in said
    assert "Traceback" not in said
    assert not (folder / "out").exists()
