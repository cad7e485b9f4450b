"""Marks: which table a ledger or a checkpoint belongs to, told without telling anything of it.

A mark is a digest under a key of 256 random bits, named by what it was taken of (``data/fingerprint.py``
says of what). Two sets of marks tell of one table where any mark of the same name is equal, and of two
where some are of the same name and none is equal. Marks of different names cannot be compared.

PRIVACY: whoever knew the key, and all records but one, could try that record out. So keys stay with
ledgers and checkpoints, and neither keys nor marks enter a release or a message.
"""

import secrets
from collections.abc import Mapping

Marks = Mapping[str, str]
"""Digests by what they were taken of."""


def new_key() -> str:
    """A key that nobody can guess."""
    return secrets.token_hex(32)


def same_table(ours: Marks, theirs: Marks) -> bool | None:
    """Whether two sets of marks tell of one table; None where they cannot be compared.

    >>> same_table({"file": "1", "records a": "5"}, {"file": "2", "records a": "5"})
    True
    >>> same_table({"file": "1"}, {"file": "2"}), same_table({"file": "1"}, {"name": "1"})
    (False, None)
    """
    shared = ours.keys() & theirs.keys()
    return any(ours[name] == theirs[name] for name in shared) if shared else None
