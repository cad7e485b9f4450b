"""Line and dot plots as small hand-written SVG: nothing to install, and a diff that a person can read."""

import math
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path

COLOURS = ("#2563a8", "#d1622b", "#2e8b57", "#8a4fa8", "#b5952b", "#4d4d4d", "#c23b6b", "#2aa1a8")
DASHES = ("", "6 3", "2 3", "8 3 2 3")
WIDTH, HEIGHT = 640, 420
LEFT, RIGHT, TOP, BOTTOM = 74, 176, 40, 54

Point = tuple[float, float, float]
"""x, y and the standard error of y (0 if there is none)."""


def line_plot(
    path: str | Path,
    series: Mapping[str, Sequence[Point]],
    title: str,
    x_label: str,
    y_label: str,
    log_x: bool = False,  # noqa: FBT001, FBT002  # plots are drawn by position, like their labels
    log_y: bool = False,  # noqa: FBT001, FBT002
    band: tuple[str, Sequence[tuple[float, float]]] | None = None,
) -> Path:
    """One line a series, with bars of one standard error; below ``band`` (name, points) nothing can be."""
    drawn = {name: [p for p in points if _shown(p, log_x, log_y)] for name, points in series.items()}
    drawn = {name: sorted(points) for name, points in drawn.items() if points}
    points = [p for line in drawn.values() for p in line]
    if not points:
        raise ValueError(f"there is nothing to draw in {title!r}")
    edge = [(x, y) for x, y in (band[1] if band else []) if not log_y or y > 0]
    x_axis = _Axis([x for x, _, _ in points], log=log_x, start=LEFT, end=WIDTH - RIGHT, margin=0.03)
    lows = [y - e if y - e > 0 or not log_y else y for _, y, e in points]
    highs = [y + e for _, y, e in points]
    heights = [*lows, *highs, *(y for _, y in edge)]
    y_axis = _Axis(heights, log=log_y, start=HEIGHT - BOTTOM, end=TOP, margin=0.05)
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        'font-family="Helvetica, Arial, sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        f'<text x="{LEFT}" y="22" font-size="14" font-weight="bold">{escape(title)}</text>',
    ]
    out += _frame(x_axis, y_axis, x_label, y_label)
    legend_y = TOP + 8
    if band and edge:
        corners = [*((x_axis.at(x), y_axis.at(y)) for x, y in sorted(edge))]
        floor = HEIGHT - BOTTOM
        shape = " ".join(
            f"{x:.1f},{y:.1f}" for x, y in [(corners[0][0], floor), *corners, (corners[-1][0], floor)]
        )
        out.append(f'<polygon points="{shape}" fill="#999" fill-opacity="0.25"/>')
        out += _legend(band[0], "#999", "", legend_y)
        legend_y += 18
    for index, (name, line) in enumerate(drawn.items()):
        colour, dash = COLOURS[index % len(COLOURS)], DASHES[index // len(COLOURS) % len(DASHES)]
        at = " ".join(f"{x_axis.at(x):.1f},{y_axis.at(y):.1f}" for x, y, _ in line)
        out.append(
            f'<polyline points="{at}" fill="none" stroke="{colour}" stroke-width="1.8" '
            f'stroke-dasharray="{dash}"/>'
        )
        for x, y, error in line:
            px, py = x_axis.at(x), y_axis.at(y)
            out.append(f'<circle cx="{px:.1f}" cy="{py:.1f}" r="2.6" fill="{colour}"/>')
            if error > 0:
                low = y_axis.at(y - error) if not log_y or y - error > 0 else HEIGHT - BOTTOM
                bar = f"M{px:.1f} {low:.1f}V{y_axis.at(y + error):.1f}"
                out.append(f'<path d="{bar}" stroke="{colour}" stroke-width="1"/>')
        out += _legend(name, colour, dash, legend_y)
        legend_y += 18
    out.append("</svg>")
    target = Path(path)
    target.write_text("\n".join(out) + "\n", encoding="utf-8")
    return target


Marks = Mapping[str, tuple[float, float]]
"""For each line of a dot plot, a value and its standard error."""


def dot_plot(path: str | Path, panels: Mapping[str, Mapping[str, Marks]], title: str) -> Path:
    """Panels side by side on logarithmic scales: a line for each name, on it a mark for each series."""
    names = list(
        dict.fromkeys(name for panel in panels.values() for marks in panel.values() for name in marks)
    )
    series = list(dict.fromkeys(each for panel in panels.values() for each in panel))
    step, wide, apart, left, legend = 4.0, 270, 40, 130, 110
    high = step * (len(series) + 3)
    bottom = TOP + 20 + high * len(names)
    width, height = left + (wide + apart) * len(panels) + legend, bottom + 40
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height:.0f}" '
        'font-family="Helvetica, Arial, sans-serif" font-size="12">',
        f'<rect width="{width}" height="{height:.0f}" fill="white"/>',
        f'<text x="{left}" y="22" font-size="14" font-weight="bold">{escape(title)}</text>',
    ]
    for row, name in enumerate(names):
        middle = TOP + 20 + high * (row + 0.5)
        out.append(f'<text x="{left - 10}" y="{middle + 4:.1f}" text-anchor="end">{escape(name)}</text>')
    for column, (heading, panel) in enumerate(panels.items()):
        start = left + column * (wide + apart)
        ends = [v + sign * e for marks in panel.values() for v, e in marks.values() for sign in (-1, 1)]
        axis = _Axis([v for v in ends if v > 0], log=True, start=start, end=start + wide, margin=0.03)
        out.append(
            f'<text x="{start + wide / 2}" y="{TOP + 8}" text-anchor="middle">{escape(heading)}</text>'
        )
        out += [
            f'<path d="M{start} {TOP + 20 + high * row:.1f}h{wide}" stroke="#bbb" stroke-width="0.8"/>'
            for row in range(len(names) + 1)
        ]
        for tick in axis.ticks():
            x = axis.at(tick)
            out.append(f'<path d="M{x:.1f} {TOP + 20}V{bottom}" stroke="#ddd" stroke-width="0.6"/>')
            out.append(f'<text x="{x:.1f}" y="{bottom + 16}" text-anchor="middle">{tick:.4g}</text>')
        for each, marks in panel.items():
            place = series.index(each)
            for name, (value, error) in marks.items():
                y = TOP + 20 + high * names.index(name) + step * (place + 2)
                out += _mark(axis, value, error, y, place)
    for place, each in enumerate(series):
        x, y = width - legend + 6, TOP + 26 + 20 * place
        out += _glyph(x, y, place)
        out.append(f'<text x="{x + 12}" y="{y + 4}" font-size="11">{escape(each)}</text>')
    out.append("</svg>")
    target = Path(path)
    target.write_text("\n".join(out) + "\n", encoding="utf-8")
    return target


def _mark(axis: "_Axis", value: float, error: float, y: float, place: int) -> list[str]:
    """One value, with a bar of one standard error."""
    out = _glyph(axis.at(value), y, place)
    if 0 < error < value:
        bar = f"M{axis.at(value - error):.1f} {y:.1f}H{axis.at(value + error):.1f}"
        out.append(f'<path d="{bar}" stroke="{COLOURS[place % len(COLOURS)]}" stroke-width="1"/>')
    return out


def _glyph(x: float, y: float, place: int) -> list[str]:
    """A filled dot, and an empty one for a second series of the same colour."""
    colour = COLOURS[place % len(COLOURS)]
    fill = colour if place < len(COLOURS) else "white"
    return [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{fill}" stroke="{colour}" stroke-width="1.4"/>']


class _Axis:
    """From values to places on the page, with ticks at round numbers."""

    def __init__(
        self, values: Sequence[float], *, log: bool, start: float, end: float, margin: float
    ) -> None:
        self.log, self.start, self.end = log, start, end
        scaled = [math.log10(v) if log else v for v in values]
        low, high = min(scaled), max(scaled)
        if low == high:
            low, high = low - 0.5, high + 0.5
        self.low, self.high = low - margin * (high - low), high + margin * (high - low)
        if not log and min(values) >= 0:
            self.low = max(self.low, 0.0)

    def at(self, value: float) -> float:
        scaled = math.log10(value) if self.log else value
        share = (scaled - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)

    def ticks(self) -> list[float]:
        if self.log:
            decades = range(math.floor(self.low), math.ceil(self.high) + 1)
            steps = (1,) if self.high - self.low > 2.5 else (1, 2, 5)
            found = [step * 10.0**decade for decade in decades for step in steps]
            return [v for v in found if self.low <= math.log10(v) <= self.high]
        rough = (self.high - self.low) / 5
        size = 10.0 ** math.floor(math.log10(rough))
        step = next(size * m for m in (1, 2, 2.5, 5, 10) if size * m >= rough)
        first = math.ceil(self.low / step)
        return [k * step for k in range(first, math.floor(self.high / step) + 1)]


def _frame(x_axis: _Axis, y_axis: _Axis, x_label: str, y_label: str) -> list[str]:
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM
    out = [f'<path d="M{LEFT} {TOP}V{bottom}H{right}" fill="none" stroke="#333"/>']
    for value in x_axis.ticks():
        x = x_axis.at(value)
        out.append(f'<path d="M{x:.1f} {bottom}v4" stroke="#333"/>')
        out.append(f'<text x="{x:.1f}" y="{bottom + 17}" text-anchor="middle">{value:.4g}</text>')
    for value in y_axis.ticks():
        y = y_axis.at(value)
        out.append(f'<path d="M{LEFT} {y:.1f}H{right}" stroke="#ddd" stroke-width="0.6"/>')
        out.append(f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{value:.4g}</text>')
    middle = (TOP + bottom) / 2
    out.append(
        f'<text x="{(LEFT + right) / 2}" y="{HEIGHT - 14}" text-anchor="middle">{escape(x_label)}</text>'
    )
    out.append(
        f'<text x="18" y="{middle}" text-anchor="middle" transform="rotate(-90 18 {middle})">'
        f"{escape(y_label)}</text>"
    )
    return out


def _legend(name: str, colour: str, dash: str, y: float) -> list[str]:
    x = WIDTH - RIGHT + 12
    return [
        f'<path d="M{x} {y}h20" stroke="{colour}" stroke-width="2.4" stroke-dasharray="{dash}"/>',
        f'<text x="{x + 26}" y="{y + 4}" font-size="11">{escape(name)}</text>',
    ]


def _shown(point: Point, log_x: bool, log_y: bool) -> bool:  # noqa: FBT001  # private
    x, y, _ = point
    return math.isfinite(x) and math.isfinite(y) and (x > 0 or not log_x) and (y > 0 or not log_y)
