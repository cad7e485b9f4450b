"""The arbiter: which description of the data leads, by its mean error on the workload.

    k ~ odds_k · exp(−ε (h_k + Σ_c w_c ‖x_c − μ_c^k‖₁) / 2Δ₁),      Σ_c w_c = 1                  select

h_k is n/100 for options that leave all public relations out, n/25 for those that leave out some of them, and
0 for all others.

All candidates are functions of public data and of answers that were paid for, so the mean error of each moves
by Δ₁ of a single marginal, however many marginals and candidates there are (select/judgement.py): a few
hundredths of the budget tell a good description from a false one. It is asked

- **at the start**, after the answers to single attributes: which public relations hold? All of them; all but
  those of some attributes, for (nearly) every set of attributes; none; or nothing public at all;
- **at the end**: are other trees, and public records, after the same answers, mixed into the tree? Or does
  the tree of the same answers without any public relation err less than all of these?

PRIVACY: ``choose`` is the only look, and is paid for; candidates, odds, handicaps, and whether to ask follow
from public data and noisy answers.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, product

import numpy as np
from numpy.typing import NDArray

from sidelight.curator.curator import Curator
from sidelight.data.count_source import ManyCountSource
from sidelight.data.domain import Attrs, Domain
from sidelight.privacy.budget import Cost
from sidelight.privacy.event import Exponential
from sidelight.public.prior import even_part
from sidelight.queries.query import Marginal
from sidelight.select.judgement import Contest, LeastError, Said
from sidelight.trees.triangulation import BYTES_PER_CELL

Array = NDArray[np.float64]

_FAITH = 2.0
"""Log-odds, before the arbiter looks, of all public relations against each kind of doubt: that those of some
attributes are false, that all are, that what the answers contradict is, that nothing public is right; at the
end, of taking other trees, and records."""
_MOST_SETS = 2**14
"""Most sets of attributes that may be cut off, among which the arbiter chooses."""
_MATTERS = 0.01
"""Mean error, as a share of n, that leaving out public data has to save: less may be made up for by what is
measured afterwards."""
_SUSPECT = 0.03
"""Mean error, as a share of n, that relations have to save beyond that if others are left out as false."""
_TELLS = 0.1
"""Share of n that the arbiter has to tell apart to be asked: else chance decided, not data."""
FOR_RELATIONS, FOR_SHARES = 0.0025, 0.001
"""Resolution that is fine enough, as a share of n: for relations a quarter of what matters; for the shares of
other trees and of public records a tenth, since these differ by less."""
_LEAST_PRICE = 0.1
"""Least part of its share of the budget that a question costs if it is asked: the errors hardly feel it, and
it resolves a third as finely as the whole share would."""


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
        judged = even_part(whole) or [c for c in closure if len(c) == 1]
        return cls(curator, {attrs: closure[attrs] for attrs in judged}, total)

    @property
    def judged(self) -> list[Attrs]:
        """The marginals that it judges by."""
        return list(self.weights)

    def choose(self, contest: Contest, cost: Cost) -> int:
        """Which option errs least, as far as the noise lets one see."""
        return self.curator.choose([Marginal(attrs) for attrs in self.judged], contest, cost)

    def price(self, share: float, *, finely: float) -> Cost:
        """The cost of a question: at most this share of the budget, less where less resolves ``finely`` of n.

        Its resolution is 2Δ₁/ε records: so many make one candidate e times as likely as another. Where the
        whole share would not resolve a tenth of n, the cost is 0, and the question is not asked.
        """
        most = min(self.curator.allotment.split(share)[0], self.curator.remaining)
        if not most:
            return most
        event = Exponential.at(
            most, what="a choice", sensitivity=Fraction(self.curator.unit.l1), candidates=2
        )
        told = float(2 * event.sensitivity / event.epsilon) / max(self.total, 1.0)
        if told >= _TELLS:
            return most.split(0)[0]
        # Half the resolution costs a quarter.
        return most.split(min(1.0, max(_LEAST_PRICE, (told / finely) ** 2)))[0]

    def best(self, models: Sequence[ManyCountSource], cost: Cost) -> int:
        """Which of several models errs least; all are as likely beforehand."""
        each = np.eye(len(models)).tolist()
        return self.choose(LeastError(models, each, weights=self.weights, total=self.total), cost)

    def to_cut(
        self, models: Sequence[ManyCountSource], related: Sequence[str], cost: Cost
    ) -> tuple[int, list[str]]:
        """Which model leads, by its place; and which related attributes are to be cut off if the first does.

        All models follow the answers to single attributes, and the first has all public relations. Cutting
        off needs no fit: it says its own marginal of the rest, times what is cut off.
        """
        sets, others = sets_to_cut(len(related)), len(models) - 1
        contest = Contest(
            models, cut_off(self.curator.domain, related, sets, others),
            weights=self.weights, total=self.total, log_odds=odds_of_cuts(sets, others),
            handicaps=[h * self.total for h in handicaps_of_cuts(sets, others)],
        )  # fmt: skip
        chosen = self.choose(contest, cost)
        if chosen >= len(sets):
            return 1 + chosen - len(sets), []
        return 0, [attr for attr, is_cut in zip(related, sets[chosen], strict=True) if is_cut]

    def shares(
        self, model: ManyCountSource, beside: Sequence[tuple[ManyCountSource, float]], bare: ManyCountSource,
        cost: Cost,
    ) -> list[float] | None:  # fmt: skip
        """The share of each model ``beside``: its largest, half of that, or 0; None if ``bare`` wins.

        With nothing to pay, nobody is asked, and all are mixed in.
        """
        choices = list[list[float]]()
        for parts in product((0.0, 0.5, 1.0), repeat=len(beside)):
            left, taken = 1.0, list[float]()
            for part, (_, most) in zip(parts, beside, strict=True):
                taken.append(left * most * part)
                left -= taken[-1]
            choices.append(taken)
        if not cost:
            return choices[-1]
        bare_alone = [0.0] * (1 + len(beside)) + [1.0]
        contest = LeastError(
            [model, *(one for one, _ in beside), bare],
            [*([1 - sum(taken), *taken, 0.0] for taken in choices), bare_alone],
            weights=self.weights, total=self.total,
            log_odds=[*(_FAITH * sum(map(bool, taken)) for taken in choices), 0.0],
            handicaps=[0.0] * len(choices) + [_MATTERS * self.total],
        )  # fmt: skip
        chosen = self.choose(contest, cost)
        return choices[chosen] if chosen < len(choices) else None


def sets_to_cut(attributes: int) -> NDArray[np.bool_]:
    """None, single attributes, pairs of them, and so on as long as there is room; and all of them."""
    rows = list[tuple[int, ...]]()
    for size in range(max(1, attributes - 1)):  # all but one are as good as all: relations take two
        # The first of the rows cuts nothing off, and does not count; the one of all, which comes last, does.
        if len(rows) + math.comb(attributes, size) > _MOST_SETS:
            break
        rows += combinations(range(attributes), size)
    sets = np.zeros((len(rows) + 1, attributes), dtype=np.bool_)
    for place, row in enumerate(rows):
        sets[place, list(row)] = True
    sets[-1] = True
    return sets


def odds_of_cuts(sets: NDArray[np.bool_], others: int) -> list[float]:
    """Log-odds of the sets to cut off, the last of which has all attributes; and of other models.

    Of sets with some attributes each size is as likely as any other, as is each number of attributes that the
    other models leave out; the last of these models has nothing public.
    """
    sizes = sets[1:-1].sum(axis=1).tolist()
    attributes, some = sets.shape[1], max(sizes, default=1)
    cuts = [math.log(some) + math.log(math.comb(attributes, size)) for size in sizes]
    left_out = [math.log(max(others - 1, 1))] * (others - 1) + [0.0] * min(others, 1)
    return [0.0, *(-_FAITH - one for one in (*cuts, 0.0, *left_out))]


def handicaps_of_cuts(sets: NDArray[np.bool_], others: int) -> list[float]:
    """What each option has to save, as a share of n: 0 with all public relations, most with some of them.

    The last set cuts off all of them, and the last of the other models has no public data at all.
    """
    some = _MATTERS + _SUSPECT
    return [0.0, *[some] * (len(sets) - 2), _MATTERS, *[some] * (others - 1), *[_MATTERS] * min(others, 1)]


def cut_off(domain: Domain, related: Sequence[str], sets: NDArray[np.bool_], others: int) -> Said:
    """What is said of a marginal when some of its attributes are cut off; and by other models."""

    def said(attrs: Attrs, answers: Sequence[Array]) -> tuple[Iterable[Array], NDArray[np.intp]]:
        table = answers[0].reshape(domain.project(attrs).shape)
        held = [axis for axis, attr in enumerate(attrs) if attr in related]
        which = np.zeros(len(sets), dtype=np.intp)
        for bit, axis in enumerate(held):
            which += sets[:, related.index(attrs[axis])].astype(np.intp) << bit
        after = 2 ** len(held) + np.arange(others)
        return (*(_cut_apart(table, some) for some in _subsets(held)), *answers[1:]), np.append(which, after)

    return said


def _cut_apart(table: Array, axes: Sequence[int]) -> Array:
    """A marginal with some attributes independent of all others."""
    for axis in axes:
        rest = tuple(other for other in range(table.ndim) if other != axis)
        own = table.sum(axis=rest, keepdims=True) / max(float(table.sum()), 1e-300)
        table = table.sum(axis=axis, keepdims=True) * own
    return table


def _subsets(items: Sequence[int]) -> Iterator[list[int]]:
    """All subsets, in the order of binary numbers."""
    for number in range(2 ** len(items)):
        yield [item for bit, item in enumerate(items) if number >> bit & 1]
