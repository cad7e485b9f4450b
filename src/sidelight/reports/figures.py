"""Charts as inline SVG: no script, no network, colours from the page's own style sheet.

Every chart has ``role="img"``, a title and a description in words, so that it can be read aloud.
Text that people wrote (names, labels) is escaped here, and only here.
"""

from collections.abc import Sequence
from html import escape

import numpy as np

from sidelight._check import count_of, listed
from sidelight.models.model import Array
from sidelight.reports import svg
from sidelight.reports.facts import STEPS, Spending
from sidelight.reports.layout import force_layout
from sidelight.reports.pictures import OneWay, Structure, TwoWay
from sidelight.reports.words import joined, number, shortened, width

_WIDTH = 330
_SHADES = 12
_SEEN = 0.012
"""Least share of the budget bar that is seen on a telephone, between its neighbours' edges."""
_LONGEST = 24
"""Columns that a bar's count and interval may take; longer ones would leave no room for the bars."""


def budget_bar(key: str, spendings: Sequence[Spending], unspent: float) -> str:
    """A bar with one segment for each event, in order, or for each step; the unspent part comes last."""
    parts = [*_in_order(spendings), *([("unspent", unspent)] if unspent > 0.0005 else [])]
    # A part that would not be seen is drawn wider than it is; the legend has the numbers.
    wide = [max(share, _SEEN) for _, share in parts]
    segments, at = [], 0.0
    for (step, _), share in zip(parts, wide, strict=True):
        segments.append(svg.bar(1000 * at, 0, 1000 * share / sum(wide), 36, step))
        at += share / sum(wide)
    shares = {step: sum(s.share for s in spendings if s.step == step) for step in STEPS}
    words = ", ".join(f"{share:.1%} to {step}" for step, share in shares.items() if share)
    description = f"{count_of(len(spendings), 'event')}: {words or 'nothing spent'}; {unspent:.1%} not spent."
    return svg.drawing(key, "Where the budget went", description, 1000, 36, segments, stretch=True)


def one_way_chart(key: str, drawn: OneWay) -> str:
    """Labelled bars; or narrow columns, if there are more than fourteen values."""
    description = _told(drawn)
    title = f"Released counts of {drawn.values.attr}"
    top = float(max(_highest(drawn), 1e-9))
    if len(drawn.values.labels) <= 14:
        return svg.drawing(key, title, description, _WIDTH, 24 * len(drawn.counts) + 8, _bars(drawn, top))
    return svg.drawing(key, title, description, _WIDTH, 186, _columns(drawn, top))


def heat_map(key: str, drawn: TwoWay) -> str:
    """A pair's counts as shades, with numbers inside where they fit."""
    left, above = 110, 8
    rows, columns = drawn.counts.shape
    wide = (_WIDTH - left - 2) / columns
    high = 26.0 if rows <= 10 else 20.0
    # "Others" are many labels at once: they do not set the scale, and get the darkest shade beyond it.
    single = drawn.counts[: drawn.down.rest, : drawn.across.rest]
    top = float(max(single.max(), 1e-9))
    shades = np.clip(np.ceil(drawn.counts / top * _SHADES), 0, _SHADES).astype(int)
    parts = [
        f'<path class="ground" d="M{left} {above}h{svg.at(wide * columns)}v{svg.at(high * rows)}H{left}z"/>'
    ]
    cell = f"h{svg.at(wide - 1)}v{svg.at(high - 1)}h-{svg.at(wide - 1)}z"
    for shade in range(1, _SHADES + 1):
        # One path a shade keeps the page small; the gap between cells is drawn, not implied.
        at = np.argwhere(shades == shade)
        path = "".join(
            f"M{svg.at(left + x * wide + 0.5)} {svg.at(above + y * high + 0.5)}{cell}" for y, x in at.tolist()
        )
        if path:
            parts.append(f'<path class="heat" fill-opacity="{shade / _SHADES:.2f}" d="{path}"/>')
    if wide >= 34:
        for (y, x), count in np.ndenumerate(drawn.counts):
            on = " on" if shades[y, x] > 0.8 * _SHADES else ""
            parts.append(
                svg.label(left + (x + 0.5) * wide, above + (y + 0.5) * high + 4, _brief(count), f"mid{on}")
            )
    for y, label in enumerate(drawn.down.labels):
        parts.append(svg.label(left - 6, above + (y + 0.5) * high + 4, shortened(label, 17), "end"))
    below, tall = _names_below(drawn.across.labels, left, above + rows * high, wide)
    title = f"Released counts of {drawn.name}"
    return svg.drawing(key, title, _told_pair(drawn), _WIDTH, tall, [*parts, *below])


def _names_below(labels: Sequence[str], left: float, bottom: float, wide: float) -> tuple[list[str], int]:
    """The names of a heat map's columns, tilted where they are too long; and how tall the picture gets."""
    names = [shortened(label, 16) for label in labels]
    longest = max(width(name) for name in names)
    middles = [left + (x + 0.5) * wide for x in range(len(names))]
    if 6.8 * longest <= wide:
        flat = [svg.label(x, bottom + 16, name, "mid") for x, name in zip(middles, names, strict=True)]
        return flat, int(bottom) + 22
    tilt, slope = (38, 4.4) if wide >= 20 else (62, 6.0)
    tilted = [
        f'<text class="end" transform="translate({svg.at(x + 4)} {svg.at(bottom + 12)}) rotate(-{tilt})">'
        f"{escape(name)}</text>"
        for x, name in zip(middles, names, strict=True)
    ]
    return tilted, int(bottom + 18 + slope * longest)


def structure_graph(key: str, drawn: Structure) -> str:
    """Attributes as points, joined where they were measured together."""
    wide, high, margin = 460, 370, 52
    at = force_layout(drawn.attrs, drawn.edges) * [wide - 2 * margin, high - 70] + [margin, 35]
    where = dict(zip(drawn.attrs, at.tolist(), strict=True))
    parts = []
    for (one, other), times in drawn.edges.items():
        (x1, y1), (x2, y2) = where[one], where[other]
        parts.append(
            f'<line class="edge" stroke-width="{min(1.5 + 0.9 * (times - 1), 6):.1f}" '
            f'x1="{svg.at(x1)}" y1="{svg.at(y1)}" x2="{svg.at(x2)}" y2="{svg.at(y2)}"/>'
        )
    for attr, (x, y) in where.items():
        kind = "node" if attr in drawn.measured else "node alone"
        parts.append(f'<circle class="{kind}" cx="{svg.at(x)}" cy="{svg.at(y)}" r="6.5"/>')
        parts.append(
            svg.label(
                x,
                y + (21 if y > high / 2 else -12),
                shortened(attr, 18 if len(where) <= 12 else 14),
                "mid halo",
            )
        )
    pairs = [joined(pair) for pair in drawn.edges]
    apart = [attr for attr in drawn.attrs if attr not in drawn.measured]
    description = f"Measured together: {listed(pairs, most=30) or 'no attributes'}."
    if apart:
        description += f" Never measured: {listed((shortened(attr, 48) for attr in apart), most=30)}."
    return svg.drawing(key, "Which attributes were measured together", description, wide, high, parts)


def _bars(drawn: OneWay, top: float) -> list[str]:
    counts, ends = drawn.counts.tolist(), _ends(drawn)
    told = [
        number(count) + (f" ({number(both[0])}–{number(both[1])})" if both else "")
        for count, both in zip(counts, ends, strict=True)
    ]
    if max(map(width, told)) > _LONGEST:  # whiskers and the table have the intervals
        told = [number(count) for count in counts]
    # The numbers stand to the right of the longest bar, however long they are.
    left, right = 110, min(242.0, _WIDTH - 12 - 6.2 * max(map(width, told)))
    parts = []
    for index, (label, count) in enumerate(zip(drawn.values.labels, counts, strict=True)):
        y = 24 * index + 4
        both = ends[index]
        parts.append(svg.label(left - 6, y + 14, shortened(label, 17), "end"))
        if index != drawn.values.rest:
            parts.append(svg.bar(left, y + 2, (right - left) * count / top, 16))
        if both is not None and index != drawn.values.rest:
            low, high = (left + (right - left) * value / top for value in both)
            caps = f"M{svg.at(low)} {y + 6}v8M{svg.at(high)} {y + 6}v8"
            parts.append(f'<path class="whisker" d="M{svg.at(low)} {y + 10}H{svg.at(high)}{caps}"/>')
        for kind, beside in _beside(drawn):
            if index != drawn.values.rest:
                x = left + (right - left) * float(beside[index]) / top
                parts.append(f'<path class="{kind}" d="M{svg.at(x)} {y}v20"/>')
        parts.append(svg.label(_WIDTH - 2, y + 14, told[index], "end quiet"))
    parts.append(f'<path class="axis" d="M{left} 2v{24 * len(drawn.counts) + 4}"/>')
    return parts


def _columns(drawn: OneWay, top: float) -> list[str]:
    left, right, above, below = 4, _WIDTH - 4, 22, 158
    wide = (right - left) / len(drawn.counts)
    parts = []
    for index, (count, both) in enumerate(zip(drawn.counts.tolist(), _ends(drawn), strict=True)):
        x = left + index * wide
        y = below - (below - above) * count / top
        parts.append(svg.bar(x + 0.5, y, wide - 1, below - y))
        if both is not None:
            low, high = (below - (below - above) * value / top for value in both)
            parts.append(f'<path class="whisker" d="M{svg.at(x + wide / 2)} {svg.at(low)}V{svg.at(high)}"/>')
        for kind, beside in _beside(drawn):
            y = below - (below - above) * float(beside[index]) / top
            parts.append(f'<path class="{kind}" d="M{svg.at(x)} {svg.at(y)}h{svg.at(wide)}"/>')
    parts.append(f'<path class="axis" d="M{left} {below}H{right}"/>')
    labels = drawn.values.labels
    for at, label, anchor in (
        (left, labels[0], "start"),
        ((left + right) / 2, labels[len(labels) // 2], "mid"),
        (right, labels[-1], "end"),
    ):
        parts.append(svg.label(at, below + 18, shortened(label, 17), anchor))
    parts.append(svg.label(left, 12, f"highest {number(float(drawn.counts.max()))}", "start quiet"))
    return parts


def _highest(drawn: OneWay) -> float:
    reaching: Array = drawn.counts if drawn.interval is None else drawn.interval[1]
    single = slice(drawn.values.rest)
    return float(max(counts[single].max() for counts in (reaching, *(one for _, one in _beside(drawn)))))


def _beside(drawn: OneWay) -> list[tuple[str, Array]]:
    """Counts that are marked on the bars, and how the page's style sheet calls them."""
    marked = {"exact": drawn.exact, "public": drawn.public}
    return [(kind, counts) for kind, counts in marked.items() if counts is not None]


def _ends(drawn: OneWay) -> list[tuple[float, float] | None]:
    """From low to high, for each count."""
    if drawn.interval is None:
        return [None] * len(drawn.counts)
    low, high = (end.tolist() for end in drawn.interval)
    return list(zip(low, high, strict=True))


def _told(drawn: OneWay) -> str:
    """The counts in words, with their intervals."""

    def one(label: str, count: float, both: tuple[float, float] | None) -> str:
        between = f" ({number(both[0])} to {number(both[1])})" if both else ""
        return f"{shortened(label, 48)}: {number(count)}{between}"

    told = listed(map(one, drawn.values.labels, drawn.counts.tolist(), _ends(drawn)), most=16)
    return f"{told}. {'' if drawn.interval is None else '95% intervals. '}{drawn.about}"


def _told_pair(drawn: TwoWay) -> str:
    largest = np.argsort(-drawn.counts, axis=None, kind="stable")[:5]
    cells = []
    for y, x in (np.unravel_index(int(cell), drawn.counts.shape) for cell in largest):
        down, across = shortened(drawn.down.labels[y], 48), shortened(drawn.across.labels[x], 48)
        cells.append(f"{down} and {across}: {number(float(drawn.counts[y, x]))}")
    return f"The largest cells are {'; '.join(cells)}."


def _in_order(spendings: Sequence[Spending]) -> list[tuple[str, float]]:
    """One segment for each event; if some would be too thin to be seen, one for each step."""
    if min((spending.share for spending in spendings), default=1.0) >= _SEEN:
        return [(spending.step, spending.share) for spending in spendings]
    steps = dict.fromkeys(spending.step for spending in spendings)
    return [(step, sum(s.share for s in spendings if s.step == step)) for step in steps]


def _brief(count: float) -> str:
    if count >= 9_999.5:
        return f"{count / 1000:.0f}k" if count < 999_500 else f"{count / 1e6:.1f}M"
    return f"{count:.0f}"
