"""Ctrl-C: held back between a draw of noise and its line in the journal, and told what was spent by then."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Hold Ctrl-C (SIGINT) back while the block runs, and let it come when the block has ended.

    Python hands signals to the main thread alone, so nothing is held back in another one.
    """
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield
        return
    held: list[int] = []
    signal.signal(signal.SIGINT, lambda number, _: held.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if held:
            signal.raise_signal(signal.SIGINT)


@contextmanager
def told(words: str) -> Iterator[None]:
    """Whoever stops the block by Ctrl-C reads these words, unless they were told more already."""
    try:
        yield
    except KeyboardInterrupt as stop:
        if not getattr(stop, "__notes__", None):
            stop.add_note(words)
        raise
