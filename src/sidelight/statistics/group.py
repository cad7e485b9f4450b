"""People who share a privacy need: their values, and the ε that protects them.

Group membership, ε and, where the unit keeps n fixed, the group's size are public (spec 8.1). An ε
that people chose *because of* their value would leak that value: choose the groups beforehand.
"""

import math
from collections.abc import Sequence
from typing import Any

from sidelight._check import is_number
from sidelight.data.reading.each import Each
from sidelight.errors import DataError, SettingError
from sidelight.statistics.columns import Missing, check_missing, numbers
from sidelight.statistics.grid import Array
from sidelight.statistics.people import names_of

_NARROWEST = 2.0**-400
"""R² and 1/R² stand in every variance and weight, times sizes and noise up to 2^±200: all must be finite."""


class Group:
    """One group's values, protected with its own ε or public.

    Args:
        values: numbers, each read by itself; text such as "1e3" is a number too. Numbers outside the bounds
            are clamped later. One a person, unless ``people`` says who each is about.
        epsilon: ε of each person in the group.
        public: the values are public, as if ε were infinite.
        name: the group's name in messages, answers and the ledger.
        records: the number of values, if you declare it; another number is refused.
        missing: the number, within the bounds, that stands for a value that is missing or no number. With
            ``"refuse"`` a group that holds such a value is refused.
        people: who each value is about, as text or whole numbers, where people have several; then the unit
            names their column, and at most ``records`` values of each are used.

    >>> Group([1.0, 2.0, 4.0], epsilon=0.5, name="patients")
    Group('patients', ε = 0.5)
    >>> Group([], public=True)
    Traceback (most recent call last):
    sidelight.errors.DataError: a group is empty; leave it out, or give it at least one value.
    """

    def __init__(
        self,
        values: Any,
        *,
        epsilon: float | None = None,
        public: bool = False,
        name: str | None = None,
        records: int | None = None,
        missing: Missing = "refuse",
        people: Any = None,
    ) -> None:
        who = "a group" if name is None else f"group {name!r}"
        if public and epsilon is not None:
            raise SettingError(f"{who} is either public or has an epsilon; got both.")
        if not public and epsilon is None:
            raise SettingError(f"{who} needs an epsilon above 0, or public=True.")
        if epsilon is not None and not (is_number(epsilon) and 0 < epsilon < math.inf):
            raise SettingError(f"epsilon must be a finite number above 0; got {epsilon!r} for {who}.")
        check_missing(missing, -math.inf, math.inf)  # and the bounds, once they are known
        # PRIVACY: a private group keeps its values under a name that only the curator reads.
        self._values = numbers(Each(values), who, missing=missing)
        if public and self._values.size == 0:
            raise DataError(f"{who} is empty; leave it out, or give it at least one value.")
        self._people = None if people is None else names_of(Each(people))
        if self._people is not None and len(self._people) != self._values.size:
            raise DataError(f"{who} must have one name in people for each value; nothing was charged.")
        if records is not None and records != self._values.size:
            raise DataError(f"{who} was declared with another number of records; nothing was charged.")
        self.epsilon = epsilon
        self.name = name
        self.missing: Missing = missing
        self.declared_records = records

    @property
    def is_public(self) -> bool:
        """Whether anyone may see the values."""
        return self.epsilon is None

    @property
    def public_values(self) -> Array:
        """The values of a public group; a private group has none to show."""
        if not self.is_public:
            raise SettingError("a private group's values are seen by the curator alone.")
        return self._values

    def __repr__(self) -> str:
        need = "public" if self.is_public else f"ε = {self.epsilon:g}"
        return f"Group({self.name!r}, {need})"


def named(groups: Sequence[Group]) -> tuple[str, ...]:
    """The name of each group: its own, or its place in the list."""
    names = tuple(group.name or f"group {place}" for place, group in enumerate(groups, start=1))
    if len(set(names)) < len(names):
        raise SettingError("two groups have the same name; give each its own.")
    return names


def check_groups(groups: Sequence[Group], *, alone: bool) -> None:
    """Refuse what cannot be mixed."""
    for group in groups:
        if not isinstance(group, Group):
            raise SettingError(f"groups must be a list of Group; got a {type(group).__name__}.")
    if not groups:
        raise SettingError("groups must hold at least two groups; got none.")
    if len(groups) == 1 and not alone:
        raise SettingError(
            "there is one group only, so nothing to mix. Add a group, or say alone=True for its own estimate."
        )


def check_bounds(bounds: tuple[float, float], groups: Sequence[Group] = ()) -> tuple[float, float]:
    """The bounds, finite and in order; what stands for a missing value of a group must lie between them."""
    try:
        low, high = (float(bound) for bound in bounds)
    except (TypeError, ValueError):
        raise SettingError(f"bounds must be two numbers (low, high); got {bounds!r}.") from None
    if not (math.isfinite(low) and math.isfinite(high) and math.isfinite(high - low)):
        raise SettingError(
            f"bounds must be finite; got ({low:g}, {high:g}). They come from what is known, not from data."
        )
    if not low < high or (high - low) < 1e-9 * max(abs(low), abs(high)):
        raise SettingError(f"bounds must have low below high; got ({low:g}, {high:g}).")
    if not _NARROWEST <= high - low <= 1 / _NARROWEST:
        what = "too wide" if high - low > 1 else "too narrow"
        raise SettingError(
            f"bounds are {what} for variances to be floating-point numbers; got ({low:g}, {high:g}). "
            "Give the values in another unit of measurement."
        )
    for group in groups:
        check_missing(group.missing, low, high)
    return low, high
