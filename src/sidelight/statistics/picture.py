"""A small picture of a mixed estimate: each group's weight and interval, and the mix below them."""

import math
from html import escape
from statistics import NormalDist

from sidelight.statistics.answer import MixedAnswer

_WEIGHT, _LINE = 16, 44
"""Characters for a weight, and for the axis of the intervals."""


def text_picture(answer: MixedAnswer) -> str:
    """Bars for weights and lines for intervals, in characters.

    >>> from sidelight.statistics.answer import GroupShare
    >>> groups = (GroupShare("a", 0.5, 10, 0.75, 4.0, 1.0), GroupShare("b", None, 10, 0.25, 6.0, 2.0))
    >>> print(text_picture(MixedAnswer(4.5, 0.5, (3.5, 5.5), groups, {})))
    a    ε = 0.5 ████████████      75.0% ├──────────●─────────┤                       4
    b    public  ████              25.0% ├─────────────────────●────────────────────┤ 6
    mix                                          ├────●─────┤                         4.5
    """
    lines = _lines(answer)
    least, most = _span(lines)
    scale = (_LINE - 1) / (most - least) if most > least else 0.0

    def drawn(middle: float, low: float, high: float) -> str:
        if math.isnan(middle):
            return " " * _LINE
        a, m, b = (round((min(max(x, least), most) - least) * scale) for x in (low, middle, high))
        axis = [" "] * _LINE
        axis[a : b + 1] = "─" * (b + 1 - a)
        axis[a], axis[b], axis[m] = "├", "┤", "●"
        return "".join(axis)

    width = max(len(name) for name, *_ in lines)
    needs = max(len(need) for _, need, *_ in lines)
    told = []
    for name, need, weight, middle, low, high in lines:
        bar, share = " " * _WEIGHT, " " * 6
        if weight is not None:
            bar, share = ("█" * round(weight * _WEIGHT)).ljust(_WEIGHT), f"{weight:6.1%}"
        value = "" if math.isnan(middle) else f"{middle:.6g}"
        told.append(
            f"{name:{width}}  {need:{needs}} {bar} {share} {drawn(middle, low, high)} {value}".rstrip()
        )
    return "\n".join(told)


def svg_picture(answer: MixedAnswer, *, title: str) -> str:
    """Weights and intervals as an SVG drawing that needs no other file."""
    lines = _lines(answer)
    least, most = _span(lines)
    scale = 320 / (most - least) if most > least else 0.0
    height = 30 * len(lines) + 60
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 720 {height}" '
        'font-family="sans-serif" font-size="13">',
        f"<title>{escape(title)}</title>",
        f'<rect width="720" height="{height}" fill="white"/>',
        f'<text x="16" y="24" font-weight="bold">{escape(title)}</text>',
    ]
    for place, (name, need, weight, middle, low, high) in enumerate(lines):
        y = 50 + 30 * place
        colour = "#b3541e" if weight is None else "#33658a"
        parts.append(
            f'<text x="16" y="{y + 4}">{escape(name)} <tspan fill="#666">{escape(need)}</tspan></text>'
        )
        if weight is not None:
            parts.append(f'<rect x="200" y="{y - 7}" width="{90 * weight:.1f}" height="14" fill="#9fb8ad"/>')
            parts.append(f'<text x="296" y="{y + 4}" fill="#333">{weight:.1%}</text>')
        if not math.isnan(middle):
            a, m, b = (370 + (x - least) * scale for x in (low, middle, high))
            parts.append(
                f'<line x1="{a:.1f}" y1="{y}" x2="{b:.1f}" y2="{y}" stroke="{colour}" stroke-width="2"/>'
                f'<circle cx="{m:.1f}" cy="{y}" r="4" fill="{colour}"/>'
            )
    parts.append(f'<text x="370" y="{height - 8}" fill="#666">{least:.6g}</text>')
    parts.append(f'<text x="690" y="{height - 8}" fill="#666" text-anchor="end">{most:.6g}</text></svg>')
    return "\n".join(parts) + "\n"


_Line = tuple[str, str, float | None, float, float, float]


def _span(lines: list[_Line]) -> tuple[float, float]:
    """The least and the greatest end of an interval."""
    ends = [end for *_, low, high in lines if not math.isnan(low) for end in (low, high)]
    return min(ends), max(ends)


def _lines(answer: MixedAnswer) -> list[_Line]:
    """Name, need, weight, estimate and ends of each group's interval; the mix last."""
    z = NormalDist().inv_cdf(0.975)
    lines: list[_Line] = []
    for group in answer.groups:
        need = "public" if group.epsilon is None else f"ε = {group.epsilon:g}"
        reach = z * group.standard_error if math.isfinite(group.standard_error) else math.nan
        middle = math.nan if math.isnan(reach) else group.estimate
        lines.append((group.name, need, group.weight, middle, middle - reach, middle + reach))
    lines.append(("mix", "", None, answer.estimate, *answer.interval))
    return lines
