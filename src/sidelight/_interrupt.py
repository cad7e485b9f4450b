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
def heard() -> Iterator[list[int]]:
    """The interrupts (Ctrl-C) that came while the block ran.

    A library that one stops while it is loaded may fail with an error of its own, and hide it.
    """
    found: list[int] = []
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield found
        return

    def interrupted(number: int, frame: object) -> None:
        found.append(number)
        raise KeyboardInterrupt

    signal.signal(signal.SIGINT, interrupted)
    try:
        yield found
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@contextmanager
def told(words: str) -> Iterator[None]:
    """Whoever stops the block by Ctrl-C reads these words, unless they were told more already."""
    try:
        yield
    except KeyboardInterrupt as stop:
        if not getattr(stop, "__notes__", None):
            stop.add_note(words)
        raise
