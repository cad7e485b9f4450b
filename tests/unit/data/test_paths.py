"""A path is one file; a pattern is one only where there is no such file, and DuckDB never sees one."""

import gc
import multiprocessing
import os
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

from sidelight.data.engines import duckdb as engine
from sidelight.data.engines.own_folder import own_folder
from sidelight.data.reading.read import open_source
from sidelight.data.schema import Schema
from sidelight.data.table import Table
from sidelight.errors import DataError

SCHEMA = Schema.from_domain({"age": 4, "sex": 2})
NAMES = [
    "data[1]", "*", "data?", "data{1,2}", "data[!2]", "data[0-9]", "**", " data ", "da'ta", 'da"ta', "da\nta",
    "~", "~root", "%20", "da\\ta", "$HOME", "a'); COPY (SELECT 1) TO 'planted.csv'; --", "dåta",
    os.fsdecode(b"da\xffta"), "s3:", "data[1]/age=3/x", "age=3/x", "sex=1/age=3/x", "*/x", "a#b", "spark",
]  # fmt: skip
posix = pytest.mark.skipif(os.name != "posix", reason="such names are those of POSIX file systems")


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    """An empty folder, with files beside the named ones that a pattern would match."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(name, records, kind):
    path = Path(f"{name}.{kind}")
    path.parent.mkdir(parents=True, exist_ok=True)
    ages = [0] * records
    if kind == "parquet":
        with path.open("wb") as file:
            pyarrow.parquet.write_table(pa.table({"age": ages, "sex": ages}), file)
    else:
        path.write_text("age,sex\n" + "0,0\n" * records)
    return str(path)


@posix
@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.parametrize("name", NAMES, ids=ascii)
def test_a_file_is_read_by_its_name_and_no_other_is(name, kind):
    for other in ("data1", "data2", "data", "a", "age", "xdata", "data[1]x", "root", "1/x", "data1/age=3/x"):
        write(other, 100, kind)
    path = write(name, 3, kind)

    for given in (path, Path(path), os.path.abspath(path)):
        table = Table.read(given, SCHEMA)
        assert table.records == 3
        assert table.count(("age", "sex")).tolist()[0] == [3, 0]
    assert not Path("planted.csv").exists()


@posix
def test_a_folder_in_the_way_may_look_like_a_pattern(here):
    (here / "year[2024]").mkdir()
    (here / "year2").mkdir()
    write("year2/people", 9, "csv")
    write("year[2024]/people", 2, "csv")

    assert Table.read("year[2024]/people.csv", SCHEMA).records == 2


def test_a_pattern_is_expanded_where_there_is_no_such_file(here):
    for name, records in (("b1", 1), ("b2", 2), ("c1", 4)):
        write(name, records, "csv")

    assert Table.read("b*.csv", SCHEMA).records == 3
    assert Table.read("[bc]1.csv", SCHEMA).records == 5
    assert Table.read("?2.csv", SCHEMA).records == 2
    with pytest.raises(DataError, match="no file matches"):
        Table.read("d*.csv", SCHEMA)


def read(pattern):
    source = open_source(pattern)
    return [age for (age,) in source.run(f"SELECT c0 FROM {engine.VIEW}").fetchall()]


@posix
def test_files_of_a_pattern_are_read_in_the_order_of_their_names_whatever_these_are(here):
    for place, name in enumerate(("p[1]", "p*", "p0")):
        Path(f"{name}.csv").write_text(f"age,sex\n{place},0\n")

    assert sorted(["p[1]", "p*", "p0"]) == ["p*", "p0", "p[1]"]
    assert read("p?*.csv") == ["1", "2", "0"]
    assert read("p*.csv") == ["1"]  # a file of that name


def test_folders_called_after_a_column_do_not_give_it_values(here):
    for kind in ("csv", "parquet"):
        write("age=3/people", 5, kind)

        assert Table.read(f"age=3/people.{kind}", SCHEMA).count(("age",)).tolist() == [5, 0, 0, 0]
        assert Table.read(f"*/people.{kind}", SCHEMA).count(("age",)).tolist() == [5, 0, 0, 0]


@pytest.mark.parametrize(
    "address",
    ["http://127.0.0.1:9/x.csv", "https://x/y.parquet", "s3://bucket/x.parquet", "hf://datasets/x/y.csv",
     "gs://b/x.csv", "azure://b/x.csv", "file:///etc/x.csv", "ftp://x/y.csv", "S3://b/x.csv"],
)  # fmt: skip
def test_addresses_of_the_network_are_refused_before_anything_opens_them(address, monkeypatch):
    monkeypatch.setattr(engine, "connect", lambda: pytest.fail("DuckDB was asked"))

    with pytest.raises(DataError, match=r"cannot be read: a table must be a path"):
        Table.read(address, SCHEMA)


@posix
def test_a_file_below_a_folder_called_like_a_store_is_read_from_the_disk(here):
    (here / "s3:" / "bucket").mkdir(parents=True)
    write("s3:/bucket/people", 2, "parquet")

    assert Table.read("s3://bucket/people.parquet", SCHEMA).records == 2


def test_our_duckdb_takes_no_extension_and_no_other_settings():
    import duckdb

    connection = engine.connect()
    for statement in (
        "SET memory_limit = '2GB'",
        "SET allow_community_extensions = true",
        "SET autoinstall_known_extensions = true",
        "SET temp_directory = '/tmp'",
    ):
        with pytest.raises(duckdb.Error):
            connection.execute(statement)


@posix
def test_links_to_odd_names_go_with_their_source(here):
    before = set(own_folder().iterdir())
    source = open_source(write("data[1]", 1, "csv"))
    (made,) = set(own_folder().iterdir()) - before
    assert made.is_symlink()

    del source
    gc.collect()

    assert not made.is_symlink()


SPILL = """
import os, stat, sys
os.umask(0)
from pathlib import Path
from sidelight.data.engines import duckdb as engine
engine._MEMORY = "60MB"
connection = engine.connect()
made = "SELECT i, hash(i) AS h, repeat('x', 50) AS r FROM range(1200000) AS s(i)"
connection.execute("CREATE TEMP TABLE t AS " + made)
from sidelight.data.engines.own_folder import own_folder
folder = own_folder()
spilled = list((folder / "spill").iterdir())
print(folder, oct(stat.S_IMODE(folder.stat().st_mode)), len(spilled))
"""


@posix
@pytest.mark.slow
def test_what_is_spilled_lies_where_only_its_owner_can_look_and_is_removed(here):
    done = subprocess.run([sys.executable, "-c", SPILL], capture_output=True, text=True, check=True)
    folder, mode, spilled = done.stdout.split()

    assert mode == "0o700"
    assert int(spilled) > 0
    assert Path(folder).parent == Path(tempfile.gettempdir())
    assert not Path(folder).exists()


def _folder_of_a_child(queue):
    queue.put(str(own_folder()))


@posix
def test_the_folder_is_private_and_a_forked_process_has_one_of_its_own(here):
    folder = own_folder()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert folder.stat().st_uid == os.geteuid()

    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=_folder_of_a_child, args=(queue,))
    child.start()
    other = Path(queue.get(timeout=30))
    child.join()

    assert other != folder
    assert not other.exists()
    assert folder.is_dir()


def test_a_machine_without_a_folder_for_temporary_files_still_reads(here, monkeypatch):
    def nowhere(*_, **__):
        raise FileNotFoundError

    monkeypatch.setattr("sidelight.data.engines.duckdb.own_folder", nowhere)
    monkeypatch.setattr("sidelight.data.engines.own_folder.own_folder", nowhere)
    engine._database.cache_clear()
    try:
        assert Table.read(write("people", 3, "csv"), SCHEMA).records == 3
        with pytest.raises(DataError, match="Rename the file"):
            Table.read(write("people[1]", 3, "csv"), SCHEMA)
    finally:
        engine._database.cache_clear()
