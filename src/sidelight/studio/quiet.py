"""Calls whose warnings are no news: the page says the same itself, or somebody has confirmed it."""

import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

_LOCK = threading.Lock()


@contextmanager
def quietly(about: type[Warning]) -> Iterator[None]:
    """No warning of this kind leaves the block; one such block at a time, since filters are the process's."""
    with _LOCK, warnings.catch_warnings():
        warnings.simplefilter("ignore", about)
        yield
