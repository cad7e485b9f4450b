"""Adds up what one run spends, exactly; costs may be chosen adaptively (a privacy filter)."""

from sidelight.errors import BudgetExhausted, SettingError
from sidelight.privacy.budget import Cost, Rho
from sidelight.privacy.event import Event


class Accountant:
    """Pays for events from one allotment, in the allotment's own currency.

    Costs, events and the time to stop may all depend on what was released before: if
    Σρᵢ ≤ ρ surely, the whole run is ρ-zCDP, and likewise for ε (spec 2.3). Sums are exact
    fractions, so no tolerance is needed and none is given.

    >>> from fractions import Fraction
    >>> from sidelight.privacy.event import Gaussian
    >>> accountant = Accountant(Rho(Fraction(1, 20)))
    >>> accountant.charge(Gaussian.at(Rho(Fraction(1, 50)), what="age", l2_squared=Fraction(2)))
    >>> accountant.remaining
    Rho(3/100)
    """

    def __init__(self, allotment: Cost, *, set_aside: Cost | None = None) -> None:
        self.set_aside: Cost = allotment * 0 if set_aside is None else set_aside
        """The part that may be charged only once it is freed."""
        self.allotment: Cost = type(allotment)(allotment.value - self.set_aside.value)
        """The most that may be charged now: less than was given, as long as a part of it is set aside."""
        self._remaining: Cost = self.allotment
        self._events: list[Event] = []

    def free(self) -> Cost:
        """From now on what was set aside may be charged too; how much that is."""
        freed, self.set_aside = self.set_aside, self.set_aside * 0
        self.allotment = type(freed)(self.allotment.value + freed.value)
        self._remaining = type(freed)(self._remaining.value + freed.value)
        return freed

    @property
    def remaining(self) -> Cost:
        """The part that may still be charged."""
        return self._remaining

    @property
    def spent(self) -> Cost:
        """The sum of all charges."""
        return type(self.allotment)(self.allotment.value - self._remaining.value)

    @property
    def events(self) -> tuple[Event, ...]:
        """The events that were paid for, in order."""
        return tuple(self._events)

    def charge(self, event: Event) -> None:
        """Pay for an event: all of it, or BudgetExhausted and none of it."""
        check_fits(event, self._remaining, of=self.allotment)
        self._remaining = type(self._remaining)(self._remaining.value - event.cost.value)
        self._events.append(event)


def check_fits(event: Event, remaining: Cost, *, of: Cost) -> None:
    """Refuse an event that the rest of an allotment cannot pay for."""
    if type(event.cost) is not type(of):
        message = (
            f"this run is accounted in {_letter(of)}, but '{event.what}' is charged in "
            f"{_letter(event.cost)}; choose one accounting for the whole run."
        )
        raise SettingError(message)
    if event.cost.value > remaining.value:
        message = (
            f"'{event.what}' needs {_letter(event.cost)} = {float(event.cost):.5g}; "
            f"this run has {float(remaining):.5g} of {float(of):.5g} left.\n\n"
            "Nothing was read and nothing was charged. Ask for less, or stop here and use what was measured."
        )
        raise BudgetExhausted(message)


def _letter(cost: Cost) -> str:
    return "ρ" if isinstance(cost, Rho) else "ε"
