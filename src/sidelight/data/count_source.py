"""Sources of counts: a table, private or public, or a model. Queries and scores ask for nothing more."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from sidelight.data.domain import Attrs, Domain


class CountSource(Protocol):
    """Anything that can be counted: a private table, a public one, a model."""

    @property
    def domain(self) -> Domain:
        """The attributes and their sizes."""
        ...

    def count(self, attrs: Attrs) -> NDArray[Any]:
        """The marginal on ``attrs``, axes in the order asked; the total (0-d) if there are none."""
        ...


class ManyCountSource(CountSource, Protocol):
    """A model that counts many marginals faster together than one by one, and chooses their order itself."""

    def count_each(self, wanted: Sequence[Attrs]) -> Iterable[tuple[int, NDArray[np.float64]]]:
        """The index of each marginal among those wanted, and its counts."""
        ...


def count_each(source: CountSource, wanted: Sequence[Attrs]) -> Iterator[tuple[int, NDArray[np.float64]]]:
    """The index of each marginal wanted, and its counts: together where the source can, else one by one.

    A marginal that is wanted several times is counted once.
    """
    places: dict[Attrs, list[int]] = {}
    for place, attrs in enumerate(wanted):
        places.setdefault(attrs, []).append(place)
    once = list(places)
    together = getattr(source, "count_each", None)
    counted = (
        together(once) if together else ((index, source.count(attrs)) for index, attrs in enumerate(once))
    )
    for index, counts in counted:
        for place in places[once[index]]:
            yield place, counts


def margin(counts: NDArray[Any], held: Sequence[str], wanted: Sequence[str]) -> NDArray[Any]:
    """The marginal on some of the attributes that a table of counts has, axes in the order wanted.

    >>> margin(np.array([[1, 2], [3, 4]]), ("a", "b"), ("b",))
    array([4, 6])
    """
    kept = [attr for attr in held if attr in wanted]
    summed = counts.sum(axis=tuple(axis for axis, attr in enumerate(held) if attr not in wanted))
    return np.asarray(summed.transpose([kept.index(attr) for attr in wanted]))
