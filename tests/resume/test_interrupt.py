"""Ctrl-C: the command says what is kept and how to go on, and going on pays nothing twice."""

import contextlib
import io
import signal
import sys
import warnings
from pathlib import Path
from unittest import mock

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))
import scene

from sidelight.cli.app import main
from sidelight.curator.journal import Journal
from sidelight.privacy.sql_ledger import SqlLedger


def run(folder, *, interrupted_after=None):
    """Exit code and talk of the release command; a real Ctrl-C comes as an output is drawn."""
    append, err, kept = Journal.append, io.StringIO(), []

    def interrupting(journal, event, output, ticket):
        if len(kept) == interrupted_after:
            signal.raise_signal(signal.SIGINT)
        kept.append(event)
        append(journal, event, output, ticket)

    argv = ["sidelight", *(word for word in scene.command("mwem", checkpoint=None) if word != "--quiet")]
    with (
        contextlib.chdir(folder),
        contextlib.redirect_stderr(err),
        mock.patch.object(sys, "argv", argv),
        mock.patch.object(Journal, "append", interrupting),
        warnings.catch_warnings(),
        pytest.raises(SystemExit) as stop,
    ):
        main()
    return stop.value.code, err.getvalue()


@pytest.fixture(autouse=True)
def ctrl_c_is_heard():
    """A shell starts what it sends to the background deaf to Ctrl-C."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def folder(tmp_path):
    scene.prepare(tmp_path / "here")
    return tmp_path / "here"


def kept_in(folder):
    return len((folder / "out.checkpoint" / "journal.jsonl").read_bytes().splitlines()) - 1


@pytest.mark.parametrize("outputs", [0, 1, 2])
def test_an_interrupted_release_says_how_to_go_on_and_goes_on(folder, outputs):
    code, said = run(folder, interrupted_after=outputs)
    paid = len(list(SqlLedger.open(folder / "l.ledger").events()))

    assert code == 130
    assert "out.checkpoint" in said
    assert "same command" in said
    assert paid == outputs + 1
    assert kept_in(folder) == outputs + 1  # Ctrl-C has waited until what was drawn was on disk

    code, said = run(folder)
    ledger = SqlLedger.open(folder / "l.ledger")

    assert code == 0, said
    assert len(ledger.runs()) == 1
    assert not ledger.runs()[0].is_open
    assert len(list(ledger.events())) == 5  # two rounds, and quality
    assert ledger.runs()[0].repeats == 0
    assert sorted(path.name for path in folder.iterdir() if "out" in path.name) == ["out"]


def test_a_release_that_was_written_is_not_written_again_and_its_journal_is_tidied_up(folder):
    with mock.patch("sidelight.curator.journal.Journal.remove", side_effect=KeyboardInterrupt):
        assert run(folder)[0] == 130
    spent = SqlLedger.open(folder / "l.ledger").spent
    assert (folder / "out.checkpoint").exists()

    code, said = run(folder)

    assert code == 0, said
    assert "was already complete" in said
    assert not (folder / "out.checkpoint").exists()
    assert SqlLedger.open(folder / "l.ledger").spent == spent
    assert run(folder)[0] == 2  # a third time, the folder is simply in use


def test_another_folders_files_are_not_taken_for_a_finished_release(folder):
    (folder / "out").mkdir()
    (folder / "out" / "notes.txt").write_text("mine")
    (folder / "out.checkpoint").mkdir()

    code, said = run(folder)

    assert code == 2
    assert "already exists" in said
    assert (folder / "out.checkpoint").exists()
    assert SqlLedger.open(folder / "l.ledger").spent == 0


def test_a_command_that_another_process_finished_meanwhile_finds_its_release(folder):
    require, finished = SqlLedger.require, []

    def late(ledger, *asked):
        if not finished:
            finished.append(True)
            assert run(folder)[0] == 0
        require(ledger, *asked)

    with mock.patch.object(SqlLedger, "require", late):
        code, said = run(folder)

    assert code == 2
    assert "already exists" in said
