"""One sentence for every bad parameter.

>>> share(select_share=0.1)
>>> share(select_share=1.5)
Traceback (most recent call last):
sidelight.errors.SettingError: select_share must be a share between 0 and 1; got 1.5.
"""

import difflib
import math
from collections.abc import Collection, Iterable

from sidelight.errors import SettingError


def brief(value: object) -> str:
    """A value as a message shows it, cut if it is long."""
    try:
        shown = repr(value)
    except (RecursionError, ValueError):  # a number of thousands of digits
        return f"a value of type {type(value).__name__}"
    return shown if len(shown) <= 100 else f"{shown[:99]}…"


def listed(names: Iterable[str], most: int = 40) -> str:
    """Names as a message lists them: the first ``most``, each cut if it is long."""
    given = list(names)
    shown = [name if len(name) <= 100 else f"{name[:99]}…" for name in given[:most]]
    return ", ".join(shown) + (f" and {len(given) - most:,} more" if len(given) > most else "")


def count_of(number: int, one: str, more: str | None = None) -> str:
    """A number of things, in the singular where there is one.

    >>> count_of(1, "query", "queries"), count_of(2000, "group")
    ('1 query', '2,000 groups')
    """
    return f"{number:,} {one if number == 1 else more or one + 's'}"


def rounded(value: float, digits: int = 3) -> str:
    """A number of records to so many digits, never as a power of ten.

    >>> rounded(1046.3), rounded(20956.4, 5), rounded(116.42, 4), rounded(0.5)
    ('1,050', '20,956', '116.4', '0.5')
    """
    return f"{float(f'{value:.{digits}g}'):,.15g}" if 1e-4 <= abs(value) < 1e15 else f"{value:.{digits}g}"


def _refuse(name: str, wanted: str, got: object) -> SettingError:
    return SettingError(f"{name} must be {wanted}; got {brief(got)}.")


def is_number(value: object) -> bool:
    """Whether this is an int or a float, neither a truth value nor NaN, and no int that no float can hold.

    >>> [is_number(value) for value in (1, 0.5, 10**400, float("nan"), True, "1")]
    [True, True, False, False, False, False]
    """
    try:
        return isinstance(value, (int, float)) and not isinstance(value, bool) and not math.isnan(value)
    except OverflowError:
        return False


def positive_integer(**settings: object) -> None:
    """Each setting is a whole number of at least 1."""
    for name, value in settings.items():
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise _refuse(name, "a whole number of at least 1", value)


def natural(**settings: object) -> None:
    """Each setting is a whole number of at least 0."""
    for name, value in settings.items():
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            raise _refuse(name, "a whole number of at least 0", value)


def positive(**settings: object) -> None:
    """Each setting is a finite number above 0."""
    for name, value in settings.items():
        if not is_number(value) or not 0 < value < math.inf:  # type: ignore[operator]  # a number by now
            raise _refuse(name, "a finite number above 0", value)


def share(**settings: object) -> None:
    """Each setting lies strictly between 0 and 1."""
    for name, value in settings.items():
        if not is_number(value) or not 0 < value < 1:  # type: ignore[operator]  # a number by now
            raise _refuse(name, "a share between 0 and 1", value)


def one_of(choices: Collection[str], /, **settings: object) -> None:
    """Each setting is one of the choices, which the message lists."""
    for name, value in settings.items():
        if value not in choices:
            raise _refuse(name, f"one of {', '.join(map(repr, choices))}", value)


def known(who: str, given: Iterable[str], settings: Collection[str], besides: Iterable[str] = ()) -> None:
    """Each given name is that of a setting; the message lists the settings, and guesses which was meant.

    ``besides``: what else may have been meant, though it is no setting.

    >>> known("mixed_mean", ["varience"], ["merge", "variance"])
    Traceback (most recent call last):
    sidelight.errors.SettingError: mixed_mean has no setting 'varience'; it has merge, variance. \
Did you mean 'variance'?
    """
    for name in given:
        if name not in settings:
            has = ", ".join(sorted(settings))
            raise SettingError(
                f"{who} has no setting {name!r}; it has {has}.{hint(name, [*settings, *besides])}"
            )


def hint(word: str, known: Iterable[str]) -> str:
    """A guess at which of the known words was meant; nothing where none is near."""
    close = difflib.get_close_matches(word, list(known), n=1)
    return f" Did you mean {close[0]!r}?" if close else ""
