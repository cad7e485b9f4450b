"""No path leads out of the project's folder, whatever somebody types or uploads."""

import os

import pytest
from stage import Stage, all_files, hold_workers, table

from sidelight.errors import InputError
from sidelight.studio import places
from sidelight.studio.places import Place
from sidelight.studio.project import is_slug, slug_of


@pytest.fixture
def place(tmp_path):
    home = tmp_path / "studio" / "people"
    (home / ".studio").mkdir(parents=True)
    (home / "private.csv").write_text(table(10, 1))
    (home / ".studio" / "inner.csv").write_text("a\n1\n")
    (tmp_path / "outside.csv").write_text("a\n1\n")
    (tmp_path / "studio" / "other.csv").write_text("a\n1\n")
    os.symlink(tmp_path / "outside.csv", home / "link.csv")
    os.symlink(tmp_path, home / "up")
    return Place(home)


@pytest.mark.parametrize(
    "said",
    [
        "../other.csv",
        "../../outside.csv",
        "link.csv",
        "up/outside.csv",
        "../*.csv",
        "up/*.csv",
        ".studio/inner.csv",
        ".studio/*.csv",
        "/elsewhere/secret",
        "/etc/*",
        "nowhere.csv",
        "",
        ".",
        "private.csv\0",
        "people.toml",
    ],
)
def test_a_source_outside_is_refused(place, said):
    with pytest.raises(InputError):
        place.source(said)


def test_nobody_learns_what_lies_outside(place, tmp_path, monkeypatch):
    """Whether it is there or not, and how it is called: the sentence repeats what was typed, and no more."""
    looked_at = []
    find = places.files_of
    monkeypatch.setattr(places, "files_of", lambda text: looked_at.append(text) or find(text))
    outside = str(tmp_path)

    for said in (
        "../../outside.csv", "../../nothing.csv", "../../*", "../../o*.csv", "../../none*", "up/*",
        "up/o*.csv", "*/../../../*.csv", f"{outside}/*.csv", f"{outside}/[o]*", "link.csv",
        "u*/outside.csv", "[.]studio/*",
    ):  # fmt: skip
        with pytest.raises(InputError) as refusal:
            place.source(said)
        assert str(refusal.value).startswith(
            f"there is no file {said!r} in the project's folder. Put it there,"
        )
        assert "outside.csv" not in str(refusal.value).replace(said, "")
    # Only patterns within the folder are looked up; links that they find are followed, and refused.
    assert looked_at == [str(place.path / said) for said in ("u*/outside.csv", "[.]studio/*")]


def test_a_source_outside_is_refused_by_its_full_path_and_allowed_where_that_was_said(place, tmp_path):
    with pytest.raises(InputError, match="--tables"):
        place.source(str(tmp_path / "outside.csv"))

    allowed = Place(place.path, (tmp_path,))
    assert allowed.source(str(tmp_path / "outside.csv")) == str(tmp_path / "outside.csv")
    assert allowed.source("private.csv") == "private.csv"


def test_a_pattern_within_the_folder_is_kept_as_it_is(place):
    assert place.source("pri*.csv") == "pri*.csv"


@pytest.mark.parametrize(
    "said",
    [
        "postgresql://bob:4711@db/hospital#patients",
        "postgresql://bob@db/hospital?password=4711#patients",
        "mysql://db/hospital",
        "http://example.org/table.csv",
        "s3://bucket/table.csv",
        "file://elsewhere/secret",
    ],
)
def test_passwords_and_other_addresses_are_refused_without_repeating_them(place, said):
    with pytest.raises(InputError) as refused:
        place.source(said)

    assert "4711" not in str(refused.value)


def test_databases_and_clusters_are_named_by_their_address(place):
    for said in ("postgresql://bob@db/hospital#patients", "spark:hospital.patients"):
        assert place.source(said) == said


def test_a_ledger_outside_is_refused(place):
    for said in ("../people.ledger", "/tmp/people.ledger", ".studio/people.ledger", "up/people.ledger"):
        with pytest.raises(InputError):
            place.ledger(said)
    assert place.ledger("people.ledger") == "people.ledger"


@pytest.mark.parametrize(
    "slug", ["..", ".", "", ".studio", "a/b", "A", "a--b", "-a", "é", "a" * 61, "a\0", "%2e%2e"]
)
def test_no_project_has_such_a_name(slug, stage):
    assert not is_slug(slug)
    assert stage.studio.place(slug) is None


def test_titles_become_plain_folders(stage):
    titles = ["Patients 2026", "../../etc", "Pa/ti\\ents", "日本", "patients-2026", "a" * 100]
    places = [stage.studio.create(title) for title in titles]

    assert len({place.path for place in places}) == len(titles)
    for place in places:
        assert place.path.parent == stage.root
        assert is_slug(place.slug)
    assert slug_of("...") == "project"


def upload(curator, name, content=b"a\n1\n"):
    return curator.client.post(
        "/p/people/sources/upload",
        data={"token": curator.token()},
        files={"table": (name, content)},
        headers={"origin": curator.stage.origin},
        follow_redirects=False,
    )


@pytest.fixture
def curator(stage):
    browser = stage.browser()
    browser.post("/projects", {"title": "People"})
    return browser


@pytest.mark.parametrize(
    "name", ["../../evil.csv", "/etc/evil.csv", "..\\evil.csv", "a/b/evil.csv", "e vil;.csv"]
)
def test_an_upload_lands_in_its_folder_whatever_it_is_called(curator, stage, name):
    before = set(all_files(stage.root.parent))

    assert upload(curator, name).status_code == 303

    (made,) = {path for path in set(all_files(stage.root.parent)) - before if "sessions" not in str(path)}
    assert made.parent == stage.place().path / "public"
    assert made.stat().st_mode & 0o077 == 0
    assert stage.place().project().public == (f"public/{made.name}",)


@pytest.mark.parametrize("name", ["evil.py", "evil.csv.gz", "evil", ".csv", "evil.html", "evil.toml"])
def test_other_files_are_not_taken(curator, stage, name):
    answer = upload(curator, name)

    assert answer.status_code == 422
    assert "must end in" in answer.text
    assert not (stage.place().path / "public").exists() or not list((stage.place().path / "public").iterdir())


def test_an_upload_does_not_overwrite(curator, stage):
    assert upload(curator, "old.csv", b"a\n1\n").status_code == 303
    assert upload(curator, "old.csv", b"b\n2\n").status_code == 422
    assert (stage.place().path / "public" / "old.csv").read_bytes() == b"a\n1\n"


def test_an_upload_beyond_the_limit_is_refused_and_leaves_nothing(tmp_path, monkeypatch):
    stage = Stage(tmp_path, settings={"upload_mb": 1})
    hold_workers(monkeypatch, stage)
    curator = stage.browser()
    curator.post("/projects", {"title": "People"})

    assert upload(curator, "large.csv", b"x" * (4 << 20)).status_code == 413
    assert upload(curator, "small.csv", b"x" * (1 << 20)).status_code == 303
    assert [path.name for path in (stage.place().path / "public").iterdir()] == ["small.csv"]


def test_an_upload_is_not_parsed_by_the_server(curator, stage, monkeypatch):
    """Whatever a file holds, taking it in only copies it; a worker reads it, and says what is wrong."""
    assert upload(curator, "broken.parquet", b"PAR1 no table").status_code == 303
    curator.post("/p/people/schema/draft", {"draft_public": "public/broken.parquet"})
    assert stage.work() == [2]

    page = curator.get("/p/people/schema").text
    assert "No schema could be drafted" in page
    assert "could not be read" in page


def test_the_private_table_is_refused_as_public_data(curator, stage):
    (stage.place().path / "private.csv").write_text(table(10, 1))
    os.symlink(stage.place().path / "private.csv", stage.place().path / "again.csv")
    curator.post("/p/people/sources", {"private": "private.csv"})

    for source in ("private.csv", "again.csv", "priv*.csv"):
        answer = curator.post("/p/people/sources/add", {"source": source})
        assert answer.status_code == 422
        assert "as public data, too" in answer.text
    assert stage.place().project().public == ()
