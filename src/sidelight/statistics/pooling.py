"""Partial pooling: cells with little of their own lean on the rest.

    y_r = θ_r − p_r + error,  error ~ 𝒩(0, v_r)          what was measured, less what is expected of the cell
    θ_r − p_r ~ 𝒩(b, τ² + u_r)                           how cells differ from that; u_r if p_r is uncertain

For one τ, each cell's estimate is b̂ + B_r·(y_r − b̂), B_r = (τ² + u_r)/(τ² + u_r + v_r). τ and b are unknown,
so estimates and variances are averaged over both, all values being equally likely beforehand (Gelman 2006).
The standard errors then allow for τ and b being unknown, also with few cells.
"""

import numpy as np

from sidelight.statistics.grid import Array

_POINTS = 200


def pool(y: Array, v: Array, u: Array, *, most: float) -> tuple[Array, Array, Array]:
    """Estimates of θ_r − p_r, their standard errors, and B_r: how much of it is the cell's own.

    ``most`` bounds τ: half the width of the bounds.

    >>> estimate, error, own = pool(np.zeros(5), np.ones(5), np.zeros(5), most=10.0)
    >>> bool((np.abs(estimate) < 1e-9).all()), bool((error < 1).all()), bool((own < 0.5).all())
    (True, True, True)
    """
    scale = max(float(np.std(y)), float(np.sqrt(v.min())), 1e-12 * most)
    tau = np.linspace(0.0, min(most, 20 * scale), _POINTS)[:, None]
    total = tau**2 + u + v
    precision = (1 / total).sum(axis=1, keepdims=True)
    centre = (y / total).sum(axis=1, keepdims=True) / precision
    log = -0.5 * (np.log(total) + (y - centre) ** 2 / total).sum(axis=1) - 0.5 * np.log(precision[:, 0])
    chance = np.exp(log - log.max())
    chance /= chance.sum()

    own = (tau**2 + u) / total
    estimates = centre + own * (y - centre)
    variances = own * v + (1 - own) ** 2 / precision
    mean = chance @ estimates
    variance = chance @ (variances + (estimates - mean) ** 2)
    return mean, np.sqrt(variance), chance @ own
