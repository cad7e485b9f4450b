"""The answers of a release, as its page shows them: counts with intervals, drawn and as a table.

Everything here is computed from released outputs, and costs nothing. Releases and answers are kept for
whoever asks next: many readers ask the same.
"""

import contextlib
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import numpy as np
from markupsafe import Markup

from sidelight._check import listed
from sidelight.data.domain import Domain
from sidelight.errors import SettingError, SidelightError, TooLargeError
from sidelight.models.model import Model
from sidelight.models.support import Support
from sidelight.releases.release import Release
from sidelight.reports import figures, pictures
from sidelight.reports.words import joined, number, percent
from sidelight.studio.places import Place, Studio
from sidelight.studio.shelf import Shelf
from sidelight.studio.visit import templates

MOST_ATTRS, MOST_ROWS = 3, 200
_MOST_CELLS = 250_000
"""Cells of the table that an answer is summed from; larger ones take seconds."""
_TICKED = 24
"""Columns with more labels than this are filtered by typing."""

Where = Mapping[str, tuple[str, ...]]


@dataclass(frozen=True)
class Opened:
    """A release that is being read, with what its answers need."""

    release: Release
    public: Model | None
    lock: threading.Lock

    @property
    def domain(self) -> Domain:
        """Its attributes."""
        return self.release.model.domain

    def labels(self, attr: str) -> tuple[str, ...]:
        """The labels of an attribute."""
        if self.release.schema is None:
            return tuple(map(str, range(self.domain.sizes[attr])))
        return tuple(str(label) for label in self.release.schema.column(attr).code_labels())

    def is_ticked(self, attr: str) -> bool:
        """Whether an attribute is filtered by ticking labels, rather than by typing."""
        return len(self.labels(attr)) <= _TICKED


@dataclass(frozen=True, kw_only=True)
class View:
    """One answer, drawn and as a table."""

    title: str
    charts: tuple[tuple[str, str], ...]
    """Titles and pictures."""
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    """Labels, then estimate, low, high, share, and the public count or None."""
    left_out: int
    """How many lines the table on the page lacks."""
    total: float
    words: str
    """The errors that the intervals include."""
    is_filtered: bool
    is_compared: bool

    @property
    def lines(self) -> Markup:
        """The lines of the table. A page may have hundreds, so they are not left to a template."""
        size, made = len(self.columns), []
        for row in self.rows:
            first, *more = (escape(str(label)) for label in row[:size])
            estimate, low, high, share, public = row[size:]
            within = "unknown" if low is None else f"{number(low)} – {number(high)}"
            numbers = [number(estimate), within, percent(share)]
            if self.is_compared:
                numbers.append("–" if public is None else number(public))
            cells = [f"<td>{label}</td>" for label in more] + [f'<td class="r">{one}</td>' for one in numbers]
            made.append(f'<tr><th scope="row">{first}</th>{"".join(cells)}</tr>')
        return Markup("\n".join(made))


@dataclass(frozen=True, kw_only=True)
class Question:
    """A question to a release."""

    attrs: tuple[str, ...]
    where: tuple[tuple[str, tuple[str, ...]], ...] = ()
    compare: bool = False

    @property
    def query(self) -> str:
        """The question as the end of an address."""
        filters = [(f"f.{attr}", value) for attr, values in self.where for value in values]
        return urlencode([*(("by", attr) for attr in self.attrs), *filters])

    @property
    def condition(self) -> dict[str, list[str]]:
        """The filters, as ``Release.answer`` takes them."""
        return {attr: list(values) for attr, values in self.where}


_releases: Shelf[Opened] = Shelf(3)
_answers: Shelf[Markup] = Shelf(400)


def open_release(place: Place, name: str) -> Opened:
    """A release of a project, loaded once."""
    folder = place.release(name)

    def opened() -> Opened:
        release = replace(Release.load(folder), kind="pyarrow")
        path = folder.with_name(f"{name}.public.parquet")
        public = _public(path, release.model.domain) if path.is_file() else None
        _give_back()
        return Opened(release, public, threading.Lock())

    return _releases.get(_version(folder), opened)


def open_latest(studio: Studio) -> None:
    """Load the release that was made last, so that its first reader does not wait for it."""
    made = [(place, name) for place in studio.places() for name in place.releases()[:1]]
    if made:
        place, name = max(made, key=lambda one: one[0].release(one[1]).stat().st_mtime)
        with contextlib.suppress(SidelightError, OSError):  # whoever asks for it is told what is wrong
            open_release(place, name)


def _version(folder: Path) -> tuple[str, int]:
    """A release's folder as it is now: one that was written anew has another version."""
    return str(folder), (folder / "release.json").stat().st_mtime_ns


def _give_back() -> None:
    """Return what Arrow took for reading files, and keeps for the next one."""
    import pyarrow as pa

    pa.default_memory_pool().release_unused()


def answer(place: Place, name: str, asked: Question) -> Markup:
    """The answer to a question, as the page shows it."""
    opened = open_release(place, name)

    def made() -> Markup:
        file = f"/p/{place.slug}/explore/{name}/table.csv?{asked.query}"
        return Markup(templates().get_template("answer.html.j2").render(view=view(opened, asked), file=file))

    return _answers.get((*_version(place.release(name)), asked), made)


def view(opened: Opened, asked: Question) -> View:
    """The answer to a question, in numbers and pictures."""
    # Models keep what they have computed, and are not made for two threads at once.
    with opened.lock:
        return _view(opened, asked)


def _view(opened: Opened, asked: Question) -> View:
    release, where = opened.release, asked.condition
    require_small(opened, asked)
    public = opened.public if asked.compare else None
    counted = pictures.Conditioned.of(release, asked.attrs, where or None)
    frame = release.answer(asked.attrs, where=where or None)
    estimates = frame["estimate"].to_numpy()
    total = float(estimates.sum())
    beside = None if public is None else counted.public(public).reshape(-1)
    rows = [
        (*labels, estimate, low, high, estimate / total if total else 0.0, other)
        for labels, estimate, low, high, other in zip(
            zip(*(frame[attr].to_pylist() for attr in asked.attrs), strict=True),
            estimates.tolist(),
            frame["low"].to_pylist(),
            frame["high"].to_pylist(),
            [None] * len(estimates) if beside is None else beside.tolist(),
            strict=True,
        )
    ]
    shown = rows
    if len(asked.attrs) > 1 and len(rows) > MOST_ROWS:
        shown = sorted(rows, key=lambda row: -row[len(asked.attrs)])
    return View(
        title=joined(asked.attrs),
        charts=tuple(_charts(release, asked, public)),
        columns=asked.attrs,
        rows=tuple(shown[:MOST_ROWS]),
        left_out=max(0, len(rows) - MOST_ROWS),
        total=total,
        words=counted.bars.words,
        is_filtered=bool(asked.where),
        is_compared=public is not None,
    )


def _charts(release: Release, asked: Question, public: Model | None) -> list[tuple[str, str]]:
    where = asked.condition or None
    if len(asked.attrs) == 1:
        drawn = pictures.one_way(release, asked.attrs[0], where, public=public)
        return [("", figures.one_way_chart("answer", drawn))]
    if len(asked.attrs) == 2:
        found = [("Released", figures.heat_map("answer", pictures.pair(release, asked.attrs, where)))]
        if public is not None:
            beside = pictures.pair(release, asked.attrs, where, public=public)
            found.append(("Public data, scaled", figures.heat_map("public", beside)))
        return found
    return []


def require_small(opened: Opened, asked: Question) -> None:
    """Refuse a question about columns that are not there, or about too many cells."""
    known = opened.domain.attrs
    unknown = [attr for attr in (*asked.attrs, *dict(asked.where)) if attr not in known]
    if unknown:
        raise SettingError(f"the release has no column {unknown[0]!r}; it has {listed(known)}.")
    joint = tuple(dict.fromkeys((*asked.attrs, *dict(asked.where))))
    if opened.domain.size(joint) > _MOST_CELLS:
        raise TooLargeError(
            f"{' × '.join(joint)} has {opened.domain.size(joint):,} cells, too many to show. Ask for fewer "
            "columns, or filter by fewer."
        )


def _public(path: Path, domain: Domain) -> Model | None:
    """The public records that a worker kept beside a release."""
    from pyarrow import parquet

    with path.open("rb") as file:
        table = parquet.ParquetFile(file, pre_buffer=False).read(use_threads=False)  # as ``plain_folder.py``
    if table.num_columns != len(domain) + 1:
        return None
    codes = np.stack([table[f"c{place}"].to_numpy() for place in range(len(domain))], axis=1)
    weights = np.asarray(table["weight"].to_numpy(), dtype=np.float64)
    return Support(domain, codes, weights, float(weights.sum()))


def question_of(attrs: Sequence[str], where: Where, *, compare: bool) -> Question:
    """A question; columns that are named twice count once."""
    asked = tuple(dict.fromkeys(attr for attr in attrs if attr))[:MOST_ATTRS]
    filters = tuple((attr, tuple(values)) for attr, values in sorted(where.items()) if values)
    return Question(attrs=asked, where=filters, compare=compare)
