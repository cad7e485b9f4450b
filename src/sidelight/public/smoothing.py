"""Smoothed public marginals: what public records say, and a little of what they might have said.

    t_c = marginal of the public records, each attribute of each record drawn anew, evenly among its
          values, with probability 1/(m + 1)

All t_c are marginals of one distribution. A value that public records never show behaves as if independent
of the rest once private data give it mass, and the rest keeps its own structure. spec/aperture 2, where
pseudo-records have all attributes drawn anew at once, so that a value never shown pulls all others apart.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sidelight.data.domain import Attrs
from sidelight.public.source import PublicRecords

Array = NDArray[np.float64]


def smoothed(public: PublicRecords, wanted: Sequence[Attrs]) -> dict[Attrs, Array]:
    """t_c of each attribute set."""
    found = {}
    for names, frequency in zip(wanted, public.frequencies(wanted), strict=True):
        for axis, attr in enumerate(names):
            anew = 1 / (public.records_of(attr) + 1)
            evenly = frequency.mean(axis=axis, keepdims=True)
            frequency = (1 - anew) * frequency + anew * evenly
        found[names] = frequency
    return found
