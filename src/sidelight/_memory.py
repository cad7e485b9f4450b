"""Memory: long arrays in blocks, and a refusal of what this machine cannot hold."""

import os
import resource
from collections.abc import Iterator

from sidelight.errors import TooLargeError


def blocks(size: int, at_once: int) -> Iterator[slice]:
    """Slices that cover an array, ``at_once`` entries each, so that temporary arrays stay small.

    >>> list(blocks(5, 2))
    [slice(0, 2, None), slice(2, 4, None), slice(4, 6, None)]
    """
    return (slice(start, start + at_once) for start in range(0, max(size, 1), at_once))


def check_room(size: int, what: str, *, room: int | None = None) -> None:
    """Refuse anything that takes more bytes than this machine has, or than this process may use.

    ``room`` is given for memory that is not this machine's own, say a GPU's.
    """
    if room is None:
        room = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        room = room if limit == resource.RLIM_INFINITY else min(room, limit)
    if size > room:
        raise TooLargeError(
            f"{what} would take about {size / 2**30:.3g} GiB of memory; there are {room / 2**30:.3g} GiB."
        )
