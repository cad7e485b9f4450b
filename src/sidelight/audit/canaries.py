"""A whole release under audit, in one run: canaries that are there or not, and guesses about each of them.

Each of m made-up people (canaries) is put into the table with probability 1/2. Then the front door makes a
release, with everything that belongs to it: schema, plan, ledger, mechanism, measured quality. For those
canaries whose counts in the release are the highest, the attacker guesses that they are there; for the
lowest, that they are not; about the others, nothing. Under (ε, δ) the number of right guesses among r is at
most that of r coins that fall on the right side with probability e^ε/(1 + e^ε), but for a small term with δ
(Steinke, Nasr, Jagielski 2023, theorem 5.2).

One run tells less than many: all canaries share its noise. It tells it about the very code that people call.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sidelight.data.schema import Schema
from sidelight.data.table import Table
from sidelight.mechanisms.registry import mechanism_of
from sidelight.privacy.budget import Budget
from sidelight.privacy.ledger import MemoryLedger
from sidelight.privacy.promise import Promise
from sidelight.privacy.unit import Unit
from sidelight.releases.run import release

ATTRIBUTE = "canary"
PLANTED_RECORDS = 12
"""The planted bug: so many records of each canary, where the unit says one."""


@dataclass(frozen=True, kw_only=True)
class CanaryAudit:
    """A lower bound on the loss, by guesses about canaries."""

    epsilon: float
    """The lower bound on ε, at ``delta``, with ``confidence``."""
    delta: float
    confidence: float
    canaries: int
    guesses: int
    right: int


def audit_release(
    mechanism: str = "hdmm",
    *,
    epsilon: float = 2.0,
    delta: float = 1e-6,
    canaries: int = 20_000,
    guesses: int = 400,
    confidence: float = 0.999,
    **asked: Any,
) -> CanaryAudit:
    """Release a table of canaries, and guess which of them are in it.

    Args:
        mechanism: the name of the mechanism.
        epsilon: what the release claims to spend.
        delta: at which δ.
        canaries: how many people are put in or left out, each by a coin of its own.
        guesses: about how many of them to guess.
        confidence: that the bound holds.
        **asked: ``seed`` of the coins; ``noise``, the operating system's unless given; ``records``, how many
            each canary has, where the unit says one: a planted bug; the mechanism's own settings.

    A mechanism that needs public data gets a table that holds every canary once.
    """
    records, seed = asked.pop("records", 1), asked.pop("seed", None)
    is_in = np.random.default_rng(seed).random(canaries) < 0.5
    counts = _released_counts(mechanism, is_in, records, epsilon=epsilon, delta=delta, **asked)
    half = max(1, guesses // 2)
    order = np.argsort(counts, kind="stable")
    right = int(is_in[order[-half:]].sum() + (~is_in[order[:half]]).sum())
    found = epsilon_of_guesses(right, 2 * half, canaries=canaries, delta=delta, confidence=confidence)
    return CanaryAudit(
        epsilon=found, delta=delta, confidence=confidence, canaries=canaries, guesses=2 * half, right=right
    )


def _released_counts(
    mechanism: str, is_in: NDArray[np.bool_], records: int, *, epsilon: float, delta: float, **asked: Any
) -> NDArray[np.float64]:
    schema = Schema.from_domain({ATTRIBUTE: is_in.size})
    codes = np.repeat(np.flatnonzero(is_in), records)[:, None]
    unit = Unit("add-or-remove")
    ledger = MemoryLedger(Promise(Budget(epsilon=epsilon, delta=delta), unit, "canaries"))
    if mechanism_of(mechanism, {}).public_data == "needed":
        everybody = np.arange(is_in.size)[:, None]
        asked["public"] = Table.of_codes(schema.domain, everybody, schema=schema)
    made = release(
        Table.of_codes(schema.domain, codes, schema=schema), schema=schema, unit=unit, ledger=ledger,
        epsilon=epsilon, mechanism=mechanism, workload="1-way", progress=False, bins="as declared", **asked,
    )  # fmt: skip
    return made.count([ATTRIBUTE])


def epsilon_of_guesses(right: int, guesses: int, *, canaries: int, delta: float, confidence: float) -> float:
    """The largest ε that so many right guesses refute, but for a chance of 1 − ``confidence``.

    >>> round(epsilon_of_guesses(95, 100, canaries=1000, delta=0.0, confidence=0.99), 2)
    1.94
    """
    low, high = 0.0, 50.0
    if _chance(right, guesses, low, canaries, delta) > 1 - confidence:
        return 0.0
    while high - low > 1e-4:
        middle = (low + high) / 2
        is_refuted = _chance(right, guesses, middle, canaries, delta) <= 1 - confidence
        low, high = (middle, high) if is_refuted else (low, middle)
    return low


def _chance(right: int, guesses: int, epsilon: float, canaries: int, delta: float) -> float:
    """How likely at least so many right guesses are, at most, under (ε, δ).

    Theorem 5.2: Pr[W ≥ v] ≤ f(v) + 2mδ · max_i (f(v − i) − f(v))/i, where f(v) is the probability that at
    least v of r coins fall on the right side, each with e^ε/(1 + e^ε).
    """
    from scipy.stats import binom

    p = 1 / (1 + math.exp(-epsilon))
    at_least = float(binom.sf(right - 1, guesses, p))
    if not delta:
        return at_least
    fewer = np.arange(1, right + 1)
    slope = float(((binom.sf(right - fewer - 1, guesses, p) - at_least) / fewer).max(initial=0.0))
    return min(1.0, at_least + 2 * canaries * delta * slope)
