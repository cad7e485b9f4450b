"""The last words of a command or a worker that an error ends: one sentence, and an exit code.

PRIVACY: only sentences that sidelight wrote itself are repeated. The text of any other error may quote data,
so its kind and its place in the code are told, and nothing else.

>>> fault_of(ValueError("4711")).code, "4711" in fault_of(ValueError("4711")).words
(1, False)
>>> fault_of(AssertionError()).words[:39]
'sidelight stopped on an AssertionError '
"""

import os
import traceback
from dataclasses import dataclass

from sidelight.errors import SidelightError

BUG, BAD_INPUT, INTERRUPTED = 1, 2, 130
"""Exit codes: see ``cli/app.py``."""


@dataclass(frozen=True)
class Fault:
    """How a command or a worker ended, and what to say of it."""

    code: int
    words: str


def fault_of(error: BaseException) -> Fault:
    """The exit code and the sentence for an error."""
    if isinstance(error, SidelightError):
        return Fault(error.exit_code, str(error))
    if isinstance(error, KeyboardInterrupt):
        return Fault(INTERRUPTED, _interrupted(error))
    if isinstance(error, MemoryError) or (isinstance(error, OSError) and error.strerror):
        return _refused_by_the_machine(error)
    return Fault(BUG, _unexpected(error))


def _interrupted(stop: BaseException) -> str:
    """How to go on: the run's own note where it can be resumed, else where to see what was charged."""
    notes = getattr(stop, "__notes__", None)
    if notes:
        return " ".join(["interrupted.", *notes])
    return (
        "interrupted; nothing was kept to resume from. The same command starts anew, and "
        "`sidelight ledger show` tells whether anything was charged."
    )


def _refused_by_the_machine(error: MemoryError | OSError) -> Fault:
    """Memory or disk gave out; a run that had paid can be resumed, and says so in its notes."""
    if isinstance(error, MemoryError):
        said = "there is not enough memory. Ask for less: coarser bins, fewer records, a smaller model."
    else:
        said = f"{error.strerror}: {error.filename}" if error.filename else str(error.strerror)
    notes = getattr(error, "__notes__", [])
    return Fault(INTERRUPTED if notes else BAD_INPUT, " ".join([said, *notes]))


def _unexpected(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    place = f"{os.path.basename(frames[-1].filename)}:{frames[-1].lineno}" if frames else "its start"
    kind = type(error).__name__
    an = "an" if kind[0] in "AEIOU" else "a"
    return (
        f"sidelight stopped on {an} {kind} at {place}; this is a bug, please report it. "
        "Its text is withheld, since it may hold data; set SIDELIGHT_DEBUG=1 to see it on your own machine."
    )
