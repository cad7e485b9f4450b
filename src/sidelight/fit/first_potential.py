"""Where the potential of a newly measured marginal starts: as near to the answer as all else allows.

    t ← max(y, min(p, σ/10)), scaled in turn to p's own one-way marginals;    θ ← ln(t/p)

p is what the model says so far. A step of proportional fitting towards the answer itself would carry its
noise into one-way marginals that are known already; with these kept, a fit starts much nearer to its end.

Deming, Stephan (1940), for the scaling. PRIVACY: a function of noisy answers and a model; post-processing.
"""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

_SWEEPS = 3
_FLOOR = 0.1
"""A cell falls to no less than this part of its noise, unless it was below: empty cells return slowly."""
_MOST = 30.0
"""A cell starts at most e³⁰ from where it was."""


def first_potential(p: Array, *, answer: Array, stddev: Array) -> Array:
    """The potential to start from; all of one shape, and in the same unit. Cells without mass get 0.

    >>> p, answer = np.full((2, 2), 0.25), np.array([[0.6, 0.2], [0.2, 0.2]])
    >>> theta = first_potential(p, answer=answer, stddev=np.full((2, 2), 0.01))
    >>> (p * np.exp(theta)).round(3).tolist()
    [[0.317, 0.183], [0.183, 0.317]]
    """
    target = np.maximum(answer, np.minimum(p, _FLOOR * stddev))
    for _ in range(_SWEEPS):
        for axis in range(p.ndim):
            others = tuple(other for other in range(p.ndim) if other != axis)
            now, wanted = (table.sum(axis=others, keepdims=True) for table in (target, p))
            target = target * np.divide(wanted, now, out=np.zeros(now.shape), where=now > 0)
    held = (p > 0) & (target > 0)
    ratio = np.divide(target, p, out=np.ones(p.shape), where=held)
    return np.asarray(np.clip(np.log(ratio), -_MOST, _MOST))
