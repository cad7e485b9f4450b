"""Exact discrete noise: where its random words come from, and how they become integers.

    Gaussian   Pr[z] ∝ exp(−z²/2σ²)        Laplace   Pr[z] ∝ exp(−|z|/b)        z = …, −1, 0, 1, …

Both are g(z) = exp(−rate·|z|^power), and both are drawn by proposing from a histogram that lies just
above g. One 64-bit word is one attempt:

    ┌──── 12 bits ────┬────── s bits ──────┬───── the other bits ─────┐
    │ slot: a block v │ place in the block │ U, to accept or to retry │
    └─────────────────┴────────────────────┴──────────────────────────┘

Block v holds the 2ˢ integers from v·2ˢ on, and n_v of the 4096 slots lead to it. So every z of the
block is proposed with probability n_v/2¹²⁺ˢ. It is kept if U < c·g(z)/n_v, where c is one fixed
fraction, and then has come out of this attempt with probability

    n_v/2¹²⁺ˢ · c·g(z)/n_v  =  c·g(z)/2¹²⁺ˢ,                                                     (∗)

the same multiple of g(z) for every z in every block. The blocks reach to where g < e⁻⁴⁰. Slot 0 is
the tails', and needs U < 2⁻³⁶: then a fair bit chooses the side, fair bits choose j = 0, 1, 2, … with
probability 2⁻ʲ⁻¹, and z lies anywhere in the j-th block of 2ˢ⁺² integers beyond the last one above.
So z is proposed with probability 2⁻¹²⁻³⁶⁻¹⁻⁽ʲ⁺¹⁾⁻⁽ˢ⁺²⁾; kept with probability c·g(z)·2⁴⁰⁺ʲ, it also
obeys (∗).

**Why the law is exact.** Attempts are independent and alike, and the first one kept has a law
proportional to (∗), over *all* integers: no cut-off, no rounding of g, a statistical distance of zero,
nothing to charge to δ. What this needs is

- uniform words, from the operating system;
- acceptance decided exactly: `coins` compares U with the real number c·g(z)/n_v;
- acceptance probabilities of at most 1, that is n_v ≥ c·g(z) for all z of block v, by construction
  (`_Histogram`), and c·g(z)·2⁴⁰⁺ʲ ≤ 1 in the tails: c < 2¹² and g < e⁻⁴⁰ give less than 2⁻⁵ for
  j = 0; and each further block of the tail at least halves g, since 40 ≤ rate·|z|^power at the
  first tail, |z| ≤ 129·2ˢ, means that a step of 2ˢ⁺² adds at least 40·4/129 > log 2 to it.

A draw that does not fit 64 bits wraps around. That too is safe: the noisy answer is then the exact
one plus exact noise, modulo 2⁶⁴, which is post-processing (and rarer than once in e^(2²³) draws).
How long drawing takes depends on the words and on the scale, which is public; never on private data.

The samplers of Canonne, Kamath and Steinke (2020), arXiv:2004.00010, have the same laws and the same
exactness. Where we differ: a histogram as proposal, one word an attempt, nine attempts in ten kept
(Laplace: three in four), and lazily refined comparison; so that whole arrays are drawn at once.
"""

import math
import os
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from sidelight import _check
from sidelight.errors import SettingError
from sidelight.privacy.coins import DOUBT_BITS, WORD, below, flip, nearest

_SLOT_BITS = 12
_SLOTS = 1 << _SLOT_BITS
_CHUNK = 1 << 14
"""Attempts at a time: a handful of 128 KiB arrays, which fit in the cache."""

LARGEST_VARIANCE = Fraction(2**62)
LARGEST_SCALE = Fraction(2**40)


class NoiseSource(Protocol):
    """Where random words come from."""

    @property
    def is_private(self) -> bool:
        """True only for operating-system entropy."""

    @property
    def name(self) -> str:
        """Its name on the release card."""

    def words(self, count: int) -> NDArray[np.uint64]:
        """Independent uniform 64-bit words."""


@dataclass(frozen=True)
class SystemNoise:
    """Entropy of the operating system. Nothing is kept back, so a fork cannot repeat it."""

    @property
    def is_private(self) -> bool:
        return True

    @property
    def name(self) -> str:
        return "operating-system entropy"

    def words(self, count: int) -> NDArray[np.uint64]:
        return np.frombuffer(os.urandom(8 * count), dtype=np.uint64)


def discrete_gaussian(noise: NoiseSource, variance: Fraction, size: int) -> NDArray[np.int64]:
    """Independent draws of Pr[z] ∝ exp(−z²/2σ²), exactly, where σ² is ``variance``.

    >>> from sidelight.testing import SeededNoise
    >>> draws = discrete_gaussian(SeededNoise(7), Fraction(9), 10_000)
    >>> abs(float(draws.std()) - 3.0) < 0.1
    True
    """
    return _draw(noise, 1 / (2 * _within(LARGEST_VARIANCE, variance=variance)), 2, size)


def discrete_laplace(noise: NoiseSource, scale: Fraction, size: int) -> NDArray[np.int64]:
    """Independent draws of Pr[z] ∝ exp(−|z|/b), exactly, where b is ``scale``.

    >>> from sidelight.testing import SeededNoise
    >>> draws = discrete_laplace(SeededNoise(7), Fraction(1), 10_000)
    >>> abs(float((draws == 0).mean()) - 0.46211716) < 0.02
    True
    """
    return _draw(noise, 1 / _within(LARGEST_SCALE, scale=scale), 1, size)


def _within(largest: Fraction, **settings: Fraction) -> Fraction:
    ((name, value),) = settings.items()
    if not isinstance(value, (int, Fraction)) or not 0 < value <= largest:
        raise SettingError(
            f"{name} must be a fraction above 0 and at most {float(largest):.3g}; got {value}."
        )
    return Fraction(value)


def _draw(noise: NoiseSource, rate: Fraction, power: Literal[1, 2], size: int) -> NDArray[np.int64]:
    _check.natural(size=size)
    histogram = _histogram(rate, power)
    drawn = np.empty(size, dtype=np.int64)
    done = 0
    while done < size:
        attempts = min(_CHUNK, int((size - done) * 1.2) + 16)
        kept = histogram.attempt(noise, attempts)[: size - done]
        drawn[done : done + kept.size] = kept
        done += kept.size
    return drawn


@dataclass(frozen=True, eq=False)
class _Histogram:
    """Blocks and slots above g(z) = exp(−rate·|z|^power); see the top of the module for the law."""

    rate: Fraction
    power: Literal[1, 2]
    block_bits: int
    """s: a block holds 2ˢ integers."""
    blocks: int
    """How many blocks there are on each side of 0."""
    height: Fraction
    """c: g, in slots."""
    slots: NDArray[np.int64]
    """n_v: how many slots block v has, for v = −blocks, …, blocks − 1."""
    start: NDArray[np.int64]
    """For each slot, the first integer of its block."""
    scale: NDArray[np.float64]
    """For each slot, c/n_v times 2 to the number of bits of U, as a double; 0 for the tails."""

    @classmethod
    def above(cls, rate: Fraction, power: Literal[1, 2]) -> "_Histogram":
        slope = nearest(rate)
        farthest = (41.0 / slope) ** (1 / power)  # 41 and not 40, so that rounding cannot matter
        block_bits = max(0, math.frexp(farthest / 64)[1] - 1)
        blocks = int(farthest) // 2**block_bits + 1  # at most 129

        first = np.arange(-blocks, blocks, dtype=np.int64) << block_bits
        highest = np.where(first < 0, 1 - (first + 2**block_bits), first).astype(np.float64)
        # highest is |z| where g is greatest: a block's first integer, or on the left its last.
        g = np.exp(-np.minimum(slope * highest**power, 700.0))
        height = (_SLOTS - 2 - 2 * blocks) / float(g.sum())
        # n_v > c·g: a double is right to 2⁻⁴² where −log g ≤ 64, and elsewhere c·g < 2¹²·e⁻⁶⁴ < 1.
        slots = np.floor(height * g * (1 + 2.0**-38)).astype(np.int64) + 1
        slots[blocks] += _SLOTS - 1 - slots.sum()  # the spare ones to the block of 0; slot 0 is the tails'

        u_bits = WORD - _SLOT_BITS - block_bits
        start = np.concatenate([[0], np.repeat(first, slots)])
        scale = np.concatenate([[0.0], np.repeat(height / slots * 2.0**u_bits, slots)])
        return cls(rate, power, block_bits, blocks, Fraction(height), slots, start, scale)

    def attempt(self, noise: NoiseSource, attempts: int) -> NDArray[np.int64]:
        """The integers that were kept, of that many attempts."""
        words = noise.words(attempts)
        slot = (words & np.uint64(_SLOTS - 1)).view(np.int64)
        rest = words >> np.uint64(_SLOT_BITS)
        u_bits = WORD - _SLOT_BITS - self.block_bits
        u = (rest >> np.uint64(self.block_bits)).view(np.int64)

        z = self.start.take(slot)
        if self.block_bits:
            z += (rest & np.uint64(2**self.block_bits - 1)).view(np.int64)
        scaled = z.astype(np.float64)
        if self.power == 2:
            scaled *= scaled
        else:
            np.abs(scaled, out=scaled)
        scaled *= -nearest(self.rate)
        np.exp(scaled, out=scaled)
        scaled *= self.scale.take(slot)

        kept, undecided = flip(u.astype(np.float64), u_bits, scaled)
        for i in undecided:
            exact = self._settle(noise, int(slot[i]), int(z[i]), int(u[i]), u_bits)
            kept[i] = exact is not None
            z[i] = exact or 0
        return z[kept]

    def _settle(self, noise: NoiseSource, slot: int, z: int, u: int, u_bits: int) -> int | None:
        """Decide an attempt that double arithmetic could not; None if it is rejected."""
        if slot == 0:
            in_tails = below(noise, u, u_bits, Fraction(1, 2**DOUBT_BITS), Fraction(0))
            return self._tail(noise) if in_tails else None
        n_v = int(self.slots[(z >> self.block_bits) + self.blocks])
        return z if below(noise, u, u_bits, self.height / n_v, self.energy(z)) else None

    def _tail(self, noise: NoiseSource) -> int | None:
        """One attempt beyond the blocks; the side and the place come from one word, j from others."""
        j = 0
        while not (flips := int(noise.words(1)[0])):
            j += WORD
        j += (flips & -flips).bit_length() - 1
        word = int(noise.words(1)[0])
        width_bits = self.block_bits + 2
        size = (self.blocks << self.block_bits) + (j << width_bits) + (word >> (WORD - width_bits))
        z = ~size if word & 1 else size
        factor = self.height * 2 ** (DOUBT_BITS + 4 + j)
        if not below(noise, 0, 0, factor, self.energy(z)):
            return None
        return (z + 2**63) % 2**64 - 2**63

    def energy(self, z: int) -> Fraction:
        """−log g(z)."""
        return self.rate * (z * z if self.power == 2 else abs(z))


@lru_cache(maxsize=64)
def _histogram(rate: Fraction, power: Literal[1, 2]) -> _Histogram:
    return _Histogram.above(rate, power)
