"""One spending, as a frozen value. What an event means never changes once it is published.

An event carries the noise it was drawn with and the cost it was charged, and refuses to
exist if the noise is less than the cost pays for. The curator draws from the event that it
paid, so cost and noise cannot drift apart.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Any, ClassVar, Self

from sidelight.errors import LedgerError, SettingError
from sidelight.privacy.budget import Cost, Epsilon, Rho, cost_from_json, cost_to_json
from sidelight.privacy.noise import LARGEST_SCALE, LARGEST_VARIANCE
from sidelight.privacy.rational import float_up, parse_fraction, round_down, round_up, sqrt_down

_LEAST_SENSITIVITY = Fraction(1, 2**900)
"""The least sensitivity of a score that a selection's grid can divide by (select/grid.py)."""
_LEAST_STDDEV = 2.0**-20
"""σ that is told of hardly any noise: a budget may be so large that the noise's own σ is 0 as a double."""


@dataclass(frozen=True, kw_only=True)
class Event(ABC):
    """One spending: what it paid for, and how much it cost."""

    name: ClassVar[str]
    currencies: ClassVar[tuple[type[Cost], ...]]
    """The currencies that can pay for this kind of noise."""
    what: str
    """The query or the number of candidates, in words; public."""
    cost: Cost
    """The cost that was charged."""

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if field.type is Fraction and not isinstance(value, Fraction):
                object.__setattr__(self, field.name, Fraction(value))
            if field.type in (Fraction, int) and not value > 0:
                raise AssertionError(f"{self.name}: {field.name} must be above 0; got {value}.")
        if not isinstance(self.cost, self.currencies):
            raise AssertionError(f"{self.name}: this noise cannot be paid for with {self.cost!r}.")
        if self.owed > self.cost.value:
            raise AssertionError(f"{self.name}: noise owes {self.owed}, but only {self.cost} is paid.")

    @property
    @abstractmethod
    def owed(self) -> Fraction:
        """The privacy loss of the noise as drawn, in the currency of ``cost``; at most ``cost``."""

    @abstractmethod
    def require_drawable(self) -> None:
        """Refuse noise that the exact samplers cannot draw. It depends on public values: asked before paying.

        Not checked when an event is made, since every event in an old ledger must be readable.
        """

    def as_json(self) -> dict[str, Any]:
        """A plain form from which ``from_json`` gives back an equal event."""
        plain: dict[str, Any] = {"event": self.name}
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, (Rho, Epsilon)):
                value = cost_to_json(value)
            elif isinstance(value, Fraction):
                value = str(value)
            elif isinstance(value, tuple):
                value = [part.as_json() for part in value]
            plain[field.name] = value
        return plain

    @staticmethod
    def from_json(plain: dict[str, Any]) -> "Event":
        """The event that ``as_json`` wrote. An unknown event is refused, never guessed."""
        name = plain.get("event")
        kind = _KINDS.get(name) if isinstance(name, str) else None
        if kind is None:
            raise LedgerError(f"unknown event {name!r}; this was written by a newer sidelight.")
        if plain.keys() - {"event"} != {field.name for field in fields(kind)}:
            raise LedgerError(f"the {name} event has other fields than this sidelight knows.")
        values: dict[str, Any] = {}
        try:
            for field in fields(kind):
                value = plain[field.name]
                if field.name == "cost":
                    value = cost_from_json(value)
                elif field.type is Fraction:
                    value = parse_fraction(value)
                elif field.name == "parts":
                    value = tuple(Event.from_json(part) for part in value)
                elif type(value) is not field.type:
                    raise TypeError(f"{field.name} is {value!r}")
                values[field.name] = value
            return kind(**values)
        except (ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError) as error:
            raise LedgerError(f"the {name} event cannot be read: {error}") from error


def _too_noisy(event: "Gaussian | Gaussians | Laplace | Threshold") -> SettingError:
    return SettingError(
        f"the budget is too small for '{event.what}': its part of it calls for noise of σ = {_short(event)} "
        "steps, more than can be drawn exactly. Give a larger epsilon, or ask for less: fewer rounds, or "
        "fewer queries."
    )


def _short(event: "Gaussian | Gaussians | Laplace | Threshold") -> str:
    """σ in steps of the noise, as text: it may be too large for a double."""
    if isinstance(event, Laplace):
        squared = 2 * event.scale**2
    else:
        squared = event.largest if isinstance(event, Gaussians) else event.variance
    return f"{math.sqrt(squared):.3g}" if squared < Fraction(10) ** 300 else "10¹⁵⁰ and more"


def _paid(cost: Cost) -> Fraction:
    """The value of a cost, which must be above 0."""
    if not cost:
        raise SettingError("an event must cost more than 0; no finite noise is free.")
    return cost.value


@dataclass(frozen=True, kw_only=True)
class Gaussian(Event):
    """y = q(D) + 𝒩_ℤ(0, σ²) per coordinate: ρ = Δ₂²/(2σ²) (Canonne, Kamath, Steinke 2020, theorem 14)."""

    name = "gaussian"
    currencies = (Rho,)
    variance: Fraction
    """σ² of each coordinate's noise."""
    l2_squared: Fraction
    """Δ₂²: how far one person can move the answer, in L2, squared."""

    @classmethod
    def at(cls, cost: Rho, *, what: str, l2_squared: Fraction) -> Self:
        """The least noise that this cost pays for."""
        variance = round_up(Fraction(l2_squared) / (2 * _paid(cost)))
        return cls(what=what, cost=cost, variance=variance, l2_squared=Fraction(l2_squared))

    @property
    def owed(self) -> Fraction:
        return self.l2_squared / (2 * self.variance)

    def require_drawable(self) -> None:
        if self.variance > LARGEST_VARIANCE:
            raise _too_noisy(self)

    @property
    def stddev(self) -> float:
        """σ, to within rounding; the discrete Gaussian's own is never above it."""
        return max(math.sqrt(self.variance), _LEAST_STDDEV)


@dataclass(frozen=True, kw_only=True)
class Gaussians(Event):
    """Many numbers together, y_j = q_j(D) + 𝒩_ℤ(0, s σ_j²): ρ = max Σ_j (q_j(D) − q_j(D′))²/2sσ_j².

    Canonne, Kamath, Steinke (2020), theorem 14, which has a variance for each coordinate. What one record
    moves in all of them together may be less than the sum of what it can move in each.
    """

    name = "gaussians"
    currencies = (Rho,)
    numbers: int
    """How many numbers were drawn."""
    loss: Fraction
    """At least max Σ_j (q_j(D) − q_j(D′))²/σ_j²."""
    scale: Fraction
    """The factor s."""
    largest: Fraction
    """The largest variance that was drawn with."""

    @classmethod
    def at(cls, cost: Rho, *, what: str, numbers: int, loss: Fraction, largest: Fraction) -> Self:
        """The least noise that this cost pays for, in these proportions; ``largest`` is the largest σ_j²."""
        scale = round_up(Fraction(loss) / (2 * _paid(cost)))
        return cls(
            what=what, cost=cost, numbers=numbers, loss=Fraction(loss), scale=scale,
            largest=cls.scaled(largest, scale),
        )  # fmt: skip

    @staticmethod
    def scaled(variance: Fraction, scale: Fraction) -> Fraction:
        """The variance that is drawn with, in place of σ_j²."""
        return round_up(variance * scale)

    @staticmethod
    def stddev_of(variance: Fraction) -> float:
        """σ of noise of this variance, to within rounding; the discrete Gaussian's own is never above it."""
        return max(math.sqrt(variance), _LEAST_STDDEV)

    @property
    def owed(self) -> Fraction:
        return self.loss / (2 * self.scale)

    def require_drawable(self) -> None:
        if self.largest > LARGEST_VARIANCE:
            raise _too_noisy(self)


@dataclass(frozen=True, kw_only=True)
class Laplace(Event):
    """y = q(D) + Lap_ℤ(b) per coordinate: ε = Δ₁/b, and so ε²/2-zCDP (spec 2.2)."""

    name = "laplace"
    currencies = (Rho, Epsilon)
    scale: Fraction
    """b of each coordinate's noise."""
    l1: Fraction
    """Δ₁: how far one person can move the answer, in L1."""

    @classmethod
    def at(cls, cost: Cost, *, what: str, l1: Fraction) -> Self:
        """The least noise that this cost pays for: ε = √(2ρ), or ε itself."""
        epsilon = sqrt_down(2 * _paid(cost)) if isinstance(cost, Rho) else _paid(cost)
        return cls(what=what, cost=cost, scale=round_up(Fraction(l1) / epsilon), l1=Fraction(l1))

    @property
    def owed(self) -> Fraction:
        epsilon = self.l1 / self.scale
        return epsilon**2 / 2 if isinstance(self.cost, Rho) else epsilon

    def require_drawable(self) -> None:
        if self.scale > LARGEST_SCALE:
            raise _too_noisy(self)

    @property
    def stddev(self) -> float:
        """1/(√2 sinh(1/2b)): the discrete Laplace's own, which is √2 b for large b."""
        half = float(1 / (2 * self.scale))
        return max(math.sqrt(2) * math.exp(-half) / -math.expm1(-2 * half), _LEAST_STDDEV)


@dataclass(frozen=True, kw_only=True)
class Threshold(Event):
    """Labels whose noisy number, c + 𝒩_ℤ(0, σ²), reaches a threshold that one person alone does not reach.

    ρ = Δ₂²/(2σ²), but for a probability of ``delta`` that a label of one person is told at all. What that
    probability costs of the ledger's own δ is paid in ρ too (``Budget.delta_price``).
    """

    name = "threshold"
    currencies = (Rho,)
    variance: Fraction
    """σ² of each label's noise."""
    l2_squared: Fraction
    """Δ₂²: how far one person can move the numbers of all labels, in L2, squared."""
    threshold: int
    """The threshold that a noisy number must reach."""
    delta: Fraction
    """The probability, at most, that a label of one person reaches it."""
    surcharge: Fraction
    """The price of ``delta``, in ρ."""

    @classmethod
    def at(
        cls, cost: Rho, *, what: str, l2_squared: Fraction, labels: int, own: int, delta: Fraction,
        surcharge: Fraction,
    ) -> Self:  # fmt: skip
        """The lowest threshold that this cost pays for.

        One person alone can have ``labels`` labels, each of a number of at most ``own``.
        """
        if _paid(cost) <= surcharge:
            raise SettingError(
                f"the budget is too small for '{what}': all of it would go into the chance of a failure. "
                "Give a larger epsilon."
            )
        variance = round_up(Fraction(l2_squared) / (2 * (cost.value - surcharge)))
        # P(𝒩_ℤ ≥ t) ≤ exp(−t²/2σ²), as for a Gaussian (Canonne, Kamath, Steinke 2020): at most δ/labels.
        # PRIVACY: of every noise that can be drawn; what is beyond that, ``require_drawable`` refuses.
        log_odds = math.log(labels * delta.denominator) - math.log(delta.numerator)
        squared = 2 * float_up(min(variance, LARGEST_VARIANCE)) * log_odds
        reach = math.ceil(math.sqrt(squared) * (1 + 1e-9))
        return cls(
            what=what, cost=cost, variance=variance, l2_squared=Fraction(l2_squared), threshold=own + reach,
            delta=delta, surcharge=surcharge,
        )  # fmt: skip

    @property
    def owed(self) -> Fraction:
        return self.l2_squared / (2 * self.variance) + self.surcharge

    def require_drawable(self) -> None:
        if 64 * self.variance > LARGEST_VARIANCE:  # the threshold lies some σ above 0
            raise _too_noisy(self)


@dataclass(frozen=True, kw_only=True)
class Selection(Event):
    """A private choice among candidates: ε-DP, and ε²/``divisor`` of zCDP."""

    currencies = (Rho, Epsilon)
    divisor: ClassVar[int]
    """ε² over this is what the choice costs in ρ."""
    epsilon: Fraction
    """ε of the draw; at most what ``cost`` pays for."""
    sensitivity: Fraction
    """Δ: how far one person can move any candidate's score."""
    candidates: int
    """How many there were to choose among."""

    @classmethod
    def at(cls, cost: Cost, *, what: str, sensitivity: Fraction, candidates: int) -> Self:
        """The sharpest selection that this cost pays for: ε = √(divisor · ρ), or ε itself."""
        paid = _paid(cost)
        epsilon = sqrt_down(cls.divisor * paid) if isinstance(cost, Rho) else round_down(paid)
        return cls(
            what=what, cost=cost, epsilon=epsilon, sensitivity=Fraction(sensitivity), candidates=candidates
        )

    def require_drawable(self) -> None:
        if not _LEAST_SENSITIVITY < self.sensitivity < 1 / _LEAST_SENSITIVITY:
            raise SettingError(
                f"{self.what} cannot be selected among: the weights of their scores are too large or too "
                "small for the grid of the selection. Choose weights nearer to 1."
            )

    @property
    def owed(self) -> Fraction:
        return self.epsilon**2 / self.divisor if isinstance(self.cost, Rho) else self.epsilon


@dataclass(frozen=True, kw_only=True)
class Exponential(Selection):
    """Pr[r] ∝ exp(ε s_r / 2Δ): ε-DP with bounded range, so ε²/8-zCDP (spec 2.5)."""

    name = "exponential"
    divisor = 8


@dataclass(frozen=True, kw_only=True)
class Exponentials(Selection):
    """Several independent draws of one exponential mechanism: each costs what one costs, and they add up."""

    name = "exponentials"
    divisor = 8
    draws: int
    """How many."""

    @classmethod
    def together(
        cls, cost: Cost, *, what: str, sensitivity: Fraction, candidates: int, draws: int
    ) -> "Exponentials":
        """The sharpest draws, so many of them, that this cost pays for together."""
        each = Exponential.at(cost / draws, what=what, sensitivity=sensitivity, candidates=candidates)
        return cls(
            what=what, cost=cost, epsilon=each.epsilon, sensitivity=each.sensitivity, candidates=candidates,
            draws=draws,
        )  # fmt: skip

    @property
    def owed(self) -> Fraction:
        return self.draws * super().owed


@dataclass(frozen=True, kw_only=True)
class PermuteAndFlip(Selection):
    """Permute-and-flip (McKenna and Sheldon 2020): ε-DP, but not bounded-range, so ε²/2-zCDP (spec 2.5)."""

    name = "permute-and-flip"
    divisor = 2


@dataclass(frozen=True, kw_only=True)
class Parallel(Event):
    """Several events on disjoint groups of people: one person is in one of them, so the dearest counts.

    Which group a person belongs to is public and fixed. Then neighbours differ within one group,
    and only that group's event tells them apart (McSherry 2009, theorem 4; the same holds of zCDP).
    """

    name = "parallel"
    currencies = (Rho, Epsilon)
    parts: tuple[Event, ...]
    """One event a group."""

    def __post_init__(self) -> None:
        if not self.parts:
            raise AssertionError(f"{self.name}: there must be at least one event.")
        if any(type(part.cost) is not type(self.cost) for part in self.parts):
            raise AssertionError(f"{self.name}: all events must be paid in the currency of {self.cost!r}.")
        super().__post_init__()

    @classmethod
    def of(cls, parts: Iterable[Event], *, what: str) -> Self:
        """These events in parallel, at the cost of the dearest."""
        listed = tuple(parts)
        return cls(
            what=what, cost=max((part.cost for part in listed), key=lambda cost: cost.value), parts=listed
        )

    def require_drawable(self) -> None:
        for part in self.parts:
            part.require_drawable()

    @property
    def owed(self) -> Fraction:
        return max(part.cost.value for part in self.parts)


_KINDS: dict[str, type[Event]] = {
    kind.name: kind
    for kind in (
        *(Gaussian, Gaussians, Laplace, Threshold),
        *(Exponential, Exponentials, PermuteAndFlip, Parallel),
    )
}
