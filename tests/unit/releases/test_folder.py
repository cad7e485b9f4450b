"""A release folder that is incomplete, newer or edited says so."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import cards
from sidelight.errors import ReleaseError
from sidelight.mechanisms.mwem import MWEM
from sidelight.releases.release import Release


@pytest.fixture
def saved(toy, tmp_path):
    curator, _ = toy.curator()
    release = cards.released(MWEM(rounds=2).run(curator, toy.workload))
    return release.save(tmp_path / "out")


def edit(folder, **changes):
    about = json.loads((folder / "release.json").read_text(encoding="utf-8"))
    (folder / "release.json").write_text(json.dumps(about | changes), encoding="utf-8")


def test_a_folder_without_a_description_is_no_release(tmp_path):
    with pytest.raises(ReleaseError, match=r"holds no release\.json"):
        Release.load(tmp_path)


def test_a_folder_that_is_not_there_is_told_as_such(tmp_path):
    with pytest.raises(ReleaseError, match=r"there is no folder .*nowhere; name one that holds a release"):
        Release.load(tmp_path / "nowhere")


def test_a_missing_file_is_named(saved):
    (saved / "measurements.parquet").unlink()
    with pytest.raises(ReleaseError, match=r"measurements\.parquet is missing"):
        Release.load(saved)


def test_an_edited_file_is_named(saved):
    with (saved / "measurements.parquet").open("ab") as file:
        file.write(b" ")
    with pytest.raises(ReleaseError, match=r"measurements\.parquet was changed"):
        Release.load(saved)


def test_a_newer_format_asks_for_an_update(saved):
    edit(saved, format=99)
    with pytest.raises(ReleaseError, match="Update sidelight"):
        Release.load(saved)


def test_a_description_that_was_cut_off_is_told(saved):
    text = (saved / "release.json").read_text(encoding="utf-8")
    (saved / "release.json").write_text(text[: len(text) // 2], encoding="utf-8")
    with pytest.raises(ReleaseError, match="cut off or edited"):
        Release.load(saved)


def test_an_unknown_kind_of_model_is_refused(saved):
    about = json.loads((saved / "release.json").read_text(encoding="utf-8"))
    edit(saved, model=about["model"] | {"kind": "crystal ball"})
    with pytest.raises(ReleaseError, match="update sidelight"):
        Release.load(saved)


def test_a_folder_in_use_is_never_overwritten(saved, toy):
    curator, _ = toy.curator()
    with pytest.raises(ReleaseError, match="already exists"):
        cards.released(MWEM(rounds=1).run(curator, toy.workload)).save(saved)
    Release.load(saved)


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="threads are counted as Linux shows them")
def test_a_folder_is_read_without_threads_that_outlive_the_reading(saved):
    """A thread of Arrow that let go of a file while Python ended aborted the command."""
    script = f"""
import os
import pyarrow.parquet
from sidelight.releases.release import Release
before = len(os.listdir("/proc/self/task"))
Release.load({str(saved)!r})
print(len(os.listdir("/proc/self/task")) - before)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    assert done.stdout.split() == ["0"]
