"""The arbiter: which description of the data leads, by its mean error on the workload.

    k ~ odds_k · exp(−ε Σ_c w_c ‖x_c − μ_c^k‖₁ / 2Δ₁),      Σ_c w_c = 1                          select

All candidates are functions of public data and of answers that were paid for, so the mean error of each moves
by Δ₁ of a single marginal, however many marginals and candidates there are (select/judgement.py): a hundredth
of the budget tells a good description from a false one. It is asked

- **at the start**, after the answers to single attributes: do the public relations hold? All of them; all but
  those of one attribute, which may be coded otherwise; none, but public single attributes; or nothing public
  at all. It is asked again until nothing more is cut off;
- **at the end**: how much of what stands beside the tree is mixed into it (other trees, and public records,
  after the same answers), or whether all of it is worse than what the same answers say without public
  relations.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, product

import numpy as np
from numpy.typing import NDArray

from sidelight.curator.curator import Curator
from sidelight.data.count_source import ManyCountSource
from sidelight.data.domain import Attrs, Domain
from sidelight.models.blend import Blend
from sidelight.models.graphical import GraphicalModel
from sidelight.models.support import Support
from sidelight.privacy.budget import Cost
from sidelight.privacy.event import Exponential
from sidelight.queries.query import Marginal
from sidelight.select.judgement import Contest, Judgement, LeastError, Said
from sidelight.trees.triangulation import BYTES_PER_CELL

Array = NDArray[np.float64]
RELATIONS, ALL = "×", "*"
"""What is cut off where it is not one attribute: all public relations; all public data."""

_JUDGE_BY = 64
"""Most marginals by which candidates are judged: of a larger workload, an even part."""
_FAITH, _FAITH_IN_EACH = 4.0, 2.0
"""Log-odds, before the arbiter looks, of all public relations against none, and against all cuts together."""
_MATTERS = 0.01
"""Mean error, as a share of n, that cutting off has to save: less may be made up for by what is measured
afterwards, in rounds at the start and by particles at the end."""
_TELLS = 0.1
"""Share of n that the arbiter has to tell apart to be asked at the start: else chance decided, not data."""
_PARTS = (0.0, 0.5, 1.0)
_LIKING = 3.0
"""Log-odds of taking all against none, of others and of records alike."""


@dataclass(frozen=True)
class Arbiter:
    """Asks the curator which of several candidates errs least on what the workload asks for."""

    curator: Curator
    weights: Mapping[Attrs, float]
    """Of every marginal that it judges by."""
    total: float

    @classmethod
    def of(
        cls, curator: Curator, closure: Mapping[Attrs, float], *, total: float, limit_mb: float
    ) -> "Arbiter":
        """By the marginals that the workload asks for, without their parts, and none larger than a model."""
        most = limit_mb * 2**20 / BYTES_PER_CELL
        parts = {part for attrs in closure for part in combinations(attrs, len(attrs) - 1)}
        whole = [attrs for attrs in closure if attrs not in parts and curator.domain.size(attrs) <= most]
        judged = whole[:: max(1, len(whole) // _JUDGE_BY)] or [c for c in closure if len(c) == 1]
        return cls(curator, {attrs: closure[attrs] for attrs in judged}, total)

    @property
    def judged(self) -> list[Attrs]:
        """The marginals that it judges by."""
        return list(self.weights)

    def choose(self, judgement: Judgement, cost: Cost) -> int:
        """Which option errs least, as far as the noise lets one see."""
        return self.curator.choose([Marginal(attrs) for attrs in self.judged], judgement, cost)

    def tells(self, cost: Cost) -> bool:
        """Whether so much budget tells candidates apart: 2Δ₁/ε records make one e times as likely."""
        event = Exponential.at(
            cost, what="a choice", sensitivity=Fraction(self.curator.unit.l1), candidates=2
        )
        return bool(2 * event.sensitivity / event.epsilon < _TELLS * self.total)

    def to_cut(
        self, model: ManyCountSource, alone: ManyCountSource, open_: Sequence[str], cost: Cost
    ) -> str | None:
        """Which of the open attributes is better cut off, or RELATIONS, or ALL; None if nothing is.

        ``model`` has the public relations, ``alone`` nothing public; both follow the answers to single
        attributes.
        """
        said = _cuts(self.curator.domain, open_)
        log_odds = odds_of_cuts(len(open_))
        contest = Contest(
            [model, alone], said, weights=self.weights, total=self.total, log_odds=log_odds,
            handicaps=[0.0] + [_MATTERS * self.total] * (len(log_odds) - 1),
        )  # fmt: skip
        return [None, *open_, RELATIONS, ALL][self.choose(contest, cost)]

    def best(self, models: Sequence[ManyCountSource], cost: Cost) -> int:
        """Which of several models errs least; all are as likely beforehand."""
        each = np.eye(len(models)).tolist()
        return self.choose(LeastError(models, each, weights=self.weights, total=self.total), cost)

    def mixed(
        self, model: GraphicalModel, beside: Sequence[tuple[Support, float]], bare: GraphicalModel, cost: Cost
    ) -> GraphicalModel | Blend:
        """The tree with as much of each of those beside it, up to a share, as is good; or the bare one."""
        shares, log_odds = list[list[float]](), list[float]()
        for parts in product(_PARTS, repeat=len(beside)):
            left, taken = 1.0, list[float]()
            for part, (_, most) in zip(parts, beside, strict=True):
                taken.append(left * part * most)
                left -= taken[-1]
            shares.append([left, *taken, 0.0])
            log_odds.append(_LIKING * sum(parts))
        shares.append([0.0] * (1 + len(beside)) + [1.0])
        log_odds.append(_LIKING * len(beside) - _FAITH)
        models: list[ManyCountSource] = [model, *(part for part, _ in beside), bare]
        contest = LeastError(
            models, shares, weights=self.weights, total=self.total, log_odds=log_odds,
            handicaps=[0.0] * (len(shares) - 1) + [_MATTERS * self.total],
        )  # fmt: skip
        _, *taken, none = shares[self.choose(contest, cost)]
        if none:
            return bare
        held = [(part, share) for (part, _), share in zip(beside, taken, strict=True) if share]
        return Blend(model, Support.mixed(held, total=self.total), sum(taken)) if held else model


def odds_of_cuts(attributes: int) -> list[float]:
    """Log-odds of all public relations, of all but those of one attribute for each, of none, of no data."""
    return [0.0, *[-_FAITH_IN_EACH - math.log(attributes)] * attributes, -_FAITH, -_FAITH]


def _cuts(domain: Domain, open_: Sequence[str]) -> Said:
    """All public relations; all but those of one attribute, for each that is open; none; no public data."""

    def said(attrs: Attrs, answers: Sequence[Array]) -> Iterator[tuple[Sequence[int], Array]]:
        model, alone = answers
        yield [0, *(place for place, attr in enumerate(open_, 1) if attr not in attrs)], model
        table = model.reshape(domain.project(attrs).shape)
        apart = table.sum(keepdims=True)
        for axis, attr in enumerate(attrs):
            rest = tuple(other for other in range(len(attrs)) if other != axis)
            own = table.sum(axis=rest, keepdims=True) / max(float(table.sum()), 1e-300)
            apart = apart * own
            if attr in open_:
                yield [1 + list(open_).index(attr)], table.sum(axis=axis, keepdims=True) * own
        yield [1 + len(open_)], apart
        yield [2 + len(open_)], alone

    return said
