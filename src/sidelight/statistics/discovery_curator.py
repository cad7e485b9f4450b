"""The curator of discovery: which labels many people have, where bins end, how many records people have.

**Labels.** A person adds 1 to the numbers of at most k labels, which a keyed hash chooses (or, where no
column says who is who, k records to the numbers of labels). Labels of fewer than ``at_least`` people are left
out, and m is taken from the numbers of the others, where m is what ``at_least`` − 1 people can add up to:
the number of a label is max(0, c − m), which moves no further than c. Noise is added to those above 0, and
what reaches the threshold is told, with its noisy number.

PRIVACY: on neighbouring tables numbers differ by the person's own part. Gaussian noise hides that, at
ρ = Δ₂²/2σ², but not that a label's number is 0 in one table and above 0 in the other. There are at most k
such labels on either side, the number of each is what one person adds, and with a probability of at most δ
any of them is told (``event.Threshold``). A label of fewer than ``at_least`` people is never told.

**Edges and records.** Quantiles by the exponential mechanism, on a public grid.
"""

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from sidelight.curator.curator import require_kept
from sidelight.curator.door import Door
from sidelight.data.table import Table
from sidelight.measurement import gaussian
from sidelight.privacy import event as events
from sidelight.privacy.budget import Cost, Rho
from sidelight.privacy.unit import Unit
from sidelight.select.exponential import exponential
from sidelight.statistics.curator import rank_sensitivity

DELTA_SHARE = Fraction(1, 4096)
"""The part of the promised δ with which a label of one person may be told."""

Counted = Callable[[int], Mapping[str, int]]
"""How many people, or records, have each label that more than so many have; asked once it is paid for."""


@dataclass(frozen=True)
class Contribution:
    """The most that one person can add to the numbers of labels."""

    labels: int
    """To how many labels, at most."""
    each: int
    """How much to one of them, at most."""
    l2_squared: int
    """Δ₂² of all numbers together."""

    @classmethod
    def of(cls, unit: Unit) -> "Contribution":
        """With a column of people, k labels of one each; without one, k records wherever they fall.

        >>> Contribution.of(Unit("add-or-remove", 3, "patient_id"))
        Contribution(labels=3, each=1, l2_squared=3)
        >>> Contribution.of(Unit("replace", 3))
        Contribution(labels=3, each=3, l2_squared=18)
        """
        if unit.person is None:
            return cls(unit.records, unit.records, unit.l2_squared)
        # PRIVACY: under replacement k labels may lose one person each, and k others gain one.
        return cls(unit.records, 1, unit.records * (2 if unit.relation == "replace" else 1))


@dataclass(frozen=True)
class FoundLabels:
    """Labels that reached the threshold; public."""

    numbers: dict[str, int]
    """About how many people have each label, with noise; records, where no column says who is who."""
    stddev: float
    """σ of that noise."""
    least: int
    """The threshold that a noisy number had to reach."""


def label_event(
    cost: Rho, unit: Unit, *, column: str, delta: Fraction, surcharge: Fraction
) -> events.Threshold:
    """The event of finding the labels of one column; ``delta`` and its price are those of the promise."""
    adds = Contribution.of(unit)
    event = events.Threshold.at(
        cost, what=f"labels of {column}", l2_squared=Fraction(adds.l2_squared), labels=adds.labels,
        own=adds.each, delta=delta, surcharge=surcharge,
    )  # fmt: skip
    event.require_drawable()
    return event


class DiscoveryCurator(Door):
    """Looks for what a schema should declare, and tells it with noise that was paid for."""

    def labels(self, counted: Counted, event: events.Threshold, *, at_least: int) -> FoundLabels:
        """The labels that enough people have; ``counted`` gives numbers that ``Contribution`` bounds."""
        left_out = (at_least - 1) * Contribution.of(self.unit).each
        names: list[str] = []

        def look() -> NDArray[np.int64]:
            numbers = {
                name: number - left_out for name, number in counted(left_out).items() if number > left_out
            }
            names.extend(sorted(numbers))  # PRIVACY: in an order that tells nothing of the table's
            return np.array([numbers[name] for name in names], dtype=np.int64)

        noisy = self._pay_then(event, look, lambda exact: gaussian(self._noise, exact, event))
        self._tell("looked for labels")
        told = {
            name: int(number) + left_out
            for name, number in zip(names, noisy, strict=True)
            if number >= event.threshold
        }
        return FoundLabels(told, float(event.variance) ** 0.5, event.threshold + left_out)

    def edges(self, table: Table, cost: Cost, *, column: str, bins: int, bits: int) -> list[int]:
        """Quantiles of one attribute, whose codes are places from 0 to 2ᵇ: those of ``bins`` − 1 edges.

        Each is paid for with the same part of the cost. What is missing has the code 2ᵇ + 1.
        """
        require_kept(table, self.unit)
        counts: list[NDArray[np.int64]] = []

        def look() -> NDArray[np.int64]:
            # PRIVACY: the first quantile that is asked for looks, and it is paid for by then.
            if not counts:
                counts.append(table.count((column,))[: 2**bits + 1])
            return counts[0]

        each = cost / (bins - 1)
        return sorted(
            self._quantile(
                look, Fraction(place, bins), each, self.unit, what=column, chances=np.ones(2**bits + 1)
            )
            for place in range(1, bins)
        )

    def records(
        self,
        counted: Callable[[], Mapping[int, int]],
        cost: Cost,
        *,
        covered: Fraction,
        answers: Sequence[int],
    ) -> int:
        """Which of these numbers of records this part of the people do not exceed.

        A number between two answers counts as the larger one, and a number above all of them as the last.
        An answer twice as large starts with half the chance: in a release, noise grows with it.
        """

        def look() -> NDArray[np.int64]:
            counts = np.zeros(len(answers), dtype=np.int64)
            for records, people in counted().items():
                counts[bisect_left(answers, min(records, answers[-1]))] += people
            return counts

        # PRIVACY: every person has one number of records, whatever it is.
        each = Unit(self.unit.relation)
        chances = 1.0 / np.array(answers, dtype=np.float64)
        place = self._quantile(look, covered, cost, each, what="records a person", chances=chances)
        return answers[place]

    def _quantile(
        self, look: Callable[[], NDArray[np.int64]], quantile: Fraction, cost: Cost, unit: Unit, *, what: str,
        chances: NDArray[np.float64],
    ) -> int:  # fmt: skip
        """The q-quantile of values 0, 1, …, of which ``look`` gives the counts, by the exponential mechanism.

            score   s(v) = −max(#{x < v} − qn, qn − #{x ≤ v}, 0)

        0 for the quantile itself, however many values are equal to it. Each of the three moves by no more
        than a rank less qn does, so the largest does not either. Scores are multiplied by the denominator of
        q, which makes them whole numbers. ``chances`` are those of each value before anything is known.
        """
        steps = quantile.denominator
        event = events.Exponential.at(
            cost,
            what=f"quantile {float(quantile):g} of {what}",
            sensitivity=steps * rank_sensitivity(quantile, unit),
            candidates=len(chances),
        )
        # PRIVACY: the chances are public, so the same on neighbours: Pr[v] ∝ chance_v · exp(ε s_v / 2Δ).
        start = float(2 * event.sensitivity / event.epsilon) * np.log(chances)

        def draw(counts: NDArray[np.int64]) -> NDArray[np.int64]:
            upto = np.cumsum(counts)
            wanted = quantile.numerator * upto[-1]
            below = steps * (upto - counts) - wanted
            above = wanted - steps * upto
            scores = start - np.maximum(np.maximum(below, above), 0).astype(np.float64)
            return np.array([exponential(self._noise, scores, event)], dtype=np.int64)

        (drawn,) = self._pay_then(event, look, draw).tolist()
        self._tell(event.what)
        return int(drawn)
