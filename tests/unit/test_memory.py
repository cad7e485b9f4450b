"""Freed memory goes back to the system where the C library can do that, and nothing happens elsewhere."""

import sys
from pathlib import Path

import numpy as np
import pytest

from sidelight import _memory


def resident_mb():
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:")) / 1024


def test_where_the_c_library_cannot_nothing_happens(monkeypatch):
    monkeypatch.setattr(_memory, "_trim", lambda: None)

    _memory.give_back()


@pytest.mark.skipif(sys.platform != "linux" or _memory._trim() is None, reason="glibc alone can give back")
def test_scattered_memory_that_was_freed_is_given_back():
    # Small enough to be taken from the heap; every hundredth is kept, so that its end cannot simply be cut.
    taken = [np.ones(1000) for _ in range(10_000)]
    kept = taken[::100]
    del taken
    before = resident_mb()

    _memory.give_back()

    assert len(kept) == 100
    assert before - resident_mb() > 20
