"""Who may read what a command writes, whose files it takes away, and what spreadsheets would run of it."""

import csv
import os
import stat
from pathlib import Path

import pyarrow as pa
import pytest

from commands import sidelight
from sidelight.data.reading.frames import write_file
from sidelight.errors import InputError, SettingError

TOML = """[columns.age]
kind = "integer"
low = 0
high = 4

[columns."sex"]
kind = "categorical"
labels = ["f", "m"]
"""
OPEN_TO_ALL = 0o000


@pytest.fixture
def people(tmp_path):
    """A table, a schema and a ledger, in a world where new files are open to everybody."""
    before = os.umask(OPEN_TO_ALL)
    try:
        (tmp_path / "people.csv").write_text("age,sex\n" + "1,f\n2,m\n4,f\n" * 60)
        (tmp_path / "people.toml").write_text(TOML)
        assert (
            sidelight("ledger", "open", "p.ledger", "--epsilon", 5, "--delta", "1e-9", folder=tmp_path)[0]
            == 0
        )
        yield tmp_path
    finally:
        os.umask(before)


def release(folder, *more, out="out"):
    return sidelight(
        "release", "people.csv", "--schema", "people.toml", "--ledger", "p.ledger", "--epsilon", 1,
        "--workload", "2-way", "--mechanism", "mwem", "--set", "rounds=2", "--out", out, *more, folder=folder,
    )  # fmt: skip


def rights(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_ledger_is_its_owners_alone_and_what_is_published_is_as_the_system_says(people):
    assert release(people)[0] == 0
    assert sidelight("sample", "out", "--to", "s.csv", "--seed", 1, folder=people)[0] == 0
    assert sidelight("report", "out", "--to", "r.html", folder=people)[0] == 0

    assert rights(people / "p.ledger") == 0o600
    assert rights(people / "s.csv") == 0o666
    assert rights(people / "r.html") == 0o666
    assert rights(people / "out") == 0o777
    assert {rights(path) for path in (people / "out").iterdir()} == {0o666}


def test_a_report_with_exact_counts_is_its_owners_alone_from_its_first_byte_on(people, monkeypatch):
    release(people)
    seen = []
    opened = os.open

    def watched(path, flags, mode=0o777, **more):
        handle = opened(path, flags, mode, **more)
        if "PRIVATE" in str(path):
            seen.append(stat.S_IMODE(os.fstat(handle).st_mode))
        return handle

    monkeypatch.setattr(os, "open", watched)
    code, _, _ = sidelight("report", "out", "--to", "r.html", "--against", "people.csv", folder=people)

    assert code == 0
    assert seen == [0o600]
    assert rights(people / "r.PRIVATE.html") == 0o600


def test_a_report_that_replaces_an_open_one_is_private_too(people):
    release(people)
    (people / "r.PRIVATE.html").write_text("an older one, open to all")

    sidelight("report", "out", "--to", "r.html", "--against", "people.csv", "--overwrite", folder=people)

    assert rights(people / "r.PRIVATE.html") == 0o600
    assert "an older one" not in (people / "r.PRIVATE.html").read_text()


def test_a_folder_with_other_files_is_no_checkpoint_and_nothing_is_charged(people):
    (people / "mine").mkdir()
    (people / "mine" / "precious.txt").write_text("do not lose this")
    before = (people / "p.ledger").read_bytes()

    code, _, err = release(people, "--checkpoint", "mine")

    assert code == 2
    assert "a folder of its own" in err
    assert (people / "p.ledger").read_bytes() == before
    assert (people / "mine" / "precious.txt").read_text() == "do not lose this"
    assert not (people / "out").exists()


def test_what_others_put_beside_a_journal_outlives_the_release(people, monkeypatch):
    """The folder beside the release goes when it is done, but for what is not ours."""
    from sidelight.mechanisms.mwem import MWEM

    run = MWEM.run

    def with_a_visitor(self, *args, **more):
        (people / "out.checkpoint" / "precious.txt").write_text("do not lose this")
        return run(self, *args, **more)

    monkeypatch.setattr(MWEM, "run", with_a_visitor)
    assert release(people)[0] == 0

    assert [path.name for path in (people / "out.checkpoint").iterdir()] == ["precious.txt"]


def test_a_finished_release_takes_away_its_journal_and_no_more(people):
    assert release(people, "--checkpoint", "out.checkpoint")[0] == 0
    (people / "out.checkpoint" / "precious.txt").write_text("do not lose this")

    code, _, err = release(people)

    assert code == 0
    assert "was already complete; nothing more was spent" in err
    assert [path.name for path in (people / "out.checkpoint").iterdir()] == ["precious.txt"]


@pytest.mark.parametrize("out", ["/proc/nowhere/out", "p.ledger/out", "x" * 300])
def test_a_release_that_could_not_be_written_is_refused_before_it_is_paid_for(people, out):
    before = (people / "p.ledger").read_bytes()

    code, _, err = release(people, "--checkpoint", "kept", out=out)

    assert code == 2
    assert err.startswith("error: ")
    assert (people / "p.ledger").read_bytes() == before


HOSTILE = pa.table(
    {
        "=1+1": ["=cmd|'/c calc'!A0", "@SUM(1)", "-1+1", "\tx", "\rx", "＝1", None, "plain", "a=b", ""],
        "number": [-1, -2, 3, 4, 5, 6, 7, 8, None, 0],
    }
)


def test_safe_cells_quote_what_a_spreadsheet_would_run_and_leave_numbers_alone(tmp_path):
    write_file(HOSTILE, tmp_path / "safe.csv", safe_cells=True)
    write_file(HOSTILE, tmp_path / "plain.csv")

    with (tmp_path / "safe.csv").open(newline="") as file:
        safe = list(csv.reader(file))
    assert safe[0] == ["'=1+1", "number"]
    assert [line[0] for line in safe[1:]] == [
        "'=cmd|'/c calc'!A0", "'@SUM(1)", "'-1+1", "'\tx", "'\rx", "'＝1", "", "plain", "a=b", ""
    ]  # fmt: skip
    assert [line[1] for line in safe[1:3]] == ["-1", "-2"]
    assert '"=cmd' in (tmp_path / "plain.csv").read_text()


def test_safe_cells_are_for_csv_files(tmp_path):
    with pytest.raises(SettingError, match=r"for \.csv files"):
        write_file(HOSTILE, tmp_path / "x.parquet", safe_cells=True)


def test_sample_offers_safe_cells(people):
    hostile = (
        TOML.replace('"f", "m"', '"=f", "@m"')
        .replace("sex", "+sex")
        .replace("[columns.+sex]", '[columns."+sex"]')
    )
    (people / "people.toml").write_text(hostile)
    (people / "people.csv").write_text("age,+sex\n" + "1,=f\n2,@m\n" * 60)
    assert release(people)[0] == 0

    code, _, _ = sidelight("sample", "out", "--to", "s.csv", "--seed", 1, "--safe-cells", folder=people)

    assert code == 0
    with (people / "s.csv").open(newline="") as file:
        lines = list(csv.reader(file))
    assert lines[0] == ["age", "'+sex"]
    assert {line[1] for line in lines[1:]} <= {"'=f", "'@m"}


def test_a_table_is_written_whole_or_not_at_all(tmp_path):
    (tmp_path / "t.csv").write_text("an older table")

    with pytest.raises(Exception, match="Unsupported"):
        write_file(pa.table({"x": [[1]]}), tmp_path / "t.csv")

    assert [path.name for path in tmp_path.iterdir()] == ["t.csv"]
    assert (tmp_path / "t.csv").read_text() == "an older table"


@pytest.mark.parametrize("path", ["", ".", "..", "/", "a\0b.csv", "/dev/full.csv/x.csv"])
def test_a_path_that_names_no_file_is_refused_in_a_sentence(path):
    with pytest.raises(InputError) as refused:
        write_file(HOSTILE, path)

    assert 10 < len(str(refused.value)) < 300
