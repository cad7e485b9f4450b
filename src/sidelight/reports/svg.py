"""The parts of every chart: an SVG element that can be read aloud, labels, bars, coordinates.

Text that people wrote (names, labels) is escaped here. Colours come from the style sheet of the page.
"""

from collections.abc import Iterable
from html import escape


def drawing(
    key: str,
    title: str,
    description: str,
    wide: int,
    high: int,
    parts: Iterable[str],
    *,
    stretch: bool = False,
) -> str:
    """A chart with ``role="img"``, a title and a description in words."""
    ratio = ' preserveAspectRatio="none"' if stretch else ""
    return (
        f'<svg viewBox="0 0 {wide} {high}" role="img" aria-labelledby="{key}-t {key}-d"{ratio}>'
        f'<title id="{key}-t">{escape(title)}</title><desc id="{key}-d">{escape(description)}</desc>'
        f"{''.join(parts)}</svg>"
    )


def bar(x: float, y: float, wide: float, high: float, kind: str = "bar") -> str:
    """A rectangle."""
    return f'<rect class="{kind}" x="{at(x)}" y="{at(y)}" width="{at(wide)}" height="{at(high)}"/>'


def label(x: float, y: float, text: str, kind: str) -> str:
    """A line of text; ``kind`` says where it is anchored, and how it looks."""
    return f'<text class="{kind}" x="{at(x)}" y="{at(y)}">{escape(text)}</text>'


def at(value: float) -> str:
    """A coordinate, to a tenth.

    >>> at(3.0), at(3.14)
    ('3', '3.1')
    """
    return f"{value:.1f}".removesuffix(".0")
