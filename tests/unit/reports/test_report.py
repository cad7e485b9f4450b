"""The page: what it says, what it must never say, and how large it may be."""

import html
import itertools
import json
import re
from dataclasses import replace
from fractions import Fraction
from html.parser import HTMLParser

import numpy as np
import pytest

import cards
from sidelight.data.table import Table
from sidelight.errors import DataError, InputError, ReleaseError, SettingError
from sidelight.mechanisms.paper import Paper
from sidelight.mechanisms.told import Opening
from sidelight.privacy.budget import Budget
from sidelight.privacy.promise import Promise
from sidelight.privacy.sql_ledger import SqlLedger
from sidelight.privacy.unit import Unit
from sidelight.releases.card import LedgerEntry, PublicData
from sidelight.releases.run import release
from sidelight.reports.report import MOST_BYTES, render, report
from sidelight.testing import SeededNoise
from sidelight.uncertainty.disagreement import Disagreement

HOSTILE = '<script>alert("x")</script>'


class Page(HTMLParser):
    """What a browser would find: tags with their attributes, ids, text, and whether all tags close."""

    VOID = frozenset({"meta", "link", "br", "rect", "path", "line", "circle"})

    def __init__(self, text):
        super().__init__()
        self.tags, self.open, self.text = [], [], ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open[-1:] != ["style"]:
            self.text += data

    def all(self, tag):
        return [attrs for name, attrs in self.tags if name == tag]


@pytest.fixture(scope="module")
def text(released):
    return render(released)


@pytest.fixture(scope="module")
def page(text):
    return Page(text)


def test_the_page_is_well_formed_and_its_ids_are_unique(page):
    ids = [attrs["id"] for _, attrs in page.tags if "id" in attrs]

    assert page.open == []
    assert len(ids) == len(set(ids))


def test_the_page_reaches_for_nothing_outside_itself(text, page):
    assert not re.search(r"https?:|//[a-z]|url\(|@import|@font-face", text, flags=re.IGNORECASE)
    assert not page.all("script")
    assert {attrs["href"] for attrs in page.all("link")} == {"data:,"}
    assert all(attrs["href"].startswith("#") for attrs in page.all("a"))
    (policy,) = (attrs for attrs in page.all("meta") if attrs.get("http-equiv") == "Content-Security-Policy")
    assert policy["content"].startswith("default-src 'none'")


def test_labels_and_names_are_shown_as_text_and_never_as_markup(text, page):
    assert HOSTILE not in text
    assert "<b>" not in text
    assert HOSTILE in page.text
    assert "<b>色</b>" in page.text
    for label in ("красный", "أخضر", "&amp;"):
        assert label in page.text


def test_hostile_words_on_the_card_are_escaped_too(released):
    card = replace(
        released.card,
        ledger=LedgerEntry(name=HOSTILE, run=HOSTILE, head=HOSTILE),
        notes=(HOSTILE,),
        public=PublicData(
            records=10, disagreements=(Disagreement(attrs=(HOSTILE,), numbers=1, difference=0.5),)
        ),
        papers=(Paper(authors=(HOSTILE,), title=HOSTILE, year=2026, venue=HOSTILE, arxiv=HOSTILE),),
        settings={HOSTILE: HOSTILE},
        versions={HOSTILE: HOSTILE},
        mechanism=HOSTILE,
        noise=HOSTILE,
        schema_fingerprint=HOSTILE,
    )

    page = render(replace(released, card=card))

    assert HOSTILE not in page
    assert not Page(page).all("script")


def test_every_chart_can_be_read_aloud(page):
    charts = page.all("svg")
    named = {attrs["id"] for tag, attrs in page.tags if tag in {"title", "desc"} and "id" in attrs}

    assert len(charts) >= 1 + 4 + 1 + 1  # budget, attributes, at least one pair, structure
    for chart in charts:
        assert chart["role"] == "img"
        assert set(chart["aria-labelledby"].split()) <= named


def test_every_table_head_says_what_it_heads_and_headings_do_not_skip_a_level(page):
    assert all(attrs.get("scope") in {"row", "col"} for attrs in page.all("th"))
    levels = [int(tag[1]) for tag, _ in page.tags if re.fullmatch(r"h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))


def test_what_the_page_says_was_spent_is_what_the_card_and_the_events_say(released, page):
    spent = sum((event.cost.value for event in released.events), start=Fraction(0))
    words = " ".join(page.text.split())

    assert spent == released.card.spent
    assert (
        f"{len(released.events)} events spent ρ = {float(spent):.5g} in all".replace(" = ", "\xa0=\xa0")
        in page.text
    )
    assert f"{released.card.epsilon_spent:.4g}" in words
    assert released.card.meaning in words
    assert "finds at most 8.4%" in released.card.meaning  # for ε = 1 at δ = 10⁻⁶
    for event in released.events:
        assert event.what in page.text


def test_the_counts_on_the_page_are_the_released_ones(released, page):
    words = " ".join(page.text.split())

    for count in released.count("sex"):
        assert f"{count:,.0f}" in words
    assert released.card.schema_fingerprint in words
    assert released.card.ledger.head in words


def test_seeded_noise_makes_the_page_say_not_private(released):
    private = replace(released, card=replace(released.card, noise_is_private=True))

    assert "NOT PRIVATE" in Page(render(released)).text
    assert "NOT PRIVATE" not in Page(render(private)).text.replace("seeded noise: NOT PRIVATE", "")


def test_a_safe_report_never_counts_a_table(released, monkeypatch, tmp_path):
    def refuse(*_args, **_settings):
        raise AssertionError("a safe report touched a table")

    for name in ("count", "count_many", "read", "codes"):
        monkeypatch.setattr(Table, name, refuse, raising=False)

    written = report(released, tmp_path / "report.html")

    assert written.stat().st_size > 10_000
    assert "PRIVATE" not in written.name


def test_with_the_private_table_the_page_and_its_name_say_private(released, people, tmp_path):
    _, table = people

    written = report(released, tmp_path / "report.html", against=table)
    text = written.read_text(encoding="utf-8")

    assert written.name == "report.PRIVATE.html"
    assert not (tmp_path / "report.html").exists()
    assert text.index("<strong>PRIVATE</strong>") < text.index("<h1>")
    assert re.search(r"\.alarm \{ background: var\(--alarm\)", text)
    gap = np.abs(table.count(("sex",)) - released.count("sex")).sum() / 900
    assert f"{gap * 100:.1f}" in text


def test_a_file_is_replaced_only_where_that_is_meant(released, people, tmp_path):
    mine = tmp_path / "report.html"
    mine.write_text("my notes")

    with pytest.raises(SettingError, match=r"exists already.*overwrite=True"):
        report(released, mine)
    assert mine.read_text() == "my notes"
    report(released, mine, against=people[1])  # another file: its name says PRIVATE
    with pytest.raises(SettingError, match=r"report\.PRIVATE\.html exists already"):
        report(released, mine, against=people[1])

    assert report(released, mine, overwrite=True).read_text(encoding="utf-8").startswith("<!doctype html>")


def test_a_private_report_does_not_go_into_the_folder_that_will_be_published(released, people, tmp_path):
    released.save(tmp_path / "out")

    with pytest.raises(SettingError, match="must not lie in the release folder"):
        report(tmp_path / "out", tmp_path / "out" / "report.html", against=people[1])

    assert not list((tmp_path / "out").glob("*.html"))


def test_a_table_with_other_attributes_is_refused(released, toy):
    with pytest.raises(DataError, match="other attributes"):
        render(released, against=toy.table)


def test_a_release_without_ledger_or_schema_still_has_a_report(toy):
    from sidelight.mechanisms.mwem import MWEM

    curator, _ = toy.curator()
    bare = cards.released(MWEM(rounds=2).run(curator, toy.workload))

    assert "A release of 3 attributes" in Page(render(bare)).text


def test_a_folder_gives_the_same_page_as_the_release_it_holds(released, tmp_path):
    released.save(tmp_path / "out")

    written = report(tmp_path / "out", tmp_path / "report.html")

    assert written.read_text(encoding="utf-8") == render(released)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"spent": "1/7"}, "events do not add up to what it says was spent"),
        ({"events": []}, "events do not add up to what it says was spent"),
        ({"epsilon": "lots"}, "card.epsilon must be a finite number; got 'lots'"),
        ({"epsilon": -1}, "card cannot be: epsilon must be"),
        ({"delta": 0}, "δ = 0 cannot be kept"),
        ({"unit": {"relation": "sometimes", "records": 1}}, "card.unit.relation must be 'replace' or"),
        ({"unit": None}, "card.unit must be an object; got None"),
        ({"flavour": 1}, "card holds 'flavour', which this sidelight does not know"),
        ({"quality": 1}, "card.quality must be an object"),
        ({"version": 3}, "version 3; this sidelight reads versions up to 2. Update sidelight"),
    ],
)
def test_a_card_that_was_edited_by_hand_is_refused(released, tmp_path, change, told):
    released.save(tmp_path / "out")
    about = json.loads((tmp_path / "out" / "release.json").read_text(encoding="utf-8"))
    about["card"] |= change
    (tmp_path / "out" / "release.json").write_text(json.dumps(about), encoding="utf-8")

    with pytest.raises(ReleaseError, match=told):
        report(tmp_path / "out", tmp_path / "report.html")

    assert not (tmp_path / "report.html").exists()


def test_an_incomplete_folder_is_refused(tmp_path):
    (tmp_path / "out").mkdir()

    with pytest.raises(ReleaseError, match="not a release"):
        report(tmp_path / "out", tmp_path / "report.html")


def test_a_place_that_cannot_be_written_is_named_and_nothing_is_left_behind(released, tmp_path):
    (tmp_path / "taken").mkdir()
    (tmp_path / "file").write_text("")

    with pytest.raises(InputError, match=r"could not be written to .*taken"):
        report(released, tmp_path / "taken")
    with pytest.raises(InputError, match=r"could not be written to .*file"):
        report(released, tmp_path / "file" / "report.html")

    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "taken"]


@pytest.mark.parametrize("letters", [0, 300], ids=["short names", "long names"])
@pytest.mark.parametrize(("attributes", "measured"), [(15, 30), (100, 100), (200, 300)])
def test_wide_tables_stay_below_two_megabytes(wide, attributes, measured, letters):
    text = render(wide(attributes, values=40, measured=measured, letters=letters))

    assert len(text.encode()) < MOST_BYTES
    assert f"{attributes} attributes" in text
    if attributes > 24:
        assert f"{attributes - 24} more attributes" in text


def test_many_events_are_counted_where_they_are_not_listed(wide):
    text = render(wide(30, values=3, measured=400))

    assert "All 800 events" in text
    assert "the first 600, the rest is in release.json" in text


def test_a_notebook_shows_a_release_with_its_words_escaped(released):
    shown = released._repr_html_()

    assert "NOT PRIVATE" in shown
    assert f"ε = {released.card.epsilon_spent:.4g} of 1" in shown
    assert "&lt;b&gt;色&lt;/b&gt;" in shown
    assert "<b>色" not in shown


def test_the_answer_comes_first_then_the_promise_then_the_spending(released):
    page = render(released)

    places = [
        page.index(f'id="{name}"') for name in ("quality", "promise", "spent", "one", "error", "measured")
    ]
    assert places == sorted(places)
    assert html.escape(released.quality.sentence) in page
    for attr in released.quality.attributes:
        assert html.escape(attr) in page[places[0] : places[1]]


@pytest.mark.parametrize(
    ("unit", "said"),
    [
        (Unit("replace", person="patient_id"), "your record says so"),
        (Unit("add-or-remove", person="patient_id"), "you are in the table"),
    ],
)
def test_the_page_does_not_promise_more_than_the_unit(released, unit, said):
    page = render(replace(released, card=replace(released.card, unit=unit)))

    assert f"“{said}”" in page
    assert ("if I had not been in the table at all" in page) == unit.hides_presence


def test_spending_is_told_as_the_ledgers_total(people, tmp_path):
    schema, table = people
    book = SqlLedger.create(
        tmp_path / "p.ledger", Promise(Budget(epsilon=3, delta=1e-6), Unit("replace"), "p")
    )
    for _ in range(2):
        made = release(
            table, schema=schema, epsilon=1.0, workload="1-way", mechanism="mwem", rounds=2, ledger=book,
            noise=SeededNoise(5), progress=False,
        )  # fmt: skip

    page = render(made)

    assert made.card.ledger.promised == 3
    assert 1.3 < made.card.ledger.used <= 2
    assert f"{made.card.ledger.used:.4g}" in page
    assert "of 3 promised by its ledger" in page
    assert "no ledger" not in page


def test_without_a_ledger_nobody_counts_and_the_page_says_so(released):
    assert "no ledger: nobody adds this release to others" in render(released)


def test_a_title_of_ones_own_is_text(released):
    page = render(released, title="  Ours <b>2026</b> ")

    assert "<h1>Ours &lt;b&gt;2026&lt;/b&gt;</h1>" in page


def test_nothing_scrolls_inside_the_page_and_long_tables_fold(released):
    page = render(released)

    assert "overflow-x: auto" not in page
    assert "overflow: auto" not in page
    assert 'class="stack"' in page


def test_a_release_without_quality_says_that_nobody_measured_it(released):
    page = render(replace(released, card=replace(released.card, quality=None, calibration=None)))

    assert "Nobody measured how far off this release is" in page


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ({"cut": ("sex",)}, "how sex goes together with other attributes."),
        ({"cut": ("sex", "age")}, "how sex, age go together with other attributes."),
        ({"cut": ("sex", "age"), "public_records": 0.0}, "Public data were left out"),
        ({"is_bare": True}, "single attributes alone were used"),
        ({}, None),
    ],
)
def test_what_was_cut_off_from_public_data_is_named(released, told, said):
    opening = Opening(
        rounds=1, asked_again=(), public_marginals=(), marginals=(), particle_share=0.0,
        **{"public_records": 7.0} | told,
    )  # fmt: skip
    page = render(replace(released, card=replace(released.card, aperture=opening)))

    every = ("Public data were left out", "Cut off from the public data", "single attributes alone were used")
    assert any(one in page for one in every) == (said is not None)
    assert said is None or said in page


def test_noise_that_is_left_in_an_estimate_is_not_called_the_noise_of_an_answer(released):
    text = render(released)

    assert "Noise left in the estimate: σ&nbsp;=" in text
    assert "Noise σ" not in text
    assert "<dt>Noise on a number</dt>" in text
