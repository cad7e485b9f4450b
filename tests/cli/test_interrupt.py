"""Ctrl-C in the middle of a command: it says how to go on, and going on pays nothing twice."""

import json
import re
import signal
import subprocess
import sys
from pathlib import Path
from unittest import mock

import numpy as np
import pytest

from commands import sidelight
from sidelight.curator.door import Door
from sidelight.errors import MissingExtraError

TOML = "\n".join(f"[columns.{name}]\nkind = 'integer'\nlow = 0\nhigh = {high}" for name, high in
                 (("a", 2), ("b", 3), ("c", 4)))  # fmt: skip
RELEASE = ("release", "t.csv", "--schema", "t.toml", "--ledger", "t.ledger", "--epsilon", "0.5",
           "--workload", "2-way", "--mechanism", "mwem", "--out", "out")  # fmt: skip

SLOWLY = """
import sys, time
import sidelight.curator.journal as journal
write = journal.Journal.append
def slow(self, event, output, ticket):
    write(self, event, output, ticket)
    print("journalled", flush=True)
    time.sleep(0.5)
journal.Journal.append = slow
from sidelight.cli.app import main
main()
"""


def ledger(folder):
    return json.loads(sidelight("ledger", "show", "t.ledger", "--json", folder=folder)[1])


@pytest.fixture
def opened(tmp_path):
    rng = np.random.default_rng(0)
    lines = ["a,b,c"] + [",".join(str(rng.integers(0, k)) for k in (3, 4, 5)) for _ in range(200)]
    (tmp_path / "t.csv").write_text("\n".join(lines) + "\n")
    (tmp_path / "t.toml").write_text(TOML)
    assert sidelight("ledger", "open", "t.ledger", "--epsilon", 1, "--delta", "1e-9", folder=tmp_path)[0] == 0
    return tmp_path


def interrupt_after(monkeypatch, outputs):
    """Ctrl-C as the run has journalled so many outputs, and looks for the next one."""
    pay, asked = Door._pay_then, []

    def interrupted():
        raise KeyboardInterrupt

    def pay_then(self, event, look, draw, **more):
        asked.append(event)
        return pay(self, event, look if len(asked) <= outputs else interrupted, draw, **more)

    monkeypatch.setattr(Door, "_pay_then", pay_then)


def test_ctrl_c_says_how_to_resume_and_the_same_command_does(opened, monkeypatch):
    with monkeypatch.context() as patched:
        interrupt_after(patched, 5)
        code, _, err = sidelight(*RELEASE, folder=opened)

    assert code == 130
    said = re.search(
        r"interrupted\. ε = ([0-9.]+) is spent so far\. What was paid for is kept in out\.checkpoint\.", err
    )
    assert 0 < float(said[1]) < 0.5
    assert "Repeat the same command" in err
    assert "Traceback" not in err
    assert not (opened / "out").exists()

    code, _, err = sidelight(*RELEASE, folder=opened)
    after = ledger(opened)

    assert code == 0, err
    assert len(after["runs"]) == 1
    assert after["runs"][0]["events"] == len(
        json.loads((opened / "out/release.json").read_text())["card"]["events"]
    )
    assert not (opened / "out.checkpoint").exists()


def test_ctrl_c_before_anything_was_paid_promises_nothing_to_resume(opened, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr("sidelight.data.table.Table.read", mock.Mock(side_effect=KeyboardInterrupt))
        code, _, err = sidelight(*RELEASE, folder=opened)

    assert code == 130
    assert "interrupted. This attempt charged nothing: repeat the same command or call." in err
    assert ledger(opened)["spent"] == 0


@pytest.mark.parametrize(
    ("stopped", "words"),
    [
        ("sidelight.releases.plan.Plan.of", "This attempt charged nothing: repeat the same command."),
        ("typer.core.TyperGroup.make_context", "Nothing was read, and nothing was spent."),
    ],
    ids=["planning", "reading the arguments"],
)
def test_ctrl_c_before_the_run_says_that_nothing_was_charged(opened, monkeypatch, stopped, words):
    with monkeypatch.context() as patched:
        patched.setattr(stopped, mock.Mock(side_effect=KeyboardInterrupt))
        code, _, err = sidelight(*RELEASE, folder=opened)

    assert (code, err.strip()) == (130, f"interrupted. {words}")


@pytest.mark.parametrize("own", [AttributeError("half loaded"), MissingExtraError("numpy is not installed")])
def test_ctrl_c_that_a_library_turned_into_an_error_of_its_own_is_no_bug(opened, monkeypatch, own):
    """As pandas did, where it was stopped while it was loaded."""

    def load(*given, **more):
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            raise own from None

    monkeypatch.setattr("sidelight.releases.plan.Plan.of", load)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # parallel tests ignore it
    try:
        code, _, err = sidelight(*RELEASE, folder=opened)
        after = signal.getsignal(signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, before)

    assert (code, "bug" in err, "installed" in err) == (130, False, False), err
    assert err.startswith("interrupted. ")
    assert after is signal.default_int_handler


def test_ctrl_c_where_nothing_is_journalled_does_not_promise_to_resume(opened, monkeypatch):
    with monkeypatch.context() as patched:
        interrupt_after(patched, 0)
        code, _, err = sidelight(
            "mean", "t.csv", "--value", "b", "--bounds", 0, 3, "--epsilon", 0.1, folder=opened
        )

    assert code == 130
    assert "kept in" not in err
    assert "starts anew" in err


def test_the_library_notes_how_to_resume_on_the_interrupt_itself(opened, monkeypatch):
    import sidelight as sl

    interrupt_after(monkeypatch, 2)

    with pytest.raises(KeyboardInterrupt) as stopped:
        sl.release(
            opened / "t.csv", schema=opened / "t.toml", epsilon=0.5, delta=1e-9, mechanism="mwem",
            workload="2-way", checkpoint=opened / "run", progress=False,
        )  # fmt: skip

    assert "the same command or call" in " ".join(getattr(stopped.value, "__notes__", []))


def test_the_library_says_what_a_run_without_a_checkpoint_has_lost(opened, monkeypatch):
    import sidelight as sl

    interrupt_after(monkeypatch, 2)

    with pytest.raises(KeyboardInterrupt) as stopped, pytest.warns(sl.UnrecordedWarning):
        sl.release(
            opened / "t.csv", schema=opened / "t.toml", epsilon=0.5, delta=1e-9, mechanism="mwem",
            workload="2-way", progress=False,
        )  # fmt: skip

    (note,) = stopped.value.__notes__
    assert re.match(r"ε = 0\.[0-9]+ is spent, and nothing was kept to resume from", note)


def test_ctrl_c_in_the_middle_of_a_query_is_no_bug(opened, monkeypatch):
    """DuckDB ends such a query with an error of its own."""
    stopped = mock.Mock(side_effect=RuntimeError("Query interrupted"))
    with monkeypatch.context() as patched:
        patched.setattr("sidelight.data.engines.duckdb.DuckDBSource.run", stopped)
        code, _, err = sidelight(*RELEASE, folder=opened)

    assert stopped.called
    assert code == 130
    assert "interrupted. This attempt charged nothing" in err


def test_a_rehearsal_that_is_interrupted_says_that_it_costs_nothing(opened, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr("sidelight.evaluation.rehearsal.rehearse", mock.Mock(side_effect=KeyboardInterrupt))
        code, _, err = sidelight("rehearse", "--public", "t.csv", "--schema", "t.toml", folder=opened)

    assert code == 130
    assert "interrupted. Nothing was charged: a rehearsal reads public data alone." in err


@pytest.mark.slow
def test_a_real_signal_ends_in_the_same_sentence(opened):
    child = subprocess.Popen(
        [sys.executable, "-c", SLOWLY, *RELEASE],
        cwd=opened, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    for _ in range(3):
        child.stdout.readline()
    child.send_signal(signal.SIGINT)
    _, err = child.communicate(timeout=120)

    assert child.returncode == 130
    assert "kept in out.checkpoint" in err
    assert "Traceback" not in err
    assert sidelight(*RELEASE, folder=opened)[0] == 0
    assert len(ledger(opened)["runs"]) == 1


def test_no_error_of_a_library_keeps_its_text_but_one_of_our_own_does():
    import pyarrow as pa

    from sidelight.data.engines.duckdb import silent_errors
    from sidelight.errors import DataError

    for one in (pa.ArrowNotImplementedError, pa.ArrowInvalid):
        with pytest.raises(DataError) as silenced, silent_errors():
            raise one("4711")
        assert "4711" not in str(silenced.value)
    with pytest.raises(RuntimeError, match="ours"), silent_errors():
        raise RuntimeError("ours")


def test_a_ledger_that_is_away_hides_no_word_on_how_to_go_on(monkeypatch):
    from sidelight.errors import LedgerUnavailableError
    from sidelight.releases import failed_run

    monkeypatch.setattr(failed_run, "_spent", mock.Mock(side_effect=LedgerUnavailableError("gone")))

    stopped, journal = KeyboardInterrupt(), mock.Mock(outputs=["an answer"])
    failed_run.end_failed(stopped, mock.Mock(), "run", journal, Path("out.checkpoint"), is_new=True)

    (note,) = stopped.__notes__
    assert note.startswith("What was paid for is kept in out.checkpoint. Repeat the same command or call")
