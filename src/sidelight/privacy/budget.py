"""Promises (Budget) and spendings (Rho, Epsilon), as exact numbers.

Two currencies. ``Rho`` is zCDP, and pays for Gaussian noise; ``Epsilon`` is pure DP, and
pays for Laplace noise. A run is accounted in one of them; a ledger prices both
(``Budget.price``), so that all spendings on a table add up against one promise.
"""

import math
import operator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Self

from sidelight import _check
from sidelight.errors import SettingError
from sidelight.privacy import convert
from sidelight.privacy.rational import float_up, parse_fraction


@dataclass(frozen=True, order=True)
class Amount:
    """An exact amount of privacy loss. The parts of a split add up to the whole."""

    value: Fraction

    def __post_init__(self) -> None:
        try:
            value = self.value if type(self.value) is Fraction else Fraction(self.value)
        except (ValueError, OverflowError, ZeroDivisionError):
            message = f"an amount of privacy loss must be a finite number; got {self.value!r}."
            raise SettingError(message) from None
        if value.numerator < 0:
            raise SettingError(f"an amount of privacy loss must not be negative; got {float(value):g}.")
        object.__setattr__(self, "value", value)

    def split(self, share: float | Fraction) -> tuple[Self, Self]:
        """This share of the amount, and the rest.

        >>> part, rest = Rho(Fraction(1, 20)).split(0.1)
        >>> part + rest == Rho(Fraction(1, 20))
        True
        """
        if not 0 <= share <= 1:
            raise SettingError(f"share must be a share between 0 and 1; got {share!r}.")
        part = self.value * Fraction(share)
        return type(self)(part), type(self)(self.value - part)

    def __truediv__(self, parts: int | Fraction) -> Self:
        return type(self)(self.value / _exact(parts))

    def __mul__(self, times: int | Fraction) -> Self:
        return type(self)(self.value * _exact(times))

    __rmul__ = __mul__

    def __add__(self, other: Self) -> Self:
        self._same_currency(other)
        return type(self)(self.value + other.value)

    def __sub__(self, other: Self) -> Self:
        self._same_currency(other)
        return type(self)(self.value - other.value)

    def __bool__(self) -> bool:
        return self.value > 0

    def __float__(self) -> float:
        return float(self.value)

    def _same_currency(self, other: "Amount") -> None:
        if type(other) is not type(self):
            raise TypeError(f"{type(self).__name__} and {type(other).__name__} are different currencies.")


def _exact(number: int | Fraction) -> int | Fraction:
    """The number itself; a float is refused, since it would make the amount inexact."""
    return number if isinstance(number, Fraction) else operator.index(number)


class Rho(Amount):
    """An amount of zCDP (Bun and Steinke 2016).

    >>> Rho(Fraction(1, 2)) / 2 + Rho(Fraction(1, 4))
    Rho(1/2)
    """

    def __repr__(self) -> str:
        return f"Rho({self.value})"


class Epsilon(Amount):
    """An amount of pure differential privacy.

    >>> Epsilon(1) / 4
    Epsilon(1/4)
    """

    def __repr__(self) -> str:
        return f"Epsilon({self.value})"


Cost = Rho | Epsilon


def added(first: Cost, *others: Cost) -> Cost:
    """The sum of costs in one currency."""
    for other in others:
        first._same_currency(other)
    return type(first)(sum((other.value for other in others), start=first.value))


def less(cost: Cost, other: Cost) -> Cost:
    """A cost less another in the same currency; nothing where the other is larger."""
    cost._same_currency(other)
    return type(cost)(max(cost.value - other.value, Fraction(0)))


def cost_to_json(cost: Cost) -> dict[str, str]:
    """A plain form from which ``cost_from_json`` gives back an equal cost.

    >>> cost_to_json(Rho(Fraction(1, 20)))
    {'rho': '1/20'}
    """
    return {type(cost).__name__.lower(): str(cost.value)}


def cost_from_json(plain: dict[str, str]) -> Cost:
    """The cost that ``cost_to_json`` wrote."""
    ((currency, amount),) = plain.items()
    kinds: dict[str, type[Cost]] = {"rho": Rho, "epsilon": Epsilon}
    return kinds[currency](parse_fraction(amount))


@dataclass(frozen=True)
class Tally:
    """Exact sums over many costs, kept by currency so that a budget can judge their mix."""

    rho: Fraction = Fraction(0)
    """Σρ over what was charged in zCDP."""
    epsilon: Fraction = Fraction(0)
    """Σε over what was charged in pure DP."""
    priced: Fraction = Fraction(0)
    """Σ ``Budget.price`` over both."""

    def __add__(self, other: "Tally") -> "Tally":
        return Tally(self.rho + other.rho, self.epsilon + other.epsilon, self.priced + other.priced)

    def __sub__(self, other: "Tally") -> "Tally":
        return Tally(self.rho - other.rho, self.epsilon - other.epsilon, self.priced - other.priced)


@dataclass(frozen=True, kw_only=True)
class Budget:
    """A promise: (ε, δ)-differential privacy.

    With δ > 0 the budget holds ``rho()`` of zCDP, the most that keeps the promise. With
    δ = 0 it holds ε of pure DP, and only pure mechanisms can be paid from it.

    >>> budget = Budget(epsilon=1.0, delta=1e-9)
    >>> f"{float(budget.rho()):.6f}"
    '0.014973'
    """

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        if not (_check.is_number(self.epsilon) and 0 < self.epsilon < math.inf):
            raise SettingError(f"epsilon must be a finite number above 0; got {_check.brief(self.epsilon)}.")
        if not (_check.is_number(self.delta) and 0 <= self.delta < 1):
            raise SettingError(f"delta must be at least 0 and below 1; got {self.delta!r}.")

    @property
    def is_pure(self) -> bool:
        """Whether δ = 0, so that only pure mechanisms keep the promise."""
        return self.delta == 0

    def rho(self) -> Rho:
        """The most zCDP that keeps the promise, rounded down (spec 2.2)."""
        if self.is_pure:
            raise SettingError(
                f"a promise of ε = {self.epsilon:g} with δ = 0 cannot pay for zCDP noise; "
                "give a delta above 0, or choose accounting='pure'."
            )
        return Rho(Fraction(self._rho))

    def pure(self) -> Epsilon:
        """All of ε, to be spent on pure mechanisms: exactly the decimal that was written.

        >>> Budget(epsilon=0.1, delta=0.0).pure() * 10
        Epsilon(1)
        """
        return Epsilon(Fraction(repr(float(self.epsilon))))

    @cached_property
    def _rho(self) -> float:
        rho = convert.rho_of(self.epsilon, self.delta)
        if rho == 0:
            raise SettingError(
                f"ε = {self.epsilon:g} at δ = {self.delta:g} is too little to be paid in zCDP; "
                "give a larger epsilon or delta."
            )
        return rho

    @cached_property
    def order(self) -> float:
        """The Rényi order at which ``rho()`` converts to (ε, δ).

        PRIVACY: ``rho_of`` checked its result at this very float, so D_α ≤ α·rho() at α = order
        implies (ε, δ)-DP whatever the search for the order lost.
        """
        return convert.order_of(self._rho, self.epsilon)

    @cached_property
    def capacity(self) -> Fraction:
        """How much this budget holds, in the currency of ``price``."""
        return self.pure().value if self.is_pure else self.rho().value

    def price(self, cost: Cost) -> Fraction:
        """The part of ``capacity`` that a cost takes.

        The budget is a filter at one fixed Rényi order α: spendings ρᵢ and εᵢ are allowed
        while Σ D_α ≤ α·ρ(ε, δ), which implies (ε, δ)-DP even when they are chosen adaptively
        (Feldman and Zrnic 2021) and by runs that go on at the same time (Haney et al. 2023).
        ρ-zCDP has D_α ≤ αρ; pure ε-DP has D_α ≤ min(αε²/2, ε). Dividing by α gives prices in ρ.
        """
        if isinstance(cost, Rho):
            if self.is_pure:
                raise SettingError("a promise with δ = 0 cannot pay for zCDP noise; use pure accounting.")
            return cost.value
        if self.is_pure:
            return cost.value
        return min(cost.value**2 / 2, cost.value / Fraction(self.order))

    def delta_price(self, share: Fraction) -> Fraction:
        """The price, in ρ, of failing altogether with a probability of ``share`` · δ.

        PRIVACY: let mechanisms fail with probabilities that add up to Xδ, and otherwise be of zCDP, ρ in
        all. At the order α they are (ε, δ′)-DP with δ′ = δ exp((α − 1)α(ρ − capacity)), and (ε, δ′ + Xδ)-DP
        with their failures (spec 2.2; Bun and Steinke 2016, section 8). Each pays M times its share of X
        beside its own ρ, with M = max(2·capacity, 7/5·1/α(α − 1)). So if ρ + MX ≤ capacity, then X ≤ 1/2;
        there −ln(1 − X) ≤ 2 ln 2 · X ≤ 7/5·X ≤ α(α − 1)MX, and so δ′ ≤ δ exp(−α(α − 1)MX) ≤ δ(1 − X).

        >>> budget = Budget(epsilon=1.0, delta=1e-9)
        >>> float(budget.delta_price(Fraction(1, 4096)) / budget.capacity)
        0.00048828125
        """
        order = Fraction(self.order)
        return share * max(2 * self.rho().value, Fraction(7, 5) / (order * (order - 1)))

    def tally(self, cost: Cost) -> Tally:
        """One cost as a tally."""
        if isinstance(cost, Rho):
            return Tally(rho=cost.value, priced=self.price(cost))
        return Tally(epsilon=cost.value, priced=self.price(cost))

    def admits(self, spent: Tally) -> bool:
        """Whether spending all this keeps the promise.

        Either the filter of ``price`` holds it, or all of it is pure and adds up to at most ε.
        PRIVACY: the second is free of charge to the first. With privacy loss L, δ is at most
        E[(1 − exp(ε − L))₊]; a history of the second kind has L ≤ ε and adds 0 to it, so the
        histories of the first kind have all of δ for themselves.

        >>> budget = Budget(epsilon=1.0, delta=1e-9)
        >>> budget.admits(budget.tally(budget.pure())), budget.admits(budget.tally(budget.rho()))
        (True, True)
        """
        only_pure = spent.rho == 0 and spent.epsilon <= self.pure().value
        return only_pure or spent.priced <= self.capacity

    def epsilon_of(self, spent: Tally) -> float:
        """The ε that was spent, at the promise's δ: at most ``epsilon`` for what is admitted.

        The better of two bounds: ε of the zCDP part plus the pure part, or the filter's own.
        """
        pure = float_up(spent.epsilon)
        if self.is_pure or spent.rho == 0:
            apart = pure
        else:
            apart = pure + convert.epsilon_of(float_up(spent.rho), self.delta)
        if self.is_pure or not spent.epsilon:
            return apart
        return min(apart, convert.epsilon_at(self.order, float_up(spent.priced), self.delta))

    def largest(self, kind: type[Cost], spent: Tally) -> float:
        """The largest ε that can still be paid for in this currency, rounded down to two digits; or 0."""
        left = max(Fraction(0), self.capacity - spent.priced)
        if self.is_pure:
            most = float(left)
        elif kind is Rho:
            most = convert.epsilon_of(float(left), self.delta)
        else:
            rest = max(Fraction(0), self.pure().value - spent.epsilon) if spent.rho == 0 else Fraction(0)
            most = max(math.sqrt(2 * left), float(left) * self.order, float(rest))
        step = 0.01 if most >= 0.1 else 10.0 ** (math.floor(math.log10(most)) - 1) if most > 0 else 1.0
        steps = math.floor(most / step + 1e-9)
        for fewer in range(min(steps, 3)):  # most is right to rounding, so the first or second fits
            epsilon = float(f"{(steps - fewer) * step:.12g}")
            if self.admits(spent + self.tally(self._asked(epsilon, kind))):
                return epsilon
        return 0.0

    def _repr_html_(self) -> str:
        from sidelight._html import table

        if self.is_pure:
            facts = [("promise", f"pure differential privacy with ε = {self.epsilon:g}")]
        else:
            promise = f"differential privacy with ε = {self.epsilon:g} and δ = {self.delta:g}"
            facts = [("promise", promise), ("holds", f"ρ = {float(self.rho()):.4g} of zCDP")]
        return table("A privacy budget", facts)

    def _asked(self, epsilon: float, kind: type[Cost]) -> Cost:
        """The cost of asking for this ε at the promise's δ."""
        if kind is Epsilon:
            return Budget(epsilon=epsilon, delta=0.0).pure()
        return Rho(Fraction(convert.rho_of(epsilon, self.delta)))
