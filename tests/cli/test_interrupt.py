"""Ctrl-C in the middle of a command: it says how to go on, and going on pays nothing twice."""

import json
import signal
import subprocess
import sys
from unittest import mock

import numpy as np
import pytest

from commands import sidelight
from sidelight.curator.door import Door

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

    def pay_then(self, event, look, draw):
        asked.append(event)
        return pay(self, event, look if len(asked) <= outputs else interrupted, draw)

    monkeypatch.setattr(Door, "_pay_then", pay_then)


def test_ctrl_c_says_how_to_resume_and_the_same_command_does(opened, monkeypatch):
    with monkeypatch.context() as patched:
        interrupt_after(patched, 5)
        code, _, err = sidelight(*RELEASE, folder=opened)

    assert code == 130
    assert "interrupted. What was paid for is kept in out.checkpoint." in err
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
    assert "nothing was kept to resume from" in err
    assert ledger(opened)["spent"] == 0


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
