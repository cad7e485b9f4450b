"""A release as a notebook shows it: a few lines of HTML, made from the release alone."""

from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sidelight.mechanisms.release import Release

_ALARM = '<p style="background:#a40000;color:#fff;padding:.4em .8em;margin:0"><b>NOT PRIVATE</b>: {}</p>'


def release_html(release: "Release") -> str:
    """What was promised and spent, and what there is to ask; everything that people wrote is escaped."""
    card, domain = release.card, release.model.domain
    lines = [("records", f"{release.total:,.0f}"), ("attributes", _listed(domain.attrs))]
    if "epsilon" in card:
        spent = f"ε = {card['epsilon_spent']:.4g} of {card['epsilon']:g}, at δ = {card['delta']:g}"
        lines = [("mechanism", str(card.get("mechanism", ""))), ("privacy spent", spent), *lines]
    measured = dict.fromkeys(measurement.query.describe() for measurement in release.measurements)
    lines.append(("measured", _listed(measured)))
    cells = "".join(
        f'<tr><th scope="row" style="text-align:left">{escape(name)}</th>'
        f'<td style="text-align:left">{escape(value)}</td></tr>'
        for name, value in lines
    )
    alarm = _ALARM.format("the noise was seeded.") if card.get("private") is False else ""
    return f"<div>{alarm}<table><caption>A differentially private release</caption>{cells}</table></div>"


def _listed(names: "tuple[str, ...] | dict[str, None]", most: int = 8) -> str:
    shown = list(names)[:most]
    more = len(names) - len(shown)
    return (", ".join(shown) + (f" and {more:,} more" if more else "")) or "nothing"
