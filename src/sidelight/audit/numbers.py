"""Means, quantiles, screening and discoveries under attack: each tells a number or a few.

Where the unit names people, the planted bug is somebody who has two names, so twice the records.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from sidelight.audit.neighbours import DOMAIN, OTHERS, Asked, Case
from sidelight.data.schema import Schema
from sidelight.data.table import Table
from sidelight.testing import SeededNoise

_OFTEN = 4
"""How many records one name has where people are told apart; the unit keeps fewer of them."""


def _people(asked: Asked, own: Sequence[Any], others: Sequence[Any]) -> tuple[list[Any], list[str] | None]:
    """All values, and who each is about where the unit names people: ``own`` are those of one person."""
    if asked.unit.person is None:
        return [*own, *others], None
    names = [f"x{place // (_OFTEN if asked.is_planted else len(own))}" for place in range(len(own))]
    return [*own, *others], [*names, *(f"p{place}" for place in range(len(others)))]


def _own(asked: Asked, value: Any) -> list[Any]:
    if asked.unit.person is None:
        return [value] * asked.records
    return [value] * (_OFTEN * (2 if asked.is_planted else 1))


def mean(asked: Asked) -> Case:
    """A mean of numbers between 0 and 1, by the likelihood ratio of its noisy sum and number of records.

    The sum is of what is above ½ or below, so that the others add nothing to it. The mean itself is not
    looked at: it orders answers of the same ratio, so a test chosen by it drops half of them by chance.
    """
    from sidelight.statistics.mixed_mean import mixed_mean

    second = _own(asked, 1.0) if asked.unit.relation == "replace" else []
    tables = tuple(_people(asked, own, [0.0, 1.0] * OTHERS) for own in (_own(asked, 0.0), second))
    moved = asked.records
    sums, sizes = (-moved / 2, moved / 2 if second else 0.0), (2 * OTHERS + moved, 2 * OTHERS)

    def found(table: tuple[list[float], list[str] | None], seed: int) -> float:
        (told,) = mixed_mean(
            [_group(asked, table)], bounds=(0.0, 1.0), alone=True, unit=asked.unit, noise=SeededNoise(seed)
        ).groups
        costs = {event.what.partition(" ")[0]: float(event.cost) for event in told.events}
        ratio = costs["sum"] * _apart((told.estimate - 0.5) * told.records, sums)
        if not second:
            ratio += costs["size"] * _apart(told.records, sizes)
        return ratio

    return Case((tables[0], tables[1]), found, asked.budget.pure())


def _apart(noisy: float, exact: tuple[float, float]) -> float:
    """By how much a Laplace answer is closer to the second of two values, as a share of their distance.

    Rounded, since all answers beyond a value have the same share, and a threshold must not part them.
    """
    return round((abs(noisy - exact[0]) - abs(noisy - exact[1])) / abs(exact[0] - exact[1]), 9)


def median(asked: Asked) -> Case:
    """A median, by the side of an edge that it is on (``_beside``).

    Where ε is claimed, answers that are rare show the most of it: they are likelier by nearly e^ε in the
    other table, where answers of even odds are by e^(ε/2). Of still rarer ones two thousand runs see too few.
    """
    from sidelight.statistics.mixed_quantile import mixed_quantile

    edge, tables = _beside(0.1, asked, epsilon=asked.budget.epsilon)

    def found(table: tuple[list[float], list[str] | None], seed: int) -> float:
        told = mixed_quantile(
            [_group(asked, table)], 0.5, bounds=(0.0, 1.0), density=1.0, alone=True, unit=asked.unit,
            noise=SeededNoise(seed),
        )  # fmt: skip
        return float(told.estimate > edge)

    return Case(tables, found, asked.budget.pure())


def _beside(odds: float, asked: Asked, *, epsilon: float) -> tuple[float, tuple[Any, Any]]:
    """An edge with few numbers at it, and one person's at 0; in the second table at 1, or gone.

    The median is below the edge or above, uniformly, so nothing but the side tells the tables apart. The edge
    is where the odds of being below are ``odds``, on average over both tables.
    """
    is_replaced = asked.unit.relation == "replace"
    odds *= 1.0 if is_replaced else math.exp(-epsilon / 2)
    edge = odds / (1 + odds)
    others = [edge] * (2 * asked.unit.records)
    second = _own(asked, 1.0) if is_replaced else []
    return edge, (_people(asked, _own(asked, 0.0), others), _people(asked, second, others))


def _group(asked: Asked, table: tuple[list[float], list[str] | None]) -> Any:
    from sidelight.statistics.group import Group

    values, people = table
    return Group(values, epsilon=asked.budget.epsilon, name="private", people=people)


def screen(asked: Asked) -> Case:
    """Public records that are all 0, so that they err by all that are 1."""
    from sidelight.evaluation.screening import best_mixture_error

    zeros = Table.of_codes(DOMAIN, np.zeros((5, 1), dtype=int))
    unit, epsilon = asked.unit, asked.budget.epsilon

    def found(table: Table, seed: int) -> float:
        noise = SeededNoise(seed)
        told = best_mixture_error(table, zeros, workload="1-way", epsilon=epsilon, unit=unit, noise=noise)
        return float(told.error)  # type: ignore[union-attr]  # noisy, since there is an ε

    return Case(asked.tables, found, asked.budget.pure())


def labels(asked: Asked) -> Case:
    """Labels that many people have, by the noisy numbers that are told of them.

    Where people are named, each adds 1 to k labels at most; so somebody has k labels, and k others in the
    second table.
    """
    is_named = asked.unit.person is not None
    kinds = asked.unit.records if is_named else 1
    each = asked.records // kinds
    others = [f"{side}{place}" for side in "ab" for place in range(kinds)] * (4 * OTHERS)
    # Each name has as many labels as the unit keeps, so that all of them count.
    own = {side: [f"{side}{place}" for place in range(kinds)] * each for side in "ab"}
    second = own["b"] if asked.unit.relation == "replace" else []
    tables = tuple(_labelled(asked, mine, others) for mine in (own["a"], second))

    def found(frame: Any, seed: int) -> Sequence[float]:
        told = _discover(asked, frame, seed).labels or {}
        gone, come = (sum(told.get(name, 0) for name in own[side]) for side in "ab")
        return [come - gone, -gone]

    return Case((tables[0], tables[1]), found, asked.budget.rho())


def _labelled(asked: Asked, own: Sequence[str], others: Sequence[str]) -> Any:
    import pyarrow as pa

    columns = {"a": pa.array([*own, *others])}
    if asked.unit.person is not None:
        names = [f"x{place // asked.unit.records}" for place in range(len(own))]
        columns["who"] = pa.array([*names, *(f"p{place}" for place in range(len(others)))])
    return pa.table(columns)


def edge(asked: Asked) -> Case:
    """The edge between two bins of as many records, which is a median, by its side of another (``_beside``).

    ρ is claimed, and shows best at even odds.
    """
    import pyarrow as pa

    beside, tables = _beside(1.0, asked, epsilon=math.sqrt(8 * float(asked.budget.rho())))
    frames = [
        pa.table({"a": values} | ({} if people is None else {"who": people})) for values, people in tables
    ]

    def found(frame: Any, seed: int) -> float:
        edges = _discover(asked, frame, seed, bounds=(0.0, 1.0), bins=2).edges
        return float(edges[1] > beside)

    return Case((frames[0], frames[1]), found, asked.budget.rho())


def _discover(asked: Asked, frame: Any, seed: int, **more: Any) -> Any:
    from sidelight.statistics.discovery import discover

    return discover(
        frame, "a", schema=Schema.from_domain({"b": 2}), epsilon=asked.budget.epsilon,
        delta=asked.budget.delta, unit=asked.unit, noise=SeededNoise(seed), **more,
    )  # fmt: skip
