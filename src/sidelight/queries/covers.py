"""Many marginals from few tables: each table is counted once, and marginals within it are sums of it.

The time of counting grows with the records, that of summing with the cells. So each marginal, the largest
first, is widened by the smallest attributes as long as it stays below a number of cells; all marginals
within it need not be counted themselves.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from math import comb
from typing import Any

from sidelight.data.domain import Attrs, Domain


def covers(domain: Domain, wanted: Sequence[Attrs], *, most_cells: int) -> list[tuple[Attrs, list[int]]]:
    """Tables that contain all marginals wanted, each with the indices of the marginals it contains.

    >>> covers(Domain.of({"a": 9, "b": 2, "c": 3}), [("a",), ("b", "a"), ("c", "b")], most_cells=20)
    [(('a', 'b'), [1, 0]), (('b', 'c'), [2])]
    """
    smallest = sorted(domain.attrs, key=lambda attr: domain.sizes[attr])
    bit = {attr: 1 << place for place, attr in enumerate(domain.attrs)}
    left: dict[int, list[int]] = {}
    for place in sorted(range(len(wanted)), key=lambda place: -domain.size(wanted[place])):
        left.setdefault(sum(bit[attr] for attr in wanted[place]), []).append(place)
    degrees = {mask.bit_count() for mask in left}
    found = []
    for first in list(left):
        if first not in left:
            continue
        table, cells = first, domain.size(wanted[left[first][0]])
        for attr in smallest:
            if cells * domain.sizes[attr] > most_cells:
                break
            if not table & bit[attr]:
                table, cells = table | bit[attr], cells * domain.sizes[attr]
        attrs = tuple(attr for attr in domain.attrs if table & bit[attr])
        inside = [place for mask in _inside(table, attrs, bit, left, degrees) for place in left.pop(mask)]
        found.append((attrs, inside))
    return found


def _inside(
    table: int, attrs: Attrs, bit: Mapping[str, int], left: Mapping[int, Any], degrees: Iterable[int]
) -> list[int]:
    """The marginals left that lie within a table: tries each of them, or each part of the table if fewer."""
    if sum(comb(len(attrs), degree) for degree in degrees) >= len(left):
        return [mask for mask in left if not mask & ~table]
    parts = (part for degree in degrees for part in combinations(attrs, degree))
    masks = (sum(bit[attr] for attr in part) for part in parts)
    return [mask for mask in masks if mask in left]
