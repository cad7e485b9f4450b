"""Noise that can be repeated: for tests and experiments, never for a release."""

import numpy as np
from numpy.typing import NDArray

from sidelight import _check


class SeededNoise:
    """Words from a seeded generator, for experiments that must repeat. Not private.

    The samplers are the same; only the words are predictable, to anyone who guesses the seed.

    >>> SeededNoise(7).name
    'seeded noise: NOT PRIVATE'
    >>> bool((SeededNoise(7).words(3) == SeededNoise(7).words(3)).all())
    True
    """

    def __init__(self, seed: int) -> None:
        _check.natural(seed=seed)
        self._generator = np.random.Generator(np.random.PCG64(seed))

    @property
    def is_private(self) -> bool:
        return False

    @property
    def name(self) -> str:
        return "seeded noise: NOT PRIVATE"

    def words(self, count: int) -> NDArray[np.uint64]:
        return self._generator.integers(0, 2**64, size=count, dtype=np.uint64)
