"""Marginals of a calibrated tree, within a clique or across several, with shared work.

Within a clique a marginal is a sum, taken from the smallest table that is already known. Across cliques,
the attributes asked for are brought together at one clique, the centre (``routes.py``). Every branch of the
tree sends it the distribution of its own attributes T given its separator s,

    M(T | s) = Σ P(T, s, …) / P(s),          answer = Σ P_centre(local, s₁, s₂, …) Π M(T_i | s_i)

and messages and products are kept for later questions, within a quarter of the model's own memory. With the
centre in the middle, the three attributes of a three-way marginal come from different branches, so nearly all
messages carry one attribute and serve the whole workload. Where a product on the way is large, it is made
slice by slice, along an attribute of the centre: slices fit in the processor's cache, and the whole product
is never in memory. A message that would be larger than half the model is made for one value at a time of an
attribute in its separator, used and dropped.
"""

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sidelight.data.domain import Attrs
from sidelight.trees.junction_tree import JunctionTree
from sidelight.trees.named_tables import At, Named, at_value, joined, multiply_in, sliced, sum_out, widened
from sidelight.trees.routes import Branch, Routes

Array = NDArray[np.float64]


_PIECE = (1 << 17, 1 << 19)
"""Products of more cells than this are made slice by slice: a quarter of the model's cells, within these
bounds. Below the first, slices cost more than they save; the second is what a cache holds."""
_FEWEST_KEPT = 1 << 18
"""Most cells that are kept for later questions, at least."""
_MOST_KEPT = 0.25
"""Most cells that are kept, as a multiple of the model's, where that is more."""
_MOST_MESSAGE = 0.5
"""Cells of a message, as a multiple of the model's, above which it is made in slices and not kept."""


class Answers:
    """Answers any marginal of p, and keeps tables that later questions can use again.

    A new one is made for each pass over a workload. So the same questions have the same answers, to the last
    bit, whatever was asked in earlier passes.
    """

    def __init__(self, tree: JunctionTree, clique_marginals: Sequence[Array]) -> None:
        self._place = {attr: place for place, attr in enumerate(tree.domain.attrs)}
        self.routes = Routes.of(tree)
        self._cliques = [
            Named(axes, marginal) for axes, marginal in zip(self.routes.axes, clique_marginals, strict=True)
        ]
        are_alone = all(len(clique) == 1 for clique in tree.cliques)
        self.alone = (
            {clique[0]: table for clique, table in zip(tree.cliques, clique_marginals, strict=True)}
            if are_alone
            else None
        )
        """p on each attribute, where all are independent and answers are products; else None."""
        self._kept: OrderedDict[Any, Named] = OrderedDict()
        self._summed: list[dict[int, int]] = [{} for _ in clique_marginals]
        """The sums of each clique that are kept, with their sizes."""
        self._kept_cells = 0
        self._piece = min(_PIECE[1], max(_PIECE[0], tree.cells // 4))
        self._most_message = max(_FEWEST_KEPT, int(_MOST_MESSAGE * tree.cells))
        self._most_kept_cells = max(_FEWEST_KEPT, int(_MOST_KEPT * tree.cells))

    def marginal(self, attrs: Attrs) -> Array:
        """The distribution p on these attributes, axes in the order asked."""
        wanted = self.routes.mask(attrs)
        axes, values = self._gather(self.routes.centre(wanted), wanted)
        return np.transpose(values, [axes.index(self._place[attr]) for attr in attrs])

    def _sum(self, clique: int, wanted: int) -> Named:
        """A marginal within a clique, from the smallest known sum that contains it."""
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
            return sliced(self._recall(branch), here)
        if here and not self._is_large(branch):
            return sliced(self._message(branch), here)
        axes, joint = self._gather(branch.far, branch.about | separator, without=branch.near, at=here)
        given, below = sliced(self._sum(branch.near, separator), here)
        upside = np.divide(1.0, below, out=np.zeros_like(below), where=below > 0)
        # A table that was made here is used nowhere else, and can be divided in place.
        is_own = branch.about & ~self.routes.cliques[branch.far]
        conditional = np.multiply(joint, widened(upside, given, axes), out=joint if is_own else None)
        return Named(axes, conditional) if here else self._keep(branch, Named(axes, conditional))

    def _is_large(self, branch: Branch) -> bool:
        """Whether a message is not kept and too large to be made whole."""
        whole = self.routes.separator(branch) | branch.about
        return branch not in self._kept and self.routes.size(whole) > self._most_message

    def _gather(self, centre: int, wanted: int, *, without: int = -1, at: At = ()) -> Named:
        """Σ P_centre Π M over all attributes not wanted; ``at`` fixes some attributes to one value each."""
        route = self.routes.route(centre, wanted, without=without)
        table = sliced(self._sum(centre, route.shared), at)
        done: tuple[Branch, ...] = ()
        for number, (branch, keep) in enumerate(route.steps):
            after = (route.shared | sum(b.about for b in done) | branch.about) & keep
            is_large = max(table.values.size, self.routes.size(after)) > self._piece
            if is_large or number == len(route.steps) - 1 or self._is_large(branch):
                # The rest of the route in one go: no product on the way is worth keeping.
                return self._finish(table, route.steps[number:], at)
            done = (*done, branch)
            key = (centre, done, keep & self.routes.cliques[centre])
            if key in self._kept:
                table = sliced(self._recall(key), at)
            else:
                table = multiply_in(table, [self._message(branch, at)], [keep], self._piece)
                table = table if at else self._keep(key, table)
        return table

    def _finish(self, table: Named, steps: Sequence[tuple[Branch, int]], at: At) -> Named:
        """Σ table · Π M for the rest of a route; in slices where a message is too large to be made whole."""
        keeps = [keep for _, keep in steps]
        large = [self.routes.separator(branch) for branch, _ in steps if self._is_large(branch)]
        # Within a slice nothing is sliced again: messages from beyond would be made once for each slice.
        sizes = {} if at else dict(zip(table.axes, table.values.shape, strict=True))
        given = [axis for axis in sizes if sizes[axis] > 1 and any(s >> axis & 1 for s in large)]
        if not given:
            return multiply_in(table, [self._message(b, at) for b, _ in steps], keeps, self._piece)
        along = max(given, key=lambda axis: (sum(s >> axis & 1 for s in large), sizes[axis]))
        parts = (
            self._finish(at_value(table, along, value), steps, ((along, value),))
            for value in range(sizes[along])
        )
        return joined(parts, along, sizes[along], is_kept=bool(keeps[-1] >> along & 1))

    def _recall(self, key: Any) -> Named:
        """A kept table; it is now the last to be dropped."""
        self._kept.move_to_end(key)
        return self._kept[key]

    def _keep(self, key: Any, table: Named) -> Named:
        """Keep a table; the least recently used ones are dropped to make room."""
        while self._kept and self._kept_cells + table.values.size > self._most_kept_cells:
            old, dropped = self._kept.popitem(last=False)
            self._kept_cells -= dropped.values.size
            if len(old) == 2:
                self._summed[old[0]].pop(old[1])
        self._kept[key] = table
        self._kept_cells += table.values.size
        return table


def marginals_of(answers: Answers, wanted: Sequence[Attrs], *, total: float) -> Iterator[tuple[int, Array]]:
    """A whole workload in one pass, clique by clique: the index of each marginal, and its counts.

    One at a time, since all answers together can be larger than the model.
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
