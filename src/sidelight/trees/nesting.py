"""Which table is summed from which: small tables from larger ones, not all from the clique.

A clique often holds many measured sets and separators. Summing the whole clique for each of them, and
adding each potential to the whole clique, is most of the work of a step. So a set inside another one
is carried by it, and two sets whose union is much smaller than the clique are carried by a table on
that union, which is summed once.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from sidelight.data.domain import Attrs, Domain


def inner_order(domain: Domain, attrs: Iterable[str]) -> Attrs:
    """The order of axes within inference: small attributes first, so that inner loops are long."""
    return tuple(sorted(attrs, key=lambda attr: (domain.sizes[attr], domain.attrs.index(attr))))


@dataclass(frozen=True)
class Node:
    """One table: its attributes, and the node it is summed from (None: the clique)."""

    attrs: frozenset[str]
    carrier: int | None


def nest(sets: Iterable[Iterable[str]], clique: Sequence[str], sizes: Mapping[str, int]) -> list[Node]:
    """The tables of one clique, carriers before what they carry.

    >>> nest([("a",), ("a", "b")], ("a", "b", "c"), {"a": 2, "b": 2, "c": 2})[1]
    Node(attrs=frozenset({'a'}), carrier=0)
    """

    def size(attrs: frozenset[str]) -> int:
        return math.prod(sizes[attr] for attr in attrs)

    whole = size(frozenset(clique))
    tables = set(map(frozenset, sets))
    free = [attrs for attrs in tables if not any(attrs < other for other in tables)]
    while True:
        unions = {pair: size(pair[0] | pair[1]) for pair in combinations(sorted(free, key=sorted), 2)}
        best = min(unions, key=lambda pair: (unions[pair], sorted(pair[0]), sorted(pair[1])), default=None)
        # One pass over the clique is saved, and two over the union are added.
        if best is None or 3 * unions[best] > whole:
            break
        union = best[0] | best[1]
        tables.add(union)
        free = [attrs for attrs in free if not attrs <= union] + [union]

    nodes: list[Node] = []
    for attrs in sorted(tables, key=lambda attrs: (-len(attrs), -size(attrs), sorted(attrs))):
        holding = [i for i, node in enumerate(nodes) if attrs < node.attrs]
        nodes.append(Node(attrs, min(holding, key=lambda i: size(nodes[i].attrs), default=None)))
    return nodes
