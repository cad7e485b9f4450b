"""Smoothed public marginals: what public records say, and a little of what they might have said.

    t_c = marginal of the public records, each attribute of each record drawn anew with probability
          α/(m + α): once in α evenly, else from the attribute's own marginal

All t_c are marginals of one distribution. A value that public records never show behaves as if independent
of the rest once private data give it mass, and the rest keeps its own structure. spec/aperture 2, where
pseudo-records have all attributes drawn anew at once, so that a value never shown pulls all others apart.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from sidelight.data.domain import Attrs
from sidelight.public.source import PublicRecords

Array = NDArray[np.float64]

_ALPHAS = (1.0, 4.0, 16.0, 64.0)
_PASSES = 2
"""Over all attributes, each time α of one given those of the others."""


def smoothed(
    public: PublicRecords, wanted: Sequence[Attrs], *, alpha: Mapping[str, float]
) -> dict[Attrs, Array]:
    """T_c of each attribute set: public frequencies with α records' worth of each attribute drawn anew."""
    attrs = sorted({attr for names in wanted for attr in names}, key=public.domain.attrs.index)
    ones = dict(zip(attrs, public.frequencies([(attr,) for attr in attrs]), strict=True))
    found = {}
    for names, frequency in zip(wanted, public.frequencies(wanted), strict=True):
        for axis, attr in enumerate(names):
            m, one, a = public.records_of(attr), ones[attr], alpha[attr]
            anew = ((a - 1) * one + 1 / one.size) / (m + a)
            kept = frequency * (m / (m + a))
            frequency = kept + frequency.sum(axis=axis, keepdims=True) * np.expand_dims(
                anew, _others(axis, names)
            )
        found[names] = frequency
    return found


def smoothing(halves: Sequence[PublicRecords], chosen: Sequence[Attrs]) -> dict[str, float]:
    """α of each attribute: the one, of powers of 4, with the least error of one half on the other.

    It is the error of the smoothed marginals themselves, so no model needs to be fitted. Attributes differ:
    one that another determines bears hardly any smoothing, one that goes with nothing bears much.
    """
    first, second = halves
    tables = [dict(zip(chosen, half.frequencies(chosen), strict=True)) for half in halves]
    alpha = {attr: 1.0 for attrs in chosen for attr in attrs}

    def error(touched: Sequence[Attrs], alpha: Mapping[str, float]) -> float:
        found = 0.0
        for half, other in ((first, tables[1]), (second, tables[0])):
            for attrs, frequency in smoothed(half, touched, alpha=alpha).items():
                found += float(np.abs(other[attrs] - frequency).sum())
        return found

    for _ in range(_PASSES):
        for attr in alpha:
            touched = [attrs for attrs in chosen if attr in attrs and len(attrs) > 1]
            tried = {a: error(touched, alpha | {attr: a}) for a in _ALPHAS} if touched else {1.0: 0.0}
            alpha[attr] = min(tried, key=lambda a: tried[a])
    return alpha


def _others(axis: int, names: Attrs) -> tuple[int, ...]:
    return tuple(place for place in range(len(names)) if place != axis)
