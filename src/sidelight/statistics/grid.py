"""Values on a public grid, so that sums are whole numbers and exact noise applies.

    γ = (hi − lo) / 2ᵇ          v = ⌊(clamp(x) − lo)/γ⌉ ∈ {0, …, 2ᵇ}          y = v − 2ᵇ⁻¹

Bounds and b are public, and each record is rounded by itself, so rounding is a step that each person
could take at home: it changes no sensitivity. It moves a mean by at most γ/2 ≤ (hi − lo)·2⁻³¹ at the
usual b = 30. For small ε fewer bits are used, so that the noise still fits the samplers; then the noise
of a sum is above 2³⁸γ, far more than γ/2.

Sums are of y, the value *centred* between the bounds: |y| ≤ (hi − lo)/2γ. Under replacement the width
counts, wherever the centre is; under add-or-remove a person moves the sum by at most half the width,
never more than max(|lo|, |hi|), the sensitivity without centring.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sidelight.errors import SettingError
from sidelight.privacy.budget import Cost, Rho
from sidelight.privacy.unit import Unit

Array = NDArray[np.float64]
Whole = NDArray[np.int64]

MOST_BITS = 30
_LEAST_BITS = 8


@dataclass(frozen=True)
class Grid:
    """A public grid of 2ᵇ steps between two public bounds."""

    low: float
    high: float
    bits: int = MOST_BITS

    @property
    def width(self) -> float:
        """R = hi − lo."""
        return self.high - self.low

    @property
    def centre(self) -> float:
        """Halfway between the bounds, c = (lo + hi)/2."""
        return self.low + self.width / 2

    @property
    def step(self) -> float:
        """γ, in the values' own units."""
        return math.ldexp(self.width, -self.bits)

    def places(self, values: Array) -> Whole:
        """The grid point next to each value: 0 at the lower bound, 2ᵇ at the upper.

        >>> Grid(0.0, 1.0, bits=8).places(np.array([-3.0, 0.5, 2.0])).tolist()
        [0, 128, 256]
        """
        scaled = np.clip(values, self.low, self.high)
        scaled -= self.low
        scaled *= 2**self.bits / self.width
        np.rint(scaled, out=scaled)
        # Rounding of the product could step over the bound; the sensitivity counts on it.
        return np.clip(scaled.astype(np.int64), 0, 2**self.bits)

    def centred(self, values: Array) -> Whole:
        """The grid point as an offset from the centre, within ±2ᵇ⁻¹."""
        return self.places(values) - (1 << (self.bits - 1))

    def squares(self, values: Array) -> Whole:
        """((x − c) / (R/2))² in steps of 2⁻ᵇ: whole numbers from 0 to 2ᵇ."""
        offsets = np.clip(values, self.low, self.high)
        offsets -= self.centre
        offsets *= 2 / self.width
        offsets *= offsets
        offsets *= 2**self.bits
        return np.clip(np.rint(offsets).astype(np.int64), 0, 2**self.bits)

    def outside(self, values: Array) -> int:
        """How many values the bounds clamp."""
        return int(np.count_nonzero((values < self.low) | (values > self.high)))

    def within(self, low: float, high: float) -> tuple[float, float]:
        """An interval, cut to the bounds."""
        return max(float(low), self.low), min(float(high), self.high)

    def finest(self, cost: Cost, unit: Unit) -> "Grid":
        """The finest grid on which the samplers can draw the noise that this cost pays for."""
        # With k records a person, σ² = (2ᵇk)²/2ρ must stay below 2⁶², and b = 2ᵇk/ε below 2⁴⁰.
        is_rho = isinstance(cost, Rho)
        room = 31 + math.log2(2 * cost.value) / 2 if is_rho else 40 + math.log2(cost.value)
        bits = min(MOST_BITS, math.floor(room - math.log2(unit.records)) - 1)
        if bits < _LEAST_BITS:
            raise SettingError(
                f"epsilon is too small to be of use: a part of it, {float(cost.value):.3g}, "
                "would need more noise than can be drawn exactly. Leave the group out."
            )
        return Grid(self.low, self.high, bits)
