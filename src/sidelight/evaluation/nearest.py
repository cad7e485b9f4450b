"""Are synthetic records nearer to the private ones than fresh records would be?

    share = Pr[d(a, D) < d(x, D)] + ½ Pr[d(a, D) = d(x, D)]

over synthetic records a and fresh records x of the same population; d is the number of attributes in
which a record differs from the nearest one of D. Fresh records are those of a table that the release
never saw, if there is one; otherwise every record of D in turn, compared with all others. A model that
copies private records has a share near 1, one that draws from the population ½, and one that knows little
about the population less than ½.

The share does not show that a release is private. A release may leak with a share of ½, since one person's
rare value among thousands of records hardly moves it; and common records are near to each other without any
leak. Only the promise in ε and δ protects people. The check is there to find a mistake, such as a private
table that was given as public data.

PRIVACY: distances to a private table's records are as private as the table.
"""

import numpy as np
from numpy.typing import NDArray

from sidelight.data.table import Table
from sidelight.errors import DataError

Codes = NDArray[np.integer]
Distances = NDArray[np.int64]

LOOKED_AT = 4000
"""Most records of each kind that are looked up: the share is then known to about 0.01."""
_RECORDS_AT_ONCE, _LOOKED_UP_AT_ONCE = 1 << 14, 32
"""Block sizes: half a megabyte of distances at a time fits into the processor's cache."""


def nearer_share(private: Table, synthetic: Table, *, held_out: Table | None = None, seed: int = 0) -> float:
    """How often a synthetic record is nearer to the private table than a fresh one; ½ is ideal."""
    records, counts = private.distinct()
    if counts.sum() < 2 or synthetic.records == 0 or (held_out is not None and held_out.records == 0):
        raise DataError("distances between records need at least two private records, and one of each other.")
    records = np.asarray(records, dtype=np.min_scalar_type(max(private.domain.shape) - 1), order="F")
    rng = np.random.default_rng(seed)
    drawn = nearest(_some(synthetic.codes(), rng), records)
    if held_out is not None:
        fresh = nearest(_some(held_out.codes(), rng), records)
    else:
        fresh = _from_the_others(records, counts, rng)
    return _first_is_smaller(drawn, fresh)


def nearest(wanted: Codes, records: Codes, *, own: NDArray[np.intp] | None = None) -> Distances:
    """In how many attributes each wanted record differs from the nearest of the records.

    ``own`` gives, for each wanted record, the position of that same record, which is then left out.

    >>> nearest(np.array([[0, 0], [1, 2]]), np.array([[0, 0], [1, 1]])).tolist()
    [0, 1]
    """
    attributes = records.shape[1]
    found = np.full(len(wanted), attributes, dtype=np.int64)
    least = 0 if own is None else 1
    wanted = np.asarray(wanted, dtype=records.dtype)
    for start in range(0, len(records), _RECORDS_AT_ONCE):
        columns = np.ascontiguousarray(records[start : start + _RECORDS_AT_ONCE].T)
        # A record already at the smallest possible distance is not looked up again.
        open_still = np.flatnonzero(found > least)
        for first in range(0, len(open_still), _LOOKED_UP_AT_ONCE):
            here = open_still[first : first + _LOOKED_UP_AT_ONCE]
            distances = _differences(wanted[here], columns)
            if own is not None:
                inside = (own[here] >= start) & (own[here] < start + columns.shape[1])
                distances[np.flatnonzero(inside), own[here][inside] - start] = attributes
            found[here] = np.minimum(found[here], distances.min(axis=1))
    return found


def _differences(wanted: Codes, columns: Codes) -> NDArray[np.unsignedinteger]:
    """In how many attributes each of the wanted records differs from each of the others."""
    kind = np.uint8 if len(columns) < 256 else np.uint16
    distances = np.zeros((len(wanted), columns.shape[1]), dtype=kind)
    for place, column in enumerate(columns):
        distances += (wanted[:, place, None] != column[None, :]).view(np.uint8)
    return distances


def _from_the_others(records: Codes, counts: NDArray[np.integer], rng: np.random.Generator) -> Distances:
    """Private records in the place of fresh ones: how far each is from the nearest of the others."""
    if counts.sum() > LOOKED_AT:
        taken = rng.multivariate_hypergeometric(counts, LOOKED_AT, method="marginals")
    else:
        taken = np.asarray(counts)
    alone = np.flatnonzero((taken > 0) & (counts == 1))
    others = nearest(records[alone], records, own=alone)
    return np.concatenate([others, np.zeros(int(taken.sum()) - len(alone), dtype=np.int64)])


def _some(codes: Codes, rng: np.random.Generator) -> Codes:
    """All records, or as many random ones as are looked at."""
    return codes if len(codes) <= LOOKED_AT else codes[rng.choice(len(codes), LOOKED_AT, replace=False)]


def _first_is_smaller(first: Distances, second: Distances) -> float:
    """Pr[a < b] + ½ Pr[a = b] over all pairs."""
    ordered = np.sort(second)
    below = np.searchsorted(ordered, first, side="left")
    up_to = np.searchsorted(ordered, first, side="right")
    return float(1 - (below + up_to).mean() / (2 * len(ordered)))
