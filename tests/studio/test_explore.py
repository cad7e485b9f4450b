"""What a release says, as its page shows it, is what the library and the commands say."""

import contextlib
import csv
import io
import json
import shlex
import zipfile

import numpy as np
import pytest

from commands import sidelight
from sidelight.releases.release import Release
from sidelight.studio import answers
from sidelight.studio.recipe import answer_command, answer_python, sample_command
from sidelight.studio.shelf import Shelf

PAGE = "/p/people/explore/release-1"


@pytest.fixture(scope="module")
def reader(released):
    return released.browser("reader", "Rosalind Franklin")


@pytest.fixture(scope="module")
def release(released):
    return Release.load(released.place().release("release-1"))


def test_measured_quality_comes_first(reader, release):
    page = reader.get(PAGE).text

    assert release.quality.sentence in page
    assert page.index(release.quality.sentence) < page.index('id="ask-h"')


@pytest.mark.parametrize(
    ("query", "attrs", "where"),
    [
        ("by=ward", ["ward"], None),
        ("by=ward&by=sex", ["ward", "sex"], None),
        ("by=ward&by=sex&by=age", ["ward", "sex", "age"], None),
        ("by=ward&f.sex=F", ["ward"], {"sex": ["F"]}),
        ("by=ward&f.ward=north&f.ward=south", ["ward"], {"ward": ["north", "south"]}),
        ("by=age&by=sex&f.ward=west&f.age=0-39", ["age", "sex"], {"ward": ["west"], "age": ["0-39"]}),
    ],
)
def test_the_page_and_its_file_say_what_the_release_says(reader, release, query, attrs, where):
    expected = release.answer(attrs, where=where).to_pylist()

    page = reader.get(f"{PAGE}?{query}")
    told = list(csv.DictReader(io.StringIO(reader.get(f"{PAGE}/table.csv?{query}").text)))

    assert page.status_code == 200
    assert len(told) == len(expected)
    for line, known in zip(told, expected, strict=True):
        assert [line[attr] for attr in attrs] == [str(known[attr]) for attr in attrs]
        assert float(line["estimate"]) == pytest.approx(known["estimate"])
        assert float(line["low"]) == pytest.approx(known["low"])
    for known in expected[:3]:
        assert str(known[attrs[0]]) in page.text


def test_the_picture_of_a_condition_shows_the_counts_of_the_answer(released, release):
    asked = answers.question_of(["age"], {"sex": ("F",)}, compare=True)
    view = answers.view(answers.open_release(released.place(), "release-1"), asked)
    expected = release.answer("age", where={"sex": "F"})

    assert [row[1] for row in view.rows] == pytest.approx(expected["estimate"].to_pylist())
    assert view.total == pytest.approx(sum(expected["estimate"].to_pylist()))
    assert 'class="public"' in view.charts[0][1]


def test_the_public_table_stands_beside(released, reader):
    page = reader.get(f"{PAGE}?by=ward&compare=yes").text
    public = (released.place().path / "public" / "old.csv").read_text().splitlines()[1:]
    asked = answers.question_of(["ward"], {}, compare=True)
    view = answers.view(answers.open_release(released.place(), "release-1"), asked)

    shares = np.array([sum(line.endswith(ward) for line in public) for ward in ("north", "south", "west")])
    told = np.array([row[-1] for row in view.rows])
    assert told / told.sum() == pytest.approx(shares / shares.sum())
    assert "public table, scaled" in page
    assert "Public data, scaled" in reader.get(f"{PAGE}?by=ward&by=sex&compare=yes").text


@pytest.mark.parametrize(
    "query", ["by=ward&f.ward=attic", "by=ward&f.age=39-20", "by=age&f.age=1-2", "by=ward&f.age=x"]
)
def test_a_filter_that_cannot_be_is_said_at_the_filter(reader, query):
    answer = reader.get(f"{PAGE}?{query}")

    assert answer.status_code == 422
    assert 'id="filters-wrong"' in answer.text


def test_names_that_are_not_there_are_left_out(reader):
    for query in ("by=nobody", "by=", "f.nobody=1", "add=nobody", "by=ward&by=ward&by=ward"):
        assert reader.get(f"{PAGE}?{query}").status_code == 200
    for path in ("release-7", "release-1x", "release-1%2f..", "release-1.public"):
        assert reader.get(f"/p/people/explore/{path}").status_code == 404


def test_a_question_that_is_too_large_is_refused(released, monkeypatch):
    monkeypatch.setattr(answers, "_MOST_CELLS", 5)
    opened = answers.open_release(released.place(), "release-1")
    with pytest.raises(answers.TooLargeError, match="too many to show"):
        answers.view(opened, answers.question_of(["age", "sex"], {}, compare=True))


def test_the_commands_that_are_shown_do_the_same(released, reader, tmp_path):
    where = {"sex": ("F",), "ward": ("north", "south")}
    home = released.place().path
    command = answer_command("releases/release-1", ["age"], where)
    page = reader.get(f"{PAGE}?by=age&f.sex=F&f.ward=north&f.ward=south").text
    assert command.replace("'", "&#39;") in page

    told = json.loads(sidelight(*shlex.split(command)[1:], "--json", folder=home).stdout)
    lines = csv.DictReader(
        io.StringIO(reader.get(f"{PAGE}/table.csv?by=age&f.sex=F&f.ward=north&f.ward=south").text)
    )
    assert [one["estimate"] for one in told] == pytest.approx([float(line["estimate"]) for line in lines])

    scope: dict = {}
    source = answer_python("releases/release-1", ["age"], where)
    with contextlib.chdir(home):
        exec(source.replace("release.answer(", "told = release.answer("), scope)
    assert scope["told"]["estimate"].to_pylist() == pytest.approx([one["estimate"] for one in told])
    drawing = sample_command("releases/release-1", where).replace("synthetic.csv", str(tmp_path / "s.csv"))
    assert sidelight(*shlex.split(drawing)[1:], folder=home).returncode == 0


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_synthetic_table_is_drawn_by_a_worker_and_downloaded(released, reader, ending):
    form = {"records": "50", "seed": "7", "format": ending, "f.sex": "F"}
    answer = reader.post(f"{PAGE}/sample", form)
    assert answer.status_code == 303
    job = answer.headers["location"].rpartition("#job-")[2]
    assert reader.get(f"{PAGE}/sample/{job}").status_code == 404
    assert reader.get(f"/p/people/jobs/{job}").json()["status"] == "starting"
    assert released.work() == [0]

    file = reader.get(f"{PAGE}/sample/{job}")

    assert "attachment" in file.headers["content-disposition"]
    release = Release.load(released.place().release("release-1"))
    expected = release.sample(50, where={"sex": ["F"]}, seed=7)
    if ending == "csv":
        lines = list(csv.DictReader(io.StringIO(file.text)))
        assert [line["age"] for line in lines] == [str(age) for age in expected["age"].to_pylist()]
        assert {line["sex"] for line in lines} == {"F"}
    else:
        from pyarrow import parquet

        assert parquet.read_table(io.BytesIO(file.content)).to_pydict() == expected.to_pydict()
    assert "Download 50 records" in reader.get(PAGE).text


@pytest.mark.parametrize("form", [{"records": "0"}, {"records": "x"}, {"seed": "-1"}, {"f.sex": "X"}])
def test_a_sample_that_cannot_be_drawn_is_refused_at_once(released, reader, form):
    assert reader.post(f"{PAGE}/sample", form).status_code == 422
    assert not released.pending


def test_report_card_and_folder_are_to_be_had(released, reader, release):
    report = reader.get(f"{PAGE}/report.html")
    card = json.loads(reader.get(f"{PAGE}/card.json").text)
    archive = zipfile.ZipFile(io.BytesIO(reader.get(f"{PAGE}/release.zip").content))

    assert "How good is it, and for whom?" in report.text
    assert card == json.loads(json.dumps(release.card.as_json(), default=str))
    assert "release-1/release.json" in archive.namelist()
    assert {name.split("/")[0] for name in archive.namelist()} == {"release-1"}


def test_an_edited_release_is_refused_in_words(released, reader, monkeypatch):
    path = released.place().release("release-1") / "release.json"
    kept = path.read_bytes()
    try:
        path.write_bytes(kept.replace(b'"mechanism"', b'"mechanics"'))
        answer = reader.get(PAGE)
        assert answer.status_code == 422
        assert "That cannot be done" in answer.text
    finally:
        path.write_bytes(kept)


def test_what_is_kept_is_bounded_and_made_once():
    made = []
    shelf = Shelf(2)
    for key in ("a", "b", "a", "c", "a", "b"):
        shelf.get(key, lambda key=key: made.append(key))

    assert made == ["a", "b", "c", "b"]


def test_what_cannot_be_made_leaves_nothing_behind():
    shelf = Shelf(2)

    with pytest.raises(ZeroDivisionError):
        shelf.get("a", lambda: 1 // 0)

    assert not shelf._making
    assert shelf.get("a", lambda: 1) == 1
