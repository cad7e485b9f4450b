"""Guard rails: what a person would regret is said, or has to be confirmed; nothing is spent meanwhile."""

import subprocess
import sys
import warnings

import numpy as np
import pyarrow as pa
import pytest

import sidelight as sl
from commands import sidelight
from sidelight.errors import PrivacyWarning
from sidelight.privacy.budget import Budget
from sidelight.privacy.promise import Promise
from sidelight.privacy.sql_ledger import SqlLedger, open_ledger
from sidelight.privacy.unit import Unit

COLUMN = '[columns.{}]\nkind = "integer"\nlow = 0\nhigh = {}\n'


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(0)
    rows = "\n".join(f"{a},{b}" for a, b in rng.integers(0, 4, (300, 2)))
    (tmp_path / "p.csv").write_text(f"a,b\n{rows}\n")
    (tmp_path / "p.toml").write_text(COLUMN.format("a", 3) + COLUMN.format("b", 3))
    (tmp_path / "q.toml").write_text(COLUMN.format("a", 3) + COLUMN.format("b", 5))
    return tmp_path


def opened(folder, *more, epsilon=2, delta="1e-9"):
    return sidelight("ledger", "open", "l", "--epsilon", epsilon, "--delta", delta, *more, folder=folder)


def release(folder, *more, schema="p.toml", out="out", epsilon=0.5):
    return sidelight(
        "release", "p.csv", "--schema", schema, "--ledger", "l", "--epsilon", epsilon, "--workload", "2-way",
        "--mechanism", "mwem", "--set", "rounds=2", "--out", out, *more, folder=folder,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("epsilon", "delta", "said"),
    [(10.5, "1e-9", "ε = 10.5 is above 10"), (1, "2e-5", "δ = 2e-05 is above 1e-05"), (99, "0", "ε = 99")],
)
def test_a_promise_that_protects_little_has_to_be_confirmed(folder, epsilon, delta, said):
    refused = opened(folder, epsilon=epsilon, delta=delta)
    was_there = (folder / "l").exists()
    made = opened(folder, "--yes", epsilon=epsilon, delta=delta)

    assert refused.returncode == 2
    assert said in refused.stderr
    assert "repeat the command with --yes" in refused.stderr
    assert not was_there
    assert made.returncode == 0
    assert f"warning: {said}" in made.stderr
    assert (folder / "l").exists()


@pytest.mark.parametrize(("epsilon", "delta"), [(10, "1e-5"), (1, "1e-9"), (1, "0")])
def test_a_usual_promise_needs_no_confirmation(folder, epsilon, delta):
    made = opened(folder, epsilon=epsilon, delta=delta)

    assert made.returncode == 0
    assert "warning" not in made.stderr


def test_the_library_warns_of_such_a_promise(tmp_path):
    with pytest.warns(PrivacyWarning, match="ε = 30 is above 10"):
        SqlLedger.create(tmp_path / "l", Promise(Budget(epsilon=30, delta=1e-9), Unit("replace"), "people"))


def test_where_n_is_private_a_large_delta_is_warned_about():
    schema = sl.Schema.from_domain({"a": 2})
    table = sl.Table.of_codes(schema.domain, np.zeros((50, 1), dtype=int))

    with pytest.warns(PrivacyWarning, match="delta = 0.001 is at least 1e-05"):
        sl.release(
            table, schema=schema, epsilon=1, delta=1e-3, unit="add-or-remove", workload="1-way",
            mechanism="mwem", rounds=1, progress=False,
        )  # fmt: skip


def test_another_schema_has_to_be_confirmed_once(folder):
    assert opened(folder).returncode == 0
    assert release(folder).returncode == 0
    before = open_ledger(folder / "l").spent

    refused = release(folder, schema="q.toml", out="other")
    after_refusal = open_ledger(folder / "l").spent
    confirmed = release(folder, "--yes", schema="q.toml", out="other")
    again = release(folder, schema="q.toml", out="third")

    assert refused.returncode == 2
    assert "under another schema" in refused.stderr
    assert "--yes" in refused.stderr
    assert after_refusal == before
    assert not (folder / "other.checkpoint").exists()
    assert confirmed.returncode == 0, confirmed.stderr
    assert "under another schema" in confirmed.stderr
    assert again.returncode == 0, again.stderr


def test_the_library_warns_of_another_schema_and_goes_on(folder):
    ledger = SqlLedger.create(folder / "l", Promise(Budget(epsilon=2, delta=1e-9), Unit("replace"), "p"))
    common = {"epsilon": 0.3, "ledger": ledger, "workload": "1-way", "mechanism": "mwem", "progress": False}
    sl.release(folder / "p.csv", schema=folder / "p.toml", rounds=1, **common)

    with pytest.warns(PrivacyWarning, match="under another schema"):
        sl.release(folder / "p.csv", schema=folder / "q.toml", rounds=1, **common)


@pytest.mark.parametrize(
    "command",
    [
        ["mean", "p.csv", "--value", "a", "--bounds", 0, 3, "--epsilon", 1],
        ["quantile", "p.csv", "--value", "a", "--bounds", 0, 3, "--epsilon", 1, "--q", 0.5],
        ["screen", "p.csv", "--schema", "p.toml", "--public", "q.csv", "--epsilon", 1, "--workload", "1-way"],
    ],
    ids=lambda command: command[0],
)
def test_spending_that_nobody_records_is_said_to_be_so_each_time(folder, command):
    (folder / "q.csv").write_text((folder / "p.csv").read_text() + "1,1\n")

    for _ in range(2):
        done = sidelight(*command, folder=folder)
        assert done.returncode == 0, done.stderr
        assert "warning: this spending is recorded nowhere" in done.stderr


def test_a_ledger_shows_what_is_left_and_draws_what_was_used(folder):
    opened(folder)
    release(folder)
    release(folder, out="second", epsilon=1)

    shown = sidelight("ledger", "show", "l", folder=folder).stdout

    bars = [line for line in shown.splitlines() if "█" in line and "mwem" in line]
    assert "at most ε = " in shown
    assert len(bars) == 2
    assert bars[0].count("█") < bars[1].count("█") < 30
    spent = [float(line.split("ε = ")[1].split()[0]) for line in bars]
    assert 0 < spent[0] < spent[1] < spent[0] + 1.01  # two spendings together come to less than their sum
    assert "finds at most" in shown


def test_ctrl_c_while_importing_ends_without_a_traceback():
    """A module that the command needs is interrupted as it is imported."""
    code = (
        "import sys\n"
        "class Interrupted:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'typer':\n"
        "            raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Interrupted())\n"
        "from sidelight.__main__ import main\n"
        "main()\n"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert done.returncode == 130
    assert "nothing was spent" in done.stderr
    assert "Traceback" not in done.stderr


def spent_without_a_ledger(noise=None):
    """Every way in Python to spend privacy that takes a ledger."""
    table = sl.Table.of_codes(sl.Domain.of({"a": 3, "b": 2}), np.zeros((300, 2), dtype=np.uint8))
    public = sl.Table.of_codes(table.domain, np.ones((30, 2), dtype=np.uint8))
    schema = sl.Schema.from_domain({"a": 3, "b": 2})
    asked = {"schema": schema, "workload": "1-way", "epsilon": 1.0}
    values = [sl.Group([1.0, 2.0, 3.0] * 20, epsilon=0.5)]
    frame = pa.table({"region": ["n", "s"] * 50, "income": [1.0, 2.0] * 50})
    return {
        "release": lambda: sl.release(table, **asked, delta=1e-9, progress=False, noise=noise),
        "fit": lambda: sl.Synthesizer(
            schema=schema, workload="1-way", progress=False, noise=noise
        ).fit(table),
        "screen": lambda: sl.screen(table, [public], **asked, noise=noise),
        "best_mixture_error": lambda: sl.best_mixture_error(table, public, **asked, noise=noise),
        "mixed_mean": lambda: sl.mixed_mean(values, bounds=(0, 5), alone=True, noise=noise),
        "mixed_quantile": lambda: sl.mixed_quantile(values, 0.5, bounds=(0, 5), alone=True, noise=noise),
        "grouped_mean": lambda: sl.grouped_mean(
            frame, "income", by="region", cells=["n", "s"], epsilon=1.0, bounds=(0, 5), noise=noise
        ),
        "discover": lambda: sl.discover(
            frame, "region", schema=schema, epsilon=1.0, delta=1e-6, noise=noise
        ),
    }  # fmt: skip


@pytest.mark.parametrize("name", spent_without_a_ledger())
def test_in_python_too_spending_that_nobody_records_is_said_to_be_so_each_time(name):
    spend = spent_without_a_ledger()[name]

    for _ in range(2):
        with pytest.warns(sl.UnrecordedWarning, match="this spending is recorded nowhere") as said:
            spend()
        assert len(said) == 1
        assert said[0].filename == __file__  # the line of whoever called


def test_a_large_epsilon_is_doubted_without_a_ledger_too():
    people = {epsilon: [sl.Group([1.0, 2.0, 3.0] * 20, epsilon=epsilon)] for epsilon in (10.0, 10.5)}

    with pytest.warns(sl.UnrecordedWarning) as usual:
        sl.mixed_mean(people[10.0], bounds=(0, 5), alone=True)
    with pytest.warns(PrivacyWarning, match=r"ε = 10.5 is above 10 and protects little") as doubted:
        sl.mixed_mean(people[10.5], bounds=(0, 5), alone=True)

    assert [len(usual), len(doubted)] == [1, 2]
    assert doubted[1].filename == __file__


def test_the_warning_is_shown_every_time_by_default_and_a_filter_silences_it():
    code = (
        "import sys, warnings, sidelight as sl\n"
        "if sys.argv[1:]: warnings.simplefilter('ignore', sl.UnrecordedWarning)\n"
        "people = [sl.Group([1.0, 2.0] * 20, epsilon=0.5)]\n"
        "for _ in range(3): sl.mixed_mean(people, bounds=(0, 5), alone=True)\n"
    )

    said = [
        subprocess.run([sys.executable, "-c", code, *more], capture_output=True, text=True, check=True).stderr
        for more in ([], ["quiet"])
    ]

    assert [text.count("recorded nowhere") for text in said] == [3, 0]


@pytest.mark.parametrize("name", spent_without_a_ledger())
def test_neither_a_ledger_nor_seeded_noise_is_warned_about(name):
    with warnings.catch_warnings():
        warnings.simplefilter("error", sl.UnrecordedWarning)
        spent_without_a_ledger(sl.testing.SeededNoise(1))[name]()
