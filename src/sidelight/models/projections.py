"""Marginals of weighted records, counted through nested projections: whole, or what has changed.

Counting M marginals of N records one by one takes N·M steps. But most marginals leave out the
attributes that tell most records apart, and over the others far fewer patterns are distinct:

    records (41,777)  ──drop age──▶  patterns (16,000)  ──drop schooling──▶  patterns (5,000)  …
       │ marginals with age             │ marginals without age                 │

Weights are summed into patterns on the way down, and each marginal is counted from the smallest
set of patterns that still tells its cells apart. The tree depends on the records and the
marginals alone, so it is built once; a change of a few records' weights takes the same way.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from sidelight.data.domain import Attrs, Domain

Array = NDArray[np.float64]
Index = NDArray[np.int32]

_NODE_STEPS = 8000
"""Cost of one more node, in steps of counting: a dozen calls of about a microsecond each."""


@dataclass(eq=False)
class _Node:
    """Distinct patterns over some attributes, and the marginals that are counted from them."""

    patterns: int
    marginals: tuple[Attrs, ...] = ()
    place: slice = field(default_factory=lambda: slice(0, 0))
    """The slice of the answers that belongs to these marginals."""
    cells: Index | None = None
    """Patterns × marginals: each pattern's cell within ``place``; None where it is not kept."""
    codes: dict[str, Index] = field(default_factory=dict)
    """Each pattern's codes, to make ``cells`` from where it is not kept."""
    children: list[tuple[Index, "_Node"]] = field(default_factory=list)
    """For each child, the child's pattern that each pattern falls into."""


class Projections:
    """Counts a fixed list of marginals of fixed records under changing weights.

    >>> domain = Domain.of({"a": 2, "b": 2})
    >>> records = np.array([[0, 0], [0, 1], [1, 1]])
    >>> projections = Projections(domain, records, [("a",), ("a", "b")])
    >>> answers = projections.count(np.array([1.0, 2.0, 3.0]))
    >>> answers[projections.places["a", "b"]]
    array([1., 2., 0., 3.])
    >>> projections.add(answers, np.array([2]), np.array([0.5]))
    >>> answers[projections.places[("a",)]]
    array([3. , 3.5])
    """

    def __init__(
        self,
        domain: Domain,
        records: NDArray[np.integer],
        marginals: Sequence[Attrs],
        *,
        max_cache_mb: float = 256.0,
    ) -> None:
        self.domain = domain
        self.size = 0
        """Number of answers."""
        self.places: dict[Attrs, slice] = {}
        """The slice of the answers that belongs to each marginal."""
        self.cache_bytes = 0
        """Memory of the kept cell indices."""
        self._cache_limit = int(max_cache_mb * 2**20)
        wanted = list(dict.fromkeys(marginals))
        codes = {
            attr: np.ascontiguousarray(records[:, domain.index([attr])[0]], dtype=np.int32)
            for attr in domain.canonical({attr for attrs in wanted for attr in attrs})
        }
        # The attributes that split the patterns most are dropped first.
        self._order = sorted(codes, key=lambda attr: -domain.sizes[attr])
        self._root = self._build(len(records), codes, wanted)

    def count(self, weights: Array) -> Array:
        """All answers, from all records' weights."""
        answers = np.zeros(self.size)
        self._push(self._root, answers, None, weights)
        return answers

    def add(self, answers: Array, touched: NDArray[np.integer], change: Array) -> None:
        """Update ``answers`` in place after the weights of the records ``touched`` changed by ``change``."""
        self._push(self._root, answers, touched, change)

    def _push(self, node: _Node, answers: Array, touched: NDArray[np.integer] | None, change: Array) -> None:
        if node.marginals:
            cells = self._cells(node, touched).reshape(-1)
            repeated = np.repeat(change, len(node.marginals)) if len(node.marginals) > 1 else change
            width = node.place.stop - node.place.start
            if 4 * cells.size < width:
                np.add.at(answers[node.place], cells, repeated)
            else:
                answers[node.place] += np.bincount(cells, weights=repeated, minlength=width)
        for into, child in node.children:
            falls = into if touched is None else into.take(touched)
            dense: Array = np.asarray(
                np.bincount(falls, weights=change, minlength=child.patterns), np.float64
            )
            some = None if touched is None else np.flatnonzero(dense != 0)
            if some is None or 4 * some.size > 3 * child.patterns:
                self._push(child, answers, None, dense)
            else:
                self._push(child, answers, some, dense.take(some))

    def _cells(self, node: _Node, touched: NDArray[np.integer] | None = None) -> Index:
        """The cell of each pattern, for each marginal of a node."""
        if node.cells is not None:
            return node.cells if touched is None else node.cells.take(touched, axis=0)
        some = {attr: code if touched is None else code.take(touched) for attr, code in node.codes.items()}
        patterns = node.patterns if touched is None else touched.size
        cells = np.empty((patterns, len(node.marginals)), dtype=np.int32)
        start = 0
        for column, attrs in enumerate(node.marginals):
            cells[:, column] = start + self._flat(some, attrs, patterns)
            start += self.domain.size(attrs)
        return cells

    def _flat(self, codes: dict[str, Index], attrs: Attrs, patterns: int) -> NDArray[np.int64]:
        flat = np.zeros(patterns, dtype=np.int64)
        for attr in attrs:
            flat *= self.domain.sizes[attr]
            flat += codes[attr]
        return flat

    def _build(self, patterns: int, codes: dict[str, Index], marginals: list[Attrs]) -> _Node:
        """A node for these marginals; those that gain from a smaller set of patterns go to children."""
        node = _Node(patterns)
        here = marginals
        for attr in self._order:
            without = [attrs for attrs in here if attr not in attrs]
            # At best a child has no patterns at all; where even that would not pay, nothing is tried.
            if attr not in codes or len(without) == 0 or patterns * (len(without) - 1) <= _NODE_STEPS:
                continue
            kept = {name for attrs in without for name in attrs}
            smaller = {name: code for name, code in codes.items() if name in kept}
            into, first = _group(smaller, self.domain, patterns)
            if (patterns - first.size) * len(without) <= patterns + _NODE_STEPS:
                continue
            chosen = {name: code.take(first) for name, code in smaller.items()}
            node.children.append((into, self._build(first.size, chosen, without)))
            here = [attrs for attrs in here if attr in attrs]
        if here:
            self._place(node, codes, here)
        return node

    def _place(self, node: _Node, codes: dict[str, Index], marginals: list[Attrs]) -> None:
        start = self.size
        for attrs in marginals:
            self.places[attrs] = slice(self.size, self.size + self.domain.size(attrs))
            self.size += self.domain.size(attrs)
        node.marginals = tuple(marginals)
        node.place = slice(start, self.size)
        kept = {name for attrs in marginals for name in attrs}
        node.codes = {name: code for name, code in codes.items() if name in kept}
        needs = 4 * node.patterns * len(marginals)
        if self.cache_bytes + needs <= self._cache_limit:
            node.cells = self._cells(node)
            node.codes = {}
            self.cache_bytes += needs


def _group(codes: dict[str, Index], domain: Domain, patterns: int) -> tuple[Index, NDArray[np.int64]]:
    """The distinct patterns over some attributes: each record's pattern, and an example of each."""
    flat = np.zeros(patterns, dtype=np.int64)
    numbers = 1
    for attr, code in codes.items():
        size = domain.sizes[attr]
        if numbers * size >= 2**62:
            # Numbered anew by the patterns that there are, the product fits again.
            _, flat = np.unique(flat, return_inverse=True)
            numbers = patterns + 1
        flat = flat * size + code
        numbers *= size
    _, first, into = np.unique(flat, return_index=True, return_inverse=True)
    return into.astype(np.int32), first
