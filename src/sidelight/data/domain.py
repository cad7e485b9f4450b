"""Attributes, sizes and impossible combinations: all of the data that the mathematics sees."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from sidelight._check import brief, hint, listed
from sidelight.errors import SchemaError, WorkloadError

Attrs = tuple[str, ...]
"""Names of attributes, in the order of a marginal's axes."""


_MOST_STEPS = 1_000_000
"""Most steps of the search for a possible record. Beyond it, a fit would find that there is none."""


@dataclass(frozen=True)
class Combination:
    """Values that no record holds together: any of those listed, of every attribute named.

    In a schema the values are labels as people write them; in a domain they are codes.

    >>> Combination.of({"age": ["0–15"], "marital": ["married", "widowed"]}).attrs
    ('age', 'marital')
    """

    attrs: Attrs
    values: tuple[tuple[str | int | float | bool, ...], ...]

    @classmethod
    def of(cls, said: Mapping[str, object]) -> "Combination":
        """From attribute names to a value, or a list of them."""
        values = [tuple(v) if isinstance(v, (list, tuple, set, frozenset)) else (v,) for v in said.values()]
        return cls(tuple(said), tuple(values))

    def __str__(self) -> str:
        return ", ".join(
            f"{attr} = {' or '.join(map(repr, values))}"
            for attr, values in zip(self.attrs, self.values, strict=True)
        )


@dataclass(frozen=True)
class Domain:
    """Which attributes there are, and how many values each can take.

    >>> domain = Domain.of({"age": 32, "sex": 2})
    >>> domain.size(), domain.project(["sex"]).shape
    (64, (2,))
    """

    attrs: Attrs
    shape: tuple[int, ...]
    impossible: tuple[Combination, ...] = field(default=(), compare=False, repr=False)
    """Codes that never occur together: declared, not learned. They change models, not how tables count."""

    def __post_init__(self) -> None:
        if len(self.attrs) != len(self.shape):
            raise SchemaError(f"{len(self.attrs)} attributes were named but {len(self.shape)} sizes given.")
        _require_distinct(self.attrs)
        for attr, size in zip(self.attrs, self.shape, strict=True):
            if not isinstance(size, int) or isinstance(size, bool) or not isinstance(attr, str):
                raise SchemaError("an attribute's name must be text, and its size a whole number.")
            if size < 1:
                raise SchemaError(f"attribute {attr!r} must have at least one value; got {size}.")
        for combination in self.impossible:
            self._check(combination)
        if self.impossible and not _has_possible(self.impossible, self.sizes):
            raise SchemaError(
                "the impossible combinations exclude every record. Check them against each other, and drop "
                "one that is wrong."
            )

    def _check(self, combination: Combination) -> None:
        if not combination.attrs or len(combination.attrs) != len(combination.values):
            raise SchemaError("an impossible combination must name attributes, each with its values.")
        for attr, codes in zip(combination.attrs, combination.values, strict=True):
            if attr not in self.sizes:
                raise SchemaError(
                    f"an impossible combination names {attr!r}; the schema has {listed(self.attrs)}."
                )
            size = self.sizes[attr]
            if not codes or any(type(code) is not int or not 0 <= code < size for code in codes):
                raise SchemaError(
                    f"an impossible combination must list codes of {attr!r} from 0 to {size - 1}; "
                    f"got {list(codes)!r}."
                )

    @classmethod
    def of(cls, sizes: Mapping[str, int]) -> "Domain":
        """The domain of a coded table: attribute name to number of values."""
        return cls(tuple(sizes), tuple(int(size) for size in sizes.values()))

    @cached_property
    def sizes(self) -> dict[str, int]:
        """Attribute name to number of values."""
        return dict(zip(self.attrs, self.shape, strict=True))

    @cached_property
    def _place(self) -> dict[str, int]:
        return {attr: place for place, attr in enumerate(self.attrs)}

    def __contains__(self, attr: object) -> bool:
        return attr in self.sizes

    def __len__(self) -> int:
        return len(self.attrs)

    def size(self, attrs: Iterable[str] | None = None) -> int:
        """How many cells the marginal on ``attrs`` has; the whole domain's if none are named."""
        if attrs is None:
            return math.prod(self.shape)
        wanted, sizes = tuple(attrs), self.sizes
        if not sizes.keys() >= (named := set(wanted)) or len(named) < len(wanted):
            self.require(wanted)
            _require_distinct(wanted)
        return math.prod([sizes[attr] for attr in wanted])

    def project(self, attrs: Iterable[str]) -> "Domain":
        """The domain of these attributes alone, in the order given."""
        wanted = tuple(attrs)
        self.require(wanted)
        return Domain(wanted, tuple(self.sizes[attr] for attr in wanted))

    def canonical(self, attrs: Iterable[str]) -> Attrs:
        """The same attributes in the domain's own order."""
        wanted = set(attrs)
        self.require(wanted)
        return tuple(sorted(wanted, key=self._place.__getitem__))

    def varying(self, attrs: Iterable[str]) -> Attrs:
        """Those of these attributes that have more than one value, in the domain's own order.

        >>> Domain.of({"age": 32, "country": 1, "sex": 2}).varying(["sex", "country", "age"])
        ('age', 'sex')
        """
        return tuple([attr for attr in self.canonical(attrs) if self.sizes[attr] > 1])

    def index(self, attrs: Iterable[str]) -> tuple[int, ...]:
        """Positions of these attributes in the domain."""
        wanted = tuple(attrs)
        self.require(wanted)
        return tuple([self._place[attr] for attr in wanted])

    def require(self, attrs: Iterable[str]) -> None:
        """Refuse attributes that this domain does not have."""
        unknown = [attr for attr in attrs if attr not in self.sizes]
        if unknown:
            named, guess = ", ".join(map(brief, unknown[:5])), hint(str(unknown[0]), self.attrs)
            raise WorkloadError(f"unknown attribute {named}; the schema has {listed(self.attrs)}.{guess}")


def joined(sets: Iterable[Iterable[str]]) -> list[tuple[Attrs, list[int]]]:
    """Connected components: the names that sets join, directly or through others, and the sets' places.

    >>> joined([("a", "b"), ("c", "d"), ("b", "e")])
    [(('c', 'd'), [1]), (('a', 'b', 'e'), [0, 2])]
    """
    found: list[tuple[dict[str, None], list[int]]] = []
    for place, names in enumerate(sets):
        held, places, apart = dict.fromkeys(names), [place], []
        for group in found:
            if group[0].keys().isdisjoint(held):
                apart.append(group)
            else:
                group[0].update(held)
                group[1].extend(places)
                held, places = group
        found = [*apart, (held, places)]
    return [(tuple(held), sorted(places)) for held, places in found]


def _require_distinct(attrs: Attrs) -> None:
    if len(set(attrs)) < len(attrs):
        twice = sorted(attr for attr, often in Counter(attrs).items() if often > 1)
        raise SchemaError(f"attribute names must be distinct; {', '.join(twice)} appears twice.")


def _has_possible(impossible: Sequence[Combination], sizes: Mapping[str, int]) -> bool:
    """Whether some record avoids every combination; a depth-first search over the attributes."""
    wanted = [dict(zip(c.attrs, map(frozenset, c.values), strict=True)) for c in impossible]
    order = list(dict.fromkeys(attr for combination in impossible for attr in combination.attrs))
    last = [max(order.index(attr) for attr in c.attrs) for c in impossible]
    codes = {attr: _told_apart(attr, wanted, sizes[attr]) for attr in order}
    steps = 0

    def avoids(place: int, alive: list[int]) -> bool:
        """Whether values of the attributes from ``place`` on can avoid all combinations still ``alive``."""
        nonlocal steps
        if not alive or steps > _MOST_STEPS:
            return True
        attr = order[place]
        seen = set()
        for code in codes[attr]:
            steps += len(alive)
            if steps > _MOST_STEPS:
                return True
            left = tuple(c for c in alive if attr not in wanted[c] or code in wanted[c][attr])
            if left in seen:
                continue
            seen.add(left)
            is_met = any(last[c] <= place for c in left)
            if not is_met and avoids(place + 1, list(left)):
                return True
        return False

    return avoids(0, list(range(len(wanted))))


def _told_apart(attr: str, wanted: Sequence[Mapping[str, frozenset[object]]], size: int) -> list[object]:
    """The codes that some combination lists, and one code that none lists, if there is one."""
    named = {code for combination in wanted for code in combination.get(attr, ())}
    spare = next((code for code in range(min(size, len(named) + 1)) if code not in named), None)
    return list(named) if spare is None else [spare, *named]
