"""Which measured set is read off which: small tables from larger ones, not all from the clique.

A clique often holds many measured sets. Summing the whole clique for each of them, and adding
each potential to the whole clique, is most of the work of a step. So a set inside another one is
carried by it, and two sets whose union is much smaller than the clique are carried by a table on
that union, which is summed once.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations


@dataclass(frozen=True)
class Node:
    """One table: its attributes, the node it is read off (None: the clique), the set it is (None: no set)."""

    attrs: frozenset[str]
    carrier: int | None
    number: int | None


def nest(sets: Mapping[int, Sequence[str]], clique: Sequence[str], sizes: Mapping[str, int]) -> list[Node]:
    """The tables of one clique, carriers before what they carry.

    >>> nest({0: ("a",), 1: ("a", "b")}, ("a", "b", "c"), {"a": 2, "b": 2, "c": 2})[1]
    Node(attrs=frozenset({'a'}), carrier=0, number=0)
    """

    def size(attrs: frozenset[str]) -> int:
        return math.prod(sizes[attr] for attr in attrs)

    whole = size(frozenset(clique))
    tables: dict[frozenset[str], int | None] = {frozenset(attrs): number for number, attrs in sets.items()}
    free = [attrs for attrs in tables if not any(attrs < other for other in tables)]
    while True:
        unions = {pair: size(pair[0] | pair[1]) for pair in combinations(free, 2)}
        best = min(unions, key=lambda pair: (unions[pair], sorted(pair[0]), sorted(pair[1])), default=None)
        # One pass over the clique is saved, and two over the union are added.
        if best is None or 3 * unions[best] > whole:
            break
        union = best[0] | best[1]
        tables.setdefault(union, None)
        free = [attrs for attrs in free if not attrs <= union] + [union]

    order = sorted(tables, key=lambda attrs: (-len(attrs), -size(attrs), sorted(attrs)))
    nodes: list[Node] = []
    for attrs in order:
        holding = [i for i, node in enumerate(nodes) if attrs < node.attrs]
        carrier = min(holding, key=lambda i: size(nodes[i].attrs), default=None)
        nodes.append(Node(attrs, carrier, tables[attrs]))
    return nodes
