"""Attributes and sizes: all of the data that the mathematics sees."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from sidelight.errors import SchemaError, WorkloadError

Attrs = tuple[str, ...]
"""Names of attributes, in the order of a marginal's axes."""


@dataclass(frozen=True)
class Domain:
    """Which attributes there are, and how many values each can take.

    >>> domain = Domain.of({"age": 32, "sex": 2})
    >>> domain.size(), domain.project(["sex"]).shape
    (64, (2,))
    """

    attrs: Attrs
    shape: tuple[int, ...]

    def __post_init__(self) -> None:
        if len(self.attrs) != len(self.shape):
            raise SchemaError(f"{len(self.attrs)} attributes were named but {len(self.shape)} sizes given.")
        if len(set(self.attrs)) < len(self.attrs):
            twice = sorted({a for a in self.attrs if self.attrs.count(a) > 1})
            raise SchemaError(f"attribute names must be distinct; {', '.join(twice)} stands twice.")
        for attr, size in zip(self.attrs, self.shape, strict=True):
            if size < 1:
                raise SchemaError(f"attribute {attr!r} must have at least one value; got {size}.")

    @classmethod
    def of(cls, sizes: Mapping[str, int]) -> "Domain":
        """The domain of a coded table: attribute name to number of values."""
        return cls(tuple(sizes), tuple(int(size) for size in sizes.values()))

    @cached_property
    def sizes(self) -> dict[str, int]:
        """Attribute name to number of values."""
        return dict(zip(self.attrs, self.shape, strict=True))

    def __contains__(self, attr: object) -> bool:
        return attr in self.sizes

    def __len__(self) -> int:
        return len(self.attrs)

    def size(self, attrs: Iterable[str] | None = None) -> int:
        """How many cells the marginal on ``attrs`` has; the whole domain's if none are named."""
        return math.prod(self.shape if attrs is None else self.project(attrs).shape)

    def project(self, attrs: Iterable[str]) -> "Domain":
        """The domain of these attributes alone, in the order given."""
        wanted = tuple(attrs)
        self.require(wanted)
        return Domain(wanted, tuple(self.sizes[attr] for attr in wanted))

    def canonical(self, attrs: Iterable[str]) -> Attrs:
        """The same attributes in the domain's own order."""
        wanted = set(attrs)
        self.require(wanted)
        return tuple(attr for attr in self.attrs if attr in wanted)

    def index(self, attrs: Iterable[str]) -> tuple[int, ...]:
        """Positions of these attributes in the domain."""
        wanted = tuple(attrs)
        self.require(wanted)
        return tuple(self.attrs.index(attr) for attr in wanted)

    def require(self, attrs: Iterable[str]) -> None:
        """Refuse attributes that this domain does not have."""
        unknown = [attr for attr in attrs if attr not in self.sizes]
        if unknown:
            raise WorkloadError(
                f"unknown attribute {', '.join(map(repr, unknown))}; the schema has {', '.join(self.attrs)}."
            )
