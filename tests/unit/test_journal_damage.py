"""A journal that was damaged, or that a stranger wrote: refused in a sentence, never unpacked without end."""

import base64
import contextlib
import json
import random
import zlib
from fractions import Fraction

import numpy as np
import pytest

from sidelight.curator.journal import Journal
from sidelight.errors import CheckpointError
from sidelight.privacy.budget import Rho
from sidelight.privacy.event import Gaussian

SETTINGS = {"workload": "1-way"}
EVENT = Gaussian.at(Rho(Fraction(1, 100)), what="age", l2_squared=Fraction(2))


@pytest.fixture
def folder(tmp_path):
    with Journal.open(tmp_path / "kept", run="0123", settings=SETTINGS) as journal:
        journal.append(EVENT, np.arange(5), "ticket")
    return tmp_path / "kept"


def opened(folder):
    with Journal.open(folder, run="4567", settings=SETTINGS) as journal:
        return journal.outputs


def with_output(folder, packed):
    path = folder / "journal.jsonl"
    first, second = path.read_text().splitlines()
    path.write_text(f"{first}\n{json.dumps({**json.loads(second), 'output': packed})}\n")


def test_a_journal_that_nobody_edited_opens(folder):
    assert opened(folder)[0].output.tolist() == [0, 1, 2, 3, 4]


def test_an_output_that_grows_without_end_is_refused(folder, monkeypatch):
    monkeypatch.setenv("SIDELIGHT_MAX_MB", "1")
    with_output(folder, base64.b64encode(zlib.compress(bytes(4 << 20))).decode())

    with pytest.raises(CheckpointError, match="edited"):
        opened(folder)


CUT_OFF = base64.b64encode(zlib.compress(b"x" * 9)[:-3]).decode()
DEEP = b'{"a": ' + b"[" * 5000 + b"]" * 5000 + b"}"


@pytest.mark.parametrize("packed", ["", "AAAA", "é", 5, None, CUT_OFF])
def test_an_output_that_cannot_be_unpacked_is_refused(folder, packed):
    with_output(folder, packed)

    with pytest.raises(CheckpointError, match="edited"):
        opened(folder)


@pytest.mark.parametrize("line", [b"[" * 100_000, DEEP, b"1" * 5000, b"\xff"])
@pytest.mark.parametrize("place", [0, 1])
def test_a_line_that_is_none_is_refused(folder, line, place):
    path = folder / "journal.jsonl"
    lines = path.read_bytes().splitlines()
    lines[place] = line
    path.write_bytes(b"\n".join(lines) + b"\n")

    with pytest.raises(CheckpointError, match="edited"):
        opened(folder)


def test_one_damaged_byte_is_refused_or_harmless(folder):
    path = folder / "journal.jsonl"
    content = path.read_bytes()
    draw = random.Random(1)  # no secrets are drawn
    for _ in range(300):
        damaged = bytearray(content)
        damaged[draw.randrange(len(damaged))] = draw.randrange(256)
        path.write_bytes(damaged)
        with contextlib.suppress(CheckpointError):
            opened(folder)
