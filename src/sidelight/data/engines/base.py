"""The tasks of an engine: count coded records, wherever they live.

The same questions get the same counts from every engine; ``tests/contracts/test_engine.py``
holds them to it. A further SQL engine is a ``Dialect`` and a ``SqlSource`` (see sql.py), a further cluster
a ``PartialEngine`` (see partial.py; dask.py is one).
"""

from collections.abc import Callable, Sequence
from math import prod
from typing import Literal, Protocol

import numpy as np
import numpy.typing as npt

from sidelight.data.count_source import CountSource
from sidelight.data.domain import Attrs, Domain
from sidelight.errors import TooLargeError

Counts = npt.NDArray[np.int64]
Codes = npt.NDArray[np.unsignedinteger]

ValueKind = Literal[
    "text", "integer", "real", "decimal", "boolean", "date", "timestamp", "instant", "time", "bytes"
]
"""The type of a column where it is stored; an instant is a timestamp with a zone. Lists have none."""

HERE = "on this machine"
"""Where records in memory and in files are counted; which of the two would tell how many there are."""

CHANGED = "the table was changed while it was being counted, and no longer fits its schema."
"""A first look found that every value fits, and a later one does not."""

_LARGEST_MARGINAL = 2**31

Tell = Callable[[float], None]
"""Is told which share of a count is done."""


def tell_nobody(share: float) -> None:
    """Whoever does not watch."""


class Engine(CountSource, Protocol):
    """Coded records, and where they are counted."""

    @property
    def counting(self) -> str:
        """Where and how records are counted, for the card. PRIVACY: it does not depend on records."""
        ...

    @property
    def records(self) -> int:
        """The exact number of records. PRIVACY: private under add-or-remove; for the curator alone."""
        ...

    def count(self, attrs: Attrs) -> Counts:
        """How many records each cell of this marginal holds; axes in the order asked."""
        ...

    def count_many(self, marginals: Sequence[Attrs], tell: Tell = tell_nobody) -> list[Counts]:
        """Several marginals, in one pass where that is faster; ``tell`` hears how far it is."""
        ...

    def codes(self) -> Codes:
        """All records as codes, one line each; brought into memory."""
        ...

    def distinct(self) -> tuple[Codes, Counts]:
        """The distinct records, and how often each occurs."""
        ...


def smallest_dtype(size: int, *, spare: int = 0) -> np.dtype[np.unsignedinteger]:
    """The smallest unsigned integers that hold the codes below ``size`` and ``spare`` more."""
    return np.min_scalar_type(max(size + spare - 1, 0))


def require_countable(domain: Domain, marginals: Sequence[Attrs]) -> None:
    """Refuse unknown attributes, and marginals that no machine should hold."""
    sizes = domain.sizes
    for attrs in marginals:
        if len(set(attrs)) < len(attrs) or not all(attr in sizes for attr in attrs):
            domain.project(attrs)  # which says what is wrong
        cells = prod([sizes[attr] for attr in attrs])
        if cells > _LARGEST_MARGINAL:
            raise TooLargeError(
                f"the marginal on {', '.join(attrs)} has {cells:.3g} cells, more than can be counted at once "
                f"({_LARGEST_MARGINAL}). Ask for fewer attributes, or give its columns fewer bins."
            )
