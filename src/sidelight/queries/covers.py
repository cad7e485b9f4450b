"""Many marginals from few tables: each table is counted once, and all marginals inside it are sums of it.

Counting takes as long as there are records, summing as long as there are cells. So every marginal, the
largest first, is widened by the smallest attributes as long as it stays below a number of cells; whatever
lies inside need not be counted any more.
"""

from collections.abc import Sequence

from sidelight.data.domain import Attrs, Domain


def covers(domain: Domain, wanted: Sequence[Attrs], *, most_cells: int) -> list[tuple[Attrs, list[int]]]:
    """Tables that hold all marginals wanted, and the places of those that each of them holds.

    >>> covers(Domain.of({"a": 9, "b": 2, "c": 3}), [("a",), ("b", "a"), ("c", "b")], most_cells=20)
    [(('a', 'b'), [1, 0]), (('b', 'c'), [2])]
    """
    smallest = sorted(domain.attrs, key=lambda attr: domain.sizes[attr])
    bit = {attr: 1 << place for place, attr in enumerate(domain.attrs)}
    masks = [sum(bit[attr] for attr in attrs) for attrs in wanted]
    sizes = [domain.size(attrs) for attrs in wanted]
    left = sorted(range(len(wanted)), key=lambda place: -sizes[place])
    found = []
    while left:
        table, cells = masks[left[0]], sizes[left[0]]
        for attr in smallest:
            if cells * domain.sizes[attr] > most_cells:
                break
            if not table & bit[attr]:
                table, cells = table | bit[attr], cells * domain.sizes[attr]
        inside = [place for place in left if not masks[place] & ~table]
        left = [place for place in left if masks[place] & ~table]
        found.append((tuple(attr for attr in domain.attrs if table & bit[attr]), inside))
    return found
