"""``bins="auto"``: neighbouring values in groups, where n and ε cannot tell single values apart.

    n ← the number of records                                  free where it is public, else 1% of the budget
    k ← max(8, ½ √(n/σ))
    for each ordered attribute a of more than 1.5 k values:
        y_a ← M_a(D) + noise                                   10% of the budget, for all of them    measure
        join the two lightest neighbours by y_a, until a has k groups
    p′ ← the mechanism, asked about groups instead of values
    p(x) = p′(group of x) · Π_a share_a(x_a)                   shares by y_a                         refine

σ is the noise of a marginal if the budget is spread over two for each attribute that the workload is about.
Why √: a pair of attributes is off by noise in proportion to k, and by what groups hide in proportion to 1/k.
The constants ½, 8, 1.5, 1% and 10% were chosen on ACS income and NIST's ACS excerpts
(``benchmarks/utility/bins.py``).

With public data, values stay as they are declared: mechanisms that use such data learn from them how values
differ within a group, and groups made them err more (JAM at ε = 0.1 by half; APERTURE by a fifth, even where
values had their public shares within a group).

The mechanism does not know of groups: the curator counts in groups for it. A record stands in one group, as
it had one value, so every sensitivity stays as it is. Which attributes may be grouped follows from schema,
workload and mechanism; everything else follows from answers that were paid for.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sidelight import _check
from sidelight.curator.curator import Curator
from sidelight.data.domain import Domain
from sidelight.data.grouping import Grouping, Groups, apart, sum_by_groups
from sidelight.data.schema import Schema
from sidelight.measurement import Measurement
from sidelight.mechanisms.base import Mechanism, Outcome
from sidelight.mechanisms.candidates import marginal_stddev
from sidelight.mechanisms.registry import AUTO
from sidelight.mechanisms.told import GroupedValues
from sidelight.models.refined import Refined
from sidelight.privacy.budget import Cost
from sidelight.privacy.unit import Unit
from sidelight.queries.grouped import of_values
from sidelight.queries.query import Marginal
from sidelight.queries.workload import Workload

Array = NDArray[np.float64]

_FEWEST = 8
"""Fewest groups: with fewer, what they hide outweighs any noise."""
_WORTHWHILE = 1.5
"""An attribute keeps its values if they are at most so many times as many as its groups would be."""
_SHARE = 0.1
"""Share of the budget that measures every value of the grouped attributes."""
_TOTAL_SHARE = 0.01
"""Share of the budget that measures n, where n is private."""
_SHOWN = (1_000, 10_000, 100_000, 1_000_000)
"""Numbers of records for which a plan says how many groups there would be."""


@dataclass(frozen=True)
class Bins:
    """The attributes that may be grouped, decided beforehand; ``run`` groups them by answers it pays for."""

    joinable: Mapping[str, tuple[bool, ...]]
    """For each such attribute and every code but the last, whether the next code is its neighbour."""
    asked: int
    """How many attributes the workload is about."""

    @classmethod
    def of(
        cls, choice: str, schema: Schema, workload: Workload, mechanism: Mechanism, public: Any
    ) -> "Bins | None":
        """None where values stay as they are declared."""
        _check.one_of((AUTO, "as declared"), bins=choice)
        if choice == "as declared" or public is not None or not mechanism.takes_groups:
            return None
        about = set(workload.attrs)
        # A range or a cell may end within a group.
        single = {attr for query in workload if not isinstance(query, Marginal) for attr in query.attrs}
        joinable = {
            column.name: _neighbours(schema.domain, column.name, column.declared)
            for column in schema.columns
            if column.is_ordered and column.name in about - single and column.declared > _WORTHWHILE * _FEWEST
        }
        return cls(joinable, len(about)) if joinable else None

    def left_of(self, allotment: Cost) -> Cost:
        """The least that a mechanism has to spend."""
        return allotment.split(_SHARE + _TOTAL_SHARE)[1]

    def number(self, n: float, allotment: Cost, unit: Unit) -> int:
        """k: how many groups an attribute has, for so many records."""
        stddev = marginal_stddev(self.left_of(allotment) / (2 * self.asked), unit)
        return max(_FEWEST, round(math.sqrt(n / stddev) / 2))

    def run(self, mechanism: Mechanism, curator: Curator, workload: Workload) -> Outcome:
        """Run the mechanism on groups of values, where there are to be any."""
        domain, allotment = curator.domain, curator.allotment
        n = curator.total(allotment.split(_TOTAL_SHARE)[0])
        k = self.number(n, allotment, curator.unit)
        wide = [attr for attr in self.joinable if domain.sizes[attr] > _WORTHWHILE * k]

        # MEASURE every value of the attributes that are to be grouped.
        cost = allotment.split(_SHARE)[0] / max(len(wide), 1)
        made = {attr: curator.measure(Marginal((attr,)), cost) for attr in wide}
        grouping = Grouping(
            domain, {attr: join(made[attr].answer, self.joinable[attr], groups=k) for attr in wide}
        )
        with curator.in_groups(grouping):
            outcome = mechanism.run(curator, workload)
        if not wide:
            return outcome
        # REFINE.
        shares = {attr: within(made[attr], grouping.of(attr)) for attr in wide}
        told = [replace(one, query=of_values(one.query, grouping)) for one in outcome.measurements]
        return replace(
            outcome,
            model=Refined(outcome.model, grouping, shares),
            measurements=(*made.values(), *told),
            groups=tuple(GroupedValues.of(attr, groups) for attr, groups in grouping.groups.items()),
        )

    @property
    def ungrouped(self) -> str:
        """Why public data keep these values apart, although groups were asked for."""
        return (
            f"Values stay as they are declared, those of {_check.listed(self.joinable, 6)} too: public data "
            "tell how values differ within a group, which groups would hide."
        )

    def sentence(self, domain: Domain, allotment: Cost, unit: Unit) -> str:
        """The groups to expect, in sentences, for several numbers of records."""
        names = _check.listed((f"{attr} ({domain.sizes[attr]} values)" for attr in self.joinable), 6)
        groups = [self.number(n, allotment, unit) for n in _SHOWN]
        said = ", ".join(f"{k} for {n:,}" for k, n in zip(groups, _SHOWN, strict=True))
        return (
            "Neighbouring values are modelled in groups if they are more than the budget can tell apart: "
            f"{names}. Groups of an attribute, by the number of records: {said}. Then {_SHARE:.0%} of "
            "the budget measures each single value. bins='as declared' switches this off."
        )


def join(counts: Array, joinable: Sequence[bool], *, groups: int) -> Groups:
    """Join the two neighbours that together hold least, again and again, until so many groups are left.

    >>> join(np.array([5.0, 1.0, 1.0, 9.0]), [True, True, True], groups=3)
    (0, 1, 1, 2)
    """
    held = list(np.maximum(counts, 0.0))
    open_ = list(joinable)
    sizes = [1] * len(held)
    while len(held) > groups and any(open_):
        together = [a + b if free else math.inf for a, b, free in zip(held, held[1:], open_, strict=False)]
        place = int(np.argmin(together))
        held[place] += held.pop(place + 1)
        sizes[place] += sizes.pop(place + 1)
        del open_[place]
    return tuple(np.repeat(np.arange(len(sizes)), sizes).tolist())


def within(made: Measurement, groups: Groups) -> Array:
    """Each value's share of its group: from equal shares, as far towards the noisy answers as noise allows.

    Answers vary within a group by the noise, σ², and by as much as the values really differ, s². What is kept
    of a value's distance to its group's mean is s²/(s² + σ²): James and Stein's rule.
    """
    of, members = np.array(groups), np.bincount(groups)
    mean = (np.maximum(sum_by_groups(made.answer, [groups]), 0.0) / members)[of]
    off = made.answer - mean
    spread = np.maximum(sum_by_groups(off**2, [groups]) / np.maximum(members - 1, 1) - made.stddev**2, 0.0)
    kept = (spread / (spread + made.stddev**2))[of]
    # No value is given up: noise may hide it, and a share of 0 could never be right.
    refined = np.maximum(mean + kept * off, 1e-3 * (mean + made.stddev))
    return np.asarray(refined / sum_by_groups(refined, [groups])[of])


def _neighbours(domain: Domain, attr: str, declared: int) -> tuple[bool, ...]:
    """Whether each code and the next may be joined: declared values, alike in all that is impossible."""
    named = apart(domain, attr)
    return tuple(
        code + 1 < declared and named[code] == named[code + 1] for code in range(domain.sizes[attr] - 1)
    )
