"""The end of a run that failed: its checkpoint can resume it, or its unspent budget goes back."""

from pathlib import Path

from sidelight.curator.journal import Journal
from sidelight.errors import DataError, LedgerUnavailableError, SidelightError
from sidelight.privacy.chained_ledger import Ledger

_PASSING = (KeyboardInterrupt, OSError, MemoryError, DataError, LedgerUnavailableError)
"""Errors that the same call may not meet again."""


def end_failed(
    error: BaseException,
    ledger: Ledger,
    run: str,
    journal: Journal | None,
    folder: Path | None,
    *,
    is_new: bool,
) -> None:
    """Leave what was paid for to be resumed, and say so on the error; or else end the run in the ledger.

    ``is_new`` says that the run made its folder, which is removed if nothing was paid for.
    """
    if journal is not None and (journal.outputs or _has_paid(ledger, run)):
        if isinstance(error, _PASSING):
            error.add_note(
                f"{_spent_so_far(ledger, run)}What was paid for is kept in {folder}. Repeat the same command "
                "or call: it resumes, and pays nothing twice."
            )
        return
    if isinstance(error, KeyboardInterrupt):
        error.add_note(_lost(ledger, run))
    if ledger.knows(run):
        ledger.close(run)
    if journal is not None:
        journal.discard()
    if folder is not None and is_new:
        Journal.remove(folder)


def _has_paid(ledger: Ledger, run: str) -> bool:
    return ledger.knows(run) and any(ledger.events(run))


def _lost(ledger: Ledger, run: str) -> str:
    """The cost of an interrupted run that nobody can resume, in a sentence."""
    if not _has_paid(ledger, run):
        return "Nothing was charged. The same command or call starts anew."
    return (
        f"ε = {_spent(ledger, run):.4g} is spent, and nothing was kept to resume from: name a checkpoint "
        "next time. The same call starts anew, and pays again."
    )


def _spent_so_far(ledger: Ledger, run: str) -> str:
    try:
        return f"ε = {_spent(ledger, run):.4g} is spent so far. "
    except SidelightError:
        return ""  # the ledger is away, which must not hide what went wrong


def _spent(ledger: Ledger, run: str) -> float:
    """The ε that a run has paid so far, at the promise's δ."""
    budget = ledger.promise.budget
    return budget.epsilon_of(budget.tally(ledger.run(run).spent))
