"""How one clique of a junction tree is summed: worked out once from the structure, used at every step.

The small tables of a clique (measured sets, separators, and unions that carry them) are nested. Those that
no other table carries are the free tables, and the clique is their product. Each free table, and the message
to the parent, is summed from that product, or computed from the other free tables without it, whichever
costs less.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from sidelight.data.domain import Attrs
from sidelight.trees.arrays import Arrays
from sidelight.trees.contraction import CALL, Contraction
from sidelight.trees.junction_tree import JunctionTree
from sidelight.trees.nesting import inner_order, nest
from sidelight.trees.summing import Projection

_KEPT, _SMALL = 512, 1 << 12
"""How many layouts are kept for later trees, and the most cells of their cliques: laying out such a clique
takes longer than summing it a hundred times."""


@dataclass(frozen=True)
class CliqueLayout:
    """The small tables of one clique, carriers first, and which is summed from which."""

    carriers: list[int | None]
    projections: list[Projection]
    """For each table, the sum that makes it from its carrier (from the clique where it has none)."""
    sets: dict[int, int]
    """For each measured set whose home this clique is: the index of its table."""
    separators: dict[int, int]
    """For each neighbour in the tree: the index of the separator's table."""
    path: list[int]
    """The tables from the clique down to the separator of its parent; none at the root."""
    path_wide: tuple[int, ...]
    """The shape that broadcasts what is shared with the parent over the first table of the path."""
    free: list[int]
    """Indices of the free tables, whose product the clique is."""
    moves: list["Move"]
    """For each free table but the last, how conflicts are moved to a later one; see ``Move``."""
    up: Contraction | None
    """From the free tables to the message for the parent."""
    across: list[tuple[Contraction, tuple[int, ...]]] | None
    """For each free table: from all others onto it, and the shape that broadcasts the result over it. None
    where writing the whole product down costs less."""

    @classmethod
    def of(
        cls, tree: JunctionTree, clique: int, held: Mapping[int, Attrs], library: Arrays
    ) -> "CliqueLayout":
        """The layout of this clique of the tree, home to these sets."""
        attrs, parent = inner_order(tree.domain, tree.cliques[clique]), tree.parents[clique]
        shared = {child: frozenset(tree.separators[child]) for child in tree.children[clique]}
        if parent >= 0:
            shared[parent] = frozenset(tree.separators[clique])
        sizes = tuple(tree.domain.sizes[attr] for attr in attrs)
        tables = frozenset([*map(frozenset, held.values()), *shared.values()])
        # A round changes few cliques of a wide table; the others are laid out as they were.
        laid_out = _small_layout if math.prod(sizes) <= _SMALL else _layout
        layout, where = laid_out(attrs, sizes, tables, shared.get(parent), library)
        return replace(
            layout,
            sets={number: where[frozenset(names)] for number, names in held.items()},
            separators={other: where[names] for other, names in shared.items()},
        )


def _layout(
    attrs: Attrs,
    of_attrs: tuple[int, ...],
    tables: frozenset[frozenset[str]],
    up_to: frozenset[str] | None,
    library: Arrays,
) -> tuple[CliqueLayout, dict[frozenset[str], int]]:
    """The layout of a clique with these small tables, and the index of each; ``up_to`` goes to the parent.

    Sets and separators are left to whoever knows their numbers.
    """
    sizes, place = dict(zip(attrs, of_attrs, strict=True)), {attr: i for i, attr in enumerate(attrs)}
    nodes = nest(tables, attrs, sizes)
    where = {node.attrs: index for index, node in enumerate(nodes)}
    inner = [tuple(sorted(node.attrs, key=place.__getitem__)) for node in nodes]
    carriers = [attrs if node.carrier is None else inner[node.carrier] for node in nodes]
    path: list[int] = []
    step = None if up_to is None else where[up_to]
    while step is not None:
        path.insert(0, step)
        step = nodes[step].carrier
    free = [index for index, node in enumerate(nodes) if node.carrier is None]
    loose = [inner[index] for index in free]
    up = Contraction(loose, inner[path[-1]], sizes, library) if path else None
    layout = CliqueLayout(
        carriers=[node.carrier for node in nodes],
        projections=[Projection.onto(c, i, sizes, library) for c, i in zip(carriers, inner, strict=True)],
        sets={},
        separators={},
        path=path,
        path_wide=Projection.onto(inner[path[0]], up_to or (), sizes, library).wide if path else (),
        free=free,
        moves=[_move(one, loose, sizes) for one in range(len(loose) - 1)],
        up=up,
        across=_across(attrs, loose, up, sizes, library),
    )
    return layout, where


_small_layout = lru_cache(maxsize=_KEPT)(_layout)


Move = tuple[int, int, tuple[int, ...], tuple[int, ...], tuple[int, ...]]
"""From which free table, to which; the axes of the first that the second lacks; the shapes that broadcast
what they share over the first and over the second."""


def _move(one: int, tables: Sequence[Attrs], sizes: Mapping[str, int]) -> Move:
    other = max(range(one + 1, len(tables)), key=lambda place: len(set(tables[one]) & set(tables[place])))
    axes = tuple(axis for axis, attr in enumerate(tables[one]) if attr not in tables[other])
    wide, onto = (
        tuple(sizes[attr] if attr in there else 1 for attr in here)
        for here, there in ((tables[one], tables[other]), (tables[other], tables[one]))
    )
    return one, other, axes, wide, onto


def _across(
    clique: Attrs, free: Sequence[Attrs], up: Contraction | None, sizes: Mapping[str, int], library: Arrays
) -> list[tuple[Contraction, tuple[int, ...]]] | None:
    """How each of the free tables is read off the others, if that costs less than the whole clique."""
    if not frozenset(clique).issubset(attr for one in free for attr in one):
        return None  # an attribute that is in no table
    found = []
    cost = 0.0 if up is None else up.cost
    for one in free:
        others = [other for other in free if other is not one]
        if others:
            contraction = Contraction(others, one, sizes, library)
            wide = tuple(sizes[attr] if attr in contraction.attrs else 1 for attr in one)
            found.append((contraction, wide))
            cost += contraction.cost
    # Written down, each product, each table, the message and the reply take one pass over the clique.
    passes = 2 * len(free) + (1 if up is not None else -1)
    return found if cost <= passes * (math.prod(sizes[attr] for attr in clique) + CALL) else None
