"""A studio in a folder of its own, whose workers run when a test says so."""

import shutil
import sys
from pathlib import Path

import pytest

pytest.importorskip("starlette")
pytest.importorskip("httpx2")
sys.path.insert(0, str(Path(__file__).resolve().parent))
import stage as staging


@pytest.fixture
def stage(tmp_path, monkeypatch):
    # Projects are copies of one, so their ledgers begin alike: each test remembers the heads of its own.
    monkeypatch.setenv("SIDELIGHT_STATE", str(tmp_path / "state"))
    made = staging.Stage(tmp_path)
    staging.hold_workers(monkeypatch, made)
    return made


@pytest.fixture(scope="session")
def released_project(tmp_path_factory):
    """The folder of a project that has released something once, with the help of public data."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SIDELIGHT_STATE", "")
        made = staging.Stage(tmp_path_factory.mktemp("first"))
        staging.hold_workers(patch, made)
        curator = staging.prepared(made)
        staging.planned(curator, mechanism="jam", with_public="yes", workload="2-way")
        curator.post("/p/people/release", staging.confirmed(curator))
        assert made.work() == [0]
    return made.place().path


@pytest.fixture(scope="module")
def released(released_project, tmp_path_factory):
    """A studio with that project; a test may change it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SIDELIGHT_STATE", "")
        made = staging.Stage(tmp_path_factory.mktemp("released"))
        staging.hold_workers(patch, made)
        shutil.copytree(released_project, made.root / "people")
        yield made
