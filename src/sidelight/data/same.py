"""A guard against the commonest slip: the private table, given as public data too.

Public data are read without paying. Somebody who names the same file twice would publish it; nothing
downstream could tell. The guard looks at files and objects alone, tells the curator's own terminal,
and nothing of it reaches a release.
"""

import filecmp
import warnings
from pathlib import Path
from typing import Any

from sidelight.errors import PrivacyWarning


def warn_if_same(private: Any, public: Any) -> None:
    """Warn where public data are the private table itself, as one object or byte for byte."""
    given = public if isinstance(public, list | tuple) else [public]
    if any(_is_same(private, one) for one in given):
        warnings.warn(
            "the public data equal the private table, byte for byte: that is not public data. All of it is "
            "read without paying, so the promise would be empty. Name public data that may be published.",
            PrivacyWarning,
            stacklevel=3,
        )


def _is_same(private: Any, public: Any) -> bool:
    if public is None:
        return False
    if not (isinstance(private, str | Path) and isinstance(public, str | Path)):
        return private is public
    try:
        return filecmp.cmp(private, public, shallow=False)
    except (OSError, ValueError):  # a database, a glob, a folder: not two files
        return str(private) == str(public)
