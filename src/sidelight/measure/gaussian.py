"""MEASURE with Gaussian noise: y = q(D) + 𝒩_ℤ(0, σ²) per coordinate."""

import numpy as np
from numpy.typing import NDArray

from sidelight.privacy import event
from sidelight.privacy.noise import NoiseSource, discrete_gaussian


def gaussian(noise: NoiseSource, exact: NDArray[np.int64], event: event.Gaussian) -> NDArray[np.int64]:
    """Exact counts plus discrete Gaussian noise of the variance that was paid for.

    >>> from fractions import Fraction
    >>> from sidelight.privacy.budget import Rho
    >>> from sidelight.testing import SeededNoise
    >>> paid = event.Gaussian.at(Rho(Fraction(1, 2)), what="marginal (a)", l2_squared=Fraction(1))
    >>> gaussian(SeededNoise(7), np.array([10, 20, 30]), paid).shape
    (3,)
    """
    drawn = discrete_gaussian(noise, event.variance, exact.size)
    # PRIVACY: integers added to integers; there is no rounding that could tell of the exact count.
    return exact.astype(np.int64, casting="safe") + drawn.reshape(exact.shape)
