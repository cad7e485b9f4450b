"""The attack on noise in floating point: it breaks the textbook's Laplace noise, and finds no hold on ours.

Laplace noise is usually drawn as b·log(u), in doubles, of a uniform u that is a multiple of 2⁻⁵³. Not every
double is such a logarithm, and which ones are sums of the true value and one depends on the true value:
whoever sees all digits of an answer can tell which values could have led to it (Mironov 2012). The noise is
of the right size and the proof is right for real numbers; for doubles it is void.

Ours is drawn in whole numbers, exactly, so every answer can come of every value.
"""

import math

import numpy as np

from sidelight.audit.attack import Audit, attack
from sidelight.curator.curator import Curator
from sidelight.data.domain import Domain
from sidelight.data.table import Table
from sidelight.privacy.budget import Budget
from sidelight.privacy.ledger import MemoryLedger
from sidelight.privacy.promise import Promise
from sidelight.privacy.unit import Unit
from sidelight.queries.query import Marginal
from sidelight.testing import SeededNoise

_BITS = 53
_WIDEST = 4096
"""Most values of u that are tried; where more could have led to an answer, it tells nothing."""


def naive_laplace(value: float, scale: float, seed: int) -> float:
    """The textbook's noise: value ± b·log(u)."""
    words = np.random.default_rng(seed).integers(0, 2**_BITS, 2)
    return _sum(value, scale, int(words[0]) + 1, 1 if words[1] % 2 else -1)


def _sum(value: float, scale: float, step: int, sign: int) -> float:
    return value + sign * (scale * math.log(step * 2.0**-_BITS))


def can_come_of(answer: float, value: float, scale: float) -> bool:
    """Whether the textbook's noise could have made this answer of this value."""
    noise = answer - value
    middle = round(math.exp(-abs(noise) / scale) * 2.0**_BITS)
    # An answer is rounded to its last digit, and each of the u that round to it must be tried.
    width = math.ceil(2 * middle * math.ulp(max(abs(answer), abs(noise))) / scale) + 4
    if width > _WIDEST:
        return True
    steps = range(max(1, middle - width), min(2**_BITS, middle + width) + 1)
    return any(_sum(value, scale, step, sign) == answer for step in steps for sign in (1, -1))


def attack_naive_noise(*, epsilon: float = 1.0, runs: int = 2000, confidence: float = 0.999) -> Audit:
    """The count 0 or 1, with the textbook's noise: by whether an answer could come of 0, and of 1."""

    def told(count: float, seed: int) -> list[float]:
        return _told(naive_laplace(count, 1 / epsilon, seed), 1 / epsilon)

    return attack(told, (0.0, 1.0), delta=0.0, runs=runs, confidence=confidence)


def attack_our_noise(*, epsilon: float = 1.0, runs: int = 2000, confidence: float = 0.999) -> Audit:
    """The same count, asked of a curator; by the same test of all digits, and by the answer itself."""
    domain, unit, budget = Domain.of({"ill": 2}), Unit("add-or-remove"), Budget(epsilon=epsilon, delta=0.0)
    tables = tuple(Table.of_codes(domain, np.full((ill, 1), 1)) for ill in (0, 1))

    def told(table: Table, seed: int) -> list[float]:
        curator = Curator(
            table, allotment=budget.pure(), unit=unit, noise=SeededNoise(seed),
            ledger=MemoryLedger(Promise(budget, unit, "audit")),
        )  # fmt: skip
        return _told(float(curator.measure(Marginal(("ill",)), budget.pure()).answer[1]), 1 / epsilon)

    return attack(told, (tables[0], tables[1]), delta=0.0, runs=runs, confidence=confidence)


def _told(answer: float, scale: float) -> list[float]:
    of_first, of_second = (can_come_of(answer, value, scale) for value in (0.0, 1.0))
    return [float(of_second) - float(of_first), answer]
