"""The fuzzer's own checks: each kind of violation, planted in a real command, is found."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))
import material
import verdict

from sidelight.cli.app import app
from sidelight.errors import InputError

QUIET = ("--schema", "people.toml", "--ledger", "good.ledger", "--epsilon", "1", "--workload", "1-way")
RELEASE = ["release", "people.csv", *QUIET, "--mechanism", "mwem", "--set", "rounds=1", "--out", "made"]
PLAN = ["plan", "--schema", "people.toml", "--epsilon", "1", "--delta", "1e-6", "--workload", "1-way"]


@pytest.fixture(scope="module")
def templates(tmp_path_factory):
    folder = tmp_path_factory.mktemp("material")
    material.make(folder)
    return folder


@pytest.fixture
def outcome_of(templates):
    """What the fuzzer sees of a command."""

    def run(argv):
        there = set(templates.rglob("*"))
        before = verdict.ledgers(templates)
        code, out, err = material.run_here(argv, templates)
        new = set(templates.rglob("*")) - there
        written = {str(path): path.read_bytes() for path in new if path.is_file()}
        return verdict.Outcome(argv, code, out, err, before, verdict.ledgers(templates), written)

    return run


@pytest.fixture
def planted(monkeypatch):
    """Put something else in the place of all commands."""

    def plant(instead):
        monkeypatch.setattr("sidelight.cli.app._command", lambda **_: instead())

    return plant


def test_a_command_that_ends_well_has_no_fault(outcome_of):
    assert verdict.faults(outcome_of(PLAN)) == []
    assert verdict.faults(outcome_of([*PLAN, "--epsilon", "nan"])) == []


def test_a_command_that_raises_is_found(outcome_of, planted):
    def broken():
        raise KeyError("x")

    planted(broken)

    found = verdict.faults(outcome_of(PLAN))

    assert any("ended with 1" in fault for fault in found)
    assert any("a bug" in fault for fault in found)


def test_a_command_that_shows_a_traceback_is_found(outcome_of, planted):
    def loud():
        sys.stderr.write("Traceback (most recent call last):\n")

    planted(loud)

    assert verdict.faults(outcome_of(PLAN)) == ["spoke of a traceback or a bug"]


def test_a_command_that_charges_and_then_refuses_is_found(outcome_of, planted):
    def late():
        app(standalone_mode=False)
        raise InputError("and now it says no.")

    planted(late)

    (fault,) = verdict.faults(outcome_of(RELEASE))

    assert fault.startswith("refused (2), but wrote in good.ledger")


def test_a_command_that_only_begins_a_run_and_refuses_is_found(outcome_of, planted):
    from fractions import Fraction

    from sidelight.privacy.budget import Rho
    from sidelight.privacy.sql_ledger import SqlLedger

    def opening():
        ledger = SqlLedger.open("good.ledger")
        ledger.close(ledger.begin(Rho(Fraction(1, 1000)), label="nothing"))
        raise InputError("and now it says no.")

    planted(opening)

    assert any("wrote in good.ledger" in fault for fault in verdict.faults(outcome_of(RELEASE)))


def test_a_free_command_that_charges_is_found(outcome_of, planted):
    from fractions import Fraction

    from sidelight.privacy.budget import Rho
    from sidelight.privacy.sql_ledger import SqlLedger

    def charging():
        SqlLedger.open("good.ledger").begin(Rho(Fraction(1, 1000)), label="nothing")

    planted(charging)

    assert verdict.faults(outcome_of(PLAN)) == ["wrote in good.ledger, although it charges nothing"]


@pytest.mark.parametrize("where", ["stdout", "stderr", "a file"])
def test_a_command_that_echoes_a_private_value_or_a_password_is_found(outcome_of, planted, where, templates):
    def echoing():
        if where == "a file":
            (templates / "leak.txt").write_text(f"name = {material.PLANTED[0]}, {material.PLANTED[2]}")
        else:
            getattr(sys, where).write(f"cannot read {material.PLANTED[0]} of {material.PASSWORD_URL}\n")

    planted(echoing)
    found = verdict.faults(outcome_of(PLAN))
    (templates / "leak.txt").unlink(missing_ok=True)

    assert found == [f"showed {material.PLANTED[0]}", f"showed {material.PLANTED[2]}"]


@pytest.mark.parametrize(
    ("argv", "secret"),
    [
        (["screen", "people.csv", "--public", "odd.csv"], False),
        (["prior", "fit", "odd.csv"], False),
        (["screen", "odd.csv", "--public", "people.csv"], True),
        (["screen", "odd.csv", "--public", "odd.csv"], True),
        (["screen", "people.csv"], True),
    ],
)
def test_values_may_be_shown_of_a_table_that_is_said_to_be_public_and_of_no_other(argv, secret):
    shown = verdict.Outcome(argv, 0, "", f"such as {material.IN_ODD_ALONE[0]}", {}, {})

    assert bool(verdict.faults(shown)) == secret


def test_a_refusal_without_a_word_is_found(outcome_of, planted):
    def silent():
        raise SystemExit(2)

    planted(silent)

    assert verdict.faults(outcome_of(PLAN)) == ["refused without a word"]


def test_a_case_that_hangs_or_kills_its_process_is_found(monkeypatch, tmp_path):
    """The driver goes on with the next case, and says which one it was."""
    import fuzz

    worker = tmp_path / "worker.py"
    worker.write_text(
        "import json, os, sys, time\n"
        "seed, first, stop = map(int, sys.argv[2:5])\n"
        "for number in range(first, stop):\n"
        "    if number == 3: os.abort()\n"
        "    if number == 5: time.sleep(60)\n"
        "    print(json.dumps({'number': number, 'code': '0'}), flush=True)\n"
    )
    monkeypatch.setattr(fuzz, "HERE", tmp_path)
    monkeypatch.setattr(fuzz, "_PATIENCE", 2.0)
    monkeypatch.setattr(material, "make", lambda folder: None)

    found = fuzz.fuzz(8, seed=1, processes=1)

    assert found.cases == 8
    assert [fault.partition(" | repeat: ")[2] for fault in found.faults] == [
        "python tests/fuzz/worker.py --show 1 3",
        "python tests/fuzz/worker.py --show 1 5",
    ]
