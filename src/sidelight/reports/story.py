"""The budget of a table as it was spent over time: in the report, and by `sidelight ledger show --svg`."""

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from html import escape

from sidelight._check import count_of
from sidelight.releases.card import PastRun
from sidelight.reports.words import shortened

_WIDE, _HIGH, _LEFT, _RIGHT, _TOP, _BOTTOM = 460, 240, 44, 12, 20, 34
_NAMED, _NAME = 12, 100
"""Most runs that are named at their steps, and how wide a name is at most."""


def story(key: str, runs: Sequence[PastRun], *, is_alone: bool = False) -> str:
    """Steps of the budget that was used up, run by run; ``is_alone``: a file of its own, with a ground."""
    times = [run.when for run in runs]
    first, last = min(times), max(times)
    length = max((last - first).total_seconds(), 1.0)
    shown = _shown(first, last)

    def across(when: datetime) -> float:
        share = (when - first).total_seconds() / length if len(set(times)) > 1 else 0.5
        return _LEFT + 12 + share * (_WIDE - _LEFT - _RIGHT - 24)

    steps = "".join(f"H{across(run.when):.1f}V{_up(run.used):.1f}" for run in runs)
    path = f"M{_LEFT} {_up(0):.1f}{steps}H{_WIDE - _RIGHT}"
    ends = ((first, "start"), (last, "end")) if first != last else ((first, "middle"),)
    parts = [
        *([f'<rect width="{_WIDE}" height="{_HIGH}" fill="#fff"/>'] if is_alone else []),
        f'<path d="{path}V{_up(0):.1f}Z" fill="#2563a8" fill-opacity="0.35"/>',
        *_shares(),
        *_names(runs, across),
        f'<path d="{path}" stroke="#2563a8" stroke-width="2" fill="none"/>',
        *(
            f'<text x="{across(when):.1f}" y="{_HIGH - 12}" text-anchor="{anchor}">{when:{shown}}</text>'
            for when, anchor in ends
        ),
    ]
    told = (
        f"{count_of(len(runs), 'run')} from {first:{shown}} to {last:{shown}}; "
        f"{runs[-1].used:.0%} of the budget is used."
    )
    style = ' font-family="Helvetica, Arial, sans-serif" font-size="12"' if is_alone else ""
    space = ' xmlns="http://www.w3.org/2000/svg"' if is_alone else ""
    return (
        f'<svg{space} viewBox="0 0 {_WIDE} {_HIGH}" role="img" aria-labelledby="{key}-t {key}-d"{style}>'
        f'<title id="{key}-t">The budget over time</title><desc id="{key}-d">{escape(told)}</desc>'
        f"{''.join(parts)}</svg>"
    )


def _up(share: float) -> float:
    """How high a share of the budget stands."""
    return _HIGH - _BOTTOM - min(share, 1.0) * (_HIGH - _TOP - _BOTTOM)


def _shares() -> Iterator[str]:
    """The quarters of the budget, as lines with their shares."""
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        y = _up(share)
        stroke = "#b3261e" if share == 1.0 else "#9aa4b2"
        yield (
            f'<path d="M{_LEFT} {y:.1f}H{_WIDE - _RIGHT}" stroke="{stroke}" stroke-opacity="0.5"/>'
            f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{share:.0%}</text>'
        )


def _names(runs: Sequence[PastRun], across: Callable[[datetime], float]) -> Iterator[str]:
    """The name of each run beside its step, where there is one, and where few runs leave room."""
    before = 0.0
    for run in runs if len(runs) <= _NAMED else ():
        if run.used > before:
            x = across(run.when)
            # Near the axis there is room on the right alone.
            at, anchor = (x - 4, "end") if x - 4 - _NAME >= _LEFT else (x + 2, "start")
            name = escape(shortened(run.what, 12))
            yield f'<text x="{at:.1f}" y="{_up(run.used) - 5:.1f}" text-anchor="{anchor}">{name}</text>'
        before = run.used


def _shown(first: datetime, last: datetime) -> str:
    """The format in which two times differ: the day, or the time of day if both are on one day."""
    if first == last or first.date() != last.date():
        return "%Y-%m-%d"
    return "%Y-%m-%d %H:%M" if f"{first:%H:%M}" != f"{last:%H:%M}" else "%Y-%m-%d %H:%M:%S"
