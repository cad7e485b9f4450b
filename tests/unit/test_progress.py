"""Bars where a person watches: phases in order, paid outputs only, and other people's text as text."""

import io
from contextlib import contextmanager, redirect_stderr

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sidelight.data.schema import Schema
from sidelight.data.table import Table
from sidelight.progress import Bars, Silent, progress_of
from sidelight.releases.run import release
from sidelight.testing import SeededNoise

WANTED = True


class Notes:
    """A progress that writes down what it is told."""

    def __init__(self):
        self.told = []

    @contextmanager
    def phase(self, name):
        self.told.append(("phase", name))
        yield
        self.told.append(("end", name))

    def step(self, what, *, share):
        self.told.append(("step", what, share))

    def turn(self, name):
        self.told.append(("turn", name))


class Terminal(io.StringIO):
    def isatty(self):
        return True


def table_of(sizes, records=400):
    schema = Schema.from_domain(sizes)
    rng = np.random.default_rng(0)
    codes = np.stack([rng.integers(0, k, records) for k in sizes.values()], axis=1).astype(np.uint8)
    return schema, Table.of_codes(schema.domain, codes)


def released(*, progress=True, mechanism="mwem", **settings):
    schema, table = table_of({"a": 3, "b": 4, "c": 2})
    return release(
        table, schema=schema, epsilon=1.0, delta=1e-9, mechanism=mechanism, workload="2-way",
        noise=SeededNoise(1), progress=progress, **settings,
    )  # fmt: skip


@pytest.fixture
def a_person_watches(monkeypatch):
    """Makes standard error a wide terminal, for the length of a block."""
    monkeypatch.setenv("COLUMNS", "160")
    monkeypatch.setenv("TERM", "xterm-256color")
    return lambda: redirect_stderr(Terminal())


def test_the_phases_come_in_the_order_of_the_run():
    notes = Notes()

    released(progress=notes, rounds=2)

    shape = [entry[:2] for entry in notes.told if entry[0] != "step"]
    assert shape == [
        ("phase", "plan"), ("end", "plan"), ("phase", "read"), ("end", "read"), ("phase", "mwem"),
        ("phase", "count"), ("end", "count"), ("turn", "fit"), ("end", "mwem"),
        ("phase", "quality"), ("end", "quality"),
    ]  # fmt: skip


def test_each_round_tells_what_was_chosen_and_what_is_left():
    notes = Notes()

    made = released(progress=notes, rounds=2)

    steps = [entry[1] for entry in notes.told if entry[0] == "step" and entry[1]]
    chosen = [measurement.query.describe() for measurement in made.measurements]
    assert steps == [
        f"round 1: selected {chosen[0]}, 75% of the budget left",
        f"round 1: measured {chosen[0]}, 50% of the budget left",
        f"round 2: selected {chosen[1]}, 25% of the budget left",
        f"round 2: measured {chosen[1]}, 0% of the budget left",
        "measured how far off the model is",
    ]
    shares = [entry[2] for entry in notes.told if entry[0] == "step" and entry[1]]
    assert shares == sorted(shares)
    assert shares[-1] == 1.0


def test_counting_tells_every_per_cent_of_a_file_and_the_same_of_a_table_in_memory(tmp_path, monkeypatch):
    sizes = {"a": 3, "b": 4}
    schema, _ = table_of(sizes)
    rng = np.random.default_rng(0)
    pq.write_table(
        pa.table({name: rng.integers(0, k, 300_000) for name, k in sizes.items()}), tmp_path / "t.parquet"
    )
    told = {}

    for where, most in (("memory", 10**9), ("file", 0)):
        monkeypatch.setattr("sidelight.data.reading.read._LARGE_VALUES", most)
        notes = Notes()
        release(
            tmp_path / "t.parquet", schema=schema, epsilon=1.0, delta=1e-9, mechanism="aim", workload="2-way",
            unit="add-or-remove", noise=SeededNoise(1), progress=notes,
        )  # fmt: skip
        told[where] = notes.told

    assert told["file"] == told["memory"]
    start = told["file"].index(("phase", "count"))
    assert told["file"][start + 1 : start + 101] == [
        ("step", "", per_cent / 100) for per_cent in range(1, 101)
    ]


@pytest.mark.parametrize("mechanism", ["aim", "aperture"])
def test_adaptive_mechanisms_turn_to_fitting_once(mechanism):
    notes = Notes()

    released(progress=notes, mechanism=mechanism)

    assert notes.told.count(("turn", "fit")) == 1
    assert notes.told.index(("turn", "fit")) < notes.told.index(("end", mechanism))


def test_progress_holds_nothing_but_public_words():
    """The same noise on two tables that differ: only what was selected may tell them apart."""
    schema, table = table_of({"a": 3, "b": 4})
    other = Table.of_codes(schema.domain, np.zeros((400, 2), dtype=np.uint8))
    told = []
    for private in (table, other):
        notes = Notes()
        release(
            private, schema=schema, epsilon=1.0, delta=1e-9, mechanism="mwem", workload=[("a", "b")],
            rounds=3, noise=SeededNoise(1), progress=notes,
        )  # fmt: skip
        told.append(notes.told)

    assert told[0] == told[1]


def test_a_terminal_sees_one_bar_a_phase(a_person_watches):
    with a_person_watches() as terminal:
        released(rounds=2)

    standing = terminal.getvalue().rsplit("mwem", 1)[1].split("quality")[0]  # the bars as they are left
    for name in ("plan", "read", "mwem", "count", "fit", "quality"):
        assert name in terminal.getvalue()
    assert [word for word in standing.split() if word in ("count", "fit", "plan", "read")] == ["count", "fit"]
    assert standing.count("done") == 3


def test_names_of_attributes_are_no_markup_and_move_no_cursor(a_person_watches):
    with a_person_watches() as terminal:
        bars = progress_of(WANTED)
        with bars.phase("mwem"):
            bars.step("selected [bold red]a[/nonsense] × b\x1b[2J", share=0.5)
            bars._bars.refresh()

    assert "selected [bold red]a[/nonsense] × b�[2J" in terminal.getvalue()
    assert "\x1b[2J" not in terminal.getvalue()


def test_nobody_watching_means_silence(capsys):
    released(rounds=2)

    assert capsys.readouterr().err == ""
    assert isinstance(progress_of(WANTED), Silent)


def test_progress_false_is_silent_on_a_terminal_too(a_person_watches):
    with a_person_watches() as terminal:
        released(progress=False, rounds=2)

        assert isinstance(progress_of(WANTED), Bars)
    assert terminal.getvalue() == ""


def test_a_phase_that_fails_leaves_the_terminal_as_it_was(a_person_watches):
    with a_person_watches() as terminal:
        bars = progress_of(WANTED)
        with pytest.raises(KeyError), bars.phase("read"):
            raise KeyError
        with bars.phase("again"):
            bars.step("half", share=0.5)

    shown = terminal.getvalue()
    assert "stopped" in shown
    assert shown.endswith("\x1b[?25h")  # the cursor is shown again
    assert shown.rsplit("again", 1)[1].count("read") == 0
