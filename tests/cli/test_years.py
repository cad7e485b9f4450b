"""Releases that go on for years, as a person would make them: reuse, the next period, the story."""

import json
from xml.etree import ElementTree

import numpy as np
import pytest

from commands import sidelight

COLUMN = '[columns.{}]\nkind = "integer"\nlow = 0\nhigh = {}\n'


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two periods, each with its table and its ledger; the first has made two releases, the second reused."""
    folder = tmp_path_factory.mktemp("years")
    (folder / "people.toml").write_text(COLUMN.format("age", 3) + COLUMN.format("sex", 1))
    rng = np.random.default_rng(1)
    stay = rng.integers(0, [4, 2], size=(1500, 2))
    for year in (2025, 2026):
        rows = np.concatenate([stay, rng.integers(0, [4, 2], size=(500, 2))])
        (folder / f"{year}.csv").write_text("age,sex\n" + "".join(f"{a},{s}\n" for a, s in rows))
        said("ledger", "open", f"{year}.ledger", "--epsilon", 2, "--delta", 1e-9, folder=folder)
    release(folder, 2025, "first")
    release(folder, 2025, "second", "--reuse", "first")
    return folder


def said(*args, folder):
    done = sidelight(*args, folder=folder)
    assert done.returncode == 0, done.said
    return done.said


def release(folder, year, out, *more):
    return said(
        "release", f"{year}.csv", "--schema", "people.toml", "--ledger", f"{year}.ledger", "--epsilon", 0.5,
        "--workload", "2-way", "--mechanism", "hdmm", "--out", out, *more, folder=folder,
    )  # fmt: skip


def test_the_ledger_and_the_report_tell_the_story_with_a_picture(folder):
    shown = said("ledger", "show", "2025.ledger", "--svg", "story.svg", folder=folder)
    said("report", "second", "--to", "second.html", folder=folder)

    bars = [line for line in shown.splitlines() if "█" in line]
    assert len(bars) == 2
    assert all(line.endswith("hdmm, 1 query") for line in bars)
    picture = ElementTree.fromstring((folder / "story.svg").read_text())
    texts = [text.text for text in picture.iter("{http://www.w3.org/2000/svg}text")]
    assert texts.count("hdmm") == 2
    page = (folder / "second.html").read_text()
    assert "All releases and answers of this table, over time" in page
    assert "were used again: they are about the same records" in page


def test_nothing_is_drawn_of_a_ledger_that_spent_nothing(folder):
    said("ledger", "open", "new.ledger", "--epsilon", 2, "--delta", 1e-9, folder=folder)

    done = sidelight("ledger", "show", "new.ledger", "--svg", "new.svg", folder=folder)

    assert done.returncode == 2
    assert "nothing was spent yet" in done.stderr
    assert not (folder / "new.svg").exists()


def test_an_earlier_release_is_screened_and_serves_as_public_data_for_the_next_period(folder):
    asked = ["2026.csv", "--schema", "people.toml", "--workload", "2-way", "--ledger", "2026.ledger"]
    screened = said("screen", *asked, "--public", "first", "--epsilon", 0.2, "--json", folder=folder)
    (found,) = json.loads(screened)

    assert found["best_mixture_error"] < 0.1  # of the same kind of people
    # The reuse of answers about another period's records is refused; as public data they help.
    refused = sidelight(
        "release", *asked, "--epsilon", 0.5, "--mechanism", "hdmm", "--out", "no", "--reuse", "first",
        folder=folder,
    )  # fmt: skip
    assert refused.returncode == 2
    assert "this ledger did not pay for it" in refused.stderr
    said(
        "release", *asked, "--epsilon", 0.5, "--mechanism", "aperture", "--public", "first",
        "--out", "third", "--quiet", folder=folder,
    )  # fmt: skip


def test_what_people_lose_who_stay_is_told_for_both_periods_together(folder):
    told = json.loads(said("ledger", "together", "2025.ledger", "2026.ledger", "--json", folder=folder))
    sentence = said("ledger", "together", "2025.ledger", "2026.ledger", folder=folder)

    assert told["names"] == ["2025", "2026"]
    assert f"has lost ε = {told['spent']:.4g} at δ = 1e-09 so far" in sentence
