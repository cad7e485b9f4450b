"""Each command run as a person would: output, exit codes, and no traceback ever."""

import errno
import json
import os
import sqlite3
import subprocess
import sys

import numpy as np
import pytest

from commands import sidelight

SECRET = "Zebulon"
TOML = """
[unit]
relation = "replace"

[columns.name]
kind = "categorical"
labels = ["ann", "bob"]
outside = "refuse"

[columns.age]
kind = "integer"
low = 0
high = 99
bins = 5

[columns.pay]
kind = "real"
low = 0.0
high = 1000.0
bins = 4
missing = true
"""


@pytest.fixture
def people(tmp_path):
    rng = np.random.default_rng(0)
    lines = ["name,age,pay"]
    for _ in range(300):
        pay = "" if rng.random() < 0.1 else f"{rng.random() * 1000:.2f}"
        lines.append(f"{rng.choice(['ann', 'bob'])},{rng.integers(0, 100)},{pay}")
    (tmp_path / "people.csv").write_text("\n".join(lines) + "\n")
    (tmp_path / "people.toml").write_text(TOML)
    return tmp_path


@pytest.fixture
def opened(people):
    done = sidelight("ledger", "open", "p.ledger", "--epsilon", 1, "--delta", "1e-9", folder=people)
    assert done.returncode == 0, done.stderr
    return people


def release(folder, *extra, epsilon=0.6, table="people.csv", out="out"):
    return sidelight(
        "release", table, "--schema", "people.toml", "--ledger", "p.ledger", "--epsilon", epsilon,
        "--workload", "2-way", "--out", out, "--mechanism", "mwem", "--set", "rounds=3", *extra,
        folder=folder,
    )  # fmt: skip


def test_from_a_table_to_answers_and_records(opened):
    made = release(opened, "--json")
    assert made.returncode == 0, made.stderr
    card = json.loads(made.stdout)["card"]
    assert card["noise_is_private"] is True
    assert 0.55 < card["epsilon_spent"] <= 0.6

    answered = sidelight("answer", "out", "name", "age", "--json", folder=opened)
    cells = json.loads(answered.stdout)
    assert len(cells) == 2 * 5
    assert sum(cell["estimate"] for cell in cells) == pytest.approx(300, abs=0.1)
    assert set(cells[0]) == {
        "name",
        "age",
        "estimate",
        "noise_error",
        "model_error",
        "standard_error",
        "low",
        "high",
        "source",
    }

    sampled = sidelight("sample", "out", "--records", 50, "--seed", 1, "--to", "s.csv", folder=opened)
    assert sampled.returncode == 0, sampled.stderr
    lines = (opened / "s.csv").read_text().splitlines()
    assert lines[0].replace('"', "") == "name,age,pay"
    assert len(lines) == 51
    assert {line.replace('"', "").split(",")[0] for line in lines[1:]} <= {"ann", "bob"}

    shown = sidelight("ledger", "show", "p.ledger", "--json", folder=opened)
    facts = json.loads(shown.stdout)
    assert facts["head"] == card["ledger"]["head"]
    assert len(facts["runs"]) == 1
    verified = sidelight("ledger", "verify", "p.ledger", "--head", card["ledger"]["head"], folder=opened)
    assert verified.returncode == 0

    compared = sidelight("evaluate", "out", "people.csv", "--workload", "2-way", "--json", folder=opened)
    assert compared.returncode == 0, compared.stderr
    assert "PRIVATE" in compared.stderr.splitlines()[0]
    assert json.loads(compared.stdout)["private"] is True


def test_a_budget_that_does_not_suffice_exits_3_and_charges_nothing(opened):
    assert release(opened).returncode == 0

    refused = release(opened, epsilon=0.9, out="more")

    assert refused.returncode == 3
    assert "Nothing was read and nothing was charged" in refused.stderr
    assert "Ask for less (ε = " in refused.stderr
    assert not (opened / "more").exists()
    facts = json.loads(sidelight("ledger", "show", "p.ledger", "--json", folder=opened).stdout)
    assert len(facts["runs"]) == 1


def test_a_plan_reads_nothing_private(opened):
    (opened / "people.csv").unlink()

    planned = sidelight(
        "plan", "--schema", "people.toml", "--epsilon", 0.5, "--ledger", "p.ledger", "--workload", "2-way",
        "--json", folder=opened,
    )  # fmt: skip

    assert planned.returncode == 0, planned.stderr
    facts = json.loads(planned.stdout)
    assert facts["affordable"] is True
    assert facts["noise_stddev"] > 0
    assert facts["mechanism"] == "ladder"
    assert "ladder is expected to err least" in facts["why"]
    assert facts["model_bytes"] > 0


def test_a_plan_says_how_often_a_large_file_is_read_and_how_many_bytes_that_is(opened):
    asked = [
        "plan",
        "--schema",
        "people.toml",
        "--epsilon",
        0.5,
        "--workload",
        "2-way",
        "--bins",
        "as declared",
    ]
    size = (opened / "people.csv").stat().st_size

    alone = sidelight(*asked, "--delta", "1e-9", "--table", "people.csv", folder=opened)
    with_ledger = sidelight(*asked, "--ledger", "p.ledger", folder=opened)
    facts = sidelight(*asked, "--delta", "1e-9", "--table", "people.csv", "--json", folder=opened)
    absent = sidelight(*asked, "--delta", "1e-9", "--table", "nothing.csv", folder=opened)

    assert "reads      a large file at most 2 times (to check it, to count): at most 2 × " in alone.stdout
    assert (
        "reads      a large file at most 3 times (to check it, to be recognised, to count)\n"
        in with_ledger.stdout
    )
    assert json.loads(facts.stdout)["passes"] == 2
    assert json.loads(facts.stdout)["table_bytes"] == size
    assert absent.returncode == 2
    assert "nothing.csv" in absent.stderr


def test_a_plan_says_why_its_mechanism_was_chosen_unless_a_person_named_it(opened):
    asked = (
        "plan",
        "--schema",
        "people.toml",
        "--epsilon",
        0.5,
        "--ledger",
        "p.ledger",
        "--workload",
        "2-way",
    )

    chosen, named = (sidelight(*asked, *more, folder=opened) for more in ((), ("--mechanism", "ladder")))

    assert "mechanism  ladder\nwhy        For this workload, ladder is expected to err least" in chosen.stdout
    assert "mechanism  ladder\ndomain" in named.stdout


def test_a_draft_of_public_data_can_be_used_at_once(people):
    drafted = sidelight("schema", "draft", "people.csv", "--out", "draft.toml", folder=people)
    checked = sidelight("schema", "check", "people.csv", "--schema", "draft.toml", folder=people)

    assert drafted.returncode == 0, drafted.stderr
    assert "#" in (people / "draft.toml").read_text()
    assert checked.returncode == 0, checked.stdout


def test_a_schema_that_was_edited_is_not_drafted_over(people):
    before = (people / "people.toml").read_text()

    refused = sidelight("schema", "draft", "people.csv", "--out", "people.toml", folder=people)

    assert refused.returncode == 2
    assert "exists already" in refused.stderr
    assert (people / "people.toml").read_text() == before


def test_a_table_with_a_column_too_many_is_said_to_fit(people):
    lines = (people / "people.csv").read_text().splitlines()
    (people / "more.csv").write_text(
        "\n".join([lines[0] + ",ward", *(line + ",3" for line in lines[1:])]) + "\n"
    )

    checked = sidelight("schema", "check", "more.csv", "--schema", "people.toml", folder=people)

    assert checked.returncode == 0
    assert checked.stdout.endswith("left out.\nthe table fits the schema.\n")


BAD_TABLES = {
    "missing file": (None, "no file"),
    "empty file": ("", "empty"),
    "no records": ("name,age,pay\n", "no records"),
    "wrong delimiter": ("name;age;pay\nann;1;2\n", "semicolons"),
    "column missing": ("name,age\nann,1\n", "pay"),
    "duplicate columns": ("name,age,pay,age\nann,1,2,3\n", "age"),
    "value outside": (f"name,age,pay\n{SECRET},1,2\n", "name"),
    "number outside": ("name,age,pay\nann,777,2\n", "age"),
    "not a number": (f"name,age,pay\nann,{SECRET},2\n", "age"),
    "infinity": ("name,age,pay\nann,1,inf\n", "pay"),
    "missing where refused": ("name,age,pay\n,1,2\n", "name"),
}


@pytest.mark.parametrize("case", BAD_TABLES)
def test_a_bad_table_gets_a_clear_error_and_costs_nothing(opened, case):
    text, says = BAD_TABLES[case]
    if text is None:
        (opened / "people.csv").unlink()
    else:
        (opened / "people.csv").write_text(text)

    failed = release(opened)

    assert failed.returncode == 2, failed.stderr
    assert says in failed.stderr
    assert "Traceback" not in failed.stderr
    assert SECRET not in failed.stderr + failed.stdout
    assert "777" not in failed.stderr
    facts = json.loads(sidelight("ledger", "show", "p.ledger", "--json", folder=opened).stdout)
    assert facts["spent"] == 0


BAD_ARGUMENTS = {
    "epsilon zero": (("--epsilon", "0"), "epsilon must be a finite number above 0"),
    "epsilon negative": (("--epsilon", "-1"), "epsilon must be a finite number above 0"),
    "unknown mechanism": (("--mechanism", "mwen"), "Did you mean 'mwem'?"),
    "unknown setting": (("--set", "round=3"), "Did you mean 'rounds'?"),
    "bad setting": (("--set", "rounds=0"), "rounds must be a whole number of at least 1"),
    "unknown attribute": (("--workload", "w.json"), "unknown attribute 'nowhere'"),
    "missing ledger": (("--ledger", "none.ledger"), "none.ledger"),
    "foreign ledger": (("--ledger", "people.csv"), "people.csv"),
    "missing schema": (("--schema", "none.toml"), "none.toml"),
}


@pytest.mark.parametrize("case", BAD_ARGUMENTS)
def test_a_bad_argument_gets_a_clear_error_and_costs_nothing(opened, case):
    extra, says = BAD_ARGUMENTS[case]
    (opened / "w.json").write_text('[{"attrs": ["nowhere"]}]')

    failed = release(opened, *extra)

    assert failed.returncode == 2, failed.stderr
    assert says in failed.stderr
    assert "Traceback" not in failed.stderr
    facts = json.loads(sidelight("ledger", "show", "p.ledger", "--json", folder=opened).stdout)
    assert facts["spent"] == 0


def test_a_schema_of_astronomical_size_names_a_way_out(opened):
    columns = "".join(
        f'\n[columns.x{i}]\nkind = "integer"\nlow = 0\nhigh = 999\nbins = 1000\n' for i in range(10)
    )
    (opened / "huge.toml").write_text(columns)

    failed = sidelight(
        "plan", "--schema", "huge.toml", "--epsilon", 1, "--delta", "1e-9", "--workload", "1-way",
        "--mechanism", "mwem", "--set", "model=histogram", folder=opened,
    )  # fmt: skip

    assert failed.returncode == 2
    assert "1e+30 cells" in failed.stderr
    assert "mechanism" in failed.stderr


def test_an_interrupted_release_can_be_resumed_by_the_same_command(opened):
    first = release(opened)
    again = release(opened)

    assert first.returncode == 0, first.stderr
    assert again.returncode == 2
    assert "already exists" in again.stderr


def test_a_full_disk_loses_nothing_and_costs_nothing_twice(opened, monkeypatch):
    def full(release, folder):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr("sidelight.releases.folder._write", full)
        failed = release(opened)
    before = json.loads(sidelight("ledger", "show", "p.ledger", "--json", folder=opened).stdout)

    again = release(opened)
    after = json.loads(sidelight("ledger", "show", "p.ledger", "--json", folder=opened).stdout)

    assert failed.returncode == 130
    assert "No space left on device" in failed.stderr
    assert "repeat the same command" in failed.stderr
    assert not list(opened.glob(".out*"))
    assert again.returncode == 0, again.stderr
    assert (opened / "out" / "release.json").is_file()
    assert not (opened / "out.checkpoint").exists()
    assert after["spent"] == before["spent"] > 0
    assert len(after["runs"]) == 1


def test_a_run_that_refuses_its_own_settings_leaves_the_budget_free(opened):
    refused = release(opened, "--set", "rounds=100000", epsilon=0.9)
    facts = json.loads(sidelight("ledger", "show", "p.ledger", "--json", folder=opened).stdout)

    again = release(opened, epsilon=0.9)

    assert refused.returncode == 2
    assert "rounds" in refused.stderr
    assert facts["spent"] == 0
    assert again.returncode == 0, again.stderr


def test_a_delta_that_is_no_small_probability_is_warned_about(people):
    sidelight("ledger", "open", "loose.ledger", "--epsilon", 1, "--delta", "0.01", "--yes", folder=people)

    made = release(people, "--ledger", "loose.ledger")

    assert made.returncode == 0
    assert "warning: delta = 0.01 is at least 1/n" in made.stderr


@pytest.mark.parametrize("delta", ["1", "1.5", "-0.1"])
def test_a_promise_with_an_impossible_delta_is_refused(people, delta):
    refused = sidelight("ledger", "open", "x.ledger", "--epsilon", 1, f"--delta={delta}", folder=people)

    assert refused.returncode == 2
    assert "delta must be at least 0 and below 1" in refused.stderr
    assert not (people / "x.ledger").exists()


def test_a_public_table_that_a_mechanism_cannot_use_is_refused_before_anything_is_read(opened):
    (opened / "public.csv").write_text("name,age\nann,1\nbob,4\n")

    failed = release(opened, "--mechanism", "pmw-pub", "--public", "public.csv")

    assert failed.returncode == 2
    assert "tell nothing of pay" in failed.stderr
    assert "mechanism='aperture'" in failed.stderr
    facts = json.loads(sidelight("ledger", "show", "p.ledger", "--json", folder=opened).stdout)
    assert facts["spent"] == 0


def test_public_labels_that_have_no_place_are_counted_on_stderr(opened):
    (opened / "public.csv").write_text("name,age,pay\nann,1,2\ncarol,4,5\n")

    done = release(opened, "--mechanism", "pmw-pub", "--public", "public.csv")

    assert done.returncode == 0
    assert "public.csv: 1 of 2 values of 'name' have no place in the schema (such as 'carol')" in done.stderr


def test_a_public_table_is_checked_for_what_it_tells(opened):
    (opened / "public.csv").write_text("name,age,pays\nann,1,2\ncarol,4,5\n")
    schema = next(opened.glob("*.toml")).name

    done = sidelight("schema", "check", "public.csv", "--schema", schema, "--public", folder=opened)

    assert done.returncode == 0
    assert "2 records tell of age" in done.stdout
    assert "nothing is told of pay" in done.stdout
    assert "not in the schema, and left out: pays\n" in done.stdout
    assert "'carol'" in done.stderr


def test_a_tampered_ledger_is_refused(opened):
    assert release(opened).returncode == 0
    with sqlite3.connect(opened / "p.ledger") as connection:
        for (name,) in connection.execute("select name from sqlite_master where type = 'trigger'").fetchall():
            connection.execute(f'drop trigger "{name}"')
        table = connection.execute("select name from sqlite_master where type = 'table'").fetchone()[0]
        connection.execute(f'delete from "{table}" where rowid = 3')
    connection.close()

    failed = release(opened, out="more", epsilon=0.1)

    assert failed.returncode == 2
    assert "p.ledger" in failed.stderr


@pytest.mark.slow
def test_the_command_runs_as_a_program(people):
    shown = subprocess.run(
        [sys.executable, "-m", "sidelight", "schema", "check", "people.csv", "--schema", "people.toml"],
        cwd=people, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip

    assert shown.returncode == 0
    assert shown.stdout == "the table fits the schema.\n"


def test_unknown_commands_and_missing_options_exit_2(people):
    for args in (["nonsense"], ["release"], ["release", "people.csv", "--epsilon", "x"]):
        failed = sidelight(*args, folder=people)
        assert failed.returncode == 2
        assert "Traceback" not in failed.stderr


@pytest.mark.parametrize(
    "command",
    [["demo"], ["schema", "draft"], ["schema", "check"], ["plan"], ["release"], ["answer"], ["sample"],
     ["evaluate"], ["report"], ["screen"], ["mean"], ["quantile"],
     ["ledger", "open"], ["ledger", "show"], ["ledger", "verify"], ["ledger", "close"]],
    ids=" ".join,
)  # fmt: skip
def test_every_command_helps_with_an_example(command, tmp_path):
    shown = sidelight(*command, "--help", folder=tmp_path)

    assert shown.returncode == 0
    assert f"Example: sidelight {' '.join(command)}" in " ".join(shown.stdout.split())
