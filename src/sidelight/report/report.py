"""The report: one HTML file about a release, which opens anywhere and fetches nothing.

A safe report is made from the release alone. With ``against`` it also holds exact counts, and is
then PRIVATE: the page says so in red at its top, and so does the file's name.
"""

import shlex
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

from sidelight._files import named, write_text
from sidelight.data.table import Table
from sidelight.errors import DataError, SettingError
from sidelight.releases.quality import WORDS
from sidelight.releases.release import Release
from sidelight.report import figures, pictures, words
from sidelight.report.exact import compare, with_exact
from sidelight.report.facts import collect, expected_errors
from sidelight.report.pictures import OneWay
from sidelight.report.provenance import provenance, public_part

MOST_BYTES = 2_000_000
"""Largest size of a report."""
_EVENTS, _ROWS, _NAMES = 600, 150, 300
"""Most events, lines of a long table and names in a list that are printed; the rest is counted."""


def write_report(
    release: Release | str | Path, path: str | Path = "report.html", *, against: Any = None
) -> Path:
    """Write the report of a release, given as such or as a folder, and return its path.

    Args:
        release: a release, or a folder that ``Release.save`` wrote.
        path: the file to write.
        against: the private table, of any kind that ``sl.release`` takes. The report then holds
            exact counts: it is PRIVATE, and its name becomes ``report.PRIVATE.html``.
    """
    folder = None if isinstance(release, Release) else Path(release)
    told = release if isinstance(release, Release) else Release.load(release)
    asked = named(path, "the report")
    target = asked if against is None else private_name(asked)
    if against is not None and folder is not None and target.resolve().is_relative_to(folder.resolve()):
        # PRIVACY: a release folder is made to be published, so exact counts must not be put there by default.
        raise SettingError(
            f"a PRIVATE report must not lie in the release folder {folder}, which is there to be published. "
            "Name a file elsewhere (--to)."
        )
    # PRIVACY: exact counts are for the owner of the file alone.
    write_text(target, render(told, against=against), "the report", private=against is not None)
    return target


def private_name(path: Path) -> Path:
    """The file name with PRIVATE in it.

    >>> private_name(Path("out/report.html")).as_posix()
    'out/report.PRIVATE.html'
    """
    if "PRIVATE" in path.suffixes or ".PRIVATE" in path.suffixes:
        return path
    return path.with_name(f"{path.stem}.PRIVATE{path.suffix or '.html'}")


def render(release: Release, *, against: Any = None) -> str:
    """The page as text."""
    facts = collect(release)
    table = None if against is None else _table(against, release)
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
    title = _title(release)
    structure = pictures.structure(release)
    page: str = _template().render(
        title=title,
        release=release,
        attributes=len(release.model.domain),
        card=release.card,
        facts=facts,
        notes=[words.shortened(note, 400) for note in release.card.notes],
        public=public_part(release),
        budget_svg=figures.budget_bar("budget", facts.spendings, facts.unspent),
        structure=structure,
        structure_svg=figures.structure_graph("structure", structure),
        usual_bars=Counter(picture.about for picture in drawn).most_common(1)[0][0] if drawn else "",
        one_way=[(picture, figures.one_way_chart(f"one{i}", picture)) for i, picture in enumerate(drawn)],
        two_way=[(picture, figures.heat_map(f"two{i}", picture)) for i, picture in enumerate(pairs)],
        others=_others(release, drawn),
        errors=expected_errors(release),
        comparison=comparison,
        provenance=provenance(release, title),
        quality_words=WORDS,
        most={"events": _EVENTS, "rows": _ROWS, "names": _NAMES},
    )
    return page


def _title(release: Release) -> str:
    name = release.card.ledger.name
    # A release without a ledger of its own is named after nothing; what it holds says more.
    if name in ("", "this release"):
        return f"A release of {words.counted(len(release.model.domain), 'attribute')}"
    return name


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


def _table(against: Any, release: Release) -> Table:
    if isinstance(against, Table):
        return against
    if release.schema is None:
        raise DataError(
            "this release holds codes and no schema, so a table cannot be read for it; give a Table of codes."
        )
    return Table.read(against, release.schema)


@cache
def _template() -> Any:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("sidelight.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "number": words.number,
        "percent": words.percent,
        "chance": words.chance,
        "tiny": words.tiny,
        "quoted": shlex.quote,
    }
    environment.globals |= {"counted": words.counted, "listed": words.listed}
    return environment.get_template("report.html.j2")
