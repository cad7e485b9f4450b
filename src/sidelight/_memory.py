"""Freed memory, given back to the system.

The C library keeps what was freed for later. After a stage that took much, in pieces of many sizes, that is
scattered: the next stage finds little of it whole, and the process grows by what it already has.
"""

import ctypes
import sys
from functools import cache
from typing import Any


def give_back() -> None:
    """Return the pages that nothing is on any more, where the C library can (glibc); else do nothing."""
    trim = _trim()
    if trim is not None:
        trim(0)


@cache
def _trim() -> Any:
    return getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
