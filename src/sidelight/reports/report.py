"""The report: one HTML file about a release, which opens anywhere and fetches nothing.

A safe report is made from the release alone. With ``against`` it also holds exact counts, and is
then PRIVATE: the page says so in red at its top, and so does the file's name.
"""

from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

from sidelight._check import brief, count_of
from sidelight._files import named, write_text
from sidelight.data.table import Table
from sidelight.errors import DataError, SettingError
from sidelight.releases.card import NO_LEDGER
from sidelight.releases.compared import Compared, compared
from sidelight.releases.quality import WORDS
from sidelight.releases.release import Release
from sidelight.reports import figures, pictures, words
from sidelight.reports.exact import Gap, compare, with_exact
from sidelight.reports.facts import Expected, Measured, by_attribute, collect, expected_errors
from sidelight.reports.pictures import OneWay
from sidelight.reports.provenance import PublicPart, left_out, provenance, public_part
from sidelight.reports.story import story
from sidelight.reports.templating import environment

MOST_BYTES = 2_000_000
"""Largest size of a report."""
_FIRST, _EVENTS, _ROWS, _NAMES = 12, 600, 150, 300
"""Lines of a long table that are open; most events, lines and names that are printed; the rest is counted."""


def report(
    release: Release | str | Path,
    to: str | Path = "report.html",
    *,
    against: Any = None,
    title: str | None = None,
    overwrite: bool = False,
) -> Path:
    """Write the report of a release, given as such or as a folder, and return its path.

    Args:
        release: a release, or a folder that ``Release.save`` wrote.
        to: the file to write.
        against: the private table, of any kind that ``sl.release`` takes. The report then holds
            exact counts: it is PRIVATE, and its name becomes ``report.PRIVATE.html``.
        title: what the page is called; by default what the ledger calls the table.
        overwrite: whether a file that is there already, an earlier report included, is replaced.
    """
    folder = None if isinstance(release, Release) else Path(release)
    told = release if isinstance(release, Release) else Release.load(release)
    target = target_of(to, is_private=against is not None)
    if against is not None and folder is not None and target.resolve().is_relative_to(folder.resolve()):
        # PRIVACY: a release folder is made to be published, so exact counts must not be put there by default.
        raise SettingError(
            f"a PRIVATE report must not lie in the release folder {folder}, which is there to be published. "
            "Name a file elsewhere (--to)."
        )
    if target.is_file() and not overwrite:
        raise SettingError(
            f"{target} exists already. Name a new file, or say overwrite=True to replace it. Nothing was "
            "written."
        )
    # PRIVACY: exact counts are for the owner of the file alone.
    write_text(target, render(told, against=against, title=title), "the report", private=against is not None)
    return target


def target_of(to: str | Path, *, is_private: bool) -> Path:
    """The file that a report is written to: the one asked for, or beside it one with PRIVATE in its name."""
    asked = named(to, "the report")
    if asked.suffix.lower() not in (".html", ".htm", ""):
        raise SettingError(f"a report is an HTML file, and must end in .html; got {brief(str(to))}.")
    return private_name(asked) if is_private else asked


def private_name(path: Path) -> Path:
    """The file name with PRIVATE in it.

    >>> private_name(Path("out/report.html")).as_posix()
    'out/report.PRIVATE.html'
    """
    if ".PRIVATE" in path.suffixes:
        return path
    return path.with_name(f"{path.stem}.PRIVATE{path.suffix or '.html'}")


def render(release: Release, *, against: Any = None, title: str | None = None) -> str:
    """The page as text."""
    facts = collect(release)
    beside = None if against is None else _beside(against, release)
    table = None if beside is None else beside.table
    drawn = [pictures.one_way(release, attr) for attr in pictures.attributes_drawn(release)]
    pairs = pictures.two_way(release)
    comparison = None
    if table is not None:
        wanted = [
            *((attr,) for attr in release.model.domain.attrs),
            *((p.down.attr, p.across.attr) for p in pairs),
        ]
        comparison = compare(release, table, wanted)
        drawn = [with_exact(picture, table) for picture in drawn]
    title = _title(release) if title is None or not title.strip() else words.shortened(title.strip(), 160)
    errors = expected_errors(release)
    structure, public = pictures.structure(release), public_part(release)
    page: str = _template().render(
        title=title,
        release=release,
        attributes=len(release.model.domain),
        card=release.card,
        facts=facts,
        notes=[words.shortened(note, 400) for note in release.card.notes],
        public=public,
        budget_svg=figures.budget_bar("budget", facts.spendings, facts.unspent),
        structure=structure,
        structure_svg=figures.structure_graph("structure", structure),
        usual_bars=Counter(picture.about for picture in drawn).most_common(1)[0][0] if drawn else "",
        one_way=[(picture, figures.one_way_chart(f"one{i}", picture)) for i, picture in enumerate(drawn)],
        two_way=[(picture, figures.heat_map(f"two{i}", picture)) for i, picture in enumerate(pairs)],
        others=_others(release, drawn),
        errors=errors,
        error_rows=[_error_row(one) for one in errors.known],
        measured_rows=[_measured_row(one) for one in facts.measured],
        gap_rows=[_gap_row(gap) for gap in comparison.gaps] if comparison else [],
        difference_rows=_difference_rows(public),
        by_attribute=by_attribute(release.quality),
        left_out=left_out(release.card),
        has_ledger=release.card.ledger.name != NO_LEDGER,
        story_svg=story("story", history) if len(history := release.card.ledger.history) > 1 else "",
        comparison=comparison,
        comparison_remark="" if beside is None else beside.remark,
        provenance=provenance(release, title),
        quality_words=WORDS,
        most={"first": _FIRST, "events": _EVENTS, "rows": _ROWS, "names": _NAMES},
    )
    return page


def _title(release: Release) -> str:
    name = release.card.ledger.name
    # A release without a ledger of its own is named after nothing; what it holds says more.
    if name in ("", NO_LEDGER):
        return f"A release of {count_of(len(release.model.domain), 'attribute')}"
    return name


Row = list[str]
"""One line of a table, the first column its head."""


def _error_row(one: Expected) -> Row:
    return [
        one.name if one.is_measured else f"{one.name} (not measured)",
        f"{one.cells:,}",
        "unknown" if one.stddev is None else words.number(one.stddev),
        "unknown" if one.model_error is None else words.number(one.model_error),
        words.percent(one.error),
        "none" if one.large is None else " to ".join(map(words.number, one.large)),
    ]


def _measured_row(one: Measured) -> Row:
    least, largest = words.number(one.stddev), words.number(one.largest_stddev)
    return [
        one.name if one.kind == "counts" else f"{one.name} ({one.kind})",
        f"{one.numbers:,}",
        least if least == largest else f"{least} to {largest}",
        f"{one.misfit:.2f}",
    ]


def _gap_row(gap: Gap) -> Row:
    inside = "no interval" if gap.inside is None else words.percent(gap.inside)
    return [gap.name, f"{gap.cells:,}", words.percent(gap.l1), inside, gap.worst or "none is so large"]


def _difference_rows(part: PublicPart | None) -> list[Row]:
    found = () if part is None else part.disagreements
    return [[one.name, one.error, *([] if one.numbers is None else [f"{one.numbers:,}"])] for one in found]


def _others(release: Release, drawn: list[OneWay]) -> list[tuple[str, int, str, float]]:
    """Attributes without a picture: values, the most frequent one, and its share."""
    pictured = {picture.values.attr for picture in drawn}
    summaries = []
    for attr in release.model.domain.attrs:
        if attr not in pictured:
            values = pictures.values_of(release, attr, most=release.model.domain.sizes[attr])
            counts = release.count(attr)
            first = int(counts.argmax())
            share = float(counts[first]) / (float(counts.sum()) or 1.0)
            summaries.append(
                (words.shortened(attr, 80), values.size, words.shortened(values.labels[first], 40), share)
            )
    return summaries


def _beside(against: Any, release: Release) -> Compared:
    if release.schema is None and not isinstance(against, Table):
        raise DataError(
            "this release holds codes and no schema, so a table cannot be read for it; give a Table of codes."
        )
    return compared(against, release)


@cache
def _template() -> Any:
    return environment("sidelight.reports").get_template("report.html.j2")
