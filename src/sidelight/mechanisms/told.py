"""Facts that single mechanisms tell about their own runs, for the release's card.

All of it is an output of the mechanism, or public: it may be published like the rest of the outcome.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal

from sidelight.data.domain import Attrs
from sidelight.data.grouping import Groups
from sidelight.errors import ReleaseError


@dataclass(frozen=True, kw_only=True)
class GroupedValues:
    """An attribute whose neighbouring values were modelled in groups."""

    attr: str
    values: int
    """How many values it has."""
    starts: tuple[int, ...]
    """The first code of each group."""

    def __post_init__(self) -> None:
        if not all(a < b for a, b in pairwise((*self.starts, self.values))) or self.starts[:1] != (0,):
            raise ReleaseError("the groups of an attribute's values must follow each other from code 0 on.")

    @classmethod
    def of(cls, attr: str, groups: Groups) -> "GroupedValues":
        """The attribute, from the group of each of its codes.

        >>> GroupedValues.of("age", (0, 0, 1, 2, 2)).starts
        (0, 2, 3)
        """
        return cls(
            attr=attr, values=len(groups), starts=tuple(groups.index(g) for g in range(max(groups) + 1))
        )

    @property
    def sentence(self) -> str:
        """The grouping, in a sentence for a reader of the release."""
        return (
            f"{self.attr}: its {self.values} values were modelled in {len(self.starts)} groups. Within a "
            "group, a value has the same share whatever the other attributes are."
        )


@dataclass(frozen=True, kw_only=True)
class JointRound:
    """One round of JAM: which marginal was taken, and from where."""

    marginal: Attrs
    source: Literal["private", "public"]
    stddev: float
    """σ of the measurement; of a public marginal, σ of the measurement that it was preferred to."""


@dataclass(frozen=True, kw_only=True)
class OpenedMarginal:
    """How far APERTURE moved away from the public data on one measured marginal."""

    attrs: Attrs
    spread: float
    """Over-dispersion s of the private counts around the public model, over what sampling explains: 1 where
    public and private people are alike."""
    trust: float
    """Trust in the noisy answer: 0 keeps the public model, 1 takes the answer."""
    moved: float
    """L1 distance of the release from the model of public data, as a share of all records: from 0 to 2."""
    expected_error: float
    """Expected L1 error of the release, as a share of all records."""
    told_by_public: bool | None = None
    """Whether the public data tell of all these attributes; where they do not, ``moved`` is the distance from
    a mere guess. None on older cards."""


@dataclass(frozen=True, kw_only=True)
class Opening:
    """How far APERTURE opened its public model to private measurements."""

    rounds: int
    """Marginals that were selected and measured for the tree."""
    asked_again: tuple[str, ...]
    """Attributes that were measured more than once, in order."""
    public_records: float
    """0 without public data."""
    public_marginals: tuple[Attrs, ...]
    """Marginals of two attributes and more that the public model holds."""
    marginals: tuple[OpenedMarginal, ...]
    """One for each measured marginal."""
    particle_share: float
    """Share of the budget that was kept for particles."""
    cut: tuple[str, ...] = ()
    """Attributes whose public relations were cut off."""
    is_bare: bool = False
    """Whether the answers without any public relation were found better than with them, at the end."""
    alpha: Mapping[str, float] = field(default_factory=dict, repr=False)
    """How strongly the public model was smoothed, by attribute; only on cards of older releases."""
    records_share: float | None = None
    """Share of the release that comes from other public trees and from public records; None where there was
    nothing to take."""
    particle_rounds: int = 0
    """Marginals that were selected and measured for the particles."""
    particles: int = 0
    """Weighted records in the release."""
