"""How strongly two attributes are associated, in the private table and in a synthetic one.

    φ²  = Σ n_ij² / (n_i· n_·j) − 1,      φ̃² = max(0, φ² − (r − 1)(c − 1)/(n − 1))
    Ṽ   = √(φ̃² / min(r̃ − 1, c̃ − 1)),     r̃ = r − (r − 1)²/(n − 1)

Ṽ is Cramér's V, 0 for independent attributes and 1 where one determines the other, with Bergsma's
correction: without it, attributes of many values look related in any small table. r and c count the
values that occur. Bergsma (2013), "A bias-correction for Cramér's V and Tschuprow's T".

PRIVACY: the difference to a private table's Ṽ is as private as that table.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from sidelight.data.domain import Attrs, Domain
from sidelight.data.table import Table
from sidelight.errors import SettingError, TooLargeError

_MOST_CELLS = 2**24
"""Most cells that are counted at once (128 MiB); a pair of attributes with more is left out."""


@dataclass(frozen=True, kw_only=True)
class AssociationGap:
    """|Ṽ(D) − Ṽ(A)| over the pairs of attributes, but for those too large to count.

    PRIVATE: exact answers went into it.
    """

    mean: float
    largest: float


def association(counts: NDArray[np.integer]) -> float:
    """Cramér's V of a two-way marginal, corrected for bias.

    >>> association(np.array([[50, 0], [0, 50]])), association(np.array([[25, 25], [25, 25]]))
    (1.0, 0.0)
    """
    table = np.asarray(counts, dtype=np.float64)
    table = table[table.sum(axis=1) > 0][:, table.sum(axis=0) > 0]
    n = float(table.sum())
    if n < 2 or min(table.shape) < 2:
        return 0.0
    expected = np.outer(table.sum(axis=1), table.sum(axis=0))
    chance = (table.shape[0] - 1) * (table.shape[1] - 1) / (n - 1)
    corrected = max(0.0, float((table * table / expected).sum()) - 1 - chance)
    most = min(size - (size - 1) ** 2 / (n - 1) for size in table.shape) - 1
    return min(1.0, float(np.sqrt(corrected / most))) if most > 0 else 0.0


def association_gap(private: Table, synthetic: Table) -> AssociationGap:
    """How far the associations of all pairs of attributes are from those of the private table."""
    domain = private.domain
    if len(domain) < 2:
        raise SettingError("associations are between two attributes; the schema has only one.")
    kept: list[Attrs] = [pair for pair in combinations(domain.attrs, 2) if domain.size(pair) <= _MOST_CELLS]
    if not kept:
        raise TooLargeError("every pair of attributes has too many cells to count; coarsen the schema.")
    gaps: list[float] = []
    for block in _blocks(domain, kept):
        both = zip(private.count_many(block), synthetic.count_many(block), strict=True)
        gaps += [abs(association(exact) - association(drawn)) for exact, drawn in both]
    return AssociationGap(mean=float(np.mean(gaps)), largest=max(gaps))


def _blocks(domain: Domain, pairs: list[Attrs]) -> Iterator[list[Attrs]]:
    """The pairs in order, in blocks of at most ``_MOST_CELLS`` cells."""
    block: list[Attrs] = []
    held = 0
    for pair in pairs:
        size = domain.size(pair)
        if block and held + size > _MOST_CELLS:
            yield block
            block, held = [], 0
        block.append(pair)
        held += size
    yield block
