"""Private values reach no page, no file and no error: every response is searched for planted ones."""

import pytest
from stage import ASK, SECRETS, all_files, confirmed, hold_workers, planned, prepared, spent
from stage import Stage as Studio

from sidelight.studio.jobs import Jobs
from sidelight.studio.routes import ADDRESSES

PLANTED = (
    f"{SECRETS[0]},41,north",
    f"F,{SECRETS[2]},south",
    f"M,{SECRETS[4]},west",
    f"F,33,{SECRETS[1]}",
    f"{SECRETS[3]},12,north",
)


@pytest.fixture(scope="module")
def searched(tmp_path_factory):
    """Everything that can be done with a table that holds the planted values, and every answer to it."""
    with pytest.MonkeyPatch.context() as patch:
        stage = Studio(tmp_path_factory.mktemp("secrets"))
        hold_workers(patch, stage)
        curator = prepared(stage, extra=PLANTED)
        # Checked, refused, then read with a place for everything; released, sampled, stopped.
        curator.post("/p/people/schema/check")
        stage.work()
        curator.get("/p/people/schema")
        planned(curator)
        curator.post("/p/people/release", confirmed(curator))
        assert stage.work() == [2]
        assert "nothing was spent" in curator.get("/p/people/release").text
        for job in Jobs(stage.place()).all():
            curator.get(f"/p/people/jobs/{job.id}")
        schema = stage.place().schema
        schema.write_text(
            schema.read_text()
            .replace('kind = "categorical"', 'kind = "categorical"\noutside = "other"')
            .replace('outside = "clamp"', 'outside = "other"')
        )
        planned(curator, workload="3-way")
        curator.post("/p/people/release", confirmed(curator))
        assert stage.work() == [0]
        curator.post("/p/people/explore/release-2/sample", {"records": "500"})
        curator.post("/p/people/explore/release-2/sample", {"records": "500", "format": "parquet"})
        assert stage.work() == [0, 0]
        assert spent(stage) == 1
        for address in ADDRESSES:
            for release, job in (("release-2", _job(stage)), (SECRETS[0], SECRETS[0])):
                path = address.path.format(project="people", release=release, job=job)
                if address.path == "/leave":
                    continue
                if address.method == "GET":
                    curator.get(path)
                else:
                    curator.post(path, {**ASK, "version": "x"})
        for query in (
            "by=age",
            "by=sex&by=ward",
            "by=sex&by=ward&by=age",
            "by=sex&f.age=other",
            "by=age&f.sex=F",
        ):
            curator.get(f"/p/people/explore/release-2?{query}")
            curator.get(f"/p/people/explore/release-2/table.csv?{query}")
        stage.pending.clear()
        yield stage


def _job(stage):
    return next(Jobs(stage.place()).all("sample")).id


def test_no_response_holds_a_planted_value(searched):
    assert len(searched.seen) > 100
    for answer in searched.seen:
        where = f"{answer.request.method} {answer.request.url}"
        for secret in SECRETS:
            if secret not in str(answer.request.url):
                assert secret.encode() not in answer.content, where
                assert secret not in str(answer.headers), where


def test_no_file_of_the_studio_holds_a_planted_value(searched):
    private = searched.place().path / "private.csv"
    looked = [path for path in all_files(searched.root) if path != private]
    assert len(looked) > 30
    for path in looked:
        content = path.read_bytes()
        for secret in SECRETS:
            assert secret.encode() not in content, path


def test_the_search_would_find_them(searched):
    content = (searched.place().path / "private.csv").read_text()

    assert all(secret in content for secret in SECRETS)


def test_the_studios_own_files_are_its_owners_alone(searched):
    for path in all_files(searched.root):
        if ".studio" in path.parts and not path.name.endswith((".toml", ".csv", ".parquet")):
            assert path.stat().st_mode & 0o077 == 0, path
    for folder in searched.root.rglob(".studio"):
        assert folder.stat().st_mode & 0o077 == 0
