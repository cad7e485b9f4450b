"""Charts of the studio, drawn as the report's are: histograms, error against ε, the ledger over time."""

import math
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from sidelight.data.columns.column import Column
from sidelight.evaluation.rehearsal import Played, Rehearsal
from sidelight.privacy.statement import Statement
from sidelight.reports import svg
from sidelight.reports.figures import one_way_chart
from sidelight.reports.pictures import OneWay, arranged, labels_of
from sidelight.reports.words import percent, shortened

Array = NDArray[np.float64]

_MOST_BARS = 40
_STOPS = 60
"""Stops of a slider of ε."""
_LEFT, _RIGHT, _TOP, _BOTTOM = 58, 540, 16, 250
"""The corners of the axes of a curve."""


def spark(column: Column, counts: Array) -> str:
    """A column's public values as a few bars, small enough for a line of a table."""
    together = math.ceil(len(counts) / _MOST_BARS)
    merged = np.add.reduceat(counts, np.arange(0, len(counts), together))
    top, wide = max(float(merged.max()), 1e-9), 120 / len(merged)
    bars = [
        svg.bar(place * wide, 33 - 32 * count / top, max(wide - 1, 0.6), 32 * count / top)
        for place, count in enumerate(merged.tolist())
    ]
    axis = '<path class="axis" d="M0 33.500H120"/>'
    return f'<svg viewBox="0 0 120 34" aria-hidden="true" focusable="false">{"".join(bars)}{axis}</svg>'


def histogram(key: str, column: Column, counts: Array) -> str:
    """A column's public values, with labels."""
    labels, ordered = labels_of(column)
    values = arranged(column.name, labels, counts, ordered=ordered)
    drawn = OneWay(values, values.merge(counts), interval=None, stddev=None, model_error=None, about="")
    return one_way_chart(key, drawn)


class _Axes:
    """The axes of a rehearsal's curve, error against ε, both in logarithms."""

    def __init__(self, points: Sequence[Played]) -> None:
        errors = [error for one in points for error in one.errors]
        self._x = math.log(points[0].epsilon), math.log(points[-1].epsilon)
        low, high = math.log(max(min(errors), 1e-5)), math.log(max(max(errors), 1e-5))
        self._y = low - 0.12, high + 0.12

    def x(self, value: float) -> float:
        first, last = self._x
        share = 0.5 if last == first else (math.log(value) - first) / (last - first)
        return _LEFT + min(max(share, 0.0), 1.0) * (_RIGHT - _LEFT)

    def y(self, value: float) -> float:
        low, high = self._y
        return _BOTTOM - (math.log(max(value, 1e-5)) - low) / (high - low) * (_BOTTOM - _TOP)

    def ticks(self) -> list[float]:
        """Round numbers along the upright axis."""
        low, high = math.exp(self._y[0]), math.exp(self._y[1])
        for heads in (
            (1, 10),
            (1, 2, 5),
            (1, 1.5, 2, 3, 4, 5, 6, 8),
            tuple(1 + step / 10 for step in range(90)),
        ):
            found = [m * 10.0**e for e in range(-5, 3) for m in heads if low <= m * 10.0**e <= high]
            if len(found) >= 3:
                break
        return found[:: math.ceil(len(found) / 6)] if found else [math.sqrt(low * high)]


def _grid(up: Sequence[tuple[float, float]], across: Sequence[tuple[float, float]]) -> list[str]:
    """The axes of a curve: a line for each share, a mark for each ε, both with their places."""
    parts = []
    for y, share in up:
        parts.append(f'<path class="grid-line" d="M{_LEFT} {svg.at(y)}H{_RIGHT}"/>')
        parts.append(svg.label(_LEFT - 8, y + 4, percent(share), "end quiet"))
    for x, epsilon in across:
        parts.append(svg.label(x, _BOTTOM + 19, f"{epsilon:g}", "mid quiet"))
    parts.append(f'<path class="axis" d="M{_LEFT} {_BOTTOM}H{_RIGHT}"/>')
    parts.append(svg.label((_LEFT + _RIGHT) / 2, _BOTTOM + 40, "ε", "mid"))
    return parts


def _line(points: Iterable[tuple[float, float]]) -> str:
    joined = " ".join(f"{svg.at(x)},{svg.at(y)}" for x, y in points)
    return f'<polyline class="curve" points="{joined}"/>'


def _marker(x: float, y: float) -> str:
    return (
        f'<path class="marker" d="M{svg.at(x)} {_TOP}V{_BOTTOM}"/>'
        f'<circle class="marker-dot" cx="{svg.at(x)}" cy="{svg.at(y)}" r="5.500"/>'
    )


def error_curve(key: str, played: Rehearsal, chosen: float | None) -> str:
    """Error against ε as it was rehearsed; where one ε is chosen, the error to expect there."""
    name = played.mechanisms[0]
    points = played.of(name)
    axes = _Axes(points)
    parts = _grid(
        [(axes.y(tick), tick) for tick in axes.ticks()],
        [(axes.x(one.epsilon), one.epsilon) for one in points],
    )
    parts.append(_line((axes.x(one.epsilon), axes.y(one.error)) for one in points))
    for one in points:
        at = svg.at(axes.x(one.epsilon))
        ends = svg.at(axes.y(min(one.errors))), svg.at(axes.y(max(one.errors)))
        parts.append(f'<path class="range" d="M{at} {ends[0]}V{ends[1]}"/>')
        parts.append(f'<circle class="point" cx="{at}" cy="{svg.at(axes.y(one.error))}" r="4.500"/>')
    error = None if chosen is None else played.error_at(chosen, name)
    if chosen is not None and error is not None:
        parts.append(f'<g id="{key}-marker">{_marker(axes.x(chosen), axes.y(error))}</g>')
    told = "; ".join(f"ε = {one.epsilon:g}: {percent(one.error)}" for one in points)
    return svg.drawing(key, "Error against ε, rehearsed on public data", f"{told}.", 560, 300, parts)


def slider_steps(played: Rehearsal) -> list[tuple[float, float, float, float]]:
    """For each stop of the slider: ε, the error to expect, and where its point lies in the picture."""
    name = played.mechanisms[0]
    points = played.of(name)
    axes = _Axes(points)
    first, last = points[0].epsilon, points[-1].epsilon
    found = []
    for step in range(_STOPS + 1):
        raw = first * (last / first) ** (step / _STOPS)
        epsilon = min(max(float(f"{raw:.2g}"), first), last)
        error = played.error_at(epsilon, name)
        if error is not None:
            found.append((epsilon, error, round(axes.x(epsilon), 1), round(axes.y(error), 1)))
    return found


def meaning_curve(key: str, points: Sequence[tuple[float, float]], chosen: tuple[float, float] | None) -> str:
    """The share of rightly suspected people whom an attacker can find, against ε."""

    def x(epsilon: float) -> float:
        return _LEFT + (math.log10(epsilon) + 1) / 2 * (_RIGHT - _LEFT)

    def y(caught: float) -> float:
        return _BOTTOM - caught * (_BOTTOM - _TOP)

    shares, epsilons = (0.0, 0.25, 0.5, 0.75, 1.0), (0.1, 0.3, 1.0, 3.0, 10.0)
    parts = _grid([(y(share), share) for share in shares], [(x(epsilon), epsilon) for epsilon in epsilons])
    parts.append(_line((x(epsilon), y(caught)) for epsilon, caught in points))
    if chosen is not None and 0.1 <= chosen[0] <= 10:
        parts.append(_marker(x(chosen[0]), y(chosen[1])))
    told = "; ".join(f"ε = {e:g}: {percent(c)}" for e, c in points if e in (0.1, 1.0, 10.0))
    return svg.drawing(
        key, "How many people an attacker can find, against ε", f"At most {told}.", 560, 300, parts
    )


def timeline(key: str, statement: Statement) -> str:
    """How much of the budget was used after each run; what an open run holds is apart."""
    rows = [(run, share) for run, share, _ in statement.after_each]
    left, right, high = 150, 500, 30
    parts, before = [], 0.0
    for place, (run, after) in enumerate(rows):
        y = 6 + place * high
        when = run.when[:16].replace("T", " ")
        parts.append(svg.label(left - 10, y + 15, when, "end quiet"))
        parts.append(svg.bar(left, y, right - left, 20, "left-bar"))
        parts.append(svg.bar(left, y, (right - left) * before, 20, "bar-soft"))
        kind = "held-bar" if run.is_open else "spent-bar"
        parts.append(
            svg.bar(left + (right - left) * before, y, max((right - left) * (after - before), 1), 20, kind)
        )
        parts.append(svg.label(right + 8, y + 15, f"{after:.0%}", "start"))
        before = after
    told = "; ".join(f"{shortened(run.label, 40)}: {share:.0%} used after it" for run, share in rows)
    return svg.drawing(key, "Spending over time", f"{told}.", 560, 12 + high * max(len(rows), 1), parts)
