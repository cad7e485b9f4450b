"""A model, given what is known of a record: p(x | E) ∝ p(x) Π_a L_a(x_a).

L_a says how likely the evidence is for each value of attribute a: 1 for the values that were asked for and 0
for the others. Every model takes such a condition in (``given``): trees as potentials, weighted records and
tables as weights.

PRIVACY: a function of a released model; post-processing.
"""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from sidelight.data.domain import Attrs, Domain

Array = NDArray[np.float64]

Evidence = Mapping[str, Array]
"""Attribute to the likelihood L_a of each of its codes."""


def along(attrs: Attrs, evidence: Evidence) -> Array:
    """Π_a L_a over a table of these attributes."""
    found = np.ones([1] * len(attrs))
    for axis, attr in enumerate(attrs):
        if attr in evidence:
            found = found * evidence[attr].reshape([-1 if k == axis else 1 for k in range(len(attrs))])
    return found


def of_records(domain: Domain, records: NDArray[np.integer], evidence: Evidence) -> Array:
    """Π_a L_a of each record, one a line."""
    found = np.ones(len(records))
    for attr, likelihood in evidence.items():
        found *= likelihood[records[:, domain.index([attr])[0]]]
    return found
