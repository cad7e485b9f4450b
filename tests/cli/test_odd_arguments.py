"""Arguments that no one means: each ends in a sentence and exit code 2, and nothing is charged or lost."""

import contextlib
import io
import os
import random
import shutil
import subprocess
import sys
import warnings
from pathlib import Path
from unittest import mock

import pytest

import sidelight as package
from sidelight.cli.app import main
from sidelight.privacy.budget import Budget
from sidelight.privacy.promise import Promise
from sidelight.privacy.sql_ledger import SqlLedger
from sidelight.privacy.unit import Unit

PLACES = [
    "",
    ".",
    "..",
    "/",
    "folder",
    "people.csv/x",
    "nul\0l",
    "x" * 5000,
    "d/" * 1500 + "x",
    "bad\udcff.csv",
    "/proc/x",
    "xx://y",
]
OWN = {**os.environ, "PYTHONPATH": str(Path(package.__file__).resolve().parent.parent)}
"""The environment in which another process runs this very code."""
SCHEMA = '[columns.age]\nkind = "integer"\nlow = 0\nhigh = 4\n'
COMMANDS = [
    ["answer", "@", "age"],
    ["sample", "@", "--to", "s.csv", "--seed", "1"],
    ["sample", "out", "--to", "@", "--seed", "1"],
    ["report", "@"],
    ["report", "out", "--to", "@"],
    ["report", "out", "--against", "@"],
    ["evaluate", "out", "@"],
    ["schema", "check", "@", "--schema", "people.toml"],
    ["schema", "check", "people.csv", "--schema", "@"],
    ["schema", "draft", "@"],
    ["schema", "draft", "people.csv", "--out", "@"],
    ["ledger", "show", "@"],
    ["ledger", "verify", "@"],
    ["ledger", "close", "@", "run"],
    ["ledger", "open", "@", "--epsilon", "1", "--delta", "0"],
    ["mean", "@", "--value", "age", "--bounds", "0", "4", "--epsilon", "1"],
    ["mean", "people.csv", "--value", "age", "--bounds", "0", "4", "--epsilon", "1", "--public", "@"],
    ["mean", "people.csv", "--value", "age", "--bounds", "0", "4", "--epsilon", "1", "--ledger", "@"],
    ["mean", "people.csv", "--value", "age", "--bounds", "0", "4", "--epsilon", "1", "--ledger",
     "good.ledger", "--svg", "@"],
    ["prior", "fit", "@", "--schema", "people.toml"],
    ["prior", "fit", "people.csv", "--schema", "people.toml", "--workload", "1-way", "--out", "@"],
]  # fmt: skip
CAN_BE_MADE = "bad\udcff.csv"
"""There is no such file, but there could be."""
RELEASE = {
    "": "people.csv",
    "--schema": "people.toml",
    "--ledger": "good.ledger",
    "--epsilon": "1",
    "--workload": "1-way",
    "--mechanism": "mwem",
    "--set": "rounds=1",
    "--out": "new",
    "--checkpoint": "journal",
}


def reads(command):
    """Whether the odd place of a command is read, and not made."""
    is_written = bool({"--to", "--out", "--svg"} & set(command)) and "@" in command[2:]
    return not is_written and command[:2] != ["ledger", "open"]


def sidelight(argv, folder):
    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    err = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="backslashreplace")
    with (
        contextlib.chdir(folder),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        mock.patch.object(sys, "argv", ["sidelight", *argv]),
        warnings.catch_warnings(),
        pytest.raises(SystemExit) as stop,
    ):
        main()
    err.flush()
    return stop.value.code, err.buffer.getvalue().decode()


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("made")
    (folder / "people.csv").write_text("age\n" + "1\n2\n4\n" * 60)
    (folder / "people.toml").write_text(SCHEMA)
    (folder / "folder").mkdir()
    (folder / "folder" / "mine.txt").write_text("mine")
    SqlLedger.create(
        folder / "good.ledger", Promise(Budget(epsilon=9.0, delta=1e-6), Unit("replace"), "good")
    )
    argv = {**RELEASE, "--out": "out"}
    code, said = sidelight(["release", *(part for item in argv.items() for part in item if part)], folder)
    assert code == 0, said
    shutil.rmtree(folder / "journal")
    return folder


@pytest.fixture
def folder(made, tmp_path):
    return shutil.copytree(made, tmp_path / "work")


def refused(argv, folder):
    """It ends in a sentence; the ledger and everybody's files stay as they were."""
    before = (folder / "good.ledger").read_bytes()

    code, said = sidelight(argv, folder)

    assert code == 2, said
    assert said.startswith("error: ")
    assert "bug" not in said
    assert len(said) < 12_000
    assert (folder / "good.ledger").read_bytes() == before
    assert (folder / "folder" / "mine.txt").read_text() == "mine"


@pytest.mark.parametrize(
    ("option", "place"),
    [
        (option, place)
        for option in ("", "--schema", "--ledger", "--out", "--checkpoint", "--public", "--workload")
        for place in PLACES
        if option not in ("--out", "--checkpoint") or place != CAN_BE_MADE
    ],
)
def test_a_release_that_names_an_odd_place_is_refused_before_it_is_paid_for(folder, option, place):
    argv = {**RELEASE, option: place}

    refused(["release", argv.pop(""), *(part for item in argv.items() for part in item)], folder)


@pytest.mark.parametrize(
    ("command", "place"),
    [(command, place) for command in COMMANDS for place in PLACES if place != CAN_BE_MADE or reads(command)],
    ids=lambda said: " ".join(said) if isinstance(said, list) else None,
)
def test_a_place_that_is_none_is_refused_in_a_sentence(folder, command, place):

    refused([place if part == "@" else part for part in command], folder)


@pytest.mark.parametrize("place", ["", ".", "..", "/", "nul\0l"])
def test_a_private_report_needs_a_name(folder, place):
    refused(["report", "out", "--against", "people.csv", "--to", place], folder)


@pytest.mark.parametrize(
    "more",
    [
        ["--seed", "-1"],
        ["--seed", "1", "--records", "-1"],
        ["--seed", "1", "--records", "0"],
        ["--seed", "1", "--records", "999999999999999999999999"],
        ["--seed", "1", "--records", "10000000000000"],
        ["--seed", "9" * 5000],
    ],
)
def test_numbers_that_cannot_be_are_refused(folder, more):
    refused(["sample", "out", "--to", "s.csv", *more], folder)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("half", "--epsilon must be a number, such as 0.5; got 'half'."),
        ("0,5", "'0,5'. Decimals have a point: 0.5."),
        ("0.5,1", "got '0.5,1'."),
    ],
)
def test_an_epsilon_that_is_no_number_is_quoted(folder, given, told):
    code, said = sidelight(["plan", "--schema", "people.toml", "--epsilon", given], folder)

    assert code == 2
    assert told in said
    assert "Separate" not in said


@pytest.mark.parametrize(
    ("argv", "told"),
    [
        ("rehearse --epsilon 0.3,1", "got '0.3,1'. Separate several by spaces: 0.3 1."),
        ("rehearse --epsilon 1 2,3", "EPSILON must be a number"),
        ("sample out --to s.csv --records a", "--records must be a whole number; got 'a'."),
        ("sample out --to s.csv --records 0", "--records must be at least 1; got '0'."),
        ("answer out --confidence 2", "--confidence must be at most 0.9999; got '2'."),
        ("answer out --confidence 95", "got '95'. As a share, 95% is 0.95."),
        ("answer out --confidence 95%", "got '95%'. As a share, 95% is 0.95."),
        ("answer out --confidence 9²%", "--confidence must be a number, such as 0.5; got '9²%'.\n"),
        ("sample out --to s.csv --records 10,5", "--records must be a whole number; got '10,5'.\n"),
        ("release people.csv --delta 1e-9", "no option --delta here: δ is the ledger's"),
        ("report out --to r.pdf", "a report is an HTML file, and must end in .html; got 'r.pdf'."),
        ("schema check . --schema people.toml", "'.' is a folder; name a file in it"),
        (
            "ledger open new.ledger --epsilon 1",
            "Missing option '--delta': δ promised, well below 1/n, such as 1e-9",
        ),
    ],
)
def test_what_a_command_line_lacks_or_gets_wrong_is_said_in_plain_words(folder, argv, told):
    code, said = sidelight(argv.split(), folder)

    assert code == 2
    assert told in said
    assert "Input should" not in said


@pytest.mark.slow
def test_one_damaged_byte_of_a_ledger_ends_in_a_sentence(folder):
    """Wherever it is: in SQLite's own pages, in a line, in a hash."""
    content = (folder / "good.ledger").read_bytes()
    draw = random.Random(1)  # no secrets are drawn
    codes = set()
    for place in [*range(0, 100, 2), *(draw.randrange(len(content)) for _ in range(60))]:
        damaged = bytearray(content)
        damaged[place] ^= 1 << draw.randrange(8)
        (folder / "good.ledger").write_bytes(damaged)

        code, said = sidelight(["ledger", "verify", "good.ledger"], folder)

        codes.add(code)
        assert code == 0 or said.startswith("error: "), place
        assert "bug" not in said, place
    assert codes == {0, 2}


def command(*argv, folder, **more):
    return subprocess.Popen(
        [sys.executable, "-m", "sidelight", *argv], cwd=folder, stderr=subprocess.PIPE, env=OWN, **more
    )


@pytest.mark.slow
def test_a_reader_who_has_seen_enough_ends_a_command_quietly(folder):
    reading, writing = os.pipe()
    os.close(reading)

    process = command("answer", "out", "age", "--json", folder=folder, stdout=writing)
    os.close(writing)
    _, said = process.communicate()

    assert process.returncode == 0
    assert b"rror" not in said
    assert b"xception" not in said


@pytest.mark.slow
def test_closed_output_is_no_bug(folder):
    process = subprocess.run(
        f'"{sys.executable}" -m sidelight answer out age >&-', shell=True, cwd=folder, stderr=subprocess.PIPE,
        check=False, env=OWN,
    )  # fmt: skip

    assert process.returncode == 0
    assert b"bug" not in process.stderr


@pytest.mark.slow
def test_names_that_are_not_utf8_are_said_in_some_way(folder):
    process = command("answer", b"b\xffd", "age", folder=folder, stdout=subprocess.PIPE)
    _, said = process.communicate()

    assert process.returncode == 2
    assert b"error: " in said
    assert b"Traceback" not in said


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is forbidden to root")
def test_a_file_that_may_not_be_read_is_named(folder):
    (folder / "people.csv").chmod(0)
    (folder / "good.ledger").chmod(0)

    for argv in (
        ["schema", "check", "people.csv", "--schema", "people.toml"],
        ["ledger", "show", "good.ledger"],
    ):
        code, said = sidelight(argv, folder)
        assert code == 2
        assert said.startswith("error: ")
