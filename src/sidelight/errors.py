"""Every exception that sidelight raises.

    SidelightError
    ├── InputError            bad input or usage; nothing was read or charged     exit code 2
    │   ├── SchemaError       the schema itself is wrong
    │   ├── DataError         a table does not fit its schema, or cannot be read
    │   ├── WorkloadError     a query or workload asks for what is not there
    │   ├── SettingError      a parameter is outside its range
    │   ├── TooLargeError     it would not fit in memory
    │   ├── NotFittedError    a Synthesizer was asked before it was fitted
    │   └── MissingExtraError an optional dependency is not installed
    ├── LedgerError           a ledger is tampered with, foreign or unreadable    exit code 2
    ├── CheckpointError       a journal belongs to another run, or was edited     exit code 2
    ├── ReleaseError          a release folder is incomplete, newer or edited     exit code 2
    │   └── UnsavedError      a release was paid for, and could not be written    exit code 130
    └── BudgetExhaustedError  the budget said no                                  exit code 3

A message says what was asked, what was found, and what to do next. It never holds a
private value, nor an exact count, nor the address of a database.
"""

from sidelight.sources import without_addresses


class SidelightError(Exception):
    """The root of all errors that sidelight raises on purpose."""

    exit_code = 2

    def __init__(self, *said: object) -> None:
        # PRIVACY: whoever wrote the sentence should have named the source by sources.source_name.
        super().__init__(*(without_addresses(one) if isinstance(one, str) else one for one in said))


class InputError(SidelightError, ValueError):
    """Bad input or usage. Nothing was charged."""


class SchemaError(InputError):
    """The schema itself is wrong."""


class DataError(InputError):
    """A table does not fit its schema, or cannot be read."""


class WorkloadError(InputError):
    """A query or a workload asks for what is not there."""


class SettingError(InputError):
    """A parameter is outside its range."""


class TooLargeError(InputError):
    """What was asked for would not fit in memory."""


class NotFittedError(InputError, AttributeError):
    """A Synthesizer was asked for what only fitting gives it."""


class MissingExtraError(InputError, ImportError):
    """An optional dependency is not installed."""


class LedgerError(SidelightError):
    """A ledger is tampered with, foreign or unreadable."""


class CheckpointError(SidelightError):
    """A journal belongs to another run, or was edited."""


class ReleaseError(SidelightError):
    """A release folder is incomplete, of a newer version, or was edited."""


class UnsavedError(ReleaseError):
    """A release was paid for, and could not be written. What was paid for is kept."""

    exit_code = 130


class BudgetExhaustedError(SidelightError):
    """The budget said no. Nothing was read and nothing was charged."""

    exit_code = 3


BudgetExhausted = BudgetExhaustedError
"""The name that messages and people use."""


class PrivacyWarning(UserWarning):
    """A promise that keeps the letter of differential privacy but protects little."""
