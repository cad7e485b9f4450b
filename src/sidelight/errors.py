"""Every exception that sidelight raises.

    SidelightError
    ├── InputError            bad input or usage; nothing was read or charged     exit code 2
    │   ├── SchemaError       the schema itself is wrong
    │   ├── DataError         a table cannot be read
    │   │   └── MisfitError   a table does not fit its schema
    │   ├── WorkloadError     a query or workload cannot be answered
    │   ├── SettingError      a parameter is outside its range
    │   ├── TooLargeError     the request would not fit in memory
    │   ├── NotFittedError    a Synthesizer was used before it was fitted
    │   └── MissingExtraError an optional dependency is not installed
    ├── LedgerError           a ledger was edited, is another table's, unreadable exit code 2
    │   └── LedgerUnavailableError  it cannot be reached, is full or read-only    exit code 2
    ├── CheckpointError       a journal belongs to another run, or was edited     exit code 2
    ├── ReleaseError          a release folder is incomplete, newer or edited     exit code 2
    │   └── UnsavedError      a release was paid for, and could not be written    exit code 130
    └── BudgetExhaustedError  the remaining budget does not suffice               exit code 3
        └── PolicyError       the ledger's policy does not allow it               exit code 3

A message says what was asked, what was found, and what to do next. It never contains a
private value, an exact count or the address of a database.
"""

import warnings

from sidelight.sources import without_addresses


class SidelightError(Exception):
    """The root of all errors that sidelight raises on purpose."""

    exit_code = 2

    def __init__(self, *said: object) -> None:
        # PRIVACY: a second defence. The message should already name the source by sources.source_name.
        super().__init__(*(without_addresses(one) if isinstance(one, str) else one for one in said))


class InputError(SidelightError, ValueError):
    """Bad input or usage. Nothing was charged."""


class SchemaError(InputError):
    """The schema itself is wrong."""

    column: str | None = None
    """The column whose declaration is wrong, where it is one column's."""
    key: str | None = None
    """The key of that declaration, such as ``bins``; None where no single one is to blame."""


class DataError(InputError):
    """A table does not fit its schema, or cannot be read."""


class MisfitError(DataError):
    """A table does not fit its schema."""


class WorkloadError(InputError):
    """A query or a workload cannot be answered."""


class SettingError(InputError):
    """A parameter is outside its range."""


class TooLargeError(InputError):
    """The request would not fit in memory."""


class NotFittedError(InputError, AttributeError):
    """A Synthesizer was used before it was fitted."""


class MissingExtraError(InputError, ImportError):
    """An optional dependency is not installed."""


class LedgerError(SidelightError):
    """A ledger was edited, belongs to another table, or cannot be read."""


class LedgerUnavailableError(LedgerError):
    """A ledger cannot be reached or written now: its server or disk failed, is full, locked or read-only."""


class CheckpointError(SidelightError):
    """A journal belongs to another run, or was edited."""


class ReleaseError(SidelightError):
    """A release folder is incomplete, of a newer version, or was edited."""


class UnsavedError(ReleaseError):
    """A release was paid for, but could not be written. The paid answers are kept in its checkpoint."""

    exit_code = 130


class BudgetExhaustedError(SidelightError):
    """The remaining budget does not suffice. Nothing was read and nothing was charged."""

    exit_code = 3


BudgetExhausted = BudgetExhaustedError
"""The same, under the name that people type."""


class PolicyError(BudgetExhaustedError):
    """The ledger's policy does not allow this run. Nothing was read and nothing was charged."""


class PrivacyWarning(UserWarning):
    """A promise that is differentially private by the letter, but protects people little."""


class UnrecordedWarning(UserWarning):
    """Privacy that is spent while no ledger records it. Shown each time, unless a filter says otherwise."""


warnings.filterwarnings("always", category=UnrecordedWarning, append=True)  # filters of the user's come first


class PublicDataWarning(UserWarning):
    """Public data that were read in part: what had no place in the schema, and how much of it."""


class PublicDataNote(PublicDataWarning):
    """The same of a smaller part, which the schema gives a place: the nearest bin, or "other"."""
