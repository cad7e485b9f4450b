"""A value as a notebook shows it: one small table, readable in light and dark, without scripts.

Only the alarm has a colour of its own; all else takes the notebook's. Everything passed in is text: it
is escaped here, and nowhere else.

>>> table("Budget", [("ε", "<1>")])
'<div><table><caption>Budget</caption><tr><th scope="row">ε</th><td>&lt;1&gt;</td></tr></table></div>'
"""

from collections.abc import Iterable, Sequence
from html import escape

_MOST = 200
"""Most rows of a table."""
_LONGEST = 300
"""Most characters of a cell."""


def table(
    title: str,
    facts: Iterable[tuple[str, str]] = (),
    *,
    columns: Sequence[str] = (),
    rows: Sequence[Sequence[object]] = (),
    share: float | None = None,
    alarm: str | None = None,
) -> str:
    """A captioned table of facts, then of rows under column names; above it a bar, and an alarm."""
    lines = [f'<tr><th scope="row">{_text(name)}</th><td>{_text(value)}</td></tr>' for name, value in facts]
    parts = [_alarm(alarm), _bar(share)]
    parts.append(f"<table><caption>{_text(title)}</caption>{''.join(lines)}</table>")
    if columns and rows:
        head = "".join(f'<th scope="col">{_text(name)}</th>' for name in columns)
        body = "".join(
            f"<tr>{''.join(f'<td>{_text(value)}</td>' for value in row)}</tr>" for row in rows[:_MOST]
        )
        more = len(rows) - _MOST
        parts.append(f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>")
        parts.append(f"<p>and {more:,} more</p>" if more > 0 else "")
    return f"<div>{''.join(parts)}</div>"


def _alarm(text: str | None) -> str:
    if text is None:
        return ""
    return f'<p style="background:#a40000;color:#fff;padding:.4em .8em;margin:0"><b>{_text(text)}</b></p>'


def _bar(share: float | None) -> str:
    """How much of something is used, in the notebook's own text colour."""
    if share is None:
        return ""
    used = min(max(share, 0.0), 1.0)
    return (
        f'<div role="img" aria-label="{used:.0%} of the budget is used" '
        'style="border:1px solid currentColor;height:.6em;width:16em;margin:.3em 0">'
        f'<div style="background:currentColor;opacity:.6;height:100%;width:{100 * used:.1f}%"></div></div>'
    )


def _text(value: object) -> str:
    text = str(value)
    return escape(text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…")
