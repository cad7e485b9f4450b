"""The law of the exponential-mechanism quantile as doubles: for tests, never for drawing."""

import numpy as np
from numpy.typing import NDArray


def chances(lengths: NDArray[np.int64], exponents: NDArray[np.float64]) -> NDArray[np.float64]:
    """How likely ``statistics.quantile.draw_stretch`` is to draw each stretch: ∝ Lᵢ·exp(−xᵢ)."""
    weights = lengths * np.exp(-exponents)
    return np.asarray(weights / weights.sum(), dtype=np.float64)
