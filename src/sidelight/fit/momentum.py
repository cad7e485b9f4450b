"""Momentum of accelerated gradient steps, which starts again whenever it points away.

    x ← a step from z;    z ← x + (m − 1)/m′ · (x − x before),    m′ = (1 + √(1 + 4m²))/2

Nesterov (1983); O'Donoghue and Candès (2015), "Adaptive restart for accelerated gradient schemes": where
the step from z went against the way from the last x to this one, m′ is 1 again and z is x.
"""

import math


def followed(momentum: float, *, is_away: bool) -> tuple[float, float]:
    """The next momentum, and the share of the last way by which the next step starts ahead.

    >>> followed(1.0, is_away=False)
    (1.618033988749895, 0.0)
    >>> followed(1.618033988749895, is_away=True)
    (1.0, 0.0)
    """
    if is_away:
        return 1.0, 0.0
    following = (1.0 + math.sqrt(1.0 + 4.0 * momentum**2)) / 2.0
    return following, (momentum - 1.0) / following
