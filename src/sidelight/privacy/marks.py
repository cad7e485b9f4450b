"""Marks: how a ledger or a checkpoint recognises its table without revealing anything about it.

A mark is a digest under a key of 256 random bits. Its name says what was digested: a file's bytes, the
records under a schema, a name (``data/fingerprint.py``). Two sets of marks are compared name by name.
If the digests under some name are equal, both are marks of one table. If they have names in common and all
of these differ, they are marks of two tables. If they have no name in common (records under two schemas),
they cannot be compared.

PRIVACY: whoever knew the key, and all records but one, could try that record out. So keys stay with
ledgers and checkpoints, and neither keys nor marks enter a release or a message.
"""

import secrets
from collections.abc import Mapping

Marks = Mapping[str, str]
"""Digests, by what was digested."""


def new_key() -> str:
    """A key that nobody can guess."""
    return secrets.token_hex(32)


RECORDS = "records"
"""The beginning of the name of a mark of records under a schema."""


def is_other_schema(ours: Marks, known: Marks) -> bool:
    """Whether a table was seen under schemas, and never under this one.

    >>> is_other_schema({"file": "1", "records b": "7"}, {"file": "1", "records a": "5"})
    True
    """
    here, seen = ({name for name in marks if name.startswith(RECORDS)} for marks in (ours, known))
    return bool(here and seen and not here & seen)


def same_table(ours: Marks, theirs: Marks) -> bool | None:
    """Whether two sets of marks belong to one table; None where they cannot be compared.

    >>> same_table({"file": "1", "records a": "5"}, {"file": "2", "records a": "5"})
    True
    >>> same_table({"file": "1"}, {"file": "2"}), same_table({"file": "1"}, {"name": "1"})
    (False, None)
    """
    shared = ours.keys() & theirs.keys()
    return any(ours[name] == theirs[name] for name in shared) if shared else None
