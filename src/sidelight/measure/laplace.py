"""MEASURE with Laplace noise: y = q(D) + Lap_ℤ(b) per coordinate."""

import numpy as np
from numpy.typing import NDArray

from sidelight.privacy import event
from sidelight.privacy.noise import NoiseSource, discrete_laplace


def laplace(noise: NoiseSource, exact: NDArray[np.int64], event: event.Laplace) -> NDArray[np.int64]:
    """Exact counts plus discrete Laplace noise of the scale that was paid for.

    >>> from fractions import Fraction
    >>> from sidelight.privacy.budget import Epsilon
    >>> from sidelight.testing import SeededNoise
    >>> paid = event.Laplace.at(Epsilon(Fraction(1, 2)), what="marginal (a)", l1=Fraction(2))
    >>> laplace(SeededNoise(7), np.array([10, 20, 30]), paid).shape
    (3,)
    """
    drawn = discrete_laplace(noise, event.scale, exact.size)
    # PRIVACY: integers added to integers; there is no rounding that could tell of the exact count.
    return exact.astype(np.int64, casting="safe") + drawn.reshape(exact.shape)
