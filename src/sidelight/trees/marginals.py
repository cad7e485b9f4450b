"""Marginals of a calibrated tree, inside a clique or across several, with the work shared.

Inside a clique a marginal is a sum, taken from the smallest table that was already summed.
Across cliques, the attributes asked for are brought together at one clique, the centre
(``routes.py``): every other branch of the tree sends what it knows about its own attributes T
given its separator s,

    M(T | s) = Σ P(T, s, …) / P(s),          answer = Σ P_centre(local, s₁, s₂, …) Π M(T_i | s_i)

and both are kept for the next question, in little more memory than the model itself takes. With the
centre in the middle, the three attributes of a three-way marginal come from different branches,
so nearly all messages carry one attribute and serve the whole workload. Products with sums are
matrix products. Where a product on the way is large, it is made slice by slice, along an attribute
of the centre: slices stay in the processor's cache, and the product never lies in memory whole. Nor does a
message that would be larger than half the model: it is made for one value at a time of an attribute that
it is given, and dropped.
"""

import math
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sidelight.data.domain import Attrs
from sidelight.trees.junction_tree import JunctionTree
from sidelight.trees.nesting import inner_order
from sidelight.trees.routes import Branch, Routes

Array = NDArray[np.float64]
Table = NDArray[np.float64]


class Named(NamedTuple):
    """A table, and the attributes of its axes by their place in the domain."""

    axes: tuple[int, ...]
    values: Table


At = tuple[tuple[int, int], ...]
"""Attributes, by their place in the domain, each with the one value of it that is looked at."""

_PIECE = (1 << 17, 1 << 19)
"""Cells of a product, and of what it is made from, above which it is made slice by slice: a quarter of the
model's, but never fewer than the first, where slices cost more than they save, nor more than the second,
which a cache holds."""
_FEWEST_KEPT = 1 << 18
"""Cells that may be kept for later questions."""
_MOST_KEPT = 0.25
"""The same as a multiple of the model's, where that is more."""
_MOST_MESSAGE = 0.5
"""Cells of a message, likewise, above which it is made slice by slice for each question, and not kept."""


class Answers:
    """Answers any marginal of p, and remembers what later questions can use again.

    One is made for each pass over a workload: the same questions then have the same answers, to the last
    bit, whatever was asked before.
    """

    def __init__(self, tree: JunctionTree, clique_marginals: Sequence[Table]) -> None:
        self._place = {attr: place for place, attr in enumerate(tree.domain.attrs)}
        self.routes = Routes.of(tree)
        self._cliques = [
            Named(tuple(self._place[attr] for attr in inner_order(tree.domain, clique)), marginal)
            for clique, marginal in zip(tree.cliques, clique_marginals, strict=True)
        ]
        are_alone = all(len(clique) == 1 for clique in tree.cliques)
        self.alone = (
            {clique[0]: table for clique, table in zip(tree.cliques, clique_marginals, strict=True)}
            if are_alone
            else None
        )
        """The distribution p on each attribute, where all are independent: answers are then mere products."""
        self._kept: OrderedDict[Any, Named] = OrderedDict()
        self._summed: list[dict[int, int]] = [{} for _ in clique_marginals]
        """The sums of each clique that are kept, with their sizes."""
        self._kept_cells = 0
        self._piece = min(_PIECE[1], max(_PIECE[0], tree.cells // 4))
        self._most_message = max(_FEWEST_KEPT, int(_MOST_MESSAGE * tree.cells))
        self._most_kept_cells = max(_FEWEST_KEPT, int(_MOST_KEPT * tree.cells))

    def marginal(self, attrs: Attrs) -> Table:
        """The distribution p on these attributes, axes in the order asked."""
        wanted = self.routes.mask(attrs)
        axes, values = self._gather(self.routes.centre(wanted), wanted)
        return np.transpose(values, [axes.index(self._place[attr]) for attr in attrs])

    def _sum(self, clique: int, wanted: int) -> Named:
        """The clique's own marginal, from the smallest sum that still holds it."""
        if wanted == self.routes.cliques[clique]:
            return self._cliques[clique]
        sums = self._summed[clique]
        if wanted in sums:
            return self._recall((clique, wanted))
        larger = [mask for mask in sums if wanted & mask == wanted]
        source = min(larger, key=sums.__getitem__, default=None)
        whole = self._cliques[clique] if source is None else self._recall((clique, source))
        found = self._keep((clique, wanted), sum_out(whole, wanted))
        sums[wanted] = found.values.size
        return found

    def _message(self, branch: Branch, at: At = ()) -> Named:
        """M(about | separator), from the far clique of the branch to the near one."""
        separator = self.routes.separator(branch)
        here = tuple((axis, value) for axis, value in at if separator >> axis & 1)
        if branch in self._kept:
            return _slice(self._recall(branch), here)
        if here and not self._is_large(branch):
            return _slice(self._message(branch), here)
        axes, joint = self._gather(branch.far, branch.about | separator, without=branch.near, at=here)
        given, below = _slice(self._sum(branch.near, separator), here)
        upside = np.divide(1.0, below, out=np.zeros_like(below), where=below > 0)
        # A table that was put together here is nobody else's, and can be divided in its place.
        is_own = branch.about & ~self.routes.cliques[branch.far]
        conditional = np.multiply(joint, _widened(upside, given, axes), out=joint if is_own else None)
        return Named(axes, conditional) if here else self._keep(branch, Named(axes, conditional))

    def _is_large(self, branch: Branch) -> bool:
        """Whether a message, which is not at hand, would take more memory than it is worth."""
        whole = self.routes.separator(branch) | branch.about
        return branch not in self._kept and self.routes.size(whole) > self._most_message

    def _gather(self, centre: int, wanted: int, *, without: int = -1, at: At = ()) -> Named:
        """Σ P_centre Π M over all that is not wanted, at single values of some attributes."""
        route = self.routes.route(centre, wanted, without=without)
        table = _slice(self._sum(centre, route.shared), at)
        done: tuple[Branch, ...] = ()
        for number, (branch, keep) in enumerate(route.steps):
            after = (route.shared | sum(b.about for b in done) | branch.about) & keep
            is_large = max(table.values.size, self.routes.size(after)) > self._piece
            if is_large or number == len(route.steps) - 1 or self._is_large(branch):
                # What is left of the chain, in one go: nothing on the way is worth its memory.
                return self._finish(table, route.steps[number:], at)
            done = (*done, branch)
            key = (centre, done, keep & self.routes.cliques[centre])
            if key in self._kept:
                table = _slice(self._recall(key), at)
            else:
                table = multiply_in(table, [self._message(branch, at)], [keep], self._piece)
                table = table if at else self._keep(key, table)
        return table

    def _finish(self, table: Named, steps: Sequence[tuple[Branch, int]], at: At) -> Named:
        """Σ table · Π M for the rest of a route; slice by slice where a message is too large to be made."""
        keeps = [keep for _, keep in steps]
        large = [self.routes.separator(branch) for branch, _ in steps if self._is_large(branch)]
        # Slices of slices would make what lies beyond again and again.
        sizes = {} if at else dict(zip(table.axes, table.values.shape, strict=True))
        given = [axis for axis in sizes if sizes[axis] > 1 and any(s >> axis & 1 for s in large)]
        if not given:
            return multiply_in(table, [self._message(b, at) for b, _ in steps], keeps, self._piece)
        along = max(given, key=lambda axis: (sum(s >> axis & 1 for s in large), sizes[axis]))
        parts = (
            self._finish(_at(table, along, value), steps, ((along, value),)) for value in range(sizes[along])
        )
        return _joined(parts, along, sizes[along], is_kept=bool(keeps[-1] >> along & 1))

    def _recall(self, key: Any) -> Named:
        """What was kept, now the last to be dropped."""
        self._kept.move_to_end(key)
        return self._kept[key]

    def _keep(self, key: Any, table: Named) -> Named:
        """Remember a table; those that nobody asked for in the longest time make room."""
        while self._kept and self._kept_cells + table.values.size > self._most_kept_cells:
            old, dropped = self._kept.popitem(last=False)
            self._kept_cells -= dropped.values.size
            if len(old) == 2:
                self._summed[old[0]].pop(old[1])
        self._kept[key] = table
        self._kept_cells += table.values.size
        return table


def sum_out(table: Named, wanted: int) -> Named:
    """The sum over every axis that is not wanted."""
    axes, values = table
    keep = [wanted >> axis & 1 for axis in axes]
    if not all(keep):
        # The last axes are summed by a matrix product: fast where they are short.
        last = len(axes)
        while last and not keep[last - 1]:
            last -= 1
        if last < len(axes):
            head = values.shape[:last]
            tail = math.prod(values.shape[last:])
            values = (values.reshape(-1, tail) @ np.ones(tail)).reshape(head)
        dropped = tuple(place for place in range(last) if not keep[place])
        if dropped:
            values = np.add.reduce(values, axis=dropped)
    return Named(tuple(axis for axis, kept in zip(axes, keep, strict=True) if kept), values)


def multiply_in(table: Named, messages: Sequence[Named], keeps: Sequence[int], most: int) -> Named:
    """Σ table · Π messages, one after the other, each time over the attributes that are not kept then.

    Where that takes a table of more cells than ``most``, it is done slice by slice.
    """
    along = _slicing(table, messages, keeps, most)
    if along is None:
        for message, keep in zip(messages, keeps, strict=True):
            table = contract(table, message, keep)
        return table
    number = table.values.shape[table.axes.index(along)]
    parts = (
        multiply_in(_at(table, along, value), [_at(m, along, value) for m in messages], keeps, most)
        for value in range(number)
    )
    return _joined(parts, along, number, is_kept=bool(keeps[-1] >> along & 1))


def _joined(parts: Iterable[Named], along: int, number: int, *, is_kept: bool) -> Named:
    """One table of the slices along an attribute: side by side where it is kept, else added up."""
    whole: Table | None = None
    axes: tuple[int, ...] = ()
    for value, piece in enumerate(parts):
        axes, part = piece
        if is_kept:
            if whole is None:
                whole = np.empty((number, *part.shape))
            whole[value] = part
        elif whole is None:
            whole = part
        else:
            whole += part
    assert whole is not None
    return Named((along, *axes) if is_kept else axes, whole)


def _slicing(table: Named, messages: Sequence[Named], keeps: Sequence[int], most: int) -> int | None:
    """The attribute along which to slice, so that everything stays small; None where it is already."""
    sizes = dict(zip(table.axes, table.values.shape, strict=True))
    largest = work = table.values.size
    axes = frozenset(table.axes)
    for message, keep in zip(messages, keeps, strict=True):
        sizes |= dict(zip(message.axes, message.values.shape, strict=True))
        axes = axes.union(message.axes)
        work += math.prod(sizes[axis] for axis in axes)
        axes = frozenset(axis for axis in axes if keep >> axis & 1)
        after = math.prod(sizes[axis] for axis in axes)
        largest = max(largest, after) if keep != keeps[-1] else largest
    if largest <= most:
        return None

    def extra(axis: int) -> tuple[int, int]:
        """What is read again for each slice, and what is added up."""
        again = sum(message.values.size for message in messages if axis not in message.axes)
        return (again + (0 if keeps[-1] >> axis & 1 else after)) * sizes[axis], -sizes[axis]

    best = min((axis for axis in table.axes if sizes[axis] > 1), key=extra, default=None)
    return None if best is None or extra(best)[0] > work / 2 else best


def _slice(table: Named, at: At) -> Named:
    """The table at these values."""
    for axis, value in at:
        table = _at(table, axis, value)
    return table


def _at(table: Named, axis: int, value: int) -> Named:
    """The slice of a table at one value of an attribute; all of it where it does not have that."""
    if axis not in table.axes:
        return table
    where = table.axes.index(axis)
    index = (slice(None),) * where + (value,)
    return Named(table.axes[:where] + table.axes[where + 1 :], table.values[index])


def contract(left: Named, right: Named, keep: int) -> Named:
    """Σ left · right over the attributes that are not kept, as one (batched) matrix product."""
    left = sum_out(left, keep | sum(1 << axis for axis in right.axes))
    right = sum_out(right, keep | sum(1 << axis for axis in left.axes))
    batch = [axis for axis in left.axes if axis in right.axes and keep >> axis & 1]
    summed = [axis for axis in left.axes if axis in right.axes and not keep >> axis & 1]
    left_own = [axis for axis in left.axes if axis not in right.axes]
    right_own = [axis for axis in right.axes if axis not in left.axes]
    a = _fold(left, batch, left_own, summed)
    b = _fold(right, batch, summed, right_own)
    sizes = dict(zip(left.axes, left.values.shape, strict=True)) | dict(
        zip(right.axes, right.values.shape, strict=True)
    )
    axes = (*batch, *left_own, *right_own)
    product = a[:, :, 0, None] * b[:, 0, None, :] if a.shape[2] == 1 else np.matmul(a, b)
    return Named(axes, product.reshape([sizes[axis] for axis in axes]))


def _fold(table: Named, *groups: list[int]) -> Table:
    """The table with its axes gathered into these groups, one axis each."""
    sizes = dict(zip(table.axes, table.values.shape, strict=True))
    turned = np.transpose(table.values, [table.axes.index(axis) for group in groups for axis in group])
    folded = turned.reshape([math.prod(sizes[axis] for axis in group) for group in groups])
    # Matrices whose entries lie apart both ways are multiplied many times more slowly.
    is_apart = folded.itemsize not in folded.strides[1:] and 1 not in folded.shape[1:]
    return np.ascontiguousarray(folded) if is_apart else folded


def _widened(values: Table, axes: tuple[int, ...], over: tuple[int, ...]) -> Table:
    """The table with an axis of length 1 for each attribute of ``over`` that it lacks."""
    present = [axis for axis in over if axis in axes]
    turned = np.transpose(values, [axes.index(axis) for axis in present])
    sizes = dict(zip(present, turned.shape, strict=True))
    return turned.reshape([sizes.get(axis, 1) for axis in over])


def marginals_of(answers: Answers, wanted: Sequence[Attrs], *, total: float) -> Iterator[tuple[int, Array]]:
    """A whole workload in one pass, clique by clique: the place of each marginal, and its counts.

    They are given one at a time, for a workload can be larger than the model.
    """
    if answers.alone is not None:
        for index, attrs in enumerate(wanted):
            product = np.array(total)
            for attr in attrs:
                product = np.multiply.outer(product, answers.alone[attr])
            yield index, product
        return
    for index in sorted(range(len(wanted)), key=lambda i: answers.routes.place(wanted[i])):
        yield index, total * answers.marginal(wanted[index])
