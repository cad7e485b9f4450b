"""The card of a mean or a quantile: how the number was made and what was paid for it, and nothing private.

It is begun by the terms (``GroupTerms.card``), completed by the statistic, and read by attribute.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sidelight.privacy.event import Event
from sidelight.privacy.unit import Unit
from sidelight.releases.typed_json import to_json


@dataclass(frozen=True, kw_only=True)
class KnownValue:
    """σ² or a density, as the estimate used it."""

    source: str
    """How it is known: given, bound, public or private."""
    value: float


@dataclass(frozen=True, kw_only=True)
class AllowedBias:
    """How far the public groups may be off."""

    option: float | str | None
    """A bound on it, ``"measure"``, or None for not at all."""
    factor: float | None
    """With ``"measure"``: how many times the error of ignoring the public groups is allowed."""


@dataclass(frozen=True, kw_only=True)
class AnswerCard:
    """How a mean or a quantile was made; all of it may be published."""

    statistic: str
    """Which number was estimated."""
    bounds: tuple[float, float]
    """Public bounds of a value."""
    unit: Unit
    """What one person can change."""
    promise: str
    """Who is promised what, in a sentence."""
    accounting: str
    """The currency of costs: ``"pure"``, ε itself, or ``"zcdp"``, ρ."""
    delta: float | None
    """δ of every group; None under pure accounting."""
    events: tuple[Event, ...]
    """Every spending in its order."""
    noise: str
    """Where the noise came from."""
    noise_is_private: bool
    """Whether nobody can draw that noise again; false for seeded noise, which protects nobody."""
    versions: Mapping[str, str]
    """Versions of sidelight and Python."""

    # What only some statistics have to tell; None for the others.
    epsilon: float | None = None
    """The cost of the whole answer, where all people have one ε."""
    quantile: float | None = None
    """q, of a quantile."""
    weights: str | None = None
    """How the groups are weighted."""
    variance: KnownValue | None = None
    """σ² of one person's value."""
    density: KnownValue | None = None
    """Density of the values at the quantile."""
    bias: AllowedBias | None = None
    """How far the public groups were allowed to be off."""
    confidence: float | None = None
    """Confidence of the interval."""
    clamped: Mapping[str, int] | None = None
    """How many values of a group lie outside the bounds: exact for public groups, noisy for private ones."""
    merged: tuple[tuple[str, ...], ...] | None = None
    """Which groups were summed together, where that was allowed."""
    cells: int | None = None
    """How many cells were declared."""

    @property
    def warning(self) -> str | None:
        """The warning that a reader must see first, if there is one."""
        if self.noise_is_private:
            return None
        return "NOT PRIVATE: the noise was seeded, and anyone who knows the seed can draw it again."

    def as_json(self) -> dict[str, Any]:
        """A plain form for programs; without what the statistic has nothing to tell about."""
        plain = {**to_json(self), "warning": self.warning}
        return {name: value for name, value in plain.items() if value is not None or name == "delta"}
