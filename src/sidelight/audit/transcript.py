"""The strongest test of a run: the likelihood ratio of everything that it drew.

A mechanism is a function of the curator's answers, so these say all that a run can tell. The attacker knows
both tables and the code. So a run on one table is played again on the other, with the same answers: each time
the exact values are noted that the noise was added to, or the scores that the choice was made by. The law of
each draw is public, and the ratio of its probabilities under the two tables is the best test there is (Neyman
and Pearson). For permute-and-flip the ratio is approximated, by that of the exponential mechanism.

Beside it stands what no payment covers: a number of the released model, where the two tables differ most. A
mechanism that looked at the table without paying gives itself away there.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sidelight.curator.curator import Curator, Scored
from sidelight.data.table import Table
from sidelight.mechanisms.base import Mechanism, Outcome
from sidelight.privacy import event as events
from sidelight.privacy.budget import Budget
from sidelight.privacy.ledger import MemoryLedger
from sidelight.privacy.promise import Promise
from sidelight.privacy.unit import Unit
from sidelight.queries.query import answer
from sidelight.queries.workload import Workload
from sidelight.testing import SeededNoise

Draw = tuple[events.Event, Any, NDArray[np.int64]]
"""One draw: the event that was paid for, the exact numbers, and the output."""
IMPOSSIBLE = 1e6
"""The likelihood ratio of a run that only one of the two tables can have."""


class Watched(Curator):
    """A curator whose draws are noted; or, given those of another run, one that answers with them."""

    def __init__(self, table: Table, *, replayed: Sequence[Draw] | None = None, **settings: Any) -> None:
        super().__init__(table, **settings)
        self.draws: list[Draw] = []
        self._transcript = replayed

    def _pay_then(self, event: events.Event, look: Any, draw: Any, *, numbers: int = 2) -> NDArray[np.int64]:
        exact: list[Any] = []

        def noted() -> Any:
            exact.append(look())
            return exact[0]

        if self._transcript is None:
            output = super()._pay_then(event, noted, draw, numbers=numbers)
        else:
            self._accountant.charge(event)
            noted()
            place = len(self.draws)
            if place >= len(self._transcript) or self._transcript[place][0] != event:
                raise _OtherWayError
            output = self._transcript[place][2]
        self.draws.append((event, exact[0], output))
        return output


class _OtherWayError(Exception):
    """The same answers led elsewhere: something else of the table was looked at."""


def likelihood_ratios(
    mechanism: Mechanism,
    table: Table,
    neighbours: tuple[Table, Table],
    workload: Workload,
    *,
    budget: Budget,
    unit: Unit,
    public: Any,
    seed: int,
) -> list[float]:
    """One run on ``table``, by numbers that are higher if it is the second of the neighbours.

    The likelihood ratio of all draws; that of what was measured alone; and a number of the released model.
    """

    def run(on: Table, replayed: Sequence[Draw] | None) -> tuple[Watched, Outcome]:
        watched = Watched(
            on, replayed=replayed, allotment=mechanism.allotment(budget), unit=unit,
            ledger=MemoryLedger(Promise(budget, unit, "audit")), noise=SeededNoise(seed),
        )  # fmt: skip
        return watched, mechanism.run(watched, workload, public=public)

    watched, outcome = run(table, None)
    is_second = table is neighbours[1]
    measured = _of_measurements(outcome, neighbours)
    told = _of_model(outcome, neighbours)
    try:
        other, _ = run(neighbours[0] if is_second else neighbours[1], watched.draws)
    except _OtherWayError:
        return [IMPOSSIBLE if is_second else -IMPOSSIBLE, measured, told]
    first, second = (other, watched) if is_second else (watched, other)
    drawn, is_complete = 0.0, True
    for (event, before, output), (_, after, _) in zip(first.draws, second.draws, strict=True):
        ratio = _ratio(event, before, after, output)
        is_complete = is_complete and ratio is not None
        drawn += ratio or 0.0
    # What was measured together has a variance for each number, which the measurements tell.
    return [drawn if is_complete else drawn + measured, measured, told]


def _ratio(event: events.Event, before: Any, after: Any, output: NDArray[np.int64]) -> float | None:
    """log p(output | after) − log p(output | before); None where the event does not tell the law."""
    if isinstance(event, events.Gaussian):
        squares = (output - before) ** 2 - (output - after) ** 2
        return float(squares.sum()) / (2 * float(event.variance))
    if isinstance(event, events.Laplace):
        return float((np.abs(output - before) - np.abs(output - after)).sum()) / float(event.scale)
    if isinstance(event, events.Selection):
        return _chosen(event, after, output) - _chosen(event, before, output)
    return None


def _chosen(event: events.Selection, scores: Any, output: NDArray[np.int64]) -> float:
    """log of the probability of a choice by the exponential mechanism; of permute-and-flip, about that."""
    listed = scores.scores if isinstance(scores, Scored) else np.ravel(scores)
    weights = listed * float(event.epsilon / (2 * event.sensitivity))
    chances = weights - np.logaddexp.reduce(weights)
    if isinstance(scores, Scored):  # which candidate, and which of its cells
        which, cells = output[: output.size // 2], output[output.size // 2 :]
        return float(chances[scores.starts[which] + cells].sum())
    return float(chances[output].sum())


def _of_measurements(outcome: Outcome, neighbours: tuple[Table, Table]) -> float:
    """The likelihood ratio of all that was measured, by the noise that was drawn."""
    has_laplace = any(isinstance(event, events.Laplace) for event in outcome.events)
    ratio = 0.0
    for measurement in outcome.measurements:
        first, second = (measurement.answer - answer(measurement.query, table) for table in neighbours)
        if has_laplace:
            ratio += float((np.abs(first) - np.abs(second)).sum()) * 2**0.5 / measurement.stddev
        else:
            ratio += float((first**2 - second**2).sum()) / (2 * measurement.stddev**2)
    return ratio


def _of_model(outcome: Outcome, neighbours: tuple[Table, Table]) -> float:
    """The released counts, in the direction in which the tables differ."""
    attrs = outcome.model.domain.attrs
    direction = neighbours[1].count(attrs) - neighbours[0].count(attrs)
    return float((outcome.count(attrs) * direction).sum())
