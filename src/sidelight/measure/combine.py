"""What several measurements say together about one marginal."""

import math
from collections.abc import Sequence

from sidelight.data.domain import Attrs, Domain
from sidelight.measure.measurement import Measurement
from sidelight.queries.query import Marginal


def noise_stddev(measurements: Sequence[Measurement], attrs: Attrs, domain: Domain) -> float | None:
    """σ of one cell of this marginal, from the inverse-variance mean of all that measured it.

    A measured marginal on more attributes counts too: its cells are summed, so each cell's
    variance is σ² times the number of cells that fall into it. None if nothing measured it.

    >>> import numpy as np
    >>> domain = Domain.of({"a": 2, "b": 8})
    >>> noise_stddev([Measurement(Marginal(("a", "b")), np.zeros(16), 5.0)], ("a",), domain)
    14.142135623730951
    """
    wanted = set(attrs)
    precision = 0.0
    for measurement in measurements:
        query = measurement.query
        if isinstance(query, Marginal) and wanted <= set(query.attrs):
            cells = domain.size(query.attrs) // domain.size(attrs)
            precision += measurement.precision / cells
    return 1 / math.sqrt(precision) if precision else None
