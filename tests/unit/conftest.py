"""Noise that says what a test wants it to say."""

import numpy as np
import pytest


class ScriptedNoise:
    """Words that a test wrote; it fails if too many are asked for."""

    is_private = False
    name = "scripted"

    def __init__(self, *script: int) -> None:
        self.script = list(script)

    def words(self, count: int) -> np.ndarray:
        taken, self.script = self.script[:count], self.script[count:]
        assert len(taken) == count, "more words were asked for than the script has"
        return np.array(taken, dtype=np.uint64)


@pytest.fixture(scope="session")
def scripted() -> type[ScriptedNoise]:
    return ScriptedNoise
