"""The grain: weighted records that stand beside the public model, and say what its trees cannot.

    r = l · the public records themselves + g · latent classes of them

A tree that is fitted to a sample errs by what it has no room for, and by what its sample happened to show.
The records have room for everything, and all the sampling error; latent classes (latent_classes.py) say a
little of every marginal. They all err in different places, so together they err less. What is drawn from
classes can follow noisy answers as records can (reweighting.py).

l and g are those with which one half of the public records comes closest to the other, beside one tree.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sidelight._memory import blocks
from sidelight.data.domain import Attrs
from sidelight.fit.proportional_fitting import most_likely
from sidelight.models.support import Support
from sidelight.public.latent_classes import LatentClasses
from sidelight.public.smoothing import smoothed
from sidelight.public.source import PublicRecords

Array = NDArray[np.float64]

_JUDGE_BY = 150
"""Marginals by which halves are compared."""
_SHARES = tuple((of / 10, by / 10) for of in range(11) for by in range(11 - of))
"""The shares l of public records and g of latent classes."""
_FLOOR = 0.1
"""Of a record, as a share of all, spread over a marginal's cells: none is thought to be without."""
_CELLS_AT_ONCE = 1 << 15
_LEAST_STRAY = 0.05
"""No model is believed to be free of error."""


def against_each_other(
    halves: Sequence[PublicRecords],
    held: Sequence[Attrs],
    chosen: Sequence[Attrs],
    alpha: Mapping[str, float],
    *,
    most: int,
) -> tuple[float, float, float]:
    """How far a tree of one half strays from the other half; and l and g, which mend it.

    Straying is what is left of the raw sampling variance once the records of a half became a tree: with σ²
    the variance of one half's shares, ‖a − b‖² is about 2σ² and ‖tree of A − b‖² is σ² + stray·σ².
    l and g are the shares of the half's own records and of their latent classes, of which at most so many are
    looked at, that come closest to the other half on marginals that no other one holds. Squared errors, each
    over how large an error is likely there (the root of what the tree expects), stand for absolute ones,
    which would hold the noise of the other half against all that is smoother.
    """
    asked = [attrs for attrs in held if len(attrs) > 1]
    asked = asked[:: max(1, len(asked) // _JUDGE_BY)]
    if not asked:
        return 1.0, 0.0, 0.0
    largest = {attrs for attrs in asked if not any(set(attrs) < set(other) for other in held)}
    tables = [half.kept_frequencies(asked) for half in halves]
    ratios, slope, bend = [], np.zeros(2), np.zeros((2, 2))
    for half, seen, unseen in zip(halves, tables, reversed(tables), strict=True):
        tree = most_likely(half.domain, smoothed(half, chosen, alpha=alpha))
        whole = half.whole(most=most, seed=0)
        classes = _classes(half, whole, seed=0) if whole else None
        for place, answer in tree.count_each(asked):
            attrs, floor = asked[place], _FLOOR / answer.size
            tried = classes.count(attrs) if classes and attrs in largest else None
            raw = strayed = 0.0
            for tree_says, own, other, drawn in _in_blocks(answer, seen[attrs], unseen[attrs], tried):
                raw += float(((own - other) ** 2).sum())
                strayed += float(((tree_says - other) ** 2).sum())
                if drawn is not None:
                    apart = np.stack([own - tree_says, drawn - tree_says])
                    weighted = apart / np.sqrt(tree_says + floor)
                    slope += weighted @ (other - tree_says)
                    bend += weighted @ apart.T
            ratios.append(strayed / raw if raw > 0 else 1.0)
    errors = [float(np.array(pair) @ bend @ pair - 2 * slope @ pair) for pair in _SHARES]
    return max(_LEAST_STRAY, 2 * float(np.median(ratios)) - 1), *_SHARES[int(np.argmin(errors))]


def _in_blocks(first: Array, *more: Array | None) -> Iterator[list[Any]]:
    """Some cells of all tables at a time: one may be as large as a model."""
    flat = [None if table is None else table.reshape(-1) for table in (first, *more)]
    for some in blocks(first.size, _CELLS_AT_ONCE):
        yield [None if table is None else table[some] for table in flat]


def grain(
    public: PublicRecords, *, records: float, classes: float, most: int, seed: int
) -> tuple[Support | None, float]:
    """The grain, with total 1, and its share beside trees.

    At most so many public records, and about as many draws: of what room there is, trees will take theirs.
    None where no public records tell of everything.
    """
    whole = public.whole(most=most, seed=seed)
    share = records + classes
    if whole is None or share <= 0:
        return None, 0.0
    parts = [(whole, records)] if records else []
    if classes:
        room = max(most // 2, most - len(whole.records))
        number = max(1, round(room * classes / (1 - records)))
        parts.append((_classes(public, whole, seed=seed).draw(number, seed=seed), classes))
    return Support.mixed(parts, total=1.0), share


def _classes(public: PublicRecords, whole: Support, *, seed: int) -> LatentClasses:
    """Latent classes of the records that tell of everything: as many as tell of the rarest attribute."""
    telling = min(public.records_of(attr) for attr in public.domain.attrs)
    return LatentClasses.of(whole.with_total(telling), seed=seed)
