"""Many marginals of coded records in one pass.

A marginal is counted by turning each record into the number of its cell, digit by digit,
and counting those numbers. Four things make many marginals cheaper than one at a time:

1. Marginals that begin with the same attributes share the digits of that beginning.
2. Most records hold an attribute's commonest value, and need not be counted one by one.
   With m the commonest value of a, and the records of its other values set apart,

       N(a = i, rest)  for i ≠ m   is counted on the records set apart
       N(a = m, rest) = N(rest) − Σ_{i ≠ m} N(a = i, rest)

   as in the AD-trees of Moore and Lee (1998). Skewed attributes come first, so this
   repeats: what is left after two of them is a small part of the table.
3. Records are taken in blocks that stay in the processor's cache, so that the time grows
   no faster than the number of records, and a table need not be in memory at once.

4. Where records are many, fewer and larger marginals are counted, which contain those that are asked for
   (``unions.py``), and summed at the end. This takes the place of 1 and 2 for all but the largest marginals.

The choice of commonest values and of unions affects speed alone: any choice gives the same counts.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod

import numpy as np
import numpy.typing as npt

from sidelight.data.domain import Attrs, Domain
from sidelight.data.engines.unions import MOST_CELLS, UnionCounter, unions

Counts = npt.NDArray[np.int64]
Numbers = npt.NDArray[np.intp]

BLOCK = 1 << 15
"""Records in a block: the few columns at work fit in the second-level cache."""

_LOOK = 1 << 12
"""Records that are sampled to see how skewed an attribute is."""

# Nanoseconds, measured by benchmarks/speed/count.py: one record through one more digit, one cell through
# one subtraction, one call. They decide when setting records apart pays.
_RECORD, _CELL, _CALL = 2.5, 0.6, 3500.0

_MANY, _RECORDS_A_CELL = 1 << 18, 16
"""Unions are counted of so many records, and so many for each cell, since cells are summed several times."""

_Ranks = tuple[int, ...]
"""Attributes by their rank: 0 is the most skewed."""


@dataclass(slots=True)
class _Node:
    """One attribute after a prefix of others."""

    cells: int
    """Cells of the marginal of the prefix and this attribute."""
    is_wanted: bool
    is_apart: bool
    """Whether the records of the commonest value are left out below."""
    below: "dict[int, _Node]"
    needed: _Ranks
    """Attributes that occur below."""
    counts: Counts | None = None


@dataclass
class MarginalCounter:
    """Counts of several marginals, block by block.

    >>> domain = Domain.of({"age": 3, "sex": 2})
    >>> counter = MarginalCounter(domain, [("age", "sex"), ("sex",)])
    >>> counter.add([np.array([0, 2, 2]), np.array([1, 0, 0])])
    >>> [marginal.tolist() for marginal in counter.counts()]
    [[[0, 1], [0, 0], [2, 0]], [2, 1]]
    """

    domain: Domain
    marginals: Sequence[Attrs]
    expected: int = BLOCK
    """About how many records there will be; a wrong guess costs time alone."""
    records: int = field(default=0, init=False)
    _nodes: dict[int, _Node] | None = field(default=None, init=False)
    _order: list[int] = field(default_factory=list, init=False)
    _sizes: list[int] = field(default_factory=list, init=False)
    _commonest: list[int] = field(default_factory=list, init=False)
    _share: list[float] = field(default_factory=list, init=False)
    _asked: list[_Ranks] = field(default_factory=list, init=False)
    _union_of: Mapping[_Ranks, _Ranks] = field(default_factory=dict, init=False)
    _unions: UnionCounter | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        for attrs in self.marginals:
            self.domain.require(attrs)

    def add(self, columns: Sequence[npt.NDArray[np.integer]]) -> None:
        """Count these records too: one array of codes an attribute, in the domain's order."""
        size = len(columns[0]) if columns else 0
        if size and self._nodes is None:
            self._plan(columns)
        for start in range(0, size, BLOCK):
            if not self._nodes:
                break
            block = [columns[a][start : start + BLOCK].astype(np.intp, copy=False) for a in self._order]
            _count(self._nodes, dict(enumerate(block)), None, self._sizes, self._commonest)
        if self._unions is not None:
            self._unions.add([columns[a] for a in self._order])
        self.records += size

    def counts(self) -> list[Counts]:
        """The marginals, in the order asked, each with its axes in the order asked."""
        if self._nodes is None:
            return [np.zeros(self.domain.project(m).shape, dtype=np.int64) for m in self.marginals]
        filled = _fill(self._nodes, 1, self._sizes, self._commonest)
        filled[()] = np.array(self.records, dtype=np.int64)
        answers = []
        for asked in self._asked:
            ranks = tuple(sorted(asked))
            cube = self._summed(ranks) if ranks in self._union_of else filled[ranks]
            cube = cube.reshape([self._sizes[r] for r in ranks])
            answers.append(cube if asked == ranks else cube.transpose([ranks.index(r) for r in asked]))
        return answers

    def _summed(self, ranks: _Ranks) -> Counts:
        """A marginal, from the union that contains it."""
        assert self._unions is not None
        union = self._union_of[ranks]
        cube = self._unions.counts[union].reshape([self._sizes[r] for r in union])
        summed: Counts = cube.sum(axis=tuple(axis for axis, r in enumerate(union) if r not in ranks))
        return summed

    def _plan(self, columns: Sequence[npt.NDArray[np.integer]]) -> None:
        """Rank the attributes by skew in a sample of the records, and lay out the shared prefixes."""
        step = -(-len(columns[0]) // _LOOK)  # every so many, since tables are often sorted
        seen = [np.bincount(c[::step], minlength=m) for c, m in zip(columns, self.domain.shape, strict=True)]
        self._order = sorted(range(len(seen)), key=lambda a: -int(seen[a].max()))
        self._sizes = [self.domain.shape[a] for a in self._order]
        self._commonest = [int(seen[a].argmax()) for a in self._order]
        self._share = [float(seen[a].max() / seen[a].sum()) for a in self._order]
        rank_of = {self.domain.attrs[a]: rank for rank, a in enumerate(self._order)}
        self._asked = [tuple([rank_of[attr] for attr in attrs]) for attrs in self.marginals]
        sets = list(dict.fromkeys(tuple(sorted(asked)) for asked in self._asked if asked))
        if self.expected >= _MANY:
            most = min(MOST_CELLS, self.expected // _RECORDS_A_CELL)
            self._union_of = unions(self._sizes, sets, most=most)
            self._unions = UnionCounter(self._sizes, self._union_of.values())
        wanted = {
            ranks: prod([self._sizes[r] for r in ranks]) for ranks in sets if ranks not in self._union_of
        }
        self._nodes = self._lay_out(wanted, 1, float(max(self.expected, 1)))

    def _lay_out(self, tails: Mapping[_Ranks, int], cells: int, records: float) -> dict[int, _Node]:
        """The nodes that count ``tails``, each given with its cells, below a prefix of ``cells`` cells."""
        rests_of: dict[int, dict[_Ranks, int]] = {}
        for tail, size in tails.items():
            rests_of.setdefault(tail[0], {})[tail[1:]] = size // self._sizes[tail[0]]
        nodes: dict[int, _Node] = {}
        for rank in range(min(rests_of, default=0), len(self._sizes)):
            deep = rests_of.get(rank)
            if deep is None:
                continue
            is_wanted = deep.pop((), None) is not None
            here = cells * self._sizes[rank]
            if not deep:
                nodes[rank] = _Node(here, is_wanted, is_apart=False, below={}, needed=())
                continue
            needed = tuple({other for rest in deep for other in rest})
            share = self._share[rank]
            saved = _RECORD * records * share * len(deep)
            gathered = _RECORD * records * (1 + (1 - share) * (1 + len(needed))) / 2
            filled = _CELL * here * sum(deep.values())
            is_apart = saved > gathered + filled + _CALL * len(deep)
            if is_apart:
                # N(rest) is needed too, to fill in the commonest value; its attributes come later.
                for rest, size in deep.items():
                    rests_of.setdefault(rest[0], {})[rest[1:]] = size // self._sizes[rest[0]]
            left = records * (1 - share) if is_apart else records
            nodes[rank] = _Node(here, is_wanted, is_apart, self._lay_out(deep, here, left), needed)
        # Ends come last, those of one size together: they share a multiplication.
        ordered = sorted(nodes.items(), key=lambda item: 0 if item[1].below else self._sizes[item[0]])
        return dict(ordered)


def _count(
    nodes: Mapping[int, _Node],
    columns: Mapping[int, Numbers],
    prefix: Numbers | None,
    sizes: Sequence[int],
    commonest: Sequence[int],
) -> None:
    """Count one block: ``prefix`` is each record's cell among the attributes above."""
    spare: Numbers | None = None
    scaled: Numbers = prefix  # type: ignore[assignment]  # None at the root, where it is not used
    scale = 1
    for rank, node in nodes.items():
        codes = columns[rank]
        if prefix is None:
            cell = codes
        else:
            if scale != sizes[rank]:
                scale = sizes[rank]
                scaled = prefix * scale
            # Cell numbers that are not needed below are overwritten by the next ones.
            cell = np.add(scaled, codes, out=None if node.below else spare)
            spare = spare if node.below else cell
        if node.is_wanted:
            _tally(node, cell)
        if node.is_apart:
            apart = np.flatnonzero(codes != commonest[rank])
            fewer = {other: columns[other].take(apart) for other in node.needed}
            _count(node.below, fewer, cell.take(apart), sizes, commonest)
        elif node.below:
            _count(node.below, columns, cell, sizes, commonest)


def _tally(node: _Node, cell: Numbers) -> None:
    if node.counts is None:
        node.counts = np.bincount(cell, minlength=node.cells)
    elif node.cells < len(cell):
        node.counts += np.bincount(cell, minlength=node.cells)
    else:
        np.add.at(node.counts, cell, 1)


def _fill(
    nodes: Mapping[int, _Node], cells: int, sizes: Sequence[int], commonest: Sequence[int]
) -> dict[_Ranks, Counts]:
    """All counts below a prefix of ``cells`` cells, the commonest values filled in."""
    filled: dict[_Ranks, Counts] = {}
    for rank, node in reversed(list(nodes.items())):
        if node.counts is not None:
            filled[(rank,)] = node.counts
        if not node.below:
            continue
        for rest, counts in _fill(node.below, node.cells, sizes, commonest).items():
            if node.is_apart:
                if rest not in filled:  # it only helped to fill another one
                    continue
                cube = counts.reshape(cells, sizes[rank], -1)
                others = np.add.reduce(cube, axis=1)
                np.subtract(filled[rest].reshape(cells, -1), others, out=cube[:, commonest[rank]])
            filled[(rank, *rest)] = counts
    return filled
