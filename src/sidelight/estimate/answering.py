"""Marginals of a calibrated tree, inside a clique or across several, with the work shared.

Inside a clique a marginal is a sum, taken from the smallest table that was already summed.
Across cliques, the attributes asked for are brought together at one clique, the centre: every
other branch of the tree sends what it knows about its own attributes T given its separator s,

    M(T | s) = Σ P(T, s, …) / P(s),          answer = Σ P_centre(local, s₁, s₂, …) Π M(T_i | s_i)

and both are kept for the next question. With the centre in the middle, the three attributes of
a three-way marginal come from different branches, so nearly all messages carry one attribute
and serve the whole workload. Products with sums are matrix products.
"""

import math
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sidelight.data.domain import Attrs
from sidelight.estimate.inference import inner_order
from sidelight.estimate.junction_tree import JunctionTree

Array = NDArray[np.float64]
Named = tuple[Attrs, Array]
"""A table and the attributes of its axes."""

_LARGE = 1 << 16
"""Cells from which turning a table costs more than remembering it."""
_NOTHING: frozenset[str] = frozenset()
_MOST_KEPT_CELLS = 1 << 20
"""Cells kept for later questions, in all; twice the model's own where that is more."""


class Branch(NamedTuple):
    """One message: from a clique far from the centre to its neighbour nearer to it."""

    far: int
    near: int
    about: frozenset[str]


class Answers:
    """Answers any marginal of p, and remembers what later questions can use again."""

    def __init__(self, tree: JunctionTree, beliefs: Sequence[Array]) -> None:
        self._tree = tree
        self._domain = tree.domain
        self._sets = [frozenset(clique) for clique in tree.cliques]
        self._sums: list[dict[frozenset[str], Named]] = [
            {members: (inner_order(tree.domain, clique), belief)}
            for members, clique, belief in zip(self._sets, tree.cliques, beliefs, strict=True)
        ]
        self._neighbours: list[list[int]] = [list(children) for children in tree.children]
        for child, parent in enumerate(tree.parents):
            if parent >= 0:
                self._neighbours[child].append(parent)
        self._kept: OrderedDict[Any, Named] = OrderedDict()
        self._kept_cells = 0
        self._most_kept_cells = max(_MOST_KEPT_CELLS, 2 * tree.cells)
        self._sides: dict[tuple[int, int], frozenset[str]] = {}
        self._routes: dict[int, dict[str, int]] = {}
        self._shortcuts: dict[Branch, tuple[Branch, ...]] = {}
        self._centres: dict[frozenset[str], int] = {}
        self._folds: dict[Any, Array] = {}

    def marginal(self, attrs: Attrs) -> Array:
        """P on these attributes, axes in the order asked."""
        wanted = frozenset(attrs)
        home = self._tree.home(attrs)
        if home is None:
            have, table = self._gather(self._centre(wanted), wanted)
        else:
            have, table = self._sum(home, wanted)
        return np.transpose(table, [have.index(attr) for attr in attrs])

    def place(self, attrs: Attrs) -> tuple[Any, ...]:
        """Where the answer is put together; questions with near places share the most work."""
        wanted = frozenset(attrs)
        home = self._tree.home(attrs)
        centre = self._centre(wanted) if home is None else home
        return centre, -len(attrs), sorted(wanted & self._sets[centre]), attrs

    def forget(self) -> None:
        """Drop what was kept for later questions; the beliefs stay."""
        self._kept.clear()
        self._kept_cells = 0
        self._folds.clear()
        for members, sums in zip(self._sets, self._sums, strict=True):
            whole = sums[members]
            sums.clear()
            sums[members] = whole

    def _sum(self, clique: int, wanted: frozenset[str]) -> Named:
        """The clique's own marginal, from the smallest sum that still holds it."""
        sums = self._sums[clique]
        if wanted not in sums:
            source = min((have for have in sums if wanted <= have), key=lambda have: sums[have][1].size)
            sums[wanted] = sum_out(sums[source], wanted)
        return sums[wanted]

    def _side(self, near: int, far: int) -> frozenset[str]:
        """The attributes found beyond the edge from ``near`` to ``far``, those of ``near`` left out."""
        if (near, far) not in self._sides:
            beyond = frozenset().union(*(self._side(far, w) for w in self._neighbours[far] if w != near))
            self._sides[near, far] = (self._sets[far] | beyond) - self._sets[near]
        return self._sides[near, far]

    def _branches(self, clique: int, wanted: frozenset[str], *, without: int = -1) -> list[Branch]:
        """Which messages are needed here: from whom, sent to whom, about which attributes."""
        parts: dict[int, set[str]] = {}
        route = self._route(clique)
        for attr in wanted - self._sets[clique]:
            parts.setdefault(route[attr], set()).add(attr)
        found: list[Branch] = []
        for far, about in sorted(parts.items()):
            if far != without:
                found += self._shortcut(Branch(far, clique, frozenset(about)))
        return found

    def _route(self, clique: int) -> dict[str, int]:
        """The neighbour beyond which each attribute is found that this clique lacks."""
        if clique not in self._routes:
            self._routes[clique] = {
                a: far for far in self._neighbours[clique] for a in self._side(clique, far)
            }
        return self._routes[clique]

    def _shortcut(self, branch: Branch) -> tuple[Branch, ...]:
        """Where a clique only passes on what others know given the same separator, ask those others.

        Their separators are smaller, and so are their messages.
        """
        if branch not in self._shortcuts:
            found: tuple[Branch, ...] = (branch,)
            if not branch.about & self._sets[branch.far]:
                separator = self._separator(branch)
                beyond = self._branches(branch.far, branch.about, without=branch.near)
                if all(self._separator(other) <= separator for other in beyond):
                    found = tuple(beyond)
            self._shortcuts[branch] = found
        return self._shortcuts[branch]

    def _separator(self, branch: Branch) -> frozenset[str]:
        return self._sets[branch.far] & self._sets[branch.near]

    def _centre(self, wanted: frozenset[str]) -> int:
        """Where no branch has to bring many attributes at once, and the table there is small."""

        def price(clique: int) -> tuple[int, int]:
            branches = self._branches(clique, wanted)
            shared = (wanted & self._sets[clique]).union(*map(self._separator, branches))
            return max(len(branch.about) for branch in branches), self._size(shared)

        if wanted not in self._centres:
            self._centres[wanted] = min(filter(self._is_between(wanted), range(len(self._sets))), key=price)
        return self._centres[wanted]

    def _is_between(self, wanted: frozenset[str]) -> Callable[[int], bool]:
        """Whether not all is found beyond one and the same neighbour, which then were the better place."""

        def is_between(clique: int) -> bool:
            route = self._route(clique)
            ways = {route.get(attr) for attr in wanted}
            return len(ways) > 1 or None in ways

        return is_between

    def _message(self, branch: Branch) -> Named:
        """M(about | separator), from the far clique of the branch to the near one."""
        if branch in self._kept:
            return self._recall(branch)
        separator = self._separator(branch)
        have, joint = self._gather(branch.far, branch.about | separator, without=branch.near)
        given, below = self._sum(branch.near, separator)
        upside = np.divide(1.0, below, out=np.zeros_like(below), where=below > 0)
        # A table that was put together here is nobody else's, and can be divided in its place.
        is_own = not branch.about <= self._sets[branch.far]
        conditional = np.multiply(joint, _spread(upside, given, have), out=joint if is_own else None)
        return self._keep(branch, (have, conditional))

    def _gather(self, centre: int, wanted: frozenset[str], *, without: int = -1) -> Named:
        """Σ P_centre Π M over all that is not wanted."""
        clique = self._sets[centre]
        waiting = self._branches(centre, wanted, without=without)
        table = self._sum(centre, (wanted & clique).union(*map(self._separator, waiting)))
        done: tuple[Branch, ...] = ()
        while waiting:
            best = min(waiting, key=lambda branch: self._left(table[0], branch, waiting, wanted))
            waiting.remove(best)
            done = (*done, best)
            keep = wanted.union(*map(self._separator, waiting))
            key = (centre, done, keep & clique)
            if key in self._kept:
                table = self._recall(key)
                continue
            table = contract(table, self._message(best), keep, self._folds)
            if waiting:
                self._keep(key, table)
        return table

    def _left(
        self, have: Attrs, branch: Branch, waiting: Sequence[Branch], wanted: frozenset[str]
    ) -> tuple[int, int]:
        """How large the table is once this branch is in: the smallest goes first."""
        keep = wanted.union(*(self._separator(other) for other in waiting if other is not branch))
        return self._size((frozenset(have) & keep) | branch.about), branch.far

    def _recall(self, key: Any) -> Named:
        """What was kept, now the last to be dropped."""
        self._kept.move_to_end(key)
        return self._kept[key]

    def _keep(self, key: Any, table: Named) -> Named:
        """Remember a table; those that nobody asked for in the longest time make room."""
        while self._kept and self._kept_cells + table[1].size > self._most_kept_cells:
            _, (_, dropped) = self._kept.popitem(last=False)
            self._kept_cells -= dropped.size
        self._kept[key] = table
        self._kept_cells += table[1].size
        return table

    def _size(self, attrs: Iterable[str]) -> int:
        return math.prod(self._domain.sizes[attr] for attr in attrs)


def sum_out(table: Named, wanted: frozenset[str]) -> Named:
    """The sum over every axis that is not wanted."""
    attrs, values = table
    keep = [attr in wanted for attr in attrs]
    if not all(keep):
        # The last axes are summed by a matrix product: fast where they are short.
        last = len(attrs)
        while last and not keep[last - 1]:
            last -= 1
        if last < len(attrs):
            head = values.shape[:last]
            tail = math.prod(values.shape[last:])
            values = (values.reshape(-1, tail) @ np.ones(tail)).reshape(head)
        dropped = tuple(axis for axis in range(last) if not keep[axis])
        if dropped:
            values = np.add.reduce(values, axis=dropped)
    return tuple(attr for attr, kept in zip(attrs, keep, strict=True) if kept), values


def contract(left: Named, right: Named, keep: frozenset[str], folds: dict[Any, Array] | None = None) -> Named:
    """Σ left · right over the attributes that are not kept, as one (batched) matrix product.

    The latest large left table is left in ``folds`` as it was turned for the product: the next
    question often multiplies the same one.
    """
    left = sum_out(left, keep | frozenset(right[0]))
    right = sum_out(right, keep | frozenset(left[0]))
    (left_attrs, left_values), (right_attrs, right_values) = left, right
    both = [attr for attr in left_attrs if attr in right_attrs]
    batch = [attr for attr in both if attr in keep]
    summed = [attr for attr in both if attr not in keep]
    left_own = [attr for attr in left_attrs if attr not in right_attrs]
    right_own = [attr for attr in right_attrs if attr not in left_attrs]
    key = (id(left_values), *batch, "|", *left_own, "|", *summed)
    if folds is not None and key in folds:
        a = folds[key]
    else:
        a = _fold(left, batch, left_own, summed)
        if folds is not None and a.size > _LARGE:
            folds.clear()
            folds[key] = a
    b = _fold(right, batch, summed, right_own)
    sizes = dict(zip(left_attrs, left_values.shape, strict=True)) | dict(
        zip(right_attrs, right_values.shape, strict=True)
    )
    attrs = (*batch, *left_own, *right_own)
    product = a[:, :, 0, None] * b[:, 0, None, :] if a.shape[2] == 1 else np.matmul(a, b)
    return attrs, product.reshape([sizes[attr] for attr in attrs])


def _fold(table: Named, *groups: list[str]) -> Array:
    """The table with its axes gathered into these groups, one axis each."""
    attrs, values = table
    sizes = dict(zip(attrs, values.shape, strict=True))
    turned = np.transpose(values, [attrs.index(attr) for group in groups for attr in group])
    return turned.reshape([math.prod(sizes[attr] for attr in group) for group in groups])


def _spread(values: Array, attrs: Attrs, over: Attrs) -> Array:
    """The table with an axis of length 1 for each attribute of ``over`` that it lacks."""
    present = [attr for attr in over if attr in attrs]
    turned = np.transpose(values, [attrs.index(attr) for attr in present])
    sizes = dict(zip(present, turned.shape, strict=True))
    return turned.reshape([sizes.get(attr, 1) for attr in over])


def marginals_of(answers: Answers, wanted: Sequence[Attrs], *, total: float) -> list[Array]:
    """A whole workload in one pass, clique by clique; what was kept on the way is dropped at the end."""
    order = sorted(range(len(wanted)), key=lambda i: answers.place(wanted[i]))
    found: dict[int, Array] = {}
    for index in order:
        # Scaled at once: a workload that lies in memory twice can be larger than the model.
        found[index] = np.asarray(total * answers.marginal(wanted[index]))
    answers.forget()
    return [found[index] for index in range(len(wanted))]
