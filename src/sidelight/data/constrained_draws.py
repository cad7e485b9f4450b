"""Synthetic values drawn so that every constraint holds, whatever bins were drawn.

Points are drawn in their bins. Records that violate an order are drawn again, all columns that orders join
together, up to ``_TRIES`` times: for columns of the same bin every second or sixth draw fits. What is left
is repaired: an earlier value is lowered to where later ones have room, a later one is raised to the earlier.

Of a sum the parts are drawn, again until their sum falls in the total's bin, and the total is their sum. What
is left is repaired: a total in its bin that the parts' bins can reach, and each part so far into its bin as
the total is into its range. Where bins do not go together at all, the parts leave theirs.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sidelight.data.columns.column import BinnedColumn, Column, RealColumn
from sidelight.data.columns.constraints import Constraint, Determines, Order, Sum, highest, in_turn
from sidelight.data.columns.moment_columns import MomentColumn
from sidelight.data.decode import Points, points
from sidelight.data.domain import joined

_TRIES = 30

Bins = npt.NDArray[np.int64]
Which = npt.NDArray[np.bool_]


@dataclass
class Drawn:
    """A column of numbers: the bin of each record, a point of it, and where there is none."""

    column: BinnedColumn
    bins: Bins
    points: Points
    is_null: Which


def determine(
    constraints: Sequence[Constraint], columns: Sequence[Column], codes: npt.NDArray[np.integer]
) -> npt.NDArray[np.integer]:
    """The codes, with those that others determine set to what they must be."""
    by_name = {column.name: column for column in columns}
    place = {column.name: i for i, column in enumerate(columns)}
    for one in constraints:
        if isinstance(one, Determines):
            target = by_name[one.target]
            for code, wanted in one.codes(by_name).items():
                wrong = (codes[:, place[one.column]] == code) & (
                    codes[:, place[one.target]] < target.declared
                )
                wrong &= codes[:, place[one.target]] != wanted
                if wrong.any():
                    codes = codes.copy()
                    codes[wrong, place[one.target]] = wanted
    return codes


def make_hold(
    constraints: Sequence[Constraint], drawn: Mapping[str, Drawn], rng: np.random.Generator
) -> None:
    """Change points, in place, so that all constraints hold."""
    columns: dict[str, Column] = {name: one.column for name, one in drawn.items()}
    orders = in_turn(constraints)
    for _, places in joined(order.names for order in orders):
        _redraw([orders[place] for place in places], drawn, columns, rng)
    _put_in_order(orders, drawn, columns, highest(constraints, columns))
    for constraint in constraints:
        if isinstance(constraint, Sum):
            _add_up(constraint, drawn, rng)


def violates(order: Order, drawn: Mapping[str, Drawn], columns: Mapping[str, Column]) -> Which:
    """Which records violate an order."""
    first, second = drawn[order.first], drawn[order.second]
    there = ~(first.is_null | second.is_null)
    if isinstance(first.column, MomentColumn):
        unit = order.unit(columns)
        return there & (first.points // unit > second.points // unit)
    return there & (first.points > second.points)


def _redraw(
    orders: Sequence[Order],
    drawn: Mapping[str, Drawn],
    columns: Mapping[str, Column],
    rng: np.random.Generator,
) -> None:
    names = dict.fromkeys(name for order in orders for name in order.names)
    for _ in range(_TRIES):
        wrong = np.logical_or.reduce([violates(order, drawn, columns) for order in orders])
        if not wrong.any():
            return
        for name in names:
            one = drawn[name]
            one.points[wrong] = points(one.column, one.bins[wrong], rng)


def _put_in_order(
    orders: Sequence[Order],
    drawn: Mapping[str, Drawn],
    columns: Mapping[str, Column],
    caps: Mapping[str, float],
) -> None:
    wrong = [violates(order, drawn, columns) for order in orders]
    if not any(which.any() for which in wrong):
        return
    which = np.logical_or.reduce(wrong)
    for name, cap in caps.items():
        one = drawn[name]
        step = one.column.step if isinstance(one.column, MomentColumn) else None
        room = cap // step * step if step else cap
        one.points[which] = np.minimum(one.points[which], room)
    for order in orders:
        below = violates(order, drawn, columns)
        second = drawn[order.second]
        raised = drawn[order.first].points[below]
        if isinstance(second.column, MomentColumn):
            raised = raised // second.column.step * second.column.step
        second.points[below] = raised


def _add_up(constraint: Sum, drawn: Mapping[str, Drawn], rng: np.random.Generator) -> None:
    parts = [drawn[name] for name in constraint.parts]
    total = drawn[constraint.total]
    there = ~np.logical_or.reduce([one.is_null for one in (*parts, total)])
    scale = _scale(total.column)
    wrong = there
    for _ in range(_TRIES):
        low, high = _range(total.column, total.bins)
        found = _total(parts, scale)
        wrong = there & ((found * scale < low - 1e-6) | (found * scale > high + 1e-6))
        if not wrong.any():
            break
        for one in parts:
            one.points[wrong] = points(one.column, one.bins[wrong], rng)
    if wrong.any():
        _spread(parts, total, wrong, scale, rng)
    total.points[there] = _total(parts, scale)[there].astype(total.points.dtype)


def _spread(
    parts: Sequence[Drawn], total: Drawn, which: Which, scale: float, rng: np.random.Generator
) -> None:
    """Parts whose sum lies in the total's bin, or at least in its bounds; in steps of the last digit."""
    ranges = [np.array(_range(one.column, one.bins[which])) for one in parts]
    whole = [np.array(_ends(one.column))[:, None] for one in parts]
    low, high = _range(total.column, total.bins[which])
    least, most = _ends(total.column)
    cannot = (sum(r[0] for r in ranges) > high) | (sum(r[1] for r in ranges) < low)
    ranges = [np.where(cannot, w, r) for r, w in zip(ranges, whole, strict=True)]
    bottom, top = sum(r[0] for r in ranges), sum(r[1] for r in ranges)
    first, last = (
        np.maximum(np.where(cannot, least, low), bottom),
        np.minimum(np.where(cannot, most, high), top),
    )
    wanted = first + np.floor(rng.random(len(first)) * (last - first + 1))
    wanted = np.clip(wanted, first, last)
    share = np.where(top > bottom, (wanted - bottom) / np.where(top > bottom, top - bottom, 1.0), 0.0)
    chosen = [np.floor(r[0] + (r[1] - r[0]) * share) for r in ranges]
    for place, r in enumerate(ranges):
        left = wanted - sum(chosen)
        chosen[place] = np.clip(chosen[place] + left, r[0], r[1])
    for one, steps in zip(parts, chosen, strict=True):
        one.points[which] = (steps / scale).astype(one.points.dtype)


def _scale(column: BinnedColumn) -> float:
    """Steps in 1: those of the last decimal; a real column without declared decimals has a million."""
    if not isinstance(column, RealColumn):
        return 1.0
    return 10.0 ** (6 if column.decimals is None else column.decimals)


def _total(parts: Sequence[Drawn], scale: float) -> Points:
    """The sum of numbers of so many decimals, itself of so many."""
    found: Points = np.sum([one.points for one in parts], axis=0)
    return found if found.dtype.kind == "i" else np.round(found * scale) / scale


def _range(column: BinnedColumn, bins: Bins) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """The first and the last step of each of these bins."""
    if isinstance(column, RealColumn) and column.decimals is not None:
        first, last = column.steps
        return first[bins], last[bins]
    scale = _scale(column)
    low, high = column.bounds[bins] * scale, column.bounds[bins + 1] * scale
    if isinstance(column, RealColumn):
        return np.ceil(low), np.ceil(high) - 1
    return low.astype(np.float64), high.astype(np.float64) - 1


def _ends(column: BinnedColumn) -> tuple[float, float]:
    scale = _scale(column)
    return np.ceil(column.ends[0] * scale), np.floor(column.ends[1] * scale)
