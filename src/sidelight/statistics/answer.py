"""The answer to a mixed estimate: the number, its error, and each group's part in it and payment for it."""

import math
from dataclasses import dataclass, field
from typing import Any

from sidelight.privacy.event import Event
from sidelight.statistics.card import AnswerCard


@dataclass(frozen=True)
class GroupShare:
    """One group's part in a mixed estimate."""

    name: str
    epsilon: float | None
    """ε of its people; None if they are public."""
    records: float
    """How many values: public, or measured."""
    weight: float
    """Its share of the estimate."""
    estimate: float
    """The group's own noisy estimate; that of the merged set if it was merged; NaN if it was not asked."""
    standard_error: float
    events: tuple[Event, ...] = ()
    """The cost of the group's answers."""

    @property
    def was_asked(self) -> bool:
        """Whether it has an estimate of its own."""
        return not math.isnan(self.estimate)


@dataclass(frozen=True)
class MixedAnswer:
    """One number from many groups; all of it may be published."""

    estimate: float
    standard_error: float
    interval: tuple[float, float]
    groups: tuple[GroupShare, ...] = field(repr=False)
    card: AnswerCard = field(repr=False)
    """How the estimate was made: settings, unit, events, noise source."""

    @property
    def weights(self) -> tuple[float, ...]:
        """Each group's share of the estimate, in the order of the groups."""
        return tuple(group.weight for group in self.groups)

    @property
    def events(self) -> tuple[tuple[Event, ...], ...]:
        """The cost of each group, in the order of the groups; 0 for a public one."""
        return tuple(group.events for group in self.groups)

    def as_json(self) -> dict[str, Any]:
        """A plain form for programs."""
        return {
            "estimate": self.estimate,
            "standard_error": self.standard_error,
            "interval": list(self.interval),
            "groups": [
                {
                    "name": group.name,
                    "epsilon": group.epsilon,
                    "records": group.records,
                    "weight": group.weight,
                    "estimate": group.estimate if group.was_asked else None,
                    "standard_error": group.standard_error if group.was_asked else None,
                }
                for group in self.groups
            ],
            "card": self.card.as_json(),
        }
