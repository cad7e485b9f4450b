"""Error against ε, drawn: bars in characters for a terminal, lines in an SVG file for a page."""

import math
from html import escape

from sidelight.evaluation.rehearsal import Rehearsal

_WIDTH = 40
_COLOURS = ("#33658a", "#b3541e", "#4f772d", "#7b2d8b", "#8a6d33")
_LEFT, _RIGHT, _TOP, _BOTTOM = 70, 560, 50, 330
"""The corners of the axes."""


def text_picture(rehearsal: Rehearsal) -> str:
    """A bar for each ε, mechanism by mechanism; beside it the mean error, and its range over the runs."""
    longest = max(one.error for one in rehearsal.played) or 1.0
    lines = []
    for mechanism in rehearsal.mechanisms:
        lines.append(mechanism)
        for one in rehearsal.of(mechanism):
            bar = "█" * max(1, round(_WIDTH * one.error / longest))
            spread = f"  ({min(one.errors):.1%} to {max(one.errors):.1%})" if len(one.errors) > 1 else ""
            lines.append(f"  ε = {one.epsilon:<6g} {bar:{_WIDTH}} {one.error:6.1%}{spread}")
    return "\n".join(lines)


def svg_picture(rehearsal: Rehearsal, *, title: str) -> str:
    """Both axes in logarithms; one line for each mechanism, and a thin one for the range over its runs."""
    epsilons = sorted({one.epsilon for one in rehearsal.played})
    errors = [max(error, 1e-6) for one in rehearsal.played for error in one.errors]
    low, high = math.log(min(errors)) - 0.1, math.log(max(errors)) + 0.1
    first, last = math.log(epsilons[0]), math.log(epsilons[-1])

    def x(epsilon: float) -> float:
        part = 0.5 if last == first else (math.log(epsilon) - first) / (last - first)
        return _LEFT + part * (_RIGHT - _LEFT)

    def y(error: float) -> float:
        return _BOTTOM - (math.log(max(error, 1e-6)) - low) / (high - low) * (_BOTTOM - _TOP)

    parts = [
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 760 390" '
        'font-family="sans-serif" font-size="13">',
        f"<title>{escape(title)}</title>",
        '<rect width="760" height="390" fill="white"/>',
        f'<text x="16" y="24" font-weight="bold">{escape(title)}</text>',
        f'<path d="M{_LEFT} {_TOP}V{_BOTTOM}H{_RIGHT}" fill="none" stroke="#999"/>',
        f'<text x="{(_LEFT + _RIGHT) / 2}" y="374" text-anchor="middle" fill="#333">ε</text>',
    ]
    for epsilon in epsilons:
        parts.append(f'<text x="{x(epsilon):.1f}" y="350" text-anchor="middle">{epsilon:g}</text>')
    for error in (min(errors), max(errors)):
        parts.append(f'<text x="{_LEFT - 8}" y="{y(error) + 4:.1f}" text-anchor="end">{error:.1%}</text>')
    for place, mechanism in enumerate(rehearsal.mechanisms):
        colour, points = _COLOURS[place % len(_COLOURS)], rehearsal.of(mechanism)
        path = " ".join(f"{x(one.epsilon):.1f},{y(one.error):.1f}" for one in points)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        for one in points:
            at, ends = x(one.epsilon), (y(min(one.errors)), y(max(one.errors)))
            parts.append(
                f'<line x1="{at:.1f}" y1="{ends[0]:.1f}" x2="{at:.1f}" y2="{ends[1]:.1f}" stroke="{colour}"/>'
                f'<circle cx="{at:.1f}" cy="{y(one.error):.1f}" r="4" fill="{colour}"/>'
            )
        parts.append(f'<text x="575" y="{_TOP + 20 * place + 4}" fill="{colour}">{escape(mechanism)}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"
