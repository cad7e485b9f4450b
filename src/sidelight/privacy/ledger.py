"""A ledger that ends with its process, and the warning where nothing records a spending.

``chained_ledger.py`` says what every ledger does; ``sql_ledger.py`` keeps its lines on disk.
"""

import sys
import threading
import traceback
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from sidelight.errors import PrivacyWarning, UnrecordedWarning
from sidelight.privacy.chain import Line, promise_line
from sidelight.privacy.chained_ledger import Ledger
from sidelight.privacy.pages import MemoryPages, Pages
from sidelight.privacy.promise import Promise
from sidelight.privacy.replay import replayed


class MemoryLedger(Ledger):
    """A ledger that ends with the process: for experiments, and for a single release.

    >>> from fractions import Fraction
    >>> from sidelight.privacy.budget import Budget, Epsilon
    >>> from sidelight.privacy.unit import Unit
    >>> ledger = MemoryLedger(Promise(Budget(epsilon=1.0, delta=0.0), Unit("replace"), "adult"))
    >>> run = ledger.begin(Epsilon(Fraction(1, 4)), label="a first look")
    >>> ledger.left
    Fraction(3, 4)
    >>> ledger.close(run)
    >>> ledger.left
    Fraction(1, 1)
    """

    def __init__(self, promise: Promise) -> None:
        self.promise = promise
        self.where = "in memory"
        self._known = promise_line(promise)
        self._pages = MemoryPages([self._known])
        self._lock = threading.RLock()

    @classmethod
    def of_lines(cls, lines: Sequence[Line]) -> "MemoryLedger":
        """A ledger in memory that goes on after these lines, once all of them are verified."""
        promise, last = replayed(lines, where="in memory")
        ledger = cls(promise)
        ledger._pages = MemoryPages([])
        for line in lines:
            ledger._pages.add(line)
        ledger._known = last
        return ledger

    @contextmanager
    def _transaction(self, *, to_write: bool) -> Iterator[Pages]:
        with self._lock:
            yield self._pages


_OURS = str(Path(__file__).resolve().parent.parent)
"""Where our own code is."""


def warn_unrecorded(promise: Promise) -> None:
    """Warn that privacy is about to be spent and no ledger records it, at the line that called us.

    A promise of little worth is doubted here, as a ledger doubts it where it is opened.
    """
    frames = [frame.f_code.co_filename for frame, _ in traceback.walk_stack(sys._getframe())]
    ours = max(place for place, name in enumerate(frames) if name.startswith(_OURS))
    warnings.warn(
        "this spending is recorded nowhere: without a ledger, nothing adds it to what else is spent on the "
        "table. Name one with ledger=… or --ledger; sl.Ledger.open(…) or `sidelight ledger open` makes it.",
        UnrecordedWarning,
        stacklevel=ours + 2,
    )
    for doubt in promise.doubts_of_epsilon:
        warnings.warn(doubt, PrivacyWarning, stacklevel=ours + 2)
