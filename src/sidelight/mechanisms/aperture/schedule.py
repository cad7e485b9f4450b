"""How many marginals APERTURE measures with its tree, how many beyond it, and what it has for either.

A tree within the size limit cannot hold all marginals. Where as many as may be measured beyond it would be
heard there above their noise, a share of the budget is kept for those. Where public relations tell of less
than half of the marginals, the tree has more room for private ones: then the share is kept only if half of
the marginals would be heard clearly, and the tree gets more rounds otherwise.

PRIVACY: functions of public facts, and of a model of noisy answers.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from fractions import Fraction

from sidelight.data.domain import Attrs
from sidelight.mechanisms.aperture.worth import heard
from sidelight.mechanisms.candidates import marginal_stddev, mib
from sidelight.models.graphical import GraphicalModel
from sidelight.privacy.budget import Cost
from sidelight.privacy.unit import Unit
from sidelight.trees.triangulation import SizeOracle

_PAIRS = 128
"""``max_particle_rounds`` is for so many pairs: 41 attributes have 820, so 6 × 64 of these are measured
beyond the tree, if they are heard; below 128 pairs it is 64."""
_CLEARLY = 16
"""Where public relations tell of less than half of the candidates, half must be heard through so many times
the noise before anything is measured beyond the tree."""


@dataclass(frozen=True)
class Schedule:
    """What the rounds have to spend, and on how many marginals."""

    rounds: int
    """With the tree."""
    for_tree: Cost
    beyond: int
    """Most marginals beyond the tree, with what is left then."""


@dataclass(frozen=True, kw_only=True)
class MostRounds:
    """The most marginals that a run may measure, for one workload; and how its budget is divided."""

    with_tree: int
    alone: int
    """With the tree, where public relations tell of little and nothing is measured beyond it."""
    beyond: int
    least_beyond: int
    """Fewer than this number are not worth measuring beyond the tree."""
    late_share: float
    """Share of the budget for what lies beyond the tree."""
    select_share: float
    limit_mb: float

    @property
    def most(self) -> int:
        """Most of all rounds together."""
        return max(self.with_tree + (self.beyond if self.late_share else 0), self.alone)

    def least_costs(self, cost: Cost) -> list[Cost]:
        """The least that is paid for measuring one marginal, with the tree and beyond it."""
        late, for_tree = cost.split(self.late_share)
        return [(for_tree / self.with_tree).split(self.select_share)[1], self._late_cost(late, self.beyond)]

    def schedule(
        self, model: GraphicalModel, candidates: Sequence[Attrs], cost: Cost, unit: Unit, *, is_led: bool
    ) -> Schedule:
        """For so much budget; ``is_led`` says whether public relations tell of half of the candidates."""
        late, for_tree = cost.split(self.late_share)
        rounds, beyond = self.with_tree, self._beyond(model, candidates, late, unit)
        if beyond and not is_led:
            clearly = _CLEARLY * marginal_stddev(self._late_cost(late, beyond), unit)
            if 2 * len(heard(model, candidates, stddev=clearly)) < len(candidates):
                rounds, beyond = self.alone, 0
        if not beyond:
            for_tree = cost
        return Schedule(min(rounds, len(candidates)) if for_tree else 0, for_tree, beyond)

    def _beyond(self, model: GraphicalModel, candidates: Sequence[Attrs], late: Cost, unit: Unit) -> int:
        """As many marginals beyond the tree as could be heard there; 0 where it can hold all there are."""
        if not late or mib(SizeOracle(model.domain, candidates).cells) <= self.limit_mb:
            return 0
        most = self.beyond
        while most >= self.least_beyond:
            number = min(most, len(candidates))
            stddev = marginal_stddev(self._late_cost(late, number), unit)
            if len(heard(model, candidates, stddev=stddev)) >= number:
                return number
            most //= 2
        return 0

    def _late_cost(self, late: Cost, number: int) -> Cost:
        return (late / number).split(self.select_share)[1]


def most_rounds(
    closure: Collection[Attrs],
    *,
    rounds: int,
    beyond: int,
    late_share: float,
    select_share: float,
    limit_mb: float,
) -> MostRounds:
    """For a workload, from the settings: more where nothing larger than pairs is asked for.

    A triple holds three pairs, so as many rounds tell of three times as much.
    """
    pairs = sum(len(c) == 2 for c in closure) if max(map(len, closure)) == 2 else 0
    with_tree = rounds * (3 if pairs else 1)
    # Where all of the budget goes to the tree, each of its rounds has at least as much as otherwise.
    times = 1 / (1 - min(Fraction(late_share).limit_denominator(), Fraction(1, 2)))
    return MostRounds(
        with_tree=with_tree, alone=max(with_tree, int(rounds * times)),
        beyond=beyond * max(1, pairs // _PAIRS), least_beyond=beyond,
        late_share=late_share, select_share=select_share, limit_mb=limit_mb,
    )  # fmt: skip
